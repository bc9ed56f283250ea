"""The question log of a server: questions with the confidence of their answers, and reports about pages.

Similar questions are grouped and asked again, to find the questions that the documents do not answer today.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from anvil import registry
from anvil.doc_tests.judging import MAX_CHARS
from anvil.doc_tests.suite import MAX_ASK_CHARS, comparison_key, question_entry
from anvil.errors import AnvilError, ConfigError
from anvil.formats.data_formats import json_object, timestamp
from anvil.git.objects import blob_id
from anvil.index_file import publish
from anvil.index_file.publish import keep_out_of_git
from anvil.requests import SearchRequest
from anvil.results import SearchResult
from anvil.search.confidence import UNLIKELY
from anvil.search.searcher import Searcher
from anvil.settings.schema import INDEX_FOLDER, Config
from anvil.system import safe_files
from anvil.values import Progress, address, silent
from anvil.wording import counted

T = TypeVar("T")
MAX_PAGES = 5
"""Pages of an answer that are logged, the first ones."""
MAX_COMMENT_CHARS = 2000

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoggedQuestion:
    """A question in the log. ``time``: ISO 8601, UTC."""

    time: str
    question: str


@dataclass(frozen=True, slots=True)
class PageReport:
    """A report of an agent about a page; ``comment`` may be empty."""

    time: str
    problem: str
    page: str
    comment: str


def record(log: QuestionLog, index: str, query: str, result: SearchResult) -> None:
    """Log a question, masked and cut. If this fails, there is a warning, and the question is answered anyway."""
    pages = dict.fromkeys(address(hit.metadata.file_path, hit.collection, hit.version) for hit in result.results)
    entry = {
        "kind": "question",
        "time": timestamp(time.time()),
        "question": masked(query[: 2 * MAX_ASK_CHARS])[:MAX_ASK_CHARS],  # masked first: half a key is not recognized
        "index": index,
        "confidence": result.confidence,
        "pages": list(pages)[:MAX_PAGES],
    }
    try:
        log.append(entry)
    except (OSError, AnvilError) as error:
        logger.warning("The question was not logged: %s", error)


def report(log: QuestionLog, index: str, page: str, problem: str, comment: str) -> None:
    """Log a report about a page. Raises :class:`ConfigError` if it cannot be written."""
    text = masked(comment[: 2 * MAX_COMMENT_CHARS])[:MAX_COMMENT_CHARS]
    now = timestamp(time.time())
    entry = {"kind": "report", "time": now, "index": index, "page": page, "problem": problem, "comment": text}
    try:
        log.append(entry)
    except OSError as error:
        raise ConfigError(f"The report cannot be written to {log.path} ({error.strerror}). Free some space.") from error


def questions(entries: Iterable[dict[str, Any]]) -> list[LoggedQuestion]:
    """The questions of a log, oldest first. Other entries, and empty questions, are left out."""
    logged = _of_kind(entries, "question", LoggedQuestion)
    return [replace(each, question=each.question[:MAX_ASK_CHARS]) for each in logged if each.question.strip()]


def reports(entries: Iterable[dict[str, Any]]) -> list[PageReport]:
    """The reports about pages, oldest first."""
    return list(_of_kind(entries, "report", PageReport))


def _of_kind(entries: Iterable[dict[str, Any]], kind: str, entry_type: type[T]) -> Iterator[T]:
    for entry in entries:
        if entry.get("kind") == kind:
            values = (entry.get(field.name) for field in fields(entry_type))  # type: ignore[arg-type]
            yield entry_type(*(value if isinstance(value, str) else "" for value in values))


EMAIL, SECRET = "[e-mail]", "[secret]"
_EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}")
_PEM = re.compile(r"-----BEGIN [A-Z ]{1,40}-----.*?(?:-----END [A-Z ]{1,40}-----|\Z)", re.DOTALL)
_USER_INFO = re.compile(r"(\w{1,20}://)[^\s/@]{1,200}@")
_NAMED = re.compile(
    r"""(?ix) (?<![^\W_])( pass(?:word|wd|phrase)? | pwd | secret | token | api[_-]?key | access[_-]?key
    | auth(?:orization)? | bearer | credentials? | client[_-]?secret )\b
    (["']?\s*(?:[:=]|\s(?:is|was)\s)\s*["']?(?:bearer\s+|basic\s+)?)
    ([^\s"',;]{4,})"""
)
_OPTION = re.compile(
    r"""(?ix) (?<!\S)( -p | --?[a-z-]{0,30}(?:pass(?:word|wd|phrase)?|pwd|secret|token|api[_-]?key)
    | password | passwd | passphrase )
    (\s+["']?) (?=[^\s"',;\d_]{0,200}(?:[\d_]|[^\w\s"',;?!.]))(?!-)([^\s"',;]{4,})"""
)
"""An option or the word, and a value after a blank that has a digit or a sign, which words of sentences do not have."""
_PASSWORD_OPTION = re.compile(
    r"""(?i)(?<!\S)(--?[a-z-]{0,30}(?:password|passwd|passphrase)\s+["']?)(?!-)([^\s"',;]{4,})"""
)
_CARD = re.compile(r"(?<![\w.])(?:\d[ -]?){12,18}\d(?![\w.]*\w)")
_BEARER = re.compile(r"(?i)\b(bearer|basic)(\s+)([A-Za-z0-9._~+/=-]{12,})")
_KNOWN = re.compile(
    r"\b(?:sk-|pk-|rk-|sk_live_|sk_test_|ghp_|gho_|ghs_|ghu_|ghr_|github_pat_|glpat-|xox[abprs]-|AKIA|ASIA|AIza|hf_|npm_"
    r"|pypi-|dop_v1_|SG\.|eyJ)[A-Za-z0-9._\-]{8,}"
)
_LONG = re.compile(r"(?<![\w/.-])[A-Za-z0-9+/_-]{24,}={0,2}(?![\w.-])")


def masked(text: str) -> str:
    """``text`` without what looks like an e-mail address, a password, a token or a key.

    They are recognized by their form. A secret in plain words is not recognized.
    """
    # Whole blocks are first. "name:password@host" is before e-mail addresses, because its end looks like an address.
    # Words that only look random are last, after the secrets with a known form are masked.
    text = _PEM.sub(SECRET, text)
    text = _USER_INFO.sub(rf"\1{SECRET}@", text)
    text = _EMAIL.sub(EMAIL, text)
    text = _KNOWN.sub(SECRET, text)
    text = _NAMED.sub(rf"\1\2{SECRET}", text)
    text = _PASSWORD_OPTION.sub(rf"\1{SECRET}", text)
    text = _OPTION.sub(rf"\1\2{SECRET}", text)
    text = _CARD.sub(lambda match: SECRET if _is_card(match[0]) else match[0], text)
    text = _BEARER.sub(rf"\1\2{SECRET}", text)
    return _LONG.sub(lambda match: SECRET if _is_random(match[0]) else match[0], text)


def _is_card(number: str) -> bool:
    """Whether a number has the check digit of card numbers (ISO/IEC 7812)."""
    digits = [int(character) for character in number if character.isdigit()]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_random(word: str) -> bool:
    """Whether a long word has digits among its letters, as keys have."""
    digits = sum(character.isdigit() for character in word)
    switches = sum(first.isdigit() != second.isdigit() for first, second in pairwise(word))
    return digits >= 3 and (switches >= 4 or digits >= len(word) // 2)


FILE_NAME = "questions.jsonl"
MAX_ENTRY_BYTES = 20_000
"""A longer line is not read, since Anvil writes no such lines."""


class QuestionLog:
    """The log at ``path``. A log of more than ``max_bytes`` is renamed to ``.old.jsonl``."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self.path = path
        self._max_bytes = max_bytes

    @classmethod
    def of(cls, docs_root: Path | None, name: str, config: Config) -> QuestionLog:
        """The log in the documentation folder's ``.anvil``. Without a folder, it is in the user's data folder, under a
        hash of the index's ``name``."""
        max_bytes = config.table(registry.load(registry.SETTINGS["serve"])).log_bytes
        if docs_root is not None:
            return cls(docs_root / INDEX_FOLDER / FILE_NAME, max_bytes)
        return cls(safe_files.user_data() / f"questions-{blob_id(name.encode())[:12]}.jsonl", max_bytes)

    def append(self, entry: Mapping[str, Any]) -> None:
        """Add an entry. Raises :class:`OSError`, such as on a full disk, and :class:`AnvilError` if it is a link."""
        if self.path.parent.name == INDEX_FOLDER:
            safe_files.ensure_inside_parent(self.path.parent)
            keep_out_of_git(self.path.parent)
        else:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + "\n"
        # one unbuffered write, so that the lines of several servers do not mix
        with open(self.path, "ab", buffering=0, opener=_open_private) as file:
            file.write(line.encode("utf-8", "replace"))
            full = os.fstat(file.fileno()).st_size > self._max_bytes
        if full:  # another server may do the same now; if it fails, the next entry tries again
            with suppress(AnvilError, OSError), publish.exclusive(self.path, 0):
                if self.path.stat().st_size > self._max_bytes:
                    safe_files.rename(self.path, self._old)

    @property
    def _old(self) -> Path:
        return self.path.with_suffix(".old.jsonl")

    def read(self) -> Iterator[dict[str, Any]]:
        """The entries, oldest first. Damaged lines, such as a line that a full disk cut, are left out."""
        for path in (self._old, self.path):
            try:
                with open(path, "rb", opener=safe_files.opener) as file:
                    while line := file.readline(MAX_ENTRY_BYTES + 1):
                        entry = json_object(line)
                        if entry is not None:
                            yield entry
            except FileNotFoundError:
                continue


def _open_private(path: str, flags: int) -> int:
    """An ``opener`` for a file that only this user can read, because masking cannot recognize all secrets."""
    descriptor = safe_files.opener(path, flags)
    if os.name != "nt" and os.fstat(descriptor).st_mode & 0o077:
        os.fchmod(descriptor, 0o600)
    return descriptor


MIN_COSINE = 0.75
"""Questions whose vectors have at least this cosine are similar."""
MAX_WORDINGS = 2000
"""Different wordings that are grouped, the latest of the log."""
MAX_SHOWN_WORDINGS = 5


@dataclass(frozen=True, slots=True)
class QuestionGroup:
    """Similar questions. ``question``: the most frequent wording. ``confidence``: of today's answer to it, None if the
    model gives none. ``page``: the page of today's first result, None if there is no result."""

    question: str
    count: int
    last_asked: str
    confidence: float | None
    page: str | None
    wordings: tuple[str, ...]

    @property
    def answered(self) -> bool:
        """Whether a page may answer the question today: there is a result, and it is not unlikely to answer."""
        return self.page is not None and (self.confidence is None or self.confidence >= UNLIKELY)


def question_groups(
    questions: Sequence[LoggedQuestion], searcher: Searcher, progress: Progress = silent
) -> list[QuestionGroup]:
    """The questions in groups, each asked again; unanswered groups first, then by number of questions."""
    counts: Counter[str] = Counter()
    last: dict[str, LoggedQuestion] = {}  # in the order of the latest occurrence
    for question in questions:
        key = comparison_key(question.question)
        counts[key] += 1
        last.pop(key, None)
        last[key] = question
    recent = list(last)[-MAX_WORDINGS:]
    order = sorted(recent, key=lambda key: (-counts[key], key))
    groups = []
    for done, keys in enumerate(_group(order, searcher, progress)):
        progress("asking again", done, len(order))
        most_frequent = last[keys[0]].question
        answer = searcher.search(SearchRequest(most_frequent, max_chars=MAX_CHARS, read_passages=False))
        confidences = [hit.confidence for hit in answer.hits if hit.confidence is not None]
        groups.append(
            QuestionGroup(
                most_frequent,
                sum(counts[key] for key in keys),
                max(last[key].time for key in keys),
                max(confidences, default=None),
                answer.hits[0].metadata.file_path if answer.hits else None,
                tuple(last[key].question for key in keys[1 : 1 + MAX_SHOWN_WORDINGS]),
            )
        )
    return sorted(groups, key=lambda group: (group.answered, -group.count, group.question))


def _group(keys: Sequence[str], searcher: Searcher, progress: Progress) -> list[list[str]]:
    """The questions in groups. A question joins the first group whose first question is similar, else it begins one.

    Without vectors, each question is a group.
    """
    vectors = _vectors(keys, searcher, progress)
    if vectors is None:
        return [[key] for key in keys]
    members: dict[int, list[str]] = {}  # number of the first question of a group -> its questions
    for number, key in enumerate(keys):
        cosines = vectors[list(members)] @ vectors[number] if members else ()
        near = (first for first, cosine in zip(members, cosines, strict=True) if cosine >= MIN_COSINE)
        members.setdefault(next(near, number), []).append(key)
    return list(members.values())


def _vectors(keys: Sequence[str], searcher: Searcher, progress: Progress) -> NDArray[np.float32] | None:
    if not searcher.semantic or not keys:
        return None
    rows = []
    try:
        for done, key in enumerate(keys):
            progress("comparing", done, len(keys))
            rows.append(searcher.provider.embed_query(key))
    except AnvilError:
        return None
    return np.stack(rows)


def as_tests(groups: Sequence[QuestionGroup]) -> list[str]:
    """The questions of groups as TOML for a suite, without ``expect``."""
    return [
        question_entry(
            " ".join(group.question.split()),
            None,
            [f"asked {counted(group.count, 'time')}", *(f"also: {wording}" for wording in group.wordings)],
        )
        for group in groups
    ]
