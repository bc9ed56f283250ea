"""What is known of a page besides its text: its title, its address, why it may be no page, and its images."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple


class PageImage(NamedTuple):
    """An image of a page, whose text has its alternative text alone.

    ``start``: where that is in the Markdown of the page. ``alt``: it, as Markdown; empty for an image without one.
    ``markdown``: what takes its place where images are kept.
    """

    start: int
    alt: str
    markdown: str


class PageFacts(NamedTuple):
    """What the head and the content of a page say, by which it is decided whether it is indexed.

    ``canonical``, ``edit_url`` and ``refresh`` are addresses as the page has them, or None. ``robots``: what it tells
    search engines, each tag on a line, in lower case. ``shell``: scripts make its content, so its HTML has none.
    ``word_count``: words of the content, and ``own_words``: those outside of its links and headings. ``frames``: it is
    a set of frames. ``digest``: the SHA-256 (hex) of what is indexed of it. ``passages``: its text in short, by which
    copies are found. ``problem``: why it cannot be read. ``images``: in the order of the text.
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
    robots: str = ""
    shell: bool = False
    frames: bool = False
    digest: str = ""
    passages: str = ""
    problem: str | None = None
    images: tuple[PageImage, ...] = ()

    @classmethod
    def of_json(cls, values: Sequence[Any]) -> PageFacts:
        """The facts that were written as a list in JSON. Raises :class:`TypeError` or :class:`ValueError` for another
        list."""
        *others, listed = values
        images = tuple(PageImage(int(start), str(alt), str(markdown)) for start, alt, markdown in listed)
        return cls._make((*others, images))


def with_images(text: str, images: Iterable[PageImage]) -> str:
    """The Markdown of a page with its images in place of their alternative texts."""
    pieces: list[str] = []
    at = 0
    for image in images:
        if image.start >= at and text.startswith(image.alt, image.start):
            pieces += text[at : image.start], image.markdown
            at = image.start + len(image.alt)
    return "".join([*pieces, text[at:]])
