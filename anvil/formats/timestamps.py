"""Times as the index stores them: ISO 8601 in UTC, whole seconds."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_EARLIEST, _LATEST = -62_135_596_800, 253_402_300_799
"""The first second of the year 1 and the last of 9999, from 1970 on."""


def timestamp(seconds: float) -> str:
    """Seconds since 1970 as ISO 8601 in UTC, whole seconds: ``2026-01-31T09:30:00Z``.

    A time outside of the years 1 to 9999, which a damaged time stamp can have, becomes the nearest one inside.
    """
    moment = _EPOCH + timedelta(seconds=min(max(int(seconds), _EARLIEST), _LATEST))
    return moment.isoformat().replace(
        "+00:00", "Z"
    )  # strftime writes the year 1 without leading zeros, and fails on some systems
