"""The impact of a change on the documentation, from its diff, the index and the history of the repository."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from anvil.documents.document_source import Selection
from anvil.errors import AnvilError, ConfigError, GitError
from anvil.formats import patterns
from anvil.git.repository import Repository
from anvil.impact import co_change, evidence, names, ranking
from anvil.impact.change import MAX_DIFF_BYTES, FileChange, FileKind, diff_title, file_kind, parse_diff
from anvil.impact.evidence import Evidence, IndexedPages
from anvil.impact.names import Name, PublicKind
from anvil.impact.ranking import AffectedSection, ChangeFeature
from anvil.impact.settings import ImpactOptions
from anvil.index_file.reader import Reader
from anvil.requests import SearchRequest
from anvil.results import Hit, Mode
from anvil.search.page_weights import is_record
from anvil.system import safe_files
from anvil.wording import counted

if TYPE_CHECKING:
    from anvil.api import Anvil

MAX_TITLE_CHARS = 300
"""Characters of a title that are searched."""
MAX_HITS = 10
"""Results of a search that are evidence."""
FEW_STEPS = 50
"""Commits of a shallow clone below which a note says that its history is short."""


@dataclass(frozen=True, slots=True)
class Undocumented:
    """A public name that the change adds and no page has. ``path`` is relative to the repository's root."""

    kind: PublicKind
    name: str
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Impact:
    """The impact of a change on the documentation.

    - ``findings``: sections that it probably makes wrong, best first
    - ``undocumented``: new public names that no page has
    - ``done``: sections that it probably concerns, and that the same change edits
    - ``notes``: sentences on parts that could not be examined
    - ``files``: number of changed files of code
    - ``evidence``: all evidence for the findings
    - ``change``: the features of the change as a whole
    """

    findings: tuple[AffectedSection, ...]
    undocumented: tuple[Undocumented, ...] = ()
    done: tuple[AffectedSection, ...] = ()
    notes: tuple[str, ...] = ()
    files: int = 0
    evidence: tuple[Evidence, ...] = field(default=(), compare=False)
    change: Mapping[ChangeFeature, float] = field(default_factory=dict, compare=False)

    def at_least(self, confidence: float) -> tuple[AffectedSection, ...]:
        """The findings with at least this confidence."""
        return tuple(finding for finding in self.findings if finding.confidence >= confidence)


def assess(
    diff_text: str,
    anvil_: Anvil,
    *,
    title: str = "",
    repository: Path | None = None,
    before: str | None = None,
    docs_path: str | None = None,
) -> Impact:
    """The impact of a change on the documentation of an index.

    - ``diff_text``: a unified diff, with paths from the repository's root
    - ``title``: the subject of the commit or pull request
    - ``repository``: a folder in the repository whose history is read; by default the documentation folder
    - ``before``: the commit up to which the history is read, which does not have the change yet; by default HEAD
    - ``docs_path``: the documentation folder from the repository's root (POSIX), ``""`` for the root itself; by default
      the folder of ``anvil_``

    Raises :class:`AnvilError`, such as :class:`ConfigError` if the text is not a diff.
    """
    files = parse_diff(diff_text)
    notes: list[str] = []
    git = _repository(repository or anvil_.folder, notes)
    docs_folder = anvil_.config.docs
    if docs_path is not None:
        docs_folder = docs_path.strip("/")
    elif anvil_.folder is not None and git is not None:
        with suppress(AnvilError):
            docs_folder = git.relative(anvil_.folder)
    docs_folder = "" if docs_folder == "." else docs_folder
    change = _Change(files, docs_folder, anvil_)
    notes += change.notes()
    with anvil_.only.live.query() as copy:
        if not isinstance(copy.reader, Reader):
            raise ConfigError("The impact of a change needs an index file. Name one with --index.")
        mode: Mode = "keyword" if copy.provisional else "hybrid"  # a provisional copy begins without vectors
        if mode == "hybrid":
            copy.embed_missing()
        notes += [copy.refused] if copy.refused else []
        docs = IndexedPages(copy.reader)
        changed = names.read(change.code)
        collected: list[Evidence] = []
        features: dict[ChangeFeature, float] = {}
        if change.code:
            title = (title or diff_title(diff_text))[:MAX_TITLE_CHARS]

            def search(query: str) -> Sequence[Hit]:  # max_chars=1: the text of the results is not used
                request = SearchRequest(query, MAX_HITS, max_chars=1, mode=mode, read_passages=False)
                return copy.searcher.search(request).hits

            gone = {} if git is None else _gone(changed.names, docs, git, change)
            collected += evidence.collect(changed, gone, change.code_paths, change.test_paths, title, docs, search)
            # features of the change itself, whatever is in the pages
            features |= ranking.title_features(title) | ranking.name_features(changed.names)
            features |= ranking.file_features([file.path for file in change.code], len(change.test_paths))
            if git is not None:
                collected += evidence.history_evidence(_history(git, change, before, notes), docs)
        relevant = tuple(piece for piece in collected if not change.is_left_out(piece.path))
        features |= ranking.evidence_features(relevant)
        new = tuple(additions(changed.names, docs, change.added_prose))
        findings, done = ranking.findings(relevant, features, docs, change.edited(docs))
        return Impact(findings, new, done, tuple(dict.fromkeys(notes)), len(change.code), relevant, features)


