"""What a page loses on its way from HTML to Markdown."""

from __future__ import annotations

from collections import Counter

from anvil.sites import content_words, html_elements, html_to_markdown, html_tree
from anvil.sites.page_content import content_of


def lost_and_invented(html: bytes | str) -> tuple[Counter[str], Counter[str]]:
    """The words of a page's content that its Markdown lacks, and those that only its Markdown has.

    The Markdown is read with its marks removed, so a mark that hides text counts as a loss. The name of an entry of an
    API is in its heading and in its signature.
    """
    content = content_of(html_tree.parse(html))
    converted = html_to_markdown.to_markdown(content)
    entries = [entry for root in content.roots for entry in html_tree.select(root, "dt.sig[id], .doc-heading")]
    anchors = {heading.id for heading in converted.headings}
    names = [
        word
        for entry in entries
        if entry.attributes.get("id") in anchors and (name := html_elements.signature_name(entry, content.skipped))
        if name != " ".join(content_words.spaced_text(entry, content.skipped).split())
        for word in content_words.words(name)
    ]
    left = Counter(content_words.of_content(content) + names)
    right = Counter(content_words.of_markdown(converted.markdown))
    return left - right, right - left
