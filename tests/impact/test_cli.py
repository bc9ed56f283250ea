import json
from pathlib import Path

import pytest

from tests.support.in_process import complaint, program
from tests.support.repositories import commit, isolated, run, write

__all__ = ["isolated"]

PAGE = "# Limits\n\nText.\n\n## Size\n\nUse `--max-size` to refuse large files: `--max-size 100`.\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository in which ``limits.md`` changed with ``cli.py`` before, and the work tree renames its flag."""
    root = tmp_path / "repo"
    root.mkdir()
    run(root, "init", "-q", "-b", "main")
    write(root / "anvil.toml", 'embedding = { provider = "none" }\nimpact = { min_confidence = 0.3 }\n')
    for number in range(10):
        write(root / f"docs/{number}.md", f"# Page {number}\n\nSome text.\n")
    for number in range(4):
        write(root / "cli.py", f'parser.add_argument("--max-size")\n# {number}\n')
        write(root / "docs/limits.md", f"{PAGE}\n{number}\n")
        commit(root, f"step {number}", at=1_700_000_000 + number)
    write(root / "cli.py", 'parser.add_argument("--size-limit")\n')
    return root


def test_it_prints_the_section_and_the_reason(root: Path) -> None:
    done = program("impact", cwd=root, code=1)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("1. docs/limits.md:7  confidence 0.")
    assert lines[1] == "   Limits > Size"
    assert "   - names `--max-size`, which the change renames (cli.py:1)" in lines
    assert "   - changed together with cli.py in 3 of 3 commits" in lines
    assert lines[lines.index("No page has:") + 1] == "   --size-limit  cli.py:1"
    assert lines[-1].startswith("1 changed file of code in the work tree since ")
    assert lines[-1].endswith(": 1 section probably concerned.")


def test_nothing_likely_is_a_zero(root: Path) -> None:
    run(root, "checkout", "-q", "cli.py")
    head = run(root, "rev-parse", "--short=7", "HEAD")
    told = program("impact", cwd=root).stdout
    assert told.startswith(
        f"No code changed in the work tree since {head} (HEAD, as it shares no known commit with a remote;"
    )
    write(root / "new.py", "x = 1\n")
    run(root, "add", "new.py")
    assert program("impact", cwd=root).stdout.endswith(": no section probably concerned.\n")


def test_findings_need_not_fail(root: Path) -> None:
    program("impact", "--no-fail", cwd=root)
    done = program("impact", "--github", cwd=root)
    assert done.stdout.startswith("::notice file=docs/limits.md,line=7,title=Anvil::This section may be wrong")
    program("impact", "--github", "--fail", cwd=root, code=1)
    issues = json.loads(program("impact", "--gitlab", cwd=root).stdout)
    assert [each["location"] for each in issues] == [
        {"path": "docs/limits.md", "lines": {"begin": 7}},
        {"path": "cli.py", "lines": {"begin": 1}},
    ]


def test_json(root: Path) -> None:
    write(root / "cli.py", 'parser.add_argument("--brand-new")\n')
    found = json.loads(program("impact", "--json", "--min-confidence", "0.01", cwd=root, code=1).stdout)
    assert found["likely"] is True and found["files"] == 1
    first = found["findings"][0]
    assert (first["path"], first["heading_path"], first["line"]) == ("limits.md", "Limits > Size", 7)
    assert found["undocumented"] == [{"kind": "flag", "name": "--brand-new", "path": "cli.py", "line": 1}]


def test_a_diff_of_a_file(root: Path, tmp_path: Path) -> None:
    write(tmp_path / "x.diff", run(root, "diff") + "\n")
    run(root, "checkout", "-q", "cli.py")
    done = program("impact", tmp_path / "x.diff", "--docs", "docs", cwd=root, code=1)
    assert done.stdout.startswith("1. docs/limits.md:7")


def test_a_large_folder_without_an_index_is_searched_by_words(root: Path) -> None:
    for number in range(70):
        write(root / f"docs/many/{number}.md", f"# Part {number}\n\nThe text of part {number}.\n")
    by_words = program("impact", "--provider", "local", "--title", "Rename --max-size", cwd=root, code=1)
    assert by_words.stdout.startswith("1. docs/limits.md:7") and not (root / "docs/.anvil").exists()
    built = program("impact", "--title", "Rename --max-size", cwd=root, code=1)
    assert built.stdout == by_words.stdout and (root / "docs/.anvil/index.db").exists()


def test_without_a_model_no_index_is_built_that_later_searches_would_find_without_vectors(root: Path) -> None:
    (root / "anvil.toml").unlink()
    write(root / "docs/anvil-tests.toml", '[[question]]\nask = "limits"\nexpect = "limits.md"\n')
    for command in ("impact --staged", "search text", "list", "show limits.md", "grep limits", "status", "test"):
        program(*command.split(), "--provider", "none", cwd=root)
        assert not (root / "docs/.anvil").exists()


def test_it_says_why_an_index_cannot_be_written(root: Path) -> None:
    write(root / "docs/.anvil", "")  # a file, where the folder of the index belongs
    assert "docs/.anvil cannot be made" in program("impact", cwd=root, code=1).stderr


def test_arguments_that_contradict_each_other(root: Path) -> None:
    assert "Give one of them" in complaint("impact", "--staged", "--base", "main", cwd=root, code=2)
    assert "Give one of them" in complaint("impact", "--json", "--github", cwd=root, code=2)
    write(root / "x.txt", "hello\n")
    assert "not a diff" in complaint("impact", "x.txt", cwd=root, code=2)
