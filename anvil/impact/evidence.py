"""The evidence that a change concerns a section of the pages: names, texts, paths, links, searches and history."""

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

from anvil.formats import version_names
from anvil.formats.patterns import lazy_pattern
from anvil.impact.co_change import History
from anvil.impact.names import ChangedNames, How, Name, name_words, public_kind
from anvil.index_file.reader import Reader
from anvil.index_file.table_rows import StoredChunk, is_parallel
from anvil.results import Hit
from anvil.text import query as lexicon
from anvil.values import Section
from anvil.wording import shown

MAX_PASSAGES = 400
"""Passages with a phrase that are read. A phrase in more passages is no evidence."""

Feature = str
"""A feature of a page that is weighed: a key of :data:`anvil.impact.ranking.WEIGHTS`. Each kind of evidence has one or
several features."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One reason why a change concerns a section, or a page as a whole.

    - ``path``: of the page in the index
    - ``heading_path``: the breadcrumb of the section; None for the page as a whole
    - ``strength``: 0 to 1
    - ``reason``: a clause for people, such as ``names `--max-size```
    - ``line``: in the page's file, 1-based, if it is known
    - ``subject``: such as a name. Of the evidence of one feature about one subject, the strongest counts
    """

    feature: Feature
    path: str
    heading_path: str | None
    strength: float
    reason: str
    line: int | None = None
    subject: str = ""


class SectionLine(NamedTuple):
    """A place in a page: the breadcrumb of its section, and its 1-based source line, if it is known."""

    heading_path: str
    line: int | None


class IndexedPages:
    """The pages of an index file or of its copy in memory. ``passages``: number of passages. ``titles``: by path.
    ``untranslated``: path -> path without a language, which all translations of the page have."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.passages = reader.counts()["chunks"]
        self._documents = {document.file_path: document for document in reader.documents()}
        self.titles = {path: document.title for path, document in self._documents.items()}
        translated = version_names.translations((document.id, path) for path, document in self._documents.items())
        self.untranslated = {path: translated.get(document.id, path) for path, document in self._documents.items()}
        self._passages: dict[int, StoredChunk] = {}
        self._sections: dict[int, tuple[Section, ...]] = {}
        self._starts: dict[int, list[int]] = {}

    def passages_with(self, phrases: Sequence[str]) -> list[StoredChunk] | None:
        """The passages with any of these phrases, by word stems; None if more than :data:`MAX_PASSAGES` have them."""
        expression = lexicon.any_of(phrase for phrase in phrases if phrase)
        if not expression:
            return []
        rows = self._reader.rows_matching(expression, MAX_PASSAGES + 1)
        if len(rows) > MAX_PASSAGES:
            return None
        new = [row for row in rows if row not in self._passages]
        self._passages |= self._reader.chunks(new) if new else {}
        return [self._passages[row] for row in sorted(rows)]

    def section_line(self, passage: StoredChunk, offset: int) -> SectionLine:
        """The section and line at a character of a passage."""
        sections, first = self._sections_of(passage.document_id), passage.metadata
        starts = self._starts[passage.document_id]
        section = sections[max(0, bisect.bisect_right(starts, passage.start + offset) - 1)] if sections else None
        line = first.start_line
        if line is not None and is_parallel(passage.content, line, first.end_line):
            line += passage.content.count("\n", 0, offset)
        elif section is not None:
            line = section.start_line
        return SectionLine(section.heading_path if section is not None else first.heading_path, line)

    def sections(self, path: str) -> Sequence[Section]:
        """The sections of a page, in order; empty for an unknown page."""
        document = self._documents.get(path)
        return self._sections_of(document.id) if document is not None else ()

    def hidden_texts(self) -> list[tuple[str, str]]:
        """(path, hidden text) of each page with text that readers do not see, such as the targets of links."""
        paths = {document.id: path for path, document in self._documents.items()}
        return [(paths[page.id], page.hidden) for page in self._reader.page_texts() if page.hidden.strip()]

    def _sections_of(self, document: int) -> tuple[Section, ...]:
        if document not in self._sections:
            self._sections[document] = self._reader.sections(document)
            self._starts[document] = [section.start for section in self._sections[document]]
        return self._sections[document]


# The strengths of evidence, 0 to 1, are guesses; ``benchmarks/impact.py`` measures them.
AS_WRITTEN, RESPELLED, BY_WORDS, PLAIN_WORD = 1.0, 0.8, 0.35, 0.12
"""Strength of a name in a page: as the code writes it; with other separators or case (``max_size`` for ``--max-size``);
as words of a sentence; as a single common word that is not marked as code."""
IN_HEADING = 1.4
"""Factor for a section whose heading has the name, since it is about it."""
FULL_PATH, TWO_PARTS, BASENAME, MODULE = 1.0, 0.8, 0.35, 0.7
"""Strength of a file's name in a page: its whole path; its name and folder; its name; its name as a module."""
MAX_MATCHES = 20
"""Matches of a name in one passage that are examined."""
MAX_LINKED_FILES = 60
"""Changed files that are looked up in the pages."""
MAX_SECTIONS_OF_NAME = 60
"""Sections with a name that are evidence. How many more have it lowers their strength: see :func:`rarity`."""
MAX_TEXT_WORDS = 12
"""Words of a message that are looked up, because a page may quote its beginning alone."""
FULL_TEXT_WORDS = 6
"""Words of a message with full strength. A shorter message may be in a page by chance."""
MAX_PROSE_SEARCHES = 5
"""Sentences of a change that are searched."""
RANK_STEP = 0.15
"""With each rank, a search result is weaker: its confidence is divided by 1 + RANK_STEP * rank."""
MAX_QUOTED_CHARS = 60
"""Characters of a text of the change that a reason quotes."""

