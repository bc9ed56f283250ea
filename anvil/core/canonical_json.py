"""JSON with one spelling, for digests and for columns of an index."""

from __future__ import annotations

import json
from typing import Any


def canonical(value: Any) -> str:
    """JSON with one spelling: sorted keys, no spaces, text as it is."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
