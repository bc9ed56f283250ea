"""Each kind of evidence that a change concerns a section of the indexed pages: names, texts, paths, links, history."""

from __future__ import annotations

import bisect
import math
import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from anvil.impact import names as naming
from anvil.impact.co_change import History
from anvil.impact.names import How, Name, Named
from anvil.index_file.reader import Reader
from anvil.index_file.table_rows import StoredChunk, is_parallel
from anvil.results import Hit
from anvil.text import query as lexicon
from anvil.values import Section
from anvil.wording import shown

MAX_HOLDERS = 400
"""Passages with a phrase that are read. A phrase that more have says nothing."""


Feature = str
"""What is weighed of a page, a key of :data:`anvil.impact.ranking.WEIGHTS`: each kind of evidence has one or several.
The functions below say what each one is."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One reason why a change concerns a section, or a page as a whole.

    ``path``: the page, as in the index. ``heading_path``: the breadcrumb of the section; None for the page as a whole.
    ``strength``: 0 to 1. ``reason``: a clause for people, such as ``names `--max-size```. ``line``: where the page says
    it, 1-based, if that is known. ``subject``: what the evidence is about; of several about the same in a section, the
    strongest counts.
    """

    feature: Feature
    path: str
    heading_path: str | None
    strength: float
    reason: str
    line: int | None = None
    subject: str = ""


class SectionLine(NamedTuple):
    """A place in the pages: the breadcrumb of its section, and its 1-based source line, if that is known."""

    heading_path: str
    line: int | None


