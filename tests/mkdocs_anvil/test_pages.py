"""Which pages are indexed, and what is said of them, without a site."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mkdocs")
from anvil.sites import html_tree
from mkdocs_anvil import pages, plugin


@pytest.mark.parametrize(
    ("include", "exclude", "meta", "wanted"),
    [
        ([], [], {}, True),
        (["guides/**"], [], {}, True),
        (["other/**"], [], {}, False),
        ([], ["**/a.md"], {}, False),
        (["guides/**"], ["guides/"], {}, False),
        ([], [], {"search": {"exclude": True}}, False),
        ([], [], {"search": {"exclude": False}}, True),
        ([], [], {"search": {"boost": 2}}, True),
        ([], [], {"search": True}, True),
    ],
)
def test_a_page_is_wanted(include: list[str], exclude: list[str], meta: dict[str, Any], wanted: bool) -> None:
    assert pages.Choice(include, exclude, []).wants("guides/a.md", meta) is wanted


@pytest.mark.parametrize(
    ("path", "rendered", "wanted"),
    [("a.md", [], False), ("a.markdown", [], False), ("api/a.md", ["api/"], True), ("notes/a.ipynb", [], True)],
)
def test_html_is_indexed_where_it_is_asked_for_or_there_is_no_markdown(
    path: str, rendered: list[str], wanted: bool
) -> None:
    assert pages.Choice([], [], rendered).as_rendered(path) is wanted


@pytest.mark.parametrize(
    ("docs", "name"),
    [
        ("docs", "site-docs.db"),
        ("en/docs", "site-en-docs.db"),
        ("../elsewhere/pages", "site-pages.db"),
        ("日本", "site-docs.db"),
        (".", "site-docs.db"),
    ],
)
def test_the_kept_index_is_named_for_its_documents(tmp_path: Path, docs: str, name: str) -> None:
    folder = tmp_path / "project"
    documents = Path(str(folder / docs)) if ".." not in docs else tmp_path / "elsewhere/pages"
    assert plugin.kept_index(folder, documents, "site") == folder / ".anvil" / name


@pytest.mark.parametrize(
    ("markdown", "html", "wanted"),
    [
        ("# A\n\nText.\n", "<h1>A</h1><p>Text.</p>", False),
        ("# API\n\n::: package\n", "<h1>API</h1><h2><code>package.f(a)</code></h2>", True),
        ("## H~2~O & `f()`\n", "<h2>H<sub>2</sub>O &amp; <code>f()</code></h2>", False),
        ("# A\n\n{{ table }}\n", f"<h1>A</h1><p>{'<b>new</b> words ' * 20}</p>", True),
        ("# A\n\n:smile:\n", "<h1>A</h1><p>Copy to clipboard</p><svg><title>smiling face</title></svg>", False),
        ("# A\n", f"<h1>A</h1><script>{'x ' * 100}</script><p>End.</p>", False),
        (f"# A\n\n{'old ' * 920}\n", f"<h1>A</h1><p>{'old ' * 920}{'new ' * 80}</p>", False),
        (f"# A\n\n{'old ' * 880}\n", f"<h1>A</h1><p>{'old ' * 880}{'new ' * 120}</p>", True),
    ],
)
def test_html_says_what_its_markdown_lacks(markdown: str, html: str, wanted: bool) -> None:
    assert pages.is_incomplete(markdown, pages.read_fragment(html)) is wanted


def test_html_that_is_too_deep_is_no_html_to_compare_with() -> None:
    content = pages.read_fragment(f"<h2>Lamps</h2>{'<div>' * 30_000}word")
    assert (content.headings, content.words) == ((), ())
    assert not pages.is_incomplete("# A\n", content)
    with pytest.raises(html_tree.Unreadable, match="more than 1,000 elements inside each other"):
        _ = content.converted
