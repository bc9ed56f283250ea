"""A build's embedding on a Ray cluster."""
