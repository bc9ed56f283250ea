"""An index that is refreshed from its documents before each query."""
