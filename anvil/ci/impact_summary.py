"""What a change means for the documentation, in a CI job: a section of the summary."""

from __future__ import annotations

from collections.abc import Sequence

from anvil.ci.summary import code, folded, linked, listed
from anvil.impact.values import Finding, Impact
from anvil.wording import counted, full_heading


def headline(likely: Sequence[Finding], impact: Impact) -> str:
    """The result in one sentence."""
    found = [
        *([f"{counted(len(likely), 'section')} may be wrong after this change"] if likely else []),
        *([f"no page has {counted(len(impact.undocumented), 'addition')}"] if impact.undocumented else []),
    ]
    return ", and ".join(found) or "nothing that this change makes wrong was found"


def render(likely: Sequence[Finding], impact: Impact, pages_url: str | None) -> str:
    """A section for the summary, in Markdown; empty when there is nothing to say. ``likely``: the findings that are
    shown. ``pages_url``: the address of the pages' folder, with a slash at its end."""
    if not likely and not impact.undocumented:
        return ""
    parts = [f"## Documentation: {headline(likely, impact)}"]
    if likely:
        rows = [
            (
                linked(finding.path, pages_url, finding.line),
                code(full_heading(finding.title, finding.heading_path)),
                "; ".join(code(reason, 200) for reason in finding.reasons[:2]),
                f"{finding.confidence:.2f}",
            )
            for finding in likely
        ]
        parts.append(listed(("place", "section", "why", "confidence"), rows, "lllr"))
    if impact.undocumented:
        additions = [(code(each.name), each.kind, code(f"{each.path}:{each.line}")) for each in impact.undocumented]
        parts += ["### No page has", listed(("name", "what", "where"), additions)]
    if impact.done:
        rows_done = [
            (linked(each.path, pages_url, each.line), code(full_heading(each.title, each.heading_path)))
            for each in impact.done
        ]
        title = f"{counted(len(impact.done), 'section')} that the change edits already"
        parts.append(folded(title, listed(("place", "section"), rows_done)))
    return "\n\n".join(parts) + "\n"
