"""Whether a result names the section that was asked for, and whether that section holds the text that matched.

    python benchmarks/section_hits.py FOLDER [FOLDER ...] [--work FOLDER] [--details] [--sections N]

Each folder of Markdown is indexed without vectors. Each of its sections is then asked for by its own unusual words: the
rarest of its words, as few as tell it from every other section of the folder. A section whose words another section
holds as well, each of them, cannot be told from it by words and is left out; the table says how many there are.

``named``: one of five results has the section's page and breadcrumb; ``first``: the first result has. ``get_section
holds the match``: what a result showed as its match, with a budget that cuts every result and with one that cuts none,
is in the text that ``get_section`` gives for the result's ``file_path`` and ``heading_path``, as they are and with the
page's title in front.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import anvil
from anvil.search.excerpts import stem
from anvil.text.query import STOP, words
from anvil.wording import full_heading

TIGHT, WIDE = 600, 1_000_000_000
"""Budgets in characters: one that cuts results, one that cuts none."""
MOST = 12
"""Words of a question."""
ENDINGS = re.compile(r"[^\W_]{3,40}")


@dataclass(frozen=True)
class Asked:
    """A section, and the question that is made of its words."""

    file_path: str
    heading_path: str
    question: str


@dataclass
class Tally:
    """What was found in one folder."""

    sections: int = 0
    alike: int = 0
    asked: int = 0
    named: int = 0
    first: int = 0
    hits: int = 0
    held: int = 0
    missed: list[Asked] = field(default_factory=list)


def questions(opened: anvil.Anvil, tally: Tally) -> Iterator[Asked]:
    """A question for each section that words can tell from all others."""
    found: list[tuple[str, str, dict[str, str]]] = []
    holders: dict[str, set[int]] = defaultdict(set)
    for page in opened.list_pages().pages:
        outline = opened.outline(page.file_path)
        text = "".join(chunk.content for chunk in outline.page.chunks)
        for section in outline.sections:
            own = {stem(word): word for word in reversed(words(text[section.start : section.end])) if asked(word)}
            for each in own:
                holders[each].add(len(found))
            found.append((page.file_path, section.heading_path, own))
    tally.sections = len(found)
    for number, (path, heading, own) in enumerate(found):
        chosen: list[str] = []
        left: set[int] = set(range(len(found)))
        for each in islice(sorted(own, key=lambda word: (len(holders[word]), word)), MOST):
            chosen.append(own[each])
            left &= holders[each]
            if len(left) == 1 and len(chosen) >= 3:
                break
        if left == {number} and own:
            yield Asked(path, heading, " ".join(chosen))
        else:
            tally.alike += 1


def asked(word: str) -> bool:
    """Whether a word may be in a question."""
    return bool(ENDINGS.fullmatch(word)) and word.lower() not in STOP


def measured(folder: Path, index: Path, most: int | None = None) -> Tally:
    """Ask for the sections of a folder, or for ``most`` of them, chosen at random from a fixed seed."""
    tally = Tally()
    with anvil.open(folder, index, "none") as opened:
        opened.index()
    with anvil.open(index=index, provider="none") as opened:  # an index alone: nothing is compared in between
        every = list(questions(opened, tally))
        if most is not None and most < len(every):
            every = random.Random(13).sample(every, most)
        for each in every:
            ask(opened, each, tally)
    return tally


def ask(opened: anvil.Anvil, each: Asked, tally: Tally) -> None:
    """Ask one question, and compare what came."""
    wide = opened.explain(each.question, max_chars=WIDE)
    tight = opened.search(each.question, max_chars=TIGHT)
    places = [(hit.metadata.file_path, hit.metadata.heading_path) for hit in wide.result.results]
    wanted = (each.file_path, each.heading_path)
    tally.asked += 1
    tally.named += wanted in places
    tally.first += places[:1] == [wanted]
    if wanted not in places:
        tally.missed.append(each)
    for hit, span, cut in zip(wide.result.results, wide.spans, tight.results, strict=True):
        place, tally.hits = hit.metadata, tally.hits + 1
        titled = full_heading(hit.title, place.heading_path)
        text = opened.get_section(place.file_path, place.heading_path).content
        match = hit.content[span.start : span.end]
        shown = cut.content if cut.truncated else match
        whole = text in hit.content
        same = opened.get_section(place.file_path, titled).content in (text, root_text(opened, place.file_path))
        tally.held += bool(match) and match in text and shown in text and same and hit.truncated != whole


def root_text(opened: anvil.Anvil, file_path: str) -> str | None:
    """Text before any heading, which the page's title alone names; a heading that is equal to the title goes first."""
    page = opened.get_page(file_path)
    return next((opened.get_section(file_path, page.title).content for s in page.sections if not s.heading_level), None)


def main(arguments: Sequence[str] | None = None, say: Callable[[str], None] = print) -> None:
    """Measure, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--work", type=Path, help="where the indexes are kept; a temporary folder")
    parser.add_argument("--sections", type=int, help="ask for so many of each folder only")
    parser.add_argument("--details", action="store_true", help="print each section that was not named")
    given = parser.parse_args(arguments)
    from measuring import heading  # the tests import this module from another folder

    say(heading())
    say(
        "| tree | sections | without own words | searched for | named | first | results | get_section holds the match |"
    )
    say("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        work = given.work or Path(scratch)
        work.mkdir(parents=True, exist_ok=True)
        for folder in given.folders:
            tally = measured(folder, work / f"{folder.resolve().name}.db", given.sections)
            share = [f"{count / max(tally.asked, 1):.1%}" for count in (tally.named, tally.first)]
            say(
                f"| {folder.resolve().name} | {tally.sections:,} | {tally.alike:,} | {tally.asked:,} | {share[0]} "
                f"| {share[1]} | {tally.hits:,} | {tally.held / max(tally.hits, 1):.1%} |"
            )
            if given.details:
                for each in tally.missed:
                    print(f"{each.file_path}: {each.heading_path}: {each.question}", file=sys.stderr)


if __name__ == "__main__":
    main()
