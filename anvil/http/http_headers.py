"""Headers of an HTTP response as values. They are untrusted: a header that cannot be parsed is ignored."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timezone
from email.message import Message
from email.utils import parsedate_to_datetime

PACKED = "sent a compressed answer although none was asked for. Tell its owner."
_MAX_CONTENT_TYPE_CHARACTERS = 500
"""Characters of a content type that are parsed. The parser takes quadratic time."""


def is_packed(headers: Mapping[str, str]) -> bool:
    """Whether the body is compressed. ``headers``: a case-insensitive mapping, or one with names in lower case.

    Anvil never asks for compression, because a small body could unpack to a huge one before its size is checked.
    """
    return headers.get("content-encoding", "").strip().lower() not in ("identity", "")


def content_type(headers: Mapping[str, str]) -> tuple[str, str | None]:
    """The media type in lower case (empty without one), and the name of the encoding or None."""
    header = headers.get("content-type", "")[:_MAX_CONTENT_TYPE_CHARACTERS]
    if not header:
        return "", None
    message = Message()
    message["content-type"] = header
    charset = message.get_param("charset")
    return message.get_content_type(), charset.strip() if isinstance(charset, str) else None


def last_modified(headers: Mapping[str, str]) -> str | None:
    """The time of the last change: ISO 8601, UTC; None without a valid one."""
    try:
        moment = parsedate_to_datetime(headers.get("last-modified", "")).astimezone(timezone.utc)
    except (TypeError, ValueError, OverflowError):
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
