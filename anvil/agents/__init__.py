"""The map of the documentation in the files that agents read, and Agent Skills: ``anvil agents``."""
