"""Tags of a repository that mark a version of a package, such as ``v1.2.0`` and ``@acme/ui@1.2.0``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

MAX_NAMED = 3
"""Tags that an error names."""
_TAGS = (
    *("v{}", "{}"),
    *(f"{{name}}{between}{{}}" for between in ("@", "@v", "-", "-v", "/", "/v", "==", "_")),
    *("release-{}", "release/{}", "release_{}", "rel_{}", "rel-{}", "r{}", "V{}", "version-{}"),
)
"""The forms of tags, most usual first."""


def candidates(name: str, version: str) -> list[str]:
    """The tags that can mark this version of the package, most usual first."""
    short = name.rpartition("/")[2]  # @scope/pkg
    names = [name, short, name.replace("-", "_"), name.replace("-", ".")]
    # some projects tag 1.2.0 as 1.2
    versions = [version, *([version.removesuffix(".0")] if re.fullmatch(r"\d+\.\d+\.0", version) else [])]
    versions += [each.replace(".", "_") for each in versions]
    return list(dict.fromkeys(tag.format(each, name=own) for each in versions for tag in _TAGS for own in names))


def find(tags: Iterable[str], name: str, version: str) -> str | None:
    """The tag of this version; None without one. A tag with the package's own name comes first, because a repository
    of several packages has one such tag for each."""
    existing = set(tags)
    matching = [tag for tag in candidates(name, version) if tag in existing]
    short = name.rpartition("/")[2]
    own = [tag for tag in matching if tag.startswith((name, short, short.replace("-", "_")))]
    return next(iter(own or matching), None)


def closest(tags: Sequence[str], name: str, version: str) -> list[str]:
    """The tags whose numbers are nearest to the version's, nearest first; for an error."""
    wanted = _numbers(version)
    short = name.rpartition("/")[2]

    def distance(tag: str) -> tuple[object, ...]:
        numbers = _numbers(re.sub(re.escape(short), "", tag, flags=re.IGNORECASE))
        width = max(len(numbers), len(wanted))
        here, there = (each + (0,) * (width - len(each)) for each in (numbers, wanted))
        first = next((at for at, pair in enumerate(zip(here, there, strict=True)) if pair[0] != pair[1]), width)
        gap = abs(here[first] - there[first]) if first < width else 0
        return -first, gap, short.lower() not in tag.lower(), len(tag), tag

    return sorted((tag for tag in tags if re.search(r"\d", tag)), key=distance)[:MAX_NAMED]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d{1,12}", text))[:6]
