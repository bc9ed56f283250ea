"""Asking the questions of a suite, finding the sections that they expect, and judging whether they are answered."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass

from anvil.doc_tests.suite import shown
from anvil.doc_tests.values import NO_CONFIDENCE, Answer, Expectation, Outcome, Question, Status, Suite
from anvil.embedding.provider import EmbeddingProvider
from anvil.errors import ConfigError
from anvil.index_file import table_rows
from anvil.index_file.reader import IndexReader
from anvil.requests import SearchRequest
from anvil.results import Hit
from anvil.search import pages, searcher
from anvil.search.confidence import UNLIKELY
from anvil.search.searcher import Searcher
from anvil.values import Progress, Section, silent
from anvil.wording import closest_names, closest_paths, full_heading

MIN_RESULTS = 10
"""Results of a search, also where fewer count: a report gives the rank of the right page."""
SHOWN_ANSWERS = 3
"""First results in an outcome."""
MAX_CHARS = 1_000_000
"""Budget of a search: so large that no result is cut."""
MAX_PROBLEMS = 10
"""Unresolved expectations that one message lists."""


@dataclass(frozen=True, slots=True)
class ExpectedPart:
    """A page of an index, or a section of it with its subsections. Offsets count characters of the page's text."""

    document_id: int
    file_path: str
    start: int
    end: int
    headings: frozenset[str] | None
    """Breadcrumbs of the section and its subsections; None for a whole page."""
    line: int | None = 1
    """First line in the page's file."""


class ExpectedParts:
    """The pages and sections of one index that expectations name. ``moved``: renamed page -> its path in the index."""

    def __init__(self, reader: IndexReader, moved: Mapping[str, str] | None = None) -> None:
        self.reader = reader
        self.moved = moved or {}
        self._results: dict[Expectation, ExpectedPart | str] = {}

    def of(self, question: Question) -> list[ExpectedPart]:
        """The pages and sections that the question is about, as far as there are any."""
        return [part for each in question.expect if isinstance(part := self.find(each), ExpectedPart)]

    def find(self, expectation: Expectation) -> ExpectedPart | str:
        """The page or section; where there is none, why, with the closest names, to follow "expect"."""
        if expectation not in self._results:
            self._results[expectation] = self._look_up(expectation, self.reader)
        return self._results[expectation]

    def _look_up(self, expectation: Expectation, reader: IndexReader) -> ExpectedPart | str:
        path = self.moved.get(expectation.page, expectation.page)
        document = reader.document(path)
        if document is None:
            close = _closest_pages(expectation.page, reader)
            return f"names {shown(expectation.page)}, which is no page. {close}"
        sections = reader.sections(document.id)
        end = sections[-1].end if sections else 0
        if not expectation.section:
            return ExpectedPart(document.id, path, 0, end, None)
        section = pages.find_section(expectation.section, document.title, sections)
        if section is None:
            closest = _closest_sections(expectation.section, sections)
            close = "; ".join(f"#{section.anchor}" if section.anchor else section.heading_path for section in closest)
            hint = f"Closest: {close}." if close else "It has no headings."
            return f"names {shown(str(expectation))}, but the page has no such heading, or more than one. {hint}"
        last = pages.last_of(section, sections)
        headings = frozenset(part.heading_path for part in sections[section.ordinal : last.ordinal + 1])
        return ExpectedPart(document.id, path, section.start, last.end, headings, section.start_line)


def _closest_pages(page: str, reader: IndexReader) -> str:
    paths = list(reader.identities())
    without_folder = [path for path in paths if page.endswith(f"/{path}")]  # written from the repository's root
    names = closest_paths(page, sorted(paths, key=len), without_folder, limit=2)
    return f"Closest: {', '.join(names)}." if names else "'anvil list' names the pages."


def _closest_sections(name: str, sections: tuple[Section, ...]) -> list[Section]:
    by_anchor = {section.anchor: section for section in sections if section.anchor}
    by_path = {section.heading_path: section for section in sections}
    close = [by_anchor[anchor] for anchor in closest_names(name[:200], by_anchor, 2, 0.5)]
    close += [by_path[path] for path in pages.closest_headings(name[:200], sections)]
    return list(dict.fromkeys(close))[:2]


def ensure_resolved(suite: Suite, indexes: Sequence[ExpectedParts]) -> None:
    """Raise :class:`ConfigError` for expectations that name no page or section in any of the indexes."""
    problems = []
    for number, question in enumerate(suite.questions, 1):
        for expectation in question.expect:
            if all(isinstance(targets.find(expectation), str) for targets in indexes):
                location = f"line {question.line}" if question.line else f"question {number}"
                problems.append(f"{suite.origin}, {location}: expect {indexes[0].find(expectation)}")
    if problems:
        more = len(problems) - MAX_PROBLEMS
        raise ConfigError("\n".join([*problems[:MAX_PROBLEMS], *([f"And {more} more like it."] if more > 0 else [])]))


