"""The search page of a built site in a real browser: questions, keys, hosts without ranges, damage, harmful texts, and
the same results as ``anvil search --mode keyword``."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import anvil
from tests.conftest import write as write_files
from tests.e2e.site.test_sphinx import PAGES as SPHINX_PAGES
from tests.e2e.site.test_sphinx import build as sphinx_build
from tests.support import html_sites, mkdocs_sites
from tests.support.browser import BROWSER, DRIVER, Host, hosted
from tests.support.html_sites import page, write
from tests.support.in_process import complaint, program
from tests.support.playground import Visitor
from tests.support.programs import ROOT
from tests.support.search_page_answers import ANSWERS, assert_same, by_words

NONE = ("--provider", "none")
INDEX = "anvil/index.db"
RANGES = Host(ranges=True)
POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'"
ENTER, ESCAPE, DOWN, UP, TAB = "\ue007", "\ue00c", "\ue015", "\ue013", "\ue004"
HARMFUL = """<p>zebra &lt;script&gt;window.harmed = 1&lt;/script&gt; &lt;img src=x onerror="window.harmed=1"&gt;</p>
<pre><code>&lt;svg onload="window.harmed=1"&gt;zebra [a](javascript:window.harmed=1)</code></pre>"""
STATE = """
const box = document.querySelector('anvil-search').shadowRoot;
const items = [...box.querySelectorAll('li')];
return {
  note: box.querySelector('[role=status]').textContent, shown: !box.querySelector('.panel').hidden,
  more: !box.querySelector('button').hidden, focus: box.activeElement?.textContent || box.activeElement?.tagName,
  results: items.map(each => ({text: each.textContent, href: each.querySelector('a')?.href,
    heading: each.querySelector('a')?.textContent,
    marks: [...each.querySelectorAll('mark')].map(mark => mark.textContent)})),
};
"""
ASK = f"""
const [questions, done] = arguments;
const answers = {ANSWERS.strip()};
(async () => {{
  const {{Search}} = await import('/anvil/search/ranking.js');
  const address = new URL('/anvil/search/search.json', location);
  return answers(await Search.of(await fetch(address), address), questions);
}})().then(done, error => done(`${{error}} ${{error.stack}}`));
"""
EXCERPTS = """
const [texts, wanted, done] = arguments;
const written = pieces => pieces.map(({text, isMatch}) => (isMatch ? `<${text}>` : text)).join('');
const keys = new Map(wanted.map(key => [key, 1]));
import('/anvil/search/excerpt.js').then(({excerpt}) => done(texts.map(text => written(excerpt(text, keys)))));
"""
COLOURS = """
const box = document.querySelector('anvil-search').shadowRoot;
const channel = c => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
const bright = text => {
  const [r, g, b] = text.match(/[\\d.]+/g).map(Number);
  return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
};
const colour = (css, key) => bright(getComputedStyle(box.querySelector(css))[key]);
const contrast = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
const ground = colour('.panel', 'backgroundColor');
return [ground, ...['a', 'li', '[role=status]', 'button', 'input'].map(css => contrast(colour(css, 'color'), ground)),
  contrast(colour('mark', 'color'), colour('mark', 'backgroundColor'))];
