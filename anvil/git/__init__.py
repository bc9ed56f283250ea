"""Git repositories through libgit2: objects, history, the staged tree, and files as git tracks them."""
