"""The summary of a run, in Markdown that looks the same on GitHub, on GitLab and in a mail.

Whatever comes from the documents stands in code spans, where nothing is markup, and lists are cut short.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from anvil.core.pluralize import counted, full_heading
from anvil.interfaces.ci.hosts import visible
from anvil.models.documents import BuildReport, Changes
from anvil.services.reports.content_health import Bar, ContentHealth, Spot
from anvil.services.reports.diff import Difference, PageChange

ROWS = 25
"""Rows of a list shown at most."""
SECTIONS = 6
"""Sections named for each page at most."""
LONGEST = 160
"""Characters of a path or breadcrumb shown at most."""
WIDTH = 30
"""Characters of the longest bar."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much an index holds, and its bytes."""

    pages: int
    sections: int
    chunks: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Told:
    """What a summary tells.

    ``index`` and ``docs`` are shown as given. ``before`` is the last index's size, ``difference`` what changed since;
    both None without a last one. Of a build there is a ``report``, of a check ``stale`` pages, if any. ``of_site``: the
    index was built with a site. ``since``: the branch that ``before`` and ``difference`` are of, None for the last run.
    ``pages``: the address below which the pages can be read, with a slash.
    """

    index: str
    docs: str
    digest: str
    commit: str | None
    after: Size
    before: Size | None
    difference: Difference | None
    health: ContentHealth
    report: BuildReport | None = None
    stale: Changes | None = None
    of_site: bool = False
    since: str | None = None
    pages: str | None = None


def render(told: Told) -> str:
    """The summary, whole, ending in a line break."""
    parts = [f"## {_headline(told)}", _origin(told), _numbers(told), *_changes(told), *_findings(told.health)]
    if told.health.chunks:
        parts += ["### Chunk sizes", _chart(told.health.chunk_sizes)]
    return "\n\n".join(parts) + "\n"


def failure(message: str) -> str:
    """The summary of a run that could not do what it was asked."""
    return f"## Documentation index: could not be had\n\n{code(message, 1000)}\n"


def artifact(name: str, address: str, repository: str | None) -> str:
    """Where the uploaded index is, and the command that fetches it."""
    lines = f"Index: [{code(name)}]({quote(address, safe=':/?=&%')})."
    if repository:
        lines += f" To fetch it: {code(shlex.join(['anvil', 'pull', f'github:{repository}', f'artifact:{name}']))}"
    return f"{lines}\n"


def code(text: str, longest: int = LONGEST) -> str:
    """``text`` as a code span that may stand in a table, on one line, cut in the middle when it is long."""
    plain = visible(text)
    if len(plain) > longest:
        plain = f"{plain[: longest // 2]}…{plain[-longest // 2 :]}"
    ticks = "`" * (max((len(run) for run in re.findall("`+", plain)), default=0) + 1)
    pad = " " if plain[:1] in "` " or plain[-1:] in "` " else ""  # an empty one included
    return f"{ticks}{pad}{plain}{pad}{ticks}".replace("|", "\\|")


# --- what it is ----------------------------------------------------------------------------------------------


def _headline(told: Told) -> str:
    if told.report is None:
        stale = len(told.stale or ())
        return (
            f"Documentation index: stale, {counted(stale, 'page', 'differ')}"
            if stale
            else ("Documentation index: fresh")
        )
    if told.difference is None:
        return "Documentation index: built"
    pages = len(told.difference.pages)
    return f"Documentation index: {counted(pages, 'page')} changed" if pages else "Documentation index: unchanged"


def _origin(told: Told) -> str:
    commit = f" at commit {code(told.commit[:12])}" if told.commit else ""
    return f"{code(told.index)}, built from {code(told.docs)}{commit}. Digest {code(told.digest[:16])}."


def _numbers(told: Told) -> str:
    after, before, health, report = told.after, told.before, told.health, told.report
    rows = [
        ("Pages", f"{after.pages:,}", _grown(after.pages, before.pages if before else None)),
        ("Sections", f"{after.sections:,}", _grown(after.sections, before.sections if before else None)),
        ("Chunks", f"{after.chunks:,}", _grown(after.chunks, before.chunks if before else None)),
        ("Size", size(after.bytes), _grown(after.bytes, before.bytes if before else None, in_bytes=True)),
    ]
    if report:
        if health.windows:
            rows.append(("Passages embedded", f"{report.embedded:,}", ""))
            rows.append(("Passages reused", f"{health.windows - health.pending_vectors - report.embedded:,}", ""))
        rows.append(("Time", f"{report.seconds:.1f} s", ""))
    if health.pending_vectors:
        rows.append(("Passages without a vector", f"{health.pending_vectors:,}", ""))
    if before is None:
        return table(("", "now"), [row[:2] for row in rows], "lr")
    return table(("", "now", f"since {_since(told)}"), rows, "lrr")


def _grown(now: int, before: int | None, in_bytes: bool = False) -> str:
    if before is None:
        return ""
    more = now - before
    sign = "+" if more > 0 else "\u2212" if more < 0 else "±"
    return f"{sign}{size(abs(more)) if in_bytes else format(abs(more), ',')}"


