"""Real sites, built by the real MkDocs with real plugins: what is in their index, and that each address leads there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest

from tests.support import mkdocs_sites
from tests.support.browser import BROWSER, DRIVER, Browser, hosted
from tests.support.built_sites import Built, Site, build
from tests.support.programs import printed, program

for needed in ("mkdocs", "material", "mkdocs_static_i18n", "mkdocs_macros", "mkdocstrings", "mkdocs_gen_files"):
    pytest.importorskip(needed)

SITES = {
    "own": ("own", {}),
    "harbour": ("harbour", {}),
    "harbour otherwise": ("harbour", {"folders": True, "files": True}),
    "toolbox": ("toolbox", {}),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Sites by name, each built once."""
    known: dict[str, Site] = {}

    def one(name: str) -> Site:
        if name not in known:
            source, how = SITES[name]
            known[name] = build(source, tmp_path_factory.mktemp(name.replace(" ", "-")), **how)
        return known[name]

    return one


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Chromium, or a reason why the test is skipped."""
    pytest.importorskip("selenium")
    if not BROWSER or not DRIVER:
        pytest.skip("there is no Chromium with its driver; scripts/install_browser.sh installs them")
    opened = Browser(tmp_path_factory.mktemp("chromium"))
    yield opened
    opened.close()


# --- in a browser ----------------------------------------------------------------------------------------------


NO_HEADING = {"Not Markdown in a div"}
"""Looks like a heading in the Markdown and is none on the page: its address is that of the section around it."""


def letters(text: str) -> str:
    """What two spellings of one heading share: marks and icons are a theme's business."""
    return "".join(each for each in re.sub(r":[a-z-]+:", "", text).casefold() if each.isalnum())


@pytest.mark.parametrize("name", ["own", "harbour", "toolbox"])
def test_the_address_of_each_section_leads_to_its_heading(built: Built, browser: Browser, name: str) -> None:
    site, seen = built(name), 0
    step = 20 if name == "own" else 1
    pages = list(site.sections())[::step]  # the rest, of the same kind, is read without a browser below
    with hosted(site.built) as base:
        for document, sections in pages:
            assert document.url and sections, document.file_path
            url = document.url.replace(site.address, base)
            own = [section for section in sections if section.title not in NO_HEADING]
            look = browser.look(url, [section.anchor for section in sections])
            assert [each["id"] for each in look.found] == [section.anchor for section in own], document.url
            for section, there in zip(own, look.found, strict=True):
                shown, title = letters(there["text"]), letters(section.title.replace("(untitled)", ""))
                assert shown == title or (name == "toolbox" and shown.startswith(title)), section  # names of an API
                assert there["shown"], (document.url, section.anchor)
            if name == "own":  # the others show an emoji from elsewhere
                assert [each for each in look.asked if not each.startswith(base)] == []
            seen += len(sections)
        assert 0 <= browser.arrive(f"{url}#{sections[-1].anchor}") < 800
    assert seen >= 10


