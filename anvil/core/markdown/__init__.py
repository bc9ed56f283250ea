"""Markdown source to sections, headings, anchors, front matter and the text that readers see."""
