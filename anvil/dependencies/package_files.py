"""Packages, installed here or from their registry: metadata, files, untrusted archives, documentation in them."""

from __future__ import annotations

import hashlib
import itertools
import re
import stat
import tarfile
import zipfile
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

from anvil.dependencies import ecosystems, package_registry
from anvil.dependencies.attempts import AttemptLog
from anvil.dependencies.ecosystems import ECOSYSTEMS, PackageArchive
from anvil.dependencies.project_urls import ProjectUrls, github_slug
from anvil.dependencies.python_ecosystem import MAX_METADATA_CHARS, urls_of
from anvil.dependencies.settings import DepsOptions
from anvil.dependencies.values import LockedDocs
from anvil.errors import ArtifactRejected, FetchError, NotFound
from anvil.fetch.download import DAMAGED, WrongArchive
from anvil.http.client import HttpClient, Limits
from anvil.system import safe_files
from anvil.values import PAGE_ENDING, Progress, silent

MAX_INSTALLED_BYTES = 200_000_000
"""Bytes of an index that an installed package carries."""


class PackageFiles(NamedTuple):
    """The files of a package: their paths, and a function that gives the contents of some of them by path."""

    paths: Sequence[str]
    read: Callable[[Sequence[str]], dict[str, bytes]]


@dataclass(frozen=True, slots=True)
class Package:
    """A package at one version. ``page``: its address in the registry. ``files``: path in the package -> file, if it is
    installed here. ``archive``: that of the registry, if it is not installed and the registry has one."""

    urls: ProjectUrls
    page: str
    files: Mapping[str, Path] | None = None
    archive: PackageArchive | None = None

    @property
    def github(self) -> str | None:
        """The repository as ``OWNER/REPO`` on GitHub; None if it is elsewhere or unknown."""
        return github_slug(self.urls.repository) if self.urls.repository is not None else None


class Packages:
    """The packages of the project in ``base``."""

    def __init__(self, options: DepsOptions, base: Path, log: AttemptLog, progress: Progress) -> None:
        self._options = options
        self._log = log
        self._progress = progress
        self._registries = package_registry.registries(options)
        self.policy = package_registry.policy(options, self._registries)
        self._installed = {ecosystem: ecosystems.of(ecosystem).installed(base) for ecosystem in ECOSYSTEMS}

    def find(self, docs: LockedDocs, folder: Path) -> Package | None:
        """The package and version of ``docs``; None if it is not found, and the log says why. ``folder``: for
        downloads; give the same to :meth:`files`."""
        registry = self._registries[docs.ecosystem]
        page = f"{registry.url}{docs.name}"
        installed = self._installed[docs.ecosystem]
        local = installed.find(docs.name, docs.version) if installed is not None else None
        if installed is not None and local is not None:
            self._log.record("metadata", installed.place, "installed at this version", True)
            return Package(local[0], page, local[1])
        with self._log.attempt("metadata", page):
            with self._log.host(page), HttpClient(package_registry.LIMITS, registry.authorization, self.policy) as http:
                release = ecosystems.of(docs.ecosystem).release(http, registry, docs.name, docs.version)
            urls, archive = release.urls, release.archive
            if urls is None and archive is not None:  # the package index has no separate metadata files (PEP 658)
                packed = self._download(archive, folder)
                wanted = filter(_WHEEL_METADATA.fullmatch, archive_members(packed, archive.name))
                texts = read_archive(packed, archive.name, wanted, MAX_METADATA_CHARS).values()
                urls = urls_of("".join(text.decode("utf-8", "replace") for text in texts))
            self._log.record("metadata", page, "in the registry", True)
            return Package(urls or ProjectUrls(), page, None, archive)
        return None

    def files(self, package: Package, folder: Path) -> PackageFiles:
        """The files of a package. ``folder``: for downloads. Raises :class:`NotFound` if it has no archive."""
        if package.files is not None:
            return PackageFiles(sorted(package.files), partial(_read_installed, package.files))
        if package.archive is None:
            raise NotFound("the registry has no wheel of it")
        packed, name = self._download(package.archive, folder), package.archive.name
        return PackageFiles(
            archive_members(packed, name), lambda wanted: read_archive(packed, name, wanted, MAX_INSTALLED_BYTES)
        )

    def _download(self, file: PackageArchive, folder: Path) -> Path:
        """The downloaded archive in ``folder``, from an earlier call if there was one."""
        packed, max_bytes = folder / "package", self._options.max_package_bytes
        if packed.exists():
            return packed
        if (file.size or 0) > max_bytes:
            raise NotFound(f"{file.name} has {file.size:,} bytes (deps.max_package_bytes)")
        logins = (login for registry in self._registries.values() for login in registry.authorization.items())
        with HttpClient(Limits(), dict(logins), self.policy) as http:
            download(http, file, packed, max_bytes, self._progress)
        return packed


# --- documentation that a package carries: an index, or pages from which one is built -----------------------------

