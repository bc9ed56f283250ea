"""Use cases over core and backends, which they get as arguments."""
