"""Where pages come from: a folder, the staged tree, a commit; which files are pages, and what changed."""
