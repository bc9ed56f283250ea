"""The log of a server: questions with the confidence of their answers, and reports about pages."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from anvil.doc_tests.question_log_file import QuestionLog
from anvil.doc_tests.secret_masking import masked
from anvil.doc_tests.suite import MAX_ASK_CHARS
from anvil.errors import AnvilError, ConfigError
from anvil.formats.timestamps import timestamp
from anvil.results import SearchResult
from anvil.values import address

Problem = Literal["outdated", "wrong", "missing"]
MAX_PAGES = 5
"""Pages of an answer that are logged."""
MAX_COMMENT_CHARS = 2000

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoggedQuestion:
    """A question as logged. ``time``: ISO 8601, UTC. ``pages``: the pages of the answer, best first."""

    time: str
    question: str
    index: str
    confidence: float | None
    pages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PageReport:
    """A report of an agent about a page; ``comment`` may be empty."""

    time: str
    problem: str
    page: str
    comment: str


def record(log: QuestionLog, index: str, query: str, result: SearchResult) -> None:
    """Log a question, masked and cut. A log that cannot be written costs a warning, never the answer."""
    pages = dict.fromkeys(address(hit.metadata.file_path, hit.collection, hit.version) for hit in result.results)
    entry = {
        "kind": "question",
        "time": _now(),
        "question": masked(query[: 2 * MAX_ASK_CHARS])[:MAX_ASK_CHARS],
        "index": index,
        "confidence": result.confidence,
        "pages": list(pages)[:MAX_PAGES],
    }
    try:
        log.append(entry)
    except (OSError, AnvilError) as error:
        logger.warning("The question was not logged: %s", error)


def report(log: QuestionLog, index: str, page: str, problem: str, comment: str) -> None:
    """Log a report about a page. Raises :class:`ConfigError` when it cannot be written."""
    if problem not in get_args(Problem):
        raise ConfigError(f"Unknown problem {problem!r}. Use one of {', '.join(get_args(Problem))}.")
    text = masked(comment[: 2 * MAX_COMMENT_CHARS])[:MAX_COMMENT_CHARS]
    entry = {"kind": "report", "time": _now(), "index": index, "page": page, "problem": problem, "comment": text}
    try:
        log.append(entry)
    except OSError as error:
        raise ConfigError(f"The report cannot be written to {log.path} ({error.strerror}). Free some space.") from error


def _now() -> str:
    return timestamp(time.time())


def questions(entries: Iterable[dict[str, Any]]) -> list[LoggedQuestion]:
    """The questions of a log, oldest first. Entries of another form are left out."""
    logged = []
    for entry in entries:
        question, confidence, pages = entry.get("question"), entry.get("confidence"), entry.get("pages")
        if entry.get("kind") == "question" and isinstance(question, str) and question.strip():
            logged.append(
                LoggedQuestion(
                    _text(entry, "time"),
                    question[:MAX_ASK_CHARS],
                    _text(entry, "index"),
                    confidence if isinstance(confidence, float) else None,
                    tuple(page for page in pages if isinstance(page, str)) if isinstance(pages, list) else (),
                )
            )
    return logged


def reports(entries: Iterable[dict[str, Any]]) -> list[PageReport]:
    """The reports about pages, oldest first."""
    return [
        PageReport(_text(entry, "time"), _text(entry, "problem"), _text(entry, "page"), _text(entry, "comment"))
        for entry in entries
        if entry.get("kind") == "report"
    ]


def _text(entry: dict[str, Any], key: str) -> str:
    value = entry.get(key)
    return value if isinstance(value, str) else ""
