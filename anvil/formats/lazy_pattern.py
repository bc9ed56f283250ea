"""Regular expressions that are compiled at first use, so that a command does not pay for those that it never uses."""

from __future__ import annotations

import re
from typing import Any, cast


class _LazyPattern:
    """Compiles at the first access to a method, which then is an attribute of its own."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern, self.flags = pattern, flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(self.pattern, self.flags), name)
        setattr(self, name, value)
        return value


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """``re.compile`` at first use, for modules with many patterns. Call its methods: functions of ``re`` do not take
    it."""
    return cast("re.Pattern[str]", _LazyPattern(pattern, int(flags)))


SHA256 = lazy_pattern("[0-9a-f]{64}")
"""A SHA-256 in hex."""
OBJECT_ID = lazy_pattern("[0-9a-f]{40}(?:[0-9a-f]{24})?")
"""The id of a commit or blob of git, by SHA-1 or SHA-256."""
