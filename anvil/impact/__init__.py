"""Which sections of the documentation a change of code probably makes wrong: ``anvil impact``."""

from anvil.impact.assessment import assess

__all__ = ["assess"]