class IndexedPages:
    """The pages of an index file, or of a copy in memory. ``passages``: their number. ``titles``: path -> title."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.passages = reader.counts()["chunks"]
        self._documents = {document.file_path: document for document in reader.documents()}
        self.titles = {path: document.title for path, document in self._documents.items()}
        self._passages: dict[int, StoredChunk] = {}
        self._sections: dict[int, tuple[Section, ...]] = {}
        self._starts: dict[int, list[int]] = {}

    def holding(self, phrases: Sequence[str]) -> list[StoredChunk] | None:
        """The passages with any of these phrases, by words and their stems; None for more than :data:`MAX_HOLDERS`."""
        expression = lexicon.any_of(phrase for phrase in phrases if phrase)
        if not expression:
            return []
        rows = self._reader.holding(expression, MAX_HOLDERS + 1)
        if len(rows) > MAX_HOLDERS:
            return None
        new = [row for row in rows if row not in self._passages]
        self._passages |= self._reader.chunks(new) if new else {}
        return [self._passages[row] for row in sorted(rows)]

    def spot(self, passage: StoredChunk, offset: int) -> SectionLine:
        """The section and line at a character of a passage."""
        sections, place = self._of(passage.document_id), passage.metadata
        starts = self._starts[passage.document_id]
        section = sections[max(0, bisect.bisect_right(starts, passage.start + offset) - 1)] if sections else None
        line = place.start_line
        if line is not None and is_parallel(passage.content, line, place.end_line):
            line += passage.content.count("\n", 0, offset)
        elif section is not None:
            line = section.start_line
        return SectionLine(section.heading_path if section is not None else place.heading_path, line)

    def sections(self, path: str) -> Sequence[Section]:
        """The sections of a page, in order; none of an unknown page."""
        document = self._documents.get(path)
        return self._of(document.id) if document is not None else ()

    def hidden(self) -> list[tuple[str, str]]:
        """(path, what readers do not see, such as the targets of links) of each page that has such text."""
        paths = {document.id: path for path, document in self._documents.items()}
        return [(paths[page.id], page.hidden) for page in self._reader.page_texts() if page.hidden.strip()]

    def _of(self, document: int) -> tuple[Section, ...]:
        if document not in self._sections:
            self._sections[document] = self._reader.sections(document)
            self._starts[document] = [section.start for section in self._sections[document]]
        return self._sections[document]


# How much a way of naming says, 0 to 1. Guesses; ``benchmarks/impact.py`` measures them.
AS_WRITTEN, RESPELLED, BY_WORDS, PLAIN_WORD = 1.0, 0.8, 0.35, 0.12
"""A name as the code writes it; with other separators or case (``max_size`` for ``--max-size``); as words of a
sentence; a single common word that is not marked as code."""
IN_HEADING = 1.4
"""A section whose heading has the name is about it."""
TEXT_STRENGTH = {"removed": 1.0, "touched": 0.5, "added": 0.6}
"""How much a message that a page quotes says, by how it changed."""
FULL_PATH, TWO_PARTS, BASENAME, MODULE = 1.0, 0.8, 0.35, 0.7
"""How much a page says of a file that it names: by its whole path; by its name and folder; by its name; as a module."""
MAX_MATCHES = 20
"""Places of a name in one passage that are looked at."""
MAX_LINKED_FILES = 60
"""Changed files that are looked up in the pages."""
MAX_SPOTS_OF_NAME = 60
"""Sections with a name that are evidence; more have it: see :func:`rarity`."""
MAX_TEXT_WORDS = 12
"""Words of a message that are looked for: a page may quote its beginning alone."""
FULL_TEXT_WORDS = 6
"""Words from which on a message counts whole; a shorter one may be in a page by chance."""
MAX_PROSE_SEARCHES = 5
"""Sentences of a change that are searched."""
RANK_STEP = 0.15
"""How much less each further result of a search says."""
MAX_QUOTED_CHARS = 60
"""Characters of a text of the change that a reason quotes."""

_BESIDE_CODE, _BEHIND_CODE = frozenset("`'\"./-_<[(:=$@#"), frozenset("`('\"=:")


def collect(
    named: Named,
    code: Sequence[str],
    tests: Sequence[str],
    title: str,
    docs: IndexedPages,
    search: Callable[[str], Sequence[Hit]],
) -> Iterator[Evidence]:
    """The evidence that needs no history. ``code`` and ``tests``: the changed paths, the most changed ones first."""
    yield from of_names(named.names, docs)
    yield from of_texts(named.texts, docs)
    yield from of_paths(code, docs)
    yield from of_links([*code, *tests], docs)
    yield from of_title(title, docs)
    yield from _searched("title search", title, "answers the title of the change", search)
    for sentence in named.prose[:MAX_PROSE_SEARCHES]:
        yield from _searched(
            "prose", sentence, f'is about "{shown(sentence, MAX_QUOTED_CHARS)}", which the change adds', search
        )


def _searched(feature: Feature, query: str, reason: str, search: Callable[[str], Sequence[Hit]]) -> Iterator[Evidence]:
    """The sections that a search finds for a text, with their confidence."""
    for rank, hit in enumerate(search(query) if any(map(str.isalnum, query)) else ()):
        strength, place = (hit.confidence or 0.0) / (1.0 + RANK_STEP * rank), hit.metadata
        yield Evidence(feature, place.file_path, place.heading_path, strength, reason, place.start_line, query)


class _Match(NamedTuple):
    passage: StoredChunk
    offset: int
    degree: float


def rarity(holders: int, all_passages: int) -> float:
    """How much it says that a passage has a name that so many passages have: 1 for one alone, 0 for all."""
    if holders <= 1:
        return 1.0
    share = max(0.0, 1.0 - math.log(holders) / math.log(max(all_passages, holders + 1)))
    return share * math.sqrt(share)


def of_names(names: Iterable[Name], docs: IndexedPages) -> Iterator[Evidence]:
    """Sections that have a name of the changed lines: as it is written, respelled, or by its words."""
    for name in names:
        feature, verb = _OF_CHANGE[name.how]
        if naming.is_public_gone(name):
            feature = "public name gone"
        reason = f"names `{name.text}`, which the change {verb} ({name.path}:{name.line})"
        subject = "".join(naming.parts(name.text))
        is_shown = name.kind in ("flag", "variable", "route")
        for path, spot, degree in _places(name.text, docs, anything=is_shown):
            strength = min(1.0, naming.KIND_WEIGHT[name.kind] * degree)
            yield Evidence(feature, path, spot.heading_path, strength, reason, spot.line, subject)


_OF_CHANGE: dict[How, tuple[Feature, str]] = {
    "removed": ("name gone", "removes"),
    "renamed": ("name gone", "renames"),
    "value": ("name gone", "gives another value"),
    "added": ("name new", "adds"),
    "touched": ("name touched", "edits"),
    "near": ("name near", "is next to"),
}
"""How a name changed -> what that is evidence of, and its verb in a reason."""


def _places(name: str, docs: IndexedPages, *, anything: bool) -> Iterator[tuple[str, SectionLine, float]]:
    """(page, place, strength) of the sections that have a name: by how it is written there, and how rare it is."""
    matches = find(name, docs, anything=anything) or ()
    parts = naming.parts(name)
    # How many passages have it as a name; where none has, how many have its words.
    holders = len({match.passage.row for match in matches if match.degree >= RESPELLED}) or len(matches)
    common = rarity(holders, docs.passages)
    best: dict[tuple[str, str], tuple[float, SectionLine]] = {}
    for match in matches:
        spot = docs.spot(match.passage, match.offset)
        is_in_heading = f" {' '.join(parts)} " in _heading_words(spot.heading_path)
        degree = match.degree * (IN_HEADING if is_in_heading else 1.0)
        key = (match.passage.metadata.file_path, spot.heading_path)
        if key not in best or degree > best[key][0]:
            best[key] = (degree, spot)
    ranked = sorted(best.items(), key=lambda item: (-item[1][0], item[0]))
    for (path, _), (degree, spot) in ranked[:MAX_SPOTS_OF_NAME]:
        yield path, spot, degree * common


def of_title(title: str, docs: IndexedPages) -> Iterator[Evidence]:
    """Sections that have a name in the title, and pages whose path and title have its words."""
    names = list(dict.fromkeys(match[0].strip(".:") for match in _TITLE_NAME.finditer(_TITLE_VERB.sub(" ", title))))
    for name in names[:MAX_TITLE_NAMES]:
        is_marked = name.startswith("-") or f"`{name}`" in title or len(naming.parts(name)) > 1
        if not is_marked and (len(name) < 4 or name.lower() in lexicon.STOP):
            continue
        for path, spot, degree in _places(name, docs, anything=is_marked):
            strength = min(1.0, degree * (1.0 if is_marked else PLAIN_TITLE_WORD))
            reason = f"names `{name}`, which is in the title of the change"
            yield Evidence("title name", path, spot.heading_path, strength, reason, spot.line, name.lower())
    words = {_singular(word.lower()) for word in lexicon.words(title)} - lexicon.STOP
    for path, strength in sorted(_PathWords(docs).shares(words).items()):
        yield Evidence("title path", path, None, strength, "has words of the title of the change in its path")


_TITLE_NAME = re.compile(r"--?[A-Za-z][\w-]*|[A-Za-z_$][\w$]*(?:[-./][\w$]+)*")
# "Remove the flag", "fix(cli): handle": what was done with the names, not one of them. "poetry add" keeps its name.
_TITLE_VERB = re.compile(
    r"(?i)(?:^|[:.]\s)\s*(?:add|allow|avoid|bump|change|deprecate|drop|enable|ensure|expose|fix|handle|implement|improve|"
    r"introduce|make|move|prevent|refactor|remove|rename|replace|support|update|upgrade|use)(?:e?[sd])?(?=\s)|\binstead\b"
)
MAX_TITLE_NAMES = 30
PLAIN_TITLE_WORD = 0.6
"""What a plain word of the title in a section counts, of what a name does."""


@lru_cache(4096)
def _heading_words(heading: str) -> str:
    """The words of the last heading of a breadcrumb, with a blank around each."""
    return f" {' '.join(naming.parts(heading.rpartition(' > ')[2]))} "


def find(name: str, docs: IndexedPages, *, anything: bool = False) -> list[_Match] | None:
    """The places that have a name, each with the degree in which it is that name; None where too many have its words.
    ``anything``: a single word counts too, such as that of a flag."""
    parts = naming.parts(name)
    if not parts:
        return []
    joined = " ".join(lexicon.words(name))
    # as the keyword index may have it: as it is written, as several words, as one word
    passages = docs.holding(list(dict.fromkeys((joined, " ".join(parts), "".join(parts)))))
    if not passages:
        return None if passages is None else []
    several = len(parts) > 1
    # Any separator between the words, or none: what stands there decides how sure it is.
    spelled = re.compile(r"(?<![A-Za-z0-9])" + r"[-_.\s]{0,3}".join(map(re.escape, parts)) + r"(?![A-Za-z0-9])", re.I)
    is_plain = not several and name.isalpha() and name.islower() and not anything
    matches: list[_Match] = []
    for passage in passages:
        text = passage.content
        places = _exact(name, text)
        if places:
            for start in places:
                is_bare = is_plain and not _is_marked(text, start, start + len(name))
                matches.append(_Match(passage, start, PLAIN_WORD if is_bare else AS_WRITTEN))
        elif several:
            for match in islice(spelled.finditer(text), MAX_MATCHES):
                degree = BY_WORDS if any(character.isspace() for character in match[0]) else RESPELLED
                matches.append(_Match(passage, match.start(), degree))
    return matches


def _exact(name: str, text: str) -> list[int]:
    """Where a text has a name as it is written, and not as a part of another one."""
    places: list[int] = []
    start = text.find(name)
    while start >= 0 and len(places) < MAX_MATCHES:
        before, after = text[start - 1 : start] if start else "", text[start + len(name) : start + len(name) + 1]
        if not (before.isalnum() or before in ("_", "-") or after.isalnum() or after in ("_", "-")):
            places.append(start)
        start = text.find(name, start + 1)
    return places


def _is_marked(text: str, start: int, end: int) -> bool:
    """Whether a word stands as code: beside a mark such as a backtick or a bracket."""
    return (text[start - 1 : start] in _BESIDE_CODE and start > 0) or text[end : end + 1] in _BEHIND_CODE


def of_texts(texts: Iterable[Name], docs: IndexedPages) -> Iterator[Evidence]:
    """Sections that quote a message or help text of the changed lines."""
    for text in texts:
        words = lexicon.words(text.text)[:MAX_TEXT_WORDS]
        passages = docs.holding([" ".join(words)])
        if not passages:
            continue
        pattern = re.compile(r"[\W_]+".join(map(re.escape, words)), re.I)  # the index has words, not their signs
        common = rarity(len(passages), docs.passages)
        length = min(1.0, len(words) / FULL_TEXT_WORDS)
        for passage in passages[:MAX_SPOTS_OF_NAME]:
            match = pattern.search(passage.content)
            if match is None:
                continue
            path, spot = passage.metadata.file_path, docs.spot(passage, match.start())
            strength = TEXT_STRENGTH[text.how] * common * length
            reason = f'quotes "{shown(text.text, MAX_QUOTED_CHARS)}" ({text.path}:{text.line})'
            yield Evidence("text", path, spot.heading_path, strength, reason, spot.line, text.text)


def of_paths(files: Sequence[str], docs: IndexedPages) -> Iterator[Evidence]:
    """Pages that are called like a changed file, and pages whose path has the words of a changed file's path."""
    stems: dict[str, list[str]] = defaultdict(list)
    for path in docs.titles:
        stems[_stem(path)].append(path)
    best: dict[str, tuple[float, str]] = {}
    path_words = _PathWords(docs)
    for file in files[:MAX_LINKED_FILES]:
        stem = _stem(file)
        if stem not in _USUAL:
            for path in stems.get(stem, ()):
                strength = 1.0 / len(stems[stem])
                yield Evidence("same name", path, None, strength, f"is called like {file}", None, stem)
        # without the ending and folders that nearly each project has
        telling = [part for part in posixpath.splitext(file)[0].split("/") if part.lower() not in _USUAL]
        words = {_singular(part) for part in naming.parts("/".join(telling))}
        for path, strength in path_words.shares(words).items():
            if strength > best.get(path, (0.0, ""))[0]:
                best[path] = (strength, file)
    for path, (strength, file) in sorted(best.items()):
        yield Evidence("path words", path, None, strength, f"has words of the path {file}")


