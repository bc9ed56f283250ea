"""A repository's specs, plans, open tasks and decisions, over the same index and search as its documentation: ``anvil
context``."""
