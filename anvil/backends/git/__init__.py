"""Git repositories through libgit2, and files as git tracks them."""
