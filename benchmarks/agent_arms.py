"""Whether an agent finds the page that answers, with how many calls, and how much it reads: a protocol for real agents.

    python benchmarks/agent_arms.py prepare EVAL WORK [--questions 60]
    python benchmarks/agent_arms.py tool WORK ARM RUN NUMBER TOOL ...      (the agent types these)
    python benchmarks/agent_arms.py score WORK

EVAL is a folder as ``retrieval.py`` wants it, best of projects that nothing was tuned on; ``scripts/held_out_eval.py``
writes one. ``prepare`` draws questions, the same number of each corpus, and writes ``WORK/questions.txt``, which the
agent gets, and ``WORK/gold.jsonl``, which it does not. An agent answers the questions one by one, each from nothing. It
has the tools of its arm, and no other access to the documentation:

- ``files``: ``list [FOLDER]``, ``grep PATTERN [FOLDER]`` (a regular expression, without case; matching lines) and
  ``read FILE [FIRST LAST]`` (lines).
- ``pointer``: the same, and ``pointer``, what ``anvil agents`` writes into an ``AGENTS.md``.
- ``anvil``: ``search QUESTION``, ``section PAGE HEADING``, ``page PAGE`` and ``grep PATTERN``: the tools of the server
  over stdio.
- ``markdown``: the same from a server with ``--text markdown``.

``answer PAGE`` ends a question. Each call is logged with the characters of its reply, cut at 20,000 as agents' programs
do. The score: questions whose page is right, questions with one call, calls, and characters read. RUN names a run: two
of each arm tell how far an agent agrees with itself.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from measuring import anvil as anvil_command
from measuring import heading, run, table
from server import Server

import anvil

ARMS = {
    "files": ("list", "grep", "read", "answer"),
    "pointer": ("pointer", "list", "grep", "read", "answer"),
    "anvil": ("search", "section", "page", "grep", "answer"),
    "markdown": ("search", "section", "page", "grep", "answer"),
}
MAX_REPLY_CHARS = 20_000
MAX_MATCHES = 200
SEED = 7


def main() -> None:
    """Run one of the three commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    first = commands.add_parser("prepare")
    first.add_argument("eval", type=Path)
    first.add_argument("work", type=Path)
    first.add_argument("--questions", type=int, default=60)
    second = commands.add_parser("tool")
    second.add_argument("work", type=Path)
    second.add_argument("arm", choices=ARMS)
    second.add_argument("run")
    second.add_argument("number", type=int)
    second.add_argument("tool")
    second.add_argument("arguments", nargs="*")
    third = commands.add_parser("score")
    third.add_argument("work", type=Path)
    given = parser.parse_args()
    if given.command == "prepare":
        prepare(given.eval, given.work, given.questions)
    elif given.command == "tool":
        print(use(given.work, given.arm, given.run, given.number, given.tool, given.arguments))
    else:
        score(given.work)


