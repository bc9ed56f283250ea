"""Markdown, MDX and plain text to sections, chunks and windows."""
