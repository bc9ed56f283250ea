"""Formats of values: JSON, TOML, YAML, times, patterns and characters, without files."""
