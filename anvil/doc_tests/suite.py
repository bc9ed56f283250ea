"""A suite of questions: its TOML file, answers that are recorded in it, and suggested questions.

An error is one message with the file, the line and the key.
"""

from __future__ import annotations

import itertools
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anvil import wording
from anvil.doc_tests.values import Expectation, Question, Suite, TestReport, expected_address
from anvil.errors import ConfigError
from anvil.formats import data_formats
from anvil.formats.data_formats import toml_string
from anvil.index_file.reader import IndexReader
from anvil.results import Mode
from anvil.settings.configuration import merged
from anvil.settings.schema import one_of, within
from anvil.system import safe_files
from anvil.values import Section

FILE_NAME = "anvil-tests.toml"
NOTHING = "nothing"
"""The ``expect`` of a question that no page should answer."""
MAX_FILE_BYTES = 2_000_000
MAX_QUESTIONS = 10_000
MAX_ASK_CHARS = 2000
"""Characters of a question: more than the bundled model reads."""
MAX_WITHIN = 20
"""The most results that a search returns."""
SHOWN_CHARS = 80
"""Characters of a question or value that a message repeats."""

_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?(?:"""|\\?\Z)|'
    r"'''.*?(?:'''|\Z)"
    r'|"(?:\\[^\n]|[^"\\\n])*"?'
    r"|'[^'\n]*'?|#[^\n]*"
    r"|^(?P<header>[^\S\n]*\[\[[^\S\n]*(?:question|\"question\"|'question')[^\S\n]*\]\])",
    re.DOTALL | re.MULTILINE,
)
"""A multi-line string, a string, a comment, or the header of a question."""


@dataclass(frozen=True, slots=True)
class _Defaults:
    """The table ``[defaults]``."""

    within: int = 5
    mode: Mode = "hybrid"

    def __post_init__(self) -> None:
        within("within", self.within, 1, MAX_WITHIN)
        one_of("mode", self.mode, Mode)


@dataclass(frozen=True, slots=True)
class _Entry(_Defaults):
    """A table ``[[question]]``."""

    ask: str = ""
    expect: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class _Minimums:
    """The table ``[suite]``."""

    min_hit: float | None = None
    min_mrr: float | None = None

    def __post_init__(self) -> None:
        within("min_hit", self.min_hit or 0, 0, 1)
        within("min_mrr", self.min_mrr or 0, 0, 1)


@dataclass(frozen=True, slots=True)
class _File:
    """The whole file."""

    defaults: _Defaults = field(default_factory=_Defaults)
    question: object = ()
    suite: _Minimums = field(default_factory=_Minimums)


def load(path: Path | None, docs: Path | None, base: Path) -> Suite:
    """The suite in the file ``path``, by default the nearest :data:`FILE_NAME`.

    This is in the documentation folder, or in a folder above it up to the root of the repository. Without a
    documentation folder, the search begins in ``base``. Raises :class:`ConfigError` for a missing or invalid file.
    """
    file = path or next((candidate for candidate in _candidates(docs, base) if candidate.is_file()), None)
    if file is None:
        folder = docs.absolute().parent if docs is not None else base
        raise ConfigError(
            f"There is no {FILE_NAME} in {folder}. Write questions into it, or begin with: "
            f"anvil test --suggest > {FILE_NAME}"
        )
    return parse(read(file), str(file))


def _candidates(docs: Path | None, base: Path) -> Iterator[Path]:
    start = (docs or base).absolute()
    for folder in (start, *start.parents):
        yield folder / FILE_NAME
        if (folder / ".git").exists() or (folder / ".hg").exists():
            return
        if folder == start.parent and not any((above / ".git").exists() for above in folder.parents):
            return  # outside of a repository, only the documentation folder and its parent are searched


def read(path: Path) -> str:
    """The text of a suite. Raises :class:`ConfigError` if it cannot be read."""
    try:
        return safe_files.data(path, MAX_FILE_BYTES).decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"There is no {path}. Name the file of a suite, or none for {FILE_NAME}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path} cannot be read: {safe_files.reason(error)}. Correct the file, or name another."
        ) from None


def parse(text: str, origin: str = FILE_NAME) -> Suite:
    """The suite in the TOML of ``text``. Raises :class:`ConfigError` if it is not valid."""
    file = merged(_File(), read_table(text, origin), origin)
    entries = file.question
    if not isinstance(entries, list | tuple) or not all(isinstance(entry, dict) for entry in entries):
        raise ConfigError(f"{origin}: question must be a list of tables. Write each under [[question]].")
    if not entries:
        raise ConfigError(f"{origin} holds no question. Write one under [[question]], with the key ask.")
    if len(entries) > MAX_QUESTIONS:
        raise ConfigError(f"{origin} holds {len(entries):,} questions. At most {MAX_QUESTIONS:,} are asked.")
    lines = question_lines(text)
    if len(lines) != len(entries):
        lines = [0] * len(entries)  # the questions are written in another way, such as an inline list
    questions = tuple(
        _question(entry, file.defaults, f"{origin}, line {line}" if line else f"{origin}, question {number}", line)
        for number, (entry, line) in enumerate(zip(entries, lines, strict=True), 1)
    )
    _refuse_duplicates(questions, origin)
    min_hit, min_mrr = file.suite.min_hit, file.suite.min_mrr
    # without any minimum, all questions must be answered
    return Suite(questions, 1.0 if min_hit is None and min_mrr is None else min_hit, min_mrr, origin)


def read_table(text: str, origin: str) -> dict[str, Any]:
    """The TOML document. Raises :class:`ConfigError` if the text is not TOML, too long, or nested too deeply."""
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_FILE_BYTES:
        raise ConfigError(f"{origin} has {size:,} bytes. A suite has at most {MAX_FILE_BYTES:,}.")
    try:
        return data_formats.read_toml(text)
    except ValueError as error:
        raise ConfigError(f"{origin} is not TOML: {error}. Correct the file.") from None


def question_lines(text: str) -> list[int]:
    """The 1-based lines of the headers ``[[question]]``. Headers inside multi-line strings do not count."""
    lines: list[int] = []
    number, at = 1, 0
    for token in _TOKEN.finditer(text):
        if token["header"]:
            number += text.count("\n", at, token.start())
            at = token.start()
            lines.append(number)
    return lines


def _question(table: Mapping[str, Any], defaults: _Defaults, place: str, line: int) -> Question:
    values = {key: [value] if key == "expect" and isinstance(value, str) else value for key, value in table.items()}
    entry = merged(_Entry(defaults.within, defaults.mode), values, place)
    ask = entry.ask.strip()
    if not ask:
        raise ConfigError(f'{place}: the question has no ask. Write it as a user would, as ask = "...".')
    if len(ask) > MAX_ASK_CHARS:
        raise ConfigError(f"{place}: ask has {len(ask):,} characters. A question has at most {MAX_ASK_CHARS:,}.")
    texts = [text.strip() for text in entry.expect or ()]
    if entry.expect is not None and not (texts and all(texts)):
        raise ConfigError(
            f'{place}: expect is empty. Name a page, such as "guide.md" or "guide.md#heading", or leave the key '
            "out and run 'anvil test --update'."
        )
    if NOTHING in texts and len(texts) > 1:
        raise ConfigError(f'{place}: expect lists "{NOTHING}" with others. Write expect = "{NOTHING}" alone.')
    pages = tuple(dict.fromkeys(expectation(text) for text in texts if text != NOTHING))
    return Question(ask, pages, NOTHING in texts, entry.within, entry.mode, line)


def expectation(text: str) -> Expectation:
    """The expectation in a text such as ``page`` or ``page#heading``."""
    page, _, section = text.partition("#")
    plain = posixpath.normpath(page.strip().replace("\\", "/").lstrip("/")) if page.strip() else ""
    return Expectation(plain, section.strip())


def _refuse_duplicates(questions: Iterable[Question], origin: str) -> None:
    seen: dict[tuple[str, str], Question] = {}
    for question in questions:
        key = (" ".join(question.ask.casefold().split()), question.mode)
        if key in seen:
            where = f", lines {seen[key].line} and {question.line}" if question.line else ""
            raise ConfigError(
                f"{origin}{where}: the question {quoted(question.ask)} is asked twice. Keep one of them, with all the "
                "pages that may answer in expect."
            )
        seen[key] = question


def quoted(text: str) -> str:
    """A text of the file for a message: on one line, cut, in quotes."""
    return repr(wording.shown(" ".join(text.split()), SHOWN_CHARS))


# --- writing: questions and recorded answers -------------------------------------------------------------------------


def question_entry(ask: str, expect: str | None, comments: Iterable[str] = ()) -> str:
    """A question as TOML, below its ``comments``."""
    note = "".join(f"# {' '.join(comment.split())}\n" for comment in comments)
    line = "" if expect is None else f"expect = {toml_string(expect)}\n"
    return f"{note}[[question]]\nask = {toml_string(ask)}\n{line}"


def add_answers(text: str, answers: Mapping[int, str], origin: str) -> str:
    """``text`` with ``expect`` for questions that have none. ``answers``: 0-based number of the question -> ``expect``.

    Only lines are added: below ``ask``, or before an ``ask`` of several lines. Raises :class:`ConfigError` if the text
    is written in a way in which this is not possible.
    """
    before = read_table(text, origin)
    headers = question_lines(text)
    entries = before.get("question", [])
    lines = text.split("\n")
    if len(headers) == len(entries):
        for number, expect in sorted(answers.items(), reverse=True):  # from the end: lines before it keep their numbers
            header = headers[number] - 1
            end = headers[number + 1] - 1 if number + 1 < len(headers) else len(lines)
            ask = (at for at in range(header + 1, end) if re.match(r"\s*(ask|\"ask\"|'ask')\s*=", lines[at]))
            at = next(ask, header)
            if any("\n" in token[0] for token in _TOKEN.finditer(f"{lines[at]}\n")):
                at = header  # ask has several lines, so expect is written before it
            indent = re.match(r"\s*", lines[at])
            carriage_return = "\r" if lines[at].endswith("\r") else ""
            if at == len(lines) - 1 and "\r\n" in text:  # the last line has no line break
                lines[at] += "\r"
            lines.insert(at + 1, f"{indent[0] if indent else ''}expect = {toml_string(expect)}{carriage_return}")
    written = "\n".join(lines)
    # The text was edited by lines, so its values are compared with the former values and the answers.
    expected = [
        {**entry, "expect": answers[number]} if number in answers else entry for number, entry in enumerate(entries)
    ]
    try:
        after = read_table(written, origin)
    except ConfigError:
        after = {}
    if after != {**before, "question": expected}:
        raise ConfigError(
            f"{origin} is written in a way that answers cannot be added to. Write each question under a line "
            "[[question]], with ask on a line of its own."
        )
    return written


MAX_FIRST_QUESTIONS = 5
FIRST_QUESTION = "a heading of this page: ask what a reader would, in other words"
"""The comment on a suggested question that is still a heading."""


def record_answers(text: str, report: TestReport, origin: str) -> str:
    """The suite's text with the first answer to each question without ``expect``, if it is likely to answer.

    Raises :class:`ConfigError` if an answer cannot be added, such as to a text with other questions than in the report.
    """
    asked = {number: outcome for number, outcome in enumerate(report.outcomes) if outcome.status == "new"}
    answers = {number: outcome.likely_address for number, outcome in asked.items() if outcome.likely_address}
    new = {number: question.ask for number, question in enumerate(parse(text, origin).questions) if question.new}
    if any(new.get(number) != asked[number].question.ask for number in answers):
        raise ConfigError(f"{origin} was edited since its questions were asked. Run 'anvil test --update' again.")
    return add_answers(text, answers, origin)


def suggestions(reader: IndexReader, suite: Suite | None, logged: Collection[str] = ()) -> Iterator[str]:
    """Suggested questions that are not in ``suite``, as TOML.

    They are headings that are questions, entries of FAQs, and the ``logged`` questions, which have no ``expect``. If
    there are none, and no suite, they are the first sections of some pages.
    """
    seen = {comparison_key(question.ask) for question in suite.questions} if suite else set()
    before = len(seen)
    of_pages = (
        (ask, expected_address(document.file_path, section.anchor, section.heading_path), ())
        for document in reader.documents()
        for ask, section in questions_in(document.file_path, document.title, reader.sections(document.id))
    )
    for ask, expect, comments in (*of_pages, *((ask, None, ["from the question log"]) for ask in logged)):
        if len(ask) <= MAX_ASK_CHARS and comparison_key(ask) not in seen:
            seen.add(comparison_key(ask))
            yield question_entry(ask, expect, comments)
    if len(seen) > before or suite is not None:
        return
    for document in itertools.islice(reader.documents(), MAX_FIRST_QUESTIONS):
        sections = reader.sections(document.id)
        candidates = [section for section in sections if section.heading_level > 1] or list(sections)
        if candidates:
            first = candidates[0]
            ask = first.title if first.heading_level else document.title
            address = expected_address(document.file_path, first.anchor, first.heading_path)
            yield question_entry(ask[:MAX_ASK_CHARS], address, [FIRST_QUESTION])


def comparison_key(text: str) -> str:
    """The text by which questions are compared: without case, and without punctuation at its end."""
    return " ".join(text.casefold().split()).rstrip("?!. ")


MIN_WORDS = 3
"""The fewest words of a suggested heading. "Why?" alone is no question to ask."""
_FAQ = re.compile(
    r"\bfaqs?\b|frequently asked|^((common|frequent|general) )?questions( (and|&) answers)?$|^troubleshooting\b",
    re.IGNORECASE,
)


def questions_in(path: str, title: str, sections: Sequence[Section]) -> Iterator[tuple[str, Section]]:
    """(question, section) of each heading that ends in a question mark, or that is in a FAQ.

    A FAQ is recognized by the name or title of its page, or by a heading above the section.
    """
    faq_level = 0 if _FAQ.search(title) or _FAQ.search(path.rpartition("/")[2].partition(".")[0]) else None
    for section in sections:
        if section.heading_level == 0:
            continue
        if faq_level and section.heading_level <= faq_level:
            faq_level = None
        in_faq = faq_level is not None and section.heading_level > max(faq_level, 1)
        is_question = in_faq or section.title.endswith("?")
        if is_question and len(section.title.split()) >= MIN_WORDS:
            yield section.title, section
        if faq_level is None and _FAQ.search(section.title):
            faq_level = section.heading_level
