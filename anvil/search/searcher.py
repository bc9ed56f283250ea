"""Search over one index: by words, by vectors, or both.

The index chooses candidates by words and by vectors; :mod:`anvil.search.ranking` scores these few. A filter
applies before candidates are chosen, so it hides no result that passes it. :mod:`anvil.search.several_collections`
searches several indexes.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from anvil.embedding.passages import HeadedText
from anvil.embedding.provider import EmbeddingProvider, explain_mismatch, uncached
from anvil.errors import AnvilError, ConfigError
from anvil.formats import characters, patterns
from anvil.index_file.reader import IndexReader
from anvil.index_file.table_rows import CHUNK_BITS, SectionPlace, StoredChunk, speaks, vector_rows
from anvil.requests import SearchRequest
from anvil.results import Freshness, Hit, SearchResult
from anvil.search import confidence, page_versions, query_rewriting, ranking, result_texts
from anvil.search.confidence import MatchEvidence
from anvil.search.page_versions import Versions
from anvil.search.ranking import CANDIDATES, ENOUGH, SCORE_DIGITS, CandidateIndex, Near, Ranked, ScoreParts, Weights
from anvil.search.result_texts import SectionChooser, SectionSpan
from anvil.text import query as lexicon
from anvil.text.headings import window_header
from anvil.values import SEPARATOR, address
from anvil.wording import closest_note, closest_paths, full_heading
from anvil.wording import shown as quoted

UNREAD = "The embedding model reads {} script only: {}. A question in English finds more in English documentation."
"""With what follows from it, by mode."""
UNREAD_SO = {"hybrid": "words alone decided", "semantic": "its vectors say little, use the mode hybrid or keyword"}

NEAREST = 60
"""Chunks nearest to a query that a semantic search ranks with their pages."""
MATCHING = 0.35
"""Share of the best score from which on a page has a place before the further sections of better pages."""
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

    def definitions(self, document: int) -> Mapping[str, str]:
        """Label -> target, of the links by label in a page; none where they are not known."""

    def warm(self) -> None:
        """Read what the first query would wait for."""

    def forget_vectors(self) -> None:
        """Read the vectors again when they are needed."""


class RankedHit(NamedTuple):
    """A hit, the span of the section that it names, the parts of its score, the evidence for its confidence, the row of
    its chunk, and the place of its index among those that were searched."""

    hit: Hit
    span: SectionSpan
    parts: ScoreParts
    evidence: MatchEvidence
    row: int
    place: int


@dataclass(frozen=True, slots=True)
class RankedHits:
    """Hits in descending score, the number of chunks that pass the filter, and notes on the search."""

    ranked: tuple[RankedHit, ...]
    total_chunks: int
    notes: tuple[str, ...]

    @property
    def hits(self) -> tuple[Hit, ...]:
        return tuple(each.hit for each in self.ranked)

    def explained(self, freshness: Freshness, started_at: float) -> Explained:
        """The answer. ``started_at``: as :func:`time.perf_counter`."""
        query_ms = round((time.perf_counter() - started_at) * 1000, 3)
        result = SearchResult(freshness, self.hits, self.total_chunks, query_ms)
        return Explained(
            result,
            tuple(each.parts for each in self.ranked),
            tuple(each.span for each in self.ranked),
            tuple(each.evidence for each in self.ranked),
        )


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
    spans: tuple[SectionSpan, ...]
    evidence: tuple[MatchEvidence, ...]


@dataclass(frozen=True, slots=True)
class QueryVector:
    """A query's unit vector (dimensions,), or why it has none. ``unread``: the model does not know the query's script,
    so the vector says little."""

    vector: NDArray[np.float32] | None
    error: AnvilError | None = None
    unread: bool = False


def embed_query(query: str, provider: EmbeddingProvider) -> QueryVector:
    """Embed a query. This uses no index, so it needs no lock."""
    try:
        text = lexicon.bounded(query)
        vector = provider.embed_query(text)
        if text.isascii():  # which scripts a model reads takes a look at its whole vocabulary
            return QueryVector(vector)
        return QueryVector(vector, unread=characters.is_unread(text, provider.scripts))
    except AnvilError as error:
        return QueryVector(None, error)


def compared(
    question: QueryVector, provider: EmbeddingProvider, mode: str
) -> tuple[NDArray[np.float32] | None, str | None]:
    """The vector to compare for a question, and a note on what is wrong with it. Raises the error that left a question
    of semantic search without one."""
    if question.error is not None:
        if mode == "semantic":
            raise question.error
        return None, f"Semantic search is off: {question.error}"
    if question.unread:
        scripts = characters.script_names(provider.scripts or ())
        return None if mode == "hybrid" else question.vector, UNREAD.format(scripts, UNREAD_SO[mode])
    return question.vector, None


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
        self.provider = uncached(provider)  # its cache is for documents
        meta = index.reader.meta()
        self.obstacle = semantic_obstacle(meta, provider)
        """Why queries cannot be compared with the vectors here: a sentence; None where they can."""
        self.fits = confidence.fits_for(meta["embedding_model_digest"])

    @cached_property
    def versions(self) -> Versions:
        """The versions of the pages of a site; none in an index of files."""
        return page_versions.of_index(self.index.reader)

    @property
    def semantic(self) -> bool:
        return self.obstacle is None

    def search(self, request: SearchRequest, question: QueryVector | None = None) -> RankedHits:
        """The best chunks of this index. ``question``: the embedded query; None: it is embedded here. Raises
        :class:`ConfigError` for semantic search where there is none."""
        request, question, notes = with_rewritten_query([self], request, question)
        found = self.candidates(request, question)
        results = [Result(0, ranked.score, ranked) for ranked in found.results]
        hits = answer([self], request, {0: found}, found.total, results)
        return replace(hits, notes=(*notes, *hits.notes))

    def select(self, request: SearchRequest) -> Any:
        """The chunks that a request is about; None for all. A version is what a page of a site names, or the folder at
        the top; the language ``en`` is ``en-GB`` too."""
        paths, version, language = request.paths, request.version, request.language
        if paths is None and not (version is None and language is None):
            paths = frozenset(
                page.file_path
                for page in self.index.reader.documents()
                if (version is None or version in (page.metadata.get("version"), page.file_path.partition("/")[0]))
                and (language is None or speaks(str(page.metadata.get("language") or ""), language))
            )
        return self.index.select(request.file_filter, paths)

    def candidates(self, request: SearchRequest, question: QueryVector | None = None) -> Candidates:
        """The candidates of :meth:`search`, without its limits; in semantic mode ``top_k`` of them."""
        query, mode = request.query, request.mode
        if mode == "semantic" and self.obstacle:
            raise ConfigError(self.obstacle)
        selection = self.select(request)
        total = self.index.count(selection)
        weights = ranking.weights(self.index, query)
        vector: NDArray[np.float32] | None = None
        failure: str | None = None
        if mode != "keyword" and not self.obstacle and total:
            question = question or embed_query(query, self.provider)
            vector, failure = compared(question, self.provider, mode)
        results: list[Ranked] = []
        if total and mode == "semantic" and vector is not None:
            near = self.index.nearest(vector, NEAREST, selection)
            results = ranking.by_cosine(self.index, weights, near, ENOUGH)
            if question is not None and question.unread:  # such a cosine is no evidence
                results = [r._replace(evidence=r.evidence._replace(cosine=None, page=None)) for r in results]
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
            elif mode == "hybrid":  # the search page, which ranks as the mode "keyword", has not the texts at hand
                results = self._with_texts(results)
        return Candidates(results, total, weights, vector, failure)

    def passage(self, row: int, vector: NDArray[np.float32] | None) -> HeadedText:
        """The text of a chunk for a scorer of passages, with its window that is nearest to a query."""
        text = self.index.texts([row])[row]
        return HeadedText(window_header(text.title, text.heading_path), text.content, self._nearest_span(row, vector))

    def _named_first(self, results: list[Ranked], name: str) -> tuple[list[Ranked], bool]:
        """The results, with the section first whose anchor is ``name``, and whether there is one. In the documentation
        of an API an anchor is the full name of a class or function."""
        named = {
            chunk.row
            for chunk, sections in zip(*self._with_sections(results), strict=True)
            if any(section.anchor == name and section.start >= chunk.start for section in sections)
        }
        best = max(result.score for result in results)
        first = [result._replace(score=best) for result in results if result.row in named]
        return first + [result for result in results if result.row not in named], bool(named)

    def _with_texts(self, results: list[Ranked]) -> list[Ranked]:
        """The results, with another section of its page in place of one that says nothing by itself: the best one below
        a heading without text, and for a list of links the best one that is nearly as good."""
        texts = self.index.texts([result.row for result in results])
        bare = {row for row, text in texts.items() if result_texts.is_heading_alone(text.content)}
        lists = {row for row, text in texts.items() if result_texts.is_link_list(text.content)}
        if not bare and not lists:
            return results
        saying = [result for result in results if result.row not in bare and result.row not in lists]
        best: dict[int, Ranked] = {}
        for result in results:
            row = result.row
            if row in bare or row in lists:
                of_page = (each for each in saying if each.row >> CHUNK_BITS == row >> CHUNK_BITS)
                above, least = f"{texts[row].heading_path}{SEPARATOR}", result_texts.NEAR * result.score
                fit = (
                    each.row
                    for each in of_page
                    if (texts[each.row].heading_path.startswith(above) if row in bare else each.score >= least)
                )
                row = next(fit, row)
            best.setdefault(row, result._replace(row=row))
        return list(best.values())

    def _with_sections(self, results: Sequence[Ranked]) -> tuple[list[StoredChunk], list[tuple[SectionPlace, ...]]]:
        """The chunks of results, and the sections in each."""
        stored = self.index.reader.chunks([result.row for result in results])
        chunks = [stored[result.row] for result in results]
        spans = ((chunk.document_id, chunk.start, chunk.start + len(chunk.content)) for chunk in chunks)
        return chunks, self.index.reader.sections_in(spans)

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

    def hits(self, results: Sequence[Ranked], query: str, found: Candidates) -> list[tuple[Hit, SectionSpan]]:
        """Some results of ``found`` with their whole chunks, each with the section that fits best."""
        chunks, places = self._with_sections(results)
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
            confidence_ = self.fits.confidence(result.evidence)
            definitions = partial(self.index.definitions, chunk.document_id)
            hit, span = result_texts.hit(chunk, result.score, confidence_, section, page_anchor, definitions)
            versions = page_versions.others(self.versions, chunk.document_id) if self.versions.pages else ()
            hits.append((replace(hit, versions=versions) if versions else hit, span))
        return hits

    def _section_chooser(self, weights: Weights) -> SectionChooser:
        query, tokens = weights.query, weights.tokens
        rarest = ranking.idf(1, self.index.count())
        phrases = {phrase: weight * rarest for phrase, weight in query.phrases.items()}
        return SectionChooser(tokens, phrases, self.index.average_length, self.index.stem)

    def _nearest_span(self, row: int, vector: NDArray[np.float32] | None) -> tuple[int, int] | None:
        """The span of the window of a chunk that is nearest to a query; None where it has no vectors."""
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
    """The request with its query as :mod:`anvil.search.query_rewriting` rewrites it, the embedded query if it is
    still that one, and the notes on what was rewritten."""
    query, note = query_rewriting.rewritten(request.query, [each.index for each in searchers], searchers[0].provider)
    return (request, question, ()) if note is None else (replace(request, query=query), None, (note,))


class Result(NamedTuple):
    """A candidate, the place of its index, its score on the scale of the whole answer, and what its passage added."""

    place: int
    score: float
    ranked: Ranked
    passage: float = 0.0

    @property
    def chunk(self) -> tuple[int, int]:
        """The place of its index, and the row of its chunk."""
        return self.place, self.ranked.row

    @property
    def page(self) -> tuple[int, int]:
        """The place of its index, and its document."""
        return self.place, self.ranked.row >> CHUNK_BITS

    @property
    def without_passage(self) -> float:
        """The score by which results of which only some were read again are compared."""
        return self.score - self.passage


def _read_again(
    searchers: Sequence[Searcher],
    request: SearchRequest,
    candidates: Mapping[int, Candidates],
    results: list[Result],
) -> tuple[list[Result], str | None]:
    """The ``results``, best first, after the model has read the passages of the best ones again, or why it could not.
    A name is left to the words, and so is what has no vectors."""
    best = [result for result in results if candidates[result.place].vector is not None][: ranking.MAX_READ]
    scorer = searchers[best[0].place].provider.passages if best else None
    is_asked = request.read_passages and request.mode == "hybrid" and lexicon.qualified_name(request.query) is None
    if scorer is None or not is_asked:
        return results, None
    passages = [searchers[each.place].passage(each.ranked.row, candidates[each.place].vector) for each in best]
    try:
        values = scorer.score(lexicon.bounded(request.query), passages).tolist()
    except AnvilError as error:
        return results, f"No passage was read again: {error}"
    read = {each.chunk for each in best}
    ordered = [*best, *(each for each in results if each.chunk not in read)]
    scores, summands = ranking.with_passages([each.score for each in ordered], values)
    again = [
        each._replace(score=round(score, SCORE_DIGITS), passage=round(summand, SCORE_DIGITS))
        for each, score, summand in zip(ordered, scores, summands, strict=True)
    ]
    return sorted(again, key=lambda result: -result.score), None  # stable


def answer(
    searchers: Sequence[Searcher],
    request: SearchRequest,
    candidates: Mapping[int, Candidates],
    total: int,
    results: list[Result],
) -> RankedHits:
    """The results that are shown, of all ``results``, best first. ``candidates``: by the place of their index.
    ``total``: the number of chunks that pass the filter."""
    results, failure = _read_again(searchers, request, candidates, results)
    options = request.options
    results = [result for result in results if options.threshold <= 0 or result.score >= options.threshold]

    def confidence_of(result: Result) -> float:
        return searchers[result.place].fits.confidence(result.ranked.evidence)

    likely = results
    least = options.min_confidence if request.min_confidence is None else request.min_confidence
    if least > 0:  # else only the results that are shown need theirs
        likely = [result for result in results if confidence_of(result) >= least]
    if request.version is None:
        likely = _one_version_each(searchers, likely, request.query)
    shown = sorted(_best_first(likely)[: request.top_k], key=likely.index)  # still in descending score
    notes = list(dict.fromkeys(filter(None, (*(found.failure for found in candidates.values()), failure))))
    if not total:
        notes += _notes_on_none(searchers, request)
    texts = _hits(searchers, [*shown, *_further(shown, likely)], request.query, candidates)
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
        notes.append(warning if is_covered else f"{warning} The nearest page is {_named(own[0][0])}.")
    ranked = (
        RankedHit(hit, span, _parts(each), each.ranked.evidence, each.ranked.row, each.place)
        for each, (hit, span) in zip(shown, own, strict=True)
    )
    return RankedHits(tuple(ranked), total, tuple(notes))


def _notes_on_none(searchers: Sequence[Searcher], request: SearchRequest) -> list[str]:
    """Notes for a search that covered no page: which filter no page fits. Without a filter there are none."""
    file_filter = request.file_filter
    if file_filter:
        paths = [path for searcher in searchers for path in searcher.index.reader.identities()]
        if not any(map(patterns.selects(file_filter), paths)):
            return [f"No page matches {quoted(file_filter)}.{closest_note(closest_paths(file_filter, paths))}"]
    given = {"version": request.version, "language": request.language}
    named = " and ".join(f"the {key} {quoted(value)}" for key, value in given.items() if value is not None)
    return [f"No page {'in the filter ' if file_filter else ''}has {named}."] if named else []


def _one_version_each(searchers: Sequence[Searcher], results: Sequence[Result], query: str) -> list[Result]:
    """The results without those of other versions of the same page."""
    kept = list(results)
    for place, searcher in enumerate(searchers):
        if searcher.versions.pages:
            own = [result for result in kept if result.place == place]
            chosen = page_versions.one_of_each(
                own, searcher.versions, query, lambda result: result.page[1], lambda result: result.score
            )
            kept = [result for result in kept if result.place != place or result in chosen]
    return kept


def _hits(
    searchers: Sequence[Searcher],
    results: Sequence[Result],
    query: str,
    candidates: Mapping[int, Candidates],
) -> list[tuple[Hit, SectionSpan]]:
    """The results with their texts, in the same order."""
    hits: dict[tuple[int, int], tuple[Hit, SectionSpan]] = {}
    for place in dict.fromkeys(result.place for result in results):
        own = [result for result in results if result.place == place]
        texts = searchers[place].hits([result.ranked for result in own], query, candidates[place])
        for result, (hit, span) in zip(own, texts, strict=True):
            own_hit = hit if hit.score == result.score else replace(hit, score=result.score)
            hits[result.chunk] = own_hit, span
    return [hits[result.chunk] for result in results]


def _further(shown: Sequence[Result], likely: Sequence[Result]) -> list[Result]:
    """The results that are of the page of one that is shown and nearly as good as that one, the best of each page. Two
    of them may be parts of one section."""
    best: dict[tuple[int, int], float] = {}
    for result in shown:
        best.setdefault(result.page, result.without_passage)
    chunks = {result.chunk for result in shown}
    left = dict.fromkeys(best, result_texts.MAX_ALSO + 1)
    further = []
    for result in likely:
        if result.chunk in chunks or not left.get(result.page):
            continue
        if result.without_passage >= result_texts.NEAR * best[result.page]:
            left[result.page] -= 1
            further.append(result)
    return further


def _named(hit: Hit) -> str:
    """The page and section of a hit, for people."""
    place = hit.metadata
    page = address(place.file_path, hit.collection, hit.version)
    return f"{page} ({full_heading(hit.title, place.heading_path)})"


def _parts(result: Result) -> ScoreParts:
    """The parts of a result's score: those in its own index, as shares of the score on the common scale, and that of
    its passage."""
    ranked, rest = result.ranked, result.without_passage
    share = rest / (ranked.score or 1.0)
    words, heading, vectors, links = (round(part * share, SCORE_DIGITS) for part in ranked.summands)
    page = round(rest - sum(ranked.summands) * share, SCORE_DIGITS) + 0.0  # no -0.0
    return ScoreParts(words, heading, vectors, links, result.passage, page)


def _best_first(results: Sequence[Result]) -> list[Result]:
    """The best of the ranked results of each page, then the others, both in their order: five results are of five
    pages, where so many match. The best of a page with less than ``MATCHING`` of the best score is one of the others.
    """
    enough = MATCHING * max((result.without_passage for result in results), default=0.0)
    best: dict[tuple[int, int], Result] = {}
    for result in results:
        best.setdefault(result.page, result)
    first = {result.chunk: result for result in best.values() if result.without_passage >= enough}
    return [*first.values(), *(result for result in results if result.chunk not in first)]