MAX_PAGES = 5000
_INDEX = re.compile(r"(?P<above>(?:[^/]+/)*?)(?:anvil/index\.db|[^/]*\.anvil\.db)")
_LLMS = re.compile(r"(?P<above>(?:[^/]+/)*?)llms-full\.txt", re.IGNORECASE)
_PAGE = re.compile(rf"(?P<above>(?:[^/]+/)*?)(?:docs?|documentation)/.*{PAGE_ENDING}", re.IGNORECASE)
_MAX_ABOVE = 3
"""Folders above a folder of pages without an ``AGENTS.md`` beside it."""
_POINTER = re.compile(r"(?P<above>(?:[^/]+/)*)AGENTS\.md", re.IGNORECASE)
_NO_DOCUMENTATION = re.compile(r"(?:^|/)(?:node_modules|tests?|templates?|examples?)/", re.IGNORECASE)
_METADATA = re.compile(r"(?:^|/)[^/]*\.dist-info/", re.IGNORECASE)
"""The folder of a wheel's metadata. It also has licences, so its pages count only with an ``AGENTS.md`` beside them."""


@dataclass(frozen=True, slots=True)
class Carried:
    """The documentation in a package: the paths of an index, of pages, and of a ``llms-full.txt``. The first of the
    three that a package has is used."""

    index: str | None
    pages: tuple[str, ...]
    llms: str | None


def carried_docs(paths: Collection[str]) -> Carried:
    """The documentation among the files of a package. Of several indexes the one nearest to the top is taken.

    Pages are in folders such as ``docs``. If there is an ``AGENTS.md`` beside such a folder, as publishers put it there
    for agents, only the pages in folders with one are taken.
    """
    pointers = {match["above"].lower() for path in paths if (match := _POINTER.fullmatch(path))}

    def above(pattern: re.Pattern[str], path: str) -> str | None:
        """The folders above the documentation in ``path``; None if it is not documentation. Only the names of these
        folders are checked, not those below them."""
        match = pattern.fullmatch(path)
        if match is None or _NO_DOCUMENTATION.search(match["above"]):
            return None
        is_metadata = _METADATA.search(match["above"]) and match["above"].lower() not in pointers
        return None if is_metadata else match["above"]

    def nearest(pattern: re.Pattern[str]) -> str | None:
        matches = (path for path in paths if above(pattern, path) is not None)
        return min(matches, key=lambda path: (path.count("/"), path), default=None)

    folders = {path: folder.lower() for path in paths if (folder := above(_PAGE, path)) is not None}
    is_pointed = any(folder in pointers for folder in folders.values())
    pages = sorted(
        path
        for path, folder in folders.items()
        if (folder in pointers if is_pointed else folder.count("/") <= _MAX_ABOVE)
    )
    return Carried(index=nearest(_INDEX), pages=tuple(pages[:MAX_PAGES]), llms=nearest(_LLMS))


def llms_pages(text: str) -> list[tuple[str, str]]:
    """(name, text) of the pages in a ``llms-full.txt``, which begin at its first-level headings outside of code."""
    pages: list[tuple[str, list[str]]] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = re.match(r" {0,3}(`{3,}|~{3,})", line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not line.strip().strip(mark[1][0]):
            fence = ""
        heading = None if fence else re.match(r"# +(\S.*)", line)
        if heading or not pages:
            pages.append((heading[1].strip() if heading else "", []))
        pages[-1][1].append(line)
    named: dict[str, str] = {}
    for title, lines in pages:
        slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60] or "page"
        names = itertools.chain([f"{slug}.md"], (f"{slug}-{number}.md" for number in itertools.count(2)))
        if (text := "".join(lines)).strip():
            named[next(name for name in names if name not in named)] = text
    return sorted(named.items())


# --- the archive of a package, which is not trusted: nothing is extracted, so no name leads anywhere --------------

MAX_MEMBERS = 200_000
MAX_UNPACKED_BYTES = 2_000_000_000
"""Bytes of all members of a tarball, which must be unpacked even to list them."""
MAX_HEADER_BYTES = 20_000
"""Bytes of an extended header in a tarball, with a long name or other fields of a member. tarfile reads it whole."""
MAX_HEADER_STEPS = 1_000_000_000
"""The sum of the squares of the sizes of these headers, in bytes: older Pythons take quadratic time to read digits in
them, here 2 s."""
_EXTENDED_HEADERS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
STAGE = "fetching kB of the package"
_WHEEL_METADATA = re.compile(r"[^/]+\.dist-info/METADATA")


