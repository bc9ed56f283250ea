"""Each kind of evidence that a change concerns a section, from values alone: names, texts, paths, links, history."""

from __future__ import annotations

import math
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from anvil.impact import names as naming
from anvil.impact.co_change import History
from anvil.impact.documentation import Documentation, Passage, page_words
from anvil.impact.file_kinds import words_path
from anvil.impact.names import Name, Text
from anvil.impact.values import Evidence
from anvil.text import query as lexicon

Check = Callable[[], None]
"""Called in long loops; it may raise to cancel."""

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
OFTEN = 0.25
"""How much the share says that a page has of all changes of pages, beside joint changes with these files."""
FOLDER = 0.6
"""How much joint changes with the folder say, of what those with the file itself do."""
PATH_WORDS = 0.6
"""How much all words of a page's name in the path of a changed file say."""
MAX_MATCHES = 20
"""Places of a name in one passage that are looked at."""
MAX_LINKED_FILES = 60
"""Changed files that are looked up in the pages."""
MAX_SPOTS_OF_NAME = 60
"""Sections with a name that are evidence; more have it: see :func:`rarity`."""

_BESIDE_CODE = frozenset("`'\"./-_<[(:=$@#")


class _Match(NamedTuple):
    passage: Passage
    offset: int
    degree: float


def rarity(holders: int, all_passages: int) -> float:
    """How much it says that a passage has a name that so many passages have: 1 for one alone, 0 for all."""
    if holders <= 1:
        return 1.0
    share = 1.0 - math.log(holders) / math.log(max(all_passages, holders + 1))
    return max(0.0, share) * math.sqrt(max(0.0, share))


def of_names(names: Iterable[Name], docs: Documentation, check: Check = lambda: None) -> Iterator[Evidence]:
    """Sections that have a name of the changed lines: as it is written, respelled, or by its words."""
    for name in names:
        check()
        matches = find(name.text, docs, anything=name.kind in ("flag", "variable", "route"))
        holders = len({match.passage.row for match in matches if match.degree >= RESPELLED}) or len(matches)
        common = rarity(holders, docs.passages)
        best: dict[tuple[str, str], tuple[float, _Match]] = {}
        for match in matches:
            spot = docs.spot(match.passage, match.offset)
            degree = match.degree * (IN_HEADING if _is_in(name.text, spot.heading_path) else 1.0)
            key = (match.passage.path, spot.heading_path)
            if key not in best or degree > best[key][0]:
                best[key] = (degree, match)
        ranked = sorted(best.items(), key=lambda item: (-item[1][0], item[0]))[:MAX_SPOTS_OF_NAME]
        for (path, heading), (degree, match) in ranked:
            strength = min(1.0, naming.weight(name) * common * degree)
            spot = docs.spot(match.passage, match.offset)
            yield Evidence(
                "names", path, heading, strength, _names_reason(name), spot.line, "".join(naming.parts(name.text))
            )


def _names_reason(name: Name) -> str:
    what = f"names `{name.text}`"
    if name.how == "renamed" and name.other:
        return f"{what}, which the change renames ({name.path}:{name.line})"
    verb = {
        "removed": "removes",
        "renamed": "renames",
        "value": "gives another value",
        "added": "adds",
        "touched": "edits",
        "near": "edits near it",
    }[name.how]
    return (
        f"{what}, which the change {verb} ({name.path}:{name.line})"
        if name.how != "near"
        else (f"{what}, which the change is next to ({name.path}:{name.line})")
    )


def _is_in(name: str, heading: str) -> bool:
    last = heading.rpartition(" > ")[2]
    return name in last or bool(re.search(_spelled(naming.parts(name), r"[-_. ]?"), last, re.I))


def _spelled(parts: Sequence[str], separator: str) -> str:
    return r"(?<![A-Za-z0-9])" + separator.join(map(re.escape, parts)) + r"(?![A-Za-z0-9])"


