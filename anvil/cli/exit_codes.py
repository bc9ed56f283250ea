"""Exit codes of all commands."""

OK = 0
"""Done."""
NO = 1
"""The answer is no: stale, refused, different."""
ERROR = 2
"""It could not be done: an error, or wrong arguments."""
