"""What the headers of an HTTP answer say. They come from strangers: what makes no sense says nothing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timezone
from email.message import Message
from email.utils import parsedate_to_datetime

PACKED = "sent a compressed answer although none was asked for. Tell its owner."
_MAX_CONTENT_TYPE_CHARACTERS = 500
"""Characters of a content type that are read; the parser's time grows with their square."""


def is_packed(headers: Mapping[str, str]) -> bool:
    """Whether the body is compressed. ``headers``: their names without regard to case, or in small letters.

    Nobody asks for that here: a small answer could become a large one faster than it is measured.
    """
    return headers.get("content-encoding", "").strip().lower() not in ("identity", "")


def content_type(headers: Mapping[str, str]) -> tuple[str, str | None]:
    """The type of the body in small letters, empty where none is said, and the name of its encoding or None."""
    said = headers.get("content-type", "")[:_MAX_CONTENT_TYPE_CHARACTERS]
    if not said:
        return "", None
    message = Message()
    message["content-type"] = said
    charset = message.get_param("charset")
    return message.get_content_type(), charset.strip() if isinstance(charset, str) else None


def last_modified(headers: Mapping[str, str]) -> str | None:
    """When the body was last changed: ISO 8601, UTC."""
    try:
        found = parsedate_to_datetime(headers.get("last-modified", "")).astimezone(timezone.utc)
    except (TypeError, ValueError, OverflowError):
        return None
    return found.strftime("%Y-%m-%dT%H:%M:%SZ")
