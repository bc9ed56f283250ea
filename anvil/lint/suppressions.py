"""Comments in pages that silence rules: ``anvil-lint-disable``, ``-enable`` and ``-disable-next-line``."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import NamedTuple, get_args

from anvil.lint.linted_page import LintPage
from anvil.lint.values import RuleName

RULES: tuple[RuleName, ...] = get_args(RuleName)


class Silence(NamedTuple):
    """Lines of a file, both inclusive, in which a rule is silent; ``last`` None: to the end of the page."""

    first: int
    last: int | None
    rule: str

    def __contains__(self, line: object) -> bool:
        return isinstance(line, int) and self.first <= line and (self.last is None or line <= self.last)


def silences(page: LintPage) -> list[Silence]:
    """The rules that the comments of a page silence, with the lines of its file."""
    spans: list[Silence] = []
    opened: dict[str, int] = {}
    for directive in page.references.directives:
        line = page.source_line(directive.line)
        if line is None:
            continue
        rules = [rule for rule in directive.rules if rule in RULES] if directive.rules else list(RULES)
        for rule in rules:
            if directive.action == "disable":
                opened.setdefault(rule, line)
            elif directive.action == "enable" and rule in opened:
                spans.append(Silence(opened.pop(rule), line, rule))
            elif directive.action == "disable-next-line":
                spans.append(Silence(line, line + 1, rule))
    return spans + [Silence(line, None, rule) for rule, line in opened.items()]


def unknown(page: LintPage) -> Iterator[tuple[int, str]]:
    """(line of the text, message) of each comment that names no rule or no action."""
    for directive in page.references.directives:
        if directive.action not in ("disable", "enable", "disable-next-line"):
            actions = "anvil-lint-disable, anvil-lint-enable or anvil-lint-disable-next-line"
            yield directive.line, f"'anvil-lint-{directive.action}' does nothing. Use {actions}."
            continue
        for name in directive.rules:
            if name not in RULES:
                yield directive.line, f"There is no rule {name!r}. {closest(name)}"


def closest(name: str) -> str:
    """A sentence for a rule that does not exist: the closest name, or all names."""
    near = difflib.get_close_matches(name, RULES, n=1, cutoff=0.5)
    return f"Did you mean {near[0]!r}?" if near else f"The rules: {', '.join(RULES)}."
