"""The program that runs a CI job, such as GitHub's or GitLab's runner: its variables, annotations, outputs and summary.

File names, titles and messages come from the documents. GitHub's runner executes commands that it finds in the output,
so all text is escaped before it is printed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from anvil.doc_tests.suite_report import failure_sentence, movement
from anvil.errors import AnvilError
from anvil.formats.data_formats import json_object
from anvil.git.repository import Repository
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
"""GitHub's limit for the summary of a step. It does not show a larger summary."""
MAX_ANNOTATIONS = 10
"""Annotations of one level that GitHub shows for a step."""
_CUT = "\n\n*The rest is left out: a summary can have 1 MiB.*\n"
_END_OF_FOLD = "\n\n</details>"
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff]")


# --- the variables of a job ------------------------------------------------------------------------------------------


def _variable(*names: str) -> str:
    """The value of the first of these environment variables that is set; ``""`` if none is."""
    return next(filter(None, map(os.environ.get, names)), "") or ""


def base_branch() -> str | None:
    """The branch that a pull request or merge request is for; None in other jobs."""
    return (
        _variable(
            "GITHUB_BASE_REF",
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME",
            "CHANGE_TARGET",  # Jenkins
            "SYSTEM_PULLREQUEST_TARGETBRANCHNAME",  # Azure
            "BUILDKITE_PULL_REQUEST_BASE_BRANCH",
            "BITBUCKET_PR_DESTINATION_BRANCH",
        )
        or None
    )


def own_branch() -> str:
    """The branch that the job is for; ``""`` if the runner names none."""
    return _variable("GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME")


def base_revisions() -> list[str]:
    """Revisions at which the base branch of a pull request may be found, the most exact one first.

    - GitHub checks out a merge commit. Its first parent is the base branch.
    - GitLab names the commit in a variable.
    - Elsewhere it is the remote branch, if that was fetched.
    """
    merge = os.environ.get("GITHUB_SHA") if os.environ.get("GITHUB_REF", "").endswith("/merge") else None
    commit = f"{merge}^1" if merge else _variable("CI_MERGE_REQUEST_DIFF_BASE_SHA")
    return [*([commit] if commit else []), f"origin/{base_branch()}"]


def base_commit(opened: Anvil, say: Callable[[str], None]) -> str | None:
    """The commit that a pull request is compared with. None if the checkout does not have it, and ``say`` gets why."""
    reason = (
        'this checkout lacks its commits. Fetch the history: "fetch-depth: 0" for actions/checkout, or GIT_DEPTH: "0" '
        "at GitLab."
    )
    try:
        repository = Repository.discover(opened.folder or Path.cwd())
        if repository is not None:
            for revision in base_revisions():
                with suppress(AnvilError):
                    return repository.resolve(revision)
    except AnvilError as error:  # such as a repository of another user
        reason = str(error)
    say(f"This change is not compared with {base_branch()}: {reason}")
    return None


class PullRequest(NamedTuple):
    """A pull request of GitHub, or a merge request of GitLab. ``title`` is ``""`` and ``number`` None if unknown."""

    title: str
    number: int | None


def pull_request() -> PullRequest:
    """The pull request of the job. Its title is known at GitHub, GitLab and Jenkins, its number at GitHub."""
    event = os.environ.get("GITHUB_EVENT_PATH")
    payload = None
    with suppress(OSError, ValueError):  # an unreadable file costs the title and the number, not the job
        payload = json_object(safe_files.text(Path(event))) if event else None
    request = (payload or {}).get("pull_request")
    title, number = (request.get("title"), request.get("number")) if isinstance(request, dict) else (None, None)
    title = title if isinstance(title, str) else _variable("CI_MERGE_REQUEST_TITLE", "CHANGE_TITLE")
    return PullRequest(title, number if type(number) is int and number > 0 else None)


def checkout_path(opened: Anvil, path: str) -> str | None:
    """The path of a page as of :func:`_from_checkout`; None if it is no file here."""
    return None if opened.folder is None else _from_checkout(opened.folder.resolve() / path)


def _from_checkout(file: Path) -> str | None:
    """The path of an absolute file from the root of GitHub's checkout, None if it is outside of it; elsewhere its path
    from the working folder (POSIX)."""
    workspace = os.environ.get("GITHUB_WORKSPACE")
    if not workspace:
        return Path(safe_files.from_working_folder(file)).as_posix()
    root = Path(workspace).resolve()
    return file.relative_to(root).as_posix() if file.is_relative_to(root) else None


