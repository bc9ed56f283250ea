"""Encodings by the names that strangers give them."""

from __future__ import annotations

import encodings
import pkgutil
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil.formats.characters import backticks, columns, decoded, known_encoding, line_ends, marked_encoding, plain_name

EVERY = sorted({each.name for each in pkgutil.iter_modules(encodings.__path__)})
READ = [name for name in EVERY if known_encoding(name)]


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("UTF8", "utf-8"),
        ("latin-1", "cp1252"),
        ("us-ascii", "cp1252"),
        ("ISO-8859-2", "iso8859-2"),
        ("GB2312", "gb18030"),
        ("Windows-1252", "cp1252"),
        ("Shift-JIS", "cp932"),
        ("EUC-KR", "cp949"),
        ("macintosh", "mac-roman"),
        ("KOI8-R", "koi8-r"),
        ("Big5", "big5hkscs"),
        ("ibm866", "cp866"),
        ("punycode", None),
        ("utf-7", None),
        ("unicode_escape", None),
        ("undefined", None),
        ("rot13", None),
        ("", None),
        ("a\0b", None),
        ("é", None),
        ("../x", None),
    ],
)
def test_names_of_encodings(name: str, codec: str | None) -> None:
    assert known_encoding(name) == codec


def test_most_encodings_of_the_web_are_read() -> None:
    assert len(READ) > 50 and {"gbk", "gb18030", "euc_jp", "iso2022_jp", "tis_620", "utf_32"} <= set(READ)


@given(st.sampled_from(READ), st.binary(max_size=200))
def test_what_is_decoded_can_be_written(name: str, data: bytes) -> None:
    codec = known_encoding(name)
    assert codec is not None
    data.decode(codec, "replace").encode("utf-8")
    try:
        text = data.decode(codec)
    except UnicodeDecodeError:
        return
    text.encode("utf-8")


@given(st.text(alphabet="a\r\n", max_size=30), st.integers(-1, 31))
def test_line_ends_are_counted_up_to_a_position(text: str, at: int) -> None:
    ends = [end.end() for end in re.finditer("\r\n|\r|\n", text)]
    assert line_ends(text) == len(ends)
    assert line_ends(text, at) == sum(end <= at for end in ends)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"caf\xc3\xa9", "café"),
        (b"\xef\xbb\xbfcaf\xc3\xa9", "\ufeffcafé"),
        (b"caf\xe9", "café"),
        ("café".encode("utf-16"), "café"),
        ("café".encode() * 3 + b"\xe9", "cafécafécafé\ufffd"),
        ('<meta charset="iso-8859-7">π'.encode("iso-8859-7"), '<meta charset="iso-8859-7">π'),
        (b'<meta charset="iso-8859-1">\x93caf\xe9\x94', '<meta charset="iso-8859-1">\u201ccaf\xe9\u201d'),
        (b'<?xml version="1.0" encoding="iso-8859-2"?>\xb3', '<?xml version="1.0" encoding="iso-8859-2"?>ł'),
        (b'<meta charset="no-such">caf\xe9', '<meta charset="no-such">café'),
        (b'<meta charset="utf-8">caf\xe9', '<meta charset="utf-8">café'),
        (b'<meta charset="utf-16">caf\xe9', '<meta charset="utf-16">café'),
        (b"<meta charset='rot13'>\xe9", "<meta charset='rot13'>é"),
        (b"<meta charset='undefined'>\xe9", "<meta charset='undefined'>é"),
        (b"<meta charset='utf-7'>\xe9+2AA-", "<meta charset='utf-7'>é+2AA-"),
        (b"", ""),
    ],
)
def test_a_text_is_decoded_as_browsers_do(data: bytes, text: str) -> None:
    """A broken byte in UTF-8 damages no other, and a text that says falsely that it is UTF-8 or UTF-16 is read."""
    assert decoded(data) == text


def test_code_has_more_backticks_around_it_than_in_it() -> None:
    assert [backticks(text) for text in ("x", "a ` b", "`` ` ``")] == ["`", "``", "```"]
    assert [backticks(text, 3) for text in ("x", "```", "``")] == ["```", "````", "```"]


def test_a_name_with_any_half_of_a_surrogate_pair_can_be_shown() -> None:
    """Unix has the second ones for bytes that are no text; Windows may have all in names of files."""
    assert plain_name("a\udcff\ud800\n") == r"a\xff\ud800\n"


@pytest.mark.parametrize(("text", "expected"), [("日本 é", 6), ("e\u0301", 1), ("Ａﾊ", 3), ("", 0), ("a\u200cb", 2)])
def test_the_columns_of_a_text_in_a_terminal(text: str, expected: int) -> None:
    assert columns(text) == expected


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8"])
def test_a_byte_order_mark_names_the_encoding(encoding: str) -> None:
    data = "h\u201c".encode(encoding)
    assert marked_encoding(data) == encoding.upper() and decoded(data) == "h\u201c"
