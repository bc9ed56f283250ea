"""Pure functions: text and values in, values out; no file, clock or network."""
