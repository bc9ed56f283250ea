"""The linter's rules: where links lead on a site, what is wrong in pages, and how findings are written down."""
