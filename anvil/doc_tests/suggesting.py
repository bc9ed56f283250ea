"""Questions in pages: headings that are questions, and the headings of a FAQ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from anvil.values import Section

MIN_WORDS = 3
"""Words of a suggested heading: "Why?" says too little."""
_FAQ = re.compile(r"\bfaqs?\b|frequently asked|^(common )?questions\b|^troubleshooting\b", re.IGNORECASE)


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
        is_question = in_faq or section.title.endswith("?")
        if is_question and len(section.title.split()) >= MIN_WORDS:
            yield section.title, section
        if faq_level is None and _FAQ.search(section.title):
            faq_level = section.heading_level
