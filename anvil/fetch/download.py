"""Download of an index that a server offers: resuming it after an interruption, and unpacking a ZIP archive.

An interruption leaves a part file. Only the missing bytes are requested then (Range), if it is certain that they are of
the same file: its SHA-256 is known beforehand, or the server confirms its ETag (If-Range).
"""

from __future__ import annotations

import errno
import json
import re
import shutil
import stat
import struct
import time
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from anvil.errors import ArtifactRejected, FetchError, Unreachable
from anvil.http.client import BrokenOff, HttpClient, Reply
from anvil.index_file import manifests
from anvil.index_file.manifests import Manifest
from anvil.settings import index_url
from anvil.values import Progress


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
        """The ETag if it is strong, which means that it identifies the bytes; else None."""
        return self.etag if self.etag and not self.etag.startswith("W/") else None


NO_VALIDATORS = Validators()


@dataclass(frozen=True, slots=True)
class Candidate:
    """An index, or an archive with one, that can be downloaded from ``url``.

    ``place``: its path below the source. ``name`` identifies this version and contains no secret. ``check_status``:
    raises the error for a status other than success. ``manifest`` as published. ``sha256`` and ``size``, in bytes, of
    the download: from the manifest or the server's API. ``validators``: of the manifest; without one, of the file that
    was downloaded before. ``archive``: whether it is a ZIP archive. ``revision``: the source's name for this version
    (an artifact, a release). ``distance``: number of commits that HEAD has after ``commit``.
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
    """There is no file at this place; try the next one."""


MAX_ATTEMPTS = 4
"""Attempts in a row that make no progress, before the download fails."""
MIN_PROGRESS_BYTES = 64_000
"""Bytes that an attempt must add to make progress."""
RETRY_DELAY_S = 0.3
"""Pause before a broken download continues. It grows with each attempt."""
STAGE = "fetching kB"
"""The stage of progress reports, which count kilobytes."""
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")


def download(http: HttpClient, candidate: Candidate, part: Path, progress: Progress) -> Validators | None:
    """Download a candidate into the file ``part``. Returns the file's validators; None if it has not changed since
    ``candidate.validators``.

    The digest is not compared yet. Raises :class:`Unreachable` if the download breaks off again and again without
    progress, or after ``Limits.whole``. Then ``part`` stays if a later call can resume it.
    """
    end, attempt, most = time.monotonic() + http.limits.whole, 0, 0
    while True:
        try:
            return _attempt(http, candidate, part, progress)
        except BrokenOff as error:
            size = part.stat().st_size if part.exists() else 0
            attempt = 1 if size >= most + MIN_PROGRESS_BYTES else attempt + 1
            most = max(most, size)
            if attempt == MAX_ATTEMPTS or time.monotonic() > end:
                kept_bytes, _ = _resumable(candidate, part, _notes(part))
                advice = " The received part is kept; the next attempt continues it." if kept_bytes else ""
                raise Unreachable(f"{error}{advice}") from None
            time.sleep(RETRY_DELAY_S * attempt)
        except ArtifactRejected:
            forget(part)
            raise


def _attempt(http: HttpClient, candidate: Candidate, part: Path, progress: Progress) -> Validators | None:
    notes = _notes(part)
    start, before = _resumable(candidate, part, notes)
    headers = candidate.request_headers()
    if start:
        headers["Range"] = f"bytes={start}-"
        if before.strong:
            headers["If-Range"] = before.strong
    with http.get(candidate.url, headers) as reply:
        if reply.status == 304 and headers.keys() & {"If-None-Match", "If-Modified-Since"}:
            return None
        if reply.status == 416 and start:  # the file on the server is shorter than the part that is here
            forget(part)
            raise BrokenOff(f"{reply.host} cannot continue a download.")
        if reply.status == 206 and start:
            total = _length_of_partial(reply, start, candidate, before, part)
        else:
            if reply.status != 200:
                candidate.check_status(reply)
                raise FetchError(f"{reply.host} answered with status {reply.status}. Check the address.")
            start, total = 0, reply.length
        if total is not None and candidate.size not in (None, total):
            raise ArtifactRejected(
                f"{reply.host} offers a file of {total:,} bytes where its manifest says {candidate.size:,}. "
                "Publish index and manifest together, and fetch again."
            )
        validators = Validators.of(reply)
        # before the first byte, so that a download which is killed can be resumed
        notes.write_text(json.dumps({"name": candidate.name, "etag": validators.etag}), encoding="utf-8")
        _write(reply, part, start, total, candidate, http.limits.size, progress)
    return validators


def _resumable(candidate: Candidate, part: Path, notes: Path) -> tuple[int, Validators]:
    """The number of bytes in ``part`` that are of this candidate, and their validators. Another part is removed."""
    try:
        stored = json.loads(notes.read_text(encoding="utf-8"))
        before = Validators(stored["etag"])
        if stored["name"] == candidate.name and (candidate.sha256 or before.strong):
            return part.stat().st_size, before
    except (OSError, ValueError, KeyError, TypeError):
        pass  # there is no part, or its notes are damaged
    forget(part)
    return 0, NO_VALIDATORS


def _length_of_partial(reply: Reply, start: int, candidate: Candidate, before: Validators, part: Path) -> int | None:
    """The length of the whole file, from a partial reply; None if unknown. Raises :class:`BrokenOff` if the reply does
    not begin at ``start``, or is of another file."""
    range_ = _RANGE.fullmatch(reply.headers.get("content-range", "").strip())
    is_other = before.strong and Validators.of(reply).etag not in (None, before.etag)
    if not range_ or int(range_[1]) != start or (is_other and not candidate.sha256):
        forget(part)
        raise BrokenOff(f"{reply.host} sent another part of the file than requested.")
    return int(range_[3]) if range_[3] != "*" else None


def _write(
    reply: Reply, part: Path, start: int, total: int | None, candidate: Candidate, limit: int, progress: Progress
) -> None:
    expected = total if total is not None else candidate.size
    size = start
    with part.open("r+b" if start else "wb") as file:
        file.seek(start)
        file.truncate()
        most, advice = limit, "Raise fetch.max_bytes if that is right."
        if expected is None:
            message = f"{reply.host} sends more than the {limit:,} bytes that are allowed. {advice}"
        elif expected > limit:
            message = f"{reply.host} offers a file of {expected:,} bytes, and {limit:,} are allowed. {advice}"
        else:
            most, message = expected, f"{reply.host} sends more than the {expected:,} bytes it should."
        for chunk in reply.chunks(most - start, ArtifactRejected(message)):
            size += len(chunk)
            file.write(chunk)
            progress(STAGE, size // 1000, (expected or size) // 1000)
    if expected is not None and size != expected:
        raise BrokenOff(f"{reply.host} sent {size:,} of {expected:,} bytes.")


def forget(part: Path) -> None:
    for file in (part, _notes(part)):
        file.unlink(missing_ok=True)


def _notes(part: Path) -> Path:
    return part.with_name(part.name + ".json")


# --- an index in a ZIP archive, which is not trusted ------------------------------------------------------------------
# An archive has one index and its manifest, without folders. Paths, links, repeated members, other files, and members
# that are too large are refused before anything is written.

MAX_DIRECTORY_BYTES = 65_536
"""Bytes of the longest central directory that is read."""
_NAME = re.compile(r"(?!\.)[^/\\\x00-\x1f:]{1,200}")
_END = struct.Struct("<4s4H2LH")
_LOCATOR = 20
"""Bytes of the ZIP64 locator, which is right before the end record."""
DAMAGED = (
    ValueError,
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    struct.error,
)
"""Errors that :mod:`zipfile` raises if it cannot read an archive."""


class WrongArchive(ValueError):
    """The reason why an archive is refused."""


def unpack(archive: Path, target: Path, limit: int, shown: str) -> tuple[Path, Manifest | None]:
    """Extract the index to the new file ``target``. Returns this path and the manifest; None if there is no manifest.

    ``limit``: bytes of the largest index. ``shown``: the archive's name in errors. Raises :class:`ArtifactRejected`.
    The index itself is not checked here, and not compared with the manifest.
    """
    try:
        _check_directory(archive)
        with zipfile.ZipFile(archive) as opened:
            index, manifest_member = _members(opened, limit)
            published = None
            if manifest_member is not None:
                with opened.open(manifest_member) as packed:
                    published = manifests.parse(
                        packed.read(manifests.MAX_CHARACTERS * 4).decode("utf-8", "replace"), shown
                    )
                if published.file != index.filename:
                    raise WrongArchive(f"its manifest is of {published.file!r}, but it holds {index.filename!r}")
            with opened.open(index) as packed, target.open("wb") as file:
                shutil.copyfileobj(packed, file)  # zipfile gives no more bytes than its directory declares
            if target.stat().st_size != index.file_size:
                raise WrongArchive(f"it does not unpack to the {index.file_size:,} bytes it declares")
    except OSError as error:
        if error.errno != errno.EINVAL:  # EINVAL comes of a damaged directory with a negative offset
            raise
        message = f"The archive from {shown} is refused: its table of contents is damaged. Fetch it again."
        raise ArtifactRejected(message) from None
    except DAMAGED as error:
        message = f"The archive from {shown} is refused: {error}. Upload index.db and index.json, nothing else."
        raise ArtifactRejected(message) from None
    return target, published


def _check_directory(archive: Path) -> None:
    """Raise :class:`WrongArchive` if the central directory could fill the memory: :mod:`zipfile` reads all of it."""
    size = archive.stat().st_size
    with archive.open("rb") as file:
        file.seek(max(0, size - _END.size - 65_535 - _LOCATOR))
        tail = file.read()
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < _END.size:
        raise WrongArchive("it is not a ZIP file, or not all of it is there")
    if tail[max(0, at - _LOCATOR) : at].startswith(b"PK\x06\x07"):  # its numbers are not those that are checked below
        raise WrongArchive("it is a ZIP64 archive")
    _, _, _, _, entries, length, _, _ = _END.unpack_from(tail, at)
    if entries > 2 or length > MAX_DIRECTORY_BYTES:
        raise WrongArchive("it holds more than an index and its manifest")


def _members(opened: zipfile.ZipFile, limit: int) -> tuple[zipfile.ZipInfo, zipfile.ZipInfo | None]:
    """The members of the index and its manifest; None if there is no manifest. Raises :class:`WrongArchive`."""
    members = opened.infolist()
    for member in members:
        name = member.orig_filename
        if not _NAME.fullmatch(name) or name != member.filename:
            raise WrongArchive(f"it holds the path {name[:80]!r} instead of a plain file name")
        if member.is_dir() or stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG):
            raise WrongArchive(f"{name!r} in it is not a regular file")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise WrongArchive(f"{name!r} in it has an unusual compression")
        if member.file_size > limit:
            raise WrongArchive(f"{name!r} in it has {member.file_size:,} bytes, and {limit:,} are allowed")
    indexes = [member for member in members if member.filename.lower().endswith(index_url.FILES)]
    others = [member for member in members if member not in indexes]
    stem = indexes[0].filename.rpartition(".")[0] if indexes else ""
    if len(indexes) != 1 or len(others) > 1 or any(member.filename != f"{stem}.json" for member in others):
        names = ", ".join(repr(member.filename[:80]) for member in members) or "nothing"
        raise WrongArchive(f"it holds {names} instead of one index and its manifest")
    return indexes[0], others[0] if others else None
