"""What a heading is called and how it is reached: its plain text, its anchor, its breadcrumb; the title of a page; and
the header of a text that a model reads.

Pure functions over one heading's own line of Markdown, and over the titles of a page, whose breadcrumbs and anchors are
unique. Anchors are those that site generators make of a heading's text.
Linear, without recursion, and never raising, whatever a heading holds.
"""

from __future__ import annotations

import html
import posixpath
import re
import unicodedata
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field

from anvil.formats.patterns import lazy_pattern
from anvil.settings.schema import Slugs
from anvil.text import visible_text
from anvil.values import ROOT, SEPARATOR

UNTITLED = "(untitled)"
"""Stands for a heading without any text, so that it has a breadcrumb too."""
MAX_TITLE = 500
"""Longer titles are cut: each chunk below carries them, and one line may be megabytes."""

_NO_TITLES = frozenset({"", "_index", "default", "index", "readme", "untitled"})
"""Titles that say nothing: usual names of files."""
LONGEST_ATTRIBUTES = 1000
"""Characters of the longest attribute list; a longer one is text."""
# Each pattern here reads a line once: two repeats that meet never take the same character, and a repeat that a search
# begins with looks behind itself. tests/text/test_markdown_sections_growth.py grows the input of each.
_ATTRIBUTE = lazy_pattern(r"""[#.][\w:.-]+|(?<![\w:-])[\w:-]+=(?:"[^"]*"|'[^']*'|[^\s"']+)""")
_BARE_NAME = lazy_pattern(r"[A-Za-z][\w:-]*")
"""An attribute without a value, as in ``{: hidden }``. Only a colon tells it from text in braces."""
_COMMENT_ID = lazy_pattern(r"#?([\w.-]+)")
"""The id in a comment of MDX, where braces would be an expression."""

_VALUE = r"""(?:"[^"]*"|'[^']*'|\{(?:[^{}]|\{[^{}]*\})*\}|[^\s"'=<>`{}]+)"""
_TAG = rf"</?[A-Za-z][\w.:-]*(?:\s+(?:[A-Za-z_:@#][\w.:-]*(?:\s*=\s*{_VALUE})?|\{{[^{{}}]*\}}))*\s*/?>"
_PIECE = lazy_pattern(
    r"\\(?P<escape>[!-/:-@\[-`{-~])"
    r"|(?P<ticks>`+)"
    r"|<(?P<auto>[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*|[\w.!#$%&'*+/=?^`{|}~-]+@[\w-]+(?:\.[\w-]+)*)>"
    r"|(?P<comment><!--|\{/\*)"
    rf"|(?P<drop>{_TAG})"
    r"|\[\^(?P<note>[^\[\]\s]+)\]"
    r"|(?P<open>!?\[)"
    r"|(?P<close>\])"
    r"|(?P<run>\*+|_+|~~)"
    r"|(?P<entity>&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)",
    re.DOTALL,
)
LINK_TARGET = lazy_pattern(
    r"\(\s*(?!\s)(?:<[^<>]*>|(?:[^\s()\\<]|\\.|\((?:[^\s()\\]|\\.|\([^\s()]*\))*\))*)"
    r"""(?:\s+(?!\s)(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\((?:[^()\\]|\\.)*\)))?\s*(?!\s)\)""",
    re.DOTALL,
)
_NUMBERED = lazy_pattern(r"(.*) \[\d+\]", re.DOTALL)
"""A breadcrumb with a number, as :func:`breadcrumbs` makes it."""
_FIRST_HEADING = lazy_pattern(
    r"(?:[ \t]*[\r\n])* {0,3}"
    r"(?:#{1,6}(?![^ \t\r\n])[^\r\n]*|[^\s#>|+*~`-][^\r\n]*\r?\n {0,3}(?:=+|-+)[ \t]*(?![^\r\n]))"
)
"""The heading with which a section begins: marked with ``#``, or one line that is underlined."""
_CLOSING = {"<!--": "-->", "{/*": "*/}"}
ESCAPE = lazy_pattern(r"\\([!-/:-@\[-`{-~])")
"""An escape in a target, such as of each underscore that GitBook writes."""
LINK_LABEL = lazy_pattern(r"\[([^\[\]]*)\]")
"""The label behind a link text: ``[text][label]``. Both match right behind the text's bracket."""
_MARKS = lazy_pattern(r"[\\`<\[\]{!*_~&]")
"""What a piece begins with; text without any is read as it is."""
_VITEPRESS_SIGNS = lazy_pattern(r"[\s~`!@#$%^&*()\-_+=\[\]{}|\\;:\"'\u201c\u201d\u2018\u2019<>,.?/]+")
_NOT_IN_ASCII_SLUG = lazy_pattern(r"[^a-z0-9 _-]+")


