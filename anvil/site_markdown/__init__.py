"""Pages as Markdown files, for agents that have only files and HTTP."""
