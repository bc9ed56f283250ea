"""Names of versions: which names are those of documentation, which of some is the newest, and which tags mark a version
of a package, such as ``v1.2.0`` and ``@acme/ui@1.2.0``."""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Iterable
from itertools import islice, zip_longest

from anvil.formats.patterns import lazy_pattern

ALIASES = {"latest": 2, "current": 2, "stable": 3}
"""Names that publishers give to their newest version -> their rank above all numbers. On Read the Docs, "latest" is the
main branch, so "stable" goes before it."""
PRERELEASE = re.compile(
    r"(?:^|[^a-z])(?:a|b|c|rc|alpha|beta|pre|preview|dev|next|canary)\b|\d(?:a|b|rc)\d", re.IGNORECASE
)


def newest(versions: Iterable[str]) -> str:
    """The newest of some versions. A release is newer than any pre-release; ``stable`` and ``latest`` are newer than
    all numbers; names without a number are older."""
    return max(versions, key=version_order)


def version_order(version: str) -> tuple[int, bool, list[tuple[float, str]]]:
    """The sort key of that order."""
    parts = re.findall(r"\d{1,18}|[a-z]+", version.lower().removeprefix("v"))
    has_number = any(part.isdigit() for part in parts)
    # 1.10 is after 1.9, and 1.x the newest of them. A number is never compared with letters, which would be an error.
    natural = [(float(part), "") if part.isdigit() else (math.inf if part == "x" else -1.0, part) for part in parts]
    return ALIASES.get(version.lower(), int(has_number)), not PRERELEASE.search(version), natural


VERSION_NUMBER = lazy_pattern(
    r"v\d+(?:\.(?:\d+|x))*(?:[-.]?(?:a|b|rc|alpha|beta|dev|pre|post)\.?\d*)?|"
    r"\d+(?:\.(?:\d+|x))+(?:[-.]?(?:a|b|rc|alpha|beta|dev|pre|post)\.?\d*)?",
    re.I,
)
"""The name of a folder with a version of the documentation: ``v2``, ``1.x``, ``1.2rc1``."""
VERSION_NAMES = frozenset({"latest", "stable", "dev", "main", "master", "next", "nightly", "current", "canary", "edge"})
"""Names of such folders, where others are numbers."""


# --- tags ------------------------------------------------------------------------------------------------

_TAGS = (
    *("v{}", "{}"),
    *(f"{{name}}{between}{{}}" for between in ("@", "@v", "-", "-v", "/", "/v", "==", "_")),
    *("release-{}", "release/{}", "release_{}", "rel_{}", "rel-{}", "r{}", "V{}", "version-{}"),
)
"""The forms of tags, most usual first."""


def _tag_names(name: str, version: str) -> list[str]:
    """The tags that can mark this version of the package, most usual first."""
    short = name.rpartition("/")[2]  # @scope/pkg
    names = [name, short, name.replace("-", "_"), name.replace("-", ".")]
    # some projects tag 1.2.0 as 1.2
    versions = [version, *([version.removesuffix(".0")] if re.fullmatch(r"\d+\.\d+\.0", version) else [])]
    versions += [each.replace(".", "_") for each in versions]
    return list(dict.fromkeys(tag.format(each, name=own) for each in versions for tag in _TAGS for own in names))


def find_tag(tags: Iterable[str], name: str, version: str) -> str | None:
    """The tag of this version; None without one. A tag with the package's own name comes first, because a repository
    of several packages has one such tag for each."""
    existing = set(tags)
    matching = [tag for tag in _tag_names(name, version) if tag in existing]
    short = name.rpartition("/")[2]
    own = [tag for tag in matching if tag.startswith((name, short, short.replace("-", "_")))]
    return next(iter(own or matching), None)


def closest_tags(tags: Iterable[str], name: str, version: str, limit: int) -> list[str]:
    """The tags whose numbers are nearest to those of the version, nearest first. A repository may have many long tags:
    the time grows with their length only, which it does not where texts are compared."""
    short, wanted = name.rpartition("/")[2], _numbers(version)

    def distance(tag: str) -> tuple[list[int], bool, str]:
        pairs = zip_longest(_numbers(tag.replace(short, "")), wanted, fillvalue=0)
        return [abs(here - there) for here, there in pairs], short not in tag, tag

    return heapq.nsmallest(limit, tags, distance)


def _numbers(text: str) -> list[int]:
    """The first numbers in a text."""
    return [int(match[0]) for match in islice(re.finditer(r"\d{1,12}", text), 6)]
