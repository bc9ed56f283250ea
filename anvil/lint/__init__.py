"""The linter: what is wrong in pages and their links, by the rules of the site's generator: ``anvil lint``."""
