"""A suite of questions: its file, its TOML, today's answers that are written into it, and suggested questions.

An error is one message that names the file, the line and the key.
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
"""The ``expect`` of a question that no page answers."""
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
"""A string of several lines, a string, a comment, or the header of a question."""


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
class _Bars:
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
    suite: _Bars = field(default_factory=_Bars)


def load(path: Path | None, docs: Path | None, base: Path) -> Suite:
    """The suite in the file ``path``; without one, in the documentation folder or a folder above it, up to the root of
    the repository. ``base``: where to begin without a folder. Raises :class:`ConfigError`."""
    file = path or next((place for place in _candidates(docs, base) if place.is_file()), None)
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
            return  # in no repository: not further than the folder of the documents


def read(path: Path) -> str:
    """The text of a suite. Raises :class:`ConfigError`."""
    try:
        return safe_files.data(path, MAX_FILE_BYTES).decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"There is no {path}. Name the file of a suite, or none for {FILE_NAME}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path} cannot be read: {safe_files.reason(error)}. Correct the file, or name another."
        ) from None


def parse(text: str, origin: str = FILE_NAME) -> Suite:
    """The suite that ``text`` holds. Raises :class:`ConfigError`."""
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
        lines = [0] * len(entries)  # written in another way, such as an inline list
    questions = tuple(
        _question(entry, file.defaults, f"{origin}, line {line}" if line else f"{origin}, question {number}", line)
        for number, (entry, line) in enumerate(zip(entries, lines, strict=True), 1)
    )
    _refuse_duplicates(questions, origin)
    min_hit, min_mrr = file.suite.min_hit, file.suite.min_mrr
    # a suite that sets no bar expects all of its questions to be answered
    return Suite(questions, 1.0 if min_hit is None and min_mrr is None else min_hit, min_mrr, origin)


def read_table(text: str, origin: str) -> dict[str, Any]:
    """The TOML document. Raises :class:`ConfigError` for what is none, is too long, or is nested too deeply."""
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_FILE_BYTES:
        raise ConfigError(f"{origin} has {size:,} bytes. A suite has at most {MAX_FILE_BYTES:,}.")
    try:
        return data_formats.read_toml(text)
    except ValueError as error:
        raise ConfigError(f"{origin} is not TOML: {error}. Correct the file.") from None


def question_lines(text: str) -> list[int]:
    """The 1-based lines of the headers ``[[question]]``. Those inside multi-line strings do not count."""
    lines: list[int] = []
    number, at = 1, 0
    for token in _TOKEN.finditer(text):
        if token["header"]:
            number += text.count("\n", at, token.start())
            at = token.start()
            lines.append(number)
    return lines


def _question(table: Mapping[str, Any], defaults: _Defaults, place: str, line: int) -> Question:
    given = {key: [value] if key == "expect" and isinstance(value, str) else value for key, value in table.items()}
    entry = merged(_Entry(defaults.within, defaults.mode), given, place)
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
    """``page`` or ``page#heading``."""
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
                f"{origin}{where}: the question {shown(question.ask)} is asked twice. Keep one of them, with all the "
                "pages that may answer in expect."
            )
        seen[key] = question


def shown(text: str) -> str:
    """A text of the file as a message repeats it: in quotes, on one line, cut."""
    return repr(wording.shown(" ".join(text.split()), SHOWN_CHARS))


# --- writing ---------------------------------------------------------------------------------------------------------


def question_entry(ask: str, expect: str | None, comments: Iterable[str] = ()) -> str:
    """A question as TOML. ``comments``: lines before it."""
    note = "".join(f"# {' '.join(comment.split())}\n" for comment in comments)
    line = "" if expect is None else f"expect = {toml_string(expect)}\n"
    return f"{note}[[question]]\nask = {toml_string(ask)}\n{line}"