def under_heading(section: str) -> str:
    """The text of a section without its heading."""
    heading = _FIRST_HEADING.match(section)
    return section[heading.end() :] if heading else section


def attributes(source: str) -> tuple[str, str]:
    """A heading's Markdown without its attribute list and closing ``#``s, and the id it asks for or ``""``.

    Attribute lists of Python-Markdown, VitePress and Docusaurus: ``{#id}``, ``{: #id .class key=value name }``,
    ``{/* #id */}``. Braces that hold anything else are text, also ``{name}`` without a colon: only Python-Markdown's
    attr_list takes that for an attribute, and "Path {id}" is more often meant as it is written.
    """
    anchor = ""
    text = source.strip(" \t")
    for _ in range(2):  # "## Title {#id} ##" and "## Title ## {#id}" are both in use
        text = _without_closing_hashes(text)
        if not text.endswith("}"):
            continue
        begin = text.rfind("{", -LONGEST_ATTRIBUTES)  # bounded: a line may be megabytes
        inside = text[begin + 1 : -1]
        if begin < 0 or "}" in inside:
            continue
        if inside.startswith("/*") and inside.endswith("*/"):
            commented = _COMMENT_ID.fullmatch(inside[2:-2].strip(" \t"))
            if commented:
                anchor = anchor or commented[1]
                text = text[:begin].rstrip(" \t")
            continue
        may_have_names = inside.startswith(":") and text[:begin].endswith((" ", "\t"))
        inside = inside.removeprefix(":")
        rest = _ATTRIBUTE.sub("", inside).split()
        if not inside.strip() or not all(may_have_names and _BARE_NAME.fullmatch(word) for word in rest):
            continue
        ids = [word[1:] for word in _ATTRIBUTE.findall(inside) if word.startswith("#")]
        ids += [word[3:].strip("\"'") for word in _ATTRIBUTE.findall(inside) if word.startswith("id=")]
        anchor = anchor or (ids[-1] if ids else "")  # of several the last one counts, as in Python-Markdown
        text = text[:begin].rstrip(" \t")
    return text, anchor


def _without_closing_hashes(text: str) -> str:
    bare = text.rstrip("#")
    if not bare:
        return ""
    return bare.rstrip(" \t") if bare != text and bare[-1] in " \t" else text


def plain(source: str, references: Container[str] = (), for_anchor: bool = False) -> str:
    """Inline Markdown as a reader sees it: no emphasis marks, ticks, targets, tags; white space collapsed.

    ``references`` holds the page's link reference labels (case-folded) and footnote labels (``^1``);
    ``[text]`` alone is a link only when it is among them. At most ``MAX_TITLE`` characters. ``for_anchor``: without the
    space before a footnote mark in ``<sup>``, which generators do not see when they make an id.
    """
    if len(source) <= 4 * MAX_TITLE and _MARKS.search(source):  # of a longer line, hardly anything would be shown
        source = _read(source, references, for_anchor)
    title = " ".join(source.split())
    return title if len(title) <= MAX_TITLE else title[: MAX_TITLE - 1].rstrip() + "…"


