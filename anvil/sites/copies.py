"""Pages of a site whose text other pages have: in a language to which it is not translated, or several in one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from anvil.sites.page_choice import SitePage
from anvil.values import Skipped
from anvil.wording import first_of

MIN_PAGE_WORDS = 20
"""A shorter page is no copy: two pages may say the same in a sentence."""
MIN_SHARE = 0.9
"""The share of a page's words that other pages must have."""
MAX_ALIKE = 100
"""Pages of one text among which those that list others are looked for."""
DIGEST_CHARACTERS = 12
"""Of each passage in :attr:`PageFacts.passages`, in front of its number of words."""


def among(pages: Sequence[SitePage], sources: Mapping[str, str]) -> list[Skipped]:
    """The copies among the pages of a site, each with a reason. ``sources``: path of a page's HTML -> its source.

    Of several pages with one text, the one with a source stays, else the one with the shortest path. Versions of the
    documentation are kept apart. A page with a source is a copy only of several others.
    """
    copies: list[Skipped] = []
    holders: dict[tuple[str | None, str], str] = {}
    listing = _listing(pages)

    def order(page: SitePage) -> tuple[int, bool, bool, int, str]:
        no_source = page.file not in sources
        return (
            int(page.facts.passages.partition(" ")[0] or 0),
            no_source,
            page.file in listing,
            len(page.file),
            page.file,
        )

    for page in sorted(pages, key=order):
        total, *found = page.facts.passages.split(" ")
        covered = 0
        others: dict[str, None] = {}
        for passage in found:
            holder = holders.get((page.version, passage))
            if holder is not None:
                covered += int(passage[DIGEST_CHARACTERS:])
                others[holder] = None
        size = int(total or 0)
        if size >= MIN_PAGE_WORDS and covered >= MIN_SHARE * size and (page.file not in sources or len(others) > 1):
            copies.append(Skipped(page.file, f"its text is that of {first_of(sorted(others), 3)}"))
            continue
        for passage in found:
            holders.setdefault((page.version, passage), page.file)
    return copies


def _listing(pages: Iterable[SitePage]) -> frozenset[str]:
    """Pages that list others with their whole text, such as the front page of a blog: the text of a page in a folder
    below that has another title."""
    alike: dict[str, list[SitePage]] = {}
    for page in pages:
        alike.setdefault(page.facts.passages, []).append(page)
    return frozenset(
        page.file
        for group in alike.values()
        if 1 < len(group) <= MAX_ALIKE
        for page in group
        if any(
            other.facts.title != page.facts.title and other.file.startswith(f"{page.file.rpartition('/')[0]}/")
            for other in group
        )
    )
