"""A page that searches a site's published index in the browser, by HTTP ranges: ``anvil build --search-page``."""
