"""The output of the commands: JSON for scripts, lines for people, colours and a progress bar on a terminal.

Commands print with :func:`say`, which removes control sequences of terminals, since documents may contain them. Every
start imports this module, so functions import modules that only they need themselves.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

import click

from anvil.formats.characters import without_control

if TYPE_CHECKING:
    from pathlib import Path

    from anvil.values import Progress


SGR = {"bold": "1", "red": "31", "green": "32", "yellow": "33", "magenta": "35", "cyan": "36"}
"""Name of a colour or weight -> its SGR code."""
_SECRET = os.urandom(8).hex()  # no document can contain a mark of :func:`style`, because it cannot know this number
_MARK = re.compile(f"\ue000{_SECRET}([0-9;]*)\ue001")
COMMAND_LINE_WORDING = {
    "Use list_pages to discover available pages.": "'anvil list' names the pages.",
    "Use get_page to see available sections.": "'anvil show PAGE' prints the whole page.",
    "list_documents and search name the ids there are.": "'anvil library list' names the ids.",
    "or see list_documents.": "or see 'anvil library list'.",
    "Start Anvil with --allow-private-urls, or with ANVIL_LIBRARY_ALLOW_PRIVATE_URLS=true, to": (
        "Set ANVIL_LIBRARY_ALLOW_PRIVATE_URLS=true to"
    ),
    "as in list_pages": "as 'anvil list' prints it",
    "get_status says why.": "'anvil status' says why.",
    "Give one of these as heading_path.": "Give one of these as HEADING.",
    "query parameter is required": "The question is empty. Write it after the command.",
    "pattern parameter is required": "The pattern is empty. Write it after the command.",
}
"""Part of an error message for agents -> its wording for the command line."""
project_options: dict[str, str] = {}
"""The options of this call that name its documents and its index. A command in a message needs them, too."""
_COMMAND = re.compile(
    r"(['`]|: )anvil (build|doctor|git install|list|show|status|test)\b((?: --[a-z-]+(?: '[^']*'| [^\s'`-][^\s'`]*)?)*)"
)
"""A command in a message, with its options."""


def say(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print text. On a terminal, control characters are replaced, except the colours of :func:`style`.

    If the reader has closed the pipe, as ``| head`` does, later output is dropped, and the command ends as usual.
    """
    stream = sys.stderr if err else sys.stdout
    if stream.isatty():
        text = without_control(text)
    try:
        # color=True: click would remove control sequences of documents in a pipe, and a pipe gets them unchanged
        click.echo(_MARK.sub("\x1b[\\1m", text), err=err, nl=nl, color=True)
    except BrokenPipeError:
        discard(stream)


def discard(stream: TextIO) -> None:
    """Drop all later output to ``stream``, and output that is still in its buffer."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def style(text: str, *names: str) -> str:
    """Text with colours and weights of :data:`SGR`, for :func:`say`. It is the text itself if stdout is no terminal
    that shows colours, and with NO_COLOR."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    codes = ";".join(SGR[name] for name in names)
    return f"\ue000{_SECRET}{codes}\ue001{text}\ue000{_SECRET}0\ue001"


def in_commands(message: str) -> str:
    """An error message with commands instead of tools, and with paths relative to the working folder."""
    for tool_text, command_text in COMMAND_LINE_WORDING.items():
        message = message.replace(tool_text, command_text)
    if project_options:
        message = _COMMAND.sub(_with_options, message)
    return with_relative_paths(message)


def _with_options(command: re.Match[str]) -> str:
    """A command with the :data:`project_options` that it lacks and takes. The option ``--site`` names an index, too."""
    from anvil.system import installation

    before, name, options = command.groups()
    excluded = set(re.findall(r" --([a-z]+)", options))
    excluded |= {"index"} if "site" in excluded else set()
    excluded |= {"site", "provider"} if name != "build" else set()
    chosen = [(option, value) for option, value in project_options.items() if option not in excluded]
    words = [word for option, value in chosen for word in (f"--{option}", value)]
    return before + installation.line(["anvil", *name.split(), *words]) + options


def with_relative_paths(text: str) -> str:
    """Text in which paths below the working folder are relative to it."""
    try:
        working_folder = os.getcwd()
    except OSError:  # it was removed
        return text
    if os.path.dirname(working_folder) == working_folder:  # the root, which all absolute paths are below
        return text
    return re.sub(rf"(?<![^\s'\"(=]){re.escape(working_folder + os.sep)}(?=[^\s'\"])", "", text)


def print_json(value: Any) -> None:
    """Print one JSON document. Its fields have the names that they have in the results of tools."""
    import json

    from anvil.formats.data_formats import plain

    say(json.dumps(plain(value), indent=2, ensure_ascii=False))


def say_lines(text: str) -> None:
    """Print the lines of a passage that are not blank, as the search commands show them."""
    for line in text.splitlines():
        if line.strip():
            say(f"   | {line}")


def warn(message: str) -> None:
    """Print a message on stderr, after ``anvil:``."""
    say(f"anvil: {in_commands(message)}", err=True)


def write_file(path: str, text: str, option: str) -> None:
    """Write a file that an option names. Raises :class:`ConfigError` if that is not possible."""
    from anvil.errors import ConfigError

    try:
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}. Name another file with {option}.") from None


def relative(path: str | Path) -> str:
    """A path relative to the working folder if it is below it, else absolute."""
    from pathlib import Path

    try:
        return Path(os.path.abspath(path)).relative_to(Path.cwd()).as_posix()
    except ValueError:
        return os.path.normpath(path)


@contextmanager
def progress(quiet: bool = False) -> Iterator[Progress]:
    """A context with progress on stderr: a bar on a terminal, else a line each five seconds. Short work has neither."""
    if quiet:
        from anvil.values import silent

        yield silent
    elif sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        bar = _Bar()
        try:
            yield bar
        finally:
            bar.stop()
    else:
        from anvil.build.report import ProgressLines

        yield ProgressLines(warn, first_s=1.0)


BAR_DELAY_S = 0.5
"""Time after which a progress bar is drawn."""


class _Bar:
    """A progress bar with the name of the stage before it. Each stage begins with an empty bar."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._stage = ""
        self._bar: Any = None

    def stop(self) -> None:
        """Remove the bar, and show the cursor again."""
        if self._bar is not None:
            click.echo("\r\x1b[K\x1b[?25h", err=True, nl=False, color=True)

    def __call__(self, stage: str, done: int, total: int) -> None:
        if time.monotonic() - self._start < BAR_DELAY_S:
            return
        if self._bar is None or stage != self._stage:
            self.stop()  # the last bar may be longer than the new one
            self._stage = stage
            label = with_relative_paths(stage)
            self._bar = click.progressbar(length=total, label=label, file=sys.stderr, show_pos=True)
            # An update by zero steps draws nothing, and the first batch of a stage may take a minute.
            self._bar.render_progress()
        self._bar.length, self._bar.finished = total, False
        self._bar.update(done - self._bar.pos)


OK = 0
"""Exit code: done."""
NO = 1
"""Exit code: the answer is no, such as stale, refused or different."""
ERROR = 2
"""Exit code: an error, or wrong arguments."""
