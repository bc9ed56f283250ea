"""The program that runs the job: GitHub's runner, which reads workflow commands and files, or a plain log.

File names, titles and messages come from the documents. A runner executes commands that it finds in the output, so all
text is escaped before it is printed.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

Level = Literal["notice", "warning", "error"]
MAX_SUMMARY_BYTES = 1024 * 1024
"""GitHub's limit for a step's summary. It does not show a larger one."""
_CUT = "\n\n*The rest is left out: a summary can have 1 MiB.*\n"
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff]")


def runner(
    environment: Mapping[str, str], say: Callable[[str], None], summary: str | None, values: bool = True
) -> Runner:
    """The runner of this job, by the environment. ``say`` prints a line. It may use stdout or stderr: GitHub's runner
    reads commands from both (its ScriptHandler). ``summary``: a file for the summary instead of GitHub's own.
    ``values``: whether the values for later steps are printed, too."""
    if environment.get("GITHUB_ACTIONS") == "true":
        own = environment.get("GITHUB_STEP_SUMMARY")
        return GitHub(say, environment.get("GITHUB_OUTPUT"), summary or own, values)
    return Runner(say, summary, values)


def visible(text: str) -> str:
    """``text`` on one line. Invisible characters, line breaks and marks of the writing direction are escaped."""
    return _UNSEEN.sub(lambda match: _spelled(match[0]), text)


def _spelled(character: str) -> str:
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character) or f"\\u{ord(character):04x}"


class Runner:
    """The outputs of a job, in a plain log, such as GitLab's or a terminal."""

    def __init__(self, say: Callable[[str], None], summary: str | None, values: bool = True) -> None:
        self._say = say
        self._summary = summary
        self._values = values

    def line(self, text: str) -> None:
        """Print a line in the log."""
        self._say(visible(text))

    def annotate(self, level: Level, message: str, file: str | None = None, line: int | None = None) -> None:
        """Print a message with a level, at a line of a file in the checkout if these are known."""
        place = "" if file is None else f"{file}:{line or 1}: "
        self.line(f"{level}: {place}{message}")

    def output(self, values: Mapping[str, str]) -> None:
        """Set values for later steps: lines ``name: value``."""
        for name, value in values.items() if self._values else ():
            self.line(f"{name}: {value}")

    def summarize(self, markdown: str) -> None:
        """Append to the summary of the run."""
        if self._summary:
            _append(self._summary, bounded(markdown, _size(self._summary)))


class GitHub(Runner):
    """GitHub's runner. Its documentation is "Workflow commands for GitHub Actions"."""

    def __init__(
        self, say: Callable[[str], None], output: str | None, summary: str | None, values: bool = True
    ) -> None:
        super().__init__(say, summary, values)
        self._output = output

    def line(self, text: str) -> None:
        """See :meth:`Runner.line`."""
        self._say(harmless(text))

    def annotate(self, level: Level, message: str, file: str | None = None, line: int | None = None) -> None:
        """See :meth:`Runner.annotate`."""
        where = {} if file is None else {"file": file, "line": str(line or 1)}
        self._say(command(level, message, {**where, "title": "Anvil"}))

    def output(self, values: Mapping[str, str]) -> None:
        """See :meth:`Runner.output`; they are written into a file of the runner, too."""
        if self._output:
            _append(self._output, "".join(entry(name, value) for name, value in values.items()))
        super().output(values)


def command(name: str, message: str, properties: Mapping[str, str]) -> str:
    """A workflow command, escaped as the runner reads it: ``::warning file=a.md,line=1::message``."""
    assignments = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {assignments}::{_data(message)}"


def _data(text: str) -> str:
    return _spell_rare(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _spell_rare(text: str) -> str:
    return _UNSEEN.sub(lambda match: match[0] if match[0] in "\r\n" else _spelled(match[0]), text)


def harmless(text: str) -> str:
    """A line without a workflow command: ``::name::`` is one at a line's start, ``##[name]`` anywhere."""
    plain = visible(text).replace("##[", "##\\[")
    return f"\\{plain}" if plain.lstrip().startswith("::") else plain


def entry(name: str, value: str) -> str:
    """An entry of the file ``GITHUB_OUTPUT``. The delimiter is random, so that no value can contain it."""
    if "\n" not in value and "\r" not in value:
        return f"{name}={value}\n"
    delimiter = f"end-{uuid.uuid4().hex}"
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"


def bounded(markdown: str, taken: int = 0) -> str:
    """``markdown``, cut at the end of a line so that with the ``taken`` bytes before it, it fits a summary."""
    data = markdown.encode()
    if len(data) + taken <= MAX_SUMMARY_BYTES:
        return markdown
    room = max(MAX_SUMMARY_BYTES - taken - len(_CUT.encode()), 0)
    return data[:room].rpartition(b"\n")[0].decode("utf-8", "ignore") + (_CUT if room else "")


def _size(path: str) -> int:
    return os.path.getsize(path) if os.path.exists(path) else 0


def _append(path: str, text: str) -> None:
    with Path(path).open("a", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        file.write(text)
