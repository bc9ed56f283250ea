"""Which sections of the documentation a change of code probably makes wrong: ``anvil impact``."""
