"""How much an agent reads until it sees the section that answers: with Anvil's tools, grep, and other servers.

    python benchmarks/agents.py EVAL [--work FOLDER] [--peers FOLDER] [--questions N]

EVAL is the folder that ``retrieval.py`` wants. Only questions whose section is known are used. No model takes part: a
script does what agents do, and stops when the section's own text (its first 300 characters) is in a reply.

- **Anvil**: ``search_docs`` with the question as it is, then ``get_section`` of what it cut, in the order of the reply,
  then ``get_page`` of its pages. A real client over a pipe; default arguments, all characters of the replies count.
- **Anvil, Markdown**: the same with ``anvil serve --text markdown``.
- **grep, then ranges**: one ``grep -rin -C 1`` for the words of the question, of which the best lines are listed with a
  line before and after, cut to 200 characters: by the number of different words (better than grep, which does not
  sort). Then a range of lines around the best line, and so on. No line is read twice. Nobody reads whole files.
- **other servers**, of those that are installed in the folder ``--peers``: their search with the question, then their
  tool for a section or page, for the results in order. Without vectors:

      python -m venv /tmp/peers && /tmp/peers/bin/pip install jdocmunch-mcp 'markdown-vault-mcp[file-watcher]' \\
          papermoon-mkdocs-mcp

At most ten calls; what was read in vain counts. A strong agent with grep alone, which chooses its words with care,
needed 2.4 calls and read 7,600 characters (median of 25 questions): no script is as good, so this compares servers and
versions of one server, and not Anvil with an agent's grep.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from measuring import heading, table
from retrieval import bare
from server import Server

import anvil
from anvil.text.headings import attributes, plain
from anvil.text.query import STOP

MAX_CALLS = 10
GOLD_CHARS = 300
"""Characters of the section that an agent must have seen."""
MAX_LINES = 12
MAX_LINE_CHARS = 200
RANGE_LINES = 50
PLACE = re.compile(r"^(?P<file_path>[^\s#]*)#(?P<anchor>\S+) \(lines? \d+(?:-\d+)?(?P<cut> of)?", re.M)
"""A result in Markdown, or a further section of its page."""
INDEX_TIMEOUT_S = 120


@dataclass(frozen=True)
class Question:
    """A question, and the beginning of the section that answers it, without heading and white space."""

    corpus: str
    text: str
    gold: str


@dataclass
class Effort:
    """What an agent needed for each question."""

    calls: list[float] = field(default_factory=list)
    characters: list[float] = field(default_factory=list)

    def add(self, question: Question, replies: Iterator[str]) -> None:
        """Read replies until the section is seen."""
        characters = 0
        for number, reply in enumerate(replies, 1):
            characters += len(reply)
            if question.gold in squeezed(spoken(reply)):
                self.calls.append(number)
                self.characters.append(characters)
                return
            if number == MAX_CALLS:
                break
        self.calls.append(float("inf"))
        self.characters.append(characters)

    def row(self, name: str, yardstick: float) -> tuple[str, ...]:
        """A row of the table."""
        count, found = len(self.calls), sum(number < float("inf") for number in self.calls)
        mean = statistics.mean(self.characters)
        return (
            name,
            f"{found / count:.0%}",
            f"{sum(number == 1 for number in self.calls) / count:.0%}",
            f"{sum(number <= 2 for number in self.calls) / count:.0%}",
            f"{statistics.median(self.characters):,.0f}",
            f"{mean:,.0f}",
            f"{mean / yardstick:.2f}",
        )


class Agent(Protocol):
    """A way to read a corpus: the replies that it gets for a question, one a call."""

    def replies(self, question: str) -> Iterator[str]: ...
    def end(self) -> None: ...


def squeezed(text: str) -> str:
    """A text without the differences of white space."""
    return " ".join(text.split())


def spoken(reply: str) -> str:
    """The texts in a reply of JSON, or the reply itself."""
    try:
        value = json.loads(reply)
    except ValueError:
        return reply
    return "\n".join(texts(value))


def texts(value: Any) -> Iterator[str]:
    """The strings in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


# --- grep ----------------------------------------------------------------------------------------------------


@cache
def files(docs: Path) -> dict[str, list[str]]:
    """Path -> lines of each file."""
    paths = sorted([*docs.rglob("*.md"), *docs.rglob("*.mdx")])
    return {path.relative_to(docs).as_posix(): path.read_text(encoding="utf-8").splitlines() for path in paths}


def keywords(question: str) -> set[str]:
    """The words that an agent would search for."""
    return {word for word in re.findall(r"\w+", question.lower()) if word not in STOP}


