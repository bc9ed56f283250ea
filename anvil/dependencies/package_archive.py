"""The files of a wheel or an npm tarball, which are not trusted: names, sizes and kinds of members are checked.

Members are read one by one into memory. Nothing is extracted, so no name leads anywhere.
"""

from __future__ import annotations

import hashlib
import stat
import tarfile
import zipfile
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from anvil.dependencies.package_registry import PackageArchive
from anvil.errors import ArtifactRejected, FetchError, Unreachable
from anvil.fetch.zip_archive import DAMAGED, WrongArchive
from anvil.http.client import HttpClient, body_errors
from anvil.values import Progress, silent

MAX_MEMBERS = 200_000
MAX_UNPACKED_BYTES = 2_000_000_000
"""Bytes of all members of a tarball, which must be unpacked to be listed."""
MAX_HEADER_BYTES = 20_000
"""Bytes of a block in a tarball that holds a long name or other fields of a member; tarfile reads it whole."""
MAX_HEADER_STEPS = 1_000_000_000
"""The sum of the squares of the bytes of these blocks: older Pythons need such a time to read digits in them (2 s)."""
MAX_COMPRESSION_RATIO = 1000
_BLOCKS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
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
    with _refusing(name):
        return {member: size for member, size, _ in _walk(path, name)}


def read(path: Path, name: str, wanted: Iterable[str], max_bytes: int) -> dict[str, bytes]:
    """The bytes of some files. Raises :class:`ArtifactRejected`, also when they have more than ``max_bytes``."""
    paths, data, bytes_left = frozenset(wanted), {}, max_bytes
    with _refusing(name), closing(_walk(path, name)) as files:
        for member, size, load in files:
            if member in paths:
                bytes_left -= size
                if bytes_left < 0:
                    raise WrongArchive(f"its documentation has more than {max_bytes:,} bytes")
                data[member] = load()
    return data


@contextmanager
def _refusing(name: str) -> Iterator[None]:
    """Raise :class:`ArtifactRejected` for an archive that cannot be read."""
    try:
        yield
    except (*DAMAGED, tarfile.TarError) as error:
        raise ArtifactRejected(f"The archive {name} is refused: {str(error)[:200] or 'it is damaged'}.") from None
    except OSError as error:
        if error.errno is not None and error.filename is not None:
            raise
        raise ArtifactRejected(f"The archive {name} is refused: it is damaged.") from None


Member = tuple[str, int, Callable[[], bytes]]
"""The path and size of a file, and a function that reads it before the next one is asked for."""


def _walk(path: Path, name: str) -> Generator[Member, None, None]:
    return _walk_zip(path) if name.endswith((".whl", ".zip")) else _walk_tar(path)


def _walk_zip(path: Path) -> Generator[Member, None, None]:
    with zipfile.ZipFile(path) as archive:
        listed = archive.infolist()
        if len(listed) > MAX_MEMBERS:
            raise WrongArchive(f"it has more than {MAX_MEMBERS:,} members")
        seen = set()
        for member in listed:
            kind = stat.S_IFMT(member.external_attr >> 16)
            if member.is_dir() or kind not in (0, stat.S_IFREG) or not _is_plain(member.filename):
                continue  # links and paths that lead out are not documentation
            if member.filename in seen:
                raise WrongArchive(f"it has {member.filename[:80]!r} twice")
            seen.add(member.filename)
            yield member.filename, member.file_size, partial(_unzipped, archive, member)


def _unzipped(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    if member.file_size > MAX_COMPRESSION_RATIO * member.compress_size + 65_536:
        raise WrongArchive(f"{member.filename[:80]!r} unpacks to {member.file_size:,} bytes")
    with archive.open(member) as packed:
        data = packed.read(member.file_size + 1)
    if len(data) != member.file_size:
        raise WrongArchive(f"{member.filename[:80]!r} has another size than it declares")
    return data


def _walk_tar(path: Path) -> Generator[Member, None, None]:
    count = unpacked = 0
    with tarfile.open(path, "r|gz", tarinfo=_limited_headers()) as archive:
        for member in archive:
            count, unpacked = count + 1, unpacked + max(member.size, 0)
            if count > MAX_MEMBERS or unpacked > MAX_UNPACKED_BYTES:
                raise WrongArchive("it unpacks to too much")
            if member.isreg() and _is_plain(member.name):
                inside = member.name.partition("/")[2] or member.name  # npm puts all into one folder
                yield inside, member.size, partial(_unpacked, archive, member)


def _limited_headers() -> type[tarfile.TarInfo]:
    """A header of a tarball that is refused before its block is read, if that is large."""
    steps = 0

    class Header(tarfile.TarInfo):
        def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
            """The method that tarfile has for subclasses to override; it reads the block."""
            nonlocal steps
            if self.type in _BLOCKS:
                steps += self.size**2
                if not 0 <= self.size <= MAX_HEADER_BYTES or steps > MAX_HEADER_STEPS:
                    raise WrongArchive(f"a header in it has {self.size:,} bytes, or many have too many")
            try:
                found: tarfile.TarInfo = super()._proc_member(archive)  # type: ignore[misc]
            except RecursionError:
                raise WrongArchive("it has too many headers for one member") from None
            return found

    return Header


def _unpacked(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    return file.read() if file is not None else b""


def _is_plain(name: str) -> bool:
    parts = name.split("/")
    return (
        not name.startswith("/") and "\\" not in name and ".." not in parts and name.isprintable() and len(name) < 500
    )