_BESIDE_CODE, _BEHIND_CODE = frozenset("`'\"./-_<[(:=$@#"), frozenset("`('\"=:")


def collect(
    changed: ChangedNames,
    gone: Collection[str],
    code: Sequence[str],
    tests: Sequence[str],
    title: str,
    docs: IndexedPages,
    search: Callable[[str], Sequence[Hit]],
) -> Iterator[Evidence]:
    """The evidence that needs no history. ``gone``: names that the code had. ``code`` and ``tests``: the changed paths,
    the most changed first."""
    yield from name_evidence(changed.names, gone, docs)
    yield from text_evidence(changed.texts, docs)
    yield from path_evidence(code, docs)
    yield from link_evidence([*code, *tests], docs)
    yield from title_evidence(title, docs)
    yield from _search_evidence("title search", title, "answers the title of the change", search)
    for sentence in changed.prose[:MAX_PROSE_SEARCHES]:
        yield from _search_evidence(
            "prose", sentence, f'is about "{shown(sentence, MAX_QUOTED_CHARS)}", which the change adds', search
        )


def _search_evidence(
    feature: Feature, query: str, reason: str, search: Callable[[str], Sequence[Hit]]
) -> Iterator[Evidence]:
    """Evidence from a search: its results, with their confidence as strength."""
    for rank, hit in enumerate(search(query) if any(map(str.isalnum, query)) else ()):
        strength, section = (hit.confidence or 0.0) / (1.0 + RANK_STEP * rank), hit.metadata
        yield Evidence(feature, section.file_path, section.heading_path, strength, reason, section.start_line, query)


class _Match(NamedTuple):
    """A name in a passage. ``degree``: the strength of how it is written there, such as :data:`RESPELLED`."""

    passage: StoredChunk
    offset: int
    degree: float


def rarity(passage_count: int, all_passages: int) -> float:
    """The strength of a name that so many passages have: 1 if one passage has it, 0 if all have it."""
    if passage_count <= 1:
        return 1.0
    share = max(0.0, 1.0 - math.log(passage_count) / math.log(max(all_passages, passage_count + 1)))
    return share * math.sqrt(share)


_MIGRATION = lazy_pattern(r"(?i)migrat|upgrad")
"""Paths of pages on the change from an older version, which name what is gone on purpose."""


def name_evidence(names: Iterable[Name], gone: Collection[str], docs: IndexedPages) -> Iterator[Evidence]:
    """Sections that have a name of the changed lines: as it is written, respelled, or as words of a sentence."""
    for name in names:
        feature, verb = _CHANGES[name.how]
        is_gone = name.how in ("removed", "renamed", "value") and not name.is_new
        if is_gone and public_kind(name):  # text about it is wrong
            feature = "public name gone"
        reason = f"names `{name.text}`, which the change {verb} ({name.path}:{name.line})"
        subject = "".join(name_words(name.text))
        is_public = name.kind in ("flag", "variable", "route")
        for path, section, degree in _name_sections(name.text, docs, any_word=is_public):
            is_wrong = name.text in gone and not _MIGRATION.search(path)
            yield Evidence(
                "public name gone" if is_wrong else feature,
                path,
                section.heading_path,
                min(1.0, degree),
                reason,
                section.line,
                subject,
            )


