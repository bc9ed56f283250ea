"""Document sources: their protocol, which files are pages (names, size, encoding, content), and how pages are compared.

The rules are the same for the working tree, the staged tree and commits, and the same content gives the same documents.
So an index from one source can be compared with another source by content, without time stamps and commit ids. Each
skipped file has a reason that a person can act on.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

from anvil.formats import patterns
from anvil.formats.characters import marked_encoding, plain_name
from anvil.settings.schema import INDEX_FOLDER, SourceOptions
from anvil.text import includes
from anvil.values import PAGE_ENDINGS, Changes, Document, KnownTimes, Scan, Skipped


class DocumentSource(Protocol):
    """A set of documents. Thread-safe."""

    @property
    def name(self) -> str:
        """``working tree``, ``staged tree`` or ``commit 1a2b3c4``."""

    @property
    def root_path(self) -> str:
        """The documents' folder relative to the repository, POSIX; ``.`` for the root, and outside of git."""

    @property
    def problem(self) -> str | None:
        """Why the rules and times of the repository cannot be used; None without a problem."""

    @property
    def excluded_hashes(self) -> frozenset[str] | None:
        """Hashed paths of the files that the site leaves out, see :func:`hash_path`; None without a site."""

    def commit(self) -> str | None:
        """The commit of the documents (40 hex digits), which is HEAD for working and staged trees; None if none."""

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        """All documents with their identities, and the skipped files.

        ``indexed``: path -> identity in an index that was built with the same options. Files with the same blob id are
        not read again.
        """

    def read(self, path: str) -> Document | Skipped:
        """A document with its included text, and the blob id of the bytes that were read; Skipped if it is not a
        document any more. :meth:`last_modified` gives its time, because that may read the history."""

    def last_modified(self, paths: Collection[str], known: KnownTimes, since: str | None) -> dict[str, str]:
        """Path -> time (ISO 8601, UTC) of the last commit that changed the page; without a commit, of the file.

        ``known``: path -> (blob id, time) in an index that was built at commit ``since``.
        """


class SourceWrapper:
    """A :class:`DocumentSource` that passes each call to another source, unless a subclass overrides it."""

    name: str
    root_path: str
    problem: str | None
    excluded_hashes: frozenset[str] | None

    def __init__(self, source: DocumentSource) -> None:
        self._source = source

    # Attributes are passed on by __getattr__ and not copied, because ``problem`` changes. Methods are written out,
    # because a type checker looks for the methods of a protocol in the class.
    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def commit(self) -> str | None:
        return self._source.commit()

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        return self._source.scan(indexed)

    def read(self, path: str) -> Document | Skipped:
        return self._source.read(path)

    def last_modified(self, paths: Collection[str], known: KnownTimes, since: str | None) -> dict[str, str]:
        return self._source.last_modified(paths, known, since)


class GivenDocuments:
    """A :class:`DocumentSource` of documents in memory, each with its blob id and time."""

    root_path = "."
    problem: str | None = None
    excluded_hashes: frozenset[str] | None = None

    def __init__(
        self, name: str, documents: Iterable[Document], skipped: Iterable[Skipped] = (), commit: str | None = None
    ) -> None:
        self.name, self._skipped, self._commit = name, tuple(skipped), commit
        self._documents = {document.path: document for document in documents}

    def commit(self) -> str | None:
        return self._commit

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        return Scan({path: document.blob_id for path, document in sorted(self._documents.items())}, self._skipped)

    def read(self, path: str) -> Document | Skipped:
        return self._documents.get(path) or Skipped(plain_name(path), f"not in the {self.name}")

    def last_modified(self, paths: Collection[str], known: KnownTimes, since: str | None) -> dict[str, str]:
        return {path: self._documents[path].last_modified for path in paths}


# --- identities of documents --------------------------------------------------------------------------


def identity(blob_id: str, fingerprint: str) -> str:
    """The value that a build compares: the git blob id of a file and, if the page has one, a fingerprint.

    A fingerprint changes with the values from a site generator and with included files, even if the file stays.
    """
    return f"{blob_id}:{fingerprint}" if fingerprint else blob_id


def of_file(blob_id: str, fingerprint: str) -> str:
    """The part of an identity that depends on files only, without the values from a site generator."""
    return identity(blob_id, included(fingerprint))