class _Headings(HTMLParser):
    """(id, text) of a page's headings, without the links that the theme puts into them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self._inside, self._link = False, False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        if re.fullmatch("h[1-6]", tag) and "id" in said:
            self._inside = True
            self.found.append((said["id"], ""))
        self._link = self._link or (tag == "a" and "headerlink" in said.get("class", "").split())

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and not re.fullmatch("h[1-6]", tag)
        self._link = self._link and tag != "a"

    def handle_data(self, data: str) -> None:
        if self._inside and not self._link:
            anchor, text = self.found[-1]
            self.found[-1] = (anchor, text + data)


@pytest.mark.parametrize("name", [name for name in SITES if name != "toolbox"])
def test_each_section_is_a_heading_of_its_page(built: Built, name: str) -> None:
    site = built(name)
    for document, sections in site.sections():
        assert document.url
        parser = _Headings()
        path = document.url.removeprefix(site.address)
        page = site.built / (path if path.endswith(".html") else f"{path}index.html")
        parser.feed(page.read_text(encoding="utf-8"))
        anchors = {section.anchor for section in sections}
        headings = [(anchor, letters(text)) for anchor, text in parser.found if anchor in anchors or name == "own"]
        own = [section for section in sections if section.title not in NO_HEADING]
        assert [(each.anchor, letters(each.title.replace("(untitled)", ""))) for each in own] == headings, document.url


# --- what is in the index --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "urls"),
    [
        (
            "harbour",
            {
                "index.md": "",
                "index.de.md": "de/",
                "guides/mooring.md": "guides/mooring/",
                "guides/mooring.de.md": "de/guides/mooring/",
                "guides/fees.md": "guides/fees/",
                "guides/unlisted.md": "guides/unlisted/",
                "guides/rough.md": "guides/rough/",
            },
        ),
        (
            "harbour otherwise",
            {
                "en/index.md": "index.html",
                "de/index.md": "de/index.html",
                "en/guides/mooring.md": "guides/mooring.html",
                "de/guides/mooring.md": "de/guides/mooring.html",
                "en/guides/fees.md": "guides/fees.html",
                "en/guides/unlisted.md": "guides/unlisted.html",
                "en/guides/rough.md": "guides/rough.html",
            },
        ),
    ],
)
def test_all_languages_are_indexed_and_what_is_left_out_is_not(built: Built, name: str, urls: dict[str, str]) -> None:
    assert built(name).urls() == urls


@pytest.mark.parametrize("name", [name for name in SITES if name.startswith("harbour")])
def test_macros_and_snippets_are_indexed_as_readers_see_them(built: Built, name: str) -> None:
    text = built(name).text()
    assert "Wismar has 3 docks" in text and "Wismar hat 3 Stege" in text
    assert "Dock Gamma has room for 30 boats" in text and "Am Steg Beta ist Platz für 20" in text
    assert "closed on the first Monday of each month" in text
    assert not re.search(r"\{\{|\{%|--8<--", text)


@pytest.mark.parametrize(
    ("question", "page", "anchor"),
    [
        ("Ringe für Leinen", "guides/mooring.de.md", "festmachen"),
        ("insurance passports", "index.md", "papers"),
        ("certificate handed back receipt", "index.md", "papers_1"),
        ("arriving by train", "index.md", "arrival_1"),
        ("tide table", "index.md", "潮汐表"),
        ("Kai Fischer Kisten", "index.de.md", "größe-der-schiffe"),
        ("Mondays lock notice board", "index.md", "welcome"),
        ("life jackets for children", "index.md", "choose-your-boat"),
        ("dogs on a leash", "index.md", "choose-your-boat"),
        ("Dock Beta electricity", "guides/mooring.md", "dock-beta"),
        ("single gloves", "guides/unlisted.md", "lost-and-found"),
    ],
)
def test_a_question_finds_the_section_and_its_address(built: Built, question: str, page: str, anchor: str) -> None:
    site = built("harbour")
    hit = site.hit(question)
    assert (hit.file_path, hit.url) == (page, f"{site.address}{site.urls()[page]}#{anchor}")


def test_the_program_answers_from_the_index_alone(built: Built) -> None:
    site = built("harbour otherwise")
    asked = ("search", "--index", site.index, "--provider", "none", "outer pier by night")
    (first, *_) = printed(*asked, cwd=site.built)["results"]
    assert first["metadata"]["url"] == f"{site.address}index.html#welcome" and "of Wismar" in first["content"]


def test_pages_say_where_they_stand(built: Built) -> None:
    pages = built("harbour").documents()
    assert pages["guides/mooring.md"].nav_path == "Guides > Mooring"
    assert pages["guides/unlisted.md"].nav_path is None
    assert pages["index.md"].title == "The harbour's handbook"
    assert pages["index.md"].metadata["tags"] == ["boats"]
    assert pages["guides/fees.md"].metadata["edit_url"] == "https://git.example/harbour/edit/main/docs/guides/fees.md"


def test_pages_that_programs_made_are_indexed(built: Built) -> None:
    site = built("toolbox")
    assert site.urls() == {
        "api.md": "api/",
        "index.md": "",
        "inventory.md": "inventory/",
        "modules/clamps.md": "modules/clamps/",
        "modules/saws.md": "modules/saws/",
        "tags.md": "tags/",
    }
    assert ":::" not in site.text()
    assert site.hit("which shelf holds the saws").url == f"{site.address}inventory/#shelf-2"
    assert site.hit("file each tooth strokes").url == f"{site.address}modules/saws/#toolbox.saws.sharpen"
    assert site.hit("pages tagged beech", "tags.md").url == f"{site.address}tags/#tag:beech"
    assert "go on to [toolbox.saws.sharpen](../saws/#toolbox.saws.sharpen" in site.text()  # the reference was followed
    tighten = f"{site.address}api/#toolbox.clamps.Clamp.tighten"
    assert site.hit("jaw cracks turns", "api.md").url == tighten


@pytest.mark.parametrize("name", SITES)
def test_the_index_is_fresh_beside_its_documents_until_one_is_edited(built: Built, name: str) -> None:
    site = built(name)
    if name == "own":  # not ours to edit
        return
    beside = ("check", "--docs", site.folder / "docs", "--index", site.index)
    program(*beside, cwd=site.folder)
    page = next(iter(sorted((site.folder / "docs").rglob("index.md"))))
    before = page.read_bytes()
    page.write_bytes(before + b"\nOne more sentence.\n")
    assert page.relative_to(site.folder / "docs").as_posix() in program(*beside, cwd=site.folder, code=1).stdout
    page.write_bytes(before)


def test_a_second_build_gives_the_same_bytes(built: Built) -> None:
    site = built("harbour")
    first = site.index.read_bytes()
    mkdocs_sites.build(site.folder)
    assert site.index.read_bytes() == first


# --- our own ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "url"),
    [
        ("commit the index or ignore it", "guides/keep-fresh/#commit-it-or-ignore-it"),
        ("ANVIL_CHUNKING_MAX_CHUNK_SIZE", "reference/configuration/#chunking"),
    ],
)
def test_our_own_site_answers(built: Built, question: str, url: str) -> None:
    site = built("own")
    assert site.hit(question).url == site.address + url


class _Loaded(HTMLParser):
    """Addresses that a page has a browser load by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        if tag in ("script", "img", "iframe", "source", "video", "audio", "embed"):
            self.found += [said[name] for name in ("src", "srcset") if name in said]
        if tag == "link" and said.get("rel") not in ("canonical", "prev", "next", "edit", "alternate"):
            self.found.append(said.get("href", ""))


def test_our_own_site_asks_nobody_else_for_anything(built: Built) -> None:
    site = built("own").built
    for page in site.rglob("*.html"):
        parser = _Loaded()
        parser.feed(page.read_text(encoding="utf-8"))
        assert parser.found and not [each for each in parser.found if re.match(r"(https?:)?//", each)], page
    for style in (site / "assets").glob("*.css"):
        assert not re.search(r"url\(|@import", style.read_text(encoding="utf-8")), style
