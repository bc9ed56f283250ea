"""Examinations of an installation and a project: ``anvil doctor``."""
