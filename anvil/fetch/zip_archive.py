"""Extracting an index from an untrusted ZIP archive.

An archive contains one index and its manifest, without folders. Paths, links, repeated members, other files, and
members that are too large are refused before anything is written.
"""

from __future__ import annotations

import errno
import re
import shutil
import stat
import struct
import zipfile
import zlib
from pathlib import Path

from anvil.errors import ArtifactRejected
from anvil.index_file import manifests
from anvil.index_file.manifests import Manifest
from anvil.settings import index_url

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
"""What :mod:`zipfile` raises for an archive that it cannot read."""


class WrongArchive(ValueError):
    """The reason why an archive is refused."""


def unpack(archive: Path, target: Path, limit: int, shown: str) -> tuple[Path, Manifest | None]:
    """Extract the index to the new file ``target``; its path and its manifest, None without one.

    ``limit``: bytes of the largest index. ``shown``: the archive's name in errors. Raises :class:`ArtifactRejected`.
    The index itself is not checked here, and not compared with the manifest.
    """
    try:
        _small_directory(archive)
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
                shutil.copyfileobj(packed, file)  # zipfile gives no more bytes than the index declares
            if target.stat().st_size != index.file_size:
                raise WrongArchive(f"it does not unpack to the {index.file_size:,} bytes it declares")
    except OSError as error:
        if error.errno != errno.EINVAL:  # EINVAL: a damaged directory has a negative offset
            raise
        message = f"The archive from {shown} is refused: its table of contents is damaged. Fetch it again."
        raise ArtifactRejected(message) from None
    except DAMAGED as error:
        message = f"The archive from {shown} is refused: {error}. Upload index.db and index.json, nothing else."
        raise ArtifactRejected(message) from None
    return target, published


def _small_directory(archive: Path) -> None:
    """Refuse a central directory that could fill the memory, before :mod:`zipfile` reads all of it."""
    size = archive.stat().st_size
    with archive.open("rb") as file:
        file.seek(max(0, size - _END.size - 65_535 - _LOCATOR))
        tail = file.read()
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < _END.size:
        raise WrongArchive("it is not a ZIP file, or not all of it is there")
    if tail[max(0, at - _LOCATOR) : at].startswith(b"PK\x06\x07"):  # it has other numbers than those checked below
        raise WrongArchive("it is a ZIP64 archive")
    _, _, _, _, entries, length, _, _ = _END.unpack_from(tail, at)
    if entries > 2 or length > MAX_DIRECTORY_BYTES:
        raise WrongArchive("it holds more than an index and its manifest")


def _members(opened: zipfile.ZipFile, limit: int) -> tuple[zipfile.ZipInfo, zipfile.ZipInfo | None]:
    """The index and its manifest, checked."""
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
    rest = [member for member in members if member not in indexes]
    stem = indexes[0].filename.rpartition(".")[0] if indexes else ""
    if len(indexes) != 1 or len(rest) > 1 or any(member.filename != f"{stem}.json" for member in rest):
        names = ", ".join(repr(member.filename[:80]) for member in members) or "nothing"
        raise WrongArchive(f"it holds {names} instead of one index and its manifest")
    return indexes[0], rest[0] if rest else None