class Asker:
    """Asks questions of one index."""

    def __init__(self, searcher: Searcher, targets: ExpectedParts, vectors: QuestionVectors) -> None:
        self._searcher = searcher
        self._vectors = vectors
        self._targets = targets
        self._anchors: dict[str, dict[str, str]] = {}
        self.notes: list[str] = []
        """Sentences on why vectors are not used."""

    def ask_all(self, questions: Sequence[Question], progress: Progress = silent) -> tuple[Outcome, ...]:
        """The outcome of each question, in order."""
        outcomes = []
        for done, question in enumerate(questions):
            progress("asking", done, len(questions))
            outcomes.append(self.ask(question))
        progress("asking", len(questions), len(questions))
        return tuple(outcomes)

    def ask(self, question: Question) -> Outcome:
        """The outcome of one question. Raises :class:`ConfigError` for a mode that the index does not offer."""
        count = max(question.within, MIN_RESULTS)
        vector = self._vectors.get(question) if self._searcher.semantic else None
        failure = self._searcher.obstacle or (
            f"Semantic search is off: {vector.error}" if vector and vector.error else ""
        )
        if failure and question.mode == "hybrid" and failure not in self.notes:
            self.notes.append(failure)
        request = SearchRequest(question.ask, count, max_chars=MAX_CHARS, mode=question.mode)
        results = self._searcher.search(request, vector)
        targets = self._targets.of(question)
        fitting = [[target for target in targets if self._fits(target, each.hit, each.row)] for each in results.ranked]
        return judge(
            question,
            [self._answer(hit) for hit in results.hits],
            [bool(fits) for fits in fitting],
            [any(target.headings is not None for target in fits) for fits in fitting],
        )

    def _fits(self, target: ExpectedPart, hit: Hit, row: int) -> bool:
        """Whether a result is the page, names the section or one below it, or holds the section's heading."""
        if row >> table_rows.CHUNK_BITS != target.document_id:
            return False
        named = (hit.metadata.heading_path, *(place.heading_path for place in hit.also or ()))
        if target.headings is None or not target.headings.isdisjoint(named):
            return True
        # Short sections are one chunk with the next, and it has the breadcrumb of the first of them.
        chunk = self._searcher.index.reader.chunks([row])[row]
        return chunk.start <= target.start < chunk.start + len(chunk.content)

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
    """The outcome of a question. ``fits``: whether each answer is an expected one; ``sections``: whether it is in an
    expected section. One that is only of an expected page counts if it is not unlikely to answer."""
    places = [place for place, fit in enumerate(fits, 1) if fit]
    counting = [place for place in places if sections[place - 1] or not answers[place - 1].is_unlikely]
    rank = next(iter(counting), None) or next(iter(places), None)  # of one that does not count: how near it is
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
        if rank is not None:
            confidence = answers[rank - 1].confidence
    return Outcome(question, status, rank, confidence, tuple(answers[:SHOWN_ANSWERS]), note, better)


def hit_rate(outcomes: Iterable[Outcome]) -> float:
    """The share that passed of the questions that were judged; 1 when there are none."""
    judged = [outcome.status == "pass" for outcome in outcomes if outcome.is_judged]
    return sum(judged) / len(judged) if judged else 1.0


def mean_reciprocal_rank(outcomes: Iterable[Outcome]) -> float | None:
    """The mean of 1/rank over questions that expect a page, 0 for one that was not found; None without any."""
    ranks = [
        1 / outcome.rank if outcome.rank else 0.0
        for outcome in outcomes
        if outcome.is_judged and not outcome.question.nothing
    ]
    return sum(ranks) / len(ranks) if ranks else None


MAX_THREADS = 4
"""Questions that are embedded at a time. The model runs outside of Python's lock, and uses several cores itself."""


class QuestionVectors(AbstractContextManager["QuestionVectors"]):
    """A context manager; its end cancels the questions that are not embedded yet."""

    def __init__(self, provider: EmbeddingProvider) -> None:
        self.provider = provider
        self._pool = ThreadPoolExecutor(min(os.cpu_count() or 1, MAX_THREADS), thread_name_prefix="anvil-questions")
        self._vectors: dict[str, Future[searcher.QueryVector]] = {}

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def prepare(self, questions: Iterable[Question]) -> None:
        """Start to embed all questions whose mode uses vectors."""
        for question in questions:
            if question.mode != "keyword" and question.ask not in self._vectors:
                self._vectors[question.ask] = self._pool.submit(searcher.embed_query, question.ask, self.provider)

    def get(self, question: Question) -> searcher.QueryVector | None:
        """A question's vector; None for one that was not prepared."""
        vector = self._vectors.get(question.ask)
        return None if vector is None else vector.result()
