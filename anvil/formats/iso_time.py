"""ISO 8601 in all its forms: the span of time that a text names.

``datetime.fromisoformat`` of Python 3.10 reads one form. This module also reads the basic format, weeks, day numbers,
reduced precision and fractions.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

BEYOND = "A"
"""Sorts after every stored time: the end of a span after the year 9999."""

_SPELLED = re.compile(
    r"(?P<year>\d{4})"
    r"(?:-?W(?P<week>\d\d)(?:-?(?P<weekday>[1-7]))?|-?(?P<day_of_year>\d{3})(?!\d)"
    r"|(?:-(?P<month>\d\d)(?:-(?P<day>\d\d))?|(?P<basic_month>\d\d)(?P<basic_day>\d\d)))?"
    r"(?:[Tt ](?P<hour>\d\d)(?::?(?P<minute>\d\d)(?::?(?P<second>\d\d)(?:[.,]\d{1,30})?)?)?"
    r" ?(?P<zone>[Zz]|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)


def span(text: str) -> tuple[str, str]:
    """The first second of the span, and the first second after it, as stored times (``2026-01-31T09:30:00Z``).

    A year, month, week, day, hour or minute is a span of that length. A time without a zone is UTC. Fractions of a
    second are dropped, because stored times have none. Raises :class:`ValueError` for other text.
    """
    match = _SPELLED.fullmatch(text.strip())
    if match is None:
        raise ValueError("not ISO 8601")
    numbers = {name: int(value) for name, value in match.groupdict().items() if value and name != "zone"}
    part = {name.removeprefix("basic_"): value for name, value in numbers.items()}
    try:
        return _span(part, match["zone"])
    except OverflowError:
        raise ValueError("not in any calendar") from None


def _span(part: dict[str, int], zone: str | None) -> tuple[str, str]:
    start, length = _date(part)
    if "hour" in part:
        if not part.keys() & {"day", "weekday", "day_of_year"}:
            raise ValueError("a time needs a day")
        if part["hour"] == 24 and part.get("minute", 0) == part.get("second", 0) == 0:  # midnight at the end of a day
            start, part["hour"] = start + timedelta(days=1), 0
        start = start.replace(hour=part["hour"], minute=part.get("minute", 0), second=min(part.get("second", 0), 59))
        if part.get("second", 0) > 60:
            raise ValueError("not a second")
        length = timedelta(seconds=1 if "second" in part else 60 if "minute" in part else 3600)
        start -= _offset(zone)
    return _stored(start), _end(start, length, part)


def _date(part: dict[str, int]) -> tuple[datetime, timedelta]:
    year, day = part["year"], timedelta(days=1)
    if "week" in part:
        monday = datetime.fromisocalendar(year, part["week"], part.get("weekday", 1))
        return monday.replace(tzinfo=timezone.utc), day if "weekday" in part else 7 * day
    if "day_of_year" in part:
        start = datetime(year, 1, 1, tzinfo=timezone.utc) + (part["day_of_year"] - 1) * day
        if start.year != year or not part["day_of_year"]:
            raise ValueError("no such day")
        return start, day
    start = datetime(year, part.get("month", 1), part.get("day", 1), tzinfo=timezone.utc)
    return start, day if "day" in part else timedelta(0)


def _end(start: datetime, length: timedelta, part: dict[str, int]) -> str:
    try:
        if length:
            return _stored(start + length)
        year, month = (start.year, start.month + 1) if "month" in part else (start.year + 1, 1)
        return _stored(start.replace(year=year + month // 13, month=(month - 1) % 12 + 1))
    except (OverflowError, ValueError):  # beyond the year 9999
        return BEYOND


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone in "Zz":
        return timedelta(0)
    hours, minutes = int(zone[1:3]), int(zone[-2:]) if len(zone) > 3 else 0
    if hours > 23 or minutes > 59:
        raise ValueError("no such zone")
    return timedelta(hours=hours, minutes=minutes) * (-1 if zone[0] == "-" else 1)


def _stored(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


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