# --- the output of a job ---------------------------------------------------------------------------------------------


def runner(environment: Mapping[str, str], say: Callable[[str], None], summary: str | None) -> Runner:
    """The runner of this job, by its environment.

    ``say`` prints a line to stdout or stderr: GitHub's runner reads commands from both (its ScriptHandler).
    ``summary`` is a file for the summary, instead of GitHub's own.
    """
    if environment.get("GITHUB_ACTIONS") == "true":
        return GitHub(say, environment.get("GITHUB_OUTPUT"), summary or environment.get("GITHUB_STEP_SUMMARY"))
    return Runner(say, None, summary)


def visible(text: str) -> str:
    """``text`` on one line, with invisible characters, line breaks and marks of the writing direction escaped."""
    return _UNSEEN.sub(lambda match: _escape_character(match[0]), text)


def _escape_character(character: str) -> str:
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character) or f"\\u{ord(character):04x}"


class Runner:
    """The outputs of a job in a plain log, such as GitLab's or a terminal.

    ``output`` is the file for the values that later steps use, ``summary`` the file for the summary.
    """

    def __init__(self, say: Callable[[str], None], output: str | None, summary: str | None) -> None:
        self._say = say
        self._output = output
        self._summary = summary

    def line(self, text: str) -> None:
        self._say(visible(text))

    def annotate(self, level: Level, message: str, file: str | None = None, line: int | None = None) -> None:
        """Print a message with its level. ``file`` is relative to the checkout."""
        location = "" if file is None else f"{file}:{line or 1}: "
        self.line(f"{level}: {location}{message}")

    def show(self, notes: Iterable[Note], max_per_level: int | None = None) -> None:
        """Print notes as annotations. Notes above ``max_per_level`` are plain lines of the log."""
        shown = Counter[Level]()
        for note in notes:
            shown[note.level] += 1
            if max_per_level is None or shown[note.level] <= max_per_level:
                self.annotate(*note)
            else:
                Runner.annotate(self, *note)

    def output(self, values: Mapping[str, str]) -> None:
        if self._output:
            _append(self._output, "".join(output_entry(name, value) for name, value in values.items()))

    def summarize(self, markdown: str) -> None:
        if self._summary:
            used_bytes = os.path.getsize(self._summary) if os.path.exists(self._summary) else 0
            _append(self._summary, truncate(markdown, max(MAX_SUMMARY_BYTES - used_bytes, 0), _CUT))


class GitHub(Runner):
    """GitHub's runner. Its documentation is "Workflow commands for GitHub Actions"."""

    def line(self, text: str) -> None:
        # A workflow command is "::name::" at the start of a line, or "##[name]" anywhere. A backslash disables both.
        escaped = visible(text).replace("##[", "##\\[")
        self._say(f"\\{escaped}" if escaped.lstrip().startswith("::") else escaped)

    def annotate(self, level: Level, message: str, file: str | None = None, line: int | None = None) -> None:
        location = {} if file is None else {"file": file, "line": str(line or 1)}
        self._say(command(level, message, {**location, "title": "Anvil"}))


def command(name: str, message: str, properties: Mapping[str, str]) -> str:
    """A workflow command for GitHub's runner: ``::warning file=a.md,line=1::message``, with escaped values."""
    escaped = {key: _command_value(value).replace(":", "%3A").replace(",", "%2C") for key, value in properties.items()}
    return f"::{name} {','.join(f'{key}={value}' for key, value in escaped.items())}::{_command_value(message)}"


def _command_value(text: str) -> str:
    escaped = _UNSEEN.sub(lambda match: match[0] if match[0] in "\r\n" else _escape_character(match[0]), text)
    return escaped.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def output_entry(name: str, value: str) -> str:
    """An entry of the file ``GITHUB_OUTPUT``. The delimiter is random, so that no value can contain it."""
    if "\n" not in value and "\r" not in value:
        return f"{name}={value}\n"
    delimiter = f"end-{uuid.uuid4().hex}"
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"


def truncate(markdown: str, max_bytes: int, cut: str) -> str:
    """``markdown`` of at most ``max_bytes``. A longer text is cut at the end of a line, and ends with ``cut``."""
    data = markdown.encode()
    if len(data) <= max_bytes:
        return markdown
    room = max(max_bytes - len(f"{_END_OF_FOLD}{cut}".encode()), 0)
    kept = data[:room].rpartition(b"\n")[0].decode("utf-8", "ignore")
    is_folded = kept.count("<details>") > kept.count("</details>")  # an open block would hide the notice
    return kept + (_END_OF_FOLD * is_folded + cut if room else "")


