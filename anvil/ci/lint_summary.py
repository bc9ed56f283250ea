"""The findings of the linter in a CI job: a section of the summary, and which of them get an annotation."""

from __future__ import annotations

from collections import Counter

from anvil.ci.summary import code, folded, linked, listed
from anvil.lint.values import LEVELS, LintFinding, LintReport
from anvil.wording import counted


def headline(report: LintReport) -> str:
    """The result in one sentence."""
    counts = Counter(finding.level for finding in report.findings)
    found = [counted(counts[level], level) for level in reversed(LEVELS) if counts[level]]
    return f"{', '.join(found) or 'nothing found'} in {counted(report.pages, 'page')}"


def annotated(report: LintReport, most: int) -> list[LintFinding]:
    """At most ``most`` findings of each level but the lowest: GitHub shows no more of a step."""
    chosen: list[LintFinding] = []
    for level in reversed(LEVELS[1:]):
        chosen += [finding for finding in report.findings if finding.level == level][:most]
    return chosen


def render(report: LintReport, pages_url: str | None) -> str:
    """A section for the summary, in Markdown. ``pages_url``: the address of the pages' folder, with a slash at its end,
    None where they cannot be read."""
    parts = [f"## Lint: {headline(report)}"]
    for level in reversed(LEVELS):
        rows = [
            (linked(finding.path, pages_url, finding.line), f"`{finding.rule}`", code(finding.message, 300))
            for finding in report.findings
            if finding.level == level
        ]
        if rows:
            table = listed(("place", "rule", "what"), rows)
            parts.append(
                folded(counted(len(rows), level), table) if level == "note" else f"### {level.title()}s\n\n{table}"
            )
    return "\n\n".join([*parts, *report.notes]) + "\n"
