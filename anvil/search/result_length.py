"""How much text of each result is returned."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from anvil.results import Hit
from anvil.search import snippets
from anvil.search.section_match import Span

DEFAULT_MAX_CHARS = 12_000
"""The budget of a search that gives none."""
RANK_CHARS = (4000, 2000, 500)
"""Characters of the first result, of the second, and of each other one, with this budget. Of 67 questions that
one of five results answers, the first two answer 57; ``benchmarks/agents.py`` counts what an agent reads."""


def within_budget(
    hits: Sequence[tuple[Hit, Span]], query: str, max_chars: int | None
) -> tuple[tuple[Hit, ...], tuple[Span, ...]]:
    """The hits, with contents of at most ``max_chars`` together: the last hits are cut first, to lines of the named
    section that match.

    Each hit is first cut to the size of its rank in :data:`RANK_CHARS`, which grows with a larger budget than
    :data:`DEFAULT_MAX_CHARS`. Then a hit keeps at least its fair share of the budget. Metadata and the number of hits
    stay.
    """
    stems = snippets.query_stems(query)
    shortened = list(hits)
    if max_chars is None:
        max_chars = DEFAULT_MAX_CHARS
    for rank, (hit, span) in enumerate(hits):
        size = RANK_CHARS[min(rank, len(RANK_CHARS) - 1)] * max(max_chars, DEFAULT_MAX_CHARS) // DEFAULT_MAX_CHARS
        shortened[rank] = _cut(hit, span, stems, size)
    total = sum(len(hit.content) for hit, _ in shortened)
    share = max(max_chars // max(len(hits), 1), 1)
    for index in reversed(range(len(shortened))):
        if total <= max_chars:
            break
        hit, span = shortened[index]
        shortened[index] = _cut(hit, span, stems, max(share, len(hit.content) - (total - max_chars)))
        total -= len(hit.content) - len(shortened[index][0].content)
    return tuple(hit for hit, _ in shortened), tuple(span for _, span in shortened)


def _cut(hit: Hit, span: Span, stems: Collection[str], size: int) -> tuple[Hit, Span]:
    """A hit with at most ``size`` characters, of the section that it names."""
    if len(hit.content) <= size:
        return hit, span
    own = hit.content[span.start : span.end]
    start, end = snippets.section_snippet(own, stems, size)
    cut = Span(0, end - start, span.line_at(own, start), span.parallel)
    return replace(hit, content=own[start:end], truncated=True), cut
