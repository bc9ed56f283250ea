"""The folder of a bundle: names of its files, its manifest, and writing changes without touching other files.

The manifest has the paths and digests of the bundle's files. A file with another digest is not the bundle's own: it is
neither overwritten nor removed. No link is followed below the folder.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import posixpath
import re
import stat
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anvil._version import __version__
from anvil.bundle.agents_md import BundledProject
from anvil.errors import BuildError
from anvil.formats.characters import plain_name
from anvil.formats.data_formats import canonical
from anvil.sites import page_addresses
from anvil.system import safe_files
from anvil.values import PAGE_ENDING, Progress, silent

MANIFEST = "docs/anvil-bundle.json"
FORMAT = 1
MAX_MANIFEST_BYTES = 20_000_000


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle in memory. ``files``: path from the bundle's folder -> content. ``pages``: the number of pages among
    them. ``notes``: for people, on what differs from the documentation."""

    project: BundledProject
    files: Mapping[str, bytes]
    pages: int
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(map(len, self.files.values()))


@dataclass(frozen=True, slots=True)
class Written:
    """The result of writing a bundle, with paths from its folder. ``kept``: path -> why not written or removed."""

    written: tuple[str, ...] = ()
    unchanged: int = 0
    removed: tuple[str, ...] = ()
    kept: Mapping[str, str] = field(default_factory=dict)


def manifest_text(bundle: Bundle, before: Mapping[str, str] | None = None) -> str:
    """The manifest as canonical JSON. ``before``: path -> former digest of the files that are being changed."""
    rows = [{"path": path, "sha256": _digest(data), "size": len(data)} for path, data in sorted(bundle.files.items())]
    values: dict[str, Any] = {
        "anvil_version": __version__,
        "files": rows,
        "format": FORMAT,
        "name": bundle.project.name,
        "pages": bundle.pages,
        "version": bundle.project.version,
    }
    return canonical({**values, "before": before} if before else values) + "\n"


def write(out: Path, bundle: Bundle, progress: Progress = silent) -> Written:
    """Write the changes of a bundle into the folder ``out``, and remove files that it does not have any more.

    Files that are not the bundle's own are kept, see the top of this module. Raises :class:`BuildError` if the folder
    cannot be written, or if there is a link or a file in place of a folder; then nothing is written.
    """
    own = _own(out)
    _ensure_plain_folders(out, {*bundle.files, *own, MANIFEST})
    kept: dict[str, str] = {}
    waiting: dict[str, bytes] = {}
    gone = []
    for path in sorted({*bundle.files, *own}):
        wanted = bundle.files.get(path)
        try:
            digest = safe_files.digest(out / path)
        except (OSError, BuildError) as error:
            kept[path] = safe_files.reason(error).rstrip(".")
            continue
        if digest == (None if wanted is None else _digest(wanted)):
            continue
        if digest is not None and digest not in own.get(path, ()):
            kept[path] = "it was changed since" if path in own else "somebody else put it there"
        elif wanted is None:
            gone.append(path)
        else:
            waiting[path] = wanted
    with safe_files.writing(out):
        (out / MANIFEST).parent.mkdir(parents=True, exist_ok=True)
        # The manifest goes first, with the digests of the old files too: if this write is interrupted, the next one
        # still knows each file that is there as the bundle's own.
        if waiting or gone:
            changed = {path: digest for path in (*waiting, *gone) for digest in own.get(path, ())}
            safe_files.write_file(out / MANIFEST, manifest_text(bundle, changed), flush=False)
        for done, (path, data) in enumerate(waiting.items()):
            progress("writing files", done, len(waiting))
            safe_files.put_file(out / path, data, flush=False)
        for path in gone:
            (out / path).unlink()
            for folder in (out / path).parents:  # remove folders that are empty now
                if folder == out or os.listdir(folder):
                    break
                folder.rmdir()
        safe_files.update_file(out / MANIFEST, manifest_text(bundle).encode(), flush=False)
    unchanged = len(bundle.files) - len(waiting) - sum(path in bundle.files for path in kept)
    return Written(tuple(sorted(waiting)), unchanged, tuple(gone), dict(sorted(kept.items())))