def included(fingerprint: str) -> str:
    """The part of a fingerprint that names included files (:func:`anvil.text.includes.fingerprint`)."""
    at = fingerprint.find("+")  # before it, there is a hash in hex
    return fingerprint[at:] if at >= 0 else ""


def parts(identity: str) -> tuple[str, str]:
    """Blob id and fingerprint of an identity."""
    blob_id, _, fingerprint = identity.partition(":")
    return blob_id, fingerprint


def compare(indexed: Mapping[str, str], current: Mapping[str, str]) -> Changes:
    """The changes from ``indexed`` to ``current``, both path -> blob id or identity."""
    return Changes(
        changed=tuple(sorted(p for p, blob in current.items() if p in indexed and indexed[p] != blob)),
        added=tuple(sorted(current.keys() - indexed.keys())),
        removed=tuple(sorted(indexed.keys() - current.keys())),
    )


def hash_path(path: str) -> str:
    """The hash of a path. An index stores it for a file that the site leaves out, to keep the name secret."""
    # 80 bits are short in the manifest, and the hashes of a million paths all differ.
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:20]


# --- which files are documents: by globs, hidden folders, size and encoding -----------------------------

_UNWANTED_FOLDERS = frozenset({"node_modules"})
SUBMODULE = "a repository of its own (submodule); index it by itself"
BAD_NAME = "its name is not valid Unicode, or has control characters; rename it"

LINK_FOLDER = "a symlink to a folder; only links to files are followed"
LINK_PRIVATE = "a symlink to a file that no page may show: hidden, a key, or ignored by git"

_NEVER = frozenset({".git", INDEX_FOLDER})
_WILDCARDS = frozenset("*?[{\\")
_PAGES = f"**/*{{{','.join(PAGE_ENDINGS)}}}"
_LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\noid "
_AGENTS_POINTER = re.compile(
    rb"(?:<!-- anvil agents: (\S+) -->\r?\n(?:(?!<!-- )[^\n]*\n)*<!-- end of anvil agents: \1 -->\s*)+"
)
"""The text of a file that has only blocks of ``anvil agents``."""
POINTER_ALONE = "only the pointer of 'anvil agents', which is about the pages and no page itself"
"""The reason for skipping such a file. It is not reported: Anvil wrote the file, and nobody has to act."""
_FAILURES = ("not UTF-", "binary", "cannot be read", "the folder cannot be listed")


class Selection:
    """The rules of ``SourceOptions`` for names, compiled.

    - A file is a document if an ``include`` matches it, and no ``exclude`` matches it or one of its folders.
    - A folder without a wildcard means all pages in it. Globs ignore case.
    - Names that begin with a dot, and ``node_modules``, are excluded unless an ``include`` has them literally, such as
      ``.github/**/*.md``.
    - ``.git`` and ``.anvil`` are always excluded.
    """

    def __init__(self, options: SourceOptions) -> None:
        include = [p.rstrip("/") for p in options.include]
        include += [f"{p}/{_PAGES}" for p in include if p and _WILDCARDS.isdisjoint(p)]
        self._include = [(patterns.glob(p, ignore_case=True), _literal_names(p)) for p in include]
        # "drafts/" means the folder, and the paths that are compared have no slash at their end.
        self._exclude = [patterns.glob(p.rstrip("/") or p, ignore_case=True) for p in options.exclude]
        self._heads = [_head(p) for p in include]
        self._literal_names = frozenset[str]().union(*(names for _, names in self._include))
        self._folders: dict[str, frozenset[str] | None] = {"": frozenset()}  # a cache

    def enters(self, folder: str) -> bool:
        """Whether this folder can contain documents (relative, POSIX, ``""`` for the top)."""
        return self._hidden_names(folder) is not None

    def wants(self, path: str) -> bool:
        """Whether a file of this name is a document."""
        folder, _, name = path.rpartition("/")
        hidden = self._hidden_names(folder)
        if hidden is None or any(glob.matches(path) for glob in self._exclude):
            return False
        if _is_hidden(name):
            hidden |= {name.lower()}
        return any(glob.matches(path) and hidden <= names for glob, names in self._include)

    def _hidden_names(self, folder: str) -> frozenset[str] | None:
        """The hidden names in a folder's path, which an ``include`` must have; None if the folder has no documents."""
        if folder in self._folders:
            return self._folders[folder]
        above, _, name = folder.rpartition("/")
        hidden = self._hidden_names(above)
        names = folder.lower().split("/")
        # No ``include`` can match a file in other folders, so these are not listed.
        may_match = any(all(a == b for a, b in zip(head, names, strict=False)) for head in self._heads)
        if name in _NEVER or any(glob.matches(folder) for glob in self._exclude) or not may_match:
            hidden = None
        elif hidden is not None and _is_hidden(name):
            hidden = hidden | {name.lower()} if name.lower() in self._literal_names else None
        self._folders[folder] = hidden
        return hidden


