"""Characters of texts: encodings that are read, line ends, control characters, names of files, and scripts.

Control characters in a document could change a terminal's title, hide text or forge a line of a log.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from itertools import accumulate

from anvil.formats.patterns import lazy_pattern

_READ = lazy_pattern(
    r"ascii|utf-(8|8-sig|16|16-le|16-be|32|32-le|32-be)|iso8859-\d+|cp(125\d|437|85\d|86\d|874|932|949|950)"
    r"|koi8-[rtu]|mac-(roman|cyrillic|greek|latin2|turkish)|tis-620|shift_jis|euc_(jp|kr)|iso2022_jp|gb2312|gbk|gb18030"
    r"|big5|big5hkscs"
)
_CONTROL = lazy_pattern("[\0-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters other than tab and newline."""
_BYTES = lazy_pattern("[\udc80-\udcff]")
_NOT_IN_NAMES = lazy_pattern("[\0-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, ends of lines, changes of the direction of text, and half of a surrogate pair."""
LINE_END = re.compile(r"\r\n|\r|\n")
"""The line ends of Markdown. ``str.splitlines`` accepts eight more."""
LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
"""A line with its end; the last one may have none."""
_BACKTICKS = lazy_pattern("`+")
_LONE_SURROGATE = lazy_pattern("[\ud800-\udfff]")


_AS_BROWSERS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
}
"""Encoding -> the larger one as which browsers read it, because most such pages use it. Source: WHATWG, "Encoding
Standard", 4.2."""


def known_encoding(name: str) -> str | None:
    """Python's name of the encoding as which browsers read ``name``; None if Anvil does not read it.

    Only encodings whose decoders take linear time and give valid Unicode are read. Punycode takes quadratic time; utf-7
    and the escape encodings can give half of a surrogate pair.
    """
    try:
        python_name = codecs.lookup(name).name
    except (LookupError, ValueError):  # ValueError for example for a name with NUL
        return None
    return _AS_BROWSERS.get(python_name, python_name) if _READ.fullmatch(python_name) else None


_MARKED = {codecs.BOM_UTF32_LE: "UTF-32", codecs.BOM_UTF32_BE: "UTF-32"}  # before UTF-16, which begins alike
_MARKED |= {codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}


def marked_encoding(data: bytes) -> str:
    """The encoding that a byte order mark names; UTF-8 without one."""
    return next((encoding for mark, encoding in _MARKED.items() if data.startswith(mark)), "UTF-8")


_DECLARED = re.compile(
    rb"(?:<meta[^>]{0,200}?charset|<\?xml[^>]{0,200}?encoding)\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{1,40})", re.I
)
_DECLARED_BYTES = 4096
"""The encoding can be declared in so many bytes at the start of a page."""


