"""What an index holds: health of the content, differences, a dump as text."""
