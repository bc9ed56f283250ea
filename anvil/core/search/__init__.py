"""Query parsing, scoring, links between pages, vector scan, snippets and metadata filters."""
