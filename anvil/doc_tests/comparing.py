"""The comparison of two runs of a suite, and the edited pages that explain the differences.

The page to blame is found by replay: in a copy of the current index, a page is restored to the baseline, and the
question is asked again. A page is to blame if restoring it alone gives the former answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Literal

from anvil.doc_tests.judging import Asker, ExpectedParts, QuestionVectors, hit_rate, mean_reciprocal_rank
from anvil.doc_tests.values import ChangedPage, Comparison, Difference, Outcome
from anvil.documents import document_source
from anvil.index_file import connection, writer
from anvil.index_file.manifests import SETTINGS
from anvil.index_file.reader import Reader
from anvil.index_file.table_rows import is_parallel
from anvil.index_file.writer import Writer
from anvil.search.candidates import FileIndex
from anvil.search.pages import page_text
from anvil.search.searcher import Searcher
from anvil.values import Progress, silent
from anvil.wording import counted

MAX_REPLAYS, MAX_REPLAYS_OF_QUESTION = 160, 32
"""Pages that are restored in one comparison and for one question. Each takes a fraction of a second."""
MAX_BLAMED = 50
"""Questions that are explained, worse ones first."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two indexes, the parts of it that questions expect, and the outcomes."""

    reader: Reader
    parts: ExpectedParts
    outcomes: tuple[Outcome, ...]


def changed_pages(before: Reader, after: Reader, moved: dict[str, str]) -> tuple[ChangedPage, ...]:
    """The pages that differ between two indexes, sorted by path. ``moved``: new path -> old path."""
    changes = document_source.compare(before.identities(), after.identities())
    old_paths = set(moved.values())
    pages = [ChangedPage("changed", path, line=_line(before, path, after, path)) for path in changes.changed]
    pages += [ChangedPage("added", path) for path in changes.added if path not in moved]
    pages += [ChangedPage("removed", path) for path in changes.removed if path not in old_paths]
    pages += [ChangedPage("moved", path, old, _line(before, old, after, path)) for path, old in moved.items()]
    return tuple(sorted(pages, key=lambda page: page.file_path))


def _line(before: Reader, old_path: str, after: Reader, new_path: str) -> int | None:
    """The first line of a page's file that differs, 1-based; None if its text has other lines than the file."""
    old, new = before.document(old_path), after.document(new_path)
    if old is None or new is None:
        return 1
    sections = after.sections(new.id)
    text = page_text(after.page_chunks(new.id))
    if not all(is_parallel(text[s.start : s.end], s.start_line, s.end_line) for s in sections):
        return None
    first_line = (sections[0].start_line or 1) if sections else 1
    return first_difference(page_text(before.page_chunks(old.id)), text, first_line)


def compare(
    name: str, before: Side, after: Side, moved: dict[str, str], vectors: QuestionVectors, progress: Progress = silent
) -> Comparison:
    """The questions that got better and worse, and the pages to blame. ``name``: of the baseline, for reports.
    ``moved``: new path -> old path."""
    pages = changed_pages(before.reader, after.reader, moved)
    differences = []
    for number, (old, new) in enumerate(zip(before.outcomes, after.outcomes, strict=True)):
        kind = change(old, new)
        if kind is not None:
            page, line = _page_and_line(new, after, pages)
            differences.append((number, Difference(kind, old.status != new.status, old, new, page=page, line=line)))
    differences.sort(key=lambda pair: (pair[1].kind != "worse", not pair[1].decisive, pair[0]))
    old_settings, new_settings = before.reader.meta(), after.reader.meta()
    notes: tuple[str, ...] = ()
    if differing := ", ".join(key for key in SETTINGS if old_settings[key] != new_settings[key]):
        notes = (f"The two indexes were built with other settings ({differing}), so no page is to blame.",)
        explained = [replace(difference, reason=notes[0]) for _, difference in differences]
    else:
        with closing(_Replay(before.reader, after, pages, vectors)) as replay:
            explained = []
            for done, (_, difference) in enumerate(differences):
                progress("comparing", done, len(differences))
                explained.append(replay.explain(difference) if done < MAX_BLAMED else difference)
    rates = hit_rate(before.outcomes), mean_reciprocal_rank(before.outcomes)
    return Comparison(name, *rates, pages, tuple(explained), notes)


def _page_and_line(outcome: Outcome, after: Side, pages: Sequence[ChangedPage]) -> tuple[str, int | None]:
    """The expected page of a question, and the line to look at: its first edited line, else that of its section."""
    parts = after.parts.of(outcome.question)
    if not parts:
        if outcome.question.nothing and outcome.answers:
            return outcome.answers[0].file_path, outcome.answers[0].line
        return "", 1
    edited = {page.file_path: page.line for page in pages if page.kind in ("changed", "moved")}
    part = next((part for part in parts if part.file_path in edited), parts[0])
    return part.file_path, edited.get(part.file_path, part.line)


