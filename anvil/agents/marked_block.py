"""Blocks between two marker lines: reading, writing and removing one in a text whose other bytes stay."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import NamedTuple
from urllib.parse import quote, unquote

from anvil.errors import ConfigError
from anvil.formats.characters import LINE_END

_MARKER_LINE = re.compile(r"^<!-- (end of )?anvil agents: ([^\s<>]+) -->[ \t]*(?:\r?\n|\r|\Z)", re.M)


class MarkedBlock(NamedTuple):
    """A block: the documentation folder that it is about, and its span in the text with both markers."""

    docs: str
    start: int
    end: int


def markers(docs: str) -> tuple[str, str]:
    """The line that begins the block of a documentation folder, and the line that ends it."""
    name = quote(docs, safe="/._~").replace("--", "-%2D")  # two hyphens could end the comment
    return f"<!-- anvil agents: {name} -->", f"<!-- end of anvil agents: {name} -->"


def blocks(text: str, file: str) -> list[MarkedBlock]:
    """The blocks of ``text``, in order. ``file``: its name, for messages.

    Raises :class:`ConfigError` for a marker without the other one, and for a folder with several blocks.
    """
    spans: list[MarkedBlock] = []
    marker_lines = list(_MARKER_LINE.finditer(text))
    for first, last in zip_longest(marker_lines[::2], marker_lines[1::2]):
        if first[1] is not None or last is None or last[1] is None or first[2] != last[2]:
            raise _unpaired_marker(first, file)
        spans.append(MarkedBlock(unquote(first[2]), first.start(), last.end()))
    names = [span.docs for span in spans]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(
                f"{file} has {names.count(name)} blocks of 'anvil agents' for {name}. Leave one, and try again."
            )
    return spans


def _unpaired_marker(marker: re.Match[str], file: str) -> ConfigError:
    line = marker.string.count("\n", 0, marker.start()) + 1
    direction = "before" if marker[1] else "behind"
    return ConfigError(
        f"{file} has one marker of 'anvil agents' without its counterpart {direction} it: line {line}, "
        f"'{marker[0].strip()}'. Remove that line, or put the other one back. The file was left as it is."
    )


def block_body(text: str, block: MarkedBlock) -> str:
    """The text between the markers, with ``\\n`` as line end."""
    lines = LINE_END.sub("\n", text[block.start : block.end]).rstrip("\n").split("\n")
    return "\n".join(lines[1:-1])


def with_block(text: str, docs: str, body: str, file: str) -> str:
    """``text`` with ``body`` as the block of ``docs``, in place of the block that it has, or at the end."""
    end = "\r\n" if "\r\n" in text else "\n"
    first, last = markers(docs)
    lines = end.join([first, *body.split("\n"), last])
    block = next((block for block in blocks(text, file) if block.docs == docs), None)
    if block is not None:
        line_end = LINE_END.search(text[block.end - 2 : block.end])  # None at the end of a text without one
        tail = line_end[0] if line_end else ""
        return f"{text[: block.start]}{lines}{tail}{text[block.end :]}"
    gap = end if text else ""  # makes a blank line, or ends the last line if it has no end
    return f"{text}{gap}{lines}{end}"


def with_blocks_of(text: str, other: str, file: str) -> str:
    """``text`` with the blocks of the text ``other`` in place of its own blocks for the same folders."""
    for block in blocks(other, file):
        if any(own.docs == block.docs for own in blocks(text, file)):
            text = with_block(text, block.docs, block_body(other, block), file)
    return text


def without_block(text: str, docs: str, file: str) -> str:
    """``text`` without the block of ``docs`` and the line end that :func:`with_block` put before it."""
    for block in blocks(text, file):
        if block.docs == docs:
            before, behind = text[: block.start], text[block.end :]
            line_end = "\r\n" if before.endswith("\r\n") else "\n"
            # The line end is removed at the end of the text and as a blank line. Else it ends the line before.
            if not behind or before.endswith(line_end * 2) or before == line_end:
                before = before.removesuffix(line_end)
            return before + behind
    return text
