"""Find pairs of a query and a passage in public documentation, to fine-tune the embedding model on.

    python scripts/mine_pairs.py CLONES OUT.jsonl [--split train]

CLONES has a git folder ``<owner>+<name>/repo`` for each project of ``model_projects.toml``, which gives the commit, the
documentation folders and the licence. Pairs of these kinds, the first four from what a documentation says about itself:

- ``heading``: the heading of a section, and the section's text under the headings above it;
- ``link``: the sentence around a link inside the documentation, or the link's text, and the section it leads to;
- ``sentence``: a sentence of a section, and the section without its paragraph;
- ``commit``: the subject of a commit, and the section that got most of the lines that it added;
- ``task``, ``problem``, ``other words``: questions of ``model_questions.tsv``, and the passage each was written for. A
  language model wrote them for 3,848 passages: a task as an issue's title says it, a problem, a question in words that
  the passage does not use.

A passage is a chunk as Anvil embeds it: title and headings, then text. The same commits give the same pairs.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import posixpath
import random
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from anvil.errors import AnvilError  # noqa: E402
from anvil.settings.schema import ChunkingOptions  # noqa: E402
from anvil.text import chunker, markdown_parser, visible_text, windows  # noqa: E402  # noqa: E402

PROJECTS = ROOT / "scripts" / "model_projects.toml"
QUESTIONS = ROOT / "scripts" / "model_questions.tsv"
STYLES = ("task", "problem", "other words")
ENDINGS = (".md", ".mdx", ".markdown")
MAX_PAGES = 700
"""Of a larger project a sample of this many pages is read."""
MAX_COMMITS = 6000
MIN_BODY_CHARS = 120
MAX_PASSAGE_CHARS = 1200
MAX_QUERY_WORDS = 40
MAX_CHANGED_FILES = 4
"""A commit that changes more pages is about none of them."""
MIN_ADDED_CHARS = 25
"""A shorter line is not evidence of where a commit's text is."""

_LINK = re.compile(r"(?<!!)\[([^\[\]]{3,100})\]\(([^)\s]+)\)")
_SENTENCE = re.compile(r"(?<=[.!?:])\s+")
_ROUTINE = re.compile(
    r"\b(typos?|bump|release|changelog|merge|revert|lint|prettier|format(ting)?|broken|dead|links?|renovate|deps|dependenc|"
    r"translat|grammar|spelling|wording|version \d|v\d+\.\d|\d+\.\d+\.\d+|readme|sync|regenerate|backport|cherry|blog|"
    r"author|sponsor|redirect|sidebar|chore|ci|website|minor|misc|cleanup|clean up|update docs?$)",
    re.I,
)
_PREFIX = re.compile(r"^(\[[^\]]*\]|\(?[a-z]+(\([^)]*\))?!?:|[a-z/_.-]+:)\s*", re.I)


class Pair(NamedTuple):
    """A query and the passage that answers it: ``header`` and ``body`` are embedded with a line break between."""

    project: str
    kind: str
    page: str
    query: str
    header: str
    body: str


class Passage(NamedTuple):
    """A chunk: its page, title, headings, anchor of its first section, and text that readers see."""

    page: str
    title: str
    heading_path: str
    anchor: str
    source: str
    text: str


