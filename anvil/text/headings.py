"""Headings: plain text, anchors of site generators, breadcrumbs; the title of a page; the header of an embedded text.

The functions read the Markdown of one heading, or all headings of a page. Breadcrumbs and anchors are unique in a page.
All functions are pure, take linear time, use no recursion, and raise for no text.
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
"""The title of a heading without text, so that it has a breadcrumb, too."""
MAX_TITLE = 500
"""Longer titles are cut, because each chunk under a heading has its title, and one line may have megabytes."""

_NO_TITLES = frozenset({"", "_index", "default", "index", "readme", "untitled"})
"""Usual names of files, which are not titles."""
LONGEST_ATTRIBUTES = 1000
"""A longer attribute list is text."""
# Each pattern here takes linear time: two neighbouring repeats never match the same character, and a repeat at the
# start of a search checks the character before it. See tests/text/test_markdown_sections_growth.py.
_ATTRIBUTE = lazy_pattern(r"""[#.][\w:.-]+|(?<!\S)-(?!\S)|(?<![\w:-])[\w:-]+=(?:"[^"]*"|'[^']*'|[^\s"']+)""")
_BARE_NAME = lazy_pattern(r"[A-Za-z][\w:-]*")
"""An attribute without a value, as in ``{: hidden }``. Without the colon it would be text in braces."""
_DOCSIFY = lazy_pattern(r"[ \t](?::id=([\w%-]+)|\{docsify-ignore(?:-all)?\})\Z")
_COMMENT_ID = lazy_pattern(r"#?([\w.-]+)")
"""The id in a comment of MDX. Braces without a comment would be an expression there."""

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
"""The heading at the start of a section: with ``#``, or one underlined line."""
_CLOSING = {"<!--": "-->", "{/*": "*/}"}
_WITHOUT_LETTERS = {"hugo": "heading", "pandoc": "section"}
"""The anchor of a heading without letters."""
ESCAPE = lazy_pattern(r"\\([!-/:-@\[-`{-~])")
"""An escape in a target. GitBook writes one for each underscore."""
LINK_LABEL = lazy_pattern(r"\[([^\[\]]*)\]")
"""The label after a link text: ``[text][label]``. It is matched directly after the bracket of the text."""
_MARKS = lazy_pattern(r"[\\`<\[\]{!*_~&]")
"""The first characters of pieces. A text without any of them has no marks."""
_VITEPRESS_SIGNS = lazy_pattern(r"[\s~`!@#$%^&*()\-_+=\[\]{}|\\;:\"'\u201c\u201d\u2018\u2019<>,.?/]+")
_NOT_IN_ASCII_SLUG = lazy_pattern(r"[^a-z0-9 _-]+")


def under_heading(section: str) -> str:
    """The text of a section without its heading."""
    heading = _FIRST_HEADING.match(section)
    return section[heading.end() :] if heading else section


def attributes(source: str) -> tuple[str, str]:
    """The Markdown of a heading without its attribute list and closing ``#``s, and the id that it sets or ``""``.

    Attribute lists are those of Python-Markdown, VitePress, Docusaurus, Pandoc and docsify: ``{#id}``, ``{/* #id */}``,
    ``{-}``, ``{: #id .class key=value name }``, ``:id=id`` and ``{docsify-ignore}``. Other braces are text. ``{name}``
    is text, too: only the attr_list of Python-Markdown reads it as an attribute, and in a heading such as "Path {id}"
    it is mostly meant as text."""
    anchor = ""
    text = source.strip(" \t")
    if docsify := _DOCSIFY.search(text):
        anchor, text = docsify[1] or "", text[: docsify.start()].rstrip(" \t")
    for _ in range(2):  # "## Title {#id} ##" and "## Title ## {#id}" are both in use
        text = _without_closing_hashes(text)
        if not text.endswith("}"):
            continue
        begin = text.rfind("{", -LONGEST_ATTRIBUTES)  # bounded, because a line may have megabytes
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
        names = _ATTRIBUTE.sub("", inside).split()
        if not inside.strip() or not all(may_have_names and _BARE_NAME.fullmatch(name) for name in names):
            continue
        ids = [word[1:] for word in _ATTRIBUTE.findall(inside) if word.startswith("#")]
        ids += [word[3:].strip("\"'") for word in _ATTRIBUTE.findall(inside) if word.startswith("id=")]
        anchor = anchor or (ids[-1] if ids else "")  # the last of several counts, as in Python-Markdown
        text = text[:begin].rstrip(" \t")
    return text, anchor


def _without_closing_hashes(text: str) -> str:
    bare = text.rstrip("#")
    if not bare:
        return ""
    return bare.rstrip(" \t") if bare != text and bare[-1] in " \t" else text


def plain(source: str, references: Container[str] = (), for_anchor: bool = False) -> str:
    """Inline Markdown as a reader sees it: without emphasis marks, ticks, targets and tags, with single spaces, and at
    most ``MAX_TITLE`` characters.

    ``references``: the page's labels of links (case-folded) and footnotes (``^1``). ``[text]`` alone is a link only if
    its label is among them. ``for_anchor``: without the space before a footnote mark in ``<sup>``, because generators
    make ids without it."""
    if len(source) <= 4 * MAX_TITLE and _MARKS.search(source):  # in a longer line, the title is cut anyway
        source = _without_marks(source, references, for_anchor)
    title = " ".join(source.split())
    return title if len(title) <= MAX_TITLE else title[: MAX_TITLE - 1].rstrip() + "…"


def _without_marks(source: str, references: Container[str], for_anchor: bool) -> str:
    out: list[str] = []
    openers: dict[str, list[int]] = {}  # run of "*", "_" or "~~" -> the indexes in ``out`` where it may open emphasis
    brackets: list[tuple[int, int]] = []  # of each open "[", the index in ``out`` and the offset after it in ``source``
    unclosed: set[str] = set()  # comments without an end, which is searched only once
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
            if not for_anchor and visible_text.begins_separate_mark(source, match.start(), position):
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
                    out[opener] = ""  # the bracket is removed, and the text between the brackets stays
                    position = target.end() if target else position
                    continue
            out.append(piece)
        elif kind == "run":
            before, after = source[match.start() - 1 : match.start()] or " ", source[position : position + 1] or " "
            # Left and right flanking runs, see CommonMark 0.31, section 6.2. "_" is no mark in snake_case.
            opens = not after.isspace() and (after.isalnum() or not before.isalnum())
            closes = not before.isspace() and (before.isalnum() or not after.isalnum())
            same_run = openers.setdefault(piece, [])
            if same_run and closes and not (piece[0] == "_" and after.isalnum()):
                out[same_run.pop()] = piece = ""
            elif opens and not (piece[0] == "_" and before.isalnum()):
                same_run.append(len(out))
            out.append(piece)
    out.append(source[position:])
    return "".join(out)


def label(text: str) -> str:
    """The label of a link in the form in which labels are compared: case-folded, with single spaces."""
    return " ".join(text.split()).casefold()


def parents(levels: Iterable[int]) -> list[int]:
    """For each heading of a page the index of its parent; -1 without one. ``levels``: of the headings, in order."""
    indexes: list[int] = []
    open_: list[tuple[int, int]] = []
    for index, level in enumerate(levels):
        while open_ and open_[-1][0] >= level:
            open_.pop()
        indexes.append(open_[-1][1] if open_ else -1)
        open_.append((level, index))
    return indexes


def breadcrumbs(headings: Sequence[tuple[int, str]]) -> list[str]:
    """The unique breadcrumbs of a page's headings, such as ``A > B > C``. ``headings``: (level, title) in order.

    A breadcrumb that the page has already gets a number, `` [2]``, `` [3]``.
    """
    paths: list[str] = []
    taken = {ROOT}
    numbers: dict[str, int] = {}
    for parent, (_, title) in zip(parents(level for level, _ in headings), headings, strict=True):
        path = plain_path = title if parent < 0 else f"{paths[parent]}{SEPARATOR}{title}"
        if path in taken:  # the next number is kept, because counting from 2 each time would take quadratic time
            number = numbers.get(plain_path, 2)
            while (path := f"{plain_path} [{number}]") in taken:
                number += 1
            numbers[plain_path] = number + 1
        taken.add(path)
        paths.append(path)
    return paths


def section_titles(paths: Sequence[tuple[str, int]]) -> list[str]:
    """The texts of headings. ``paths``: (breadcrumb, level) of each section of a page, in order.

    A breadcrumb has the breadcrumb of the parent, a separator and the text. A number that :func:`breadcrumbs` has added
    is not part of the text.
    """
    earlier: set[str] = set()
    titles = []
    for parent, (path, _) in zip(parents(level for _, level in paths), paths, strict=True):
        numbered = _NUMBERED.fullmatch(path)
        plain = numbered[1] if numbered and numbered[1] in earlier else path  # "Step [2]" may be the text of a heading
        titles.append(plain if parent < 0 else plain.removeprefix(paths[parent][0] + SEPARATOR))
        earlier.add(path)
    return titles


def listed_headings(paths: Sequence[tuple[str, int]]) -> tuple[str, ...]:
    """The names of headings in a list of pages: the text, or the breadcrumb if several headings have this text.
    ``paths``: (breadcrumb, level) of the h1 and h2 of a page, in order."""
    titles = section_titles(paths)
    uses = Counter(titles)
    return tuple(title if uses[title] == 1 else path for title, (path, _) in zip(titles, paths, strict=True))


def slug(title: str, style: Slugs) -> str:
    """The anchor for ``title``, before it is made unique.

    - ``github``: lower case. Letters, marks, digits, ``_`` and ``-`` stay, and spaces become ``-``.
    - ``mkdocs``: the default of Python-Markdown's ``toc``, folded to ASCII.
    - ``vitepress``: without accents. Runs of signs become one ``-``.
    - ``hugo``: as ``github``, but besides letters only decimal digits, ``_`` and ``-`` stay.
    - ``pandoc``: of Quarto and R Markdown. ``.`` stays, too, and all before the first letter is left out.
    """
    if style == "vitepress":
        unaccented = "".join(c for c in unicodedata.normalize("NFKD", title) if not "\u0300" <= c <= "\u036f")
        joined = _VITEPRESS_SIGNS.sub("-", "".join(c for c in unaccented if c > "\u001f")).strip("-")
        # An id that begins with a digit is no CSS selector, so VitePress writes a "_" before it.
        return ("_" + joined if joined[:1] in tuple("0123456789") else joined).lower()
    if style == "hugo":
        letters = (c for c in title.strip() if c in " -_" or unicodedata.category(c)[0] == "L" or c.isdecimal())
        return "".join(letters).lower().replace(" ", "-")
    if style == "pandoc":
        kept = "".join(c for c in title if c.isspace() or c.isalnum() or c in "_-.")
        return re.sub(r"^[\W\d_]+", "", "-".join(kept.lower().split()))
    if style == "mkdocs":
        folded = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode("ascii")
        return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", folded).strip().lower())
    if title.isascii():  # as below, but faster
        return _NOT_IN_ASCII_SLUG.sub("", title.lower()).replace(" ", "-")
    letters = (
        c
        for c in title.lower()
        if c in " -_" or unicodedata.category(c)[0] in "LM" or unicodedata.category(c) in ("Nd", "Nl", "Pc")
    )
    return "".join(letters).replace(" ", "-")


@dataclass(slots=True)
class Anchors:
    """Gives each heading of a page its own anchor. ``taken``: at first the ids that headings of the page set."""

    style: Slugs
    taken: set[str] = field(default_factory=set)
    _slugs: dict[str, str] = field(default_factory=dict)
    _numbers: dict[str, tuple[str, int]] = field(default_factory=dict)
    """A taken anchor -> the stem for numbered anchors, and the next number."""

    def claim(self, title: str) -> str:
        """The slug of ``title``, with a number if it is taken: ``-1`` or, in MkDocs, ``_1``."""
        anchor = self._slugs.get(title)
        if anchor is None:
            anchor = self._slugs[title] = slug(title, self.style) or _WITHOUT_LETTERS.get(self.style, "")
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
        # Python-Markdown increases a number at the end: after "step_2" comes "step_3", and not "step_2_1".
        if self.style == "mkdocs" and (numbered := re.fullmatch(r"(.*_)([0-9]{1,9})", anchor)):
            return numbered[1], int(numbered[2]) + 1
        return f"{anchor}{'_' if self.style == 'mkdocs' else '-'}", 1


# --- titles of pages ------------------------------------------------------------------------------------


def says_nothing(title: str) -> bool:
    """Whether a title is only the usual name of a file, such as "README"."""
    return posixpath.splitext(title.strip().lower())[0] in _NO_TITLES


def page_title(path: str, given: str | None, headings: Iterable[tuple[int, str]]) -> str:
    """The title of a page: ``given``, which is its declared title or its h1; else the name of its file.

    If that :func:`says_nothing`, it is the name of the folder. In ``README.md`` and ``index.md``, an h1 below other
    headings is the title of a part, so the name of the folder is used, too. ``headings``: (level, text), in order.
    """
    folder, name = posixpath.split(path)
    stem = posixpath.splitext(name)[0]
    own = given or ""
    following = iter(headings)
    first = next(following, None)
    is_below = says_nothing(stem) and first is not None and first[1] != own
    is_of_part = is_below and any(text == own for level, text in following if level == 1)
    # A skill has the name of its folder. Logseq writes "a___b.md" for the page "a/b".
    of_file = "" if name == "SKILL.md" else stem.replace("___", "/")
    candidates = ["" if is_of_part else own, of_file, posixpath.basename(folder), own]
    candidates += [first[1]] if first is not None else []
    return next((title for title in candidates if not says_nothing(title)), own or stem)


# --- the header of a text that a model reads ---------------------------------------------------------------

MAX_HEADER_TOKENS = 48
"""A fifth of the tokens that the bundled model reads. A longer header would leave too little room for text."""
_PART_OF = lazy_pattern(r" \[part \d+/\d+\]$")
_ESTIMATED_WORD = lazy_pattern(r"[^\W_]+|\S")


def window_header(title: str, heading_path: str) -> str:
    """The header of a chunk's windows: page title and breadcrumb, with the title only once and without ``[part 2/3]``.

    It has at most about 48 tokens, by an estimate without the model's tokenizer. In a longer header, the headings next
    to the title are removed first; then the end is cut."""
    title = " ".join(title.split())
    path = _PART_OF.sub("", heading_path)
    names = [] if path == ROOT else path.split(SEPARATOR)
    # The h1 is mostly the page's title. The whole title is compared, because it may have a separator in it.
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
    """An upper bound for the WordPiece tokens of a word, except for random letters."""
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
