"""An index that is refreshed from its source before each query."""
