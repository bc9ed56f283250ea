"""A suite of questions: its file, its TOML, today's answers that are written into it, and suggested questions.

An error is one message that names the file, the line and the key.
"""

from __future__ import annotations

import difflib
import itertools
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

from anvil.doc_tests.values import Expectation, Question, Suite, TestReport, expected_address
from anvil.errors import ConfigError
from anvil.formats import data_formats
from anvil.formats.data_formats import toml_string
from anvil.index_file.reader import IndexReader
from anvil.results import Mode
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

_TABLES = ("defaults", "question", "suite")
_DEFAULTS = ("within", "mode")
_QUESTION = ("ask", "expect", "within", "mode", "filter")
_SUITE = ("min_hit", "min_mrr")
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?(?:"""|\\?\Z)|'
    r"'''.*?(?:'''|\Z)"
    r'|"(?:\\[^\n]|[^"\\\n])*"?'
    r"|'[^'\n]*'?|#[^\n]*"
    r"|^(?P<header>[^\S\n]*\[\[[^\S\n]*(?:question|\"question\"|'question')[^\S\n]*\]\])",
    re.DOTALL | re.MULTILINE,
)
"""A string of several lines, a string, a comment, or the header of a question."""


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
    table = read_table(text, origin)
    _check_keys(table, _TABLES, origin)
    defaults = _table(table, "defaults", _DEFAULTS, origin)
    bars = _table(table, "suite", _SUITE, origin)
    entries = table.get("question", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ConfigError(f"{origin}: question must be a list of tables. Write each under [[question]].")
    if not entries:
        raise ConfigError(f"{origin} holds no question. Write one under [[question]], with the key ask.")
    if len(entries) > MAX_QUESTIONS:
        raise ConfigError(f"{origin} holds {len(entries):,} questions. At most {MAX_QUESTIONS:,} are asked.")
    lines = question_lines(text)
    if len(lines) != len(entries):
        lines = [0] * len(entries)  # written in another way, such as an inline list
    place = f"{origin}, [defaults]"
    first = Question("", within=_within(defaults, place, 5), mode=_mode(defaults, place, "hybrid"))
    questions = tuple(
        _question(entry, first, f"{origin}, line {line}" if line else f"{origin}, question {number}", line)
        for number, (entry, line) in enumerate(zip(entries, lines, strict=True), 1)
    )
    _refuse_duplicates(questions, origin)
    min_hit, min_mrr = (_share(bars, key, origin) for key in _SUITE)
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


def _question(entry: Mapping[str, Any], defaults: Question, place: str, line: int) -> Question:
    _check_keys(entry, _QUESTION, place)
    if "ask" not in entry:
        raise ConfigError(f'{place}: the question has no ask. Write its text as ask = "...".')
    ask = _string(entry["ask"], "ask", place).strip()
    if not ask:
        raise ConfigError(f"{place}: ask is empty. Write the question as a user would ask it.")
    if len(ask) > MAX_ASK_CHARS:
        raise ConfigError(f"{place}: ask has {len(ask):,} characters. A question has at most {MAX_ASK_CHARS:,}.")
    expect, nothing = _expected(entry["expect"], place) if "expect" in entry else ((), False)
    glob = _string(entry["filter"], "filter", place) if "filter" in entry else None
    return replace(
        defaults,
        ask=ask,
        expect=expect,
        nothing=nothing,
        within=_within(entry, place, defaults.within),
        mode=_mode(entry, place, defaults.mode),
        filter=glob,
        line=line,
    )


def _expected(value: Any, place: str) -> tuple[tuple[Expectation, ...], bool]:
    """The pages that a question expects, and whether it expects that nothing answers."""
    items = value if isinstance(value, list) else [value]
    texts = [_string(item, "expect", place).strip() for item in items]
    if texts == [NOTHING] and not isinstance(value, list):
        return (), True
    if NOTHING in texts:
        raise ConfigError(f'{place}: expect lists "{NOTHING}" with others. Write expect = "{NOTHING}" alone.')
    if not texts or not all(texts):
        raise ConfigError(
            f'{place}: expect is empty. Name a page, such as "guide.md" or "guide.md#heading", or leave the key '
            "out and run 'anvil test --update'."
        )
    return tuple(dict.fromkeys(expectation(text) for text in texts)), False


def expectation(text: str) -> Expectation:
    """``page`` or ``page#heading``."""
    page, _, section = text.partition("#")
    plain = posixpath.normpath(page.strip().replace("\\", "/").lstrip("/")) if page.strip() else ""
    return Expectation(plain, section.strip())


def _refuse_duplicates(questions: Iterable[Question], origin: str) -> None:
    seen: dict[tuple[str, str, str | None], Question] = {}
    for question in questions:
        key = (" ".join(question.ask.casefold().split()), question.mode, question.filter)
        if key in seen:
            where = f", lines {seen[key].line} and {question.line}" if question.line else ""
            raise ConfigError(
                f"{origin}{where}: the question {shown(question.ask)} is asked twice. Keep one of them, with all the "
                "pages that may answer in expect."
            )
        seen[key] = question


def _check_keys(table: Mapping[str, Any], known: Collection[str], place: str) -> None:
    for key in table:
        if key not in known:
            close = difflib.get_close_matches(key[:SHOWN_CHARS], known, n=1, cutoff=0.5)
            hint = f"Did you mean {close[0]}?" if close else f"Known keys: {', '.join(known)}."
            raise ConfigError(f"{place}: unknown key {shown(key)}. {hint}")


def _table(table: Mapping[str, Any], key: str, known: Collection[str], origin: str) -> Mapping[str, Any]:
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise ConfigError(f"{origin}: {key} must be a table. Write its keys under [{key}].")
    _check_keys(value, known, f"{origin}, [{key}]")
    return value


def _string(value: Any, key: str, place: str) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{place}: {key} must be a text in quotes, not {_kind(value)}.")
    if any(0xD800 <= ord(character) <= 0xDFFF for character in value) or "\0" in value:
        raise ConfigError(f"{place}: {key} holds characters that are no text. Write it again.")
    return value


def _within(table: Mapping[str, Any], place: str, default: int) -> int:
    value = table.get("within", default)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_WITHIN:
        raise ConfigError(f"{place}: within is {_shown_value(value)}. Use a number of results from 1 to {MAX_WITHIN}.")
    return value


def _mode(table: Mapping[str, Any], place: str, default: Mode) -> Mode:
    value = table.get("mode", default)
    if value not in get_args(Mode):
        raise ConfigError(f"{place}: mode is {_shown_value(value)}. Use one of {', '.join(get_args(Mode))}.")
    return cast("Mode", value)


def _share(table: Mapping[str, Any], key: str, origin: str) -> float | None:
    value = table.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ConfigError(f"{origin}, [suite]: {key} is {_shown_value(value)}. Use a share from 0 to 1, such as 0.9.")
    return float(value)


def _kind(value: object) -> str:
    names = {bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "a table"}
    return names.get(type(value), "a date")


def _shown_value(value: object) -> str:
    return shown(value) if isinstance(value, str) else str(value) if isinstance(value, (int, float)) else _kind(value)


def shown(text: str) -> str:
    """A text of the file as a message repeats it: in quotes, on one line, cut."""
    plain = " ".join(text.split())
    return repr(plain if len(plain) <= SHOWN_CHARS else plain[: SHOWN_CHARS - 1] + "…")


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
    Raises :class:`ConfigError` where an answer cannot be added, as to a text that has other questions than those that
    were asked."""
    asked = {number: outcome for number, outcome in enumerate(report.outcomes) if outcome.status == "new"}
    answers = {number: outcome.likely_address for number, outcome in asked.items() if outcome.likely_address}
    new = {number: question.ask for number, question in enumerate(parse(text, origin).questions) if question.new}
    if any(new.get(number) != asked[number].ask for number in answers):
        raise ConfigError(f"{origin} was edited since its questions were asked. Run 'anvil test --update' again.")
    return with_answers(text, answers, origin)


def suggestions(reader: IndexReader, suite: Suite | None, logged: Collection[str] = ()) -> Iterator[str]:
    """TOML of questions that are not in ``suite`` yet: headings that are questions, entries of FAQs, and the ``logged``
    questions, without ``expect``. Without any and without a suite, the first sections of some pages, to be put as
    questions."""
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
    """(question, section) of each heading of a page that ends in a question mark or is in a FAQ: its page, or a heading
    above it, has such a name."""
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
