"""Formats of values: JSON, TOML, YAML, times, globs and encodings, without files."""
