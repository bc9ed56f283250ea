"""Documentation of a project's dependencies at their locked versions: ``anvil deps``."""