def find(name: str, docs: Documentation, *, anything: bool = False) -> list[_Match]:
    """The places that have a name, each with the degree in which it is that name. ``anything``: a single word counts
    too, such as that of a flag."""
    parts = naming.parts(name)
    if not parts:
        return []
    joined = " ".join(lexicon.words(name))
    passages = docs.holding(list(dict.fromkeys((joined, " ".join(parts), "".join(parts)))))
    if passages is None:
        return []
    exact = re.compile(r"(?<![\w-])" + re.escape(name) + r"(?![\w-])")
    several = len(parts) > 1
    respelled = re.compile(_spelled(parts, r"[-_.]?"), re.I) if several else None
    by_words = re.compile(_spelled(parts, r"[\s_-]+"), re.I) if several else None
    is_plain = not several and name.isalpha() and name.islower() and not anything
    matches: list[_Match] = []
    for passage in passages:
        found = False
        for number, match in enumerate(exact.finditer(passage.text)):
            if number >= MAX_MATCHES:
                break
            degree = AS_WRITTEN
            if is_plain and not _is_marked(passage.text, match.start(), match.end()):
                degree = PLAIN_WORD
            matches.append(_Match(passage, match.start(), degree))
            found = True
        for pattern, degree in ((respelled, RESPELLED), (by_words, BY_WORDS)):
            if found or pattern is None:
                continue
            for number, match in enumerate(pattern.finditer(passage.text)):
                if number >= MAX_MATCHES:
                    break
                matches.append(_Match(passage, match.start(), degree))
                found = True
        if not found and name.startswith("--") and not several:
            continue
    return matches


def _is_marked(text: str, start: int, end: int) -> bool:
    """Whether a word stands as code: beside a mark such as a backtick or a bracket."""
    return (text[start - 1 : start] in _BESIDE_CODE and start > 0) or text[end : end + 1] in (
        "`",
        "(",
        "'",
        '"',
        "=",
        ":",
    )


def of_texts(texts: Iterable[Text], docs: Documentation, check: Check = lambda: None) -> Iterator[Evidence]:
    """Sections that quote a message or help text of the changed lines."""
    for text in texts:
        check()
        said = lexicon.words(text.text)[:12]
        passages = docs.holding([" ".join(said)])
        if not passages:
            continue
        pattern = re.compile(r"[\W_]+".join(map(re.escape, said)), re.I)
        common = rarity(len(passages), docs.passages)
        length = min(1.0, len(said) / 6)
        for passage in passages[:MAX_SPOTS_OF_NAME]:
            match = pattern.search(passage.text)
            if match is None:
                continue
            spot = docs.spot(passage, match.start())
            strength = TEXT_STRENGTH[text.how] * common * length
            shown = text.text if len(text.text) <= 60 else f"{text.text[:57]}..."
            yield Evidence(
                "texts",
                passage.path,
                spot.heading_path,
                strength,
                f'quotes "{shown}" ({text.path}:{text.line})',
                spot.line,
                text.text,
            )


