"""The pointer to the documentation in the files that agents read, and Agent Skills: ``anvil agents``."""
