"""The MkDocs plugin: the index is built with the site."""
