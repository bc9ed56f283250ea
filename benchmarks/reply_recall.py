"""How soon a default reply of ``search_docs`` reaches the page and the section that answer: recall at a budget.

    python benchmarks/reply_recall.py EVAL [--work FOLDER] [--corpora NAME ...]

EVAL is the folder that ``retrieval.py`` wants. Each question is asked once, as it is, with default arguments. ``page``:
the share of questions for which a result of a right page has begun within so many characters. ``section``, for the
questions whose section is known: a result that names that section or one below it has begun, or the section's own text
has begun in another result. A section that is only named, without text, does not count. ``of its text``: how much of
that section's own text, in characters of its lines, the reply has; the mean. ``text`` is the JSON that a client shows a
model, ``wire`` the whole result: that text as a JSON string, then structured content; ``markdown`` is what ``anvil
serve --text markdown`` sends.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measuring import heading, table
from retrieval import bare

import anvil
from anvil import queries
from anvil.formats.data_formats import compact
from anvil.requests import SearchRequest
from anvil.results import Hit
from anvil.server.markdown_results import MORE_IN_MARKDOWN, render, rendered_hits
from anvil.server.protocol import tool_result
from anvil.text.headings import attributes, plain

FORMS = ("text", "wire", "markdown")
BUDGETS = (500, 1_000, 2_000, 4_000)
"""Characters."""
OWN_CHARS = 100
"""Characters of a section's own text, after its heading, that tell it from others."""
NEVER = 10**9


@dataclass(frozen=True)
class Reached:
    """What one reply holds, in each of :data:`FORMS`: its characters, where the right page and section begin, and the
    share of that section's text; ``section`` is None where the right section is not known."""

    group: str
    chars: tuple[int, ...]
    page: tuple[int, ...]
    section: tuple[int, ...] | None
    shares: tuple[float, ...]


def reached(opened: anvil.Anvil, question: dict[str, Any]) -> Reached:
    """The reply to one question, judged."""
    result = opened.search(question["query"])
    sent = tool_result(result)
    in_markdown = queries.answer(opened, SearchRequest(question["query"], more_chars=MORE_IN_MARKDOWN)).result
    reply, markdown = sent["content"][0]["text"], render(in_markdown)
    page, section, shares = [NEVER, NEVER], [NEVER, NEVER], (0.0, 0.0)
    gold = _gold(opened, question)
    lines = [each.strip() for each in rendered_hits(in_markdown.results)]
    if gold:
        with_text = [hit for hit, line in zip(in_markdown.results, lines, strict=True) if "\n" in line]
        shares = _share(gold[1], result.results, question), _share(gold[1], with_text, question)
    at = [0, 0]
    values = sent["structuredContent"]["results"]
    for hit, line, value in zip(result.results, lines, values, strict=True):
        own = [compact(value), line]
        at = [reply.index(own[0], at[0]), markdown.index(own[1], at[1])]
        if hit.metadata.file_path in question["paths"]:
            page = list(map(min, page, at))
        if gold and hit.metadata.file_path == question["paths"][0]:
            for begins in _begins(hit, value, own, gold[0], gold[1].lstrip()[:OWN_CHARS]):
                section[0] = min(section[0], at[0] + begins[0])
                if "\n" in line:  # else only its line is shown
                    section[1] = min(section[1], at[1] + begins[1])
        at = [start + len(each) for start, each in zip(at, own, strict=True)]
    return Reached(
        question["group"],
        (len(reply), len(compact(sent)), len(markdown)),
        (page[0], _on_wire(reply, page[0]), page[1]),
        (section[0], _on_wire(reply, section[0]), section[1]) if gold else None,
        (shares[0], shares[0], shares[1]),
    )


