"""Processor time from a page of one megabyte to its sections and to its chunks.

A page for each construct of tests/support/growth.py, repeated.

python benchmarks/hostile.py [BYTES]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from measuring import heading, table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from anvil.settings.schema import ChunkingOptions
from anvil.text.chunker import chunks
from anvil.text.markdown_sections import parse
from tests.support.growth import NAMES, page

LIMIT_S = 2.0
"""Processor time that a megabyte may take."""

if __name__ == "__main__":
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    parse("# loaded\n")
    slow = []
    rows = []
    for name in NAMES:
        text = page(name, size)
        began = time.process_time()
        parsed = parse(text)
        seconds = time.process_time() - began
        count = len(chunks(parsed, ChunkingOptions()))
        both = time.process_time() - began
        rows.append((name, f"{seconds:.2f} s", f"{both:.2f} s", f"{len(parsed.sections):,}", f"{count:,}"))
        slow += [name] if seconds > LIMIT_S * size / 1_000_000 else []
    print(heading())
    print(table(("construct", "to sections", "to chunks", "sections", "chunks"), rows))
    print(f"\n{size:,} characters each. Over {LIMIT_S} s per megabyte: {', '.join(slow) or 'none'}.")
