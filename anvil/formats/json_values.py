"""JSON: objects in texts of files, servers and callers, and the canonical form for digests and columns of an index."""

from __future__ import annotations

import json
from typing import Any

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def canonical(value: Any) -> str:
    """Canonical JSON: sorted keys, no spaces, text without escapes."""
    return _ENCODER.encode(value)


def json_object(text: str | bytes) -> dict[str, Any] | None:
    """The object in a JSON text; None for another value, for text that is not JSON, and for one nested too deeply."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def objects(value: Any, key: str) -> list[dict[str, Any]]:
    """The objects in the list ``value[key]``; none if there is no such list."""
    items = value.get(key) if isinstance(value, dict) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
