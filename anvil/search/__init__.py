"""Search: query, candidates, ranking, sections, excerpts, pages by name, and lines by pattern."""