def with_answers(text: str, answers: Mapping[int, str], origin: str) -> str:
    """``text`` with ``expect`` written to questions that have none: number of the question (from 0) -> page or section.

    Only lines are added, each behind the line of ``ask``, so comments and order stay. Raises :class:`ConfigError` when
    the text is written in a way that this cannot be done for.
    """
    before = read_table(text, origin)
    headers = question_lines(text)
    entries = before.get("question", [])
    lines = text.split("\n")
    if len(headers) == len(entries):
        for number, expect in sorted(answers.items(), reverse=True):  # from the end: lines before it keep their numbers
            header = headers[number] - 1
            end = headers[number + 1] - 1 if number + 1 < len(headers) else len(lines)
            ask = (place for place in range(header + 1, end) if re.match(r"\s*(ask|\"ask\"|'ask')\s*=", lines[place]))
            place = next(ask, header)
            if any("\n" in token[0] for token in _TOKEN.finditer(f"{lines[place]}\n")):
                place = header  # a text of several lines: written before it
            indent = re.match(r"\s*", lines[place])
            carriage_return = "\r" if lines[place].endswith("\r") else ""
            if place == len(lines) - 1 and "\r\n" in text:  # the last line, without an end
                lines[place] += "\r"
            lines.insert(place + 1, f"{indent[0] if indent else ''}expect = {toml_string(expect)}{carriage_return}")
    written = "\n".join(lines)
    # The text was edited by lines. What it says now must be what it said, with these answers and nothing else.
    wanted = [
        {**entry, "expect": answers[number]} if number in answers else entry for number, entry in enumerate(entries)
    ]
    try:
        done = read_table(written, origin)
    except ConfigError:
        done = {}
    if done != {**before, "question": wanted}:
        raise ConfigError(
            f"{origin} is written in a way that answers cannot be added to. Write each question under a line "
            "[[question]], with ask on a line of its own."
        )
    return written


MAX_FIRST_QUESTIONS = 5
FIRST_QUESTION = "a heading of this page: ask what a reader would, in other words"
"""The comment on a question that is only a heading yet."""


def recorded(text: str, report: TestReport, origin: str) -> str:
    """The suite's text with today's first answer to each question without ``expect``, unless it is unlikely to answer.
    Raises :class:`ConfigError` where an answer cannot be added, as to a text with other questions than were asked."""
    asked = {number: outcome for number, outcome in enumerate(report.outcomes) if outcome.status == "new"}
    answers = {number: outcome.likely_address for number, outcome in asked.items() if outcome.likely_address}
    new = {number: question.ask for number, question in enumerate(parse(text, origin).questions) if question.new}
    if any(new.get(number) != asked[number].question.ask for number in answers):
        raise ConfigError(f"{origin} was edited since its questions were asked. Run 'anvil test --update' again.")
    return with_answers(text, answers, origin)


def suggestions(reader: IndexReader, suite: Suite | None, logged: Collection[str] = ()) -> Iterator[str]:
    """TOML of questions that are not in ``suite`` yet: headings that are questions, entries of FAQs, and the ``logged``
    questions, without ``expect``. Without any and without a suite, the first sections of some pages."""
    seen = {folded(question.ask) for question in suite.questions} if suite else set()
    before = len(seen)
    of_pages = (
        (ask, expected_address(document.file_path, section.anchor, section.heading_path), ())
        for document in reader.documents()
        for ask, section in questions_in(document.file_path, document.title, reader.sections(document.id))
    )
    for ask, expect, comments in (*of_pages, *((ask, None, ["from the question log"]) for ask in logged)):
        if len(ask) <= MAX_ASK_CHARS and folded(ask) not in seen:
            seen.add(folded(ask))
            yield question_entry(ask, expect, comments)
    if len(seen) > before or suite is not None:
        return
    for document in itertools.islice(reader.documents(), MAX_FIRST_QUESTIONS):
        sections = reader.sections(document.id)
        below = [section for section in sections if section.heading_level > 1] or list(sections)
        if below:
            first = below[0]
            ask = first.title if first.heading_level else document.title
            address = expected_address(document.file_path, first.anchor, first.heading_path)
            yield question_entry(ask[:MAX_ASK_CHARS], address, [FIRST_QUESTION])


def folded(text: str) -> str:
    """A question as two are compared: without case, and without signs at its end."""
    return " ".join(text.casefold().split()).rstrip("?!. ")


MIN_WORDS = 3
"""Words of a suggested heading: "Why?" says too little."""
_FAQ = re.compile(
    r"\bfaqs?\b|frequently asked|^((common|frequent|general) )?questions( (and|&) answers)?$|^troubleshooting\b",
    re.IGNORECASE,
)


def questions_in(path: str, title: str, sections: Sequence[Section]) -> Iterator[tuple[str, Section]]:
    """(question, section) of each heading that ends in a question mark or is in a FAQ, by the name of its page or of a
    heading above it."""
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