def of_paths(files: Sequence[str], docs: Documentation) -> Iterator[Evidence]:
    """Pages whose path and title have the words of a changed file's path."""
    pages = {path: page_words(path, title) for path, title in docs.titles.items()}
    frequency = Counter(word for words in pages.values() for word in set(words))
    if not pages:
        return
    value = {word: rarity(count, len(pages)) for word, count in frequency.items()}
    best: dict[str, tuple[float, str]] = {}
    for file in files:
        own = [word for part in naming.parts(words_path(file)) for word in {part, _singular(part)}]
        stem = set(naming.parts(posixpath.basename(words_path(file))))
        wanted = {word: 1.0 if word in stem else 0.5 for word in own if word in value or f"{word}s" in value}
        total = sum(sorted((weight for weight in wanted.values()), reverse=True)[:4])
        if not total:
            continue
        for path, words in pages.items():
            plain = {_singular(word) for word in words} | set(words)
            hit = sum(
                weight * value.get(word, value.get(f"{word}s", 0.0)) for word, weight in wanted.items() if word in plain
            )
            if hit > 0:
                strength = min(1.0, hit / total)
                if strength > best.get(path, (0.0, ""))[0]:
                    best[path] = (strength, file)
    for path, (strength, file) in sorted(best.items()):
        yield Evidence("paths", path, None, PATH_WORDS * strength, f"has the words of the path {file}", None, file)


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def of_links(files: Sequence[str], docs: Documentation, check: Check = lambda: None) -> Iterator[Evidence]:
    """Pages that name a changed file: that include it, link to its source, or have it in a directive."""
    hidden = docs.hidden()
    all_hidden = "\n".join(text for _, text in hidden)
    for file in files[:MAX_LINKED_FILES]:
        check()
        base = posixpath.basename(file)
        for said, strength, phrase in _spellings(file):
            passages = docs.holding([" ".join(lexicon.words(said))])
            pattern = re.compile(rf"(?<![\w-]){re.escape(said)}(?![\w-])")
            hits = [(passage, match) for passage in passages or () if (match := pattern.search(passage.text))]
            common = rarity(len(hits), docs.passages)
            for passage, match in hits[:MAX_SPOTS_OF_NAME]:
                spot = docs.spot(passage, match.start())
                is_directive = passage.text.rfind(":::", max(0, match.start() - 8), match.start()) >= 0
                value = 1.0 if is_directive else strength * common
                yield Evidence(
                    "links", passage.path, spot.heading_path, value, f"names {phrase} {said}", spot.line, file
                )
        if "." in base and base in all_hidden:
            tail = "/".join(file.split("/")[-2:])
            named = [(path, tail in text or file in text) for path, text in hidden if base in text]
            for path, is_sure in named:
                value = (TWO_PARTS if is_sure else BASENAME) * rarity(len(named), max(len(docs.titles), 2))
                yield Evidence("links", path, None, value, f"links to {tail if is_sure else base}", None, file)


def _spellings(file: str) -> Iterator[tuple[str, float, str]]:
    """How pages may name a file, each with what that says, and what it is called."""
    parts = file.split("/")
    stem, _ = posixpath.splitext(file)
    yield file, FULL_PATH, "the file"
    is_usual = posixpath.splitext(parts[-1])[0].lower() in _USUAL_FILES
    if len(parts) > 2 and not (is_usual and parts[-2] in _USUAL_FOLDERS):
        yield "/".join(parts[-2:]), TWO_PARTS, "the file"
    if len(parts) > 1 and "." in parts[-1] and not is_usual:
        yield parts[-1], BASENAME, "the file"
    module = stem.removesuffix("/__init__").removeprefix("src/").removeprefix("lib/")
    if "/" in module and file.endswith(".py"):
        yield module.replace("/", "."), MODULE, "the module"


_USUAL_FOLDERS = frozenset({"src", "lib", "app", "cmd", "pkg"})
_USUAL_FILES = frozenset("__init__ index main mod lib readme setup package cli utils types config".split())  # noqa: SIM905


def of_history(history: History, docs: Documentation) -> Iterator[Evidence]:
    """Pages that changed together with the changed files before; weaker, those that change often."""
    for page, pairs in history.joint.items():
        if page not in docs.titles:
            continue
        for pair in pairs[:3]:
            strength = pair.share * (FOLDER if pair.source.endswith("/") else 1.0)
            reason = f"changed together with {pair.source} in {pair.both} of {pair.all} commits"
            yield Evidence("co-change", page, None, min(1.0, strength), reason, None, pair.source)
    for page, share in history.often.items():
        if page in docs.titles:
            reason = "is edited often"
            yield Evidence("co-change", page, None, OFTEN * min(1.0, share * 3), reason, None, "")