def _read(source: str, references: Container[str], for_anchor: bool) -> str:
    out: list[str] = []
    opened: dict[str, list[int]] = {}  # where in ``out`` the runs of "*", "_" or "~~" stand that may open emphasis
    brackets: list[tuple[int, int]] = []  # where in ``out`` and in ``source`` each "[" stands
    unclosed: set[str] = set()  # comments that nothing closes: each is searched to the end of the line once
    position = 0
    while match := _PIECE.search(source, position):
        out.append(source[position : match.start()])
        position = match.end()
        kind, piece = match.lastgroup, match[0]
        if kind in ("escape", "auto"):
            out.append(match[kind])
        elif kind == "ticks":
            closing = re.compile(rf"(?<!`){piece}(?!`)").search(source, position)
            out.append(source[position : closing.start()] if closing else piece)
            position = closing.end() if closing else position
        elif kind == "comment":
            end = -1 if piece in unclosed else source.find(_CLOSING[piece], position)
            if end >= 0:
                position = end + len(_CLOSING[piece])
            else:
                unclosed.add(piece)
                out.append(piece)
        elif kind == "drop":
            script = not for_anchor and visible_text.is_script(piece)
            if script and visible_text.is_separate_mark(source[: match.start()], source[position : position + 12]):
                out.append(" ")
        elif kind == "entity":
            out.append(html.unescape(piece))
        elif kind == "note":
            out.append("" if "^" + match["note"] in references else piece)
        elif kind == "open":
            brackets.append((len(out), match.end()))
            out.append(piece)
        elif kind == "close":
            if brackets:
                opener, inside = brackets.pop()
                target = LINK_TARGET.match(source, position) or LINK_LABEL.match(source, position)
                if target or label(source[inside : match.start()]) in references:
                    out[opener] = ""  # it was text until here; what is between the brackets stays
                    position = target.end() if target else position
                    continue
            out.append(piece)
        elif kind == "run":
            before, after = source[match.start() - 1 : match.start()] or " ", source[position : position + 1] or " "
            # whether the run is left or right flanking, see CommonMark 0.31, section 6.2; "_" is no mark in snake_case
            opens = not after.isspace() and (after.isalnum() or not before.isalnum())
            closes = not before.isspace() and (before.isalnum() or not after.isalnum())
            same = opened.setdefault(piece, [])
            if same and closes and not (piece[0] == "_" and after.isalnum()):
                out[same.pop()] = piece = ""
            elif opens and not (piece[0] == "_" and before.isalnum()):
                same.append(len(out))
            out.append(piece)
    out.append(source[position:])
    return "".join(out)


def label(text: str) -> str:
    """A link reference's label as two are compared: case-folded, white space collapsed."""
    return " ".join(text.split()).casefold()


def parents(levels: Iterable[int]) -> list[int]:
    """The index of the heading under which each one of a page is, from their levels in order; -1 at the top."""
    indexes: list[int] = []
    open_: list[tuple[int, int]] = []
    for index, level in enumerate(levels):
        while open_ and open_[-1][0] >= level:
            open_.pop()
        indexes.append(open_[-1][1] if open_ else -1)
        open_.append((level, index))
    return indexes


def breadcrumbs(headings: Sequence[tuple[int, str]]) -> list[str]:
    """The unique heading paths of a page's headings (level, title), in their order.

    ``A > B > C``, with `` [2]``, `` [3]`` where that breadcrumb stands in the page already.
    """
    paths: list[str] = []
    taken = {ROOT}
    numbers: dict[str, int] = {}
    for parent, (_, title) in zip(parents(level for level, _ in headings), headings, strict=True):
        path = plain_path = title if parent < 0 else f"{paths[parent]}{SEPARATOR}{title}"
        if path in taken:  # the next number is remembered: counting from 2 each time would be quadratic
            number = numbers.get(plain_path, 2)
            while (path := f"{plain_path} [{number}]") in taken:
                number += 1
            numbers[plain_path] = number + 1
        taken.add(path)
        paths.append(path)
    return paths