_CHANGES: dict[How, tuple[Feature, str]] = {
    "removed": ("name gone", "removes"),
    "renamed": ("name gone", "renames"),
    "value": ("name gone", "gives another value"),
    "added": ("name new", "adds"),
    "touched": ("name touched", "edits"),
    "near": ("name near", "is next to"),
}
"""How a name changed -> the feature, and the verb in a reason."""


def _name_sections(name: str, docs: IndexedPages, *, any_word: bool) -> Iterator[tuple[str, SectionLine, float]]:
    """(page, place, strength) of the sections with a name. The strength depends on its spelling and rarity."""
    matches = find_name(name, docs, any_word=any_word) or ()
    parts = name_words(name)
    # the passages that have it as a name; if none has, those that have its words
    passage_count = len({match.passage.row for match in matches if match.degree >= RESPELLED}) or len(matches)
    rare = rarity(passage_count, docs.passages)
    best: dict[tuple[str, str], tuple[float, SectionLine]] = {}
    for match in matches:
        section = docs.section_line(match.passage, match.offset)
        is_in_heading = f" {' '.join(parts)} " in _heading_words(section.heading_path)
        degree = match.degree * (IN_HEADING if is_in_heading else 1.0)
        key = (match.passage.metadata.file_path, section.heading_path)
        if key not in best or degree > best[key][0]:
            best[key] = (degree, section)
    ranked = sorted(best.items(), key=lambda item: (-item[1][0], item[0]))
    for (path, _), (degree, section) in ranked[:MAX_SECTIONS_OF_NAME]:
        yield path, section, degree * rare


def title_evidence(title: str, docs: IndexedPages) -> Iterator[Evidence]:
    """Sections that have a name of the title, and pages whose path has words of the title."""
    names = list(dict.fromkeys(match[0].strip(".:") for match in _TITLE_NAME.finditer(_TITLE_VERB.sub(" ", title))))
    for name in names[:MAX_TITLE_NAMES]:
        is_marked = name.startswith("-") or f"`{name}`" in title or len(name_words(name)) > 1
        if not is_marked and (len(name) < 4 or name.lower() in lexicon.STOP):
            continue
        for path, section, degree in _name_sections(name, docs, any_word=is_marked):
            strength = min(1.0, degree * (1.0 if is_marked else PLAIN_TITLE_WORD))
            reason = f"names `{name}`, which is in the title of the change"
            yield Evidence("title name", path, section.heading_path, strength, reason, section.line, name.lower())
    words = {_singular(word.lower()) for word in lexicon.words(title)} - lexicon.STOP
    for path, strength in sorted(_PathWords(docs).shares(words).items()):
        yield Evidence("title path", path, None, strength, "has words of the title of the change in its path")


_TITLE_NAME = re.compile(r"--?[A-Za-z][\w-]*|[A-Za-z_$][\w$]*(?:[-./][\w$]+)*")
# "Remove the flag", "fix(cli): handle": a verb at the beginning is not a name. In "poetry add" it is.
_TITLE_VERB = re.compile(
    r"(?i)(?:^|[:.]\s)\s*(?:add|allow|avoid|bump|change|deprecate|drop|enable|ensure|expose|fix|handle|implement|improve|"
    r"introduce|make|move|prevent|refactor|remove|rename|replace|support|update|upgrade|use)(?:e?[sd])?(?=\s)|\binstead\b"
)
MAX_TITLE_NAMES = 30
PLAIN_TITLE_WORD = 0.6
"""Factor for a plain word of the title that may not be a name."""


@lru_cache(4096)
def _heading_words(heading: str) -> str:
    """The words of the last heading of a breadcrumb, with a blank around each."""
    return f" {' '.join(name_words(heading.rpartition(' > ')[2]))} "