class _PathWords:
    """The words of the paths of all pages, each with how much it says."""

    def __init__(self, docs: IndexedPages) -> None:
        words = {path: {_singular(word) for word in lexicon.path_words(path).lower().split()} for path in docs.titles}
        frequency = Counter(word for own in words.values() for word in own)
        # the inverse document frequency of a word: one that all paths have, such as "docs", says nothing
        self._value = {word: math.log((len(words) + 1) / (count + 0.5)) for word, count in frequency.items()}
        self._all = {path: sum(self._value[word] for word in sorted(own)) for path, own in words.items()}
        self._pages: dict[str, list[str]] = defaultdict(list)
        for path, own in words.items():
            for word in own:
                self._pages[word].append(path)

    def shares(self, words: Collection[str]) -> dict[str, float]:
        """Page -> the share of its path's words that are among ``words``, by how rare each is; pages with any."""
        both: dict[str, float] = defaultdict(float)
        for word in sorted(set(words)):
            for path in self._pages.get(word, ()):
                both[path] += self._value[word]
        return {path: max(0.0, value / self._all[path]) for path, value in both.items() if self._all[path] > 0}


def _stem(path: str) -> str:
    """The name of a file without its ending and marks."""
    return "".join(naming.parts(posixpath.splitext(posixpath.basename(path))[0]))


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def of_links(files: Sequence[str], docs: IndexedPages) -> Iterator[Evidence]:
    """Pages that name a changed file: that include it, link to its source, or have it in a directive."""
    hidden = docs.hidden()
    all_hidden = "\n".join(text for _, text in hidden)  # most files are in none: one look tells
    for file in files[:MAX_LINKED_FILES]:
        base = posixpath.basename(file)
        for spelling, strength, phrase in _spellings(file):
            passages = docs.holding([" ".join(lexicon.words(spelling))])
            pattern = re.compile(rf"(?<![\w-]){re.escape(spelling)}(?![\w-])")
            hits = [(passage, match) for passage in passages or () if (match := pattern.search(passage.content))]
            common = rarity(len(hits), docs.passages)
            for passage, match in hits[:MAX_SPOTS_OF_NAME]:
                path, spot = passage.metadata.file_path, docs.spot(passage, match.start())
                # "::: module" of mkdocstrings: the page is made from the file
                is_directive = passage.content.rfind(":::", max(0, match.start() - 8), match.start()) >= 0
                value = 1.0 if is_directive else strength * common
                yield Evidence("link", path, spot.heading_path, value, f"names {phrase} {spelling}", spot.line, file)
        if "." in base and base in all_hidden:
            tail = "/".join(file.split("/")[-2:])
            named = [(page, tail in text or file in text) for page, text in hidden if base in text]
            for page, is_sure in named:
                value = (TWO_PARTS if is_sure else BASENAME) * rarity(len(named), max(len(docs.titles), 2))
                yield Evidence("link", page, None, value, f"links to {tail if is_sure else base}", None, file)