def size(count: int) -> str:
    """Bytes for people: ``812 B``, ``9.4 kB``, ``2.1 MB``."""
    return f"{count} B" if count < 1000 else f"{count / 1e3:.1f} kB" if count < 999_950 else f"{count / 1e6:.1f} MB"


# --- what changed --------------------------------------------------------------------------------------------


def _changes(told: Told) -> Iterator[str]:
    if told.stale:
        yield "### Stale pages"
        kinds = (("changed", told.stale.changed), ("added", told.stale.added), ("removed", told.stale.removed))
        stale = [(_page(told, path, kind), kind) for kind, paths in kinds for path in paths]
        yield listed(("page", "since the index"), stale)
        yield f"Run `{'mkdocs' if told.of_site else 'anvil'} build` and commit the index."
    difference = told.difference
    if difference is None or not (difference.pages or difference.settings):
        return
    yield f"### Changed since {_since(told)}"
    if difference.settings:
        settings = [(code(key), code(old), code(new)) for key, old, new in difference.settings]
        yield table(("setting", "was", "is"), settings)
    if difference.pages:
        order = {"added": 0, "changed": 1, "removed": 2}
        pages = sorted(difference.pages, key=lambda page: (order[page.kind], page.file_path))
        rows = [(_page(told, page.file_path, page.kind), page.kind, _sections(page)) for page in pages]
        yield listed(("page", "", "sections"), rows)


def _since(told: Told) -> str:
    return code(told.since) if told.since else "the last run"


def _page(told: Told, path: str, kind: str) -> str:
    """A page's path, as a link to its file where that can be read."""
    if told.pages is None or kind == "removed":
        return code(path)
    return f"[{code(path)}]({told.pages}{quote(path, errors='surrogateescape')})"


def _sections(page: PageChange) -> str:
    if page.kind != "changed":
        return counted(len(page.sections), "section")
    named = [
        code(full_heading(page.title, each.heading_path), 80) + ("" if each.kind == "changed" else f" {each.kind}")
        for each in page.sections[:SECTIONS]
    ]
    more = len(page.sections) - len(named)
    return ", ".join([*named, *([f"{more} more"] if more else [])]) or "title or metadata"


# --- what is worth mending -----------------------------------------------------------------------------------


def _findings(health: ContentHealth) -> Iterator[str]:
    found = [*_blocks(health)]
    if found:
        yield "### Worth a look"
        yield from found


def _blocks(health: ContentHealth) -> Iterator[str]:
    if health.long_sections:
        told = f"{counted(len(health.long_sections), 'section')} over {health.limit:,} characters, cut into parts"
        named = [(each, full_heading(each.title, each.heading_path)) for each in health.long_sections]
        rows = [(code(f"{each.file_path}:{each.line}"), code(name), f"{each.chars:,}") for each, name in named]
        yield folded(told, listed(("page", "section", "characters"), rows, "llr"))
    if health.duplicates:
        told = f"{counted(len(health.duplicates), 'text')} in more than one place"
        places = [
            (
                ", ".join(_place(spot) for spot in spots[:SECTIONS])
                + (f", {len(spots) - SECTIONS} more" if len(spots) > SECTIONS else ""),
                f"{spots[0].chars:,}",
            )
            for spots in health.duplicates
        ]
        yield folded(told, listed(("places", "characters"), places, "lr"))
    if health.near_duplicates:
        told = f"{counted(len(health.near_duplicates), 'pair')} of sections that nearly say the same"
        rows = [(_place(pair.first), _place(pair.second), f"{pair.similarity:.3f}") for pair in health.near_duplicates]
        yield folded(told, listed(("one", "other", "similarity"), rows, "llr"))
    if health.without_headings:
        told = f"{counted(len(health.without_headings), 'page')} without headings"
        yield folded(told, listed(("page",), [(code(path),) for path in health.without_headings]))
    if health.empty_pages:
        told = f"{counted(len(health.empty_pages), 'page')} without text"
        yield folded(told, listed(("page",), [(code(path),) for path in health.empty_pages]))


def _place(spot: Spot) -> str:
    return f"{code(f'{spot.file_path}:{spot.line}')} {code(full_heading(spot.title, spot.heading_path), 80)}"


def folded(title: str, body: str) -> str:
    """A block that opens at a click. ``title`` is ours: it is not escaped."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def _chart(bars: Iterable[Bar]) -> str:
    shown = list(bars)
    most = max((bar.chunks for bar in shown), default=0) or 1
    rows = [(f"up to {bar.up_to:,}", f"{bar.chunks:,}", _bar(bar.chunks / most)) for bar in shown]
    return table(("characters", "chunks", ""), rows, "rrl")


def _bar(share: float) -> str:
    eighths = max(round(share * WIDTH * 8), 1 if share else 0)
    return "█" * (eighths // 8) + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[eighths % 8]


def listed(head: Sequence[str], rows: Sequence[Sequence[str]], align: str = "") -> str:
    """A table of the first rows, and how many more there are."""
    more = len(rows) - ROWS
    return table(head, rows[:ROWS], align) + (f"\n\n… and {more:,} more." if more > 0 else "")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], align: str = "") -> str:
    """A table; ``align`` has an ``l`` or ``r`` for each column."""
    marks = ["---:" if mark == "r" else "---" for mark in align or "l" * len(head)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, marks, *rows))
