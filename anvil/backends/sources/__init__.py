"""Where documents come from: a folder, the staged tree, a commit."""