def prepare(source: Path, work: Path, count: int) -> None:
    """Draw questions, and build an index of each corpus."""
    by_corpus: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for file in sorted(source.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row.get("kind") != "commit":  # the subject of a commit is no question
                by_corpus[row["corpus"]].append(row)
    work.mkdir(parents=True, exist_ok=True)
    chance, chosen = random.Random(SEED), []
    for place, (corpus, rows) in enumerate(sorted(by_corpus.items())):
        share = count // len(by_corpus) + (place < count % len(by_corpus))
        chosen += chance.sample(rows, min(share, len(rows)))
        with anvil.open(source / "corpora" / corpus, work / f"{corpus}.db") as opened:
            opened.index()
    shown = [f"{number}\t{row['corpus']}\t{row['query']}\n" for number, row in enumerate(chosen, 1)]
    (work / "questions.txt").write_text("".join(shown), encoding="utf-8")
    gold = [json.dumps({**row, "docs": str((source / "corpora" / row["corpus"]).resolve())}) + "\n" for row in chosen]
    (work / "gold.jsonl").write_text("".join(gold), encoding="utf-8")
    print(f"{len(chosen)} questions over {len(by_corpus)} projects: {work / 'questions.txt'}")


def use(work: Path, arm: str, name: str, number: int, tool: str, arguments: list[str]) -> str:
    """The reply of a tool, which is logged."""
    if tool not in ARMS[arm]:
        sys.exit(f"The arm {arm} has the tools {', '.join(ARMS[arm])}.")
    question = questions(work)[number - 1]
    if tool == "answer":
        reply = "Noted."
    elif arm in ("anvil", "markdown"):
        flags = ("--text", "markdown") if arm == "markdown" else ()
        reply = asked(work / f"{question['corpus']}.db", Path(question["docs"]), tool, arguments, flags)
    else:
        reply = looked_up(Path(question["docs"]), tool, arguments)
    reply = reply[:MAX_REPLY_CHARS]
    entry = {"arm": arm, "run": name, "number": number, "tool": tool, "given": arguments, "characters": len(reply)}
    with (work / "log.jsonl").open("a", encoding="utf-8") as log:
        log.write(json.dumps(entry) + "\n")
    return reply


def questions(work: Path) -> list[dict[str, Any]]:
    """The questions with their pages."""
    return [json.loads(line) for line in (work / "gold.jsonl").read_text(encoding="utf-8").splitlines()]


def asked(index: Path, docs: Path, tool: str, arguments: list[str], flags: Sequence[str]) -> str:
    """The text that a tool of the server replies with."""
    names = {"search": "search_docs", "section": "get_section", "page": "get_page", "grep": "grep_docs"}
    keys = {
        "search": ("query",),
        "section": ("file_path", "heading_path"),
        "page": ("file_path",),
        "grep": ("pattern",),
    }
    server = Server(docs, "--docs", str(docs), "--index", str(index), *flags)
    try:
        server.begin()
        call = {"name": names[tool], "arguments": dict(zip(keys[tool], arguments, strict=False))}
        result = server.ask("tools/call", call)
    finally:
        server.end()
    return "\n".join(part.get("text", "") for part in result["content"])


def looked_up(docs: Path, tool: str, arguments: list[str]) -> str:
    """What a shell would print."""
    inside = (docs / arguments[0] if tool != "grep" and arguments else docs).resolve()
    if not inside.is_relative_to(docs.resolve()):
        return "There is no such file."
    if tool == "pointer":
        return run(anvil_command("agents", "--print", "--docs", str(docs)), folder=docs.parent).output
    if tool == "list":
        found = sorted(path.relative_to(docs.resolve()).as_posix() for path in inside.rglob("*") if path.is_file())
        return "\n".join(found)
    if tool == "grep":
        return grep(docs, arguments)
    if not inside.is_file():
        return "There is no such file."
    lines = inside.read_text(encoding="utf-8").splitlines()
    first, last = (int(arguments[1]), int(arguments[2])) if len(arguments) > 2 else (1, len(lines))
    return "\n".join(f"{number}\t{lines[number - 1]}" for number in range(max(first, 1), min(last, len(lines)) + 1))


def grep(docs: Path, arguments: list[str]) -> str:
    """The matching lines, with path and number."""
    try:
        pattern = re.compile(arguments[0], re.I)
    except (re.error, IndexError) as error:
        return f"This is no pattern: {error}"
    folder = docs / arguments[1] if len(arguments) > 1 else docs
    found = []
    for path in [folder] if folder.is_file() else sorted(folder.rglob("*.m*d*")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if pattern.search(line):
                found.append(f"{path.relative_to(docs).as_posix()}:{number}:{line[:300]}")
    more = f"\n... {len(found) - MAX_MATCHES} more lines" if len(found) > MAX_MATCHES else ""
    return "\n".join(found[:MAX_MATCHES]) + more


def score(work: Path) -> None:
    """Print a row for each arm and run."""
    gold = questions(work)
    calls: dict[tuple[str, str, int], list[dict[str, Any]]] = defaultdict(list)
    for line in (work / "log.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        calls[entry["arm"], entry["run"], entry["number"]].append(entry)
    rows = []
    for arm, name in sorted({key[:2] for key in calls}):
        own = {number: entries for (a, r, number), entries in calls.items() if (a, r) == (arm, name)}
        answered = {number: entries for number, entries in own.items() if entries[-1]["tool"] == "answer"}
        if not answered:
            continue
        right = sum(is_right(entries[-1]["given"], gold[number - 1]) for number, entries in answered.items())
        used = [[entry for entry in entries if entry["tool"] != "answer"] for entries in answered.values()]
        read = [sum(entry["characters"] for entry in entries) for entries in used]
        rows.append(
            (
                arm,
                name,
                str(len(answered)),
                f"{right / len(answered):.0%}",
                f"{sum(len(entries) == 1 for entries in used) / len(answered):.0%}",
                f"{statistics.mean(map(len, used)):.2f}",
                f"{statistics.mean(read):,.0f}",
                f"{statistics.median(read):,.0f}",
            )
        )
    print(heading())
    print(table(("arm", "run", "questions", "right page", "one call", "calls", "characters, mean", "median"), rows))


def is_right(given: list[str], question: dict[str, Any]) -> bool:
    """Whether the first page that was given is one of those that answer."""
    return bool(given) and given[0].strip().lstrip("./") in question["paths"]


if __name__ == "__main__":
    main()
