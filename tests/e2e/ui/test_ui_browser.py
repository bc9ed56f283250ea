"""The playground in a real browser: asking, reading, keys, charts, colours, phones, tokens; and harmful documents."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import anvil
from anvil.index_file import publish
from tests.conftest import PAGES, write
from tests.e2e.ui.test_ui import ALERTS, TOKEN, answer, several_collections
from tests.support import mcp_servers
from tests.support.browser import BROWSER, DRIVER
from tests.support.mcp_servers import Process
from tests.support.playground import Visitor

QUESTION = "who is told when an alert is not acknowledged?"
ENTER, ESCAPE, DOWN = "\ue007", "\ue00c", "\ue015"
HARMFUL = """\
# Harm <img src=x onerror="window.harmed=1">

<script>window.harmed = 1</script>

<svg onload="window.harmed=1"></svg> <iframe src="javascript:parent.harmed=1"></iframe>
<a href="javascript:window.harmed=1" onclick="window.harmed=1">zebra</a>

[one](javascript:window.harmed=1) [two](JaVaScRiPt:alert(1)) [three](data:text/html,<script>alert(1)</script>)
[four](vbscript:x) [five](//evil.example/x) [six](\tjavascript:alert(1)) [seven](&#106;avascript:alert(1))
[good](https://example.org/ "onmouseover=window.harmed=1") and [inside](guides/alerts.md#e-mail "x")

![picture](https://evil.example/pixel.png) ![](x" onerror="window.harmed=1) ![a](javascript:alert(1))

<style>body { display: none }</style>

| <img src=x onerror="window.harmed=1"> | [cell](javascript:alert(1)) |
|---|---|
| `<script>window.harmed=1</script>` | zebra |

```html
<script>window.harmed = 1</script>
```

> - 1. > - <img src=x onerror="window.harmed=1"> zebra
"""
WIDE = f"# Wide\n\n{'unbroken' * 60}\n\n```\n{'code ' * 200}\n```\n\n{'| a ' * 30}|\n{'|---' * 30}|\n"
CONTRAST = """
const channel = c => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
const bright = c => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
const rgb = text => text.match(/[\\d.]+/g).map(Number);
const ground = node => {
  for (let each = node; each; each = each.parentElement) {
    const colour = rgb(getComputedStyle(each).backgroundColor);
    if (colour.length < 4 || colour[3] > 0) return colour;
  }
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const poor = new Set();
let seen = 0;
while (walker.nextNode()) {
  const node = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || !node.getClientRects().length || node.closest('svg, dialog')) continue;
  seen += 1;
  const [a, b] = [bright(rgb(getComputedStyle(node).color)), bright(ground(node))].sort((x, y) => y - x);
  const contrast = (a + 0.05) / (b + 0.05);
  if (contrast < 4.5) poor.add(`${node.tagName}.${node.className} ${contrast}: ${node.textContent.slice(0, 40)}`);
}
return [seen, [...poor]];
"""

pytestmark = pytest.mark.skipif(
    not BROWSER or not DRIVER, reason="there is no Chromium with its driver; scripts/install_browser.sh installs them"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    pytest.importorskip("selenium")
    visitor = Visitor(tmp_path_factory.mktemp("chromium"))
    yield visitor
    visitor.close()


@pytest.fixture
def visitor(browser: Visitor) -> Iterator[Visitor]:
    """The browser on a new visit; whatever it does, nothing may be asked of another host, nor be complained of."""
    browser.screen()
    browser.requests(), browser.complaints()
    yield browser
    foreign = [url for url in browser.requests() if not url.startswith(("http://127.0.0.1:", "data:"))]
    ended = re.compile(
        r" 401 |net::ERR_(CONNECTION_\w+|EMPTY_RESPONSE|CONTENT_LENGTH_MISMATCH)"
    )  # no token yet; a server that has ended
    complaints = [each for each in browser.complaints() if not ended.search(each)]
    browser.run("localStorage.clear(); sessionStorage.clear()")
    assert foreign == [] and complaints == []


SCORES = """
const numbers = (hit, css, of) => [...hit.querySelectorAll(css)].map(of).map(Number);
return [...document.querySelectorAll('.hit')].map(hit => [
  Number(hit.querySelector('.sum').textContent.split(' ').pop()), numbers(hit, 'dd', each => each.textContent),
  numbers(hit, '.bar rect:not(.track)', each => each.getAttribute('width'))]);
"""
CUT_LETTERS = """
const cut = [];
for (const box of document.querySelectorAll('.hit .clamped')) {
  if (!box.getClientRects().length) continue;
  const seen = box.getBoundingClientRect();
  const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT), range = document.createRange();
  while (walker.nextNode()) {
    range.selectNodeContents(walker.currentNode);
    for (const line of range.getClientRects()) {
      const within = Math.min(line.bottom, seen.bottom) - Math.max(line.top, seen.top);
      const isCut = within < line.height - 1.5 || line.right > seen.right + 1;
      if (line.width && within > 1.5 && isCut) cut.push(walker.currentNode.data);
    }
  }
}
return cut;
"""
"""The texts of which a line is cut through, below or at the right."""
ABOVE = """
return [...document.querySelectorAll('.hit')].filter(hit => hit.getBoundingClientRect().bottom <= innerHeight).length;
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    place = tmp_path_factory.mktemp("play")
    with anvil.open(write(place / "docs", {**PAGES, "harm.md": HARMFUL, "wide.md": WIDE}), place / "i.db") as opened:
        opened.index()
    with mcp_servers.over_http(place / "docs", place / "i.db", "--ui") as server:
        yield server


@pytest.fixture(scope="module")
def home(server: Process) -> str:
    return f"{server.base}/ui/"


# --- asking ----------------------------------------------------------------------------------------------------


def test_a_question_is_answered_as_it_is_typed(visitor: Visitor, home: str) -> None:
    visitor.go(home)
    assert visitor.text("h1") == "What would an agent ask?"
    visitor.ask(QUESTION)
    assert visitor.texts(".hit h2")[0] == "Escalation" and visitor.texts(".of a")[0] == "Alerts"
    assert visitor.texts(".of .path")[0] == "guides/alerts.md"
    assert re.match(r"\d+\W\d+$", visitor.texts(".hit .path")[0])
    assert len({*visitor.texts(".of .path")}) == len(visitor.texts(".of .path")), "each page stands there once"
    marks = {each.lower() for each in visitor.texts(".hit mark")}
    assert "acknowledges" in marks and "alert" in marks and not marks & {"is", "not", "when", "an"}
    line = visitor.texts(".line")[0]
    assert re.search(r"10 results from \d+ chunks", line) and re.search(r"\d ms, \d+ ms round trip", line)
    assert "compared with the working tree just now" in line
    scores = visitor.run(SCORES)
    assert len(scores) == 10
    for score, parts, widths in scores:
        assert len(parts) == 6 and sum(parts) == pytest.approx(score, abs=0.03)
        assert len(widths) == 6 and sum(widths) == pytest.approx(score * 100, abs=0.2)
    visitor.screen(1280, 800)
    assert visitor.run(ABOVE) >= 6, "above the fold"
    assert not visitor.run("return document.querySelector('.hit .bar').getClientRects().length")
    visitor.see(".hit .sum").click()
    assert visitor.run("return document.querySelector('.hit .bar').getClientRects().length") == 1
    assert visitor.hash() == "#q=who+is+told+when+an+alert+is+not+acknowledged%3F"


def test_excerpts_are_whole_lines_and_a_page_of_many_sections_leaves_room(visitor: Visitor, tmp_path: Path) -> None:
    """On a screen and on a phone."""
    row = (
        "| `option-{0}` | integer | The walrus has tusk number {0}, and this cell has many words so that it is wide |\n"
    )
    table = "| option | kind | meaning |\n|---|---|---|\n" + "".join(row.format(number) for number in range(9))
    code = (
        "```bash\n"
        + "".join(f"feed --walrus {number} " + "--fish herring " * 12 + "\n" for number in range(9))
        + "```\n"
    )
    sections = "".join(f"## Walrus {number}\n\n{code if number % 2 else table}\n" for number in range(7))
    pages = {"many.md": f"# Many\n\n{sections}", "other.md": f"# Other\n\nOf the sea.\n\n{code}\nA walrus.\n\n{table}"}
    write(tmp_path / "docs", pages)
    with mcp_servers.over_http(tmp_path / "docs", None, "--ui", "--provider", "none") as server:
        for width in (1280, 390):
            visitor.screen(width, 860)
            visitor.go(f"{server.base}/ui/#q=walrus&mode=keyword&n=20")
            visitor.until(lambda: len(visitor.all(".hit")) >= 8)
            assert {*visitor.texts(".of .path")} == {"many.md", "other.md"}
            assert visitor.run(CUT_LETTERS) == []
            tops = visitor.run(
                "return [...document.querySelectorAll('.group')].map(each => each.getBoundingClientRect().top)"
            )
            assert max(tops) < 600, "the second page is on the first screen"
            visible = [each for each in visitor.all(".hit .text") if each.is_displayed()]
            assert len(visible) == 2 and visitor.texts(".others summary")[0].endswith(" more sections of this page")
            visitor.see(".others summary").click()
            visitor.see(".others .hit .sum").click()
            assert len([each for each in visitor.all(".hit .text") if each.is_displayed()]) == 3
            visitor.see(".hit .sum").click()  # the whole text, and back to the excerpt
            visitor.see(".hit .sum").click()
            assert visitor.run(CUT_LETTERS) == [] and visitor.overflow() <= 0


def test_a_question_that_nothing_answers_is_told_so(visitor: Visitor, home: str) -> None:
    visitor.go(f"{home}#q=asdf+qwer+zxcv")
    visitor.see(".hit")
    assert "Probably nothing here answers this" in visitor.text(".told .note")
    assert visitor.text(".hit .likely").startswith("confidence 0.0")
    visitor.ask(QUESTION)
    assert not visitor.all(".told .note")


def test_questions_are_suggested_where_headings_ask_them_and_else_none(visitor: Visitor, tmp_path: Path) -> None:
    faq = "# FAQ\n\n## Why is the lamp dark?\n\nA fuse.\n\n## What is read\n\nAll.\n"
    docs = write(tmp_path / "docs", {**PAGES, "faq.md": faq})
    with mcp_servers.over_http(docs, None, "--provider", "none", "--ui") as server:
        visitor.go(server.base)  # leads to the playground
        visitor.see(".ideas a")
        assert visitor.texts(".ideas a") == ["Why is the lamp dark?"]
        assert visitor.run("return location.pathname") == "/ui/"


def test_a_link_says_it_all_and_back_leads_back(visitor: Visitor, home: str) -> None:
    visitor.go(f"{home}#q=alert&mode=keyword&n=3&files=guides/**")
    visitor.see(".hit")
    assert len(visitor.all(".hit")) == 3 and visitor.see("input[value=keyword]").is_selected()
    assert visitor.texts(".hit dt").count("semantic") == 3 and set(visitor.texts(".hit dd:last-child"))
    assert all(path.startswith("guides/") for path in visitor.texts(".of .path"))
    visitor.see(".hit h2 a").click()
    visitor.see(".section.wanted")
    assert visitor.hash().startswith("#page=guides/alerts.md&section=Alerts")
    visitor.driver.back()
    visitor.see(".hit")
    assert visitor.hash() == "#q=alert&mode=keyword&n=3&files=guides/**"


def test_the_agents_view_is_the_very_text_with_its_size(visitor: Visitor, home: str, server: Process) -> None:
    visitor.go(f"{home}#q=certificates&agent")
    shown = visitor.see(".agent").get_attribute("textContent")
    asked = answer(server, "search", query="certificates", top_k=10, mode="hybrid")["text"]
    assert {**json.loads(shown), "query_ms": 0} == {**json.loads(asked), "query_ms": 0}
    assert visitor.texts("#size") == [f"{len(shown):,} characters"]
    assert visitor.texts(".agent-head code") == ['search_docs({"query":"certificates","top_k":10})']
    visitor.press("a")
    visitor.see(".hit")
    assert visitor.hash() == "#q=certificates"


def test_what_changes_is_read_again_and_said(visitor: Visitor, tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", PAGES)
    with mcp_servers.over_http(docs, None, "--provider", "none", "--no-watch", "--ui") as server:
        visitor.go(f"{server.base}/ui/")
        visitor.ask("zebra")
        assert visitor.text(".results h1") == "Nothing found"
        assert "Semantic search is off" in visitor.text(".note")
        write(docs, {"stripes.md": "# Stripes\n\nA zebra has stripes.\n"})
        visitor.see("#q").send_keys(ENTER)
        assert visitor.text(".hit h2") == "Stripes"
        assert visitor.texts(".note.fresh") == ["Pages refreshed just now: stripes.md"]
        visitor.until(lambda: visitor.texts("#status")[0].startswith("5 pages"))
        server.stop()
        visitor.see("#q").send_keys(ENTER)
        assert "The server does not answer" in visitor.text(".results .trouble")


def test_while_the_index_is_being_built_it_says_so(visitor: Visitor, tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", PAGES)
    with (
        publish.exclusive(tmp_path / "i.db"),
        mcp_servers.over_http(docs, tmp_path / "i.db", "--provider", "none", "--ui") as server,
    ):
        visitor.go(f"{server.base}/ui/#q=certificates")
        assert "The index is being built: 4 pages read so far" in visitor.text(".building")
        assert visitor.text(".hit h2") == "Certificates"
        (tmp_path / "other.db").write_bytes(b"")
        with anvil.open(docs, tmp_path / "other" / "i.db", "none") as opened:
            opened.index()
        (tmp_path / "other" / "i.db").replace(tmp_path / "i.db")
        visitor.until(lambda: not visitor.all(".building"))


# --- keys ------------------------------------------------------------------------------------------------------


def test_everything_can_be_done_with_keys(visitor: Visitor, home: str) -> None:
    visitor.go(home)
    visitor.see("#q")
    visitor.press(ESCAPE, "/")
    assert visitor.focused() == "q"
    visitor.press(*"alert")
    visitor.until(lambda: visitor.all(".hit"))
    visitor.press(DOWN)
    titles = visitor.texts(".hit h2 a")
    assert visitor.focused() == titles[0]
    visitor.press("j")
    assert visitor.focused() == titles[1]
    visitor.press("k", "k")
    assert visitor.focused() == "q"
    visitor.press(ESCAPE, "j", "j", ENTER)
    visitor.see(".section.wanted h3, .section.wanted h2")
    visitor.press(ESCAPE)
    visitor.until(lambda: visitor.all(".hit") and visitor.focused() == titles[1])
    visitor.press("?")
    assert visitor.run("return document.getElementById('help').open")
    visitor.press(ESCAPE)
    assert not visitor.run("return document.getElementById('help').open")
    visitor.press("2")
    visitor.see(".tree a")
    visitor.press("j", "j", ENTER)
    visitor.until(lambda: visitor.all(".reading h1") and visitor.hash().startswith("#page="))
    visitor.press("3")
    visitor.see(".tiles")
    visitor.press("1")
    assert visitor.until(lambda: visitor.all(".hit")) and visitor.hash() == "#q=alert"


# --- reading ---------------------------------------------------------------------------------------------------


def test_pages_are_chosen_from_a_tree_and_read_by_section(visitor: Visitor, home: str) -> None:
    visitor.go(f"{home}#pages")
    visitor.see(".tree a")
    assert visitor.texts(".tree summary") == ["guides2"]
    visitor.see(".side input").send_keys("quiet")
    assert visitor.until(lambda: visitor.texts(".tree p")) == ["No page has this in its path, title or headings."]
    visitor.see(".side input").clear()
    visitor.see(".side input").send_keys("ESCAL")
    visitor.until(lambda: len(visitor.all(".tree a")) == 1)
    visitor.see(".tree a").click()
    visitor.until(lambda: visitor.texts(".reading h1") == ["Alerts"])
    assert visitor.texts(".outline li") == ["Alerts", "E-mail", "Silence at night", "Escalation"]
    assert visitor.see(".tree a").get_attribute("aria-current") == "page"
    written = "".join(PAGES[ALERTS].split()).replace("#", "").replace("`", "")
    assert "".join("".join(visitor.texts(".section .prose")).split()) == written.removeprefix("Alerts")
    visitor.see(".outline li:nth-child(4) a").click()
    visitor.until(lambda: visitor.texts(".section.wanted h3") == ["Escalation"])
    top = visitor.run("return document.querySelector('.wanted').getBoundingClientRect().top")
    assert 0 < top < 860
    visitor.go(f"{home}#page=nothing.md")
    assert "No page found" in visitor.text(".reading .trouble")
    visitor.complaints()  # a page that is not there is a 404, which the console tells


def test_documents_that_mean_harm_do_none(visitor: Visitor, home: str) -> None:
    for address in ("#page=harm.md", "#q=zebra&n=10"):
        visitor.go(home + address)
        visitor.see(".prose table")
        links = visitor.run("return [...document.querySelectorAll('.prose a')].map(link => link.href)")
        assert set(links) == {"https://example.org/", f"{home}#page={ALERTS}&anchor=e-mail"} | (
            {"https://example.org/"} if "q=" in address else set()
        )
        allowed = "main img, main script, main iframe, main style, main object, main svg:not(.bar):not(.swatch)"
        assert visitor.all(allowed) == []
        names = "return [...document.querySelectorAll('main *:not(.text)')].flatMap(e => e.getAttributeNames())"
        assert not [name for name in visitor.run(names) if name.startswith("on") or name == "style"]
        visitor.run("document.querySelectorAll('.prose .nowhere').forEach(each => each.click())")
        assert {"one", "two", "four", "five", "seven", "cell"} <= set(visitor.texts(".prose .nowhere"))
        assert visitor.run("return window.harmed") is None
        assert "<script>window.harmed = 1</script>" in "".join(visitor.texts(".prose"))


@pytest.mark.parametrize(
    "piece",
    [
        "[",
        "![",
        "[a](",
        "[![a](b)",
        "**a ",
        "*a ",
        "``a`",
        "~~a",
        "[x](a(b",
        "> ",
        "- ",
        "|",
        # lines that nearly are what stands below the head of a table, and a heading that breaks within
        f"|\n-{' ' * 100_000}x",
        f"|\n{'-' * 100_000}x",
        f"|\n-{'|-' * 50_000}x",
        f"|\n|-|{' ' * 100_000}x",
        f"# {' ' * 990}\u2028",
    ],
    ids=lambda piece: piece[:8].strip(),
)
def test_no_line_keeps_the_page_busy(visitor: Visitor, home: str, piece: str) -> None:
    if not visitor.run("return location.href").startswith(home):
        visitor.go(home)
        visitor.see("h1")
    script = """
      const [text, done] = arguments;
      import('./markdown.js').then(({rendered, highlight}) => {
        const started = performance.now();
        highlight(rendered(text, () => null), ['a', 'x']);
        done(performance.now() - started);
      });
    """
    text = piece if len(piece) > 99 else piece * (19_000 // len(piece))
    assert visitor.driver.execute_async_script(script, f"{text}\n\n{text}\n") < 5000


# --- health ----------------------------------------------------------------------------------------------------


def test_health_draws_the_numbers_of_the_index(visitor: Visitor, home: str, server: Process) -> None:
    visitor.go(f"{home}#health")
    visitor.see(".tiles")
    health = answer(server, "health")["health"]
    tiles = dict(zip(visitor.texts(".tiles dt"), visitor.texts(".tiles dd"), strict=True))
    assert tiles["Pages"] == "6" and tiles["Chunks"] == str(health["chunks"])
    assert tiles["Characters"] == f"{health['characters']:,}" and tiles["Vectors"] == f"{health['windows']}complete"
    chart = visitor.see(".histogram svg")
    assert visitor.texts(".histogram .value") == [str(bar["chunks"]) for bar in health["chunk_sizes"]]
    heights = [*map(float, visitor.attributes(".histogram rect", "height"))]
    most = max(bar["chunks"] for bar in health["chunk_sizes"])
    for height, bar in zip(heights, health["chunk_sizes"], strict=True):
        assert height == pytest.approx(bar["chunks"] / most * max(heights), abs=2.1)
    assert chart.get_attribute("role") == "img"
    said = re.findall(r"(\d+) chunks? of [\d,]+.([\d,]+) characters", chart.get_attribute("aria-label"))
    assert said == [(str(bar["chunks"]), f"{bar['up_to']:,}") for bar in health["chunk_sizes"]]
    pages = health["largest_pages"] + health["smallest_pages"]
    assert visitor.texts(".bars a") == [page["file_path"] for page in pages]
    assert visitor.texts(".bars li > span") == [f"{page['chars']:,}" for page in pages]
    assert visitor.texts(".note.good") == ["No page differs from the documents."]


def test_health_names_what_is_stale_and_what_is_worth_mending(visitor: Visitor, tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", PAGES)
    with anvil.open(docs, tmp_path / "i.db") as opened:
        opened.index()
    said = PAGES[ALERTS].replace("goes to the next person on call", "is handed to the next person on call")
    write(docs, {"night.md": said, "plain.md": "Only text.\n", "blank.md": ""})
    with mcp_servers.over_http(docs, tmp_path / "i.db", "--ui") as server:
        visitor.go(f"{server.base}/ui/#health")
        assert visitor.text(".note").startswith("The file differs in 3 pages. Answers are right")
        assert visitor.texts(".note li a") == ["blank.md", "night.md", "plain.md"]
        visitor.until(lambda: "Nearly the same1" in visitor.texts(".findings h2"))  # when the vectors are made
        found = dict(zip(visitor.texts(".findings h2"), visitor.texts(".findings section"), strict=True))
        assert {name for name in found if not name.endswith("✓")} == {
            "Nearly the same1",
            "The same text twice3",
            "Without headings1",
            "Empty pages1",
        }
        assert re.search(r"9\d(\.\d)?%Escalationguides/alerts\.md:\d+Escalationnight\.md", found["Nearly the same1"])
        visitor.see(".findings li a").click()
        visitor.see(".section.wanted")


# --- how it looks ----------------------------------------------------------------------------------------------

VIEWS = {
    "": ".empty h1",
    f"#q={QUESTION}": ".hit",
    "#q=unbroken": ".hit",
    f"#q={QUESTION}&agent": ".agent",
    "#pages": ".tree a",
    "#page=wide.md": ".section",
    "#page=guides/alerts.md": ".section",
    "#health": ".histogram",
}


def test_all_text_can_be_read_and_a_phone_never_scrolls_sideways(visitor: Visitor, home: str) -> None:
    """In light and in dark."""
    grounds = {False: "rgb(255, 255, 255)", True: "rgb(20, 24, 31)"}
    for address, there in VIEWS.items():
        visitor.screen()
        visitor.go(home + address)
        visitor.see(there)
        for dark, ground in grounds.items():
            visitor.screen(dark=dark)
            seen, poor = visitor.run(CONTRAST)
            assert seen > 10 and poor == [], (address, dark)
            assert visitor.run("return getComputedStyle(document.body).backgroundColor") == ground
        visitor.screen(360, 740)
        assert visitor.overflow() <= 0, address


def test_light_and_dark_can_be_chosen_and_stay(visitor: Visitor, home: str) -> None:
    ground = "return getComputedStyle(document.body).backgroundColor"
    visitor.go(home)
    visitor.see("#theme").click()
    assert visitor.run(ground) == "rgb(20, 24, 31)"
    visitor.go(f"{home}#pages")
    visitor.see(".tree a")
    assert visitor.run(ground) == "rgb(20, 24, 31)"
    visitor.press("t")
    assert visitor.run(ground) == "rgb(255, 255, 255)"


def test_a_phone_shows_the_tree_or_the_page(visitor: Visitor, home: str) -> None:
    visitor.screen(360, 740)
    visitor.go(f"{home}#pages")
    visitor.see(".tree a").click()
    assert visitor.see(".reading h1").is_displayed() and not visitor.see(".tree").is_displayed()
    visitor.see(".up").click()
    visitor.until(lambda: visitor.see(".tree").is_displayed())


# --- the token -------------------------------------------------------------------------------------------------


def test_the_page_asks_for_the_token_and_keeps_it_to_itself(visitor: Visitor, tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", PAGES)
    with mcp_servers.over_http(docs, tmp_path / "i.db", "--provider", "none", "--ui", ANVIL_TOKEN=TOKEN) as server:
        home = f"{server.base}/ui/"
        visitor.go(f"{home}#q=certificates")
        visitor.see(".token input").send_keys("wrong", ENTER)
        visitor.until(lambda: "The token is wrong" in visitor.text(".token"))
        visitor.see(".token input").send_keys(TOKEN, ENTER)
        assert visitor.text(".hit h2") == "Certificates"
        assert TOKEN not in visitor.run("return location.href + document.cookie + JSON.stringify(localStorage)")

        visitor.run("sessionStorage.clear()")
        visitor.go(f"{home}#token=t0ken%2Bof%2Fthe~page%3D%3D")  # as `anvil ui` prints it
        visitor.see(".empty h1")
        assert visitor.hash() in ("", "#") and not visitor.all(".token")
        asked = visitor.requests()
        assert any("/ui/api/status" in url for url in asked)
        assert not [url for url in asked if "t0ken" in url.partition("#")[0]]
        assert TOKEN not in server.log()


# --- several collections -----------------------------------------------------------------------------------------


def test_a_question_to_all_collections_and_to_one(visitor: Visitor, tmp_path: Path) -> None:
    with several_collections(tmp_path) as server:
        visitor.go(f"{server.base}/ui/")
        visitor.ask("check the sourdough")
        chooser = "#collection option:checked"
        assert visitor.text(chooser) == "All 3 collections"
        assert visitor.texts(".of-collection")[0] == "bakery@1.10" and "docs" in visitor.texts(".of-collection")
        assert "4 pages" not in visitor.text("#status"), "pages of all collections"
        visitor.see(".hit h2 a").click()
        assert visitor.text(".reading h1") == "Bread" and visitor.text(chooser) == "bakery@1.10"
        assert visitor.texts(".tree a span") == ["Bread", "Bakery"]
        visitor.see(".tree a[title='index.md']").click()
        visitor.until(lambda: visitor.texts(".reading h1") == ["Bakery"])
        assert visitor.attributes(".reading .prose a", "href") == ["#in=bakery%401.10&page=bread.md"]
        visitor.run(
            "const chooser = document.getElementById('collection'); chooser.value = 'docs';"
            "chooser.dispatchEvent(new Event('change'))"
        )
        visitor.until(lambda: visitor.texts(".reading h1") == ["Lighthouse"])
        visitor.press("3")
        visitor.until(lambda: "Index health" in visitor.texts("h1"))
        assert visitor.text(chooser) == "docs" and visitor.texts(".tiles dd")[0] == "4"
        visitor.go(f"{server.base}/ui/#in=bakery%401.9&q=sourdough")
        visitor.until(lambda: visitor.texts(".of-collection") == ["bakery@1.9"])
        visitor.press("a")
        assert '"collection":"bakery","version":"1.9"' in visitor.text(".agent-head code")


def test_a_single_index_shows_no_collections(visitor: Visitor, home: str) -> None:
    visitor.go(home)
    visitor.ask(QUESTION)
    assert not visitor.see("#collection").is_displayed() and visitor.texts(".of-collection") == []
