"""HTTP requests to servers that are not trusted: which may be reached, and limits on size and time."""