@dataclass
class Grep:
    """An agent with grep and a tool that reads a range of lines."""

    docs: Path

    def replies(self, question: str) -> Iterator[str]:
        """The replies to its calls."""
        wanted, ranked = keywords(question), []
        for path, lines in files(self.docs).items():
            for number, line in enumerate(lines):
                held = wanted & set(re.findall(r"\w+", line.lower()))
                if held:
                    ranked.append((-len(held), path, number))
        ranked = sorted(ranked)[:MAX_LINES]
        yield "\n--\n".join(self._range(path, range(number - 1, number + 2)) for _, path, number in ranked)
        seen: set[tuple[str, int]] = set()
        for _, path, number in ranked:
            if (path, number) not in seen:
                start = max(0, number - RANGE_LINES // 4)  # what is below a match says more
                span = [line for line in range(start, start + RANGE_LINES) if (path, line) not in seen]
                seen.update((path, line) for line in span)
                lines = files(self.docs)[path]
                yield "\n".join(lines[line] for line in span if line < len(lines))

    def _range(self, path: str, numbers: range) -> str:
        lines = files(self.docs)[path]
        shown = (number for number in numbers if 0 <= number < len(lines))
        return "\n".join(f"{path}:{number + 1}:{lines[number][:MAX_LINE_CHARS]}" for number in shown)

    def end(self) -> None:
        """Nothing is running."""


# --- servers -------------------------------------------------------------------------------------------------


def reply(server: Server, tool: str, **arguments: Any) -> str:
    """The text of a tool's answer, as a client gives it to a model."""
    result = server.ask("tools/call", {"name": tool, "arguments": arguments})
    return "\n".join(part.get("text", "") for part in result["content"])


class AnvilAgent:
    """An agent with Anvil's server."""

    def __init__(self, docs: Path, index: Path, *options: str, **arguments: Any) -> None:
        self._arguments = arguments
        self._server = Server(docs.parent, "--docs", str(docs), "--index", str(index), *options)
        self._server.begin()

    def replies(self, question: str) -> Iterator[str]:
        """The replies to its calls."""
        found = reply(self._server, "search_docs", query=question, **self._arguments)
        yield found
        places = list(cut_places(found))
        for path, section in places:
            yield reply(self._server, "get_section", file_path=path, heading_path=section)
        for path in dict.fromkeys(path for path, _ in places):
            yield reply(self._server, "get_page", file_path=path)

    def end(self) -> None:
        """End the server."""
        self._server.end()


def cut_places(found: str) -> Iterator[tuple[str, str]]:
    """The pages and sections of a reply in JSON or Markdown whose text is not whole; further ones may be."""
    if not found.startswith("{"):
        path = ""
        for match in PLACE.finditer(found):
            is_further = not match["file_path"]
            path = match["file_path"] or path
            if match["cut"] or is_further:
                yield path, match["anchor"]
        return
    for hit in json.loads(found)["results"]:
        path = hit["metadata"]["file_path"]
        if hit.get("truncated"):
            yield path, hit["metadata"]["heading_path"]
        for place in hit.get("also", ()):
            yield path, place["heading_path"]


@dataclass(frozen=True)
class Peer:
    """Another server, as its documentation starts it. In words, ``{docs}`` is the corpus, ``{name}`` its name, and
    ``{work}`` the folder of the index."""

    serve: list[str]
    search: str
    query: Mapping[str, str]
    read: str
    reads: Callable[[Any], Iterator[dict[str, str]]]
    """The arguments of ``read`` for the results, in order."""
    before: list[str] = field(default_factory=list)
    settings: Mapping[str, str] = field(default_factory=dict)


def _vault_reads(found: Any) -> Iterator[dict[str, str]]:
    for page in found:
        for section in page.get("sections", []):
            if section.get("heading"):
                yield {"path": page["path"], "section": section["heading"]}
    for page in found:
        yield {"path": page["path"]}


PEERS = {
    "jdocmunch-mcp": Peer(
        ["jdocmunch-mcp"],
        "search_sections",
        {"repo": "local/{name}"},
        "get_section",
        lambda found: ({"repo": hit["repo"], "section_id": hit["id"]} for hit in found["results"]),
        before=["jdocmunch-mcp", "index-local", "--path", "{docs}"],
        settings={"DOC_INDEX_PATH": "{work}/store", "JDOCMUNCH_SHARE_SAVINGS": "0"},
    ),
    "markdown-vault-mcp": Peer(
        ["markdown-vault-mcp", "serve"],
        "search",
        {},
        "read",
        _vault_reads,
        settings={"MARKDOWN_VAULT_MCP_SOURCE_DIR": "{docs}", "MARKDOWN_VAULT_MCP_INDEX_PATH": "{work}/index.db"},
    ),
    "papermoon-mkdocs-mcp": Peer(
        ["papermoon-mkdocs-mcp", "--config", "{work}/mkdocs.yml"],
        "search",
        {"search_type": "keyword"},
        "read_document",
        lambda found: ({"path": hit["path"]} for hit in found["results"]),
    ),
}


class PeerAgent:
    """An agent with another server: its search, then its tool that reads a result."""

    def __init__(self, peer: Peer, programs: Path, docs: Path, work: Path) -> None:
        self._peer, self._marks = peer, {"{docs}": str(docs), "{name}": docs.name, "{work}": str(work)}
        (work / "mkdocs.yml").write_text(f"site_name: {docs.name}\ndocs_dir: {docs}\n")
        settings = {**{key: self._filled(value) for key, value in peer.settings.items()}, "HOME": str(work)}
        if peer.before:
            line = [str(programs / peer.before[0]), *map(self._filled, peer.before[1:])]
            subprocess.run(line, env={**os.environ, **settings}, cwd=work, check=True, capture_output=True)
        command = [str(programs / peer.serve[0]), *map(self._filled, peer.serve[1:])]
        self._server = Server(work, command=command, settings=settings)
        self._server.begin()
        self._await_index()

    def _filled(self, text: str) -> str:
        for mark, value in self._marks.items():
            text = text.replace(mark, value)
        return text

    def _await_index(self) -> None:
        end = time.monotonic() + INDEX_TIMEOUT_S
        while not self._found("configuration"):
            if time.monotonic() > end:
                sys.exit(f"{self._peer.serve[0]} finds nothing in {self._marks['{name}']}.")
            time.sleep(0.5)
        time.sleep(2)

    def _found(self, query: str) -> str:
        options = {key: self._filled(value) for key, value in self._peer.query.items()}
        return reply(self._server, self._peer.search, query=query, **options)

    def replies(self, question: str) -> Iterator[str]:
        """The replies to its calls. A search that finds nothing is repeated with any of the words."""
        found = self._found(question)
        yield found
        if not found:
            found = self._found(" OR ".join(sorted(keywords(question))))
            yield found
        for arguments in self._peer.reads(json.loads(found or "[]")):
            yield reply(self._server, self._peer.read, **arguments)

    def end(self) -> None:
        """End the server."""
        self._server.process.kill()
        self._server.process.wait()


# --- questions -----------------------------------------------------------------------------------------------


def questions(evaluation: Path, work: Path) -> Iterator[Question]:
    """The questions whose section is known and has text of its own, by corpus. The indexes are built for it."""
    rows = [
        json.loads(line)
        for file in sorted(evaluation.glob("*.jsonl"))
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    for corpus in sorted({row["corpus"] for row in rows}):
        with anvil.open(evaluation / "corpora" / corpus, work / f"{corpus}.db") as opened:
            print(corpus, opened.index().outcome, file=sys.stderr)
            for row in rows:
                known = row["corpus"] == corpus and (row["heading"] is not None or row.get("anchor") is not None)
                if known and (gold := own_text(opened, row["paths"][0], row["heading"], row.get("anchor"))):
                    yield Question(corpus, row["query"], gold)


def own_text(opened: anvil.Anvil, path: str, title: str | None, anchor: str | None) -> str:
    """The beginning of a section, without its heading."""
    wanted = None if title is None else bare(plain(attributes(str(title))[0]))
    outline = opened.outline(path)
    text = "".join(chunk.content for chunk in outline.page.chunks)
    for section in outline.sections:
        name = bare(section.heading_path.split(" > ")[-1])
        if name == wanted if wanted is not None else section.anchor == anchor:
            own = text[section.start : section.end].lstrip().partition("\n")[2]
            return squeezed(own)[:GOLD_CHARS].strip()
    return ""


def main() -> None:
    """Ask, count, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("eval", type=Path)
    parser.add_argument("--work", type=Path, help="where the indexes are kept; by default a temporary folder")
    parser.add_argument("--peers", type=Path, help="folder of the programs of other servers")
    parser.add_argument("--questions", type=int, default=1000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = given.work or Path(temporary)
        asked = list(questions(given.eval, work))[: given.questions]
        efforts: dict[str, Effort] = {}
        for corpus in dict.fromkeys(question.corpus for question in asked):
            docs = given.eval / "corpora" / corpus
            agents: dict[str, Agent] = {
                "grep, then ranges": Grep(docs),
                "Anvil": AnvilAgent(docs, work / f"{corpus}.db"),
                "Anvil, Markdown": AnvilAgent(docs, work / f"{corpus}.db", "--text", "markdown"),
                "Anvil, keyword search": AnvilAgent(docs, work / f"{corpus}.db", mode="keyword"),
            }
            for name, peer in PEERS.items() if given.peers else ():
                if (given.peers / peer.serve[0]).exists():
                    (folder := Path(temporary, name, corpus)).mkdir(parents=True)
                    agents[name] = PeerAgent(peer, given.peers, docs, folder)
            for name, agent in agents.items():
                print(corpus, name, file=sys.stderr)
                for question in asked:
                    if question.corpus == corpus:
                        efforts.setdefault(name, Effort()).add(question, agent.replies(question.text))
                agent.end()
        print(heading())
        print(f"{len(asked)} questions\n")
        yardstick = statistics.mean(efforts["Anvil"].characters)
        columns = ("tools", "found", "in one call", "in two", "characters, median", "mean", "x Anvil")
        print(table(columns, [effort.row(name, yardstick) for name, effort in efforts.items()]))


if __name__ == "__main__":
    main()
