"""What a change as a whole says about whether any page is concerned: its title, its files, its names, its history.

Most changes of code concern no page. The evidence for a page does not tell them apart: a fix touches the same files and
names as a new option does. The title does, in the words that people use for the one and for the other.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from anvil.impact.names import Name, is_public_gone
from anvil.impact.values import ChangeFeature, Evidence, EvidenceKind

MAX_WORDS = 3
"""Words of one sort in a title that count."""

_NEW = frozenset(
    """
    add adds added adding allow allows api change changed change command config configurable configuration configure
    customize default defaults deprecate deprecated deprecates drop enable enables experimental expose exposes feat
    feature flag flags implement implemented implements introduce introduces new opt option options param parameter
    rename renames require setting settings support supports variable
    """.split()  # noqa: SIM905 - a list of quoted words is not read
)
"""Words of titles of changes that users notice."""
_FIX = frozenset(
    """
    avoid avoids broken bug correct correctly crash ensure error errors failing fix fixed fixes handle handling if
    incorrect incorrectly invalid issue keep leak missing only panic preserve prevent properly race regression resolve
    respect when wrong
    """.split()  # noqa: SIM905
)
"""Words of titles of fixes: the pages already say what the code now does."""
_INTERNAL = frozenset(
    """
    build chore ci clean cleanup code comment comments duplicate extract faster flaky improve internal log logging logs
    minor move moves nit optimize perf performance refactor refactoring reuse separate simplify speed split switch test
    testing tests types typing typo unnecessary unused use
    """.split()  # noqa: SIM905
)
"""Words of titles of changes that users do not notice."""
_TYPES: Mapping[str, ChangeFeature] = {
    **dict.fromkeys(("feat", "feature"), "first word new"),
    "fix": "first word fix",
    **dict.fromkeys(("refactor", "test", "tests", "perf", "ci", "chore", "build", "style"), "first word internal"),
}
"""Types of conventional commits."""
_SCOPE = re.compile(r"\s*(?P<type>[\w./@-]+)(?:\([^)]*\))?(?P<breaking>!?):\s*(?P<rest>.*)", re.S)
_SURFACE = re.compile(r"(?i)(?:schema|config|option|setting|flag|arg|cli|cmd|command|env)")
"""Words in the paths of files that users meet."""


def of_title(title: str) -> dict[ChangeFeature, float]:
    """The features of a title; none of an empty one."""
    text = re.sub(r"\(#\d+\)", "", title)
    scope = _SCOPE.fullmatch(text)
    all_words = re.findall(r"[a-z]+", text.lower())
    body = re.findall(r"[a-z]+", scope["rest"].lower()) if scope else all_words
    if not all_words:
        return {}
    words, first = set(all_words), body[0] if body else ""
    found: dict[ChangeFeature, float] = {
        "has title": 1.0,
        "words new": float(min(MAX_WORDS, len(words & _NEW))),
        "words fix": float(min(MAX_WORDS, len(words & _FIX))),
        "words internal": float(min(MAX_WORDS, len(words & _INTERNAL))),
        "breaking": float(bool(scope and scope["breaking"])),
        "marked name": float("--" in title or "`" in title),
    }
    sorts: tuple[tuple[ChangeFeature, frozenset[str]], ...] = (
        ("first word new", _NEW),
        ("first word fix", _FIX),
        ("first word internal", _INTERNAL),
    )
    kind = _TYPES.get(scope["type"].lower()) if scope else None
    for feature, sort in sorts:
        found[feature] = float(first in sort or kind == feature)
    return found


def of_files(code: Sequence[tuple[str, bool]], tests: int) -> dict[ChangeFeature, float]:
    """The features of the changed files. ``code``: path of each file of code, and whether it is new. ``tests``: number
    of changed files of tests."""
    return {
        "files": math.log1p(len(code)),
        "new files": math.log1p(sum(is_new for _, is_new in code)),
        "tests": tests / (tests + len(code)) if code else 0.0,
        "surface files": float(any(_SURFACE.search(path) for path, _ in code)),
    }


def of_names(names: Sequence[Name]) -> dict[ChangeFeature, float]:
    """The features of the names in the changed lines."""
    return {
        "public name changed": float(any(is_public_gone(name) for name in names)),
        "new words in code": math.log1p(sum(name.is_new and name.kind == "word" for name in names)),
    }


def of_evidence(evidence: Iterable[Evidence]) -> dict[ChangeFeature, float]:
    """The features of the pages' evidence: the strongest joint change."""
    joint = [each.strength for each in evidence if each.feature == "joint change"]
    return {"strongest joint change": max(joint, default=0.0)}


KIND_OF_CHANGE: Mapping[ChangeFeature, EvidenceKind] = {
    "has title": "title",
    "words new": "title",
    "words fix": "title",
    "words internal": "title",
    "first word new": "title",
    "first word fix": "title",
    "first word internal": "title",
    "breaking": "title",
    "marked name": "title",
    "files": "paths",
    "new files": "paths",
    "tests": "paths",
    "surface files": "paths",
    "public name changed": "names",
    "new words in code": "names",
    "strongest joint change": "co-change",
}
"""The kind of evidence that each feature of a change is of."""
