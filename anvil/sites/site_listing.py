"""The files of a built site, before they are read: which are pages, and which say something about pages."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from anvil.documents.stat_cache import Signature, is_stable, signature, written_back
from anvil.errors import SourceError
from anvil.sites import page_addresses
from anvil.sites.page_cache import KnownFile
from anvil.values import Skipped

ENDINGS = (".html", ".htm", ".xhtml")
INVENTORY = "objects.inv"


@dataclass(frozen=True)
class SiteListing:
    """The files of a site: path -> signature; and what is left out before it is read. ``young``: files that were
    changed so shortly before that their signature does not tell their content. ``fresh``: those of them, and others,
    whose content may change through mapped memory without a change of their signature."""

    html: dict[str, Signature]
    others: dict[str, Signature]
    left_out: tuple[Skipped, ...]
    young: frozenset[str]
    fresh: frozenset[str]

    def is_same(self, other: SiteListing | None) -> bool:
        """Whether both have the same files."""
        mine = self.html, self.others, self.left_out
        return other is not None and mine == (other.html, other.others, other.left_out)

    @cached_property
    def twins(self) -> Mapping[str, str]:
        """HTML file -> the Markdown with the same address: ``guide.md`` or ``guide.html.md`` of ``guide.html``, and
        ``guide.md`` or ``guide/index.md`` of ``guide/index.html``. Sites with a ``llms.txt`` have it there."""
        by_address: dict[str, list[str]] = {}
        for path in self.others:
            if path.endswith(".md"):
                by_address.setdefault(page_addresses.key(path.removesuffix(".md")), []).append(path)
        if not by_address:
            return {}
        twins = {}
        for path in self.html:
            candidates = by_address.get(page_addresses.key(path), ())
            beside = path.rpartition(".")[0] + ".md"
            if candidates:
                twins[path] = beside if beside in candidates else min(candidates)
        return twins

    def is_current(self, file: KnownFile, path: str) -> bool:
        """Whether a file and its Markdown are those that were read, by their signatures."""
        used = next((each for each in file.linked if each in self.others), self.twins.get(path))
        signature = None if used is None else self.others[used]
        return (file.signature, file.twin, file.twin_signature) == (self.html[path], used, signature) and (
            path not in self.young and used not in self.young
        )

    def lasting(self, files: Mapping[str, KnownFile]) -> dict[str, KnownFile]:
        """The files without those whose signature does not tell their content for good."""
        return {path: file for path, file in files.items() if path not in self.fresh and file.twin not in self.fresh}


def list_site(folder: Path, max_page_bytes: int) -> SiteListing:
    """The files of the site in a folder. Raises :class:`SourceError` for one without pages."""
    html: dict[str, Signature] = {}
    others: dict[str, Signature] = {}
    left_out: list[Skipped] = []
    young: set[str] = set()
    fresh: set[str] = set()
    began_ns = time.time_ns()
    for path, entry in _files(folder):
        if entry.is_symlink():
            if path.lower().endswith(ENDINGS) or entry.is_dir():
                left_out.append(Skipped(path, "it is a link to another file or folder"))
            continue
        if not path.isprintable() or not _is_utf8(path):
            left_out.append(Skipped(ascii(path)[1:-1], "its name has characters that cannot be shown"))
            continue
        is_html = path.lower().endswith(ENDINGS)
        if not is_html and not _is_about_pages(path):
            continue
        try:
            state = entry.stat(follow_symlinks=False)
        except OSError:
            continue  # deleted since it was listed; the next listing tells
        if not stat.S_ISREG(state.st_mode):
            if is_html:
                left_out.append(Skipped(path, "it is not a regular file"))
            continue
        if is_html and state.st_size > max_page_bytes:
            left_out.append(Skipped(path, f"it is larger than {max_page_bytes:,} bytes (source.max_file_bytes)"))
            continue
        (html if is_html else others)[path] = signature(state)
        if written_back(state) >= began_ns:
            fresh.add(path)
            if not is_stable(state, began_ns):
                young.add(path)
    if not html:
        raise SourceError(
            f"{folder} has no HTML page. Build the site first, and name the folder that the generator writes, "
            "such as site, build, public or _build/html."
        )
    return SiteListing(html, others, tuple(left_out), frozenset(young), frozenset(fresh))


def _files(folder: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """The files under a folder, and links, by path. Folders with a dot in front are left out."""
    waiting = [(str(folder), "")]
    while waiting:
        real, above = waiting.pop()
        try:
            with os.scandir(real) as items:
                found = list(items)
        except OSError:
            continue  # deleted since it was listed
        for entry in found:
            path = f"{above}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                if not entry.name.startswith("."):
                    waiting.append((entry.path, f"{path}/"))
            else:
                yield path, entry


def _is_about_pages(path: str) -> bool:
    name = path.rpartition("/")[2]
    return (
        (name.startswith("sitemap") and name.endswith(".xml"))
        or path == "versions.json"
        or name == INVENTORY
        or path.startswith("_sources/")
        or name.endswith(".md")
    )


def _is_utf8(path: str) -> bool:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