def find_name(name: str, docs: IndexedPages, *, any_word: bool = False) -> list[_Match] | None:
    """The matches of a name in the pages; None if too many passages have its words.

    ``any_word``: whether a single plain word has full strength, such as the word of a flag.
    """
    parts = name_words(name)
    if not parts:
        return []
    joined = " ".join(lexicon.words(name))
    # The keyword index may have the name as it is written, as several words, or as one word.
    passages = docs.passages_with(list(dict.fromkeys((joined, " ".join(parts), "".join(parts)))))
    if not passages:
        return None if passages is None else []
    has_parts = len(parts) > 1
    # Any separator between the words, or none. The separator decides the degree of the match.
    spelled = re.compile(r"(?<![A-Za-z0-9])" + r"[-_.\s]{0,3}".join(map(re.escape, parts)) + r"(?![A-Za-z0-9])", re.I)
    is_plain = not has_parts and name.isalpha() and name.islower() and not any_word
    matches: list[_Match] = []
    for passage in passages:
        text = passage.content
        offsets = _exact_offsets(name, text)
        if offsets:
            for start in offsets:
                end = start + len(name)
                is_code = text[start - 1 : start] in _BESIDE_CODE or text[end : end + 1] in _BEHIND_CODE
                matches.append(_Match(passage, start, PLAIN_WORD if is_plain and not is_code else AS_WRITTEN))
        elif has_parts:
            for match in islice(spelled.finditer(text), MAX_MATCHES):
                degree = BY_WORDS if any(character.isspace() for character in match[0]) else RESPELLED
                matches.append(_Match(passage, match.start(), degree))
    return matches


def _exact_offsets(name: str, text: str) -> list[int]:
    """The offsets at which a text has a name as it is written, and not as a part of another name."""
    offsets: list[int] = []
    start = text.find(name)
    while start >= 0 and len(offsets) < MAX_MATCHES:
        before, after = text[start - 1 : start] if start else "", text[start + len(name) : start + len(name) + 1]
        if not (before.isalnum() or before in ("_", "-") or after.isalnum() or after in ("_", "-")):
            offsets.append(start)
        start = text.find(name, start + 1)
    return offsets


def text_evidence(texts: Iterable[Name], docs: IndexedPages) -> Iterator[Evidence]:
    """Sections that quote a message or help text of the changed lines."""
    for text in texts:
        words = lexicon.words(text.text)[:MAX_TEXT_WORDS]
        passages = docs.passages_with([" ".join(words)])
        if not passages:
            continue
        # The keyword index has words alone; the pattern finds the quotation.
        pattern = re.compile(r"[\W_]+".join(map(re.escape, words)), re.I)
        rare = rarity(len(passages), docs.passages)
        length = min(1.0, len(words) / FULL_TEXT_WORDS)
        for passage in passages[:MAX_SECTIONS_OF_NAME]:
            match = pattern.search(passage.content)
            if match is None:
                continue
            path, section = passage.metadata.file_path, docs.section_line(passage, match.start())
            strength = rare * length
            reason = f'quotes "{shown(text.text, MAX_QUOTED_CHARS)}" ({text.path}:{text.line})'
            yield Evidence("text", path, section.heading_path, strength, reason, section.line, text.text)


def path_evidence(files: Sequence[str], docs: IndexedPages) -> Iterator[Evidence]:
    """Pages whose path has words of a changed file's path, such as the name of the file."""
    best: dict[str, tuple[float, str]] = {}
    path_words = _PathWords(docs)
    for file in files[:MAX_LINKED_FILES]:
        # without the ending, and without the names of folders that nearly each project has
        own_parts = [part for part in posixpath.splitext(file)[0].split("/") if part.lower() not in _COMMON_NAMES]
        words = {_singular(part) for part in name_words("/".join(own_parts))}
        for path, strength in path_words.shares(words).items():
            if strength > best.get(path, (0.0, ""))[0]:
                best[path] = (strength, file)
    for path, (strength, file) in sorted(best.items()):
        yield Evidence("path words", path, None, strength, f"has words of the path {file}")


