"""Reports on an index: health of its contents, differences between two, a dump as text."""
