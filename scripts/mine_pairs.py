"""Find pairs of a query and a passage in public documentation: questions to train on, and to judge a ranking by.

``held_out_eval.py`` and ``train_models.py`` read them. CLONES has a git folder ``<owner>+<name>/repo`` for each
project of ``model_projects.toml``, which gives the commit, the documentation folders and the licence. The kinds:

- ``commit``: the subject of a commit, and the section that got most of the lines that it added;
- ``task``, ``problem``, ``other words``: questions of ``model_questions.tsv``, and the section each was written for. A
  language model wrote them: a task as an issue's title says it, a problem, a question in words that the section does
  not use.

The same commits give the same pairs.
"""

from __future__ import annotations

import csv
import hashlib
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
from anvil.text import chunker, markdown_sections, visible_text  # noqa: E402
from anvil.text.headings import window_header  # noqa: E402

PROJECTS = ROOT / "scripts" / "model_projects.toml"
QUESTIONS = ROOT / "scripts" / "model_questions.tsv"
STYLES = ("task", "problem", "other words")
ENDINGS = (".md", ".mdx", ".markdown")
MAX_PAGES = 700
"""Of a larger project a sample of this many pages is read."""
MAX_COMMITS = 6000
MIN_BODY_CHARS = 120
MAX_QUERY_WORDS = 40
MAX_CHANGED_FILES = 4
"""A commit that changes more pages is about none of them."""
MIN_ADDED_CHARS = 25
"""A shorter line is not evidence of where a commit's text is."""

_ROUTINE = re.compile(
    r"\b(typos?|bump|release|changelog|merge|revert|lint|prettier|format(ting)?|broken|dead|links?|renovate|deps|dependenc|"
    r"translat|grammar|spelling|wording|version \d|v\d+\.\d|\d+\.\d+\.\d+|readme|sync|regenerate|backport|cherry|blog|"
    r"author|sponsor|redirect|sidebar|chore|ci|website|minor|misc|cleanup|clean up|update docs?$)",
    re.I,
)
_PREFIX = re.compile(r"^(\[[^\]]*\]|\(?[a-z]+(\([^)]*\))?!?:|[a-z/_.-]+:)\s*", re.I)


class Pair(NamedTuple):
    """A query, and the page and headings (as Anvil embeds them) of the section that answers it."""

    project: str
    kind: str
    page: str
    query: str
    header: str


class Passage(NamedTuple):
    """A chunk: its page, title, headings, source, and text that readers see."""

    page: str
    title: str
    heading_path: str
    source: str
    text: str


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
    yield from commit_pairs(name, repository, project, passages)
    yield from question_pairs(name)


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
        page = visible_text.cleaned(markdown_sections.parse(text.replace("\r\n", "\n")))
    except AnvilError:
        return
    title = page.title or posixpath.basename(path).rsplit(".", 1)[0].replace("-", " ")
    for chunk in chunker.chunks(page, ChunkingOptions()):
        shown = readable(visible_text.shown(chunk.content))
        if len(shown) >= MIN_BODY_CHARS:
            crumbs = re.sub(r" \[part \d+/\d+\]$", "", chunk.heading_path)
            yield Passage(path, title, crumbs, chunk.content, shown)


def readable(text: str) -> str:
    """Text of a passage without the first heading, which is in its header."""
    return re.sub(r"\A\s*#{1,6} [^\n]*\n+", "", text).strip()


def inline(markdown: str) -> str:
    """One line of plain text."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", markdown)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"<[^>]*>|\{[{%<][^}]*\}\}?|\*\*|__", " ", text)
    return " ".join(text.split())


def header(passage: Passage) -> str:
    """Title and headings as Anvil embeds them."""
    return window_header(passage.title, passage.heading_path)


def pair(name: str, kind: str, query: str, page: str, headings: str) -> Pair:
    """A pair with a bounded query."""
    words = inline(query).split()[:MAX_QUERY_WORDS]
    return Pair(name, kind, page, " ".join(words), headings)


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
            yield pair(name, "commit", query, passages[number].page, header(passages[number]))


def question_pairs(name: str) -> Iterator[Pair]:
    """The written questions of a project."""
    with QUESTIONS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if row["project"] == name:
                for style in filter(row.get, STYLES):
                    yield pair(name, style, row[style], row["page"], row["headings"])
