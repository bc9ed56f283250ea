"""The file that a page was made from, as the generators lay out sources and pages."""

from __future__ import annotations

import pytest

from anvil.sites import source_files
from anvil.sites.site_pages import PageFacts, SitePage


def made(
    file: str,
    title: str = "",
    edit: str | None = None,
    version: str | None = None,
    language: str = "en",
    stated: str = "",
) -> SitePage:
    return SitePage(file, file, None, version, language, PageFacts(title=title, edit_url=edit, version=stated))


GITHUB = "https://github.com/o/r/edit/main/docs/"


@pytest.mark.parametrize(
    ("pages", "files", "expected"),
    [
        ([made("guide/x/index.html")], ["guide/x.md"], {"guide/x/index.html": "guide/x.md"}),
        ([made("guide/index.html")], ["guide/index.md"], {"guide/index.html": "guide/index.md"}),
        ([made("guide/index.html")], ["guide/README.md"], {"guide/index.html": "guide/README.md"}),
        ([made("guide/index.html")], ["guide/_index.md"], {"guide/index.html": "guide/_index.md"}),
        ([made("index.html")], ["index.mdx"], {"index.html": "index.mdx"}),
        ([made("api.html")], ["api.rst"], {"api.html": "api.rst"}),
        ([made("a/b/index.html")], ["01-a/02-b.mdx"], {"a/b/index.html": "01-a/02-b.mdx"}),
        ([made("x.html", edit=f"{GITHUB}y.md")], ["x.md", "y.md"], {"x.html": "y.md"}),
        ([made("docs/x.html", "X")], ["x.md"], {"docs/x.html": "x.md"}),
        ([made("docs/x.html", "Other")], ["x.md"], {}),
        ([made("blog/x/index.html", "X")], ["content/blog/x/x.md"], {"blog/x/index.html": "content/blog/x/x.md"}),
        ([made("blog/x/index.html", "Other")], ["content/blog/x/x.md"], {}),
        (
            [made("core/2.1/x.html", "X")],
            ["modules/ROOT/pages/x.adoc"],
            {"core/2.1/x.html": "modules/ROOT/pages/x.adoc"},
        ),
        (
            [made("core/api/x.html", "X")],
            ["core/modules/api/pages/x.adoc"],
            {"core/api/x.html": "core/modules/api/pages/x.adoc"},
        ),
        ([made("x.html", "X")], ["content/en/x.md"], {"x.html": "content/en/x.md"}),
        ([made("de/x/index.html", language="de")], ["de/x.md", "x.md"], {"de/x/index.html": "de/x.md"}),
        ([made("1.2/x.html", version="1.2"), made("x.html")], ["x.md"], {"x.html": "x.md"}),
        (
            [made("docs/x.html", "X", stated="2.0"), made("docs/next/x.html", "X", version="next", stated="current")],
            ["x.md"],
            {"docs/next/x.html": "x.md"},
        ),
        ([made("x.html"), made("x/index.html")], ["x.md"], {"x.html": "x.md"}),
        ([made("api/index.html")], ["x.md"], {}),
    ],
)
def test_a_page_has_its_source(pages: list[SitePage], files: list[str], expected: dict[str, str]) -> None:
    def title_of(path: str) -> str:
        return "X"

    assert source_files.match_sources(pages, files, {}, title_of) == expected


def test_links_to_edit_go_by_the_prefix_of_most() -> None:
    """``index.md`` of a page in a folder is not that of the start page."""
    pages = [
        made("index.html", edit=f"{GITHUB}index.md"),
        made("a/index.html", edit=f"{GITHUB}a.md"),
        made("b/index.html", edit="https://github.com/o/other/edit/main/index.md"),
    ]
    assert source_files.match_sources(pages, ["index.md", "a.md"], {}, lambda path: "") == {
        "index.html": "index.md",
        "a/index.html": "a.md",
    }


def test_copies_of_sources_in_a_folder_below() -> None:
    copies = {"api": "api.rst", "user/install": "user/install.rst"}
    pages = [made("api.html"), made("user/install.html")]
    assert source_files.match_sources(
        pages, ["source/api.rst", "source/user/install.rst"], copies, lambda path: ""
    ) == {
        "api.html": "source/api.rst",
        "user/install.html": "source/user/install.rst",
    }
    assert source_files.match_sources(pages, ["api.rst", "user/install.rst"], copies, lambda path: "") == {
        "api.html": "api.rst",
        "user/install.html": "user/install.rst",
    }


def test_the_readme_of_a_project_is_not_the_home_page_of_its_site() -> None:
    """Eleventy has the pages in content/, and --docs is the folder above, which has the README of the repository."""
    pages = [made("index.html", "Latest posts"), made("about/index.html", "About"), made("x/index.html", "X")]
    titles = {"README.md": "A blog to copy", "content/about.md": "About", "content/x.md": "X"}
    below = {"about/index.html": "content/about.md", "x/index.html": "content/x.md"}
    assert source_files.match_sources(pages, list(titles), {}, titles.__getitem__) == below
    same = {**titles, "README.md": "Latest Posts"}
    assert source_files.match_sources(pages, list(titles), {}, same.__getitem__) == {"index.html": "README.md", **below}
    book = {"README.md": "A book", "about.md": "About", "x.md": "X"}  # its pages are beside it, as HonKit has them
    assert source_files.match_sources(pages, list(book), {}, book.__getitem__)["index.html"] == "README.md"
