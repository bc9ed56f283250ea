"""Asking the questions of a suite: the sections that they expect, their vectors, and whether they are answered."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass

from anvil.doc_tests.suite import quoted
from anvil.doc_tests.values import NO_CONFIDENCE, Answer, Expectation, Outcome, Question, Status, Suite
from anvil.embedding.provider import EmbeddingProvider
from anvil.errors import ConfigError
from anvil.index_file import table_rows
from anvil.index_file.reader import IndexReader
from anvil.requests import SearchRequest
from anvil.results import Hit
from anvil.search import pages
from anvil.search.confidence import UNLIKELY
from anvil.search.query_preparation import QueryVector, embed_query
from anvil.search.searcher import Searcher
from anvil.values import Progress, Section, silent
from anvil.wording import closest_names, closest_paths, full_heading

MIN_RESULTS = 10
"""The fewest results of a search. A report has the rank of the right page even if fewer results count."""
SHOWN_ANSWERS = 3
"""Results that an outcome has, the first ones of the search."""
MAX_CHARS = 1_000_000
"""Budget of a search, so large that no result is cut."""
MAX_PROBLEMS = 10
"""Unresolved expectations that one message lists."""


@dataclass(frozen=True, slots=True)
class ExpectedPart:
    """A page of an index, or a section with its subsections. ``start``, ``end``: in characters of the page's text."""

    document_id: int
    file_path: str
    start: int
    end: int
    headings: frozenset[str] | None
    """Breadcrumbs of the section and its subsections; None for a whole page."""
    line: int | None = 1
    """First line in the page's file."""


class ExpectedParts:
    """The parts of one index that expectations name. ``moved``: former path of a page -> its path in the index."""

    def __init__(self, reader: IndexReader, moved: Mapping[str, str] | None = None) -> None:
        self.reader = reader
        self.moved = moved or {}
        self._results: dict[Expectation, ExpectedPart | str] = {}

    def of(self, question: Question) -> list[ExpectedPart]:
        """The parts that a question expects, without those that are not in the index."""
        return [part for each in question.expect if isinstance(part := self.find(each), ExpectedPart)]

    def find(self, expectation: Expectation) -> ExpectedPart | str:
        """The expected part, or an error that follows the word "expect", with the closest names."""
        if expectation not in self._results:
            self._results[expectation] = self._look_up(expectation, self.reader)
        return self._results[expectation]

    def _look_up(self, expectation: Expectation, reader: IndexReader) -> ExpectedPart | str:
        path = self.moved.get(expectation.page, expectation.page)
        document = reader.document(path)
        if document is None:
            close = _closest_pages(expectation.page, reader)
            return f"names {quoted(expectation.page)}, which is no page. {close}"
        sections = reader.sections(document.id)
        end = sections[-1].end if sections else 0
        if not expectation.section:
            return ExpectedPart(document.id, path, 0, end, None)
        section = pages.find_section(expectation.section, document.title, sections)
        if section is None:
            closest = _closest_sections(expectation.section, sections)
            close = "; ".join(f"#{section.anchor}" if section.anchor else section.heading_path for section in closest)
            hint = f"Closest: {close}." if close else "'anvil show' prints the page."
            return f"names {quoted(str(expectation))}, but the page has no such heading, or more than one. {hint}"
        last = pages.last_of(section, sections)
        headings = frozenset(part.heading_path for part in sections[section.ordinal : last.ordinal + 1])
        return ExpectedPart(document.id, path, section.start, last.end, headings, section.start_line)


def _closest_pages(page: str, reader: IndexReader) -> str:
    paths = list(reader.identities())
    without_folder = [path for path in paths if page.endswith(f"/{path}")]  # of a path from the repository's root
    names = closest_paths(page, sorted(paths, key=len), without_folder, limit=2)
    return f"Closest: {', '.join(names)}." if names else "'anvil list' names the pages."


def _closest_sections(name: str, sections: tuple[Section, ...]) -> list[Section]:
    by_anchor = {section.anchor: section for section in sections if section.anchor}
    by_path = {section.heading_path: section for section in sections}
    close = [by_anchor[anchor] for anchor in closest_names(name[:200], by_anchor, 2, 0.5)]
    close += [by_path[path] for path in pages.closest_headings(name[:200], sections)]
    return list(dict.fromkeys(close))[:2]


def ensure_resolved(suite: Suite, indexes: Sequence[ExpectedParts]) -> None:
    """Raise :class:`ConfigError` if an expectation names no page or section of any of the indexes."""
    problems = []
    for number, question in enumerate(suite.questions, 1):
        for expectation in question.expect:
            if all(isinstance(parts.find(expectation), str) for parts in indexes):
                location = f"line {question.line}" if question.line else f"question {number}"
                problems.append(f"{suite.origin}, {location}: expect {indexes[0].find(expectation)}")
    if problems:
        more = len(problems) - MAX_PROBLEMS
        raise ConfigError("\n".join([*problems[:MAX_PROBLEMS], *([f"And {more} more like it."] if more > 0 else [])]))


