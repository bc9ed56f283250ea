"""Unpacking of Snappy's block format, in which GitHub keeps attestations.

A block is the length of the unpacked bytes, then elements: bytes as they are, and copies of bytes further up. Two bits
of an element's first byte say which kind it is.
https://github.com/google/snappy/blob/main/format_description.txt
"""

from __future__ import annotations

_LONGEST_INLINE = 60
"""Up to this length, the first byte of a literal has the length itself. Above, it has the number of bytes with it."""


def unpacked(data: bytes, limit: int) -> bytes:
    """The bytes in a block. ``limit``: how many it may have; a longer block is refused before it is unpacked. Raises
    :class:`ValueError`."""
    size, position = _size(data)
    if size > limit:
        raise ValueError(f"it has {size:,} bytes unpacked, and {limit:,} are allowed")
    result = bytearray()
    while position < len(data):
        tag = data[position]
        position += 1
        kind, upper = tag & 3, tag >> 2
        extra = (max(0, upper + 1 - _LONGEST_INLINE), 1, 2, 4)[kind]
        number = int.from_bytes(_part(data, position, extra), "little")
        position += extra
        if kind == 0:
            length = (number if extra else upper) + 1
            _ensure_fits(length, result, size)
            result += _part(data, position, length)
            position += length
            continue
        offset = number
        length = upper + 1
        if kind == 1:  # the three upper bits belong to the offset
            offset, length = (tag >> 5 << 8) + number, (upper & 7) + 4
        _ensure_fits(length, result, size)
        _copy(result, offset, length)
    if len(result) != size:
        raise ValueError(f"it has {len(result):,} bytes unpacked, and says that it has {size:,}")
    return bytes(result)


def _size(data: bytes) -> tuple[int, int]:
    """The length that a block says it has, and where its elements begin: seven bits in each byte, the lowest first."""
    size = 0
    for position, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            if size >= 1 << 32:
                break
            return size, position + 1
    raise ValueError("it is not a block of Snappy")


def _part(data: bytes, start: int, length: int) -> bytes:
    if start + length > len(data):
        raise ValueError("it ends too early")
    return data[start : start + length]


def _ensure_fits(length: int, result: bytearray, size: int) -> None:
    if len(result) + length > size:
        raise ValueError(f"it has more bytes unpacked than the {size:,} that it says")


def _copy(result: bytearray, offset: int, length: int) -> None:
    """Append bytes that begin ``offset`` before the end. A copy longer than its offset repeats what it copied."""
    if not 0 < offset <= len(result):
        raise ValueError("it copies bytes from before its start")
    start = len(result) - offset
    chunk = bytes(result[start : start + length])
    result += (chunk * -(-length // len(chunk)))[:length]