class _Change:
    """The changed files, by kind."""

    def __init__(self, files: Sequence[FileChange], docs: str, anvil_: Anvil) -> None:
        options = anvil_.config.table(ImpactOptions)
        self._ignored_pages = [patterns.glob(pattern) for pattern in options.ignore]
        ignored_code = [patterns.glob(pattern) for pattern in options.ignore_code]
        self._selection = Selection(anvil_.config.source)
        self.docs = docs
        self._files = files
        by_kind: dict[FileKind, list[FileChange]] = defaultdict(list)
        for file in files:
            is_other = file.submodule or any(glob.matches(file.path) for glob in ignored_code)
            by_kind["other" if is_other else self.kind(file.path)].append(file)
        self.pages = by_kind["page"]
        # The most changed files are first, because the limits on paths, links and history keep the first files.
        self.code = sorted(by_kind["code"], key=lambda file: (-len(file.added) - len(file.removed), file.path))
        self.code_paths = list(dict.fromkeys(path for file in self.code for path in (file.old_path, file.path)))
        self.test_paths = [file.path for file in by_kind["test"]]
        prose = (*self.pages, *by_kind["other"])
        self.added_prose = "\n".join(line.text for file in prose for line in file.added)

    def _inside(self, path: str) -> str:
        """A path relative to the documentation folder; outside of it, the path itself."""
        return path[len(self.docs) + 1 :] if self.docs and path.startswith(f"{self.docs}/") else path

    def kind(self, path: str) -> FileKind:
        return file_kind(path, self.docs, self.is_page(self._inside(path)))

    def is_page(self, path: str) -> bool:
        """Whether a path in the documentation folder is that of a page."""
        return self._selection.wants(path)

    def is_left_out(self, path: str) -> bool:
        """Whether a page is never reported, such as a changelog, which may have the names of each change."""
        return is_record(path) or any(glob.matches(path) for glob in self._ignored_pages)

    def edited(self, docs: IndexedPages) -> dict[str, frozenset[str]]:
        """Page -> the breadcrumbs of the sections that the change edits."""
        edited: dict[str, frozenset[str]] = {}
        for file in self.pages:
            path = self._inside(file.path)
            lines = {line.number for line in file.added} or {line.number for line in file.removed}
            edited[path] = frozenset(
                section.heading_path
                for section in docs.sections(path)
                if section.start_line is not None
                and section.end_line is not None
                and (not lines or any(section.start_line <= line <= section.end_line for line in lines))
            )
        return edited

    def notes(self) -> list[str]:
        """Sentences on the parts of the diff that are not examined."""
        notes = []
        if cut := [file.path for file in (*self.code, *self.pages) if file.cut]:
            notes.append(f"Of {cut[0]}{' and others' if len(cut) > 1 else ''} only the first lines are examined.")
        if submodules := [file.path for file in self._files if file.submodule]:
            notes.append(f"{submodules[0]} is a submodule: its changes are not in this diff.")
        return notes