def _begins(
    hit: Hit, value: dict[str, Any], own: list[str], breadcrumb: str, beginning: str
) -> Iterator[tuple[int, int]]:
    """Where the right section begins in a result: in its JSON, and in its Markdown. ``own``: both."""

    def fits(heading_path: str) -> bool:
        return f"{bare(heading_path)} > ".startswith(f"{breadcrumb} > ")

    if hit.content and fits(hit.metadata.heading_path):
        yield 0, 0
    elif beginning and (found := hit.content.find(beginning)) >= 0:
        yield len(compact(hit.content[:found])), max(own[1].find(beginning), 0)
    for place, further in zip(hit.also or (), value.get("also", ()), strict=True):
        if place.content and fits(place.heading_path):
            yield own[0].index(compact(further)), own[1].index(f"\n#{place.anchor}")


def _share(own: str, hits: Sequence[Hit], question: dict[str, Any]) -> float:
    """The share of a section's lines, in characters, that the results of its page have."""
    of_page = [hit for hit in hits if hit.metadata.file_path == question["paths"][0]]
    shown = "\n".join(text for hit in of_page for text in (hit.content, *(place.content for place in hit.also or ())))
    lines = [line.strip() for line in own.splitlines()]
    return sum(len(line) for line in lines if line in shown) / max(sum(map(len, lines)), 1)


def _on_wire(reply: str, at: int) -> int:
    """The place in the whole result of a place in its text."""
    return NEVER if at == NEVER else len('{"content":[{"type":"text","text":') + len(compact(reply[:at])) - 1


def _gold(opened: anvil.Anvil, question: dict[str, Any]) -> tuple[str, str] | None:
    """The breadcrumb and the own text of the section that answers; None where no section is known."""
    title = question["heading"]
    if title is None and question.get("anchor") is None:
        return None
    outline = opened.outline(question["paths"][0])
    whole = "".join(chunk.content for chunk in outline.page.chunks)
    wanted = None if title is None else bare(plain(attributes(str(title))[0]))
    for section in outline.sections:
        name = bare(section.heading_path.split(" > ")[-1])
        if name == wanted if wanted is not None else section.anchor == question["anchor"]:
            own = whole[section.start : section.end].lstrip().partition("\n")[2].strip()
            return bare(section.heading_path), own
    return None


def questions(evaluation: Path) -> Iterator[dict[str, Any]]:
    """All questions, each with the name of its file."""
    for file in sorted(evaluation.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            yield {**json.loads(line), "group": file.stem}


def main() -> None:
    """Ask, judge, print two tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("eval", type=Path)
    parser.add_argument("--work", type=Path, help="where the indexes are kept; by default a temporary folder")
    parser.add_argument("--corpora", nargs="*", help="only these")
    given = parser.parse_args()
    asked = list(questions(given.eval))
    judged: list[Reached] = []
    with tempfile.TemporaryDirectory() as temporary:
        for corpus in given.corpora or sorted({question["corpus"] for question in asked}):
            index = (given.work or Path(temporary)) / f"{corpus}.db"
            with anvil.open(given.eval / "corpora" / corpus, index) as opened:
                opened.index()
                judged += [reached(opened, question) for question in asked if question["corpus"] == corpus]
    print(heading())
    groups = {group: [each for each in judged if each.group == group] for group in sorted({j.group for j in judged})}
    rows = [row for group, of_group in {**groups, "all": judged}.items() for row in _rows(group, of_group)]
    columns = (
        "questions",
        "n",
        "reply, median",
        "begins",
        *(f"{budget:,}" for budget in BUDGETS),
        "at all",
        "of its text",
    )
    print(table(columns, rows))


def _rows(group: str, judged: list[Reached]) -> Iterator[tuple[str, ...]]:
    known = [each.section for each in judged if each.section is not None]
    for place, form in enumerate(FORMS):
        median = statistics.median(each.chars[place] for each in judged)
        for name, begins in (("page", [each.page for each in judged]), ("section", known)):
            if begins:
                shares = [sum(b[place] < limit for b in begins) / len(begins) for limit in (*BUDGETS, NEVER)]
                reply = (group, str(len(begins)), f"{median:,.0f}", f"{name}, {form}")
                text = statistics.mean(each.shares[place] for each in judged if each.section is not None)
                yield (*reply, *(f"{share:.3f}" for share in shares), f"{text:.3f}" if name == "section" else "")


if __name__ == "__main__":
    main()
