"""``anvil ci check``: whether the job passes."""

from pathlib import Path

from tests.support.in_process import program
from tests.support.repositories import run, write


def test_a_pointer_that_is_not_up_to_date_fails_the_check(tmp_path: Path) -> None:
    write(tmp_path / "anvil.toml", 'embedding = { provider = "none" }\n')
    write(tmp_path / "docs/limits.md", "# Limits\n\nText.\n")
    run(tmp_path, "init", "-q", "-b", "main")
    program("build", cwd=tmp_path)
    program("agents", cwd=tmp_path)
    assert "index.db is fresh" in program("ci", "check", cwd=tmp_path).stdout
    pointer = tmp_path / "AGENTS.md"
    write(pointer, pointer.read_text(encoding="utf-8").replace("1 page", "7 pages"))
    done = program("ci", "check", cwd=tmp_path, code=1)
    assert "index.db is fresh" in done.stdout
    assert "The pointer for agents is out of date in AGENTS.md. Run: anvil agents" in done.stdout + done.stderr
