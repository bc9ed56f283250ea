"""An index from where it is published to a verified file on this machine, and who built it: ``anvil pull``."""