def download(
    http: HttpClient, archive: PackageArchive, target: Path, max_bytes: int, progress: Progress = silent
) -> None:
    """Download an archive and compare it with the registry's digest.

    Raises :class:`FetchError`, and :class:`ArtifactRejected` if its bytes have another digest.
    """
    algorithm, _, wanted = (archive.digest or "sha256:").partition(":")
    digest, size = hashlib.new(algorithm), 0
    with http.get(archive.url) as reply, target.open("wb") as file:
        if reply.status != 200:
            raise FetchError(f"{reply.host} answered with status {reply.status} when asked for {archive.name}.")
        too_large = FetchError(f"{archive.name} has more than {max_bytes:,} bytes (deps.max_package_bytes).")
        for chunk in reply.chunks(max_bytes, too_large):
            size += len(chunk)
            digest.update(chunk)
            file.write(chunk)
            progress(STAGE, size // 1000, (archive.size or size) // 1000)
    if archive.digest is not None and digest.hexdigest() != wanted:
        raise ArtifactRejected(f"{archive.name} is refused: its bytes are not those that the registry names.")


def archive_members(path: Path, name: str) -> list[str]:
    """The paths of files in an archive. ``name``: its own, which tells the format. Raises :class:`ArtifactRejected`."""
    with _refusing(name):
        return sorted(member for member, _, _ in _walk(path, name))


def read_archive(path: Path, name: str, wanted: Iterable[str], max_bytes: int) -> dict[str, bytes]:
    """The bytes of the ``wanted`` files. Raises :class:`ArtifactRejected`, also for more than ``max_bytes``."""
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
    """Raise :class:`ArtifactRejected` in place of the errors of a damaged archive."""
    try:
        yield
    except (*DAMAGED, tarfile.TarError) as error:
        raise ArtifactRejected(f"The archive {name} is refused: {str(error)[:200] or 'it is damaged'}.") from None
    except OSError as error:
        if error.errno is not None and error.filename is not None:  # the file itself cannot be read
            raise
        raise ArtifactRejected(f"The archive {name} is refused: it is damaged.") from None


def _walk(path: Path, name: str) -> Generator[tuple[str, int, Callable[[], bytes]], None, None]:
    """(path, size, function that reads the file) of each file. Read a file before you ask for the next one."""
    if name.endswith((".whl", ".zip")):
        yield from _walk_zip(path)
        return
    count = unpacked = 0
    # As a stream: each member is unpacked once, in order, and nothing goes back in the file.
    with tarfile.open(path, "r|gz", tarinfo=_limited_headers()) as archive:
        for member in archive:
            count, unpacked = count + 1, unpacked + max(member.size, 0)
            if count > MAX_MEMBERS or unpacked > MAX_UNPACKED_BYTES:
                raise WrongArchive("it unpacks to too much")
            if member.isreg() and _is_plain(member.name):
                inside = member.name.partition("/")[2] or member.name  # npm puts everything into one folder
                yield inside, member.size, partial(_content, archive.extractfile, member, member.size)


def _walk_zip(path: Path) -> Generator[tuple[str, int, Callable[[], bytes]], None, None]:
    with zipfile.ZipFile(path) as archive:
        seen = set()
        for member in archive.infolist():
            kind = stat.S_IFMT(member.external_attr >> 16)
            if member.is_dir() or kind not in (0, stat.S_IFREG) or not _is_plain(member.filename):
                continue  # links and paths that lead out are not documentation
            if member.filename in seen:
                raise WrongArchive(f"it has {member.filename[:80]!r} twice")
            seen.add(member.filename)
            yield member.filename, member.file_size, partial(_content, archive.open, member, member.file_size)


def _content(opened: Callable[[Any], IO[bytes] | None], member: object, size: int) -> bytes:
    file = opened(member)
    return (
        b"" if file is None else file.read(size)
    )  # the number matters: without it zipfile unpacks more than is declared


def _limited_headers() -> type[tarfile.TarInfo]:
    """A class for members of a tarball that refuses large extended headers before they are read."""
    steps = 0

    class Header(tarfile.TarInfo):
        def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
            """Read an extended header. tarfile has this method for subclasses to override."""
            nonlocal steps
            if self.type in _EXTENDED_HEADERS:
                steps += self.size**2
                if not 0 <= self.size <= MAX_HEADER_BYTES or steps > MAX_HEADER_STEPS:
                    raise WrongArchive(f"a header in it has {self.size:,} bytes, or many have too many")
            try:
                header: tarfile.TarInfo = super()._proc_member(archive)  # type: ignore[misc]
            except RecursionError:
                raise WrongArchive("it has too many headers for one member") from None
            return header

    return Header


def _is_plain(name: str) -> bool:
    """Whether a path in an archive is printable, not too long, and leads to no place outside."""
    parts = name.split("/")
    return (
        not name.startswith("/") and "\\" not in name and ".." not in parts and name.isprintable() and len(name) < 500
    )


def _read_installed(files: Mapping[str, Path], wanted: Sequence[str]) -> dict[str, bytes]:
    """The contents of files of an installed package. Links are not followed, because they can lead anywhere."""
    data = {}
    for name in wanted:
        path = files[name]
        if path.is_symlink() or not path.is_file():
            raise NotFound(f"{name} is not a regular file")
        try:
            data[name] = safe_files.data(path, MAX_INSTALLED_BYTES)
        except OSError as error:
            raise NotFound(f"{name} cannot be read: {error.strerror}") from None
    return data
