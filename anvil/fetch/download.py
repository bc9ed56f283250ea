"""Candidates, which are indexes that a server offers, and their resumable download into a part file.

The part file survives an interruption. Resuming asks for the rest only (Range), and only of the very same file: its
SHA-256 is known beforehand, or the server confirms its ETag (If-Range).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from anvil.errors import ArtifactRejected, FetchError, Unreachable
from anvil.http.client import HttpClient, Reply, body_errors
from anvil.values import Manifest, Progress


@dataclass(frozen=True, slots=True)
class Validators:
    """ETag and Last-Modified of a file, for conditional requests."""

    etag: str | None = None
    modified: str | None = None

    @classmethod
    def of(cls, reply: Reply) -> Validators:
        return cls(reply.headers.get("etag"), reply.headers.get("last-modified"))

    def conditions(self) -> dict[str, str]:
        """Request headers that ask for the file only if it changed."""
        conditions = {"If-None-Match": self.etag, "If-Modified-Since": None if self.etag else self.modified}
        return {name: value for name, value in conditions.items() if value}

    @property
    def strong(self) -> str | None:
        """The ETag if it is a strong one, which identifies the bytes."""
        return self.etag if self.etag and not self.etag.startswith("W/") else None


NO_VALIDATORS = Validators()


@dataclass(frozen=True, slots=True)
class Candidate:
    """An index, or an archive with one, that can be downloaded from ``url``.

    ``place``: its path below the source. ``name`` identifies this version and contains no secret. ``check_status``
    raises for a status other than success. ``manifest`` as published. ``sha256`` and ``size`` in bytes of the download,
    from the manifest or the server's API. ``validators``: of the manifest, or, without one, of the file that was
    downloaded before. ``revision``: the source's name for this version (an artifact, a release).
    """

    url: str
    place: str
    name: str
    check_status: Callable[[Reply], None]
    manifest: Manifest | None = None
    sha256: str | None = None
    size: int | None = None
    validators: Validators = NO_VALIDATORS
    accept: str | None = None
    archive: bool = False
    revision: str | None = None
    commit: str | None = None
    distance: int | None = None
    notes: tuple[str, ...] = ()

    def request_headers(self) -> dict[str, str]:
        """Headers of the download. Without a manifest they ask for the file only if it changed."""
        accept = {"Accept": self.accept} if self.accept else {}
        return accept if self.manifest is not None else {**accept, **self.validators.conditions()}


class Missing(FetchError):
    """There is no file at this place. The next place can be tried."""


MAX_ATTEMPTS = 4
RETRY_DELAY_S = 0.3
"""Before a broken download continues; longer each time."""
STAGE = "fetching kB"
"""The stage of progress reports, which count kilobytes."""
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")


def download(http: HttpClient, candidate: Candidate, part: Path, progress: Progress) -> Validators | None:
    """Fill ``part``; the file's validators, or None when the server has nothing newer than ``candidate.validators``.

    Its digest is not yet compared. Raises :class:`Unreachable` when it breaks off again and again: what came is kept.
    """
    for attempt in range(MAX_ATTEMPTS):
        try:
            return _attempt(http, candidate, part, progress)
        except _Broken as error:
            if attempt + 1 == MAX_ATTEMPTS:
                raise Unreachable(f"{error} What came is kept; the next attempt goes on from there.") from None
            time.sleep(RETRY_DELAY_S * (attempt + 1))
        except ArtifactRejected:
            forget(part)
            raise
    raise AssertionError


class _Broken(Exception):
    """A body that ended before its end."""


def _attempt(http: HttpClient, candidate: Candidate, part: Path, progress: Progress) -> Validators | None:
    notes = part.with_name(part.name + ".json")
    have, before = _kept(candidate, part, notes)
    headers = candidate.request_headers()
    if have:
        headers["Range"] = f"bytes={have}-"
        if before.strong:
            headers["If-Range"] = before.strong
    with http.get(candidate.url, headers) as reply:
        if reply.status == 304:
            return None
        if reply.status == 416 and have:
            forget(part)
            raise _Broken(f"{reply.host} cannot continue a download.")
        if reply.status == 206 and have:
            have, total = _continued(reply, have, candidate, before, part)
        else:
            if reply.status != 200:
                candidate.check_status(reply)
                raise FetchError(f"{reply.host} answered with status {reply.status}. Check the address.")
            have, total = 0, reply.length
        validators = Validators.of(reply)
        _bounded(reply, candidate, total, http.limits.size)
        notes.write_text(json.dumps({"name": candidate.name, "etag": validators.etag}), encoding="utf-8")
        _write(reply, part, have, total, candidate, http.limits.size, progress)
    return validators


def _kept(candidate: Candidate, part: Path, notes: Path) -> tuple[int, Validators]:
    """The number of bytes of this file that were downloaded before, and their validators."""
    try:
        stored = json.loads(notes.read_text(encoding="utf-8"))
        before = Validators(stored["etag"])
        if stored["name"] == candidate.name and (candidate.sha256 or before.strong):
            return part.stat().st_size, before
    except (OSError, ValueError, KeyError, TypeError):
        pass  # none, or of another file: start at 0
    forget(part)
    return 0, NO_VALIDATORS


def _continued(reply: Reply, have: int, candidate: Candidate, before: Validators, part: Path) -> tuple[int, int | None]:
    """The offset of a partial response, and the whole length."""
    range_ = _RANGE.fullmatch(reply.headers.get("content-range", "").strip())
    other = before.strong and Validators.of(reply).etag not in (None, before.etag)
    if not range_ or int(range_[1]) != have or (other and not candidate.sha256):
        forget(part)
        raise _Broken(f"{reply.host} sent another part of the file than requested.")
    return have, int(range_[3]) if range_[3] != "*" else None


def _bounded(reply: Reply, candidate: Candidate, total: int | None, limit: int) -> None:
    if (total or 0) > limit:
        raise ArtifactRejected(
            f"{reply.host} offers a file of {total:,} bytes, and {limit:,} are allowed. "
            "Raise fetch.max_bytes if that is right."
        )
    if total is not None and candidate.size is not None and total != candidate.size:
        raise ArtifactRejected(
            f"{reply.host} offers a file of {total:,} bytes where its manifest says {candidate.size:,}. "
            "Publish index and manifest together, and fetch again."
        )


def _write(
    reply: Reply, part: Path, have: int, total: int | None, candidate: Candidate, limit: int, progress: Progress
) -> None:
    expected = total if total is not None else candidate.size
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
        except body_errors() as error:
            raise _Broken(f"{reply.host} broke off after {have:,} bytes ({type(error).__name__}).") from None
    if expected is not None and have != expected:
        raise _Broken(f"{reply.host} sent {have:,} of {expected:,} bytes.")


def forget(part: Path) -> None:
    """Remove a part file and its notes."""
    for file in (part, part.with_name(part.name + ".json")):
        file.unlink(missing_ok=True)
