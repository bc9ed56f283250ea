"""``anvil context`` as its users run it, and the script for crontabs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from anvil.index_file import publish
from tests.conftest import write
from tests.support import in_process
from tests.support.context_folders import FILES
from tests.support.programs import ROOT, environment, program

KNOWN = sum("/" in path for path in FILES)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write(tmp_path / "ferry", {**FILES, "mcp.config.json": '{"directories": ["specs"], "port": 1}'})


def test_a_day_with_the_context(root: Path) -> None:
    done = program("context", "ingest", cwd=root)
    assert "6 artifacts" in done.stdout and "6 added" in done.stdout
    assert done.stderr.endswith("anvil: mcp.config.json: not used here: port.\n")  # a busy machine reports progress
    assert "nothing changed" in program("context", "ingest", cwd=root / "specs").stdout
    quiet = program("context", "ingest", "--quiet", cwd=root)
    assert (quiet.stdout, quiet.stderr) == ("", "")
    run = in_process.printed("context", "ingest", "--force", cwd=root)
    assert run["outcome"] == "built" and run["tasks"] == {"open": 5, "done": 5}

    write(root, {"specs/large.md": "x" * 1_200_000, "specs/new.md": "# Walrus\n\n- [ ] T7 feed the walrus\n"})
    found = in_process.program("context", "search", "walrus", cwd=root)
    assert "1. specs/new.md:1" in found.stdout and "| - [ ] T7 feed the walrus" in found.stdout
    tasks = in_process.program("context", "tasks", "specs/new.md", cwd=root).stdout
    assert tasks == "specs/new.md:3: [ ] T7 feed the walrus\n"
    done = in_process.printed("context", "tasks", "--status", "done", cwd=root)
    assert done[0]["text"].startswith("CHK001 ") and done[0]["mark"] == "x"
    assert in_process.program("context", "search", "narwhalish", cwd=root).stdout == "Nothing found.\n"
    nothing = in_process.program("context", "tasks", "specs/new.md", "--status", "done", cwd=root)
    assert (nothing.stdout, nothing.stderr) == ("", "There is no done task in specs/new.md.\n")
    assert "specs/large.md (too large" in in_process.program("context", "status", cwd=root).stdout
    status = in_process.printed("context", "status", cwd=root)
    assert status["artifacts"] == 7 and status["status"] == "ok"
    assert (
        "7 (2 spec, 1 plan, 1 tasks, 1 checklist, 2 generic)"
        in in_process.program("context", "status", cwd=root).stdout
    )
    assert "skipped specs/large.md: too large" in in_process.program("context", "ingest", cwd=root).stderr
    hits = in_process.printed("context", "search", "gangway", "--type", "spec", "-k", "1", cwd=root)
    assert len(hits) == 1 and hits[0]["type"] == "spec"


def test_a_result_shows_lines_of_the_section_that_it_names(root: Path) -> None:
    short = "# Fleet\n\n## Tug\n\nThe tug pulls the narwhal ship.\n\n## Narwhal\n\nIt is white.\n\n## Barge\n\nFlat.\n"
    write(root, {"specs/fleet.md": short})
    text = in_process.program("context", "search", "narwhal white", "-k", "1", cwd=root).stdout
    assert "Fleet > Narwhal" in text and "| It is white." in text
    assert "tug" not in text and "Flat" not in text


def test_an_empty_answer_says_that_the_folders_are_missing(tmp_path: Path) -> None:
    for command in (("tasks",), ("search", "gangway")):
        done = in_process.program("context", *command, cwd=write(tmp_path / "other", {"docs/a.md": "# A\n"}))
        assert done.stderr.count("none of the directories architecture") == 1 and "context.directories" in done.stderr


def test_what_cannot_be_done_is_told_in_a_sentence(root: Path) -> None:
    assert "Use one of spec" in in_process.complaint("context", "search", "x", "--type", "novel", cwd=root)
    assert "question" in in_process.complaint("context", "search", " ", cwd=root)
    assert "--root" in in_process.complaint("context", "ingest", "--root", "nowhere", cwd=root)
    (root / "mcp.config.json").write_text("{")
    assert "mcp.config.json cannot be read" in in_process.complaint("context", "ingest", cwd=root)


def test_a_killed_run_leaves_nothing_in_the_way(root: Path) -> None:
    folder = root / ".context/index"
    folder.mkdir(parents=True)
    holding = (
        "import sys, time, pathlib; from anvil.index_file import publish\n"
        "with publish.exclusive(pathlib.Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", holding, str(folder / "ingestion")], stdout=subprocess.PIPE, env=environment()
    )
    assert process.stdout and process.stdout.readline() == b"held\n"
    waiting = subprocess.Popen(
        [sys.executable, "-m", "anvil", "context", "ingest"], cwd=root, env=environment(), stdout=subprocess.PIPE
    )
    time.sleep(1.0)
    assert waiting.poll() is None  # it waits for the one that holds the lock
    process.send_signal(signal.SIGTERM if os.name == "nt" else signal.SIGKILL)
    process.wait()
    process.stdout.close()
    printed_, _ = waiting.communicate(timeout=60)
    assert waiting.returncode == 0 and b"6 artifacts" in printed_
    with publish.exclusive(folder / "ingestion", 0.0):
        pass


@pytest.mark.skipif(os.name == "nt", reason="a shell script")
def test_the_script_for_crontabs(root: Path, tmp_path: Path) -> None:
    anvil = tmp_path / "anvil"
    anvil.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m anvil "$@"\n')
    anvil.chmod(0o755)
    script = ROOT / "scripts" / "mcp-ingest.sh"
    bare = {**environment(), "ANVIL": str(anvil), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([str(script), str(root)], cwd="/", env=bare, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    own = root / "scripts" / "mcp-ingest.sh"  # as it stands in the repository itself
    write(root, {"scripts/mcp-ingest.sh": script.read_text(encoding="utf-8")})
    own.chmod(0o755)
    done = subprocess.run([str(own), "--json"], cwd="/", env=bare, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["outcome"] == "unchanged"
    log = (root / ".context/index/ingestion.log").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["outcome"] for line in log] == ["built", "unchanged"]


def test_nothing_heavy_is_imported_when_there_is_nothing_to_do(root: Path) -> None:
    program("context", "ingest", cwd=root)
    code = (
        "import sys; from anvil.cli.program import run; run(['context', 'ingest', '-q']); "
        "print(sorted({'numpy', 'mistletoe', 'onnxruntime', 'mcp', 'yaml', 'starlette'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
