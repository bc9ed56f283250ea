"""The files that an ingestion writes next to the index: ``state.json``, ``ingestion.log`` and ``errors.log``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from anvil.context.values import Ingestion, TaskCounts
from anvil.errors import BuildError
from anvil.system import safe_files
from anvil.values import Skipped

INDEX, STATE, LOG, ERRORS = "index.db", "state.json", "ingestion.log", "errors.log"
STATE_VERSION = 2
"""Raised when the same files give other tasks or metadata. An index of an older version is built again."""
MAX_STATE_BYTES = 100_000_000
"""A larger file with the state of the last run is not read: it counts as damaged."""


@dataclass(frozen=True, slots=True)
class State:
    """The last run: its time, the hash of each file (git's blob id), errors, notes and counts.

    The counts are those of the index with this ``digest``.
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
    """The note on items of task lists with an unknown mark."""


class Records:
    """The files in one folder. Methods that write raise :class:`BuildError` when they cannot."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seen: tuple[tuple[int, int] | None, State] = (None, State())

    @property
    def index(self) -> Path:
        return self.folder / INDEX

    def prepare(self) -> None:
        """Make the folder, with a ``.gitignore`` for its files."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            ignore = self.folder / ".gitignore"
            if safe_files.regular_file(ignore) is None:
                safe_files.write_file(ignore, "*\n")
        except OSError as error:
            raise BuildError(
                f"{self.folder} cannot be created ({error.strerror}). Choose another place with context.index_dir."
            ) from error

    def state(self) -> State:
        """The state of the last run; an empty one if the file is missing or damaged. It is cached until it changes."""
        path = self.folder / STATE
        try:
            status = safe_files.regular_file(path)
            if status is None:
                return State()
            if self._seen[0] != (status.st_mtime_ns, status.st_ino):
                fields = json.loads(safe_files.text(path, MAX_STATE_BYTES))
                fields["errors"] = tuple(Skipped(**error) for error in fields["errors"])
                state = State(**{**fields, "notes": tuple(fields["notes"]), "tasks": TaskCounts(**fields["tasks"])})
                self._seen = (status.st_mtime_ns, status.st_ino), state
        except (BuildError, OSError, ValueError, KeyError, TypeError):  # the next run writes it again
            return State()
        return self._seen[1]

    def write(self, run: Ingestion, state: State) -> None:
        """Write a run: a line in the log, its state, and a line for each error that the last run did not have."""
        new = [error for error in state.errors if error not in self.state().errors]
        try:
            self._append(ERRORS, [{"timestamp": run.timestamp, **asdict(error)} for error in new])
            self._append(LOG, [asdict(run)])
            text = json.dumps(asdict(state), ensure_ascii=False, indent=1) + "\n"
            safe_files.write_file(self.folder / STATE, text, replace=True)
        except OSError as error:
            raise BuildError(
                f"{self.folder} cannot be written ({error.strerror}). Check the folder's permissions."
            ) from error

    def _append(self, name: str, lines: Sequence[Mapping[str, Any]]) -> None:
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        if text:
            with open(self.folder / name, "a", encoding="utf-8", newline="\n", opener=safe_files.opener) as file:
                file.write(text)
