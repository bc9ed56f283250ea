"""Chunks to windows, the texts that a model embeds.

A window is a slice of its chunk under a header of page title and breadcrumb, and has one vector. Each character that is
not blank and that readers see is in some window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from anvil.formats.patterns import lazy_pattern
from anvil.text import visible_text
from anvil.values import ROOT, SEPARATOR, Window

MAX_HEADER_TOKENS = 48
"""A fifth of what the bundled model reads; a longer header would take the place of text."""

OVERLAP_TOKENS = 32
"""Tokens that neighbouring windows share: a sentence or two, so that one at a border is whole in one of them."""

_PART_OF = lazy_pattern(r" \[part \d+/\d+\]$")
_ESTIMATED_WORD = lazy_pattern(r"[^\W_]+|\S")


def window_header(title: str, heading_path: str) -> str:
    """The header of a chunk's windows: page title and breadcrumb, without a second title and without ``[part 2/3]``.

    It has about 48 tokens at most, by an estimate without the model's tokenizer. Of a longer one, the headings next to
    the title are removed first, then the end is cut.
    """
    title = " ".join(title.split())
    path = _PART_OF.sub("", heading_path)
    names = [] if path == ROOT else path.split(SEPARATOR)
    # Mostly the h1 is the page's title. Compared with the whole title, because a title may hold a separator itself.
    if path == title or path.startswith(title + SEPARATOR):
        names = path.removeprefix(title).removeprefix(SEPARATOR).split(SEPARATOR)
    names = [name for name in names if name]
    while len(names) > 1 and _estimate(SEPARATOR.join([title, *names])) > MAX_HEADER_TOKENS:
        names.pop(0)
    text = SEPARATOR.join([name for name in [title, *names] if name])
    if _estimate(text) > MAX_HEADER_TOKENS and names:
        text = names[-1]
    return _fit_header(text)


def _cost(word: str) -> int:
    """Tokens of a word: an upper bound for WordPiece, except for random letters."""
    return -(-len(word) // 3) if word.isascii() else len(word)


def _estimate(text: str) -> int:
    return sum(_cost(word[0]) for word in _ESTIMATED_WORD.finditer(text))


def _fit_header(text: str) -> str:
    left = MAX_HEADER_TOKENS
    for word in _ESTIMATED_WORD.finditer(text):
        left -= _cost(word[0])
        if left < 0:
            return text[: word.start()].rstrip() or text[:MAX_HEADER_TOKENS]
    return text


def cut_windows(
    chunk_content: str, header: str, spans: Sequence[tuple[int, int]], header_tokens: int, max_tokens: int, overlap: int
) -> tuple[Window, ...]:
    """Cut a chunk into windows that fit the model, one at least. Takes linear time.

    ``spans``: the chunk's tokens as character offsets, in order. ``max_tokens``: tokens of header and slice, without
    the model's special tokens. The result has as few windows as possible, of about the same size. They overlap by about
    ``overlap`` tokens, and end at the end of a line, a sentence or a word where one is near.
    """
    tokens = _token_starts(spans, len(chunk_content))
    room = max(8, max_tokens - header_tokens)  # the header is an estimate: it may leave a small model no room at all
    overlap = max(0, min(overlap, room // 2))  # else a window could begin no further than the one before
    result: list[Window] = []
    first = 0
    while True:
        left = len(tokens) - first
        done = left <= room
        last = len(tokens)
        if not done:
            # n windows of r tokens that share o hold n r - (n - 1) o tokens. So the fewest are counted first, and then
            # made equal: a last window of a few tokens would be a vector of nearly nothing but the header.
            more = -(-(left - overlap) // (room - overlap))
            even = -(-(left + (more - 1) * overlap) // more)
            target = first + even
            last = _best_cut(chunk_content, tokens, target - even // 4, min(target + even // 4, first + room), target)
        start = tokens[first] if first else 0
        stop = len(chunk_content) if done else tokens[last]
        result.extend(_window(chunk_content, header, start, stop))
        if done:
            break
        target = last - overlap
        near = overlap // 2
        first = max(
            first + 1, _best_cut(chunk_content, tokens, target - near, target + near, target) if near else target
        )
    if not result:  # no character is visible: one window all the same, so that the chunk counts as cut
        return (Window(0, len(chunk_content), window_text(header, chunk_content)),)
    return tuple(result)


def _token_starts(spans: Sequence[tuple[int, int]], size: int) -> list[int]:
    """Positions where a window can end: token starts, in order. Tokens of one character are not split."""
    starts: list[int] = []
    for start, end in spans:
        if start < end <= size:  # byte-level tokenizers give several tokens the span of one character, or an empty one
            starts.append(max(start, starts[-1]) if starts else start)
    return starts


def window_text(header: str, piece: str) -> str:
    """The text that is embedded for ``piece``, a slice of a chunk, without text that readers do not see."""
    piece = visible_text.shown(piece)
    return f"{header}\n{piece}" if header else piece


def _window(content: str, header: str, start: int, stop: int) -> Iterator[Window]:
    piece = content[start:stop]
    # White space at the ends is no part: windows that differ in nothing else are the same text, with one vector.
    start += len(piece) - len(piece.lstrip())
    piece = piece.strip()
    if visible_text.shown(piece).strip():
        yield Window(start, start + len(piece), window_text(header, piece))


def _best_cut(content: str, tokens: Sequence[int], low: int, high: int, target: int) -> int:
    """The best token in ``low..high`` to cut before: by kind of border, then by distance to ``target``."""
    best, best_kind = target, -1
    low, high = max(1, low), min(high, len(tokens) - 1)
    for distance in range(max(high - target, target - low) + 1):
        for index in (target - distance, target + distance):
            if low <= index <= high and tokens[index - 1] < tokens[index]:
                kind = _border_kind(content[tokens[index - 1] : tokens[index]], content[tokens[index]])
                if kind > best_kind:
                    best, best_kind = index, kind
        if best_kind == 3:  # nothing is better, and what follows is further away
            break
    return best


def _border_kind(before: str, after: str) -> int:
    """3: end of a line, 2: of a sentence, 1: of a word, 0: within a word. ``before``: text since the last token."""
    # Borders before items, options and rows were tried: vectors find as much then, and hybrid search less. The numbers
    # are in docs/performance-method.md, "Single flags and options".
    bare = before.rstrip()
    if "\n" in before[len(bare) :] or "\r" in before[len(bare) :]:
        return 3
    # No space follows an ideographic full stop. Behind an ASCII one it must: "3.5" and "e.g" are no sentences.
    if bare[-1:] in "\u3002\uff01\uff1f" or (len(bare) < len(before) and bare[-1:] in ".!?:;"):
        return 2
    return 0 if bare == before and before[-1:].isalnum() and after.isalnum() and after.isascii() else 1
