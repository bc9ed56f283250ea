"""Building, merging and pulling an index."""
