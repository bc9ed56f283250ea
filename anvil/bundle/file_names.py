"""The file of each page in a bundle: names that every file system takes, and one file for one page.

Packages are installed on all systems: one name that Windows does not take makes the whole package fail there.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
import unicodedata
from collections.abc import Iterable

MAX_NAME_BYTES = 120
"""UTF-8 bytes of a file or folder. File systems take 255, and paths of Windows have 260 characters in all."""
_REFUSED = re.compile(r'[<>:"|?*\\\x00-\x1f\x7f-\x9f\ud800-\udfff]')
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?=\.|$)", re.IGNORECASE)
_ENDING = re.compile(r"\.(?:mdx?|markdown|html?|rst|txt|ipynb|qmd|adoc)$", re.IGNORECASE)


def page_files(paths: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Path of a page -> that of its Markdown file; and a sentence on each page whose file has another name than it.

    ``guide/a.mdx`` is ``guide/a.md``. Of two pages that would have one file, also on a system that takes upper and
    lower case for the same, the second keeps its ending, ``a.mdx.md``, or gets a number.
    """
    files: dict[str, str] = {}
    taken: dict[str, str] = {}
    notes: dict[str, str] = {}
    for path in sorted(paths, key=lambda path: (not path.lower().endswith(".md"), path)):  # plain Markdown comes first
        stem = _ENDING.sub("", path) or path
        usual = _portable(f"{stem}.md")
        names = [usual, _portable(f"{path}.md"), *(_portable(f"{stem}-{number}.md") for number in range(2, 1000))]
        name = next(name for name in names if _same(name) not in taken)
        if name != usual:
            notes[path] = f"{_shown(path)} is {name} in the bundle, because {_shown(taken[_same(usual)])} is {usual}."
        elif name != f"{stem}.md":
            notes[path] = f"{_shown(path)} is {name} in the bundle, because not every system takes its name."
        taken[_same(name)] = path
        files[path] = name
    return dict(sorted(files.items())), dict(sorted(notes.items()))


def _same(name: str) -> str:
    """What names have in common that are one file on some system."""
    return unicodedata.normalize("NFC", name).casefold()


def _portable(path: str) -> str:
    return posixpath.join(*map(_portable_name, path.split("/")))


def _portable_name(name: str) -> str:
    portable = _REFUSED.sub("-", name).rstrip(" .") or "-"
    portable = "".join(character if character.isprintable() else "-" for character in portable)
    portable = _DEVICE.sub(lambda device: f"{device[0]}-", portable, count=1) if _DEVICE.match(portable) else portable
    if len(portable.encode()) <= MAX_NAME_BYTES:
        return portable
    stem, ending = posixpath.splitext(portable)
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    ending = ending if ending == ".md" else ""
    kept = stem.encode()[: MAX_NAME_BYTES - len(mark) - 1 - len(ending)].decode("utf-8", "ignore")
    return f"{kept}-{mark}{ending}"


def _shown(path: str) -> str:
    shown = path if path.isprintable() else ascii(path)[1:-1]
    return shown if len(shown) <= 160 else f"{shown[:160]}…"