def section_titles(paths: Sequence[tuple[str, int]]) -> list[str]:
    """The texts of headings, from (breadcrumb, level) of a page's sections in order.

    A breadcrumb is that of the parent, a separator and the text. The parser adds a number in brackets to a breadcrumb
    that the page has already, so such a number is not part of the text.
    """
    earlier: set[str] = set()
    titles = []
    for parent, (path, _) in zip(parents(level for _, level in paths), paths, strict=True):
        numbered = _NUMBERED.fullmatch(path)
        plain = numbered[1] if numbered and numbered[1] in earlier else path  # "Step [2]" may be a heading's own text
        titles.append(plain if parent < 0 else plain.removeprefix(paths[parent][0] + SEPARATOR))
        earlier.add(path)
    return titles


def listed_headings(paths: Sequence[tuple[str, int]]) -> tuple[str, ...]:
    """The headings of a page list, from (breadcrumb, level) of its h1 and h2 in order: the text, or the breadcrumb
    where several have that text."""
    titles = section_titles(paths)
    uses = Counter(titles)  # a heading is named by its text, or where that is not enough, by its breadcrumb
    return tuple(title if uses[title] == 1 else path for title, (path, _) in zip(titles, paths, strict=True))


def slug(title: str, style: Slugs) -> str:
    """The anchor for ``title``, before it is made unique.

    ``github``: lower case; letters, marks, digits, ``_`` and ``-`` stay, spaces become ``-``. ``mkdocs``: the default
    of Python-Markdown's ``toc``, folded to ASCII. ``vitepress``: without accents, runs of signs become one ``-``.
    ``hugo``: as ``github``, but of other characters than letters only decimal digits, ``_`` and ``-`` stay.
    """
    if style == "vitepress":
        unaccented = "".join(c for c in unicodedata.normalize("NFKD", title) if not "\u0300" <= c <= "\u036f")
        joined = _VITEPRESS_SIGNS.sub("-", "".join(c for c in unaccented if c > "\u001f")).strip("-")
        # VitePress does so because an id that begins with a digit is no CSS selector.
        return ("_" + joined if joined[:1] in tuple("0123456789") else joined).lower()
    if style == "hugo":
        letters = (c for c in title.strip() if c in " -_" or unicodedata.category(c)[0] == "L" or c.isdecimal())
        return "".join(letters).lower().replace(" ", "-")
    if style == "mkdocs":
        folded = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode("ascii")
        return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", folded).strip().lower())
    if title.isascii():  # as below, without a look at each character's category
        return _NOT_IN_ASCII_SLUG.sub("", title.lower()).replace(" ", "-")
    letters = (
        c
        for c in title.lower()
        if c in " -_" or unicodedata.category(c)[0] in "LM" or unicodedata.category(c) in ("Nd", "Nl", "Pc")
    )
    return "".join(letters).replace(" ", "-")


@dataclass(slots=True)
class Anchors:
    """Gives each heading of a page its own anchor; ``taken`` starts with the ids that the page sets itself."""

    style: Slugs
    taken: set[str] = field(default_factory=set)
    _slugs: dict[str, str] = field(default_factory=dict)
    _numbers: dict[str, tuple[str, int]] = field(default_factory=dict)
    """A taken anchor -> what the numbers of later ones go behind, and the next number."""

    def claim(self, title: str) -> str:
        """The slug of ``title``; with a number when it is taken (``-1`` or, in MkDocs, ``_1``)."""
        anchor = self._slugs.get(title)
        if anchor is None:
            # "heading" is what Goldmark, the parser of Hugo, calls a heading without letters.
            anchor = self._slugs[title] = slug(title, self.style) or ("heading" if self.style == "hugo" else "")
        taken = self.taken
        if anchor in taken or (not anchor and self.style == "mkdocs"):  # MkDocs gives such headings "_1", "_2"
            key = anchor
            stem, number = self._numbers.get(key) or self._first_number(key)
            while (anchor := f"{stem}{number}") in taken:
                number += 1
            self._numbers[key] = stem, number + 1
        taken.add(anchor)
        return anchor

    def _first_number(self, anchor: str) -> tuple[str, int]:
        # Python-Markdown counts a number that is there on: after "step_2" comes "step_3", and not "step_2_1".
        if self.style == "mkdocs" and (numbered := re.fullmatch(r"(.*_)([0-9]{1,9})", anchor)):
            return numbered[1], int(numbered[2]) + 1
        return f"{anchor}{'_' if self.style == 'mkdocs' else '-'}", 1


