"""JSON in one canonical form, for digests and for columns of an index."""

from __future__ import annotations

import json
from typing import Any

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def canonical(value: Any) -> str:
    """Canonical JSON: sorted keys, no spaces, text without escapes."""
    return _ENCODER.encode(value)