class Asker:
    """Asks questions of one index."""

    def __init__(self, searcher: Searcher, parts: ExpectedParts, vectors: QuestionVectors) -> None:
        self._searcher = searcher
        self._vectors = vectors
        self._targets = parts
        self._anchors: dict[str, dict[str, str]] = {}
        self.notes: list[str] = []
        """Reasons why vectors are not used."""

    def ask_all(self, questions: Sequence[Question], progress: Progress = silent) -> tuple[Outcome, ...]:
        outcomes = []
        for done, question in enumerate(questions):
            progress("asking", done, len(questions))
            outcomes.append(self.ask(question))
        progress("asking", len(questions), len(questions))
        return tuple(outcomes)

    def ask(self, question: Question) -> Outcome:
        """The outcome of one question. Raises :class:`ConfigError` if the index cannot be searched in its mode."""
        count = max(question.within, MIN_RESULTS)
        vector = self._vectors.get(question) if self._searcher.semantic else None
        failure = self._searcher.obstacle or (
            f"Semantic search is off: {vector.error}" if vector and vector.error else ""
        )
        if failure and question.mode == "hybrid" and failure not in self.notes:
            self.notes.append(failure)
        request = SearchRequest(question.ask, count, max_chars=MAX_CHARS, mode=question.mode)
        results = self._searcher.search(request, vector)
        parts = self._targets.of(question)
        fitting = [[part for part in parts if self._fits(part, each.hit, each.row)] for each in results.ranked]
        return judge(
            question,
            [self._answer(hit) for hit in results.hits],
            [bool(fits) for fits in fitting],
            [any(part.headings is not None for part in fits) for fits in fitting],
        )

    def _fits(self, part: ExpectedPart, hit: Hit, row: int) -> bool:
        """Whether a result is in the expected page, names the section or a subsection, or has the section's heading."""
        if row >> table_rows.CHUNK_BITS != part.document_id:
            return False
        named = (hit.metadata.heading_path, *(place.heading_path for place in hit.also or ()))
        if part.headings is None or not part.headings.isdisjoint(named):
            return True
        # A chunk of several short sections has the breadcrumb of the first section.
        chunk = self._searcher.index.reader.chunks([row])[row]
        return chunk.start <= part.start < chunk.start + len(chunk.content)

    def _answer(self, hit: Hit) -> Answer:
        place = hit.metadata
        return Answer(
            place.file_path,
            place.heading_path,
            full_heading(hit.title, place.heading_path),
            self._anchor(place.file_path, place.heading_path),
            place.start_line,
            hit.score,
            hit.confidence,
        )

    def _anchor(self, path: str, heading_path: str) -> str:
        if path not in self._anchors:
            reader = self._targets.reader
            document = reader.document(path)
            sections = reader.sections(document.id) if document else ()
            self._anchors[path] = {section.heading_path: section.anchor for section in sections}
        return self._anchors[path].get(heading_path, "")


def judge(question: Question, answers: Sequence[Answer], fits: Sequence[bool], sections: Sequence[bool]) -> Outcome:
    """The outcome of a question.

    ``fits``: whether each answer is expected. ``sections``: whether it is in an expected section. An answer that is
    only in an expected page counts if it is not unlikely to answer.
    """
    ranks = [rank for rank, fit in enumerate(fits, 1) if fit]
    counting = [rank for rank in ranks if sections[rank - 1] or not answers[rank - 1].is_unlikely]
    first_rank = next(iter(counting or ranks), None)  # a report shows also the rank of a page that does not count
    better = ""
    if question.weak and counting and not sections[counting[0] - 1]:
        better = answers[counting[0] - 1].address
    within = answers[: question.within]
    confidence = max((answer.confidence for answer in within if answer.confidence is not None), default=None)
    status: Status
    note = ""
    if question.new:
        status = "new"
    elif question.nothing:
        if answers and confidence is None:
            status, note = "unjudged", NO_CONFIDENCE
        else:
            status = "pass" if confidence is None or confidence < UNLIKELY else "fail"
    else:
        status = "pass" if counting and counting[0] <= question.within else "fail"
        if first_rank is not None:
            confidence = answers[first_rank - 1].confidence
    return Outcome(question, status, first_rank, confidence, tuple(answers[:SHOWN_ANSWERS]), note, better)


def hit_rate(outcomes: Iterable[Outcome]) -> float:
    """The share of judged questions that passed; 1 if none was judged."""
    judged = [outcome.status == "pass" for outcome in outcomes if outcome.is_judged]
    return sum(judged) / len(judged) if judged else 1.0


def mean_reciprocal_rank(outcomes: Iterable[Outcome]) -> float | None:
    """The mean of 1/rank over questions that expect a page, with 0 for questions without a rank; None without any."""
    ranks = [
        1 / outcome.rank if outcome.rank else 0.0
        for outcome in outcomes
        if outcome.is_judged and not outcome.question.nothing
    ]
    return sum(ranks) / len(ranks) if ranks else None


MAX_THREADS = 4
"""Questions that are embedded at the same time. The model runs without Python's lock, and uses several cores itself."""


class QuestionVectors(AbstractContextManager["QuestionVectors"]):
    """The vectors of questions, embedded in threads. A context manager, whose end cancels questions that wait."""

    def __init__(self, provider: EmbeddingProvider) -> None:
        self.provider = provider
        self._pool = ThreadPoolExecutor(min(os.cpu_count() or 1, MAX_THREADS), thread_name_prefix="anvil-questions")
        self._vectors: dict[str, Future[QueryVector]] = {}

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def prepare(self, questions: Iterable[Question]) -> None:
        """Start to embed all questions whose mode uses vectors."""
        for question in questions:
            if question.mode != "keyword" and question.ask not in self._vectors:
                self._vectors[question.ask] = self._pool.submit(embed_query, question.ask, self.provider)

    def get(self, question: Question) -> QueryVector | None:
        """The vector of a question; None if it was not prepared."""
        vector = self._vectors.get(question.ask)
        return None if vector is None else vector.result()
