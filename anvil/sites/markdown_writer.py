"""Blocks of Markdown in lists and quotes, and paragraphs with marks in them: text in, valid Markdown out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from anvil.formats.characters import backticks
from anvil.sites.site_pages import PageImage
from anvil.text.headings import attributes

MAX_NESTING = 12
"""Lists and quotes inside each other that are written as such. Text in deeper ones continues the last of them."""
_SPACES = re.compile(r"[ \t\r\n\f\v\xa0\u2000-\u200b\u202f\u3000\ufeff]+")
_HARD_BREAK = "\\\n"
_BREAKS = re.compile(r"(?: *\\\n *)+")
_BEGINS_BLOCK = re.compile(
    r"#{1,6}(?= |$)|>|[-+*](?= |$)|~{3}|`{3}(?=[^`]*$)|(?:-+|=+|\*+|_+|\+{3,})$|\[[^\]]*\]:|:{3}|={3}"
)
_NUMBERED = re.compile(r"(\d{1,9})([.)](?: |$))")
_MARK_LIKE = re.compile(r"(\\*)(<(?=[A-Za-z/!?])|\{(?=/\*)|`|\](?=\())")
"""Text that Markdown reads as a tag, a comment of MDX, code or a link."""
_OPEN_TAG = re.compile(r"(?<!\\)<\Z")
_TAG_NAME = re.compile("[A-Za-z/!?]")
_HEADING_MARKS = re.compile(r"[\\*\[\]~`]|<(?=[A-Za-z/!?])|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)")
_WORD_END = re.compile(r"[^\W_]\Z")
_WORD_START = re.compile(r"[^\W_]")
_UNSAFE_IN_TARGET = {ord(character): f"%{ord(character):02X}" for character in ' ()<>"\\\n\t'}
_IMAGE = re.compile("\ufdd0([\ufde0-\ufde9]+)([^\ufdd0\ufdd1]*)\ufdd1")
"""The number of an image and its alternative text until it is written, in characters that Unicode has for such use. In
the text of a page they are spaces."""
_IMAGE_MARKS = re.compile("\ufdd0[\ufde0-\ufde9]+|\ufdd1")
_IMAGE_DIGITS = {ord("0") + digit: chr(0xFDE0 + digit) for digit in range(10)}


@dataclass(slots=True)
class Container:
    """A list item or a quote: what its first line begins with, and the others. ``tight``: no empty line is before it.
    ``blocks``: how many it has, without tight ones."""

    first: str
    rest: str
    tight: bool = False
    begun: bool = False
    blocks: int = 0


@dataclass(slots=True)
class _Span:
    """An open inline element: its mark, where its text begins, and where a link leads."""

    mark: str
    start: int
    paragraph: int
    target: str


@dataclass(slots=True)
class _Line:
    """Text that is collected instead of being written as a paragraph, such as a cell or a heading."""

    pieces: list[str]
    plain: bool
    spans: list[_Span] = field(default_factory=list)


class MarkdownWriter:
    """Markdown, block by block. ``pieces`` of the current paragraph are written when it is ended by :meth:`end`."""

    def __init__(self) -> None:
        self._out: list[str] = []
        self._containers: list[Container] = []
        self._pieces: list[str] = []
        self._spans: list[_Span] = []
        self._paragraph = 0
        self._lines: list[_Line] = []
        self._blank = False
        """Whether an empty line is due before the next block."""
        self.size = 0
        """Characters that are written."""
        self._targets: dict[str, str] = {}
        """Number of an image in the text -> its address."""
        self._without_text: list[str] = []
        """The addresses of images of the current block that have no alternative text."""
        self.images: list[PageImage] = []
        """The images of what is written."""
        self._unmarked = ""  # the last piece without its marks, if they may have to go

    # --- inline --------------------------------------------------------------------------------------------

    def text(self, text: str) -> None:
        """Add text as it is in the page. White space is one space."""
        text = _spaced(text)
        if self._unmarked and _WORD_START.match(text):  # marks would part a word: "**B**c"
            self._pieces[-1] = self._unmarked
        self._unmarked = ""
        if self._pieces and _OPEN_TAG.search(self._pieces[-1]) and _TAG_NAME.match(text):
            self._pieces[-1] = f"{self._pieces[-1][:-1]}\\<"  # "List<" and "T>" of two elements
        if self._lines and self._lines[-1].plain:
            text = _HEADING_MARKS.sub(lambda mark: f"\\{mark[0]}", text)
        else:
            if "<" in text or "`" in text or "{" in text or "](" in text:
                text = _MARK_LIKE.sub(r"\1\1\\\2", text)
            if text.startswith("(") and self._pieces and self._pieces[-1].endswith("]"):
                text = f"\\{text}"
        self._pieces.append(text)

    def raw(self, markdown: str) -> None:
        self._unmarked = ""
        self._pieces.append(markdown)

    @property
    def last_text(self) -> str:
        """The end of the paragraph or line that is being written."""
        return "".join(self._pieces[-3:])

    def image(self, text: str, target: str) -> None:
        """Add an image: its alternative text. One without is noted in :attr:`images` alone, after the block that it is
        in. ``target``: its address, empty for one that cannot be kept."""
        if text:
            self.text(f" {text} ")
        if text and target:
            number = str(len(self._targets)).translate(_IMAGE_DIGITS)
            self._targets[number] = target
            self._pieces[-1] = f" \ufdd0{number}{self._pieces[-1].strip(' ')}\ufdd1 "
        elif target:
            self._without_text.append(target)

    def line_break(self) -> None:
        """End a line of the paragraph."""
        self._pieces.append(" " if self._lines else _HARD_BREAK)

    def code(self, text: str) -> None:
        """Add inline code."""
        text = _spaced(text)
        self._unmarked = ""
        bare = text.strip(" ")
        if not bare:
            self._pieces.append(text)
            return
        ticks = backticks(bare)
        pad = " " if bare.startswith("`") or bare.endswith("`") else ""
        before = " " if text.startswith(" ") else ""
        self._pieces.append(f"{before}{ticks}{pad}{bare}{pad}{ticks}{' ' if text.endswith(' ') else ''}")

    def open_span(self, mark: str, target: str = "") -> None:
        """Begin an inline element with a mark such as ``**``. ``target``: where the link leads, for the mark ``[``."""
        self._spans.append(_Span(mark, len(self._pieces), self._paragraph, target))

    def close_span(self) -> None:
        """End it."""
        span = self._spans.pop()
        if span.paragraph != self._paragraph or any(open_span.mark == span.mark for open_span in self._spans):
            return  # there was a block in it, or it is inside one like it
        text = "".join(self._pieces[span.start :])
        bare = text.strip(" ")
        if not bare or _HARD_BREAK in text or (self._lines and self._lines[-1].plain):
            return
        if span.mark == "[":
            marked = _link(bare, span.target)
        elif self._touches_word(bare, text, span):
            return
        else:
            marked = f"{span.mark}{bare}{span.mark}"
        start, end = " " * text.startswith(" "), " " * text.endswith(" ")
        self._pieces[span.start :] = [f"{start}{marked}{end}"]
        self._unmarked = text if span.mark != "[" and not end else ""

    def _touches_word(self, bare: str, text: str, span: _Span) -> bool:
        """Whether its marks part a word: "un**believ**able". What follows is not known yet, see :meth:`text`."""
        last = span.start - 1
        while last >= 0 and not self._pieces[last]:
            last -= 1
        before = self._pieces[last] if last >= 0 else ""
        return bool(_WORD_END.search(before) and _WORD_START.match(text)) or not _WORD_START.search(bare)

    # --- lines that are collected -----------------------------------------------------------------------------

    def open_line(self, plain: bool = False) -> None:
        """Collect what follows as one line. ``plain``: without marks but for code."""
        self._lines.append(_Line(self._pieces, plain, self._spans))
        self._pieces, self._spans, self._unmarked = [], [], ""

    def close_line(self) -> str:
        line = _SPACES.sub(" ", "".join(self._pieces)).strip(" ")
        collected = self._lines.pop()
        self._pieces, self._spans = collected.pieces, collected.spans
        return line

    @property
    def in_line(self) -> bool:
        """Whether text is collected as one line."""
        return bool(self._lines)

    # --- blocks --------------------------------------------------------------------------------------------

    def end(self) -> None:
        """End the paragraph. In a line that is collected, a space."""
        if self._lines:
            self.raw(" ")
            return
        self._unmarked = ""
        if self._pieces:
            self._end_paragraph()
        if self._without_text:
            self._note_images()

    def _end_paragraph(self) -> None:
        card = self._spans[-1] if self._spans and self._spans[-1].mark == "[" else None
        if card is not None and card.paragraph == self._paragraph:  # a link around blocks is that of the first
            self.close_span()
            is_blank = not "".join(self._pieces[card.start :]).strip(" ")
            self._spans.append(_Span("[", 0, self._paragraph + is_blank, card.target))
        text = "".join(self._pieces)
        self._pieces = []
        self._paragraph += 1
        text = _BREAKS.sub("\\\\\n", re.sub(" {2,}", " ", text))
        text = text.removeprefix(_HARD_BREAK).removesuffix(_HARD_BREAK).strip(" ")
        if text:
            self.block([_escaped(line) for line in text.split("\n")])

    def block(self, lines: Sequence[str], tight: bool = False, is_code: bool = False) -> None:
        """Write the lines of a block, and an empty line before it. ``tight``: none after it."""
        if self._is_apart:
            self._add(self._blank_line())
        rest = "".join(container.rest for container in self._containers)
        first = self._first()
        bare = rest.rstrip()
        for number, line in enumerate(lines):
            start = first if number == 0 else rest
            if "\ufdd0" in line and not is_code:
                line = self._with_noted_images(line, self.size + len(start))
            self._add(f"{start}{line}\n" if line else f"{(start if number == 0 else bare).rstrip()}\n")
        for container in self._containers:
            container.begun = True
        if self._containers and not tight:
            self._containers[-1].blocks += 1
        self._blank = not tight
        if self._without_text:
            self._note_images()

    @property
    def _is_apart(self) -> bool:
        """Whether an empty line is before the next block."""
        return self._blank and not any(each.tight and not each.begun for each in self._containers)

    def _add(self, text: str) -> None:
        self._out.append(text)
        self.size += len(text)

    def _first(self) -> str:
        """What the first line of the next block begins with."""
        return "".join(each.rest if each.begun else each.first for each in self._containers)

    def _blank_line(self) -> str:
        return "".join(each.rest for each in self._containers if each.begun).rstrip() + "\n"

    def _with_noted_images(self, line: str, start: int) -> str:
        """A line, which begins at ``start``, without the marks of images; they are in :attr:`images` now."""
        pieces: list[str] = []
        at = 0
        for match in _IMAGE.finditer(line):
            target = self._targets.get(match[1])
            if target is not None:
                pieces += line[at : match.start()], match[2]
                at = match.end()
                place = start + sum(map(len, pieces)) - len(match[2])
                self.images.append(PageImage(place, match[2], f"!{_link(match[2], target.replace('|', '%7C'))}"))
        return "".join([*pieces, line[at:]])

    def _note_images(self) -> None:
        """Note the images without a text as a paragraph here."""
        markdown = " ".join(f"!{_link('', target)}" for target in self._without_text)
        before, after = (self._blank_line(), "") if self._is_apart else ("", "" if self._containers else "\n")
        self.images.append(PageImage(self.size, "", f"{before}{self._first()}{markdown}\n{after}"))
        self._without_text = []

    def heading(self, level: int, text: str) -> None:
        """Write a heading whose line was collected as plain."""
        plain = _IMAGE_MARKS.sub("", text)
        bare, anchor = attributes(plain)
        if anchor or bare != plain:  # "{#x}" and "#" at its end are text
            text = plain[:-1] + ("&#125;" if plain.endswith("}") else "\\#")
        self.block([f"{'#' * level} {text}"])

    def code_block(self, text: str, language: str) -> None:
        self.end()
        fence = backticks(text, 3)
        name = "" if "`" in language else language
        self.block([f"{fence}{name}", *text.split("\n"), fence], is_code=True)

    def open_container(self, first: str, rest: str, tight: bool = False) -> None:
        """Begin a list item or a quote."""
        deep = len(self._containers) >= MAX_NESTING
        self._containers.append(Container("", "", tight, True) if deep else Container(first, rest, tight))

    def close_container(self) -> Container:
        """End it."""
        self.end()
        return self._containers.pop()

    @property
    def at_top(self) -> bool:
        """Whether a block is in no list, quote or line."""
        return not self._containers and not self._lines

    @property
    def blocks_in_container(self) -> int:
        """How many blocks the innermost list item or quote has; 0 outside of one."""
        return self._containers[-1].blocks if self._containers else 0

    def finished(self) -> str:
        """All Markdown: it ends with a line end, if it is not empty."""
        self.end()
        text = "".join(self._out).strip("\n")
        return f"{text}\n" if text else ""


def _spaced(text: str) -> str:
    return _SPACES.sub(" ", text.replace("\ufdd0", " "))


def _link(text: str, target: str) -> str:
    if text.count("[") != text.count("]"):
        text = text.replace("[", "\\[").replace("]", "\\]")
    return f"[{text}]({target.translate(_UNSAFE_IN_TARGET)})"


def _escaped(line: str) -> str:
    marks = _IMAGE_MARKS.match(line)
    start, bare = (marks.end(), _IMAGE_MARKS.sub("", line)) if marks else (0, line)
    if not _BEGINS_BLOCK.match(bare):
        number = _NUMBERED.match(bare)
        if number is None:
            return line
        start += number.end(1)
    return f"{line[:start]}\\{line[start:]}"
