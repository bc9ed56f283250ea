"""Entries for a suite: today's answers to new questions, and suggested questions."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from anvil.doc_tests import judging
from anvil.doc_tests.suite import MAX_ASK_CHARS, entry, parse, with_answers
from anvil.doc_tests.values import Suite, TestReport
from anvil.errors import ConfigError
from anvil.index_file.reader import IndexReader
from anvil.values import Section

MAX_FIRST_QUESTIONS = 5
FIRST_QUESTION = "a heading of this page: ask what a reader would, in other words"
"""The comment on a question that is only a heading yet."""


class Recorded(NamedTuple):
    """Today's answer to a question: the number of the question in the suite (from 0), its text, and its new ``expect``;
    None where no result is likely to answer, so that a person has to decide."""

    number: int
    ask: str
    expect: str | None


def answers_of_today(report: TestReport) -> list[Recorded]:
    """The first result of each question without ``expect``, unless it is unlikely to answer."""
    return [
        Recorded(number, outcome.ask, judging.likely_address(outcome.answers))
        for number, outcome in enumerate(report.outcomes)
        if outcome.status == "new"
    ]


def recorded(text: str, answers: Iterable[Recorded], origin: str) -> str:
    """The suite's text with these answers. Raises :class:`ConfigError` where they cannot be added, as to a text that
    has other questions than those that were asked."""
    chosen = {answer.number: answer for answer in answers if answer.expect}
    new = {number: question.ask for number, question in enumerate(parse(text, origin).questions) if question.new}
    if any(new.get(number) != answer.ask for number, answer in chosen.items()):
        raise ConfigError(f"{origin} was edited since its questions were asked. Run 'anvil test --update' again.")
    return with_answers(text, {number: answer.expect for number, answer in chosen.items() if answer.expect}, origin)


def suggestions(reader: IndexReader, suite: Suite | None, logged: Collection[str] = ()) -> Iterator[str]:
    """TOML of questions that are not in ``suite`` yet: headings that are questions, entries of FAQs, and the ``logged``
    questions, without ``expect``. Without any and without a suite, :func:`_first_questions`."""
    found = False
    seen = {_folded(question.ask) for question in suite.questions} if suite else set()
    for document in reader.documents():
        for ask, section in questions_in(document.file_path, document.title, reader.sections(document.id)):
            if len(ask) <= MAX_ASK_CHARS and _folded(ask) not in seen:
                seen.add(_folded(ask))
                found = True
                yield entry(ask, _address(document.file_path, section))
    for ask in logged:
        if len(ask) <= MAX_ASK_CHARS and _folded(ask) not in seen:
            seen.add(_folded(ask))
            found = True
            yield entry(ask, None, "from the question log")
    if not found and suite is None:
        yield from _first_questions(reader)


def _first_questions(reader: IndexReader) -> Iterator[str]:
    """A start for a suite where no heading is a question: the first sections of some pages, to be put as questions."""
    for document in itertools.islice(reader.documents(), MAX_FIRST_QUESTIONS):
        sections = reader.sections(document.id)
        below = [section for section in sections if section.heading_level > 1] or list(sections)
        if below:
            ask = below[0].title if below[0].heading_level else document.title
            yield entry(ask[:MAX_ASK_CHARS], _address(document.file_path, below[0]), FIRST_QUESTION)


def _address(path: str, section: Section) -> str:
    """A section as a suite expects it; the page for text above all headings."""
    name = section.anchor or (section.heading_path if section.heading_level else "")
    return f"{path}#{name}" if name else path


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip("?")


MIN_WORDS = 3
"""Words of a suggested heading: "Why?" says too little."""
_FAQ = re.compile(r"\bfaqs?\b|frequently asked|^(common )?questions\b|^troubleshooting\b", re.IGNORECASE)


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
