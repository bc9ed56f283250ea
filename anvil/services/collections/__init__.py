"""The collections of a project: those of its configuration, and those of ``anvil.lock``."""