def _spellings(file: str) -> Iterator[tuple[str, float, str]]:
    """How pages may name a file, each with what that says, and what it is called."""
    parts = file.split("/")
    stem, _ = posixpath.splitext(file)
    yield file, FULL_PATH, "the file"
    is_usual = posixpath.splitext(parts[-1])[0].lower() in {*_USUAL, "cli", "config", "package", "setup"}
    if len(parts) > 2 and not (is_usual and parts[-2] in _USUAL):
        yield "/".join(parts[-2:]), TWO_PARTS, "the file"
    if len(parts) > 1 and "." in parts[-1] and not is_usual:
        yield parts[-1], BASENAME, "the file"
    module = stem.removesuffix("/__init__").removeprefix("src/").removeprefix("lib/")
    if "/" in module and file.endswith(".py"):
        yield module.replace("/", "."), MODULE, "the module"


def of_history(history: History, docs: IndexedPages) -> Iterator[Evidence]:
    """Pages that changed together with the changed files, or with their folders, before; pages that change often."""
    for page, pairs in history.joint.items():
        if page not in docs.titles:
            continue
        for pair in pairs:
            feature = "joint folder" if pair.source.endswith("/") else "joint change"
            reason = f"changed together with {pair.source} in {pair.both} of {pair.all} commits"
            yield Evidence(feature, page, None, min(1.0, pair.share), reason, None, pair.source)
    most = max(history.often.values(), default=1.0)
    for page, share in history.often.items():
        if page in docs.titles:
            yield Evidence("often changed", page, None, share / most, "is edited often")


_USUAL = frozenset(
    """
    src lib libs app apps pkg packages crates internal cmd main index mod init __init__ core common utils util helpers
    types impl base readme java python go rust js ts com org io net
    """.split()  # noqa: SIM905 - a list of quoted words is not read
)
