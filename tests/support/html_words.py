"""What a page loses on its way from HTML to Markdown."""

from __future__ import annotations

from collections import Counter

from anvil.core.html import markdown, parser, signatures, words
from anvil.core.html.content import content_of


def lost_and_invented(html: bytes | str) -> tuple[Counter[str], Counter[str]]:
    """The words of a page's content that its Markdown lacks, and those that only its Markdown has.

    The Markdown is read with its marks removed, so a mark that hides text counts as a loss. The name of an entry of an
    API is in its heading and in its signature.
    """
    content = content_of(parser.parse(html))
    converted = markdown.to_markdown(content)
    entries = [entry for root in content.roots for entry in parser.select(root, "dt.sig[id], .doc-heading")]
    anchors = {heading.id for heading in converted.headings}
    names = [
        word
        for entry in entries
        if entry.attributes.get("id") in anchors and (name := signatures.name_in(entry, content.skipped))
        if name != " ".join(words.spaced_text(entry, content.skipped).split())
        for word in words.words(name)
    ]
    return words.difference(words.of_content(content) + names, words.of_markdown(converted.markdown))
