"""Real pages with random damage: bytes and lines changed, doubled, moved, cut off."""

from __future__ import annotations

import random
from collections.abc import Sequence

_MARKS = "#*_`<>[](){}!|\\-=~:+&\"' \t\r\f\0\x0b\x85\u2028\ufeff\u200d\U0001f600\udc80"


def mutated(page: bytes, others: Sequence[bytes], chance: random.Random) -> str:
    """The page with some changes, as a source reads it; ``others`` give lines to it."""
    data = bytearray(page)
    for _ in range(chance.choice([0, 0, 1, 3, 20])):
        at = chance.randrange(len(data) + 1)
        if chance.random() < 0.5:
            data[at : at + chance.choice([0, 1, 1, 50])] = bytes(chance.choices(range(256), k=chance.choice([0, 1, 4])))
        else:
            data[at:at] = chance.choice(_MARKS).encode("utf-8", "surrogatepass") * chance.choice([1, 2, 30])
    lines = data.decode("utf-8", "replace").splitlines(keepends=True)
    for _ in range(chance.choice([0, 1, 3, 20])):
        if not lines:
            break
        at = chance.randrange(len(lines))
        kind = chance.randrange(6)
        if kind == 0:
            lines[at : at + chance.choice([1, 1, 9])] = []
        elif kind == 1:
            lines.insert(at, chance.choice(lines) * chance.choice([1, 1, 200]))
        elif kind == 2:
            lines[at] = (
                chance.choice(["> ", "- ", "    ", "\t", "# ", "1. ", "| ", "```", "---\n", "<div>"]) + lines[at]
            )
        elif kind == 3:
            lines[at] = lines[at].rstrip("\r\n") + chance.choice(["", "\r", "\r\n", "\n\n", "\f\n"])
        elif kind == 4:
            lines.insert(at, chance.choice(chance.choice(others).decode("utf-8", "replace").splitlines(True) or [""]))
        else:
            chance.shuffle(lines)
    return "".join(lines)