def _repository(folder: Path | None, notes: list[str]) -> Repository | None:
    """The repository of a folder. If there is none, or it cannot be read, a note says so."""
    git = None
    try:
        git = None if folder is None else Repository.discover(folder)
        if folder is not None and git is None:
            notes.append(f"{folder} is in no git repository, so nothing is known of earlier changes.")
    except GitError as error:
        notes.append(f"The history is not read: {error}")
    return git


def _gone(changed_names: Iterable[Name], docs: IndexedPages, git: Repository, change: _Change) -> Mapping[str, object]:
    """The removed definitions that a page has as they are written, and that no code of the work tree has any more."""
    lines = {(file.path, line.number): line.text for file in change.code for line in file.removed}
    gone = {
        name.text: _whole_word(name.text)
        for name in changed_names
        if name.kind == "definition" and name.how in ("removed", "renamed") and not name.is_new
        if not names.is_local(lines.get((name.path, name.line), ""))
        if len(names.name_words(name.text)) > 1  # one word may be a word of the text
        and any(match.degree >= evidence.AS_WRITTEN for match in evidence.find_name(name.text, docs) or ())
    }
    size = 0
    try:
        files = git.work_tree_files() if gone else None
        for path in sorted(files or ()):
            if change.kind(path) in ("code", "test"):
                data = safe_files.data(git.root / path)
                size += len(data)
                gone = {text: pattern for text, pattern in gone.items() if not pattern.search(data)}
                if not gone or size > MAX_DIFF_BYTES:
                    return {}
    except (OSError, GitError):  # the file may have the names
        return {}
    return {} if files is None else gone


def _whole_word(name: str) -> re.Pattern[bytes]:
    """A pattern of a name in the bytes of a file. It begins with the name itself, which is searched for fast."""
    escaped = re.escape(name)
    return re.compile(rf"{escaped}(?<!\w{escaped})(?!\w)".encode())


def _history(git: Repository, change: _Change, before: str | None, notes: list[str]) -> co_change.History:
    """The history of the changed files up to ``before``."""
    start = git.head() if before is None else git.resolve(before)
    if start is None:
        return co_change.History()
    try:
        history = co_change.read(git, start, change.code_paths, change.docs, change.is_page)
    except GitError as error:
        notes.append(f"The history could not be read: {error}")
        return co_change.History()
    if git.is_shallow and history.steps < FEW_STEPS:
        notes.append(
            f"This clone is shallow, with {counted(history.steps, 'commit')} before the change, so little is known of "
            "pages that changed together with these files. Run 'git fetch --unshallow', or set fetch-depth: 0 for "
            "actions/checkout."
        )
    return history


MAX_ADDITIONS = 50
"""Undocumented names that are reported."""


def additions(changed_names: Iterable[Name], docs: IndexedPages, added_prose: str) -> Iterator[Undocumented]:
    """The new public names that no page has, by file and line.

    ``added_prose``: the lines that the same change adds to pages and other texts, which the index may not have yet.
    """
    undocumented = [
        Undocumented(kind, name.text, name.path, name.line)
        for name in changed_names
        if name.is_new and (kind := names.public_kind(name)) and not _is_documented(name, docs, added_prose)
    ]
    yield from sorted(undocumented, key=lambda name: (name.path, name.line, name.name))[:MAX_ADDITIONS]


def _is_documented(name: Name, docs: IndexedPages, added_prose: str) -> bool:
    if re.search(rf"(?<![\w-]){re.escape(name.text)}(?![\w-])", added_prose):
        return True
    matches = evidence.find_name(name.text, docs, any_word=True)
    return matches is None or any(match.degree >= evidence.RESPELLED for match in matches)