class _PathWords:
    """The words of the paths of all pages, weighted by how rare they are."""

    def __init__(self, docs: IndexedPages) -> None:
        words = {path: {_singular(word) for word in lexicon.path_words(path).lower().split()} for path in docs.titles}
        frequency = Counter(word for own in words.values() for word in own)
        # the inverse document frequency: a word that nearly all paths have, such as "docs", has hardly any weight
        self._weights = {word: math.log((len(words) + 1) / (count + 0.5)) for word, count in frequency.items()}
        self._sums = {path: sum(self._weights[word] for word in sorted(own)) for path, own in words.items()}
        self._pages: dict[str, list[str]] = defaultdict(list)
        for path, own in words.items():
            for word in own:
                self._pages[word].append(path)

    def shares(self, words: Collection[str]) -> dict[str, float]:
        """Page -> the weighted share of its path's words that are in ``words``, for each page that has any."""
        common: dict[str, float] = defaultdict(float)
        for word in sorted(set(words)):
            for path in self._pages.get(word, ()):
                common[path] += self._weights[word]
        return {path: max(0.0, weight / self._sums[path]) for path, weight in common.items() if self._sums[path] > 0}


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def link_evidence(files: Sequence[str], docs: IndexedPages) -> Iterator[Evidence]:
    """Pages that name a changed file, include it, link to its source, or have it in a directive."""
    hidden = docs.hidden_texts()
    all_hidden = "\n".join(text for _, text in hidden)  # one search shows that no page has a file, as for most files
    for file in files[:MAX_LINKED_FILES]:
        base = posixpath.basename(file)
        for spelling, strength, phrase in _spellings(file):
            passages = docs.passages_with([" ".join(lexicon.words(spelling))])
            pattern = re.compile(rf"(?<![\w-]){re.escape(spelling)}(?![\w-])")
            hits = [(passage, match) for passage in passages or () if (match := pattern.search(passage.content))]
            rare = rarity(len(hits), docs.passages)
            for passage, match in hits[:MAX_SECTIONS_OF_NAME]:
                path, section = passage.metadata.file_path, docs.section_line(passage, match.start())
                # "::: module" of mkdocstrings: the page is made from the file
                is_directive = passage.content.rfind(":::", max(0, match.start() - 8), match.start()) >= 0
                value = 1.0 if is_directive else strength * rare
                yield Evidence(
                    "link", path, section.heading_path, value, f"names {phrase} {spelling}", section.line, file
                )
        if "." in base and base in all_hidden:
            tail = "/".join(file.split("/")[-2:])
            linking = [(page, tail in text or file in text) for page, text in hidden if base in text]
            for page, is_sure in linking:
                value = (TWO_PARTS if is_sure else BASENAME) * rarity(len(linking), max(len(docs.titles), 2))
                yield Evidence("link", page, None, value, f"links to {tail if is_sure else base}", None, file)


def _spellings(file: str) -> Iterator[tuple[str, float, str]]:
    """(spelling, strength, phrase for people) of each way in which a page may name a file."""
    parts = file.split("/")
    stem, _ = posixpath.splitext(file)
    yield file, FULL_PATH, "the file"
    is_usual = posixpath.splitext(parts[-1])[0].lower() in {*_COMMON_NAMES, "cli", "config", "package", "setup"}
    if len(parts) > 2 and not (is_usual and parts[-2] in _COMMON_NAMES):
        yield "/".join(parts[-2:]), TWO_PARTS, "the file"
    if len(parts) > 1 and "." in parts[-1] and not is_usual:
        yield parts[-1], BASENAME, "the file"
    module = stem.removesuffix("/__init__").removeprefix("src/").removeprefix("lib/")
    if "/" in module and file.endswith(".py"):
        yield module.replace("/", "."), MODULE, "the module"


def history_evidence(history: History, docs: IndexedPages) -> Iterator[Evidence]:
    """Pages that changed together with the changed files or their folders before, and pages that change often."""
    for page, pairs in history.joint.items():
        if page not in docs.titles:
            continue
        for pair in pairs:
            feature = "joint folder" if pair.source.endswith("/") else "joint change"
            reason = f"changed together with {pair.source} in {pair.both} of {pair.all} commits"
            yield Evidence(feature, page, None, min(1.0, pair.share), reason, None, pair.source)
    largest_share = max(history.often.values(), default=1.0)
    for page, share in history.often.items():
        if page in docs.titles:
            yield Evidence("often changed", page, None, share / largest_share, "is edited often")


_COMMON_NAMES = frozenset(
    """
    src lib libs app apps pkg packages crates internal cmd main index mod init __init__ core common utils util helpers
    types impl base readme java python go rust js ts com org io net
    """.split()  # noqa: SIM905 - a list of quoted words is not read
)
