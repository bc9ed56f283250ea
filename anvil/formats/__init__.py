"""Formats of values: JSON, TOML, YAML, times, globs, characters and encodings, without files."""
