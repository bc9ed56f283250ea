"""A block of generated text between two marker lines of a file that people write, too.

A marker names the documentation folder, so that one file can have the pointers to several. What is outside of the
markers stays as it is, byte for byte; the block has the line ends of the file.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

from anvil.errors import ConfigError

_MARKER = re.compile(r"^<!-- (end of )?anvil agents: ([^\s<>]+) -->[ \t]*(?:\r?\n|\r|\Z)", re.M)
_LINE_END = re.compile(r"\r\n|\r|\n")


class MarkedBlock(NamedTuple):
    """A block: the documentation folder that it is about, and its span with both markers."""

    docs: str
    start: int
    end: int


def markers(docs: str) -> tuple[str, str]:
    """The line that begins the block of a documentation folder, and the line that ends it."""
    name = quote(docs, safe="/._~").replace("--", "-%2D")
    return f"<!-- anvil agents: {name} -->", f"<!-- end of anvil agents: {name} -->"


def blocks(text: str, file: str) -> list[MarkedBlock]:
    """The blocks of ``text``, in order. ``file``: its name, for messages.

    Raises :class:`ConfigError` for a marker without the other one, and for a folder with several blocks.
    """
    spans: list[MarkedBlock] = []
    begun: re.Match[str] | None = None
    for marker in _MARKER.finditer(text):
        if marker[1] is None:
            if begun is not None:
                raise _unpaired(begun, file)
            begun = marker
        elif begun is None or begun[2] != marker[2]:
            raise _unpaired(begun or marker, file)
        else:
            spans.append(MarkedBlock(unquote(marker[2]), begun.start(), marker.end()))
            begun = None
    if begun is not None:
        raise _unpaired(begun, file)
    names = [span.docs for span in spans]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(
                f"{file} has {names.count(name)} blocks of 'anvil agents' for {name}. Leave one, and try again."
            )
    return spans


def _unpaired(marker: re.Match[str], file: str) -> ConfigError:
    line = marker.string.count("\n", 0, marker.start()) + 1
    other = "before" if marker[1] else "behind"
    return ConfigError(
        f"{file} has one marker of 'anvil agents' without its counterpart {other} it: line {line}, "
        f"'{marker[0].strip()}'. Remove that line, or put the other one back. The file was left as it is."
    )


def body(text: str, block: MarkedBlock) -> str:
    """What is between the markers, with ``\\n`` as line end."""
    lines = _LINE_END.sub("\n", text[block.start : block.end]).rstrip("\n").split("\n")
    return "\n".join(lines[1:-1])


def replaced(text: str, docs: str, body: str, file: str) -> str:
    """``text`` with ``body`` as the block of ``docs``: in its place, or behind the rest."""
    end = "\r\n" if "\r\n" in text else "\n"
    first, last = markers(docs)
    lines = end.join([first, *body.split("\n"), last])
    block = next((block for block in blocks(text, file) if block.docs == docs), None)
    if block is not None:
        line_end = _LINE_END.search(text[block.end - 2 : block.end])
        tail = line_end[0] if line_end else ""
        return f"{text[: block.start]}{lines}{tail}{text[block.end :]}"
    gap = end if text else ""  # a blank line, or the line end that the text lacks
    return f"{text}{gap}{lines}{end}"


def with_blocks_of(text: str, other: str, file: str) -> str:
    """``text`` with the blocks of ``other`` in place of its own for the same folders."""
    for block in blocks(other, file):
        if any(own.docs == block.docs for own in blocks(text, file)):
            text = replaced(text, block.docs, body(other, block), file)
    return text


def removed(text: str, docs: str, file: str) -> str:
    """``text`` without the block of ``docs`` and the line end that :func:`replaced` put before it."""
    for block in blocks(text, file):
        if block.docs == docs:
            before, behind = text[: block.start], text[block.end :]
            line_end = "\r\n" if before.endswith("\r\n") else "\n"
            if not behind or before.endswith(line_end * 2) or before == line_end:
                before = before.removesuffix(line_end)
            return before + behind
    return text
