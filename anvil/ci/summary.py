"""The summary of a CI job, in Markdown that GitHub and GitLab show.

Text from the documents is in code spans, where nothing is markup. Long tables are folded, and very long tables are cut.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from anvil import wording
from anvil.build.report import BuildReport
from anvil.ci.runners import visible
from anvil.dependencies.values import DocsReport
from anvil.doc_tests import suite_report
from anvil.formats.characters import backticks
from anvil.git_drivers.index_diff import IndexDifference, PageChange
from anvil.lint.settings import LEVELS
from anvil.values import Changes
from anvil.wording import counted, full_heading, size

if TYPE_CHECKING:
    from anvil.doc_tests.values import Comparison, Difference, Outcome, TestReport
    from anvil.impact.assessment import Impact
    from anvil.impact.ranking import AffectedSection
    from anvil.lint.linter import LintReport


MAX_ROWS, MAX_FOLDED_ROWS = 25, 500
"""Rows of a table, and of the block below it that opens at a click."""
MAX_SECTIONS = 6
"""Sections or places named in one row."""
MAX_CODE_CHARS = 160
"""Characters of a path or breadcrumb."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The values that the summary of an index shows.

    - ``index``, ``docs``: paths, as they are shown
    - ``after``: numbers of documents, sections, chunks, windows and bytes; ``pending``: windows without a vector
    - ``before``: these numbers of the old index; ``difference``: the changes since. None if there is no old index
    - ``since``: the branch of the old index; None for the index of the last run
    - ``report``: of a build; ``stale``: the stale pages of a check
    - ``of_site``: whether the index was built with a site; ``has_site_folder``: that of another generator than MkDocs
    - ``build``: the command that updates the index, except for a site of MkDocs
    - ``pages_url``: the address of the documentation folder, with a slash at its end
    - ``artifact``: OWNER/REPO and the name of the artifact as which GitHub will store the index
    """

    index: str
    docs: str
    digest: str
    commit: str | None
    after: Mapping[str, int]
    before: Mapping[str, int] | None
    difference: IndexDifference | None
    pending: int = 0
    report: BuildReport | None = None
    stale: Changes | None = None
    of_site: bool = False
    has_site_folder: bool = False
    build: str = "anvil build"
    since: str | None = None
    pages_url: str | None = None
    artifact: tuple[str, str] | None = None


def render_index(contents: Contents) -> str:
    """The section on a build or a check, with a line break at its end."""
    parts = [f"## {_headline(contents)}", _origin(contents), _numbers(contents), *_changes(contents)]
    if contents.artifact is not None:
        repository, name = contents.artifact
        parts.append(f"To fetch it: {code(shlex.join(['anvil', 'pull', f'github:{repository}', f'artifact:{name}']))}")
    return "\n\n".join(parts) + "\n"


def update_advice(contents: Contents, quote_command: Callable[[str], str]) -> str:
    """A sentence on how to update a stale index."""
    if contents.has_site_folder:
        return f"Build the site, and run {quote_command(contents.build)}."
    return f"Run {quote_command('mkdocs build' if contents.of_site else contents.build)} and commit the index."


def failure(message: str) -> str:
    return f"## Documentation index: failed\n\n{code(message, 1000)}\n"


def dependencies(reports: Sequence[DocsReport]) -> str:
    """The section on the documentation of dependencies: its pages and its origin, or why it is missing."""
    rows = [
        (
            code(f"{report.name} {report.version}"),
            "" if report.pages is None else f"{report.pages:,}",
            code(report.problem or (report.docs.url if report.docs else ""), 300),
        )
        for report in reports
    ]
    body = long_table(("package", "pages", "from"), rows, "lrl") if rows else "`anvil.lock` has no entry."
    return f"## Documentation of dependencies\n\n{body}\n"


def code(text: str, longest: int = MAX_CODE_CHARS) -> str:
    """``text`` as a code span in a table, on one line. A text above ``longest`` characters is cut in its middle."""
    plain = visible(text)
    if len(plain) > longest:
        plain = f"{plain[: longest // 2]}…{plain[-longest // 2 :]}"
    ticks = backticks(plain)
    pad = " " if plain[:1] in "` " or plain[-1:] in "` " else ""  # also for an empty text: "" is in any string
    return f"{ticks}{pad}{plain}{pad}{ticks}".replace("|", "\\|")  # "|" ends a cell even in a code span


def page_link(path: str, pages_url: str | None, line: int | None = None) -> str:
    """The path of a page, with its line if there is one. It links to the file if ``pages_url`` is not None."""
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
    after, before, report = contents.after, contents.before, contents.report
    names = {"Pages": "documents", "Sections": "sections", "Chunks": "chunks"}
    rows = [(name, f"{after[key]:,}", _growth(key, after, before)) for name, key in names.items()]
    rows.append(("Size", size(after["bytes"]), _growth("bytes", after, before)))
    if report:
        if after["windows"]:
            rows.append(("Passages embedded", f"{report.embedded:,}", ""))
            rows.append(("Passages reused", f"{after['windows'] - contents.pending - report.embedded:,}", ""))
        rows.append(("Time", f"{report.seconds:.1f} s", ""))
    if contents.pending:
        rows.append(("Passages without a vector", f"{contents.pending:,}", ""))
    if before is None:
        return table(("", "now"), [row[:2] for row in rows], "lr")
    return table(("", "now", f"since {_old_index_name(contents)}"), rows, "lrr")


def _growth(key: str, after: Mapping[str, int], before: Mapping[str, int] | None) -> str:
    if before is None:
        return ""
    more = after[key] - before[key]
    sign = "+" if more > 0 else "\u2212" if more < 0 else "±"
    return f"{sign}{size(abs(more)) if key == 'bytes' else format(abs(more), ',')}"


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
        yield long_table(("page", "since the index"), stale)
        yield update_advice(contents, code)
    difference = contents.difference
    if difference is None or not (difference.pages or difference.settings):
        return
    yield f"### Changed since {_old_index_name(contents)}"
    if difference.settings:
        settings = [(code(key), code(old), code(new)) for key, old, new in difference.settings]
        yield table(("setting", "was", "is"), settings)
    if difference.pages:
        order = {"added": 0, "moved": 1, "changed": 2, "removed": 3}
        pages = sorted(difference.pages, key=lambda page: (order[page.kind], page.file_path))
        rows = [(_page(contents, page.file_path, page.kind), _kind(page), _sections(page)) for page in pages]
        yield long_table(("page", "", "sections"), rows)


def _old_index_name(contents: Contents) -> str:
    return code(contents.since) if contents.since else "the last run"


def _page(contents: Contents, path: str, kind: str) -> str:
    return page_link(path, None if kind == "removed" else contents.pages_url)


def _kind(page: PageChange) -> str:
    return page.kind if page.old_path is None else f"moved from {code(page.old_path)}"


def _sections(page: PageChange) -> str:
    if page.kind in ("added", "removed"):
        return counted(len(page.sections), "section")
    names = [
        code(full_heading(page.title, section.heading_path), 80)
        + ("" if section.kind == "changed" else f" {section.kind}")
        for section in page.sections[:MAX_SECTIONS]
    ]
    more = len(page.sections) - len(names)
    if not names:
        return "" if page.kind == "moved" else "title or metadata"
    return ", ".join([*names, *([f"{more} more"] if more else [])])


# --- tables --------------------------------------------------------------------------------------------------


def fold(title: str, body: str) -> str:
    """A block that opens at a click. ``title`` is not escaped, so it must not come from documents."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def folded_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return fold(title, long_table(head, rows, shown=MAX_ROWS + MAX_FOLDED_ROWS))


