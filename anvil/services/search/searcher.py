"""Search over one index: by words, by vectors, or both.

The index chooses candidates by words and by vectors; :mod:`anvil.services.search.ranking` scores these few. A filter
applies before candidates are chosen, so it hides no result that passes it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from anvil.backends.embedding.factory import explain_mismatch
from anvil.backends.store.reader_protocol import IndexReader
from anvil.core.search import confidence, scoring
from anvil.core.search import query as lexicon
from anvil.core.search.confidence import Evidence
from anvil.core.search.scoring import ScoreParts
from anvil.errors import AnvilError, ConfigError
from anvil.models.results import Hit, Mode, SearchResult
from anvil.services.search import calibration, ranking, result_length, section_match
from anvil.services.search.ranking import CANDIDATES, ENOUGH, SCORE_DIGITS, CandidateIndex, Near, Ranked, Weights
from anvil.services.search.section_match import QueryWeights, SectionChooser, Span

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from anvil.backends.embedding.provider import EmbeddingProvider

MAX_NAMED_PAGES = 8
"""Pages whose second names are read for a query that is a name."""


class SearchableIndex(CandidateIndex, Protocol):
    """A :class:`CandidateIndex` of pages: it knows globs and paths, and its reader gives the texts of results."""

    @property
    def reader(self) -> IndexReader: ...

    @property
    def has_vectors(self) -> bool:
        """Whether any chunk has a vector."""

    def select(self, file_filter: str | None, paths: Collection[str] | None) -> Any:
        """The chunks whose path fits a glob and is one of ``paths``; None where neither is given."""

    def nearest(self, vector: NDArray[np.float32], count: int, selection: Any) -> list[Near]:
        """The ``count`` selected chunks nearest to ``vector``, in the order of the index, and all that tie with the
        last of them."""

    def warm(self) -> None:
        """Read what the first query would wait for."""

    def forget_vectors(self) -> None:
        """Read the vectors again when they are needed."""


@dataclass(frozen=True, slots=True)
class Found:
    """Hits in descending score, the number of chunks that pass the filter, and notes on the search. For each hit: the
    row of its chunk, the parts of its score, the span of the section that it names, and the evidence for its
    confidence."""

    hits: tuple[Hit, ...]
    total_chunks: int
    notes: tuple[str, ...]
    rows: tuple[int, ...] = ()
    parts: tuple[ScoreParts, ...] = ()
    spans: tuple[Span, ...] = ()
    evidence: tuple[Evidence, ...] = ()


class Candidates(NamedTuple):
    """The candidates for a query, best first, the number of chunks that pass the filter, the weights of the query's
    words, its vector, and why there is none although vectors could be compared."""

    results: list[Ranked]
    total: int
    weights: Weights
    vector: NDArray[np.float32] | None
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Explained:
    """The result of a search. For each hit: the parts of its score, the span of the section that it names, and the
    evidence for its confidence."""

    result: SearchResult
    parts: tuple[ScoreParts, ...]
    spans: tuple[Span, ...]
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A query's unit vector (dimensions,), or why it has none."""

    vector: NDArray[np.float32] | None
    error: AnvilError | None = None


def embed_query(query: str, provider: EmbeddingProvider) -> Question:
    """Embed a query. This uses no index, so it needs no lock."""
    try:
        return Question(provider.embed_query(lexicon.bounded(query)))
    except AnvilError as error:
        return Question(None, error)


def ensure_valid(query: str, mode: str) -> None:
    """Raise :class:`ConfigError` for a blank query or an unknown mode."""
    if not query.strip():
        raise ConfigError("query parameter is required")
    if mode not in ("hybrid", "semantic", "keyword"):
        raise ConfigError(f"Unknown mode {mode!r}. Use hybrid, semantic or keyword.")


def semantic_obstacle(meta: dict[str, str], provider: EmbeddingProvider) -> str | None:
    """Why there is no semantic search in an index with this manifest, or None."""
    if meta["embedding_dimensions"] == "0":
        return "Semantic search is off: the index was built without vectors (embedding provider none)."
    try:
        digest = provider.digest
    except AnvilError as error:
        return f"Semantic search is off: {error}"
    if meta["embedding_model_digest"] != digest:
        return f"Semantic search is off: {explain_mismatch(meta, provider)}"
    return None


