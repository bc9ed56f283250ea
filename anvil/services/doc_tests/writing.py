"""Entries for a suite: today's answers to new questions, and suggested questions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from anvil.backends.store.reader_protocol import IndexReader
from anvil.core.doc_tests import suggesting
from anvil.core.doc_tests.suite import MAX_ASK_CHARS, entry, parse, with_answers
from anvil.core.search.confidence import UNLIKELY
from anvil.errors import ConfigError
from anvil.models.doc_tests import Outcome, Suite, TestReport


class Recorded(NamedTuple):
    """Today's answer to a question: the number of the question in the suite (from 0), its text, and its new ``expect``;
    None where no result is likely to answer, so that a person has to decide."""

    number: int
    ask: str
    expect: str | None


def answers_of_today(report: TestReport) -> list[Recorded]:
    """The first result of each question without ``expect``, unless it is unlikely to answer."""
    return [
        Recorded(number, outcome.ask, _likely(outcome))
        for number, outcome in enumerate(report.outcomes)
        if outcome.status == "new"
    ]


def _likely(outcome: Outcome) -> str | None:
    answer = outcome.answers[0] if outcome.answers else None
    if answer is None or (answer.confidence is not None and answer.confidence < UNLIKELY):
        return None
    return f"{answer.file_path}#{answer.anchor}" if answer.anchor else answer.file_path


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
    questions, without ``expect``."""
    seen = {_folded(question.ask) for question in suite.questions} if suite else set()
    for document in reader.documents():
        for ask, section in suggesting.questions_in(document.file_path, document.title, reader.sections(document.id)):
            if len(ask) <= MAX_ASK_CHARS and _folded(ask) not in seen:
                seen.add(_folded(ask))
                address = f"#{section.anchor}" if section.anchor else ""
                yield entry(ask, document.file_path + address)
    for ask in logged:
        if len(ask) <= MAX_ASK_CHARS and _folded(ask) not in seen:
            seen.add(_folded(ask))
            yield entry(ask, None, "from the question log")


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip("?")