"""
OWN_COLOUR = """
const sheet = new CSSStyleSheet();
sheet.replaceSync('anvil-search { --link: rgb(1, 2, 3); }');
document.adoptedStyleSheets.push(sheet);
return getComputedStyle(document.querySelector('anvil-search').shadowRoot.querySelector('a')).color;
"""

pytestmark = pytest.mark.skipif(
    not BROWSER or not DRIVER, reason="there is no Chromium with its driver; scripts/install_browser.sh installs them"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    pytest.importorskip("selenium")
    visitor = Visitor(tmp_path_factory.mktemp("chromium"))
    visitor.driver.set_script_timeout(60)
    yield visitor
    visitor.close()


@pytest.fixture
def visitor(browser: Visitor) -> Iterator[Visitor]:
    """The browser on a new visit; whatever it does, nothing may be asked of another host, nor be complained of."""
    browser.screen()
    browser.requests(), browser.complaints()
    yield browser
    assert [url for url in browser.requests() if not url.startswith(("http://127.0.0.1:", "data:"))] == []
    assert [
        each for each in browser.complaints() if " 404 " not in each
    ] == []  # of icons and styles that are not there
    assert not browser.run("return window.harmed")


def built(folder: Path, files: dict[str, str], *options: str | Path) -> Path:
    """A site with its search page."""
    site = write(html_sites.site(folder), files)
    said = program("build", "--site", site, *NONE, "--search-page", *options).stdout
    assert "The search page is" in said and "anvil/search/index.html." in said
    return site


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = {f"lamp/{n}/index.html": page(f"Lamp {n}", f"<p>Trim the wick of lamp {n}.</p>") for n in range(9)}
    return built(tmp_path_factory.mktemp("small") / "site", {**files, "harm/index.html": page("Harm", HARMFUL)})


WORDS = """
anchor beacon cable dock engine ferry gangway harbour inlet jetty keel lantern mooring netting openHarbour paddle quay
rudder sailing tugboats useDeepDock vessels watching xebec yawl zephyrs caching cached HTTP2Server größe naïve DEC-0054
snake_case_name --dry-run asyncio.TaskGroup 設定ファイル サーバー 항구 lighthouse's the of how to
港でuseDeepDockを使う 选择Vitest9 أيضًا مُرساة मरम्मत नाव می\u200cرود Schiff\u00adfahrt Ύδωρ причалами
"""


def text(chance: random.Random, count: int) -> str:
    return " ".join(chance.choices(WORDS.split(), k=count))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site whose index is read in parts: more than a million characters, versions, links between its pages."""
    chance = random.Random(7)
    files = {}
    for number in range(130):
        sections = "".join(
            f'<h2 id="s{number}-{n}">{text(chance, 3)} {number}</h2>'
            f"<p>{text(chance, chance.randint(5, 220))} word{number}x{n}</p>"
            for n in range(chance.randint(1, 8))
        )
        link = f'<p><a href="../page{chance.randrange(130)}/">{text(chance, 2)}</a></p>'
        files[f"page{number}/index.html"] = page(f"{text(chance, 2)} {number}", link + sections)
    for version in ("1.9", "1.10"):
        files[f"{version}/setup/index.html"] = page("Setup", f"<p>Set up the capstan of {version}.</p>")
    files["changelog/index.html"] = page("Changelog", "<p>The capstan was released.</p>")
    files["forms/index.html"] = page("Forms", "<p>ﬁlter \uff21\uff30\uff29 ｻｰﾋﾞｽ ｻｰﾊﾞｰ δρόμος</p>")
    site = built(tmp_path_factory.mktemp("large") / "site", files)
    assert (site / INDEX).stat().st_size > 1_000_000
    return site


