"""The links between pages: which page a link leads to, and what its text says of that page."""

from __future__ import annotations

import time

import pytest

from anvil.text import visible_text
from anvil.text.link_popularity import LinkablePage, PageLinks, PageText, definitions, links_in
from anvil.text.query import words


def tokens(text: str) -> list[str]:
    return [word.lower() for word in words(text)]


def linked(pages: dict[str, str], urls: dict[str, str] | None = None) -> tuple[PageLinks, dict[str, int]]:
    ids = {path: number for number, path in enumerate(pages, 1)}
    addresses = [LinkablePage(ids[path], path, (urls or {}).get(path), path.encode()) for path in pages]
    return PageLinks(
        addresses, {ids[path]: links_in(path, text_of(ids[path], text)) for path, text in pages.items()}
    ), ids


def text_of(page: int, text: str) -> PageText:
    """As an index has it: a definition is masked in the text, and its characters are in the hidden ones."""
    mask = visible_text.masked(text)
    return PageText(page, mask, visible_text.taken(text, mask))


def covered(pages: dict[str, str], path: str, word: str, urls: dict[str, str] | None = None) -> bool:
    links, ids = linked(pages, urls)
    return links.coverage(ids[path], {word: 1.0}, tokens) == 1.0


@pytest.mark.parametrize(
    ("source", "target", "link"),
    [
        ("a.md", "b.md", "[w](b.md)"),
        ("a.md", "b.md", "[w](./b.md#part)"),
        ("a.md", "b.md", "[w](b)"),
        ("a.md", "b.md", '[w](b.md "Title")'),
        ("a.md", "b.md", "[w](<b.md>)"),
        ("a.md", "b.md", "[w](/b)"),
        ("a.md", "b.md", "[w](/docs/latest/b/)"),
        ("guide/a.md", "b.md", "[w](../b.md)"),
        ("guide/a.md", "b.md", "[w](../../b/)"),  # the site serves guide/a/
        ("guide/a.md", "guide/b.md", "[w](../b/)"),
        ("guide/a.md", "guide/index.md", "[w](/guide/)"),
        ("guide/a.md", "guide/b c.md", "[w](b%20c.md)"),
        ("a.md", "guide/01-install.mdx", "[w](guide/install)"),
        ("a.md", "Guide/Install.md", "[w](guide/install)"),
        ("a.md", "guide/install.md", '[w]({{< ref "install" >}})'),
        ("a.md", "guide/install.md", '[w]({{% relref "/guide/install.md" %}})'),
        ("a.md", "b.md", "[w][label]\n\n[Label]: b.md"),
        ("a.md", "b.md", "[w]\n\n[w]: <b.md> 'title'"),
        ("a.md", "b.md", "[w][]\n\n[w]: b.md"),
        ("SUMMARY.md", "notes/whats_new.md", r"* [w](notes/whats\_new.md)"),  # as GitBook writes it
    ],
)
def test_a_link_leads_to_a_page(source: str, target: str, link: str) -> None:
    assert covered({source: f"See {link}\n", target: "text", "other/page.md": "text"}, target, "w")


@pytest.mark.parametrize(
    "link",
    [
        "![w](b.md)",
        "[w](#part)",
        "[w](https://example.com/b)",
        "[w](//example.com/b)",
        "[w](mailto:b@example.com)",
        "[w](missing.md)",
        "[w] (b.md)",
        "[w]: b.md",
    ],
)
def test_what_leads_to_no_page_is_no_link(link: str) -> None:
    links, _ = linked({"a.md": link, "b.md": "text"})
    assert not links


def test_a_link_with_an_address_leads_to_the_page_that_has_it() -> None:
    urls = {"b.md": "https://example.com/docs/b/"}
    pages = {"a.md": "[w](https://example.com/docs/b/#part)", "b.md": "text"}
    assert covered(pages, "b.md", "w", urls) and not covered(pages, "b.md", "w")


