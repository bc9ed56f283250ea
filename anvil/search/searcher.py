"""Search over one index: by words, by vectors, or both.

The index chooses candidates by words and by vectors; :mod:`anvil.search.ranking` scores these few. A filter applies
before candidates are chosen, so it hides no result that passes it. :mod:`anvil.search.several_collections` searches
several indexes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from anvil.embedding.passages import HeadedText
from anvil.embedding.provider import EmbeddingProvider, uncached
from anvil.errors import AnvilError, ConfigError
from anvil.formats import patterns, version_names
from anvil.index_file.reader import IndexReader
from anvil.index_file.table_rows import CHUNK_BITS, SearchedText, SectionPlace, StoredChunk, is_in_language, vector_rows
from anvil.requests import SearchRequest
from anvil.results import Freshness, Hit, SearchResult
from anvil.search import confidence, page_variants, page_weights, query_preparation, ranking, result_texts
from anvil.search.confidence import MatchEvidence
from anvil.search.page_variants import Versions, Wanted
from anvil.search.query_preparation import QueryVector, comparable_vector, embed_query, semantic_obstacle
from anvil.search.ranking import (
    CANDIDATES,
    SCORE_DIGITS,
    CandidateIndex,
    NearChunk,
    QueryWeights,
    RankedChunk,
    ScoreParts,
)
from anvil.search.result_texts import SectionChooser, SectionSpan
from anvil.text import query as lexicon
from anvil.text.headings import window_header
from anvil.values import address
from anvil.wording import closest_note, closest_paths, full_heading
from anvil.wording import shown as quoted

NEAREST_CHUNKS = 60
"""Chunks nearest to a query that a semantic search ranks with their pages."""
MANY_CANDIDATES = 200
"""Candidates by words, and as many by vectors, if versions, translations, copies and records leave too few pages."""
MAX_CACHED_SELECTIONS = 16
"""Selections of chunks and of versions that are cached. With 20,000 pages, making one takes 30 to 80 ms."""
FIRST_SHARE = 0.35
"""Share of the best score from which on a page comes before the further sections of better pages."""
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
        """The chunks whose path fits a glob and is one of ``paths``; None if neither is given."""

    def nearest(self, vector: NDArray[np.float32], count: int, selection: Any) -> list[NearChunk]:
        """The ``count`` selected chunks nearest to ``vector``, in the order of the index, and all that tie with the
        last of them."""

    def definitions(self, document: int) -> Mapping[str, str]:
        """Label -> target, of the links by label in a page; empty if they are not known."""

    def warm(self) -> None:
        """Read what the first query would wait for."""

    def forget_vectors(self) -> None:
        """Read the vectors again when they are needed."""


class RankedHit(NamedTuple):
    """A hit with the span of the section that it names, the parts of its score and the evidence for its confidence.

    ``row``: of its chunk. ``number``: of its index among those that were searched, from 0.
    """

    hit: Hit
    span: SectionSpan
    parts: ScoreParts
    evidence: MatchEvidence
    row: int
    number: int


@dataclass(frozen=True, slots=True)
class RankedHits:
    """Hits in descending score, the number of chunks that pass the filter, and notes on the search."""

    ranked: tuple[RankedHit, ...]
    total_chunks: int
    notes: tuple[str, ...]

    @property
    def hits(self) -> tuple[Hit, ...]:
        return tuple(ranked.hit for ranked in self.ranked)

    def explained(self, freshness: Freshness, started_at: float) -> Explained:
        """The hits as the result of a search. ``started_at``: from :func:`time.perf_counter`."""
        query_ms = round((time.perf_counter() - started_at) * 1000, 3)
        result = SearchResult(freshness, self.hits, self.total_chunks, query_ms)
        return Explained(
            result,
            tuple(ranked.parts for ranked in self.ranked),
            tuple(ranked.span for ranked in self.ranked),
            tuple(ranked.evidence for ranked in self.ranked),
        )


class Candidates(NamedTuple):
    """The candidates for a query, best first.

    ``total``: the number of chunks that pass the filter. ``weights``: of the query's words. ``vector``: of the query.
    ``failure``: why there is no vector, although vectors could be compared.
    """

    results: list[RankedChunk]
    total: int
    weights: QueryWeights
    vector: NDArray[np.float32] | None
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Explained:
    """The result of a search, and for each hit: the parts of its score, the span of the section that it names, and the
    evidence for its confidence."""

    result: SearchResult
    parts: tuple[ScoreParts, ...]
    spans: tuple[SectionSpan, ...]
    evidence: tuple[MatchEvidence, ...]


class Searcher:
    """Queries against the present content of an index."""

    def __init__(self, index: SearchableIndex, provider: EmbeddingProvider) -> None:
        self.index = index
        self.provider = uncached(provider)  # its cache is for documents
        meta = index.reader.meta()
        self._cache: dict[tuple[Any, ...], Any] = {}
        self.obstacle = semantic_obstacle(meta, provider)
        """Why queries cannot be compared with the vectors here, as a sentence; None if they can."""
        self.fits = confidence.fits_for(meta["embedding_model_digest"])

    @cached_property
    def versions(self) -> Versions:
        return page_variants.of_index(self.index.reader)

    @cached_property
    def translations(self) -> Mapping[int, str]:
        return version_names.translations(self.index.reader.paths())

    @cached_property
    def editions(self) -> page_variants.Editions:
        return page_variants.editions(self.index.reader)

    @property
    def semantic(self) -> bool:
        return self.obstacle is None

    def search(self, request: SearchRequest, question: QueryVector | None = None) -> RankedHits:
        """The best chunks of this index. ``question``: the embedded query; None: it is embedded here. Raises
        :class:`ConfigError` for semantic search in an index that cannot be searched by meaning."""
        request, question, notes = with_rewritten_query([self], request, question)
        candidates = self.candidates(request, question)
        results = [Result(0, ranked.score, ranked) for ranked in candidates.results]
        hits = ranked_hits([self], request, {0: candidates}, candidates.total, results)
        return replace(hits, notes=(*notes, *hits.notes))

    def select(
        self,
        request: SearchRequest,
        one_version: tuple[Versions, Wanted] | None = None,
        without: frozenset[int] = frozenset(),
    ) -> Any:
        """The chunks that a request is about; None for all. ``one_version``: only those in the wanted version of each
        page. ``without``: documents to leave out.

        A version is one that a page names, or a folder around it. The language ``en`` includes ``en-GB``.
        """

        def make() -> Any:
            paths, version, language = request.paths, request.version, request.language
            if not (version is None and language is None):
                paths = frozenset(
                    path
                    for path, own in self.editions.items()
                    if (paths is None or path in paths)
                    and (version is None or page_variants.is_of_version((own.version, *path.split("/")[:-1]), version))
                    and (language is None or is_in_language(own.language or "", language))
                )
            left_out = without if one_version is None else without | page_variants.left_out(*one_version)
            if left_out:
                kept = (path for id_, path in self.index.reader.paths() if id_ not in left_out)
                paths = frozenset(path for path in kept if paths is None or path in paths)
            return self.index.select(request.file_filter, paths)

        key = request.file_filter, request.version, request.language, one_version and one_version[1].versions, without
        return self._cached(request, key, make)

    def _cached(self, request: SearchRequest, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """The result of ``make``, which is cached by ``key`` unless the request names its pages."""
        if request.paths is not None:
            return make()
        if key not in self._cache:
            if len(self._cache) >= MAX_CACHED_SELECTIONS:
                self._cache.clear()
            self._cache[key] = make()
        return self._cache[key]

    def candidates(self, request: SearchRequest, question: QueryVector | None = None) -> Candidates:
        """The candidates of :meth:`search`, without its limits; in semantic mode as many as a search can return."""
        query, mode = request.query, request.mode
        if mode == "semantic" and self.obstacle:
            raise ConfigError(self.obstacle)
        selection, versions = self.select(request), self._selected_versions(request)
        total = self.index.count(selection)
        want = page_variants.wanted(versions, query) if versions.pages else None
        # With 25 versions, the best chunks are 25 copies of one. So one version of each page has candidates of its own.
        edition = None if want is None else (versions, want)
        selections = [selection] if edition is None else [self.select(request, edition), selection]
        weights = ranking.query_weights(self.index, query if want is None else want.words)
        vector: NDArray[np.float32] | None = None
        failure: str | None = None
        if mode != "keyword" and not self.obstacle and total:
            question = question or embed_query(query, self.provider)
            vector, failure = comparable_vector(question, self.provider, mode)
        results: list[RankedChunk] = []
        if total and mode == "semantic" and vector is not None:
            near = {
                chunk.row: chunk for part in selections for chunk in self.index.nearest(vector, NEAREST_CHUNKS, part)
            }
            results = ranking.by_cosine(self.index, weights, near.values(), CANDIDATES if want is None else len(near))
            if question is not None and question.unread:  # such a cosine is no evidence
                results = [r._replace(evidence=r.evidence._replace(cosine=None, page=None)) for r in results]
            results = self._without_variants(results, versions, want, mode, is_weighed=False)
        elif total:
            if vector is not None and not self.index.has_vectors:
                vector = None  # no vector exists yet: all chunks would be equal
            is_about_records, factors = page_weights.asks_for_records(query), self.index.page_factors.usual
            records = frozenset(() if is_about_records else (page for page in factors if factors[page] < 1))
            for count in (CANDIDATES, MANY_CANDIDATES):
                ranked, is_exact = self._ranked(query, weights, vector, selections, count, mode)
                # A question about changes is about several versions, unless it names one.
                is_weighed = want is not None and not is_exact and (len(want.versions) == 1 or not is_about_records)
                results = self._without_variants(ranked, versions, want, mode, is_weighed=is_weighed)
                pages = {result.row >> CHUNK_BITS for result in results}
                is_crowded = 2 * sum(result.row >> CHUNK_BITS in records for result in results) > len(results)
                has_all = len(results) == len(ranked) and not is_crowded
                is_full = has_all or len(pages) >= request.top_k or total <= ranking.MAX_WHOLE
                if is_full or mode != "hybrid":  # the search page reads no more candidates
                    break
                if is_crowded:  # a changelog titled with the name of a package has it in each section
                    selections = [*selections, self.select(request, edition, records)]
        return Candidates(results, total, weights, vector, failure)

    def _ranked(
        self,
        query: str,
        weights: QueryWeights,
        vector: NDArray[np.float32] | None,
        selections: Sequence[Any],
        count: int,
        mode: str,
    ) -> tuple[list[RankedChunk], bool]:
        """The results of :func:`ranking.rank`, and whether the first one is the section that a query names."""
        results = ranking.rank(self.index, weights, vector, selections, count)
        name = lexicon.qualified_name(query)
        if name is not None and results:
            results, is_found = self._exact_anchor_first(results, name)
            anchor = name if is_found else self._anchor_of(name, results)
            if anchor != name:
                anchor_weights = ranking.query_weights(self.index, anchor)
                again = ranking.rank(self.index, anchor_weights, vector, selections, count)
                again, is_found = self._exact_anchor_first(again, anchor)
                results = again if is_found else results
            return results, is_found
        if mode == "hybrid":  # not in the mode "keyword": the search page, which must rank alike, has no texts
            texts = self._texts_of(results)
            in_order = result_texts.definitions_first(results, query, texts)
            results = result_texts.without_bare_sections(in_order, texts)
        return results, False

    def _without_variants(
        self, results: list[RankedChunk], versions: Versions, want: Wanted | None, mode: str, *, is_weighed: bool
    ) -> list[RankedChunk]:
        """The results with one version, one translation and, in hybrid mode, one copy of each page."""
        if want is not None:
            results = page_variants.in_version(results, versions, want, is_weighed=is_weighed)
        if self.translations:
            results = page_variants.one_translation(results, self.translations)
        if mode == "hybrid":
            texts = self._texts_of(results)
            if len({texts[result.row][:3] for result in results}) < len(results):
                wanted = frozenset[str]() if want is None else want.versions
                results = page_variants.without_copies(results, texts, versions, wanted)
        return results

    def _selected_versions(self, request: SearchRequest) -> Versions:
        """The versions of the pages that a request is about; none if it chooses one."""
        if request.version is not None or not self.versions.pages:
            return page_variants.NO_VERSIONS
        if request.file_filter is None and request.paths is None:
            return self.versions
        key = "versions", request.file_filter
        own = request.file_filter, request.paths
        pages = self.index.reader.paths
        selected: Versions = self._cached(request, key, lambda: page_variants.among(self.versions, pages(), *own))
        return selected

    def _texts_of(self, results: Sequence[RankedChunk]) -> Mapping[int, SearchedText]:
        return self.index.texts([result.row for result in results])

    def passage(self, row: int, vector: NDArray[np.float32] | None) -> HeadedText:
        """The text of a chunk for a scorer of passages, with the span of the window that is nearest to the query."""
        text = self.index.texts([row])[row]
        return HeadedText(window_header(text.title, text.heading_path), text.content, self._nearest_span(row, vector))

    def _exact_anchor_first(self, results: list[RankedChunk], name: str) -> tuple[list[RankedChunk], bool]:
        """The results, first those with the section whose anchor is ``name``, and whether there is one. In the
        documentation of an API an anchor is the full name of a class or function."""
        named_rows = {
            chunk.row
            for chunk, sections in zip(*self._chunks_with_sections(results), strict=True)
            if any(section.anchor == name and section.start >= chunk.start for section in sections)
        }
        best = max(result.score for result in results)
        first = [result._replace(score=best) for result in results if result.row in named_rows]
        return first + [result for result in results if result.row not in named_rows], bool(named_rows)

    def _chunks_with_sections(
        self, results: Sequence[RankedChunk]
    ) -> tuple[list[StoredChunk], list[tuple[SectionPlace, ...]]]:
        stored = self.index.reader.chunks([result.row for result in results])
        chunks = [stored[result.row] for result in results]
        spans = ((chunk.document_id, chunk.start, chunk.start + len(chunk.content)) for chunk in chunks)
        return chunks, self.index.reader.sections_in(spans)

    def _anchor_of(self, name: str, results: Sequence[RankedChunk]) -> str:
        """The anchor of the section that has ``name`` as its second name, in the pages of the best results; without
        one, ``name``."""
        stored = self.index.reader.chunks([result.row for result in results])
        paths = dict.fromkeys(stored[result.row].metadata.file_path for result in results)
        for path in list(paths)[:MAX_NAMED_PAGES]:
            document = self.index.reader.document(path)
            aliases = document.metadata.get("aliases") if document is not None else None
            if isinstance(aliases, dict) and isinstance(aliases.get(name), str):
                return str(aliases[name])
        return name

    def hits(self, results: Sequence[RankedChunk], query: str, candidates: Candidates) -> list[tuple[Hit, SectionSpan]]:
        """Some results of ``candidates`` with their whole chunks, each with the section that fits best."""
        chunks, sections_of = self._chunks_with_sections(results)
        has_choice = any(len(sections) > 1 for sections in sections_of)
        chooser = self._section_chooser(candidates.weights) if has_choice else None
        name = lexicon.qualified_name(query)
        if name is not None and not any(section.anchor == name for sections in sections_of for section in sections):
            name = self._anchor_of(name, results)
        hits = []
        for chunk, result, sections in zip(chunks, results, sections_of, strict=True):
            section = sections[0] if sections else None
            named = next((section for section in sections if name is not None and section.anchor == name), None)
            if named is not None:
                section = named
            elif chooser is not None and sections:
                section = chooser.choose(chunk, sections, partial(self._nearest_span, chunk.row, candidates.vector))
            page_anchor = sections[0].anchor if sections else ""
            probability = self.fits.confidence(result.evidence)
            definitions = partial(self.index.definitions, chunk.document_id)
            hit, span = result_texts.hit(chunk, result.score, probability, section, page_anchor, definitions)
            versions = page_variants.others(self.versions, chunk.document_id) if self.versions.pages else ()
            hits.append((replace(hit, versions=versions) if versions else hit, span))
        return hits

    def _section_chooser(self, weights: QueryWeights) -> SectionChooser:
        query, tokens = weights.query, weights.tokens
        rarest = ranking.idf(1, self.index.count())
        phrases = {phrase: weight * rarest for phrase, weight in query.phrases.items()}
        return SectionChooser(tokens, phrases, self.index.average_length, self.index.stem)

    def _nearest_span(self, row: int, vector: NDArray[np.float32] | None) -> tuple[int, int] | None:
        """The span of the window of a chunk that is nearest to a query; None without vectors."""
        if vector is None:
            return None
        best, highest = None, -2.0
        for start, end, stored in self.index.reader.windows_of(row):
            values = vector_rows(stored, len(vector))[0].astype(np.float32)
            cosine = round(float(values @ vector) / max(float(np.linalg.norm(values)), 1e-9), SCORE_DIGITS)
            if cosine > highest:
                best, highest = (start, end), cosine
        return best


def with_rewritten_query(
    searchers: Sequence[Searcher], request: SearchRequest, question: QueryVector | None
) -> tuple[SearchRequest, QueryVector | None, tuple[str, ...]]:
    """The request with its query as :mod:`anvil.search.query_preparation` rewrites it, the embedded query unless it was
    rewritten, and the notes on that."""
    indexes = [searcher.index for searcher in searchers]
    query, note = query_preparation.rewritten(request.query, indexes, searchers[0].provider)
    return (request, question, ()) if note is None else (replace(request, query=query), None, (note,))


class Result(NamedTuple):
    """A candidate of one of the indexes that are searched together.

    ``number``: of its index. ``score``: on the scale of the whole answer. ``passage``: the summand of its passage.
    """

    number: int
    score: float
    ranked: RankedChunk
    passage: float = 0.0

    @property
    def chunk(self) -> tuple[int, int]:
        """The number of its index, and the row of its chunk."""
        return self.number, self.ranked.row

    @property
    def page(self) -> tuple[int, int]:
        """The number of its index, and the id of its document."""
        return self.number, self.ranked.row >> CHUNK_BITS

    @property
    def without_passage(self) -> float:
        """The score that is comparable where only some of the results were read again."""
        return self.score - self.passage


def _read_again(
    searchers: Sequence[Searcher], request: SearchRequest, candidates: Mapping[int, Candidates], results: list[Result]
) -> tuple[list[Result], str | None]:
    """The ``results``, best first, after the model has read the passages of the best ones again; and why it could not.

    A query that is a name is left to the words. Results without vectors are not read.
    """
    best = [result for result in results if candidates[result.number].vector is not None][: ranking.MAX_READ]
    scorer = searchers[best[0].number].provider.passages if best else None
    is_asked = request.read_passages and request.mode == "hybrid" and not lexicon.single_name(request.query)
    if scorer is None or not is_asked:
        return results, None
    passages = [searchers[r.number].passage(r.ranked.row, candidates[r.number].vector) for r in best]
    try:
        values = scorer.score(lexicon.bounded(request.query), passages).tolist()
    except AnvilError as error:
        return results, f"No passage was read again: {error}"
    read = {result.chunk for result in best}
    ordered = [*best, *(result for result in results if result.chunk not in read)]
    scores, summands = ranking.with_passages([result.score for result in ordered], values)
    again = [
        result._replace(score=round(score, SCORE_DIGITS), passage=round(summand, SCORE_DIGITS))
        for result, score, summand in zip(ordered, scores, summands, strict=True)
    ]
    return sorted(again, key=lambda result: -result.score), None  # stable


def ranked_hits(
    searchers: Sequence[Searcher],
    request: SearchRequest,
    candidates: Mapping[int, Candidates],
    total: int,
    results: list[Result],
) -> RankedHits:
    """The hits of an answer. ``results``: all, best first. ``candidates``: by the number of their index. ``total``: the
    number of chunks that pass the filter."""
    results, failure = _read_again(searchers, request, candidates, results)
    options = request.options
    results = [result for result in results if options.threshold <= 0 or result.score >= options.threshold]

    def confidence_of(result: Result) -> float:
        return searchers[result.number].fits.confidence(result.ranked.evidence)

    likely = results
    least = options.min_confidence if request.min_confidence is None else request.min_confidence
    if least > 0:  # else only the results that are shown need theirs
        likely = [result for result in results if confidence_of(result) >= least]
    shown = sorted(best_first(likely)[: request.top_k], key=likely.index)  # still in descending score
    failures = (*(of_index.failure for of_index in candidates.values()), failure)
    notes = list(dict.fromkeys(filter(None, failures)))
    if not total:
        notes += _empty_filter_notes(searchers, request)
    texts = _hits(searchers, [*shown, *_further_sections(shown, likely)], request.query, candidates)
    own, further = texts[: len(shown)], texts[len(shown) :]
    is_named = confidence.has_name(request.query, (hit.content for hit, _ in own))
    warning = confidence.note(map(confidence_of, shown or results), least, is_named=is_named)
    is_covered = not shown or confidence.is_covered(map(confidence_of, shown), is_named)
    if is_covered or request.max_chars is not None:
        budget = request.max_chars
        if budget is None:
            budget = request.more_chars + result_texts.BASE_CHARS + result_texts.CHARS_PER_RESULT * len(own)
        own = result_texts.within_budget(own, further, request.query, budget)
    else:
        own = result_texts.lines(own, request.query)
    if warning is not None:
        if not is_covered:
            best = own[0][0]
            page = address(best.metadata.file_path, best.collection, best.version)
            warning += f" The nearest page is {page} ({full_heading(best.title, best.metadata.heading_path)})."
        notes.append(warning)
    ranked = (
        RankedHit(hit, span, _score_parts(result), result.ranked.evidence, result.ranked.row, result.number)
        for result, (hit, span) in zip(shown, own, strict=True)
    )
    return RankedHits(tuple(ranked), total, tuple(notes))


def _empty_filter_notes(searchers: Sequence[Searcher], request: SearchRequest) -> list[str]:
    """Notes on a search without any chunk: the filter that no page fits. Empty without a filter."""
    file_filter = request.file_filter
    if file_filter:
        paths = [path for searcher in searchers for path in searcher.index.reader.identities()]
        if not any(map(patterns.selects(file_filter), paths)):
            return [f"No page matches {quoted(file_filter)}.{closest_note(closest_paths(file_filter, paths))}"]
    wanted = {"version": request.version, "language": request.language}
    names = " and ".join(f"the {key} {quoted(value)}" for key, value in wanted.items() if value is not None)
    closest = dict.fromkeys(
        name
        for searcher in searchers
        if request.version
        for name in page_variants.closest_versions(searcher.versions, searcher.editions, request.version)
    )
    sentence = f"No page {'in the filter ' if file_filter else ''}has {names}.{closest_note(list(closest))}"
    return [sentence] if names else []


def _hits(
    searchers: Sequence[Searcher], results: Sequence[Result], query: str, candidates: Mapping[int, Candidates]
) -> list[tuple[Hit, SectionSpan]]:
    """The results with their texts, in the same order."""
    hits: dict[tuple[int, int], tuple[Hit, SectionSpan]] = {}
    for number in dict.fromkeys(result.number for result in results):
        own = [result for result in results if result.number == number]
        texts = searchers[number].hits([result.ranked for result in own], query, candidates[number])
        for result, (hit, span) in zip(own, texts, strict=True):
            own_hit = hit if hit.score == result.score else replace(hit, score=result.score)
            hits[result.chunk] = own_hit, span
    return [hits[result.chunk] for result in results]


def _further_sections(shown: Sequence[Result], likely: Sequence[Result]) -> list[Result]:
    """The best results that are of the same page as a shown one and nearly as good. There is one more of a page than is
    shown, because two of them may be parts of one section."""
    best: dict[tuple[int, int], float] = {}
    for result in shown:
        best.setdefault(result.page, result.without_passage)
    chunks = {result.chunk for result in shown}
    left = dict.fromkeys(best, result_texts.MAX_ALSO + 1)
    further = []
    for result in likely:
        if result.chunk in chunks or not left.get(result.page):
            continue
        if result.without_passage >= result_texts.FURTHER_SHARE * best[result.page]:
            left[result.page] -= 1
            further.append(result)
    return further


def _score_parts(result: Result) -> ScoreParts:
    """The parts of a result's score: those in its own index, as shares of the score on the common scale, and its
    passage."""
    ranked, score = result.ranked, result.without_passage
    share = score / (ranked.score or 1.0)
    words, heading, vectors, links = (round(part * share, SCORE_DIGITS) for part in ranked.summands)
    page = round(score - sum(ranked.summands) * share, SCORE_DIGITS) + 0.0  # no -0.0
    return ScoreParts(words, heading, vectors, links, result.passage, page)


def best_first(results: Sequence[Result]) -> list[Result]:
    """The best result of each page, then the others, both in their order: five results are of five pages, if so many
    match.

    If the best one of a page has less than ``FIRST_SHARE`` of the best score, it is among the others.
    """
    enough = FIRST_SHARE * max((result.without_passage for result in results), default=0.0)
    best: dict[tuple[int, int], Result] = {}
    for result in results:
        best.setdefault(result.page, result)
    first = {result.chunk: result for result in best.values() if result.without_passage >= enough}
    return [*first.values(), *(result for result in results if result.chunk not in first)]
