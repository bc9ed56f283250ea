"""Snappy's block format: each kind of element, streams of all of them, and blocks that are damaged or lie."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil.fetch import attestation

LIMIT = 1_000_000


def varint(number: int) -> bytes:
    rest, low = divmod(number, 128)
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def literal(data: bytes, width: int = 0) -> bytes:
    """``width``: bytes with the length; 0 for a length in the tag."""
    if width == 0:
        return bytes([len(data) - 1 << 2]) + data
    return bytes([59 + width << 2]) + (len(data) - 1).to_bytes(width, "little") + data


def copy(offset: int, length: int, width: int) -> bytes:
    """``width``: bytes with the offset."""
    if width == 1:
        return bytes([offset >> 8 << 5 | length - 4 << 2 | 1, offset & 0xFF])
    return bytes([length - 1 << 2 | (2 if width == 2 else 3)]) + offset.to_bytes(width, "little")


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ("00", b""),
        ("01 00 61", b"a"),
        ("05 10 68656c6c6f", b"hello"),
        ("04 00 61 00 62 04 6364", b"abcd"),
        ("09 08 616263 09 03", b"abcabcabc"),  # 1 byte of offset: 6 bytes from 3 before
        ("0a 00 61 15 01", b"a" * 10),  # a run
        ("06 08 616263 0a 0300", b"abcabc"),  # 2 bytes of offset
        ("06 08 616263 0b 03000000", b"abcabc"),  # 4 bytes of offset
        ("03 f0 02 616263", b"abc"),  # 1 to 4 bytes with the length of a literal
        ("03 f4 0200 616263", b"abc"),
        ("03 f8 020000 616263", b"abc"),
        ("03 fc 02000000 616263", b"abc"),
    ],
)
def test_each_kind_of_element(block: str, text: bytes) -> None:
    assert attestation.snappy_unpacked(bytes.fromhex(block), LIMIT) == text


def test_the_examples_of_lengths_in_the_description() -> None:
    assert varint(64) == b"\x40" and varint(2_097_150) == b"\xfe\xff\x7f"
    data = bytes(range(256)) * 8192
    block = varint(2_097_150) + literal(data[:2_097_150], 3)
    assert attestation.snappy_unpacked(block, 2_097_150) == data[:2_097_150]
    with pytest.raises(ValueError, match="2,097,150 bytes unpacked, and 2,097,149 are allowed"):
        attestation.snappy_unpacked(block, 2_097_149)


def test_a_block_of_another_program() -> None:
    """Made once with cramjam 2.14."""
    block = "4a247b2261223a205b312c20320300405d2c202262223a20226f6e652074776f203a0800002c3e110004227d"
    text = b'{"a": [1, 1, 1, 1, 1, 1], "b": "one two one two one two, one two one two"}'
    assert attestation.snappy_unpacked(bytes.fromhex(block), LIMIT) == text


@st.composite
def streams(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A block of random elements, and its bytes, copied one by one."""
    block, text = b"", bytearray()
    for _ in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from((0, 1, 2, 4) if text else (0,)))
        if kind == 0:
            data = draw(st.binary(min_size=1, max_size=300))
            widths = (0, 1, 2, 3, 4) if len(data) <= 60 else (1, 2, 3, 4) if len(data) <= 256 else (2, 3, 4)
            block += literal(data, draw(st.sampled_from(widths)))
            text += data
            continue
        offset = draw(st.integers(1, min(len(text), 2047 if kind == 1 else 65535)))
        length = draw(st.integers(4, 11) if kind == 1 else st.integers(1, 64))
        block += copy(offset, length, kind)
        for _ in range(length):
            text.append(text[-offset])
    return varint(len(text)) + block, bytes(text)


@given(streams())
def test_all_streams_of_elements(stream: tuple[bytes, bytes]) -> None:
    block, text = stream
    assert attestation.snappy_unpacked(block, len(text)) == text
    for broken in (block[:-1], block + b"\x00x"):
        with pytest.raises(ValueError):
            attestation.snappy_unpacked(broken, LIMIT)


@given(st.binary(max_size=200))
def test_any_bytes_are_unpacked_or_refused(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert len(attestation.snappy_unpacked(data, 5_000)) <= 5_000


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        ("", "not a block"),
        ("80", "not a block"),
        ("ffffffffff01", "not a block"),
        ("ffffffff1f", "not a block"),  # more than 32 bits
        ("ffffffff0f 00 61", "4,294,967,295 bytes unpacked, and 1,000,000 are allowed"),
        ("05 10 68656c", "ends too early"),
        ("05 f4 04", "ends too early"),
        ("05 10 68656c6c6f 0a 01", "ends too early"),
        ("05 fc ffffffff 61", "more bytes unpacked than the 5 that it says"),
        ("05 00 61 15 01", "more bytes unpacked than the 5 that it says"),
        ("06 10 68656c6c6f", "5 bytes unpacked, and says that it has 6"),
        ("04 01 01", "before its start"),
        ("05 00 61 01 00", "before its start"),
        ("05 00 61 01 02", "before its start"),
    ],
)
def test_a_damaged_block_is_refused(block: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        attestation.snappy_unpacked(bytes.fromhex(block), LIMIT)