def main() -> None:
    """Mine each project, print a row for it, write the pairs."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("clones", type=Path)
    arguments.add_argument("out", type=Path)
    arguments.add_argument("--split", default="train", help="train, held-out or other")
    given = arguments.parse_args()
    seen: set[str] = set()
    with given.out.open("w", encoding="utf-8", newline="\n") as out:
        for project in projects(given.split):
            pairs = list(mine(given.clones, project, seen))
            kinds = Counter(pair.kind for pair in pairs)
            print(project["name"], len(pairs), dict(sorted(kinds.items())), flush=True)
            out.writelines(json.dumps(pair._asdict(), ensure_ascii=False) + "\n" for pair in pairs)


def projects(split: str) -> list[dict[str, object]]:
    """The projects of ``train``, ``held-out`` or ``other``."""
    listed = tomllib.loads(PROJECTS.read_text(encoding="utf-8"))["project"]
    return [project for project in listed if project["split"] == split]


def mine(clones: Path, project: dict[str, object], seen: set[str]) -> Iterator[Pair]:
    """The pairs of one project. ``seen``: digests of passages of earlier ones, which are left out."""
    name = str(project["name"])
    chance = random.Random(name)
    repository = repository_of(clones, project)
    paths = pages(repository, project)
    if len(paths) > MAX_PAGES:
        paths = sorted(chance.sample(paths, MAX_PAGES))
    passages: list[Passage] = []
    for path in paths:
        for passage in read_page(path, git(repository, "show", f"{project['commit']}:{path}")):
            digest = hashlib.sha256(passage.text[:300].encode()).hexdigest()
            if digest not in seen:
                seen.add(digest)
                passages.append(passage)
    by_page: dict[str, list[Passage]] = defaultdict(list)
    for passage in passages:
        by_page[passage.page].append(passage)
    for passage in passages:
        yield from heading_pairs(name, passage, chance)
        yield from sentence_pairs(name, passage, chance)
        yield from link_pairs(name, passage, by_page, chance)
    yield from commit_pairs(name, repository, project, passages)
    yield from question_pairs(name, passages)


def repository_of(clones: Path, project: dict[str, object]) -> Path:
    """The git folder of a project."""
    return clones / str(project["name"]).replace("/", "+") / "repo"


def folders(project: dict[str, object]) -> list[str]:
    """The documentation folders of a project."""
    return [str(folder) for folder in project["folders"]]  # type: ignore[attr-defined]


def pages(repository: Path, project: dict[str, object]) -> list[str]:
    """Paths of the pages of a project at its commit."""
    leave_out = re.compile(str(project.get("except", "$^")))
    listed = git(repository, "ls-tree", "-r", "--name-only", str(project["commit"]), "--", *folders(project))
    return [path for path in listed.splitlines() if path.endswith(ENDINGS) and not leave_out.search(path)]


def git(repository: Path, *command: str) -> str:
    """What git prints, with bytes that are not UTF-8 replaced."""
    done = subprocess.run(["git", f"--git-dir={repository}", *command], capture_output=True, check=True)
    return done.stdout.decode("utf-8", "replace")


def read_page(path: str, text: str) -> Iterator[Passage]:
    """The chunks of a page that have enough text, without imports and exports of MDX."""
    text = re.sub(r"^(import|export) .*$", "", text, flags=re.MULTILINE) if path.endswith(".mdx") else text
    try:
        page = visible_text.cleaned(markdown_parser.parse(text.replace("\r\n", "\n")))
    except AnvilError:
        return
    anchors = {section.heading_path: section.anchor for section in page.sections}
    title = page.title or posixpath.basename(path).rsplit(".", 1)[0].replace("-", " ")
    for chunk in chunker.chunks(page, ChunkingOptions()):
        shown = readable(visible_text.shown(chunk.content))
        if len(shown) >= MIN_BODY_CHARS:
            crumbs = re.sub(r" \[part \d+/\d+\]$", "", chunk.heading_path)
            yield Passage(path, title, crumbs, anchors.get(crumbs, ""), chunk.content, shown)


def readable(text: str) -> str:
    """Text of a passage without the first heading, which is in its header."""
    return re.sub(r"\A\s*#{1,6} [^\n]*\n+", "", text).strip()


def inline(markdown: str) -> str:
    """One line of plain text."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", markdown)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"<[^>]*>|\{[{%<][^}]*\}\}?|\*\*|__", " ", text)
    return " ".join(text.split())


def header(passage: Passage, without_last: bool) -> str:
    """Title and headings as Anvil embeds them. ``without_last``: without the heading of the section itself."""
    names = [] if passage.heading_path == "(root)" else passage.heading_path.split(" > ")
    if without_last and names and not (len(names) == 1 and names[0] == passage.title):
        names = names[:-1]
    return windows.window_header(passage.title, " > ".join(names) or "(root)")


def pair(name: str, kind: str, query: str, passage: Passage, without_last: bool, text: str | None = None) -> Pair:
    """A pair with bounded query and passage."""
    body = passage.text if text is None else text
    words = inline(query).split()[:MAX_QUERY_WORDS]
    return Pair(name, kind, passage.page, " ".join(words), header(passage, without_last), body[:MAX_PASSAGE_CHARS])


def heading_pairs(name: str, passage: Passage, chance: random.Random) -> Iterator[Pair]:
    """The section's heading, alone or with the page's title."""
    last = passage.heading_path.split(" > ")[-1] if passage.heading_path != "(root)" else passage.title
    heading = re.sub(r" \[\d+\]$", "", inline(last))
    if len(heading) < 4 or (len(heading.split()) < 2 and heading == passage.title):
        return
    query = heading
    if heading.casefold() not in passage.title.casefold() and (chance.random() < 0.4 or len(heading.split()) < 2):
        query = chance.choice(
            (f"{passage.title}: {heading}", f"{heading} {passage.title}", f"{heading} in {passage.title}")
        )
    yield pair(name, "heading", query, passage, chance.random() < 0.8)


def sentence_pairs(name: str, passage: Passage, chance: random.Random) -> Iterator[Pair]:
    """A sentence of a paragraph, and the passage without that paragraph."""
    paragraphs = [
        each
        for each in re.split(r"\n\s*\n", passage.text)
        if each.strip() and not each.lstrip().startswith(("```", "|", ":::", "<", "-", "*", "import", "!", "{", "#"))
    ]
    if len(paragraphs) < 2 or chance.random() < 0.6:
        return
    paragraph = chance.choice(paragraphs)
    sentences = [each for each in _SENTENCE.split(inline(paragraph)) if 6 <= len(each.split()) <= 35]
    rest = passage.text.replace(paragraph, "").strip()
    if sentences and len(rest) >= MIN_BODY_CHARS:
        yield pair(name, "sentence", chance.choice(sentences), passage, chance.random() < 0.5, rest)