def test_the_end_of_a_path_that_two_pages_have_leads_to_none() -> None:
    pages = {"a.md": '[w]({{< ref "install" >}})', "x/install.md": "", "y/install.md": ""}
    assert not linked(pages)[0]


def test_coverage_is_the_share_of_the_weights_in_all_link_texts() -> None:
    links, ids = linked({"a.md": "[preview branches](c.md)", "b.md": "[pull requests](c.md)", "c.md": "[own](c.md)"})
    weights = {"preview": 1.0, "pull": 2.0, "own": 3.0, "unknown": 2.0}
    assert links.coverage(ids["c.md"], weights, tokens) == pytest.approx(3 / 8)
    assert links.coverage(ids["a.md"], weights, tokens) == 0 and links.coverage(ids["c.md"], {}, tokens) == 0


def test_popularity_counts_pages_and_not_links() -> None:
    links, ids = linked({"a.md": "[x](b.md) [y](b.md) [z](c.md)", "b.md": "[x](c.md)", "c.md": "[self](c.md)"})
    popularity = {path: links.popularity(ids[path]) for path in ids}
    assert 0 == popularity["a.md"] < popularity["b.md"] < popularity["c.md"] < 1
    for count, is_whole in ((19, False), (20, True), (40, True)):
        many = {f"{number}.md": "[x](home.md)" for number in range(count)}
        links, ids = linked({**many, "home.md": ""})
        assert (links.popularity(ids["home.md"]) == 1.0) == is_whole


def test_the_order_of_the_pages_does_not_matter() -> None:
    pages = {"a.md": "[x](b.md)", "b.md": "[y](c.md)", "c.md": "[z](b.md)"}
    one, ids = linked(pages)
    other, other_ids = linked(dict(reversed(pages.items())))
    for path in pages:
        for word in "xyz":
            assert one.coverage(ids[path], {word: 1.0}, tokens) == other.coverage(other_ids[path], {word: 1.0}, tokens)


@pytest.mark.parametrize("text", ["[", "[a](", "[a](b", "](", "[a]:", "[a][", "{{< ref ", '[a]({{< ref "'])
def test_hostile_text_takes_linear_time(text: str) -> None:
    started = time.process_time()
    text *= 1_000_000 // len(text)
    pages = [LinkablePage(1, "a.md", None, b"a"), LinkablePage(2, "b.md", None, b"b")]
    texts = {"a.md": PageText(1, text, "[a]: b.md"), "b.md": PageText(2, "[a]", text)}
    PageLinks(pages, {page.id: links_in(page.path, texts[page.path]) for page in pages})
    assert time.process_time() - started < 3


def test_of_a_page_with_very_many_links_the_first_ones_are_read() -> None:
    links, ids = linked({"a.md": "[x](b.md) " * 2000 + "[y](c.md)", "b.md": "", "c.md": ""})
    assert links.popularity(ids["b.md"]) > 0 == links.popularity(ids["c.md"])


def test_a_page_keeps_a_bounded_number_of_link_texts() -> None:
    text = " ".join(f"[word{number}](b.md)" for number in range(205))
    links, ids = linked({"a.md": text, "b.md": ""})
    first, last = {"word0": 1.0}, {"word204": 1.0}
    assert links.coverage(ids["b.md"], first, tokens) == 1 and links.coverage(ids["b.md"], last, tokens) == 0


def test_a_target_of_very_many_folders_has_few_keys() -> None:
    [link] = links_in("a.md", PageText(1, f"[x](/{'d/' * 140}b.md)", ""))
    assert len(link.targets) == 6
    links, ids = linked({"a.md": f"[x](/docs/{'d/' * 9}b.md)", f"{'d/' * 9}b.md": ""})
    assert links.popularity(ids[f"{'d/' * 9}b.md"]) > 0


def test_a_definition_may_have_its_target_in_angle_brackets() -> None:
    hidden = "[a]: <all ropes.md> [b]: b_(knot) [c]:   c.md 'Title' [d]: <>"
    assert definitions(hidden) == {"a": "all ropes.md", "b": "b_(knot)", "c": "c.md"}