def long_table(head: Sequence[str], rows: Sequence[Sequence[str]], align: str = "", shown: int = MAX_ROWS) -> str:
    """A table of the first ``shown`` rows, a folded table of further rows, and the number of rows that are left out."""
    parts = [table(head, rows[:shown], align)]
    if further := rows[shown : MAX_ROWS + MAX_FOLDED_ROWS]:
        parts.append(fold(f"{len(further):,} more", table(head, further, align)))
    if (more := len(rows) - MAX_ROWS - MAX_FOLDED_ROWS) > 0:
        parts.append(f"… and {more:,} more.")
    return "\n\n".join(parts)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], align: str = "") -> str:
    """A table. ``align`` has an ``l`` or ``r`` for each column; without it, all are left-aligned."""
    marks = ["---:" if side == "r" else "---" for side in align or "l" * len(head)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, marks, *rows))


# --- the findings of the linter ------------------------------------------------------------------------------


def lint_headline(report: LintReport) -> str:
    counts = Counter(finding.level for finding in report.findings)
    levels = [counted(counts[level], level) for level in reversed(LEVELS) if counts[level]]
    return f"{', '.join(levels) or 'nothing found'} in {counted(report.pages, 'page')}"


def render_lint(report: LintReport, pages_url: str | None) -> str:
    """The section on the findings of the linter. ``pages_url`` is as in :class:`Contents`."""
    parts = [f"## Lint: {lint_headline(report)}"]
    for level in reversed(LEVELS):
        rows = [
            (page_link(finding.path, pages_url, finding.line), f"`{finding.rule}`", code(finding.message, 300))
            for finding in report.findings
            if finding.level == level
        ]
        if rows:
            head = ("place", "rule", "what")
            parts.append(
                folded_table(counted(len(rows), level), head, rows)
                if level == "note"
                else f"### {level.title()}s\n\n{long_table(head, rows)}"
            )
    return "\n\n".join([*parts, *report.notes]) + "\n"


# --- the questions of a suite ----------------------------------------------------------------------------------

MAX_NAMED_PAGES = 3
"""Pages that a headline names."""


