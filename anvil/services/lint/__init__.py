"""``anvil lint``: reads the pages, the index and the generator's configuration, and applies the rules."""
