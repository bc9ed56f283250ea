"""A folder where no index can be written, as on a read-only file system: questions are answered from memory."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import anvil
from anvil.errors import BuildError
from anvil.system import installation
from tests.conftest import write
from tests.support import programs
from tests.support.in_process import complaint, printed, program

COMMANDS = {
    "search": ("search", "high water"),
    "show": ("show", "tides.md"),
    "list": ("list",),
    "grep": ("grep", "High water"),
    "status": ("status",),
}
EXPECTED = {
    "search": "docs/tides.md:",
    "show": "High water is at noon.",
    "list": "tides.md",
    "grep": "tides.md:3:",
    "status": "2 pages",
}


def _no_folder(docs: Path) -> str:
    """The folder of the index cannot be made."""
    (docs / ".anvil").write_text("no folder can be made here")
    return "docs/.anvil cannot be made ("


def _no_file(docs: Path) -> str:
    """The folder is there, and nothing can be written into it: the name of the lock is taken."""
    (docs / ".anvil" / "index.db.lock").mkdir(parents=True)
    return "index.db.lock is a folder, and Anvil writes to regular files only."


def _refuse(path: Path, *_: object, **__: object) -> None:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))


def _only_note(stderr: str) -> str:
    """The note on the index; no other line says that something could not be written."""
    notes = [line for line in stderr.splitlines() if line.endswith("This answer is from the documents.")]
    assert len(notes) == 1 and stderr.count("cannot be") <= 1, stderr
    return notes[0]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(tmp_path, {"docs/tides.md": "# Tides\n\nHigh water is at noon.\n", "docs/lamps.md": "# Lamps\n\nOil.\n"})
    monkeypatch.setenv("ANVIL_EMBEDDING_PROVIDER", "none")
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("obstacle", [_no_folder, _no_file])
def test_a_question_is_answered_with_one_note(project: Path, command: str, obstacle: Callable[[Path], str]) -> None:
    reason = obstacle(project / "docs")
    done = program(*COMMANDS[command], cwd=project)
    assert EXPECTED[command] in done.stdout
    note = _only_note(done.stderr)
    assert reason in note
    done = program(*COMMANDS[command], "--json", cwd=project)
    assert done.stdout.startswith("{") and _only_note(done.stderr) == note
    assert reason in complaint("build", cwd=project)


def test_each_collection_says_why(project: Path) -> None:
    write(project, {"notes/a.md": "# Notes\n\nHigh water, again.\n"})
    write(project, {"anvil.toml": '[collections.tides]\ndocs = "docs"\n[collections.notes]\ndocs = "notes"\n'})
    reason = _no_folder(project / "docs")
    done = program("search", "high water", cwd=project)
    note = _only_note(done.stderr)
    assert note.startswith("anvil: tides: ") and reason in note and "tides:tides.md" not in done.stderr
    assert "docs/tides.md:" in done.stdout and "notes/a.md:" in done.stdout


def test_answers_in_python_have_the_note_and_stay_current(project: Path) -> None:
    reason = _no_folder(project / "docs")
    with anvil.open(project / "docs") as docs:
        note, no_vectors = docs.search("high water").freshness.notes
        assert reason in note and docs.refused == (note,) and not docs.provisional and "provider none" in no_vectors
        write(project, {"docs/new.md": "# New\n\nA quagga.\n"})
        (hit,) = docs.search("quagga").results
        assert hit.metadata.file_path == "new.md"
        with pytest.raises(BuildError, match="cannot be made"):
            docs.index()
        (project / "docs/.anvil").unlink()
        docs.index()
        assert docs.search("quagga").freshness.notes == (no_vectors,) and not docs.refused


def test_pages_are_compared_by_meaning_too(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANVIL_EMBEDDING_PROVIDER", "local")
    _no_folder(project / "docs")
    with anvil.open(project / "docs") as docs:
        result = docs.search("when is the flood at its highest?", mode="semantic")
        assert result.results[0].metadata.file_path == "tides.md" and result.results[0].score > 0.3
        assert result.freshness.pending_vectors == 0 and "vectors" not in " ".join(result.freshness.notes)


def test_a_large_folder_is_answered_too(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANVIL_EMBEDDING_PROVIDER", "local")
    monkeypatch.setattr("anvil.live.live_index.MAX_AWAITED_VECTORS", 1)
    reason = _no_folder(project / "docs")
    done = program("search", "high water", cwd=project)
    assert "docs/tides.md:" in done.stdout and reason in done.stderr


def test_anvils_own_documentation_needs_no_cache(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project, {"own/index.md": "# Lighthouse\n\nIt watches servers.\n"})
    monkeypatch.setenv("XDG_CACHE_HOME", str(project / "cache"))
    monkeypatch.setattr(installation, "OWN_INDEX", project / "none.db")
    monkeypatch.setattr(installation, "OWN_DOCS", (project / "own",))
    monkeypatch.setattr(Path, "mkdir", _refuse)
    done = program("docs", "watches servers")
    assert "index.md:" in done.stdout and "This answer is from the documents." in done.stderr
    assert printed("docs", "watches servers")["results"]


@pytest.mark.skipif(not shutil.which("unshare"), reason="no unshare: a read-only file system cannot be mounted")
def test_a_file_system_that_is_read_only(project: Path) -> None:
    mount = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" || exit 99; cd "$0" && shift && exec "$@"'
    as_user = () if os.geteuid() == 0 else ("--map-root-user",)
    done = subprocess.run(
        ["unshare", *as_user, "--mount", "sh", "-c", mount, project, "-", sys.executable, "-m", "anvil", "list"],
        env=programs.environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    if done.returncode == 99 or "unshare" in done.stderr:
        pytest.skip(f"no file system can be mounted here: {done.stderr}")
    assert (done.returncode, done.stdout.split()[0]) == (0, "lamps.md"), done.stderr
    note = _only_note(done.stderr)
    assert "docs/.anvil cannot be made (Read-only file system)" in note
    assert not (project / "docs/.anvil").exists()
