"""Whatever becomes of a page, it is cut without an error, in little time, and nothing of it is lost."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import get_args

from anvil.settings.schema import ChunkingOptions, Slugs
from anvil.text import front_matter, visible_text
from anvil.text.chunker import chunks
from anvil.text.markdown_sections import BOM, parse
from tests.support.mutations import mutated

ROOT = Path(__file__).resolve().parents[2]
PAGES = [path.read_bytes() for folder in ("docs", "tests/cases") for path in sorted((ROOT / folder).rglob("*.md"))]
ROUNDS = 150
MAX_SECONDS_PER_MEGABYTE = 15
"""Processor time, on a machine that does much else; and a tenth of a second for each page."""


def test_mutated_pages_are_cut_without_loss() -> None:
    chance = random.Random(13)
    for number in range(ROUNDS):
        text = mutated(chance.choice(PAGES), PAGES, chance)
        began = time.process_time()
        slugs, size = chance.choice(get_args(Slugs)), chance.choice([300, 4000])
        options = ChunkingOptions(size, slugs=slugs)
        page = parse(text, options)
        cut = chunks(page, options)
        seconds = time.process_time() - began
        where = f"round {number}"
        body = text.removeprefix(BOM)
        assert page.text == body[front_matter.split(body)[1] :], where
        assert "".join(chunk.content for chunk in cut) == (page.text if page.text.strip() else ""), where
        assert "".join(page.text[each.start : each.end] for each in page.sections).strip() == page.text.strip(), where
        assert len({section.heading_path for section in page.sections}) == len(page.sections), where
        mask = visible_text.masked(page.text)
        assert visible_text.restored(mask, visible_text.taken(page.text, mask)) == page.text, where
        assert seconds < 0.1 + len(text) / 1e6 * MAX_SECONDS_PER_MEGABYTE, where
