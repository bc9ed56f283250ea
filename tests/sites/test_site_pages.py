"""Which HTML files of a site are pages."""

from __future__ import annotations

import pytest

from anvil.settings.schema import SiteOptions
from anvil.sites import html_page, site_pages
from anvil.sites.page_content import NO_RULES
from anvil.sites.site_pages import PageFacts, SitePage


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("404.html", "the page for addresses that do not exist"),
        ("__404error.html", "the page for addresses that do not exist"),
        ("search/index.html", "the search page"),
    ],
)
def test_a_search_page_has_a_hundred_words_at_most(path: str, reason: str) -> None:
    """One with more is about searching, or about the status 404."""
    for words, is_page in ((1, False), (100, False), (101, True)):
        facts = {path: PageFacts("A", word_count=words, own_words=words, digest="a")}
        chosen = site_pages.choose(facts, None, SiteOptions())
        assert [page.file for page in chosen.pages] == ([path] if is_page else [])
        assert [skipped.reason for skipped in chosen.left_out] == ([] if is_page else [f"it is {reason}"])


@pytest.mark.parametrize(
    "path", ["tags/index.html", "api/toc.html", "navigation.html", "lamps/Lamp-class-sidebar.html"]
)
def test_a_listing_has_thirty_words_at_most(path: str) -> None:
    """Also the parts that pages of docfx, Dokka and dartdoc load."""
    for words, is_page in ((30, False), (31, True)):
        facts = {path: PageFacts("Tags", word_count=500, own_words=words, digest="a")}
        chosen = site_pages.choose(facts, None, SiteOptions())
        assert [page.file for page in chosen.pages] == ([path] if is_page else [])


def test_a_file_and_a_folder_of_one_name_are_two_pages_if_their_texts_differ() -> None:
    """As the function and the class of one name in Dokka's pages, and the module ``index`` in those of TypeDoc."""
    for passages, files in (("b", ["a.html", "a/index.html"]), ("a", ["a.html"])):
        facts = {"a.html": PageFacts("A", word_count=9, passages="a"), "a/index.html": PageFacts("A", word_count=9)}
        facts["a/index.html"] = facts["a/index.html"]._replace(passages=passages)
        chosen = site_pages.choose(facts, None, SiteOptions())
        assert [page.file for page in chosen.pages] == files
        assert [page.address for page in chosen.pages] == ["a.html", "a/"][: len(files)]


def test_pages_with_the_address_of_others_are_one_line() -> None:
    facts = {
        f"{name}{end}": PageFacts(passages=name, word_count=1) for name in "abcd" for end in (".html", "/index.html")
    }
    left_out = site_pages.left_out(site_pages.choose(facts, None, SiteOptions()).left_out)
    assert left_out == [
        "left out a/index.html, b/index.html, c/index.html and 1 more: its address is that of another page"
    ]


def test_noindex_leaves_no_page_out_if_all_pages_of_a_site_have_it() -> None:
    """As Writerside writes it by default, and hosts of private sites."""
    closed = PageFacts("A", word_count=500, own_words=500, robots="noindex")
    facts = {"a.html": closed, "b.html": closed._replace(word_count=0), "index.html": PageFacts(refresh="a.html")}
    chosen = site_pages.choose(facts, None, SiteOptions())
    assert [page.file for page in chosen.pages] == ["a.html"]
    chosen = site_pages.choose({**facts, "c.html": closed._replace(robots="")}, None, SiteOptions())
    assert [page.file for page in chosen.pages] == ["c.html"]


@pytest.mark.parametrize(("count", "is_copy"), [(2, True), (3, False)])
def test_a_canonical_address_of_most_pages_is_that_of_the_site(count: int, is_copy: bool) -> None:
    """The template of a theme may have it, with the address of the start page."""
    page = PageFacts("A", word_count=500, own_words=500, canonical="https://x.test/")
    facts = {path: page for path in ("index.html", "a.html", "b.html")[:count]}
    chosen = site_pages.choose(facts, None, SiteOptions())
    assert [page.url for page in chosen.pages] == [
        f"https://x.test/{path}" for path in (["a.html", "b.html", ""] if not is_copy else [""])
    ]


