"""Chunks to windows: the texts that a model embeds, one vector each.

A window is a slice of its chunk under a header of page title and breadcrumb. Each character that is not blank and that
readers see is in some window.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from anvil.core.markdown import visible_text
from anvil.models.documents import ROOT, SEPARATOR, Window

MAX_HEADER_TOKENS = 48

_PART = re.compile(r" \[part \d+/\d+\]$")
_WORD = re.compile(r"[^\W_]+|\S")


def window_header(title: str, heading_path: str) -> str:
    """What stands above each window of a chunk: page title and breadcrumb, without repeating the title.

    Without ``[part 2/3]``, which says nothing about the text. At most about 48 tokens (estimated, there is no
    tokenizer here): of a longer one, the names next to the title give way first, then the end is cut.
    """
    title = " ".join(title.split())
    path = _PART.sub("", heading_path)
    names = [] if path == ROOT else path.split(SEPARATOR)
    if path == title or path.startswith(title + SEPARATOR):
        names = path.removeprefix(title).removeprefix(SEPARATOR).split(SEPARATOR)
    names = [name for name in names if name]
    while len(names) > 1 and _estimate(SEPARATOR.join([title, *names])) > MAX_HEADER_TOKENS:
        names.pop(0)
    text = SEPARATOR.join([name for name in [title, *names] if name])
    if _estimate(text) > MAX_HEADER_TOKENS and names:
        text = names[-1]
    return _fit(text)


def _cost(word: str) -> int:
    """Tokens of a word, from above for WordPiece on anything but random letters."""
    return -(-len(word) // 3) if word.isascii() else len(word)


def _estimate(text: str) -> int:
    return sum(_cost(found[0]) for found in _WORD.finditer(text))


def _fit(text: str) -> str:
    left = MAX_HEADER_TOKENS
    for found in _WORD.finditer(text):
        left -= _cost(found[0])
        if left < 0:
            return text[: found.start()].rstrip() or text[:MAX_HEADER_TOKENS]
    return text


def cut_windows(
    chunk_content: str,
    header: str,
    spans: Sequence[tuple[int, int]],
    header_tokens: int,
    max_tokens: int,
    overlap: int,
) -> tuple[Window, ...]:
    """Cut a chunk into what the model reads at once.

    ``spans`` are the chunk's tokens as character offsets, in order; ``max_tokens`` counts header and slice
    (take off the model's special tokens before). As few windows as that allows, of about one size: a sliver at
    the end would cost a whole vector and say little. They overlap by about ``overlap`` tokens and end, where one
    is near, at the end of a line, a sentence or a word. Always at least one window. Linear in the chunk.
    """
    tokens = _token_starts(spans, len(chunk_content))
    room = max(8, max_tokens - header_tokens)
    overlap = max(0, min(overlap, room // 2))
    made: list[Window] = []
    first = 0
    while True:
        left = len(tokens) - first
        done = left <= room
        last = len(tokens)
        if not done:
            more = -(-(left - overlap) // (room - overlap))
            even = -(-(left + (more - 1) * overlap) // more)
            wanted = first + even
            last = _border(chunk_content, tokens, wanted - even // 4, min(wanted + even // 4, first + room), wanted)
        start = tokens[first] if first else 0
        stop = len(chunk_content) if done else tokens[last]
        made.extend(_window(chunk_content, header, start, stop))
        if done:
            break
        wanted = last - overlap
        near = overlap // 2
        first = max(
            first + 1,
            _border(chunk_content, tokens, wanted - near, wanted + near, wanted) if near else wanted,
        )
    if not made:
        return (Window(0, len(chunk_content), window_text(header, chunk_content)),)
    return tuple(made)


def _token_starts(spans: Sequence[tuple[int, int]], size: int) -> list[int]:
    """Where a window may be cut: token starts, in order. Tokens of one character are not parted."""
    starts: list[int] = []
    for start, end in spans:
        if start < end <= size:
            starts.append(max(start, starts[-1]) if starts else start)
    return starts


def window_text(header: str, piece: str) -> str:
    """What the model reads for ``piece``, a window's slice of its chunk; not what readers do not see of it."""
    piece = visible_text.shown(piece)
    return f"{header}\n{piece}" if header else piece


def _window(content: str, header: str, start: int, stop: int) -> Iterator[Window]:
    piece = content[start:stop]
    start += len(piece) - len(piece.lstrip())
    piece = piece.strip()
    if visible_text.shown(piece).strip():
        yield Window(start, start + len(piece), window_text(header, piece))


def _border(content: str, tokens: Sequence[int], low: int, high: int, wanted: int) -> int:
    """The best token to cut before within ``low..high``: by kind of border, then nearness to ``wanted``."""
    best, best_kind = wanted, -1
    low, high = max(1, low), min(high, len(tokens) - 1)
    for distance in range(max(high - wanted, wanted - low) + 1):
        for index in (wanted - distance, wanted + distance):
            if low <= index <= high and tokens[index - 1] < tokens[index]:
                kind = _kind(content[tokens[index - 1] : tokens[index]], content[tokens[index]])
                if kind > best_kind:
                    best, best_kind = index, kind
        if best_kind == 3:
            break
    return best


def _kind(before: str, after: str) -> int:
    """3 a line's end, 2 a sentence's, 1 a word's, 0 within a word. ``before`` runs from the token before."""
    bare = before.rstrip()
    if "\n" in before[len(bare) :] or "\r" in before[len(bare) :]:
        return 3
    if bare[-1:] in "\u3002\uff01\uff1f" or (len(bare) < len(before) and bare[-1:] in ".!?:;"):
        return 2
    return 0 if bare == before and before[-1:].isalnum() and after.isalnum() and after.isascii() else 1
