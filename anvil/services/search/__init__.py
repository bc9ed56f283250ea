"""Ranked search, and pages and sections by name."""
