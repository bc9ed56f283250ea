"""Tools of a small workshop."""