def test_canonical_addresses_that_fit_no_page_are_not_believed() -> None:
    """Paradox joins the address of a site without a slash at its end with the path of the page."""
    names = ("index.html", "oil.html", "wick.html")
    page = PageFacts("A", word_count=500, own_words=500)
    facts = {name: page._replace(canonical=f"https://x.test/lamp{name}") for name in names}
    chosen = site_pages.choose(facts, None, SiteOptions())
    assert [(each.file, each.url) for each in chosen.pages] == [(name, None) for name in names]


@pytest.mark.parametrize(("generator", "is_page"), [("writerside", True), ("dokka", False), ("unknown", False)])
def test_noindex_leaves_no_page_out_if_all_pages_of_its_generator_have_it(generator: str, is_page: bool) -> None:
    """Writerside's pages have it, and those of Dokka in the same site do not."""
    page = PageFacts("A", word_count=500, own_words=500, generator=generator, robots="noindex")
    facts = {"a.html": page, "api/b.html": page._replace(generator="dokka", robots="")}
    chosen = site_pages.choose(facts, None, SiteOptions())
    assert [page.file for page in chosen.pages] == ["a.html", "api/b.html"][not is_page :]


@pytest.mark.parametrize(
    ("path", "generator", "is_page"),
    [
        ("build/44758f63d50377ef37a97f45923443e2.html", "unknown", False),
        ("build/a.html", "unknown", True),
        ("lamp/all.html", "rustdoc", False),
        ("lamp/all.html", "sphinx", True),
        ("settings.html", "rustdoc", False),
        ("lamp/settings.html", "rustdoc", True),
        ("docs/docsets/Lamp.docset/Contents/a.html", "jazzy", False),
        ("docs/docsets/Lamp.docset/Contents/a.html", "unknown", True),
    ],
)
def test_files_that_generators_write_beside_pages_are_none(path: str, generator: str, is_page: bool) -> None:
    facts = PageFacts("A", word_count=500, own_words=500, generator=generator)
    assert bool(site_pages.choose({path: facts}, None, SiteOptions()).pages) == is_page


@pytest.mark.parametrize(
    "path", ["_modules/a.html", "api/src-html/Lamp.html", "api/lamp_8hpp_source.html", "src/lib.rs.html"]
)
def test_source_code_is_no_page(path: str) -> None:
    chosen = site_pages.choose({path: PageFacts("A", word_count=500, own_words=500)}, None, SiteOptions())
    assert [skipped.reason for skipped in chosen.left_out] == ["it shows source code"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("index-files/index-12.html", "names"),
        ("api/index-all.html", "names"),
        ("allclasses-index.html", "names"),
        ("java.base/java/util/class-use/List.html", "names"),
        ("java.base/java/util/package-use.html", "names"),
        ("overview-tree.html", "names"),
        ("classIndex.html", "names"),
        ("blog/page/12/index.html", "other pages"),
    ],
)
def test_lists_of_javadoc_and_pydoctor_and_pages_of_a_blog_are_no_pages(path: str, reason: str) -> None:
    chosen = site_pages.choose({path: PageFacts("A", word_count=500, own_words=500)}, None, SiteOptions())
    assert [skipped.reason for skipped in chosen.left_out] == [f"it is a list of {reason}"]
    similar = ("allclasses/a.html", "page/rules/index.html", "package-summary.html")
    facts = {path: PageFacts(path, word_count=500, own_words=500) for path in similar}
    assert len(site_pages.choose(facts, None, SiteOptions()).pages) == 3


@pytest.mark.parametrize(
    ("path", "generator"),
    [
        ("api/print.html", "mdbook"),
        ("functions_func_c.html", "doxygen"),
        ("globals.html", "doxygen"),
        ("hierarchy.html", "doxygen"),
        ("classlamp_1_1Wick-members.html", "doxygen"),
    ],
)
def test_a_page_that_is_about_a_function_of_its_name_elsewhere(path: str, generator: str) -> None:
    """mdBook's has all pages again, and those of Doxygen are lists of names."""
    for by, is_page in ((generator, False), ("unknown", True)):
        facts = {path: PageFacts("A", word_count=500, own_words=500, generator=by)}
        assert bool(site_pages.choose(facts, None, SiteOptions()).pages) is is_page


