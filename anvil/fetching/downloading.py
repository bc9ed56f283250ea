"""One file from a server into a part file, which survives whatever ends the download and is taken up again.

Resuming asks for the rest only (Range), and only of the very same file: of one whose SHA-256 is known beforehand, or
whose validator (ETag) the server still stands by (If-Range).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from anvil.errors import ArtifactRejected, FetchError, Unreachable
from anvil.fetching.http import Http, Reply
from anvil.models import Progress

ATTEMPTS = 4
BREAK = 0.3
"""Seconds before a broken download is taken up again, more each time."""
STAGE = "fetching kB"
"""What progress is told, with numbers that people can read."""
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")


@dataclass(frozen=True, slots=True)
class Validators:
    """What a server says of one version of a file: quoted back, it tells whether that is still the one."""

    etag: str | None = None
    modified: str | None = None

    @classmethod
    def of(cls, reply: Reply) -> Validators:
        return cls(reply.headers.get("etag"), reply.headers.get("last-modified"))

    def conditions(self) -> dict[str, str]:
        """Headers that ask for the file only if it is another one."""
        told = {"If-None-Match": self.etag, "If-Modified-Since": None if self.etag else self.modified}
        return {name: value for name, value in told.items() if value}

    @property
    def strong(self) -> str | None:
        """The ETag when it speaks of bytes, not of meaning."""
        return self.etag if self.etag and not self.etag.startswith("W/") else None


NEVER_SEEN = Validators()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be downloaded. ``name`` tells it from other files without a secret in it; ``refuse`` raises for a
    status that is no answer to work with; ``since`` are validators of what is there already."""

    url: str
    name: str
    refuse: Callable[[Reply], None]
    sha256: str | None = None
    size: int | None = None
    headers: Mapping[str, str] | None = None
    since: Validators = NEVER_SEEN


def download(http: Http, wanted: Wanted, part: Path, progress: Progress) -> Validators | None:
    """Fill ``part``; the file's validators, or None when the server has nothing newer than ``wanted.since``.

    Its digest is not yet compared. Raises :class:`Unreachable` when it breaks off again and again: what came is kept.
    """
    for attempt in range(ATTEMPTS):
        try:
            return _attempt(http, wanted, part, progress)
        except _Broken as error:
            if attempt + 1 == ATTEMPTS:
                raise Unreachable(f"{error} What came is kept; the next attempt goes on from there.") from None
            time.sleep(BREAK * (attempt + 1))
        except ArtifactRejected:
            forget(part)
            raise
    raise AssertionError


class _Broken(Exception):
    """A body that ended before its end."""


def _attempt(http: Http, wanted: Wanted, part: Path, progress: Progress) -> Validators | None:
    notes = part.with_name(part.name + ".json")
    have, before = _kept(wanted, part, notes)
    headers = {**(wanted.headers or {}), **wanted.since.conditions()}
    if have:
        headers["Range"] = f"bytes={have}-"
        if before.strong:
            headers["If-Range"] = before.strong
    with http.get(wanted.url, headers) as reply:
        if reply.status == 304:
            return None
        if reply.status == 416 and have:
            forget(part)
            raise _Broken(f"{reply.host} does not know the rest of a file it sent in part.")
        if reply.status == 206 and have:
            have, total = _continued(reply, have, wanted, before, part)
        else:
            if reply.status != 200:
                wanted.refuse(reply)
                raise FetchError(f"{reply.host} answered with status {reply.status}. Check the address.")
            have, total = 0, reply.length
        found = Validators.of(reply)
        _bounded(reply, wanted, total, http.limits.size)
        notes.write_text(json.dumps({"name": wanted.name, "etag": found.etag}), encoding="utf-8")
        _write(reply, part, have, total, wanted, http.limits.size, progress)
    return found


def _kept(wanted: Wanted, part: Path, notes: Path) -> tuple[int, Validators]:
    """How many bytes of this very file are there already, and the validators they came with."""
    try:
        told = json.loads(notes.read_text(encoding="utf-8"))
        before = Validators(told["etag"])
        if told["name"] == wanted.name and (wanted.sha256 or before.strong):
            return part.stat().st_size, before
    except (OSError, ValueError, KeyError, TypeError):
        pass  # none, or from another time: it starts from nothing
    forget(part)
    return 0, NEVER_SEEN


def _continued(reply: Reply, have: int, wanted: Wanted, before: Validators, part: Path) -> tuple[int, int | None]:
    """Where a partial answer goes on, and the whole length."""
    said = _RANGE.fullmatch(reply.headers.get("content-range", "").strip())
    other = before.strong and Validators.of(reply).etag not in (None, before.etag)
    if not said or int(said[1]) != have or (other and not wanted.sha256):
        forget(part)
        raise _Broken(f"{reply.host} sent another part of the file than the one asked for.")
    return have, int(said[3]) if said[3] != "*" else None


def _bounded(reply: Reply, wanted: Wanted, total: int | None, limit: int) -> None:
    if (total or 0) > limit:
        raise ArtifactRejected(
            f"{reply.host} offers a file of {total:,} bytes, and {limit:,} are allowed. "
            "Raise fetch.max_bytes if that is right."
        )
    if total is not None and wanted.size is not None and total != wanted.size:
        raise ArtifactRejected(
            f"{reply.host} offers a file of {total:,} bytes where its manifest says {wanted.size:,}. "
            "Publish index and manifest together, and fetch again."
        )


def _write(
    reply: Reply, part: Path, have: int, total: int | None, wanted: Wanted, limit: int, progress: Progress
) -> None:
    from anvil.fetching.http import broken

    expected = total if total is not None else wanted.size
    with part.open("r+b" if have else "wb") as file:
        file.seek(have)
        file.truncate()
        try:
            for chunk in reply.chunks():
                have += len(chunk)
                if have > min(limit, expected if expected is not None else limit):
                    raise ArtifactRejected(f"{reply.host} sends more than the {expected or limit:,} bytes it should.")
                file.write(chunk)
                progress(STAGE, have // 1000, (expected or have) // 1000)
        except broken() as error:
            raise _Broken(f"{reply.host} broke off after {have:,} bytes ({type(error).__name__}).") from None
    if expected is not None and have != expected:
        raise _Broken(f"{reply.host} sent {have:,} of {expected:,} bytes.")


def forget(part: Path) -> None:
    """Remove a part file and what is noted of it."""
    for each in (part, part.with_name(part.name + ".json")):
        each.unlink(missing_ok=True)