class Searcher:
    """Queries against the present content of an index."""

    def __init__(self, index: SearchableIndex, provider: EmbeddingProvider) -> None:
        self.index = index
        self.provider = provider
        meta = index.reader.meta()
        self._obstacle = semantic_obstacle(meta, provider)
        self.fits = calibration.fits_for(meta["embedding_model_digest"])

    @property
    def obstacle(self) -> str | None:
        """Why queries cannot be compared with the vectors here: a sentence; None where they can."""
        return self._obstacle

    @property
    def semantic(self) -> bool:
        """Whether queries can be compared with the vectors here."""
        return self._obstacle is None

    def warm(self) -> None:
        """Read what the first query would wait for."""
        self.index.warm()

    def forget_vectors(self) -> None:
        """Read the vectors again: the same chunks have other ones."""
        self.index.forget_vectors()

    def search(
        self,
        query: str,
        top_k: int,
        file_filter: str | None,
        max_chars: int | None,
        mode: Mode,
        threshold: float,
        question: Question | None = None,
        paths: Collection[str] | None = None,
        min_confidence: float = 0.0,
    ) -> Found:
        """The best ``top_k`` (clamped to 1..20) chunks. ``question``: the embedded ``query``; None: it is embedded
        here. ``paths``: only of these documents. Results below ``threshold`` or ``min_confidence`` are left out.

        Raises :class:`ConfigError` for a blank query, an unknown mode, or semantic search where there is none.
        """
        top_k = min(max(top_k, 1), ENOUGH)
        found = self.candidates(query, top_k, file_filter, mode, question, paths)
        notes = [self._obstacle] if self._obstacle and mode == "hybrid" else []
        notes += [found.failure] if found.failure else []
        results = [result for result in found.results if threshold <= 0 or result.score >= threshold]
        if min_confidence > 0:  # else only those that are shown need theirs
            shown = [result for result in results if self.fits.confidence(result.evidence) >= min_confidence][:top_k]
        else:
            shown = results[:top_k]
        confidences = [self.fits.confidence(result.evidence) for result in shown or results]
        if warning := confidence.note(confidences, min_confidence):
            notes.append(warning)
        hits, spans = result_length.within_budget(self.hits(shown, query, found), query, max_chars)
        return Found(
            hits,
            total_chunks=found.total,
            notes=tuple(notes),
            rows=tuple(result.row for result in shown),
            parts=tuple(parts_of(result) for result in shown),
            spans=spans,
            evidence=tuple(result.evidence for result in shown),
        )

    def candidates(
        self,
        query: str,
        top_k: int,
        file_filter: str | None,
        mode: Mode,
        question: Question | None = None,
        paths: Collection[str] | None = None,
    ) -> Candidates:
        """The candidates of :meth:`search`, without its limits; in semantic mode ``top_k`` of them."""
        ensure_valid(query, mode)
        if mode == "semantic" and self._obstacle:
            raise ConfigError(self._obstacle)
        selection = self.index.select(file_filter, paths)
        total = self.index.count(selection)
        weights = ranking.weights(self.index, query)
        vector, failure = None, None
        if mode != "keyword" and not self._obstacle and total:
            question = question or embed_query(query, self.provider)
            vector = question.vector
            if question.error is not None:
                if mode == "semantic":
                    raise question.error
                failure = f"Semantic search is off: {question.error}"
        results: list[Ranked] = []
        if total and mode == "semantic" and vector is not None:
            results = ranking.by_cosine(self.index, weights, self.index.nearest(vector, top_k, selection), top_k)
        elif total:
            if vector is not None and not self.index.has_vectors:
                vector = None  # no vector exists yet: all chunks would be equal
            results = ranking.rank(self.index, weights, vector, selection, CANDIDATES)
            name = lexicon.qualified_name(query)
            if name is not None and results:
                results, is_found = self._named_first(results, name)
                anchor = name if is_found else self._anchor_of(name, results)
                if anchor != name:
                    again = ranking.rank(self.index, ranking.weights(self.index, anchor), vector, selection, CANDIDATES)
                    again, is_found = self._named_first(again, anchor)
                    results = again if is_found else results
        return Candidates(results, total, weights, vector, failure)

    def _named_first(self, results: list[Ranked], name: str) -> tuple[list[Ranked], bool]:
        """The results, with the section first whose anchor is ``name``, and whether there is one. In the documentation
        of an API an anchor is the full name of a class or function."""
        stored = self.index.reader.chunks([result.row for result in results])
        chunks = [stored[result.row] for result in results]
        places = self.index.reader.sections_in((c.document_id, c.start, c.start + len(c.content)) for c in chunks)
        named = {
            chunk.row
            for chunk, sections in zip(chunks, places, strict=True)
            if any(section.anchor == name and section.start >= chunk.start for section in sections)
        }
        best = max(result.score for result in results)
        first = [result._replace(score=best) for result in results if result.row in named]
        return first + [result for result in results if result.row not in named], bool(named)

    def _anchor_of(self, name: str, results: Sequence[Ranked]) -> str:
        """The anchor of the section that has ``name`` as its second name, in the pages of the best results; else
        ``name``."""
        stored = self.index.reader.chunks([result.row for result in results])
        paths = dict.fromkeys(stored[result.row].metadata.file_path for result in results)
        for path in list(paths)[:MAX_NAMED_PAGES]:
            document = self.index.reader.document(path)
            aliases = document.metadata.get("aliases") if document is not None else None
            if isinstance(aliases, dict) and isinstance(aliases.get(name), str):
                return str(aliases[name])
        return name

    def hits(self, results: Sequence[Ranked], query: str, found: Candidates) -> list[tuple[Hit, Span]]:
        """Some results of ``found`` with their whole chunks, each with the section that fits best."""
        reader = self.index.reader
        stored = reader.chunks([result.row for result in results])
        chunks = [stored[result.row] for result in results]
        places = reader.sections_in((c.document_id, c.start, c.start + len(c.content)) for c in chunks)
        chooser = self._section_chooser(found.weights) if any(len(sections) > 1 for sections in places) else None
        name = lexicon.qualified_name(query)
        if name is not None and not any(section.anchor == name for sections in places for section in sections):
            name = self._anchor_of(name, results)
        hits = []
        for chunk, result, sections in zip(chunks, results, places, strict=True):
            section = sections[0] if sections else None
            named = next((section for section in sections if name is not None and section.anchor == name), None)
            if named is not None:
                section = named
            elif chooser is not None and sections:
                section = chooser.choose(chunk, sections, partial(self._nearest_span, chunk.row, found.vector))
            page_anchor = sections[0].anchor if sections else ""
            likely = self.fits.confidence(result.evidence)
            hits.append(section_match.hit(chunk, result.score, likely, section, page_anchor))
        return hits

    def _section_chooser(self, weights: Weights) -> SectionChooser:
        query, _, tokens = weights
        rarest = scoring.idf(1, self.index.count())
        phrases = {phrase: weight * rarest for phrase, weight in query.phrases.items()}
        return SectionChooser(QueryWeights(tokens, phrases, self.index.average_length), self.index.stem)

    def _nearest_span(self, row: int, vector: NDArray[np.float32] | None) -> tuple[int, int] | None:
        """The span of the window of a chunk that is nearest to a query; None where it has no vectors."""
        if vector is None:
            return None
        best, highest = None, -2.0
        for start, end, stored in self.index.reader.windows_of(row):
            values = np.frombuffer(stored, np.int8).astype(np.float32)
            cosine = round(float(values @ vector) / max(float(np.linalg.norm(values)), 1e-9), SCORE_DIGITS)
            if cosine > highest:
                best, highest = (start, end), cosine
        return best


def parts_of(result: Ranked) -> ScoreParts:
    """The parts of a result's score."""
    words, heading, vectors, links = (round(part, SCORE_DIGITS) for part in result.summands)
    page = round(result.score - sum(result.summands), SCORE_DIGITS) + 0.0  # no -0.0
    return ScoreParts(words, heading, vectors, links, page)
