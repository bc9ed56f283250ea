"""The program that runs the job: GitHub's runner, which reads workflow commands and files, or a plain log. It gets
notes about pages: stale ones, findings of the linter, sections that a change concerns, questions.

File names, titles and messages come from the documents. A runner executes commands that it finds in the output, so all
text is escaped before it is printed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from anvil.doc_tests.suite_report import moved, unanswered
from anvil.index_file.reader import Reader
from anvil.search.pages import page_text
from anvil.system import safe_files
from anvil.text import markdown_sections
from anvil.text.includes import source_line
from anvil.values import Changes, Document

if TYPE_CHECKING:
    from anvil.api import Anvil
    from anvil.doc_tests.values import TestReport
    from anvil.impact.assessment import Undocumented
    from anvil.impact.ranking import AffectedSection
    from anvil.lint.linter import LintFinding


Level = Literal["notice", "warning", "error"]
MAX_SUMMARY_BYTES = 1024 * 1024
"""GitHub's limit for a step's summary. It does not show a larger one."""
MAX_ANNOTATIONS = 10
"""Annotations of a level, of one step, that GitHub shows."""
_CUT = "\n\n*The rest is left out: a summary can have 1 MiB.*\n"
_END_OF_FOLD = "\n\n</details>"
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff]")


def runner(environment: Mapping[str, str], say: Callable[[str], None], summary: str | None) -> Runner:
    """The runner of this job, by the environment. ``say`` prints a line. It may use stdout or stderr: GitHub's runner
    reads commands from both (its ScriptHandler). ``summary``: a file for the summary instead of GitHub's own."""
    if environment.get("GITHUB_ACTIONS") == "true":
        return GitHub(say, environment.get("GITHUB_OUTPUT"), summary or environment.get("GITHUB_STEP_SUMMARY"))
    return Runner(say, None, summary)


def visible(text: str) -> str:
    """``text`` on one line. Invisible characters, line breaks and marks of the writing direction are escaped."""
    return _UNSEEN.sub(lambda match: _spelled(match[0]), text)


def _spelled(character: str) -> str:
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character) or f"\\u{ord(character):04x}"


class Runner:
    """The outputs of a job, in a plain log, such as GitLab's or a terminal. ``output``: the file for values of later
    steps; ``summary``: that of the summary."""

    def __init__(self, say: Callable[[str], None], output: str | None, summary: str | None) -> None:
        self._say = say
        self._output = output
        self._summary = summary

    def line(self, text: str) -> None:
        self._say(visible(text))

    def annotate(self, level: Level, message: str, file: str | None = None, line: int | None = None) -> None:
        """Print a message with a level, at a line of a file in the checkout if these are known."""
        place = "" if file is None else f"{file}:{line or 1}: "
        self.line(f"{level}: {place}{message}")

    def show(self, notes: Iterable[Note], most: int | None = None) -> None:
        """Print notes as such messages; of each level at most so many, and the others as lines of the log."""
        shown = Counter[Level]()
        for note in notes:
            shown[note.level] += 1
            if most is None or shown[note.level] <= most:
                self.annotate(*note)
            else:  # GitHub shows no more of a step
                Runner.annotate(self, *note)

    def output(self, values: Mapping[str, str]) -> None:
        if self._output:
            _append(self._output, "".join(entry(name, value) for name, value in values.items()))

    def summarize(self, markdown: str) -> None:
        if self._summary:
            taken = os.path.getsize(self._summary) if os.path.exists(self._summary) else 0
            _append(self._summary, bounded(markdown, max(MAX_SUMMARY_BYTES - taken, 0), _CUT))


class GitHub(Runner):
    """GitHub's runner. Its documentation is "Workflow commands for GitHub Actions"."""

    def line(self, text: str) -> None:
        # a workflow command is ``::name::`` at a line's start, or ``##[name]`` anywhere
        plain = visible(text).replace("##[", "##\\[")
        self._say(f"\\{plain}" if plain.lstrip().startswith("::") else plain)

    def annotate(self, level: Level, message: str, file: str | None = None, line: int | None = None) -> None:
        where = {} if file is None else {"file": file, "line": str(line or 1)}
        self._say(command(level, message, {**where, "title": "Anvil"}))


def command(name: str, message: str, properties: Mapping[str, str]) -> str:
    """A workflow command, escaped as the runner reads it: ``::warning file=a.md,line=1::message``."""
    plain = {key: _data(value).replace(":", "%3A").replace(",", "%2C") for key, value in properties.items()}
    return f"::{name} {','.join(f'{key}={value}' for key, value in plain.items())}::{_data(message)}"


def _data(text: str) -> str:
    spelled = _UNSEEN.sub(lambda match: match[0] if match[0] in "\r\n" else _spelled(match[0]), text)
    return spelled.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def entry(name: str, value: str) -> str:
    """An entry of the file ``GITHUB_OUTPUT``. The delimiter is random, so that no value can contain it."""
    if "\n" not in value and "\r" not in value:
        return f"{name}={value}\n"
    delimiter = f"end-{uuid.uuid4().hex}"
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"


