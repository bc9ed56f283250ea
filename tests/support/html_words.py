"""What a page loses on its way from HTML to Markdown."""

from __future__ import annotations

from collections import Counter

from anvil.core.html import markdown, parser, words
from anvil.core.html.content import content_of


def lost_and_invented(html: bytes | str) -> tuple[Counter[str], Counter[str]]:
    """The words of a page's content that its Markdown lacks, and those that only its Markdown has.

    The Markdown is read with its marks removed, so a mark that hides text counts as a loss.
    """
    content = content_of(parser.parse(html))
    return words.difference(words.of_content(content), words.of_markdown(markdown.to_markdown(content).markdown))