def questions_headline(report: TestReport) -> str:
    comparison = report.comparison
    if comparison is not None and comparison.worse:
        pages = Counter(difference.blame.file_path for difference in comparison.worse if difference.blame)
        named = [path for path, _ in pages.most_common(MAX_NAMED_PAGES)]
        because = f" because of {wording.listed(named)}" if named else ""
        return f"{counted(len(comparison.worse), 'question')} got worse{because}"
    if report.failed:
        return f"{counted(len(report.failed), 'question', 'are')} not answered as expected"
    if not report.passed:
        return f"the mean reciprocal rank is {report.mrr or 0:.2f}, at least {report.min_mrr or 0:.2f} is wanted"
    if comparison is not None and comparison.better:
        return f"{counted(len(comparison.better), 'question')} got better"
    return "all questions are answered as expected"


def render_questions(report: TestReport, since: str | None, pages_url: str | None) -> str:
    """The section on the questions of a suite. ``since`` is the branch of the baseline; ``pages_url`` is as above."""
    rank = "" if report.mrr is None else f" Mean reciprocal rank {report.mrr:.2f}."
    parts = [f"## Questions: {_escape(questions_headline(report))}", f"**{suite_report.totals(report)}**{rank}"]
    comparison = report.comparison
    if comparison is not None:
        parts += [*_comparison(comparison, since, pages_url)]
    worse_questions = {difference.after.question for difference in comparison.worse} if comparison else set()
    failed = [outcome for outcome in report.failed if outcome.question not in worse_questions]
    if failed:
        rows = [(code(each.question.ask), code(each.question.expected), _first_answer(each)) for each in failed]
        title = "Not answered, here and before" if comparison else "Not answered"
        parts += [f"### {title}", long_table(("question", "expected", "came instead"), rows)]
    if report.new:
        answers = [(code(outcome.question.ask), _first_answer(outcome)) for outcome in report.new]
        parts.append(folded_table(counted(len(report.new), "new question"), ("question", "answered by"), answers))
    return "\n\n".join(parts) + "\n"


def _comparison(comparison: Comparison, since: str | None, pages_url: str | None) -> Iterator[str]:
    name = code(since) if since else code(comparison.baseline)
    for title, differences in ((f"Worse than in {name}", comparison.worse), ("Better", comparison.better)):
        if differences:
            yield f"### {title}"
            rows = [
                (
                    f"{'**lost** ' if each.kind == 'worse' and each.decisive else ''}{code(each.after.question.ask)}",
                    f"{each.before.standing} → {each.after.standing}",
                    _blame(each, pages_url),
                )
                for each in differences
            ]
            yield long_table(("question", "", "because of"), rows)
    if not comparison.differences:
        yield f"No question got better or worse than in {name}."
    for note in comparison.notes:
        yield _escape(note)


def _blame(difference: Difference, pages_url: str | None) -> str:
    page = difference.blame
    if page is None:
        return "no page alone"
    return f"{page_link(page.file_path, None if page.kind == 'removed' else pages_url)} ({page.kind})"


def _first_answer(outcome: Outcome) -> str:
    return code(outcome.answers[0].address) if outcome.answers else "no result"


def _escape(text: str) -> str:
    """Text of documents for a heading or a paragraph, with escaped marks of Markdown and HTML."""
    return "".join(f"\\{character}" if character in "\\`*_[]<>#|&!" else character for character in text)


# --- the sections that a change makes wrong --------------------------------------------------------------------


def impact_headline(likely: Sequence[AffectedSection], impact: Impact) -> str:
    clauses = [
        *([f"{counted(len(likely), 'section')} may be wrong after this change"] if likely else []),
        *([f"no page has {counted(len(impact.undocumented), 'addition')}"] if impact.undocumented else []),
    ]
    return ", and ".join(clauses) or "nothing that this change makes wrong was found"


def render_impact(likely: Sequence[AffectedSection], impact: Impact, pages_url: str | None) -> str:
    """The section on the impact of a change; empty without findings. ``likely`` are the findings to show.

    ``pages_url`` is as in :class:`Contents`.
    """
    if not likely and not impact.undocumented:
        return ""
    parts = [f"## Documentation: {impact_headline(likely, impact)}"]
    if likely:
        rows = [
            (
                page_link(finding.path, pages_url, finding.line),
                code(full_heading(finding.title, finding.heading_path)),
                "; ".join(code(reason, 200) for reason in finding.reasons[:2]),
                f"{finding.confidence:.2f}",
            )
            for finding in likely
        ]
        parts.append(long_table(("place", "section", "why", "confidence"), rows, "lllr"))
    if impact.undocumented:
        additions = [(code(each.name), each.kind, code(f"{each.path}:{each.line}")) for each in impact.undocumented]
        parts += ["### No page has", long_table(("name", "what", "where"), additions)]
    if impact.done:
        rows_done = [
            (page_link(each.path, pages_url, each.line), code(full_heading(each.title, each.heading_path)))
            for each in impact.done
        ]
        title = f"{counted(len(impact.done), 'section')} that the change edits already"
        parts.append(folded_table(title, ("place", "section"), rows_done))
    return "\n\n".join(parts) + "\n"
