"""Git objects, history and attributes as data, without a repository."""
