"""Counts with singular or plural nouns, and sentences that several modules use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from anvil.values import ROOT, SEPARATOR

_ONE = {"are": "is", "have": "has", "were": "was", "could": "could"}
"""Verbs whose singular is not the plural with an ``s``."""


def counted(number: int, noun: str, verb: str = "") -> str:
    """``1 page``, ``1,200 pages``; with the verb ``differ``: ``1 page differs``, ``2 pages differ``."""
    phrase = f"{number:,} {noun}{'s' * (number != 1)}"
    if verb:
        phrase += f" {_ONE.get(verb, f'{verb}s') if number == 1 else verb}"
    return phrase


def listed(names: Sequence[str], joined: str = "and") -> str:
    """``a``; ``a and b``; ``a, b and c``."""
    return f" {joined} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def first_of(names: Sequence[str], most: int) -> str:
    """The first ``most`` names, and how many others there are: ``a, b and 3 more``."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def size(count: int) -> str:
    """Bytes for people: ``812 B``, ``9.4 kB``, ``2.1 MB``, ``1.2 GB``."""
    for unit, bytes_ in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= bytes_ - bytes_ // 20_000:  # a little less is rounded up to one of the unit
            return f"{count / bytes_:.1f} {unit}"
    return f"{count} B"


_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,15})?) ?([kMG]?)B?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000}


def bytes_of(text: str) -> int | None:
    """The number of bytes in a text such as ``812``, ``9.4 kB`` or ``2MB``; None for another text."""
    match = _SIZE.fullmatch(text.strip())
    return None if match is None else int(float(match[1]) * _UNITS[match[2].lower()])


def full_heading(title: str, heading_path: str) -> str:
    """A section for people: ``Title > A > B``.

    Text before the first heading has the title alone. A breadcrumb that begins with the title does not repeat it.
    """
    title, heading_path = " ".join(title.split()), " ".join(heading_path.split())
    if heading_path == ROOT or heading_path.startswith(f"{ROOT} [part "):
        return title + heading_path.removeprefix(ROOT)
    if not title or f"{heading_path}{SEPARATOR}".startswith((title + SEPARATOR, f"{title} [part ")):
        return heading_path
    return f"{title}{SEPARATOR}{heading_path}"


MAX_TYPED = 500
"""Characters of a typed name or path that are compared: the time grows with them, and few names are longer."""


def closest_names(typed: str, names: Iterable[str], limit: int = 1, cutoff: float = 0.6) -> list[str]:
    """Up to ``limit`` names that are spelled like the typed one, the nearest first, for "Did you mean ...?".

    ``cutoff``: the least similarity, 0..1, as :func:`difflib.get_close_matches` has it.
    """
    import difflib  # most starts need no such message

    return difflib.get_close_matches(typed[:MAX_TYPED], list(names), n=limit, cutoff=cutoff)


def closest_note(names: Sequence[str], joined: str = ", ") -> str:
    """A sentence behind a message, with a space before it: the names that are closest. Empty without names."""
    return f" Closest: {joined.join(names)}." if names else ""


def file_name(path: str) -> str:
    """The last part of a path, or of an address such as ``fastapi:guide/a.md``."""
    return path.replace(":", "/").rpartition("/")[2]


_ENDING = re.compile(r"\.[a-z]+$")


def closest_paths(typed: str, paths: Iterable[str], first: Sequence[str] = (), *, limit: int = 3) -> list[str]:
    """``first``, then paths with the same file name, then those that are spelled alike. Case does not count."""
    typed = typed[:MAX_TYPED].casefold()
    folded: dict[str, list[str]] = {}
    for path in paths:
        folded.setdefault(path.casefold(), []).append(path)
    # A right name in a wrong folder is the usual mistake. By spelling alone, other pages of that folder may be nearer.
    same_name = [path for path in folded if file_name(path) == file_name(typed)]
    bare_name = [path for path in folded if file_name(path).rpartition(".")[0] == file_name(typed)]
    # Compared without collection and ending: to share these makes no page like the typed one.
    by_bare_path: dict[str, list[str]] = {}
    for path in folded:
        by_bare_path.setdefault(_ENDING.sub("", path.rpartition(":")[2]), []).append(path)
    closest = closest_names(_ENDING.sub("", typed), by_bare_path, limit, 0.5)
    alike = [path for bare_path in closest for path in by_bare_path[bare_path]]
    near = [path for key in (*same_name, *bare_name, *alike) for path in folded[key]]
    return list(dict.fromkeys((*first, *near)))[:limit]


MAX_SHOWN_CHARS = 500


def shown(name: str, most: int = MAX_SHOWN_CHARS) -> str:
    """A name or text as a message repeats it: cut after ``most`` characters."""
    return name if len(name) <= most else name[:most] + "…"