def _own(out: Path) -> dict[str, set[str]]:
    """Path -> digests that the bundle's own file may have, from the manifest; empty without one.

    Raises :class:`BuildError` if there is another file in its place.
    """
    path = out / MANIFEST
    try:
        values = json.loads(safe_files.text(path, MAX_MANIFEST_BYTES))
        rows = [(row["path"], row["sha256"]) for row in values["files"]] + list(values.get("before", {}).items())
        are_texts = all(isinstance(name, str) and isinstance(digest, str) for name, digest in rows)
        are_files = are_texts and all(name.isprintable() and page_addresses.is_file(name) for name, _ in rows)
        if values["format"] != FORMAT or not are_files:
            raise ValueError
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise BuildError(f"{path} cannot be read: {safe_files.reason(error)}.") from None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise BuildError(
            f"{path} is not a manifest of a bundle that this Anvil can read. Remove it, or name another folder."
        ) from None
    own: dict[str, set[str]] = {}
    for name, digest in rows:
        own.setdefault(name, set()).add(digest)
    return own


def _ensure_plain_folders(out: Path, paths: set[str]) -> None:
    """Raise :class:`BuildError` if a folder below ``out`` is a link or a file."""
    folders = {path.rsplit("/", depth)[0] for path in paths for depth in range(1, path.count("/") + 1)}
    for folder in sorted(folders):
        with suppress(FileNotFoundError, NotADirectoryError):
            mode = os.lstat(out / folder).st_mode
            if not stat.S_ISDIR(mode):
                kind = "a link" if stat.S_ISLNK(mode) else "not a folder"
                raise BuildError(f"{out / folder} is {kind}, so nothing is written there. Remove it, and try again.")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


MAX_NAME_BYTES = 120
"""UTF-8 bytes of the name of a file or folder. File systems allow 255, and Windows 260 characters for a whole path."""
_REFUSED = re.compile(r'[<>:"|?*\\\x00-\x1f\x7f-\x9f\ud800-\udfff]')
# names of devices on Windows, with any ending
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?=\.|$)", re.IGNORECASE)
_ENDING = re.compile(rf"(?:{PAGE_ENDING}|\.(?:html?|rst|txt|ipynb|adoc))$", re.IGNORECASE)


def page_files(paths: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Path of a page -> path of its Markdown file; and path of a page -> a note, if its file has an unexpected name.

    ``guide/a.mdx`` becomes ``guide/a.md``. If two pages would have the same file, also on a system that ignores case,
    the second one keeps its ending, ``a.mdx.md``, or gets a number.
    """
    files: dict[str, str] = {}
    taken: dict[str, str] = {}
    notes: dict[str, str] = {}
    numbers: defaultdict[str, Iterator[int]] = defaultdict(lambda: itertools.count(2))
    for path in sorted(paths, key=lambda path: (not path.lower().endswith(".md"), path)):  # plain Markdown comes first
        stem = _ENDING.sub("", path) or path
        usual = _portable(f"{stem}.md")
        others = (_portable(f"{stem}-{number}.md") for number in numbers[_folded(usual)])
        names = itertools.chain([usual, _portable(f"{path}.md")], others)
        name = next(name for name in names if _folded(name) not in taken)
        if name != usual:
            owner = plain_name(taken[_folded(usual)])
            notes[path] = f"{plain_name(path)} is {name} in the bundle, because {owner} is {usual}."
        elif name != f"{stem}.md":
            notes[path] = f"{plain_name(path)} is {name} in the bundle, because some systems refuse its name."
        taken[_folded(name)] = path
        files[path] = name
    return dict(sorted(files.items())), dict(sorted(notes.items()))


def _folded(name: str) -> str:
    """The name without differences of case and of Unicode form, which some file systems ignore."""
    return unicodedata.normalize("NFC", name).casefold()


def _portable(path: str) -> str:
    return posixpath.join(*map(_portable_name, path.split("/")))


def _portable_name(name: str) -> str:
    portable = _REFUSED.sub("-", name).rstrip(" .") or "-"  # Windows drops spaces and dots at the end of a name
    portable = "".join(character if character.isprintable() else "-" for character in portable)
    portable = _DEVICE.sub(lambda device: f"{device[0]}-", portable, count=1) if _DEVICE.match(portable) else portable
    if len(portable.encode()) <= MAX_NAME_BYTES:
        return portable
    stem, ending = posixpath.splitext(portable)
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    ending = ending if ending == ".md" else ""
    kept = stem.encode()[: MAX_NAME_BYTES - len(mark) - 1 - len(ending)].decode("utf-8", "ignore")
    return f"{kept}-{mark}{ending}"
