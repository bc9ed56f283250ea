"""Markdown block by block: paragraphs with their marks, escapes, code, headings, and the nesting of lists and quotes.

Tables are in :mod:`anvil.sites.markdown_tables`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from anvil.formats.characters import backticks
from anvil.sites.site_pages import PageImage
from anvil.text.headings import attributes

MAX_NESTING = 12
"""Depth of lists and quotes inside each other. Text in deeper ones is written into the deepest allowed one."""
_SPACES = re.compile(r"[ \t\r\n\f\v\xa0\u2000-\u200b\u202f\u3000\ufeff]+")
_HARD_BREAK = "\\\n"
_BREAKS = re.compile(r"(?: *\\\n *)+")
_BEGINS_BLOCK = re.compile(
    r"#{1,6}(?= |$)|>|[-+*](?= |$)|~{3}|`{3}(?=[^`]*$)|(?:-+|=+|\*+|_+|\+{3,})$|\[[^\]]*\]:|:{3}|={3}"
)
_NUMBERED = re.compile(r"(\d{1,9})([.)](?: |$))")
_MARK_LIKE = re.compile(r"(\\*)(<(?=[A-Za-z/!?])|\{(?=/\*)|`|\](?=\())")
"""Text that Markdown would read as a tag, a comment of MDX, code or a link."""
_OPEN_TAG = re.compile(r"(?<!\\)<\Z")
_TAG_NAME = re.compile("[A-Za-z/!?]")
_HEADING_MARKS = re.compile(r"[\\*\[\]~`]|<(?=[A-Za-z/!?])|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)")
_WORD_END = re.compile(r"[^\W_]\Z")
_WORD_START = re.compile(r"[^\W_]")
_UNSAFE_IN_TARGET = {ord(character): f"%{ord(character):02X}" for character in ' ()<>"\\\n\t'}
_IMAGE = re.compile("\ufdd0([\ufde0-\ufde9]+)([^\ufdd0\ufdd1]*)\ufdd1")
"""The mark of an image in text that is not written yet: U+FDD0, its number, its alternative text, U+FDD1. Unicode keeps
these characters for such internal use. U+FDD0 in the text of a page is replaced by a space."""
_IMAGE_MARKS = re.compile("\ufdd0[\ufde0-\ufde9]+|\ufdd1")
_IMAGE_DIGITS = {ord("0") + digit: chr(0xFDE0 + digit) for digit in range(10)}


@dataclass(slots=True)
class Container:
    """An open list item or quote.

    ``first``, ``rest``: what its first line and its other lines begin with. ``tight``: it has no empty line before it.
    ``begun``: its first line is written. ``blocks``: the number of its blocks, not counting tight ones.
    """

    first: str
    rest: str
    tight: bool = False
    begun: bool = False
    blocks: int = 0


@dataclass(slots=True)
class _Span:
    """An open inline element. ``start``: the index of its first piece. ``paragraph``: the number of the paragraph in
    which it began. ``target``: the address of a link."""

    mark: str
    start: int
    paragraph: int
    target: str


@dataclass(slots=True)
class _Line:
    """The pieces and spans that were open before a line such as a cell or a heading was begun. ``plain``: the line gets
    no marks except those of code."""

    pieces: list[str]
    plain: bool
    spans: list[_Span] = field(default_factory=list)


class MarkdownWriter:
    """Markdown that is written block by block. Text is collected in pieces until :meth:`end` writes the paragraph."""

    def __init__(self) -> None:
        self._out: list[str] = []
        self._containers: list[Container] = []
        self._pieces: list[str] = []
        self._spans: list[_Span] = []
        self._paragraph = 0
        self._lines: list[_Line] = []
        self._blank = False
        """Whether the next block needs an empty line before it."""
        self.size = 0
        """The number of characters written so far."""
        self._targets: dict[str, str] = {}
        """Number of an image, as it is in the text -> its address."""
        self._without_text: list[str] = []
        """The addresses of the images of the current block that have no alternative text."""
        self.images: list[PageImage] = []
        """The images in the Markdown written so far."""
        self._unmarked = ""
        """The last piece without its marks; empty if they are certain to stay. See :meth:`text`."""

    # --- inline --------------------------------------------------------------------------------------------

    def text(self, text: str) -> None:
        """Add text of the page. A run of white space becomes one space."""
        text = _spaced(text)
        if self._unmarked and _WORD_START.match(text):  # "**B**c": marks would split a word
            self._pieces[-1] = self._unmarked
        self._unmarked = ""
        if self._pieces and _OPEN_TAG.search(self._pieces[-1]) and _TAG_NAME.match(text):
            self._pieces[-1] = f"{self._pieces[-1][:-1]}\\<"  # "List<" in one element, "T>" in the next
        if self._lines and self._lines[-1].plain:
            text = _HEADING_MARKS.sub(lambda mark: f"\\{mark[0]}", text)
        else:
            if "<" in text or "`" in text or "{" in text or "](" in text:
                text = _MARK_LIKE.sub(r"\1\1\\\2", text)
            if text.startswith("(") and self._pieces and self._pieces[-1].endswith("]"):
                text = f"\\{text}"
        self._pieces.append(text)

    def raw(self, markdown: str) -> None:
        """Add Markdown unchanged."""
        self._unmarked = ""
        self._pieces.append(markdown)

    @property
    def last_text(self) -> str:
        """The end of the paragraph or line that is being written."""
        return "".join(self._pieces[-3:])

    def image(self, text: str, target: str) -> None:
        """Add an image.

        The text gets its alternative text ``text``. An image without one is only noted in :attr:`images`, after its
        block. ``target``: its address; empty if it cannot be kept, and then the image is not noted.
        """
        if text:
            self.text(f" {text} ")
        if text and target:
            number = str(len(self._targets)).translate(_IMAGE_DIGITS)
            self._targets[number] = target
            self._pieces[-1] = f" \ufdd0{number}{self._pieces[-1].strip(' ')}\ufdd1 "
        elif target:
            self._without_text.append(target)

    def line_break(self) -> None:
        """Add a line break; a space in a line that is collected."""
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
        """Begin an inline element with a mark such as ``**``. The mark ``[`` is a link to ``target``."""
        self._spans.append(_Span(mark, len(self._pieces), self._paragraph, target))

    def close_span(self) -> None:
        """End the innermost inline element. Its text gets marks, unless they would not be valid there."""
        span = self._spans.pop()
        if span.paragraph != self._paragraph or any(open_span.mark == span.mark for open_span in self._spans):
            return  # it has a block in it, or is inside an element with the same mark
        text = "".join(self._pieces[span.start :])
        bare = text.strip(" ")
        if not bare or _HARD_BREAK in text or (self._lines and self._lines[-1].plain):
            return
        if span.mark == "[":
            marked = _link(bare, span.target)
        elif self._splits_word(bare, text, span):
            return
        else:
            marked = f"{span.mark}{bare}{span.mark}"
        start, end = " " * text.startswith(" "), " " * text.endswith(" ")
        self._pieces[span.start :] = [f"{start}{marked}{end}"]
        self._unmarked = text if span.mark != "[" and not end else ""

    def _splits_word(self, bare: str, text: str, span: _Span) -> bool:
        """Whether the first mark of a span would be inside a word, as in "un**believable**", or the span has no word.
        The last mark is examined by :meth:`text`, when the next text is known."""
        last = span.start - 1
        while last >= 0 and not self._pieces[last]:
            last -= 1
        before = self._pieces[last] if last >= 0 else ""
        return bool(_WORD_END.search(before) and _WORD_START.match(text)) or not _WORD_START.search(bare)

    # --- lines that are collected -----------------------------------------------------------------------------

    def open_line(self, plain: bool = False) -> None:
        """Collect the text that follows as one line. ``plain``: without marks except those of code."""
        self._lines.append(_Line(self._pieces, plain, self._spans))
        self._pieces, self._spans, self._unmarked = [], [], ""

    def close_line(self) -> str:
        """End the line begun by :meth:`open_line` and return it."""
        line = _SPACES.sub(" ", "".join(self._pieces)).strip(" ")
        outer = self._lines.pop()
        self._pieces, self._spans = outer.pieces, outer.spans
        return line

    @property
    def in_line(self) -> bool:
        """Whether text is being collected as one line."""
        return bool(self._lines)

    # --- blocks --------------------------------------------------------------------------------------------

    def end(self) -> None:
        """End the paragraph and write it. In a line that is collected, add a space instead."""
        if self._lines:
            self.raw(" ")
            return
        self._unmarked = ""
        if self._pieces:
            self._end_paragraph()
        if self._without_text:
            self._note_images()

    def _end_paragraph(self) -> None:
        link = self._spans[-1] if self._spans and self._spans[-1].mark == "[" else None
        if link is not None and link.paragraph == self._paragraph:  # around several blocks: the first one is the link
            self.close_span()
            is_blank = not "".join(self._pieces[link.start :]).strip(" ")
            self._spans.append(_Span("[", 0, self._paragraph + is_blank, link.target))
        text = "".join(self._pieces)
        self._pieces = []
        self._paragraph += 1
        text = _BREAKS.sub("\\\\\n", re.sub(" {2,}", " ", text))
        text = text.removeprefix(_HARD_BREAK).removesuffix(_HARD_BREAK).strip(" ")
        if text:
            self.block([_escaped(line) for line in text.split("\n")])

    def block(self, lines: Sequence[str], tight: bool = False, is_code: bool = False) -> None:
        """Write the lines of a block. ``tight``: no empty line follows it."""
        if self._needs_blank_line:
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
    def _needs_blank_line(self) -> bool:
        return self._blank and not any(container.tight and not container.begun for container in self._containers)

    def _add(self, text: str) -> None:
        self._out.append(text)
        self.size += len(text)

    def _first(self) -> str:
        """The marks and spaces at the begin of the next block's first line."""
        return "".join(each.rest if each.begun else each.first for each in self._containers)

    def _blank_line(self) -> str:
        return "".join(each.rest for each in self._containers if each.begun).rstrip() + "\n"

    def _with_noted_images(self, line: str, start: int) -> str:
        """A line without the marks of images, which are added to :attr:`images`. ``start``: where the line begins."""
        pieces: list[str] = []
        end = 0
        for match in _IMAGE.finditer(line):
            target = self._targets.get(match[1])
            if target is not None:
                pieces += line[end : match.start()], match[2]
                end = match.end()
                at = start + sum(map(len, pieces)) - len(match[2])
                self.images.append(PageImage(at, match[2], f"!{_link(match[2], target.replace('|', '%7C'))}"))
        return "".join([*pieces, line[end:]])

    def _note_images(self) -> None:
        """Add the images without alternative text to :attr:`images`, as a paragraph at this position."""
        markdown = " ".join(f"!{_link('', target)}" for target in self._without_text)
        before, after = (self._blank_line(), "") if self._needs_blank_line else ("", "" if self._containers else "\n")
        self.images.append(PageImage(self.size, "", f"{before}{self._first()}{markdown}\n{after}"))
        self._without_text = []

    def heading(self, level: int, text: str) -> None:
        """Write a heading. ``text``: its line, which was collected as ``plain``."""
        plain = _IMAGE_MARKS.sub("", text)
        bare, anchor = attributes(plain)
        if anchor or bare != plain:  # "{#x}" or "#" at its end is text, and would be read as an id or a closing mark
            text = plain[:-1] + ("&#125;" if plain.endswith("}") else "\\#")
        self.block([f"{'#' * level} {text}"])

    def code_block(self, text: str, language: str) -> None:
        """Write fenced code."""
        self.end()
        fence = backticks(text, 3)
        name = "" if "`" in language else language
        self.block([f"{fence}{name}", *text.split("\n"), fence], is_code=True)

    def open_container(self, first: str, rest: str, tight: bool = False) -> None:
        """Begin a list item or a quote."""
        deep = len(self._containers) >= MAX_NESTING
        self._containers.append(Container("", "", tight, True) if deep else Container(first, rest, tight))

    def close_container(self) -> Container:
        """End the innermost list item or quote."""
        self.end()
        return self._containers.pop()

    @property
    def at_top(self) -> bool:
        """Whether no list item, quote or line is open."""
        return not self._containers and not self._lines

    @property
    def blocks_in_container(self) -> int:
        """The number of blocks in the innermost list item or quote; 0 outside of one."""
        return self._containers[-1].blocks if self._containers else 0

    def finished(self) -> str:
        """The whole Markdown. It ends with one line end, unless it is empty."""
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
    """A line of a paragraph with a backslash at its begin where Markdown would read another block."""
    marks = _IMAGE_MARKS.match(line)
    start, bare = (marks.end(), _IMAGE_MARKS.sub("", line)) if marks else (0, line)
    if not _BEGINS_BLOCK.match(bare):
        number = _NUMBERED.match(bare)
        if number is None:
            return line
        start += number.end(1)
    return f"{line[:start]}\\{line[start:]}"
