"""The summary of a run, in Markdown that GitHub and GitLab show.

Text from the documents is in code spans, where nothing is markup. Long lists are cut.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from anvil.ci.hosts import visible
from anvil.dependencies.values import DocsReport
from anvil.git_drivers.index_diff import Difference, PageChange
from anvil.lint.values import LEVELS, LintFinding, LintReport
from anvil.search.content_health import Bar, ContentHealth, Spot
from anvil.text.lines import backticks
from anvil.values import BuildReport, Changes, at_line
from anvil.wording import counted, full_heading

MAX_ROWS = 25
"""Rows of a table."""
MAX_SECTIONS = 6
"""Sections or places named in one row."""
MAX_CODE_CHARS = 160
"""Characters of a path or breadcrumb."""
MAX_BAR_CHARS = 30
"""Characters of the longest bar."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much an index holds, and its bytes."""

    pages: int
    sections: int
    chunks: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Contents:
    """The values that a summary shows.

    ``index`` and ``docs`` are paths as shown. ``before`` is the size of the last index, ``difference`` the changes
    since; both are None without a last index. A build has a ``report``, a check has the ``stale`` pages. ``of_site``:
    the index was built with a site. ``since``: the branch of ``before`` and ``difference``, None for the last run.
    ``pages_url``: the address of the pages' folder, with a slash at its end.
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
    pages_url: str | None = None


def render(contents: Contents) -> str:
    """The whole summary, with a line break at its end."""
    parts = [
        f"## {_headline(contents)}",
        _origin(contents),
        _numbers(contents),
        *_changes(contents),
        *_findings(contents.health),
    ]
    if contents.health.chunks:
        parts += ["### Chunk sizes", _chart(contents.health.chunk_sizes)]
    return "\n\n".join(parts) + "\n"


def failure(message: str) -> str:
    """The summary of a run that failed."""
    return f"## Documentation index: failed\n\n{code(message, 1000)}\n"


def artifact(name: str, address: str, repository: str | None) -> str:
    """The address of the uploaded index, and the command that fetches it."""
    lines = f"Index: [{code(name)}]({quote(address, safe=':/?=&%')})."
    if repository:
        lines += f" To fetch it: {code(shlex.join(['anvil', 'pull', f'github:{repository}', f'artifact:{name}']))}"
    return f"{lines}\n"


def dependencies(reports: Sequence[DocsReport]) -> str:
    """The documentation of dependencies: which there is, and why some is missing."""
    rows = [
        f"| {code(f'{report.name} {report.version}')} | {'' if report.pages is None else f'{report.pages:,}'} | "
        f"{code(report.problem or (report.docs.url if report.docs else ''), 300)} |"
        for report in reports[:MAX_ROWS]
    ]
    table = ["| package | pages | from |", "|---|---:|---|", *rows] if rows else ["`anvil.lock` has no entry."]
    more = [f"\nand {len(reports) - MAX_ROWS:,} more"] if len(reports) > MAX_ROWS else []
    return "\n".join(["## Documentation of dependencies\n", *table, *more, ""])


def code(text: str, longest: int = MAX_CODE_CHARS) -> str:
    """``text`` as a code span for a table: on one line, and cut in the middle when it is long."""
    plain = visible(text)
    if len(plain) > longest:
        plain = f"{plain[: longest // 2]}…{plain[-longest // 2 :]}"
    ticks = backticks(plain)
    pad = " " if plain[:1] in "` " or plain[-1:] in "` " else ""  # an empty one included
    return f"{ticks}{pad}{plain}{pad}{ticks}".replace("|", "\\|")


def linked(path: str, pages_url: str | None, line: int | None = None) -> str:
    """A page's path, with a line, as a link to its file if there is an address of the pages' folder."""
    name = code(path if line is None else f"{path}:{line}")
    if pages_url is None:
        return name
    return f"[{name}]({pages_url}{quote(path, errors='surrogateescape')}{'' if line is None else f'#L{line}'})"


# --- the index -----------------------------------------------------------------------------------------------


def _headline(contents: Contents) -> str:
    if contents.report is None:
        stale = len(contents.stale or ())
        return (
            f"Documentation index: stale, {counted(stale, 'page', 'differ')}" if stale else "Documentation index: fresh"
        )
    if contents.difference is None:
        return "Documentation index: built"
    pages = len(contents.difference.pages)
    return f"Documentation index: {counted(pages, 'page')} changed" if pages else "Documentation index: unchanged"


def _origin(contents: Contents) -> str:
    commit = f" at commit {code(contents.commit[:12])}" if contents.commit else ""
    return f"{code(contents.index)}, built from {code(contents.docs)}{commit}. Digest {code(contents.digest[:16])}."


def _numbers(contents: Contents) -> str:
    after, before, health, report = contents.after, contents.before, contents.health, contents.report
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
    return table(("", "now", f"since {_since(contents)}"), rows, "lrr")


def _grown(now: int, before: int | None, in_bytes: bool = False) -> str:
    if before is None:
        return ""
    more = now - before
    sign = "+" if more > 0 else "\u2212" if more < 0 else "±"
    return f"{sign}{size(abs(more)) if in_bytes else format(abs(more), ',')}"


def size(count: int) -> str:
    """Bytes for people: ``812 B``, ``9.4 kB``, ``2.1 MB``."""
    return f"{count} B" if count < 1000 else f"{count / 1e3:.1f} kB" if count < 999_950 else f"{count / 1e6:.1f} MB"


# --- changes -------------------------------------------------------------------------------------------------


def _changes(contents: Contents) -> Iterator[str]:
    if contents.stale:
        yield "### Stale pages"
        kinds = (
            ("changed", contents.stale.changed),
            ("added", contents.stale.added),
            ("removed", contents.stale.removed),
        )
        stale = [(_page(contents, path, kind), kind) for kind, paths in kinds for path in paths]
        yield listed(("page", "since the index"), stale)
        yield f"Run `{'mkdocs' if contents.of_site else 'anvil'} build` and commit the index."
    difference = contents.difference
    if difference is None or not (difference.pages or difference.settings):
        return
    yield f"### Changed since {_since(contents)}"
    if difference.settings:
        settings = [(code(key), code(old), code(new)) for key, old, new in difference.settings]
        yield table(("setting", "was", "is"), settings)
    if difference.pages:
        order = {"added": 0, "changed": 1, "removed": 2}
        pages = sorted(difference.pages, key=lambda page: (order[page.kind], page.file_path))
        rows = [(_page(contents, page.file_path, page.kind), page.kind, _sections(page)) for page in pages]
        yield listed(("page", "", "sections"), rows)


def _since(contents: Contents) -> str:
    return code(contents.since) if contents.since else "the last run"


def _page(contents: Contents, path: str, kind: str) -> str:
    return linked(path, None if kind == "removed" else contents.pages_url)


def _sections(page: PageChange) -> str:
    if page.kind != "changed":
        return counted(len(page.sections), "section")
    named = [
        code(full_heading(page.title, section.heading_path), 80)
        + ("" if section.kind == "changed" else f" {section.kind}")
        for section in page.sections[:MAX_SECTIONS]
    ]
    more = len(page.sections) - len(named)
    return ", ".join([*named, *([f"{more} more"] if more else [])]) or "title or metadata"


# --- findings about the pages --------------------------------------------------------------------------------


def _findings(health: ContentHealth) -> list[str]:
    blocks = list(_blocks(health))
    return ["### Worth a look", *blocks] if blocks else []


def _blocks(health: ContentHealth) -> Iterator[str]:
    if health.long_sections:
        title = f"{counted(len(health.long_sections), 'section')} over {health.limit:,} characters, cut into parts"
        rows = [
            (
                code(at_line(spot.file_path, spot.line)),
                code(full_heading(spot.title, spot.heading_path)),
                f"{spot.chars:,}",
            )
            for spot in health.long_sections
        ]
        yield folded(title, listed(("page", "section", "characters"), rows, "llr"))
    if health.duplicates:
        title = f"{counted(len(health.duplicates), 'text')} in more than one place"
        places = [
            (
                ", ".join(_place(spot) for spot in spots[:MAX_SECTIONS])
                + (f", {len(spots) - MAX_SECTIONS} more" if len(spots) > MAX_SECTIONS else ""),
                f"{spots[0].chars:,}",
            )
            for spots in health.duplicates
        ]
        yield folded(title, listed(("places", "characters"), places, "lr"))
    if health.near_duplicates:
        title = f"{counted(len(health.near_duplicates), 'pair')} of sections with nearly the same text"
        rows = [(_place(pair.first), _place(pair.second), f"{pair.similarity:.3f}") for pair in health.near_duplicates]
        yield folded(title, listed(("one", "other", "similarity"), rows, "llr"))
    for lacking, paths in (("headings", health.without_headings), ("text", health.empty_pages)):
        if paths:
            title = f"{counted(len(paths), 'page')} without {lacking}"
            yield folded(title, listed(("page",), [(code(path),) for path in paths]))


def _place(spot: Spot) -> str:
    return f"{code(at_line(spot.file_path, spot.line))} {code(full_heading(spot.title, spot.heading_path), 80)}"


def folded(title: str, body: str) -> str:
    """A block that opens at a click. ``title`` is not escaped: it must not come from documents."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def _chart(bars: Iterable[Bar]) -> str:
    shown = list(bars)
    most = max((bar.chunks for bar in shown), default=0) or 1
    rows = [(f"up to {bar.up_to:,}", f"{bar.chunks:,}", _bar(bar.chunks / most)) for bar in shown]
    return table(("characters", "chunks", ""), rows, "rrl")


def _bar(share: float) -> str:
    eighths = max(round(share * MAX_BAR_CHARS * 8), 1 if share else 0)
    return "█" * (eighths // 8) + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[eighths % 8]


def listed(head: Sequence[str], rows: Sequence[Sequence[str]], align: str = "") -> str:
    """A table of the first rows, and the number of further ones."""
    more = len(rows) - MAX_ROWS
    return table(head, rows[:MAX_ROWS], align) + (f"\n\n… and {more:,} more." if more > 0 else "")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], align: str = "") -> str:
    """A table; ``align`` has an ``l`` or ``r`` for each column."""
    marks = ["---:" if mark == "r" else "---" for mark in align or "l" * len(head)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, marks, *rows))


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


def render_lint(report: LintReport, pages_url: str | None) -> str:
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