def link_pairs(name: str, passage: Passage, by_page: dict[str, list[Passage]], chance: random.Random) -> Iterator[Pair]:
    """For each link to another section: its text or its sentence, and the section."""
    for link in _LINK.finditer(passage.text):
        target = linked(passage.page, link[2], by_page)
        if target is None or target.text == passage.text:
            continue
        begin = passage.text.rfind("\n", 0, link.start()) + 1
        end = passage.text.find("\n", link.end())
        line = inline(passage.text[begin : end if end >= 0 else None])
        label = inline(link[1])
        around = next((each for each in _SENTENCE.split(line) if label in each), line)
        query = label if len(label.split()) >= 3 and chance.random() < 0.35 else around
        if len(query.split()) >= 3:
            yield pair(name, "link", query.lstrip("-*>#| 0123456789."), target, chance.random() < 0.3)


def linked(page: str, address: str, by_page: dict[str, list[Passage]]) -> Passage | None:
    """The passage a link leads to; None outside the documentation, or where several pages could be meant."""
    if re.match(r"[a-z][a-z0-9+.-]*:|//", address, re.I):
        return None
    path, _, anchor = address.partition("#")
    target = page
    if path:
        wanted = bare(path)
        beside = bare(posixpath.normpath(posixpath.join(posixpath.dirname(page), path.lstrip("/"))))
        exact = [other for other in by_page if bare(other) == beside]
        ends = [other for other in by_page if f"/{bare(other)}".endswith(f"/{wanted}")] if wanted else []
        found = exact or ends
        if len(found) != 1:
            return None
        target = found[0]
    passages = by_page[target]
    if not anchor:
        return passages[0] if path and passages else None
    return next((each for each in passages if each.anchor == anchor), None)


def bare(path: str) -> str:
    """A page's path as links spell it: without ending, order numbers, index and leading dots."""
    path = re.sub(r"\.(md|mdx|markdown|html)$", "", path.strip("/"))
    path = re.sub(r"(^|/)\d+[.-]", r"\1", path)
    path = re.sub(r"(^|/)(index|_index|README)$", "", path)
    return re.sub(r"^(\.\.?/)+", "", path)


def commit_pairs(name: str, repository: Path, project: dict[str, object], passages: list[Passage]) -> Iterator[Pair]:
    """The subject of each commit that changed few pages, and the passage with most of its added lines."""
    places: dict[str, list[int]] = defaultdict(list)
    for number, passage in enumerate(passages):
        for line in passage.source.splitlines():
            if len(line.strip()) >= MIN_ADDED_CHARS:
                places[line.strip()].append(number)
    options = ["-p", "-U0", "--no-merges", "--no-color", "--no-ext-diff", "--no-renames", f"-n{MAX_COMMITS}"]
    changed = [f":(glob){folder}/**/*{ending}" for folder in folders(project) for ending in ENDINGS]
    log = git(repository, "log", *options, "--format=%x01%s", str(project["commit"]), "--", *changed)
    used: set[str] = set()
    for entry in log.split("\x01")[1:]:
        subject, _, patch = entry.partition("\n")
        query = re.sub(r"\s*\(?#\d+\)?", "", subject)
        while _PREFIX.match(query):
            query = _PREFIX.sub("", query, count=1)
        if not 4 <= len(query.split()) <= 20 or _ROUTINE.search(subject) or query in used:
            continue
        if patch.count("\ndiff --git") + patch.startswith("diff --git") > MAX_CHANGED_FILES:
            continue
        votes: Counter[int] = Counter()
        for line in patch.splitlines():
            if line.startswith("+") and not line.startswith("+++"):
                for number in places.get(line[1:].strip(), ())[:3]:
                    votes[number] += len(line)
        if votes:
            used.add(query)
            number = min(votes, key=lambda each: (-votes[each], each))
            yield pair(name, "commit", query, passages[number], False)


def question_pairs(name: str, passages: list[Passage]) -> Iterator[Pair]:
    """The written questions of a project, each with its passage: page, headings, and which part under these."""
    places: dict[tuple[str, str], list[Passage]] = defaultdict(list)
    for passage in passages:
        places[passage.page, header(passage, False)].append(passage)
    with QUESTIONS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if row["project"] == name:
                passage = places[row["page"], row["headings"]][int(row["part"]) - 1]
                for style in filter(row.get, STYLES):
                    yield pair(name, style, row[style], passage, False)


if __name__ == "__main__":
    main()