class PageDecoder:
    """Makes text and documents of the bytes of files, by the options of a source.

    ``look`` reads the files that pages include. Without it, includes are not followed.
    """

    def __init__(self, options: SourceOptions, look: includes.Look | None = None) -> None:
        self._options = options
        self._look = look if options.includes else None

    def refusal(self, data: bytes) -> str | None:
        """Why these bytes are not a page; None for text within the limit."""
        limit = self._options.max_file_bytes
        if data.startswith(b"<!-- anvil agents: ") and _AGENTS_POINTER.fullmatch(data):
            return POINTER_ALONE
        return too_large(len(data), limit, self._options.limit_key) if len(data) > limit else _no_text(data)

    def text(self, data: bytes) -> str:
        """The text of bytes that :meth:`refusal` accepts, without a byte order mark."""
        return data.decode(marked_encoding(data)).removeprefix("\ufeff")

    def included(self, blob: str, data: bytes) -> includes.IncludedFile:
        """A file that a page includes. ``blob``: its id; empty if there is no such file."""
        is_text = blob and len(data) <= includes.MAX_FILE_BYTES and _no_text(data) is None
        return includes.IncludedFile(blob, self.text(data) if is_text else None)

    def document(self, path: str, blob: str, data: bytes) -> Document:
        """The page of bytes that :meth:`refusal` accepts, with the text that it includes."""
        text, size = self.text(data), len(data)
        if not includes.may_include(text):
            return Document(path, blob, text, size)
        if self._look is None:
            return Document(path, blob, text, size, fingerprint=includes.NOT_FOLLOWED)
        expanded = includes.expand(text, path, self._look)
        fingerprint = includes.fingerprint(expanded.files)
        inserted, missing = expanded.inserted, expanded.missing
        return Document(path, blob, expanded.text, size, fingerprint=fingerprint, inserted=inserted, missing=missing)


def _no_text(data: bytes) -> str | None:
    """Why these bytes are not text; None if they are."""
    if data.startswith(_LFS_POINTER):
        return "a pointer of Git LFS; run 'git lfs pull' to get its text"
    encoding = marked_encoding(data)
    if encoding == "UTF-8" and (at := data.find(b"\0")) >= 0:  # valid UTF-8, but no text has it
        return f"binary: it has a NUL byte at offset {at}"
    if data.isascii():  # faster than decoding
        return None
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return f"not {encoding}: byte 0x{data[error.start]:02x} in line {line}; save it as UTF-8"
    return "binary: it has a NUL character" if "\0" in text else None


def without_sources(entries: Mapping[str, str]) -> dict[str, str]:
    """The pages without those of Quarto and R Markdown from which another page was made, as ``README.md`` from
    ``README.Rmd``."""
    return {
        path: identity
        for path, identity in entries.items()
        if not path.lower().endswith((".qmd", ".rmd")) or f"{path[:-4]}.md" not in entries
    }


def is_failure(reason: str) -> bool:
    """Whether a file was skipped because of an error, not by a rule."""
    return reason == BAD_NAME or reason.startswith(_FAILURES)


def too_large(size: int, max_bytes: int, key: str) -> str:
    """The reason for a file over the limit that ``key`` sets."""
    return f"too large: {size:,} bytes, the limit is {max_bytes:,} ({key})"


def _is_hidden(name: str) -> bool:
    return name[:1] == "." or name.lower() in _UNWANTED_FOLDERS


def _literal_names(pattern: str) -> frozenset[str]:
    return frozenset(name.lower() for name in pattern.split("/") if _WILDCARDS.isdisjoint(name))


def _head(pattern: str) -> tuple[str, ...]:
    """The folders of a pattern before its first wildcard."""
    folders = [name for name in pattern.lower().split("/")[:-1] if name not in ("", ".")]
    return tuple(itertools.takewhile(_WILDCARDS.isdisjoint, folders))
