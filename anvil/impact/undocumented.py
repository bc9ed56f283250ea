"""Public names that a change adds and no page has: flags, settings, environment variables and routes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from anvil.impact import evidence
from anvil.impact import names as naming
from anvil.impact.documentation import Documentation
from anvil.impact.names import Name, NameKind
from anvil.impact.values import AdditionKind, Undocumented

MAX_ADDITIONS = 50
"""Additions that are named."""
CALLED: dict[NameKind, AdditionKind] = {
    "flag": "flag",
    "variable": "variable",
    "route": "route",
    "setting": "setting",
}
"""Kinds of public names -> what they are called."""


def additions(names: Iterable[Name], docs: Documentation, added_prose: str = "") -> Iterator[Undocumented]:
    """The new public names that no page has, by file and line. ``added_prose``: the lines that the same change adds to
    pages and other texts, which the index may not have yet."""
    new = [name for name in names if name.is_new and naming.is_public(name)]
    found = [name for name in new if not _is_known(name, docs, added_prose)]
    for name in sorted(found, key=lambda name: (name.path, name.line, name.text))[:MAX_ADDITIONS]:
        yield Undocumented(CALLED[name.kind], name.text, name.path, name.line)


def _is_known(name: Name, docs: Documentation, added_prose: str) -> bool:
    if re.search(rf"(?<![\w-]){re.escape(name.text)}(?![\w-])", added_prose):
        return True
    matches = evidence.find(name.text, docs, anything=True)
    return matches is None or any(match.degree >= evidence.RESPELLED for match in matches)
