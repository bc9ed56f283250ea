"""What ingestion writes down beside the index: ``state.json``, ``ingestion.log`` and ``errors.log``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from anvil.backends import safe_write
from anvil.errors import BuildError
from anvil.models.context import Ingestion, TaskCounts
from anvil.models.documents import Skipped

INDEX, STATE, LOG, ERRORS = "index.db", "state.json", "ingestion.log", "errors.log"
STATE_VERSION = 2
"""Goes up when the same files give other tasks or metadata: an index of an older one is made anew."""


@dataclass(frozen=True, slots=True)
class State:
    """The last run: when it was, the hash of each file (git's blob id), what could not be done, and what it counted.

    The counts stand for an index with this ``digest``.
    """

    timestamp: str | None = None
    version: int = STATE_VERSION
    hashes: Mapping[str, str] = field(default_factory=dict)
    errors: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
    degraded: bool = False
    digest: str = ""
    embeddings: int = 0
    tasks: TaskCounts = field(default_factory=lambda: TaskCounts(0, 0))
    unmarked: str | None = None
    """The note on items of task lists without a known mark."""


class Records:
    """The files in one folder. What cannot be written raises :class:`BuildError`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seen: tuple[tuple[int, int] | None, State] = (None, State())

    @property
    def index(self) -> Path:
        """The index file."""
        return self.folder / INDEX

    def prepare(self) -> None:
        """Make the folder, and keep what is in it out of git."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            ignore = self.folder / ".gitignore"
            if safe_write.regular_file(ignore) is None:
                safe_write.write_file(ignore, "*\n")
        except OSError as error:
            raise BuildError(
                f"{self.folder} cannot be made ({error.strerror}). Choose another place with context.index_dir."
            ) from error

    def state(self) -> State:
        """What the last run wrote; an empty state where that is missing or damaged. Read again when it changed."""
        path = self.folder / STATE
        try:
            found = safe_write.regular_file(path)
            if found is None:
                return State()
            if self._seen[0] != (found.st_mtime_ns, found.st_ino):
                said = json.loads(path.read_text(encoding="utf-8"))
                said["errors"] = tuple(Skipped(**each) for each in said["errors"])
                state = State(**{**said, "notes": tuple(said["notes"]), "tasks": TaskCounts(**said["tasks"])})
                self._seen = (found.st_mtime_ns, found.st_ino), state
        except (BuildError, OSError, ValueError, KeyError, TypeError):  # the next run writes it anew
            return State()
        return self._seen[1]

    def write(self, run: Ingestion, state: State) -> None:
        """One run: a line in the log, its state, and a line for each error that the last run did not have."""
        new = [each for each in state.errors if each not in self.state().errors]
        try:
            self._append(ERRORS, [{"timestamp": run.timestamp, **asdict(each)} for each in new])
            self._append(LOG, [asdict(run)])
            text = json.dumps(asdict(state), ensure_ascii=False, indent=1) + "\n"
            safe_write.write_file(self.folder / STATE, text, replace=True)
        except OSError as error:
            raise BuildError(
                f"{self.folder} cannot be written ({error.strerror}). Check the folder's permissions."
            ) from error

    def _append(self, name: str, lines: Sequence[Mapping[str, Any]]) -> None:
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        if text:
            with open(self.folder / name, "a", encoding="utf-8", newline="\n", opener=safe_write.opener) as file:
                file.write(text)
