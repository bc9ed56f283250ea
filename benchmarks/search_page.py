"""The search page in a real browser: the results of ``anvil search --mode keyword``, and what an answer costs.

    python benchmarks/search_page.py EVAL [--work FOLDER] [--only CORPUS ...] [--sets dev.jsonl dev2.jsonl]

EVAL is the folder of questions and corpora that ``retrieval.py`` describes. Each corpus gets an index without vectors
and a search page. Chromium asks all questions of a corpus. The first table has how many of them have the same first
page, and the same five results: page, section and anchor, in the same order.

Then questions are asked as the first ones of a visit, with an empty cache, each followed by another one. The server
answers each request after 50 ms and knows ranges; the browser gets 20 Mbit/s. **First** is from opening the page to the
answer, with the page and its scripts; **second** is from Enter to the answer: requests, bytes over the network with
headers, and seconds; medians. **Whole** is the download of the index file alone.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import measuring

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import anvil
from anvil.search_page.publishing import publish
from tests.e2e.site.test_search_page import ASK
from tests.support.browser import Host, hosted
from tests.support.playground import Visitor

HOST = Host(ranges=True, latency_s=0.05)
BYTES_PER_S = 20_000_000 / 8
COST = """
const done = arguments[0];
const wait = () => {
  const [mark] = performance.getEntriesByName('anvil-answer');
  if (!mark) return setTimeout(wait, 5);
  const asked = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
  const own = asked.filter(each => each.responseEnd > 0 && !each.name.endsWith('favicon.ico'));
  done([own.length, own.reduce((sum, each) => sum + each.transferSize, 0), mark.startTime / 1000]);
};
wait();
"""
NEXT = """
const [question] = arguments;
performance.clearMarks();
performance.clearResourceTimings();
const box = document.querySelector('anvil-search').shadowRoot;
box.querySelector('input').value = question;
window.began = performance.now();
box.querySelector('form').requestSubmit();
"""
SECOND = COST.replace("...performance.getEntriesByType('navigation'), ", "").replace(
    "mark.startTime / 1000", "(mark.startTime - window.began) / 1000"
)
WHOLE = """
const done = arguments[0], began = performance.now();
fetch('/anvil/index.db?whole', {cache: 'no-store'}).then(each => each.arrayBuffer()).then(each =>
  done([1, each.byteLength, (performance.now() - began) / 1000]));
"""


def main() -> None:
    """Build, ask, print two tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("eval", type=Path)
    parser.add_argument("--work", type=Path, help="where the indexes are kept; by default a temporary folder")
    parser.add_argument("--only", nargs="*", metavar="CORPUS", help="only these corpora")
    parser.add_argument("--sets", nargs="*", metavar="FILE", help="only these files of questions")
    parser.add_argument("--visits", type=int, default=12, help="visits of each corpus that are measured")
    given = parser.parse_args()
    by_corpus: dict[str, list[dict[str, Any]]] = {}
    for file in sorted(given.eval.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines() if not given.sets or file.name in given.sets else ():
            question = json.loads(line)
            if not given.only or question["corpus"] in given.only:
                by_corpus.setdefault(question["corpus"], []).append(question)
    agreed: list[tuple[Any, ...]] = []
    costs: list[tuple[str, int, int, list[list[list[float]]]]] = []
    with ExitStack() as stack:
        work = given.work or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        browser = Visitor(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        stack.callback(browser.close)
        browser.driver.set_script_timeout(300)
        for corpus, questions in sorted(by_corpus.items()):
            print(corpus, file=sys.stderr)
            site = work / corpus
            with anvil.open(given.eval / "corpora" / corpus, site / "anvil/index.db", "none") as opened:
                pages = opened.index().pages
                publish(opened.index_path, site, {})
                agreed.append((corpus, *agreement(opened, site, questions, browser)))
            size = (site / "anvil/index.db").stat().st_size
            costs.append((corpus, pages, size, cost(site, questions, browser, given.visits)))
    print(measuring.heading())
    print("| corpus | questions | first page | all results | MRR@10 of the page | of the command |")
    print("|---|---|---|---|---|---|")
    totals = ("all", *map(sum, zip(*(row[1:] for row in agreed), strict=True)))
    for corpus, count, first, same, own, other in [totals, *agreed]:
        print(f"| {corpus} | {count} | {first} | {same} | {own / count:.3f} | {other / count:.3f} |")
    print("\n| corpus | pages | index | first | second | whole |\n|---|---|---|---|---|---|")
    for corpus, pages, size, measured in costs:
        print(f"| {corpus} | {pages} | {size / 1e6:.1f} MB | {' | '.join(map(shown, measured))} |")


def agreement(opened: anvil.Anvil, site: Path, questions: list[dict[str, Any]], browser: Visitor) -> tuple[float, ...]:
    """How many questions, first pages and whole answers are the same, and the sums of reciprocal ranks of both."""
    with hosted(site, Host(ranges=True)) as address:
        browser.go(f"{address}anvil/search/")
        answers = browser.driver.execute_async_script(ASK, [question["query"] for question in questions])
    first = same = 0
    ranks = [0.0, 0.0]
    for question, answer in zip(questions, answers, strict=True):
        hits = opened.search(question["query"], mode="keyword").results
        wanted = [[hit.metadata.file_path, hit.metadata.heading_path, hit.anchor] for hit in hits]
        own = [row[:3] for row in answer]
        first += own[:1] == wanted[:1]
        same += own == wanted
        for place, rows in enumerate((own, wanted)):
            paths = list(dict.fromkeys(row[0] for row in rows))
            rank = next((number for number, path in enumerate(paths, 1) if path in question["paths"]), 0)
            ranks[place] += 1 / rank if rank else 0.0
    return len(questions), first, same, *ranks


def cost(site: Path, questions: list[dict[str, Any]], browser: Visitor, visits: int) -> list[list[list[float]]]:
    """Requests, bytes and seconds of each visit: of the first answer, the second, and the whole file."""
    driver = browser.driver
    network = {"offline": False, "latency": 0, "downloadThroughput": BYTES_PER_S, "uploadThroughput": BYTES_PER_S}
    driver.execute_cdp_cmd("Network.enable", {})
    driver.execute_cdp_cmd("Network.emulateNetworkConditions", network)
    measured: list[list[list[float]]] = [[], [], []]
    with hosted(site, HOST) as address:
        for number in range(min(visits, len(questions))):
            driver.get("about:blank")
            driver.execute_cdp_cmd("Network.clearBrowserCache", {})
            query, following = (questions[(number + step) % len(questions)]["query"] for step in (0, 1))
            driver.get(f"{address}anvil/search/?q={query.replace('%', '').replace('&', ' ').replace('#', ' ')}")
            measured[0].append(driver.execute_async_script(COST))
            driver.execute_script(NEXT, following)
            measured[1].append(driver.execute_async_script(SECOND))
            measured[2].append(driver.execute_async_script(WHOLE))
    unlimited = {"downloadThroughput": -1, "uploadThroughput": -1}
    driver.execute_cdp_cmd("Network.emulateNetworkConditions", {**network, **unlimited})
    return measured


def shown(visits: list[list[float]]) -> str:
    """The medians of some visits."""
    requests, size, seconds = (statistics.median(each) for each in zip(*visits, strict=True))
    return f"{requests:.0f} requests, {size / 1000:,.0f} KB, {seconds:.2f} s"


if __name__ == "__main__":
    main()
