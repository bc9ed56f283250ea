"""The processor time of a whole build of one hostile page of a quarter of a megabyte: 0.5 to 2 s when written."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.conftest import write
from tests.support.in_process import program

PAGE_BYTES = 250_000


@pytest.mark.parametrize("line", ["a\n=\n", "# a\n", '--8<-- "a"\n', "{!a!}\n", "#\n", "--8<--\na\n--8<--\n"])
def test_a_page_of_one_construct_is_built_in_time(line: str, tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", {"page.md": "# Page\n\n" + line * (PAGE_BYTES // len(line))})
    began = time.process_time()
    program("build", "--docs", docs, "--index", tmp_path / "index.db", "--provider", "none")
    assert time.process_time() - began < 4