def test_the_address_of_a_page_whose_name_has_a_colon() -> None:
    options = SiteOptions(url="https://x.org/docs")
    facts = {path: PageFacts(path, word_count=5) for path in ("Category:Ropes.html", "index.html")}
    urls = [page.url for page in site_pages.choose(facts, None, options).pages]
    assert urls == ["https://x.org/docs/Category:Ropes.html", "https://x.org/docs/"]


def test_versions_that_pages_name() -> None:
    """Docusaurus has them in a folder of the documentation, without a page of that folder."""
    named = {
        "docs/a/index.html": "2.0",
        "docs/1.0/a/index.html": "1.0",
        "docs/next/a/index.html": "current",
        "de/docs/1.0/a/index.html": "1.0",
        "blog/1.0/index.html": "",
    }
    facts = {path: PageFacts(path, word_count=5, version=version) for path, version in named.items()}
    versions = {page.file: page.version for page in site_pages.choose(facts, None, SiteOptions()).pages}
    assert versions == {
        "docs/a/index.html": None,
        "docs/1.0/a/index.html": "1.0",
        "docs/next/a/index.html": "next",
        "de/docs/1.0/a/index.html": "1.0",
        "blog/1.0/index.html": None,
    }


EXAMPLE = "<pre>" + " ".join(f"word{number}" for number in range(200)) + "</pre>"


def test_the_original_of_a_page_that_is_translated_in_part_is_no_copy() -> None:
    """Also if the translation is shorter."""
    pages = []
    for path, language, title in (("a.html", "en", "Tie the rope"), ("fr/a.html", "fr", "Amarrer")):
        html = f"<main><h1>{title}</h1><p>{title} to a post with a knot.</p><h2>Example</h2>{EXAMPLE}</main>"
        facts = html_page.read_with_twin(html.encode(), None, NO_RULES).facts
        pages.append(SitePage(path, path, None, None, language, facts))
    assert site_pages.find_copies(pages, {}) == []


def test_a_page_of_a_tag_that_lists_one_page_whole_is_the_copy() -> None:
    """As Hugo Book writes it, also if its path is shorter."""
    pages = []
    for path, title, level in (("posts/tie-the-rope.html", "Tie the rope", 1), ("tags/rope.html", "Rope", 2)):
        html = f"<title>{title}</title><main><h{level}>Tie the rope</h{level}>{EXAMPLE}</main>"
        facts = html_page.read_with_twin(html.encode(), None, NO_RULES).facts
        pages.append(SitePage(path, path, None, None, "en", facts))
    assert [copy.path for copy in site_pages.find_copies(pages, {})] == ["tags/rope.html"]


def test_pages_of_two_functions_with_one_example_are_no_copies() -> None:
    """As those of JSON for Modern C++: the title and a short text are their own, nine tenths are the example."""

    def copies(**bodies: str) -> list[tuple[str, str]]:
        pages = []
        for name, body in bodies.items():
            html = f"<main><h1>{name.partition('_')[0]}</h1>{body}</main>"
            facts = html_page.read_with_twin(html.encode(), None, NO_RULES).facts
            pages.append(SitePage(f"{name}.html", f"{name}.html", None, None, "en", facts))
        return [(copy.path, copy.reason) for copy in site_pages.find_copies(pages, {})]

    example = f"<h2>Example</h2>{EXAMPLE}"
    assert copies(null=f"<p>A null value.</p>{example}", key=f"<p>A key.</p>{example}") == []
    assert copies(null=f"<p>A null value.</p>{example}", key=f"<p>A null value.</p>{example}") == [
        ("null.html", "its text is that of key.html")
    ]
    shared = f"<h2>More</h2>{EXAMPLE.replace('word', 'more')}"
    functions = {"null": f"<p>A.</p>{example}", "key": f"<p>B.</p>{shared}", "any": f"<p>C.</p>{example}{shared}"}
    assert copies(**functions) == []
    assert copies(**functions, all=f"<p>D.</p><h2>null</h2>{example}<h2>key</h2>{shared}") == [
        ("all.html", "its text is that of key.html, null.html")
    ]
    # classes of one name in two packages of Javadoc
    assert copies(key=f"<p>Package com.acme.map</p>{example}", key_2=f"<p>Package com.acme.set</p>{example}") == []
