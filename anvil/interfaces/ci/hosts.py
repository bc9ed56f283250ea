"""Whoever runs the job: GitHub's runner, told by its workflow commands and files, or a terminal, told in plain lines.

File names, titles and messages come from the documents. A runner reads commands out of what a job prints, so
nothing is printed that was not made harmless first.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, Protocol

Level = Literal["notice", "warning", "error"]
LARGEST_SUMMARY = 1024 * 1024
"""Bytes that GitHub takes of a step's summary; a larger one is not shown at all."""
_CUT = "\n\n*The rest is left out: a summary holds 1 MiB.*\n"
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff]")


class Host(Protocol):
    """What a job may tell whoever runs it."""

    def line(self, text: str) -> None:
        """A line of the log."""

    def annotate(self, level: Level, message: str, file: str | None = None, line: int | None = None) -> None:
        """A message that stands out, at a line of a file of the checkout where that is known."""

    def output(self, values: Mapping[str, str]) -> None:
        """Values for the steps that follow."""

    def summarize(self, markdown: str) -> None:
        """Add to the summary that people read after the run."""


def host(environment: Mapping[str, str], say: Callable[[str], None], summary: str | None, values: bool = True) -> Host:
    """Who runs this job. ``say`` prints a line, on either stream: GitHub's runner reads commands from both (its
    ScriptHandler). ``summary``: a file for the summary, in place of GitHub's own; ``values``: whether the values for
    later steps are lines, too."""
    if environment.get("GITHUB_ACTIONS") == "true":
        own = environment.get("GITHUB_STEP_SUMMARY")
        return GitHub(say, environment.get("GITHUB_OUTPUT"), summary or own, values)
    return Plain(say, summary, values)


def visible(text: str) -> str:
    """``text`` on one line: what cannot be seen, breaks lines or turns the direction of writing is spelled out."""
    return _UNSEEN.sub(lambda found: _spelled(found[0]), text)


def _spelled(character: str) -> str:
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character) or f"\\u{ord(character):04x}"


class Plain:
    """A log that people read, such as GitLab's or a terminal. Outputs are ``name: value`` lines."""

    def __init__(self, say: Callable[[str], None], summary: str | None, values: bool = True) -> None:
        self._say = say
        self._summary = summary
        self._values = values

    def line(self, text: str) -> None:
        self._say(visible(text))

    def annotate(self, level: Level, message: str, file: str | None = None, line: int | None = None) -> None:
        place = "" if file is None else f"{file}:{line or 1}: "
        self.line(f"{level}: {place}{message}")

    def output(self, values: Mapping[str, str]) -> None:
        for name, value in values.items() if self._values else ():
            self.line(f"{name}: {value}")

    def summarize(self, markdown: str) -> None:
        if self._summary:
            _append(self._summary, bounded(markdown, _size(self._summary)))


class GitHub:
    """GitHub's runner. Its commands are described in the reference "Workflow commands for GitHub Actions"."""

    def __init__(
        self, say: Callable[[str], None], output: str | None, summary: str | None, values: bool = True
    ) -> None:
        self._say = say
        self._output = output
        self._summary = summary
        self._values = values

    def line(self, text: str) -> None:
        self._say(harmless(text))

    def annotate(self, level: Level, message: str, file: str | None = None, line: int | None = None) -> None:
        where = {} if file is None else {"file": file, "line": str(line or 1)}
        self._say(command(level, message, {**where, "title": "Anvil"}))

    def output(self, values: Mapping[str, str]) -> None:
        if self._output:
            _append(self._output, "".join(entry(name, value) for name, value in values.items()))
        for name, value in values.items() if self._values else ():
            self.line(f"{name}: {value}")

    def summarize(self, markdown: str) -> None:
        if self._summary:
            _append(self._summary, bounded(markdown, _size(self._summary)))


def command(name: str, message: str, properties: Mapping[str, str]) -> str:
    """A workflow command, escaped as the runner reads it: ``::warning file=a.md,line=1::message``."""
    told = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {told}::{_data(message)}"


def _data(text: str) -> str:
    return _spell_rare(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _spell_rare(text: str) -> str:
    return _UNSEEN.sub(lambda found: found[0] if found[0] in "\r\n" else _spelled(found[0]), text)


def harmless(text: str) -> str:
    """A line in which the runner finds no command: ``::name::`` counts at a line's start, ``##[name]`` anywhere."""
    plain = visible(text).replace("##[", "##\\[")
    return f"\\{plain}" if plain.lstrip().startswith("::") else plain


def entry(name: str, value: str) -> str:
    """A line or more of the file ``GITHUB_OUTPUT``; the delimiter is one that nobody can have foreseen."""
    if "\n" not in value and "\r" not in value:
        return f"{name}={value}\n"
    delimiter = f"end-{uuid.uuid4().hex}"
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"


def bounded(markdown: str, taken: int = 0) -> str:
    """``markdown``, cut at a line where it and the ``taken`` bytes before it would be more than a summary holds."""
    data = markdown.encode()
    if len(data) + taken <= LARGEST_SUMMARY:
        return markdown
    room = max(LARGEST_SUMMARY - taken - len(_CUT.encode()), 0)
    return data[:room].rpartition(b"\n")[0].decode("utf-8", "ignore") + (_CUT if room else "")


def _size(path: str) -> int:
    return os.path.getsize(path) if os.path.exists(path) else 0


def _append(path: str, text: str) -> None:
    with Path(path).open("a", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        file.write(text)
