"""Query parsing, scoring, vector scan, snippets and metadata filters."""
