"""What a build of one hostile page costs: processor time compared with that of prose, and files that are opened."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from anvil.documents.repository_files import RepositoryFiles
from tests.conftest import write
from tests.support.in_process import program

PAGE_BYTES = 100_000
MAX_TIMES = 15
"""A page may take so many times the processor time of prose, of which a megabyte took half a second when written."""


def seconds(folder: Path, text: str) -> float:
    """The processor time of a build of one page."""
    docs = write(folder / "docs", {"page.md": text})
    began = time.process_time()
    program("build", "--docs", docs, "--index", folder / "index.db", "--provider", "none", "--force")
    return time.process_time() - began


@pytest.fixture(scope="module")
def prose_s(tmp_path_factory: pytest.TempPathFactory) -> float:
    """The processor time for as much text, of words that are all different."""
    words = "".join(f"w{number:05x} " for number in range(PAGE_BYTES // 7))
    return min(seconds(tmp_path_factory.mktemp("prose"), f"# Page\n\n{words}\n") for _ in range(3))


@pytest.mark.parametrize(
    "line",
    [
        "a\n-\n",
        "# a\n",
        "#\n",
        "*\n",
        '<a b="c">\r',
        '--8<-- "a"\n',
        "{!a!}\n",
        "<<< a\n",
        "--8<--\na\n--8<--\n",
    ],
)
def test_a_page_of_one_construct_takes_a_few_times_as_long_as_prose(line: str, prose_s: float, tmp_path: Path) -> None:
    text = "# Page\n\n" + line * (PAGE_BYTES // len(line))
    taken: list[float] = []
    while len(taken) < 3 and not (taken and taken[-1] < MAX_TIMES * prose_s):  # other processes make some runs slow
        taken.append(seconds(tmp_path, text))
    assert taken[-1] < MAX_TIMES * prose_s, (taken, prose_s)


@pytest.mark.parametrize(
    ("line", "file", "reads"),
    [
        ("{!no.py!}\n", "", 4),  # in the documentation folder, in snippets, in includes and in src
        ('--8<-- "no.md"\n', "", 4),
        ("<<< @/no.py\n", "", 1),
        ("{!f.py!}\n", "x" * 200_001, 1),
        ('--8<-- "f.py:nowhere"\n', "x = 1\n" * 1000, 200),
        ("{!f.py [ln:2000] !}\n", "x = 1\n" * 1000, 200),
        ("<<< ./f.py#nowhere\n", "x = 1\n" * 1000, 200),
    ],
)
def test_an_include_that_includes_nothing_is_read_a_bounded_number_of_times(
    line: str, file: str, reads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page of 5 kB took 15 s with a file of 5 MB."""
    opened: list[str] = []
    read = RepositoryFiles.read

    def counted(self: RepositoryFiles, real: str) -> object:
        opened.append(real)
        return read(self, real)

    monkeypatch.setattr(RepositoryFiles, "read", counted)
    docs = write(tmp_path / "docs", {"page.md": "# Page\n\n" + line * 3000, **({"f.py": file} if file else {})})
    program("build", "--docs", docs, "--index", tmp_path / "index.db", "--provider", "none")
    included = [path for path in opened if not path.endswith("page.md")]
    assert 0 < len(included) <= 4 * reads  # a build looks at a page that has just been written up to four times
