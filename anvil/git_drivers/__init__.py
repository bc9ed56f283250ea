"""An index in git: differences, merges, and the drivers that git calls: ``anvil diff``, ``anvil git``."""
