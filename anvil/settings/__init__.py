"""The configuration: its keys, and how files, variables and options are merged into them."""
