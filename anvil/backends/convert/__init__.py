"""PDF, Office and other files to Markdown, in worker processes with limits."""
