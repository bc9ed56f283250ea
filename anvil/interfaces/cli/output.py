"""What the commands print: JSON for scripts, plain lines elsewhere, colour and a progress bar on a terminal.

Everything goes through :func:`say`: what documents hold must not give orders to a terminal.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from anvil.models.documents import Progress, silent

CONTROL = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters other than tab and newline."""
SGR = {"bold": "1", "red": "31", "green": "32", "yellow": "33", "magenta": "35", "cyan": "36"}
"""Names of colours and weights -> the numbers that a terminal knows them by."""
_SECRET = os.urandom(8).hex()  # no document can hold a mark of ours
_MARK = re.compile(f"\ue000{_SECRET}([0-9;]*)\ue001")
TOOLS = {
    "Use list_pages to discover available pages.": "'anvil list' names the pages.",
    "Use get_page to see available sections.": "'anvil show PAGE' prints the whole page.",
    "list_documents and search name the ids there are.": "'anvil library list' names the ids.",
    "as in list_pages": "as 'anvil list' prints it",
    "query parameter is required": "The question is empty. Write it after the command.",
}
"""What errors say to agents -> what they say on the command line."""


class ReaderGone(Exception):
    """Whoever read the output has closed it, as ``| head`` does; click would end the program with 1 for that."""


def say(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print text. On a terminal control characters are replaced, but for the colours that :func:`style` put in."""
    stream = sys.stderr if err else sys.stdout
    if stream.isatty():
        text = CONTROL.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))
    try:
        click.echo(_MARK.sub("\x1b[\\1m", text), err=err, nl=nl, color=True)  # as it is, in a pipe too
    except BrokenPipeError as error:
        raise ReaderGone from error


def coloured() -> bool:
    """Whether stdout shows colours: a terminal, and neither NO_COLOR nor TERM=dumb."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def style(text: str, *names: str) -> str:
    """Text in colours and weights of :data:`SGR`, for :func:`say`; the text alone where there are no colours."""
    if not coloured():
        return text
    codes = ";".join(SGR[name] for name in names)
    return f"\ue000{_SECRET}{codes}\ue001{text}\ue000{_SECRET}0\ue001"


def in_commands(message: str) -> str:
    """An error in the words of the command line: commands instead of tools, paths from the working folder."""
    for tool, command in TOOLS.items():
        message = message.replace(tool, command)
    return nearer(message)


def nearer(text: str) -> str:
    """Text with the paths below the working folder as one would type them."""
    try:
        here = os.getcwd()
    except OSError:  # it was removed
        return text
    if os.path.dirname(here) == here:
        return text
    return re.sub(rf"(?<![^\s'\"(=]){re.escape(here + os.sep)}(?=[^\s'\"])", "", text)


def print_json(value: Any) -> None:
    """One JSON document, in the field names of the tool contracts."""
    say(json.dumps(value, indent=2, ensure_ascii=False, default=_plain))


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    raise TypeError(f"{type(value).__name__} has no JSON form")


def warn(message: str) -> None:
    """One line on stderr."""
    say(f"anvil: {in_commands(message)}", err=True)


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
    elif sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
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
            say(f"anvil: {stage} {done} of {total}", err=True)
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

            console = Console(stderr=True)
            if not console.is_interactive:  # a terminal that cannot draw, or is asked not to
                self._start = float("inf")
                return
            self._rich = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=console,
                transient=True,
            )
            self._task = self._rich.add_task(stage, total=total)
            self._rich.start()
        self._rich.update(self._task, description=stage, completed=done, total=total)