# --- titles of pages ------------------------------------------------------------------------------------


def says_nothing(title: str) -> bool:
    """Whether a title is only the usual name of a file, such as "README"."""
    return posixpath.splitext(title.strip().lower())[0] in _NO_TITLES


def page_title(path: str, given: str | None, headings: Iterable[tuple[int, str]]) -> str:
    """The title of a page: the one that it was ``given`` or has as h1, else the name of its file.

    The name of the folder is used instead of one that says nothing, and for ``README.md`` or ``index.md`` also instead
    of an h1 below other headings, which is that of a part. ``headings``: level and text, in order.
    """
    folder, name = posixpath.split(path)
    stem = posixpath.splitext(name)[0]
    own = given or ""
    following = iter(headings)
    first = next(following, None)
    is_below = says_nothing(stem) and first is not None and first[1] != own
    is_of_part = is_below and any(text == own for level, text in following if level == 1)
    candidates = ["" if is_of_part else own, stem, posixpath.basename(folder), own]
    candidates += [first[1]] if first is not None else []
    return next((title for title in candidates if not says_nothing(title)), own or stem)


# --- the header of a text that a model reads ---------------------------------------------------------------

MAX_HEADER_TOKENS = 48
"""A fifth of what the bundled model reads; a longer header would take the place of text."""
_PART_OF = lazy_pattern(r" \[part \d+/\d+\]$")
_ESTIMATED_WORD = lazy_pattern(r"[^\W_]+|\S")


def window_header(title: str, heading_path: str) -> str:
    """The header of a chunk's windows: page title and breadcrumb, without a second title and without ``[part 2/3]``.

    It has about 48 tokens at most, by an estimate without the model's tokenizer. Of a longer one, the headings next to
    the title are removed first, then the end is cut.
    """
    title = " ".join(title.split())
    path = _PART_OF.sub("", heading_path)
    names = [] if path == ROOT else path.split(SEPARATOR)
    # Mostly the h1 is the page's title. Compared with the whole title, because a title may hold a separator itself.
    if path == title or path.startswith(title + SEPARATOR):
        names = path.removeprefix(title).removeprefix(SEPARATOR).split(SEPARATOR)
    names = [name for name in names if name]
    while len(names) > 1 and _estimate(SEPARATOR.join([title, *names])) > MAX_HEADER_TOKENS:
        names.pop(0)
    text = SEPARATOR.join([name for name in [title, *names] if name])
    if _estimate(text) > MAX_HEADER_TOKENS and names:
        text = names[-1]
    return _fit_header(text)


def _cost(word: str) -> int:
    """Tokens of a word: an upper bound for WordPiece, except for random letters."""
    return -(-len(word) // 3) if word.isascii() else len(word)


def _estimate(text: str) -> int:
    return sum(_cost(word[0]) for word in _ESTIMATED_WORD.finditer(text))


def _fit_header(text: str) -> str:
    left = MAX_HEADER_TOKENS
    for word in _ESTIMATED_WORD.finditer(text):
        left -= _cost(word[0])
        if left < 0:
            return text[: word.start()].rstrip() or text[:MAX_HEADER_TOKENS]
    return text