def bounded(markdown: str, max_bytes: int, cut: str) -> str:
    """``markdown``, cut at the end of a line where it has more than ``max_bytes``, with ``cut`` at its end."""
    data = markdown.encode()
    if len(data) <= max_bytes:
        return markdown
    room = max(max_bytes - len(f"{_END_OF_FOLD}{cut}".encode()), 0)
    kept = data[:room].rpartition(b"\n")[0].decode("utf-8", "ignore")
    is_folded = kept.count("<details>") > kept.count("</details>")  # else the notice would be folded, too
    return kept + (_END_OF_FOLD * is_folded + cut if room else "")


def _append(path: str, text: str) -> None:
    with (
        safe_files.writing(Path(path)),
        Path(path).open("a", encoding="utf-8", errors="surrogateescape", newline="\n") as file,
    ):
        file.write(text)


# --- notes, at the lines of pages ------------------------------------------------------------------------------------


class Note(NamedTuple):
    """A message about a page. ``file`` is its path in the checkout, or None for one that is not there."""

    level: Level
    message: str
    file: str | None = None
    line: int | None = None


_SEVERITIES: Mapping[Level, str] = {"notice": "info", "warning": "minor", "error": "major"}


def code_quality(notes: Iterable[Note], check: str) -> str:
    """The notes at files as GitLab reads them, a Code Quality report in JSON. ``check``: the name of what found them.
    A finding keeps its fingerprint when lines move."""
    issues = []
    seen: Counter[tuple[str, str]] = Counter()
    for level, message, file, line in notes:
        if file is not None:
            seen[file, message] += 1
            key = "\0".join((check, file, message, str(seen[file, message])))
            fingerprint = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:32]
            location = {"path": file, "lines": {"begin": line or 1}}
            issue = {"description": message, "check_name": check, "fingerprint": fingerprint}
            issues.append({**issue, "severity": _SEVERITIES[level], "location": location})
    return json.dumps(issues, indent=1)


def stale_notes(changes: Changes, opened: Anvil, reader: Reader) -> Iterator[Note]:
    """A note for each stale page, changed pages first."""
    for path in changes.changed:
        line = _first_different_line(path, opened, reader)
        yield Note("warning", "The index has an older text of this page.", in_checkout(opened, path), line)
    for path in changes.added:
        yield Note("warning", "The index does not have this page.", in_checkout(opened, path), 1)
    for path in changes.removed:
        yield Note("warning", f"The index still has {path}, which was removed.")


def in_checkout(opened: Anvil, path: str) -> str | None:
    """A page's POSIX path from the root of the checkout; None if it is outside of it."""
    return None if opened.folder is None else in_workspace(opened.folder.resolve() / path)


def in_workspace(file: Path) -> str | None:
    """The POSIX path of an absolute one from the root of the checkout; None if it is outside of it."""
    root = Path(os.environ.get("GITHUB_WORKSPACE") or os.getcwd()).resolve()
    return file.relative_to(root).as_posix() if file.is_relative_to(root) else None


def lint_notes(findings: Iterable[LintFinding], opened: Anvil) -> Iterator[Note]:
    for finding in findings:
        level: Level = "notice" if finding.level == "note" else finding.level
        yield Note(level, f"{finding.message} [{finding.rule}]", in_checkout(opened, finding.path), finding.line)


def impact_notes(
    findings: Iterable[AffectedSection], undocumented: Iterable[Undocumented], opened: Anvil
) -> Iterator[Note]:
    """A note for each section that a change probably concerns, and for each addition that no page has."""
    for finding in findings:
        why = "; ".join(finding.reasons[:2])
        message = f"This section may be wrong after this change (confidence {finding.confidence:.2f}): it {why}."
        yield Note("notice", message, in_checkout(opened, finding.path), finding.line)
    for addition in undocumented:
        yield Note("notice", f"No page has the {addition.kind} {addition.name}.", addition.path, addition.line)


def question_notes(report: TestReport, opened: Anvil) -> Iterator[Note]:
    """Messages for what got worse, at the pages that lost, and for other failures, at the question in the suite."""
    comparison = report.comparison
    worse = comparison.worse if comparison is not None else ()
    for difference in worse:
        level: Level = "error" if difference.decisive else "warning"
        file = in_checkout(opened, difference.page) if difference.page else None
        message = f"{difference.after.question.ask!r}: {moved(difference)}"
        yield Note(level, message, file, difference.line if file else None)
    suite = in_workspace(Path(report.suite).resolve())
    worse_questions = {difference.after.question for difference in worse}
    for outcome in report.failed:
        if outcome.question not in worse_questions:
            level = "warning" if report.passed else "error"
            yield Note(level, unanswered(outcome), suite, outcome.question.line or 1)


def _first_different_line(path: str, opened: Anvil, reader: Reader) -> int:
    from anvil.doc_tests.comparing import first_difference

    indexed = reader.document(path)
    document = opened.tree.read(path) if opened.tree else None
    if indexed is None or not isinstance(document, Document):
        return 1
    page = markdown_sections.parse(document.text)
    line = first_difference(page_text(reader.page_chunks(indexed.id)), page.text, page.first_line)
    return source_line(line, document.inserted)
