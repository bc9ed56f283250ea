"""JSON in one canonical form, for digests and for columns of an index."""

from __future__ import annotations

import json
from typing import Any


def canonical(value: Any) -> str:
    """Canonical JSON: sorted keys, no spaces, text without escapes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