def _append(path: str, text: str) -> None:
    with (
        safe_files.writing(Path(path)),
        Path(path).open("a", encoding="utf-8", errors="surrogateescape", newline="\n") as file,
    ):
        file.write(text)


# --- notes, at the lines of pages ------------------------------------------------------------------------------------


class Note(NamedTuple):
    """A message about a page. ``file`` is its path in the checkout, None if it has none. ``line`` is 1-based."""

    level: Level
    message: str
    file: str | None = None
    line: int | None = None


_SEVERITIES: Mapping[Level, str] = {"notice": "info", "warning": "minor", "error": "major"}


def code_quality(notes: Iterable[Note], check: str) -> str:
    """A Code Quality report for GitLab, in JSON, of the notes that have a file. ``check`` is the name of the command.

    A fingerprint does not depend on the line, so a finding keeps it when lines move.
    """
    issues = []
    repeats: Counter[tuple[str, str]] = Counter()
    for level, message, file, line in notes:
        if file is not None:
            repeats[file, message] += 1
            key = "\0".join((check, file, message, str(repeats[file, message])))
            fingerprint = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:32]
            location = {"path": file, "lines": {"begin": line or 1}}
            issue = {"description": message, "check_name": check, "fingerprint": fingerprint}
            issues.append({**issue, "severity": _SEVERITIES[level], "location": location})
    return json.dumps(issues, indent=1)


def stale_notes(changes: Changes, opened: Anvil, reader: Reader) -> Iterator[Note]:
    """A note for each stale page, changed pages first."""
    for path in changes.changed:
        line = _first_different_line(path, opened, reader)
        yield Note("warning", "The index has an older text of this page.", checkout_path(opened, path), line)
    for path in changes.added:
        yield Note("warning", "The index does not have this page.", checkout_path(opened, path), 1)
    for path in changes.removed:
        yield Note("warning", f"The index still has {path}, which was removed.")


def lint_notes(findings: Iterable[LintFinding], opened: Anvil) -> Iterator[Note]:
    for finding in findings:
        level: Level = "notice" if finding.level == "note" else finding.level
        yield Note(level, f"{finding.message} [{finding.rule}]", checkout_path(opened, finding.path), finding.line)


def impact_notes(
    findings: Iterable[AffectedSection], undocumented: Iterable[Undocumented], opened: Anvil
) -> Iterator[Note]:
    """A note for each section that a change probably makes wrong, and for each addition that no page has."""
    for finding in findings:
        reasons = "; ".join(finding.reasons[:2])
        message = f"This section may be wrong after this change (confidence {finding.confidence:.2f}): it {reasons}."
        yield Note("notice", message, checkout_path(opened, finding.path), finding.line)
    for addition in undocumented:
        yield Note("notice", f"No page has the {addition.kind} {addition.name}.", addition.path, addition.line)


def question_notes(report: TestReport, opened: Anvil) -> Iterator[Note]:
    """Notes on the questions of a suite.

    A question that got worse has its note at the page that lost. Another failed question has it in the suite.
    """
    comparison = report.comparison
    worse = comparison.worse if comparison is not None else ()
    for difference in worse:
        level: Level = "error" if difference.decisive else "warning"
        file = checkout_path(opened, difference.page) if difference.page else None
        message = f"{difference.after.question.ask!r}: {movement(difference)}"
        yield Note(level, message, file, difference.line if file else None)
    suite = _from_checkout(Path(report.suite).resolve())
    worse_questions = {difference.after.question for difference in worse}
    for outcome in report.failed:
        if outcome.question not in worse_questions:
            level = "warning" if report.passed else "error"
            yield Note(level, failure_sentence(outcome), suite, outcome.question.line or 1)


def _first_different_line(path: str, opened: Anvil, reader: Reader) -> int:
    from anvil.doc_tests.comparing import first_difference

    indexed = reader.document(path)
    document = opened.tree.read(path) if opened.tree else None
    if indexed is None or not isinstance(document, Document):
        return 1
    page = markdown_sections.parse(document.text)
    line = first_difference(page_text(reader.page_chunks(indexed.id)), page.text, page.first_line)
    return source_line(line, document.inserted)