class _Replay:
    """A copy of the current index in which one page at a time is restored to the baseline."""

    def __init__(self, before: Reader, after: Side, pages: Sequence[ChangedPage], vectors: QuestionVectors) -> None:
        self._before, self._after = before, after
        self._pages, self._vectors = pages, vectors
        self._writer: Writer | None = None
        self._restored: ChangedPage | None = None
        self._replays = 0

    def explain(self, difference: Difference) -> Difference:
        """The difference with the page to blame, and a reason."""
        former_quality = _quality(difference.before)
        blame = None
        candidates = self._candidates(difference)[: min(MAX_REPLAYS_OF_QUESTION, MAX_REPLAYS - self._replays)]
        for page in candidates:
            self._replays += 1
            quality = _quality(self._asker_after_restoring(page).ask(difference.after.question))
            if quality >= former_quality if difference.kind == "worse" else quality <= former_quality:
                blame = page
                break
        return replace(difference, blame=blame, reason=_reason(difference, blame, len(candidates), len(self._pages)))

    def _candidates(self, difference: Difference) -> list[ChangedPage]:
        """The changed pages in the order in which they are tried: expected pages, pages in the results, other pages."""
        before, after = difference.before, difference.after
        names = [*after.question.pages, *(answer.file_path for answer in (*after.answers, *before.answers))]
        order = {name: place for place, name in reversed(list(enumerate(names)))}
        return sorted(self._pages, key=lambda page: min(order.get(path, len(names)) for path in _paths(page)))

    def _asker_after_restoring(self, page: ChangedPage) -> Asker:
        if self._writer is None:
            self._writer = Writer(connection.open_scratch(":memory:"))
            connection.fill(self._writer.connection, self._after.reader.connection)
        if page != self._restored:
            with self._writer.atomic():
                for changed, source in ((self._restored, self._after.reader), (page, self._before)):
                    for path in _paths(changed) if changed else ():
                        writer.restore_document(self._writer, source, path)
            self._restored = page
        moved = {page.file_path: page.old_path} if page.old_path else {}
        moved_back = moved | {new: moved.get(path, path) for new, path in self._after.parts.moved.items()}
        searcher = Searcher(FileIndex(self._writer.reader), self._vectors.provider)
        return Asker(searcher, ExpectedParts(self._writer.reader, moved_back), self._vectors)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def _paths(page: ChangedPage) -> tuple[str, ...]:
    return (page.file_path,) if page.old_path is None else (page.file_path, page.old_path)


_EDITED = {"added": "was added", "changed": "was edited", "removed": "was removed", "moved": "was moved"}


def _reason(difference: Difference, blame: ChangedPage | None, tried: int, changed: int) -> str:
    """A sentence on the reason why an answer changed. ``tried`` of the ``changed`` pages were restored."""
    if blame is None:
        if not changed:
            return "No page differs between the two."
        if tried < changed:
            return f"{tried} of the {changed} pages that changed were tried: none explains it alone."
        return f"None of the {counted(changed, 'page')} that changed explains it alone."
    event = f"{blame.file_path} {_EDITED[blame.kind]}" + (f" from {blame.old_path}" if blame.old_path else "")
    after = difference.after
    if {*after.question.pages} & {*_paths(blame)}:
        return f"Because {event}."
    rank = next((rank for rank, answer in enumerate(after.answers, 1) if answer.file_path == blame.file_path), 0)
    is_before_expected = difference.kind == "worse" and rank and (not after.rank or rank < after.rank)
    return f"Because {event}" + (f" and is now result {rank}." if is_before_expected else ".")


def change(before: Outcome, after: Outcome) -> Literal["better", "worse"] | None:
    """Whether the answer to a question got better or worse; None for neither."""
    if not (before.is_judged and after.is_judged):
        return None
    old, new = _quality(before), _quality(after)
    return None if old == new else "better" if new > old else "worse"


def _quality(outcome: Outcome) -> tuple[bool, float]:
    """The sort key of an outcome, higher for a better one: whether it passed, then the rank of the expected page."""
    return outcome.status == "pass", 1 / outcome.rank if outcome.rank else 0.0


# --- two texts of a page --------------------------------------------------------------------------------


def first_difference(old: str, new: str, first_line: int = 1) -> int:
    """The 1-based line of the first difference between two texts. ``new`` begins at ``first_line`` of its file.

    Two equal texts are of files that differ above them, in the front matter, so the line is 1.
    """
    if old == new:
        return 1
    old_lines, new_lines = old.splitlines(), new.splitlines() or [""]
    pairs = enumerate(zip(old_lines, new_lines, strict=False))
    equal_lines = next((number for number, (left, right) in pairs if left != right), len(old_lines))
    return first_line + min(equal_lines, len(new_lines) - 1)
