"""Questions in pages: headings that are questions, and the headings of a FAQ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from anvil.models.documents import Section

MIN_WORDS = 3
"""Words of a suggested heading: "Why?" says too little."""
_FAQ = re.compile(r"\bfaqs?\b|frequently asked|^(common )?questions\b|^troubleshooting\b", re.IGNORECASE)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")


def questions_in(path: str, title: str, sections: Sequence[Section]) -> Iterator[tuple[str, Section]]:
    """(question, section) of each heading of a page that ends in a question mark or is in a FAQ: its page, or a heading
    above it, has such a name."""
    faq_level = 0 if _FAQ.search(title) or _FAQ.search(path.rpartition("/")[2].partition(".")[0]) else None
    for section in sections:
        if section.heading_level == 0:
            continue
        if faq_level and section.heading_level <= faq_level:
            faq_level = None
        in_faq = faq_level is not None and section.heading_level > max(faq_level, 1)
        text = plain(section.title)
        if (in_faq or text.endswith("?")) and len(text.split()) >= MIN_WORDS:
            yield text, section
        if faq_level is None and _FAQ.search(section.title):
            faq_level = section.heading_level


def plain(heading: str) -> str:
    """A heading as plain text."""
    return " ".join(_LINK.sub(r"\1", heading).replace("`", "").replace("**", "").split())
