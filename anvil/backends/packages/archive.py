"""The files of a wheel or an npm tarball, which are not trusted: names, sizes and kinds of members are checked.

Members are read one by one into memory. Nothing is extracted, so no name leads anywhere.
"""

from __future__ import annotations

import hashlib
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

from anvil.backends.fetch.http_client import HttpClient, body_errors
from anvil.backends.packages.registry import PackageArchive
from anvil.errors import ArtifactRejected, FetchError, Unreachable
from anvil.models.documents import Progress, silent

MAX_MEMBERS = 200_000
MAX_UNPACKED_BYTES = 2_000_000_000
"""Bytes of all members of a tarball, which must be unpacked to be listed."""
MAX_COMPRESSION_RATIO = 1000
STAGE = "fetching kB of the package"


def download(
    http: HttpClient, archive: PackageArchive, target: Path, max_bytes: int, progress: Progress = silent
) -> None:
    """Download an archive and compare it with the registry's digest.

    Raises :class:`FetchError`, and :class:`ArtifactRejected` for other bytes.
    """
    algorithm, _, wanted = (archive.digest or "sha256:").partition(":")
    digest, size = hashlib.new(algorithm), 0
    with http.get(archive.url) as reply, target.open("wb") as file:
        if reply.status != 200:
            raise FetchError(f"{reply.host} answered with status {reply.status} when asked for {archive.name}.")
        try:
            for chunk in reply.chunks():
                size += len(chunk)
                if size > max_bytes:
                    raise FetchError(f"{archive.name} has more than {max_bytes:,} bytes (deps.max_package_bytes).")
                digest.update(chunk)
                file.write(chunk)
                progress(STAGE, size // 1000, (archive.size or size) // 1000)
        except body_errors() as error:
            raise Unreachable(f"{reply.host} broke off ({type(error).__name__}). Try again.") from None
    if archive.digest is not None and digest.hexdigest() != wanted:
        raise ArtifactRejected(f"{archive.name} is refused: its bytes are not those that the registry names.")


def members(path: Path, name: str) -> dict[str, int]:
    """Path -> bytes of the files in an archive. ``name`` tells its format. Raises :class:`ArtifactRejected`."""
    found: dict[str, int] = {}

    def listed(member: str, size: int, _: Callable[[], bytes]) -> None:
        found[member] = size

    _walk(path, name, listed)
    return found


def read(path: Path, name: str, wanted: Iterable[str], max_bytes: int) -> dict[str, bytes]:
    """The bytes of some files. Raises :class:`ArtifactRejected`, also when they have more than ``max_bytes``."""
    paths, data, left = frozenset(wanted), {}, [max_bytes]

    def kept(member: str, size: int, load: Callable[[], bytes]) -> None:
        if member in paths:
            left[0] -= size
            if left[0] < 0:
                raise _Wrong(f"its documentation has more than {max_bytes:,} bytes")
            data[member] = load()

    _walk(path, name, kept)
    return data


class _Wrong(ValueError):
    """The reason why an archive is refused."""


Visit = Callable[[str, int, Callable[[], bytes]], None]
"""Gets the path, the size and a function that reads the member."""


def _walk(path: Path, name: str, visit: Visit) -> None:
    try:
        (_walk_zip if name.endswith((".whl", ".zip")) else _walk_tar)(path, visit)
    except (
        ValueError,
        tarfile.TarError,
        zipfile.BadZipFile,
        zipfile.LargeZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        RuntimeError,
    ) as error:
        raise ArtifactRejected(f"The archive {name} is refused: {str(error)[:200] or 'it is damaged'}.") from None
    except OSError as error:
        if error.errno is not None and error.filename is not None:
            raise
        raise ArtifactRejected(f"The archive {name} is refused: it is damaged.") from None


def _walk_zip(path: Path, visit: Visit) -> None:
    with zipfile.ZipFile(path) as archive:
        listed = archive.infolist()
        if len(listed) > MAX_MEMBERS:
            raise _Wrong(f"it has more than {MAX_MEMBERS:,} members")
        seen = set()
        for member in listed:
            kind = stat.S_IFMT(member.external_attr >> 16)
            if member.is_dir() or kind not in (0, stat.S_IFREG) or not _is_plain(member.filename):
                continue  # links and paths that lead out are not documentation
            if member.filename in seen:
                raise _Wrong(f"it has {member.filename[:80]!r} twice")
            seen.add(member.filename)

            def load(member: zipfile.ZipInfo = member) -> bytes:
                if member.file_size > MAX_COMPRESSION_RATIO * member.compress_size + 65_536:
                    raise _Wrong(f"{member.filename[:80]!r} unpacks to {member.file_size:,} bytes")
                with archive.open(member) as packed:
                    data = packed.read(member.file_size + 1)
                if len(data) != member.file_size:
                    raise _Wrong(f"{member.filename[:80]!r} has another size than it declares")
                return data

            visit(member.filename, member.file_size, load)


def _walk_tar(path: Path, visit: Visit) -> None:
    count = unpacked = 0
    with tarfile.open(path, "r|gz") as archive:
        for member in archive:
            count, unpacked = count + 1, unpacked + max(member.size, 0)
            if count > MAX_MEMBERS or unpacked > MAX_UNPACKED_BYTES:
                raise _Wrong("it unpacks to too much")
            if not member.isreg() or not _is_plain(member.name):
                continue

            def load(member: tarfile.TarInfo = member) -> bytes:
                file = archive.extractfile(member)
                return file.read() if file is not None else b""

            visit(member.name.partition("/")[2] or member.name, member.size, load)  # npm puts all into one folder


def _is_plain(name: str) -> bool:
    parts = name.split("/")
    return (
        not name.startswith("/") and "\\" not in name and ".." not in parts and name.isprintable() and len(name) < 500
    )
