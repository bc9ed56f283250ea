"""The library file: a store that several processes write."""
