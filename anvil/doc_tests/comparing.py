"""Compare two runs of a suite, and find the edited pages that make the difference.

The page to blame is found by replay: in a copy of the current index, pages are restored to the baseline, and the
question is asked again. A page is to blame when restoring it alone gives the former answer. If no single page does, a
smallest set of pages is searched for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from anvil.doc_tests.judging import Asker, ExpectedParts, QuestionVectors, hit_rate, mean_reciprocal_rank
from anvil.doc_tests.values import ChangedPage, Comparison, Difference, Outcome, Question
from anvil.documents import document_source
from anvil.index_file import connection, writer
from anvil.index_file.manifests import SETTINGS
from anvil.index_file.reader import Reader
from anvil.index_file.table_rows import is_parallel
from anvil.index_file.writer import Writer
from anvil.search.pages import page_text
from anvil.search.searcher import Searcher
from anvil.search.vectors_and_keywords import FileIndex
from anvil.values import Progress, silent
from anvil.wording import counted, listed

Item = TypeVar("Item")
MAX_REPLAYS, MAX_REPLAYS_OF_QUESTION = 160, 32
"""Sets of pages that are restored, in one comparison and for one question; each costs a fraction of a second."""
MAX_BLAMED = 50
"""Questions that are explained, worse ones first."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two indexes, the targets of the expectations in it, and the outcomes."""

    reader: Reader
    targets: ExpectedParts
    outcomes: tuple[Outcome, ...]


def changed_pages(before: Reader, after: Reader, moved: dict[str, str]) -> tuple[ChangedPage, ...]:
    """How the pages of two indexes differ, sorted by path. ``moved``: new path -> old path."""
    changes = document_source.compare(before.identities(), after.identities())
    gone = set(moved.values())
    pages = [ChangedPage("changed", path, line=_line(before, path, after, path)) for path in changes.changed]
    pages += [ChangedPage("added", path) for path in changes.added if path not in moved]
    pages += [ChangedPage("removed", path) for path in changes.removed if path not in gone]
    pages += [ChangedPage("moved", path, old, _line(before, old, after, path)) for path, old in moved.items()]
    return tuple(sorted(pages, key=lambda page: page.file_path))


def _line(before: Reader, old: str, after: Reader, new: str) -> int | None:
    first, second = before.document(old), after.document(new)
    if first is None or second is None:
        return 1
    sections = after.sections(second.id)
    text = page_text(after.page_chunks(second.id))
    if not all(is_parallel(text[s.start : s.end], s.start_line, s.end_line) for s in sections):
        return None  # lines of the text are not those of the file
    begin = (sections[0].start_line or 1) if sections else 1
    return first_difference(page_text(before.page_chunks(first.id)), text, begin)


def compare(
    name: str,
    questions: Sequence[Question],
    before: Side,
    after: Side,
    moved: dict[str, str],
    vectors: QuestionVectors,
    progress: Progress = silent,
) -> Comparison:
    """What got better and worse, and because of which pages. ``moved``: new -> old path."""
    pages = changed_pages(before.reader, after.reader, moved)
    differences = []
    for number, (old, new) in enumerate(zip(before.outcomes, after.outcomes, strict=True)):
        kind = change(old, new)
        if kind is not None:
            decisive = old.status != new.status
            page, line = _place(questions[number], new, after, pages)
            differences.append(
                (number, Difference(new.ask, new.expected, kind, decisive, old, new, page=page, line=line))
            )
    differences.sort(key=lambda pair: (pair[1].kind != "worse", not pair[1].decisive, pair[0]))
    old_settings, new_settings = before.reader.meta(), after.reader.meta()
    notes: tuple[str, ...] = ()
    if differing := ", ".join(key for key in SETTINGS if old_settings[key] != new_settings[key]):
        notes = (f"The two indexes were built with other settings ({differing}), so no page is to blame.",)
        explained = [replace(difference, reason=notes[0]) for _, difference in differences]
    else:
        with closing(_Replay(before.reader, after, pages, vectors)) as replay:
            explained = []
            for done, (number, difference) in enumerate(differences):
                progress("comparing", done, len(differences))
                explained.append(replay.explained(questions[number], difference) if done < MAX_BLAMED else difference)
    rates = hit_rate(before.outcomes), mean_reciprocal_rank(before.outcomes)
    return Comparison(name, *rates, pages, tuple(explained), notes)


def _place(question: Question, outcome: Outcome, after: Side, pages: Sequence[ChangedPage]) -> tuple[str, int | None]:
    """The page that a question is about, and the line to look at: where the page was edited, else its section."""
    targets = [target for page in question.expect if (target := after.targets.get(page)) is not None]
    if not targets:
        first = outcome.answers[:1] if question.nothing else ()
        return next(((answer.file_path, answer.line) for answer in first), ("", 1))
    edited = {page.file_path: page.line for page in pages if page.kind in ("changed", "moved")}
    target = next((target for target in targets if target.file_path in edited), targets[0])
    return target.file_path, edited.get(target.file_path, target.line)


class _TooManyReplaysError(Exception):
    """The limit of restored sets of pages is reached."""


