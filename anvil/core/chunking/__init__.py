"""Sections to chunks, and chunks to the windows that a model embeds."""
