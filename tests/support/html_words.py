"""What a page loses on its way from HTML to Markdown."""

from __future__ import annotations

from collections import Counter

from anvil.sites import html_page, html_to_markdown, html_tree, page_content
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
        if entry.attributes.get("id") in anchors and (name := page_content.signature_name(entry, content.skipped))
        if name != page_content.text_of(entry, content.skipped)
        for word in page_content.words(name)
    ]
    left = Counter(page_content.words_of(content) + names)
    right = Counter(html_page.markdown_words(converted.markdown))
    return left - right, right - left