class _Replay:
    """A copy of the current index in which pages are restored to the baseline."""

    def __init__(self, before: Reader, after: Side, pages: Sequence[ChangedPage], vectors: QuestionVectors) -> None:
        self._before, self._after = before, after
        self._pages, self._vectors = pages, vectors
        self._writer: Writer | None = None
        self._back: frozenset[ChangedPage] = frozenset()
        """The pages that are restored in the copy now."""
        self._asker: Asker | None = None
        self._replays = self._allowed = 0
        """Sets of pages that were restored so far, and that may be for the current question."""
        self._answers: dict[tuple[frozenset[ChangedPage], Question], Outcome] = {}

    def explained(self, question: Question, difference: Difference) -> Difference:
        """The difference with the pages to blame, and a reason."""
        before, after = difference.before, difference.after
        worse = difference.kind == "worse"

        def is_undone(pages: Sequence[ChangedPage]) -> bool:
            outcome = self._ask(question, frozenset(pages))
            return _quality(outcome) >= _quality(before) if worse else _quality(outcome) <= _quality(before)

        related = self._related(question, before, after)
        self._allowed = min(self._replays + MAX_REPLAYS_OF_QUESTION, MAX_REPLAYS)
        # The cheapest and most frequent cause first: one page that the question is about, then several of these, then
        # any of the pages.
        try:
            single = next(((page,) for page in related if is_undone([page])), ())
            blame = single or smallest_set(related, is_undone) or smallest_set(self._pages, is_undone)
        except _TooManyReplaysError:
            blame = ()
        return replace(difference, blame=blame, reason=_reason(difference, blame, self._pages, question))

    def _related(self, question: Question, before: Outcome, after: Outcome) -> list[ChangedPage]:
        """The changed pages that the question expects, then those among its results."""
        names = [expectation.page for expectation in question.expect]
        names += [answer.file_path for answer in (*after.answers, *before.answers)]
        order = {name: place for place, name in reversed(list(enumerate(names)))}
        places = {page: min(order.get(path, len(names)) for path in _paths(page)) for page in self._pages}
        return sorted((page for page in self._pages if places[page] < len(names)), key=lambda page: places[page])

    def _ask(self, question: Question, back: frozenset[ChangedPage]) -> Outcome:
        key = (back, question)
        if key not in self._answers:
            self._answers[key] = self._with(back).ask(question)
        return self._answers[key]

    def _with(self, back: frozenset[ChangedPage]) -> Asker:
        if self._writer is None:
            self._writer = Writer(connection.open_scratch(":memory:"))
            connection.fill(self._writer.connection, self._after.reader.connection)
        if self._asker is None or back != self._back:
            if self._replays >= self._allowed:
                raise _TooManyReplaysError
            with self._writer.atomic():  # only pages that differ from the last set are written
                for page in sorted(self._back ^ back, key=lambda page: page.file_path):
                    source = self._before if page in back else self._after.reader
                    for path in _paths(page):
                        writer.put_back(self._writer, source, path)
            self._back = back
            self._replays += 1
            old = {page.file_path: page.old_path for page in back if page.old_path}
            moved_back = old | {page: old.get(path, path) for page, path in self._after.targets.moved.items()}
            searcher = Searcher(FileIndex(self._writer.reader), self._vectors.provider)
            self._asker = Asker(searcher, ExpectedParts(self._writer.reader, moved_back), self._vectors)
        return self._asker

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def _paths(page: ChangedPage) -> tuple[str, ...]:
    return (page.file_path,) if page.old_path is None else (page.file_path, page.old_path)


_EDITED = {"added": "was added", "changed": "was edited", "removed": "was removed", "moved": "was moved"}


def _reason(
    difference: Difference, blame: Sequence[ChangedPage], pages: Sequence[ChangedPage], question: Question
) -> str:
    """Why the answer to a question changed: a sentence."""
    if not blame:
        if not pages:
            return "No page differs between the two."
        return f"No small set of the {counted(len(pages), 'page')} that changed explains it."
    expected = {expectation.page for expectation in question.expect}
    if len(blame) > 1:
        return f"Because of {listed([page.file_path for page in blame])} together."
    page = blame[0]
    event = f"{page.file_path} {_EDITED[page.kind]}" + (f" from {page.old_path}" if page.old_path else "")
    if expected & set(_paths(page)):
        return f"Because {event}."
    rank = next((n for n, answer in enumerate(difference.after.answers, 1) if answer.file_path == page.file_path), 0)
    overtook = difference.kind == "worse" and rank and (not difference.after.rank or rank < difference.after.rank)
    return f"Because {event}" + (f" and is now result {rank}." if overtook else ".")


def change(before: Outcome, after: Outcome) -> Literal["better", "worse"] | None:
    """How a question changed: by whether it passes, then by the rank of the expected page."""
    if not (before.is_judged and after.is_judged):
        return None
    old, new = _quality(before), _quality(after)
    return None if old == new else "better" if new > old else "worse"


def _quality(outcome: Outcome) -> tuple[bool, float]:
    """How good an outcome is: higher is better."""
    return outcome.status == "pass", 1 / outcome.rank if outcome.rank else 0.0


def smallest_set(items: Sequence[Item], suffices: Callable[[Sequence[Item]], bool]) -> tuple[Item, ...]:
    """A smallest set of ``items`` that suffices: without any one of its members it does not.

    The whole is halved again and again, as in delta debugging (Zeller and Hildebrandt 2002, ddmin). Empty when even all
    do not suffice. What ``suffices`` raises is passed on.
    """
    least = tuple(items) if items and suffices(items) else ()
    size = len(least) // 2
    while size:
        for start in range(0, len(least), size):
            rest = least[:start] + least[start + size :]
            if rest and suffices(rest):
                least = rest
                size = min(size, max(len(least) // 2, 1))
                break
        else:
            size = size // 2
    return least


# --- two texts of a page --------------------------------------------------------------------------------


def first_difference(old: str, new: str, first_line: int = 1) -> int:
    """The 1-based line at which ``new``, which begins at ``first_line``, stops saying what ``old`` says.

    Equal texts differ above: in the front matter, at line 1.
    """
    if old == new:
        return 1
    before, lines = old.splitlines(), new.splitlines() or [""]
    pairs = enumerate(zip(before, lines, strict=False))
    same = next((number for number, (left, right) in pairs if left != right), len(before))
    return first_line + min(same, len(lines) - 1)
