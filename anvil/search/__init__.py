"""Search: query, candidates, ranking, sections, snippets, pages by name, and lines by pattern."""
