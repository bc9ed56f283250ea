"""What is known of a page of HTML apart from its text."""

from __future__ import annotations

from typing import NamedTuple


class PageFacts(NamedTuple):
    """What the head and the content of a page say, by which it is decided whether it is indexed.

    ``canonical``, ``edit_url`` and ``refresh`` are addresses as the page has them, or None. ``noindex``: search engines
    may not index it. ``shell``: scripts make its content, so its HTML has none. ``word_count``: words of the content,
    and ``own_words``: those outside of its links and headings. ``frames``: it is a set of frames. ``digest``: the
    SHA-256 (hex) of what is indexed of it. ``passages``: its text in short, by which
    copies are found. ``problem``: why it cannot be read.
    """

    title: str = ""
    language: str = ""
    generator: str = ""
    description: str = ""
    word_count: int = 0
    own_words: int = 0
    canonical: str | None = None
    edit_url: str | None = None
    refresh: str | None = None
    noindex: bool = False
    shell: bool = False
    frames: bool = False
    digest: str = ""
    passages: str = ""
    problem: str | None = None
