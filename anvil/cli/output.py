"""What the commands print: JSON for scripts, plain lines elsewhere, colour and a progress bar on a terminal."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from anvil.models import Progress, silent


def print_json(value: Any) -> None:
    """One JSON document, in the field names of the tool contracts."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, default=_plain))


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    raise TypeError(f"{type(value).__name__} has no JSON form")


def warn(message: str) -> None:
    """One line on stderr that is not an error."""
    click.echo(f"anvil: {message}", err=True)


def relative(path: str | Path) -> str:
    """A path as one would type it: from the working folder, when it lies below."""
    try:
        return Path(path).resolve().relative_to(Path.cwd().resolve()).as_posix()
    except ValueError:
        return str(path)


@contextmanager
def progress(quiet: bool = False) -> Iterator[Progress]:
    """A bar on a terminal, a plain line every few seconds elsewhere, both on stderr; nothing within a second."""
    if quiet:
        yield silent
    elif sys.stderr.isatty():
        with _Bar() as bar:
            yield bar
    else:
        yield _Lines()


class _Lines:
    """Says how far it is every five seconds."""

    def __init__(self) -> None:
        self._next = time.monotonic() + 1.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        if total > 1 and now >= self._next:
            click.echo(f"anvil: {stage} {done} of {total}", err=True)
            self._next = now + 5.0


class _Bar:
    """A progress bar; rich is imported when the first second has passed."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._rich: Any = None
        self._task: Any = None

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._rich is not None:
            self._rich.stop()

    def __call__(self, stage: str, done: int, total: int) -> None:
        if self._rich is None:
            if time.monotonic() - self._start < 0.5:
                return
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            self._rich = Progress(
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
                console=Console(stderr=True), transient=True,
            )  # fmt: skip
            self._task = self._rich.add_task(stage, total=total)
            self._rich.start()
        self._rich.update(self._task, description=stage, completed=done, total=total)