@pytest.fixture(scope="module")
def variants(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site whose pages are in three versions and in three languages; the newest version lacks some pages."""
    chance = random.Random(5)
    files = {}
    for version, pages in (("1.2", 40), ("2.0", 60), ("latest", 30)):
        files[f"{version}/index.html"] = page(f"Start {version}", "<p>Begin.</p>")
        for number in range(pages):
            words = text(chance, 30)
            files[f"{version}/page{number}/index.html"] = page(f"Page {number}", f"<p>{words} release notes</p>")
    for number in range(20):
        for language in ("", "de/", "fr/"):
            title = f"{text(chance, 2)} {number}"
            files[f"guide/{language}part{number}/index.html"] = page(title, f"<p>{text(chance, 40)}</p>")
    return built(tmp_path_factory.mktemp("variants") / "site", files)


def copied(site: Path, folder: Path) -> Path:
    """A copy whose index is read in parts, however small it is."""
    copy = shutil.copytree(site, folder / "site")
    script = copy / "anvil/search/index-file.js"
    code = script.read_text(encoding="utf-8")
    assert "const WHOLE_BYTES = 1_000_000;" in code
    script.write_text(code.replace("const WHOLE_BYTES = 1_000_000;", "const WHOLE_BYTES = 0;"), encoding="utf-8")
    return copy


def state(visitor: Visitor) -> Any:
    return visitor.run(STATE)


def settled(visitor: Visitor) -> Any:
    """The state of the box when there is an answer."""

    def answered() -> Any:
        there = visitor.run("return !!document.querySelector('anvil-search')?.shadowRoot") and state(visitor)
        return there if there and there["note"] not in ("", "Searching …") else None

    return visitor.until(answered)


def open_page(visitor: Visitor, address: str, question: str) -> Any:
    visitor.go(f"{address}anvil/search/?q={question}")
    return settled(visitor)


# --- the page and the box ------------------------------------------------------------------------------------------


def test_a_question_is_typed_and_its_page_opened_with_keys(small: Path, visitor: Visitor) -> None:
    with hosted(small) as address:
        visitor.go(f"{address}anvil/search/")
        visitor.press("use the crane")
        found = settled(visitor)
        first = found["results"][0]
        assert (
            first["heading"] == "Install \u203a On Windows" and first["href"] == f"{address}guide/install/#on-windows"
        )
        assert first["marks"] == ["crane"] and found["note"].endswith("1 result.")
        assert visitor.run("return location.search") == "?q=use%20the%20crane"
        visitor.press(DOWN)
        assert state(visitor)["focus"] == "Install \u203a On Windows"
        visitor.press(UP)
        assert state(visitor)["focus"] == "INPUT"
        visitor.press(DOWN, ENTER)
        visitor.until(lambda: visitor.run("return location.hash") == "#on-windows")


def test_more_results_and_none(small: Path, visitor: Visitor) -> None:
    with hosted(small) as address:
        found = open_page(visitor, address, "wick")
        assert len(found["results"]) == 5 and found["more"]
        visitor.run("document.querySelector('anvil-search').shadowRoot.querySelector('button').click()")
        visitor.until(lambda: len(state(visitor)["results"]) == 9)
        more = state(visitor)
        assert more["results"][:5] == found["results"] and more["focus"] == more["results"][5]["heading"]
        assert open_page(visitor, address, "unheardof")["note"] == "No page has these words."
        assert open_page(visitor, address, "harbour with unheardof submarines and planes")["note"] == (
            "2 results. Probably none of them answers this."
        )


def test_a_box_on_another_page_by_one_line(small: Path, tmp_path: Path, visitor: Visitor) -> None:
    site = shutil.copytree(small, tmp_path / "site")
    start = site / "index.html"
    line = '<script type="module" src="/anvil/search/search-box.js"></script><anvil-search></anvil-search>'
    start.write_text(start.read_text(encoding="utf-8").replace("<main>", f"{line}<main>"), encoding="utf-8")
    with hosted(site) as address:
        visitor.go(address)
        visitor.until(lambda: visitor.run("return !!document.querySelector('anvil-search').shadowRoot"))
        asked = [url for url in visitor.requests() if "/anvil/" in url]
        assert asked == [f"{address}anvil/search/search-box.js"]  # nothing else before it is used
        assert not state(visitor)["shown"]
        visitor.press(TAB)
        while state(visitor)["focus"] != "INPUT":
            visitor.press(TAB)
        visitor.press("wick", ENTER)
        found = settled(visitor)
        assert found["shown"] and found["results"][0]["href"].startswith(f"{address}lamp/")
        visitor.press(ESCAPE)
        assert not state(visitor)["shown"] and visitor.run("return location.pathname") == "/"


def test_readers_of_screens_and_of_dark_ones(small: Path, visitor: Visitor) -> None:
    assert POLICY in (ROOT / "docs/guides/search-page.md").read_text(encoding="utf-8")
    with hosted(small, Host(headers=(("Content-Security-Policy", POLICY),))) as address:
        grounds = []
        for dark in (False, True):
            visitor.screen(400, 700, dark=dark)
            open_page(visitor, address, "wick")
            ground, *contrasts = visitor.run(COLOURS)
            grounds.append(ground)
            assert min(contrasts) >= 4.5, contrasts
            assert visitor.overflow() == 0
        assert grounds[0] > 0.9 and grounds[1] < 0.1
        tree = visitor.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        named = {(node["role"]["value"], node.get("name", {}).get("value", "")) for node in tree if not node["ignored"]}
        assert {("searchbox", "Search the documentation"), ("button", "More results")} <= named
        assert {"search", "status", "list", "main"} <= {role for role, _ in named}
        assert visitor.run(OWN_COLOUR) == "rgb(1, 2, 3)"


def test_a_harmful_text_is_shown_and_not_run(small: Path, visitor: Visitor) -> None:
    with hosted(small) as address:
        (first,) = open_page(visitor, address, "zebra")["results"]
        assert "<script>window.harmed = 1</script>" in first["text"] and first["href"] == f"{address}harm/#harm"
        data = json.loads((small / "anvil/search/search.json").read_text(encoding="utf-8"))
        for harm in ("javascript:window.harmed=1", "data:text/html,<script>1</script>", "JaVaScRiPt:1"):
            visitor.run(
                "window.original ??= fetch; const [data, harm] = arguments;"
                "data.pages.forEach(page => { page.address = harm; });"
                "window.fetch = (url, ...more) => `${url}`.endsWith('search.json')"
                " ? Promise.resolve(new Response(JSON.stringify(data))) : original(url, ...more);"
                "document.querySelector('anvil-search').replaceWith(document.createElement('anvil-search'));",
                data,
                harm,
            )
            visitor.run("document.querySelector('anvil-search').focus()")
            visitor.press("zebra", ENTER)
            found = settled(visitor)
            assert [each["href"] for each in found["results"]] == [None] and "zebra" in found["results"][0]["text"]


def test_an_excerpt_is_the_text_without_markdown_around_the_words(small: Path, visitor: Visitor) -> None:
    long = f"{'Before it. ' * 30}Then the cable is laid. {'After it. ' * 60}"
    cases = {
        "# Title\n\nLay the [cables](../a.md#b), `cable` and **cable**.\n": "Lay the <cables>, <cable> and <cable>.",
        "> [!NOTE]\n> See [the cable][1] and ![a cable](x.png).\n": "See the <cable> and a <cable>.",
        "```sh\ncable --snake_case\n```\n": "<cable> --snake_case",
        "| a | b |\n|---|---|\n| cable | \\<b> |\n": "a b <cable> <b>",
        "openCable\x7f\x7f and \x1fCABLES": "<openCable> and <CABLES>",
        "サーバーを設定する": "サーバーを<設定>する",
        "nothing here": "nothing here",
        long: f"… {'Before it. ' * 3}",
    }
    endless = [
        "[" * 50_000,
        "![" * 50_000,
        "[a](" * 50_000,
        "# " * 50_000,
        "`" * 100_000,
        "|" * 100_000,
        "[a][" * 50_000,
        "*a" * 50_000,
    ]
    with hosted(small) as address:
        visitor.go(f"{address}anvil/search/")
        shown = visitor.driver.execute_async_script(EXCERPTS, [*cases, *endless], ["cabl", "設定"])
    for (text, expected), own in zip(cases.items(), shown, strict=False):
        assert own == expected or (
            text == long and "Then the <cable> is laid." in own and own[:2] == "… " and own[-2:] == " …"
        )
        assert len(own) < 300


# --- the file ------------------------------------------------------------------------------------------------------


def test_the_index_is_read_in_parts_where_the_host_knows_ranges(large: Path, visitor: Visitor) -> None:
    size = (large / INDEX).stat().st_size
    with hosted(large, RANGES) as address:
        found = open_page(visitor, address, "word7x0")
        assert found["results"][0]["href"].startswith(f"{address}page7/#s7-0")
        sizes = visitor.run(
            "return performance.getEntriesByType('resource').filter(each => each.name.includes('index.db'))"
            ".map(each => each.encodedBodySize)"
        )
        assert len(sizes) > 1 and sum(sizes) < size / 4
    with hosted(large) as address:
        assert open_page(visitor, address, "word7x0")["results"][0]["heading"] == found["results"][0]["heading"]
        assert len([url for url in visitor.requests() if f"{address}{INDEX}" in url]) == 1


def questions(chance: random.Random) -> list[str]:
    asked = [text(chance, chance.randint(1, 7)) for _ in range(12)]
    asked += [f'"{text(chance, 2)}" {text(chance, 1)}' for _ in range(6)]
    asked += [f"word{number}x0" for number in range(0, 40, 9)]
    asked += [
        "capstan",
        "capstan in 1.9",
        "capstan v1.10",
        "dock cable in 1.2?",
        "dock cable in (v2.0)",
        "dock of 1.2 or 2.0",
        "release notes of the ferry",
        "what was released",
        "設定",
        "Größe",
        "`asyncio.TaskGroup`",
        "the of",
    ]
    return [
        *asked,
        "deep dock",
        "what's cached?",
        "x" * 200,
        "a.b",
        "dry run",
        "🙂 dock",
        "İstanbul ΣΑΣ ǅ µs",
        "filter API",
        "サービス",
        "ΔΡΟΜΟΣ ｻｰﾊﾞｰ",
        "Vitest",
        "港 useDeepDock",
        "ايضا مرساة",
        "मरम्मत",
        "میرود Schifffahrt",
        "причал ύδωρ",
    ]


@pytest.mark.parametrize("name", ["large", "small", "variants"])
def test_results_are_those_of_a_search_by_words(
    name: str, visitor: Visitor, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    site: Path = request.getfixturevalue(name)
    asked = questions(random.Random(3))
    with anvil.open(site=site, provider="none") as opened:
        expected = by_words(opened, asked)
    with hosted(copied(site, tmp_path), RANGES) as address:
        visitor.go(f"{address}anvil/search/")
        answers = visitor.driver.execute_async_script(ASK, asked)
    assert_same(asked, answers, expected)


TYPED = {
    "gangw": "gangway",
    "dock moor": "dock mooring",
    "openHarb": "openHarbour",
    "naï": "naïve",
    "lighthou": "lighthouse",
    "cachin": "caching",  # its token is "cach"
    "sailingl": "sailing",  # no word begins so, but the token "sail"
}
"""What has been typed so far -> the same with its last word whole."""


def test_a_word_that_is_still_being_typed_finds_what_it_begins(large: Path, visitor: Visitor, tmp_path: Path) -> None:
    with hosted(copied(large, tmp_path), RANGES) as address:
        visitor.go(f"{address}anvil/search/")
        begun = visitor.driver.execute_async_script(ASK, [*TYPED])
        finished = visitor.driver.execute_async_script(ASK, [*TYPED.values()])
        for typed, found, expected in zip(TYPED, begun, finished, strict=True):
            assert [each[:3] for each in found] == [each[:3] for each in expected] != [], typed
        for typed in ("openHarb", "sailingl"):
            shown = open_page(visitor, address, typed)["results"]
            assert len(shown) == 5 and all(TYPED[typed][:4] in each["text"] for each in shown), typed


def test_a_rare_word_is_first_and_then_the_words_that_it_begins(tmp_path: Path, visitor: Visitor) -> None:
    texts = [
        "The port.",
        *["A portal opens."] * 3,
        "One portfolio.",
        "A porthole, a portrait.",
        "Ports of call.",
        "Por.",
    ]
    files = {f"p{number}/index.html": page(f"Page {number}", f"<p>{text}</p>") for number, text in enumerate(texts)}
    site = built(tmp_path / "site", files)
    with hosted(site) as address:
        visitor.go(f"{address}anvil/search/")
        [ports, begun, short, none] = visitor.driver.execute_async_script(
            ASK, ["port", "porta", "po", "portalsandmore"]
        )
        marks = {mark for each in open_page(visitor, address, "porta")["results"] for mark in each["marks"]}
    assert marks == {"portal"}
    assert sorted(row[0] for row in ports[:2]) == ["p0/index.html", "p6/index.html"] and len(ports) == 5
    assert sorted(row[0] for row in begun) == ["p1/index.html", "p2/index.html", "p3/index.html"]
    assert short == none == []


def test_names_of_an_api_and_the_option_of_sphinx(tmp_path: Path, visitor: Visitor) -> None:
    classes = "".join(
        f".. py:class:: beacon.{name}\n   :canonical: beacon._lamps.{name}\n\n   {text}\n\n"
        for name, text in (("Wick", "Burns the beacon._lamps way."), ("Lamp", "Shines."), ("Lens", "Bundles."))
    )
    write_files(tmp_path / "docs", {**SPHINX_PAGES, "api.rst": f":orphan:\n\nAPI\n===\n\n{classes}"})
    code, said = sphinx_build(tmp_path / "docs", anvil_search_page=True)
    assert code == 0 and "The search page is" in said
    with hosted(tmp_path / "html") as address:
        for name in ("beacon.Lens", "beacon._lamps.Lens", "`beacon._lamps.Lens()`"):
            first = open_page(visitor, address, name)["results"][0]
            assert first["href"] == f"{address}api.html#beacon.Lens"


def test_the_option_of_mkdocs(tmp_path: Path, visitor: Visitor) -> None:
    pages = {"index.md": "# Home\n\nLight.\n", "lamp.md": "# Lamp\n\n## Wick\n\nTrim the wick.\n"}
    mkdocs_sites.build(mkdocs_sites.make(tmp_path, pages, anvil={"search_page": True, "index_path": "data/all.db"}))
    with hosted(tmp_path / "site") as address:
        visitor.go(f"{address}data/search/?q=trim")
        assert settled(visitor)["results"][0]["href"] == f"{address}lamp/#wick"


def test_a_site_that_is_published_again_while_the_page_is_open(large: Path, tmp_path: Path, visitor: Visitor) -> None:
    site = shutil.copytree(large, tmp_path / "site")
    with hosted(site, RANGES) as address:
        assert open_page(visitor, address, "capstan")["results"]
        write(site, {"new/index.html": page("New", f"<p>A windlass. {'More words. ' * 20_000}</p>")})
        program("build", "--site", site, *NONE, "--search-page")
        visitor.run("document.querySelector('anvil-search').shadowRoot.querySelector('input').value = ''")
        visitor.run("document.querySelector('anvil-search').focus()")
        visitor.press("windlass", ENTER)
        visitor.until(lambda: [each["href"] for each in state(visitor)["results"]] == [f"{address}new/#new"])
        (site / "anvil/search/search.json").write_bytes((large / "anvil/search/search.json").read_bytes())
        os.utime(site / "anvil/search/search.json", (2**31 - 1,) * 2)  # browsers compare times in whole seconds
        visitor.go(f"{address}anvil/search/?q=ferry+lantern")  # of which nothing is in the browser's cache
        assert settled(visitor)["note"].startswith("The search index and this page are not of one build.")


def test_each_kind_of_bad_file_is_one_sentence(small: Path, tmp_path: Path, visitor: Visitor) -> None:
    def note(name: str, change: Any, question: str = "wick", host: Host = RANGES) -> str:
        site = copied(small, tmp_path / name)
        change(site)
        with hosted(site, host) as address:
            found = open_page(visitor, address, question)
        visitor.complaints()  # the console has the failed request, and what was unexpected
        assert found["results"] == []
        return str(found["note"])

    def data(**more: Any) -> Any:
        def change(site: Path) -> None:
            file = site / "anvil/search/search.json"
            values = json.loads(file.read_text(encoding="utf-8"))
            values["index"] |= more
            file.write_text(json.dumps(values), encoding="utf-8")

        return change

    def huge(site: Path) -> None:
        with (site / INDEX).open("r+b") as file:
            file.truncate(21_000_000)
        data(size=21_000_000)(site)

    damaged = "The search index is damaged. Build and publish it again."
    size = (small / INDEX).stat().st_size
    assert note("missing", lambda site: (site / INDEX).unlink()) == (
        "The search index cannot be read: the server answers with 404."
    )
    assert note("no-data", lambda site: (site / "anvil/search/search.json").unlink()) == (
        "There is no search index here: the server answers with 404."
    )
    assert note("other", lambda site: (site / INDEX).write_bytes(b"x" * size)) == damaged
    assert note("json", lambda site: (site / "anvil/search/search.json").write_text("<!doctype html>")) == damaged
    assert note("shape", lambda site: (site / "anvil/search/search.json").write_text("{}")) == damaged
    assert note("format", data(format=6)) == (
        "The search index has format 6, and this page reads format 5. Build both with one version of Anvil."
    )
    assert note("short", lambda site: (site / INDEX).write_bytes((site / INDEX).read_bytes()[: size // 2])).startswith(
        "The search index and this page are not of one build."
    )
    assert note("huge", huge, host=Host()) == (
        "This server does not send parts of files, and the search index is larger than 20 MB."
    )


def test_no_damage_stops_the_page(small: Path, tmp_path: Path, visitor: Visitor) -> None:
    """Bytes of the index are changed at random: there is an answer or a sentence, soon, and nothing is run."""
    site = copied(small, tmp_path)
    whole, chance = (site / INDEX).read_bytes(), random.Random(11)
    notes = set()
    with hosted(site, RANGES) as address:
        for round_ in range(25):
            data = bytearray(whole)
            for _ in range(chance.choice((1, 20, 2000))):
                data[chance.randrange(len(data))] = chance.randrange(256)
            (site / INDEX).write_bytes(data)
            script = ASK.replace("search.json'", f"search.json?{round_}'")
            answer = (
                visitor.driver.execute_async_script(script, ["wick of lamp 3", "crane", "zebra"])
                if round_ % 10
                else None
            )
            if answer is None:
                notes.add(open_page(visitor, address, f"wick+lamp+{round_}")["note"])
            visitor.complaints()
    assert notes
    assert not visitor.run("return window.harmed")


def test_the_html_is_not_touched_and_the_page_is_no_page_of_the_index(tmp_path: Path) -> None:
    def digests() -> dict[str, str]:
        return {
            file.relative_to(site).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
            for file in site.rglob("*")
            if file.is_file()
        }

    site = html_sites.site(tmp_path / "site")
    before = digests()
    program("build", "--site", site, *NONE, "--search-page")
    after = digests()
    assert {path: after[path] for path in before} == before
    again = program("build", "--site", site, *NONE, "--search-page", "--verbose")
    assert "is up to date: 3 pages" in again.stdout and "anvil/search" not in again.stderr
    assert digests() == after


def test_the_configuration_asks_for_it_and_messages_say_what_to_do(tmp_path: Path) -> None:
    site = html_sites.site(tmp_path / "site")
    write_files(tmp_path, {"anvil.toml": '[site]\nfolder = "site"\nsearch_page = true\n', "docs/x.md": "# X\n"})
    assert "The search page is site/anvil/search/index.html." in program("build", *NONE, cwd=tmp_path).stdout
    assert "The search page is site/anvil/search/index.html." in program("ci", "build", *NONE, cwd=tmp_path).stdout
    index = tmp_path / "x.db"
    told = complaint("build", "--docs", write_files(tmp_path / "other", {"x.md": "# X\n"}), *NONE, "--search-page")
    assert "Name its folder with --site" in told
    assert "--shard" in complaint("build", "--site", site, *NONE, "--search-page", "--shard", "1/2")
    assert "is not in" in complaint("build", "--site", site, *NONE, "--search-page", "--index", index)
