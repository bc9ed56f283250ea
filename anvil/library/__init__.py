"""A document library: files and web pages that agents add, search and change, in one SQLite file: ``anvil library``."""