def decoded(data: bytes, unknown: Callable[[bytes], str] = lambda data: "cp1252") -> str:
    """The text of a file. Never raises. The first of these that fits is its encoding:

    1. UTF-16 or UTF-32 with a byte order mark;
    2. UTF-8, also with a few broken bytes;
    3. the encoding that HTML or XML declares;
    4. the encoding that ``unknown`` returns, by default that of browsers.
    """
    if (encoding := marked_encoding(data)) != "UTF-8":
        return data.decode(encoding, "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
    if 2 * text.count("\ufffd") <= sum(not each.isascii() for each in text):
        return text  # most characters outside ASCII are valid UTF-8
    declared = _DECLARED.search(data, 0, _DECLARED_BYTES)
    codec = known_encoding(declared[1].decode("ascii")) if declared else None
    # A declaration of UTF-16 or UTF-8 is wrong: it was read byte by byte, and the text is no UTF-8.
    return data.decode(codec if codec and not codec.startswith("utf") else unknown(data), "replace")


def is_unicode(path: str) -> bool:
    """Whether a path from the operating system is valid Unicode."""
    return path.isascii() or not any("\ud800" <= character <= "\udfff" for character in path)


def is_plain_name(path: str) -> bool:
    """Whether a path can be shown in a line, because it cannot forge another line or look like another path."""
    return (path.isascii() and path.isprintable()) or not _NOT_IN_NAMES.search(path)


def plain_name(path: str) -> str:
    """A path that can be shown and stored. Characters that are not plain are escaped, as ``\\xNN``."""
    # On Unix, Python has these characters for bytes that are no UTF-8. Windows allows all halves of surrogate pairs.
    path = _BYTES.sub(lambda match: f"\\x{ord(match[0]) - 0xDC00:02x}", path)
    return _NOT_IN_NAMES.sub(lambda match: ascii(match[0])[1:-1], path)


def columns(text: str) -> int:
    """The columns that a text takes in a terminal: two for a wide character, none for a mark on a letter."""
    if text.isascii():  # nearly all paths
        return len(text)
    return sum(
        1 + (unicodedata.east_asian_width(character) in "WF") - (unicodedata.category(character) in ("Mn", "Me", "Cf"))
        for character in text
    )


def without_control(text: str) -> str:
    """A text for printing: line ends become newlines, and control characters except tabs are replaced."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", LINE_END.sub("\n", text))


def log_line(text: str) -> str:
    """A text for a log entry: further lines are indented, so that none looks like another entry."""
    return without_control(text).replace("\n", "\n  ")


def json_line(text: str) -> str:
    """JSON with all control characters escaped, also those that JSON allows."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def backticks(text: str, shortest: int = 1) -> str:
    """A run of backticks to put around ``text`` as code, longer than any run in it."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    return "`" * max(longest + 1, shortest)


def line_ends(text: str, at: int | None = None) -> int:
    """The number of line ends in a text, or before the offset ``at``."""
    end = len(text) if at is None else max(at, 0)
    if "\r" not in text:
        return text.count("\n", 0, end)
    return sum(line_end.end() <= end for line_end in LINE_END.finditer(text))


def line_starts(text: str) -> list[int]:
    """The offset of each line. No line begins at the end of the text, except that an empty text has one line."""
    if "\r" in text:
        starts = [0, *(end.end() for end in LINE_END.finditer(text))]
    else:
        starts = [0, *accumulate(len(line) + 1 for line in text.split("\n")[:-1])]
    if len(starts) > 1 and starts[-1] == len(text):
        starts.pop()
    return starts


def encodable(text: str) -> str:
    """A text with U+FFFD in place of lone surrogates, which UTF-8 cannot encode. Offsets stay the same."""
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)


# --- scripts: those without spaces between words, and those that a model reads ----------------------------------
# The Unicode name of a letter begins with the name of its script (LATIN SMALL LETTER A, CJK UNIFIED ...).

UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
"""Ranges of Chinese, Japanese and Korean characters, for a character class. These texts have no spaces between words,
so they are searched by characters and pairs of characters (:func:`anvil.text.query.pairs`). ``words.js`` of the search
page has the same ranges."""
WORD_MARKS = "\u00ad\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0963\u0966-\u0dff\u200c\u200d"
"""Ranges of characters inside a word at which the keyword index splits it: soft hyphens, joiners, and the marks of
Hebrew, Arabic and Indian scripts. The ranges of Indian scripts have letters, too. ``words.js`` has the same ranges."""
MIN_PIECES = 100
"""A model reads a script if its vocabulary has so many pieces of two or more letters of it. The vocabulary of the
bundled model has 27,586 Latin pieces and 8 Cyrillic ones. For Chinese, Japanese and Korean only single characters."""
MIN_UNREAD = 0.25
"""If so large a share of a question's letters is in scripts that the model does not read, search is by words only. The
share is low, because a Chinese sentence can have a few long Latin names, and a Chinese character tells as much as
several letters."""


def script(letter: str) -> str:
    """The script of a letter, such as ``LATIN``."""
    return "LATIN" if letter.isascii() else unicodedata.name(letter, "").partition(" ")[0]


def known_scripts(pieces: Iterable[str]) -> frozenset[str]:
    """The scripts of which a vocabulary has words. ``pieces``: the texts of the vocabulary."""
    counts: Counter[str] = Counter()
    for piece in pieces:
        letters = [character for character in piece if character.isalpha()]
        if len(letters) > 1:
            counts[script(letters[0])] += 1
    return frozenset(name for name, count in counts.items() if count >= MIN_PIECES)


def is_unread(text: str, known: Collection[str] | None) -> bool:
    """Whether a question is in other scripts than those that a model reads, ``known``. False if these are unknown."""
    if known is None or text.isascii():
        return False
    letters = [character for character in text if character.isalpha()]
    unread = sum(script(letter) not in known for letter in letters)
    return unread > 0 and unread >= MIN_UNREAD * len(letters)


def readable(text: str, known: frozenset[str] | None) -> str:
    """A text for a model that reads the ``known`` scripts. If it :func:`is_unread`, the characters and the punctuation
    of other scripts become spaces. Offsets stay the same."""
    return text.translate(_spaces_for_unread(known)) if known is not None and is_unread(text, known) else text


@lru_cache(8)
def _spaces_for_unread(known: frozenset[str]) -> dict[int, int]:
    """The table for :meth:`str.translate`. An entry is made when a text has the character for the first time."""

    class Characters(dict[int, int]):
        def __missing__(self, code: int) -> int:
            self[code] = code if code < 128 or script(chr(code)) in known else ord(" ")
            return self[code]

    return Characters()


def script_names(scripts: Collection[str]) -> str:
    """Names of scripts for people, such as ``CJK, Cyrillic, Latin``."""
    return ", ".join(sorted(name if name == "CJK" else name.capitalize() for name in scripts))
