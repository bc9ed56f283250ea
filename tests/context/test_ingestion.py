"""A run: only what changed is read, all of it is written down, and nothing stops it that need not."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anvil.context.context_queries import Context
from anvil.context.ingestion import Ingestion
from anvil.context.settings import ContextEmbeddings, ContextOptions
from anvil.context.tasks import TaskedDocuments
from anvil.errors import BuildError, IndexBusy
from anvil.index_file import publish
from anvil.requests import BuildRequest
from anvil.settings.schema import Config, EmbeddingSettings
from anvil.values import Document, Skipped
from tests.conftest import linked, write
from tests.embedding.test_openai import Server
from tests.support.context_folders import FILES

KNOWN = sum("/" in path for path in FILES)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write(tmp_path / "ferry", FILES)


def run(root: Path, **more: Any) -> Ingestion:
    with Context(Config(tables={"context": ContextOptions(**more)}), root) as context:
        return context.ingest()


def log(root: Path) -> list[dict[str, Any]]:
    text = (root / ".context/index/ingestion.log").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def state(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / ".context/index/state.json").read_text(encoding="utf-8"))
    return found


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that are read, by any run."""
    found: list[str] = []
    real = TaskedDocuments.read

    def read(self: TaskedDocuments, path: str) -> Document | Skipped:
        found.append(path)
        return real(self, path)

    monkeypatch.setattr(TaskedDocuments, "read", read)
    return found


def test_only_what_changed_is_read_again(root: Path, reads: list[str]) -> None:
    first = run(root)
    assert (first.outcome, first.artifacts, first.added) == ("built", KNOWN, KNOWN)
    assert len(reads) == KNOWN
    reads.clear()
    second = run(root)
    assert second.outcome == "unchanged" and reads == []
    assert (second.added, second.changed, second.removed) == (0, 0, 0)
    assert (second.tasks, second.chunks) == (first.tasks, first.chunks)
    write(root, {"specs/notes.md": "Other notes.\n", "specs/003-new/spec.md": "# New\n\n- [ ] do it\n"})
    (root / "operations/on-call.md").unlink()
    third = run(root)
    assert sorted(reads) == ["specs/003-new/spec.md", "specs/notes.md"]
    assert (third.added, third.changed, third.removed) == (1, 1, 1)
    assert third.tasks.open == first.tasks.open + 1
    with Context(Config(), root) as context:
        assert not context.search("ticket key")
        assert context.search("other notes")[0].artifactPath == "specs/notes.md"


def test_each_run_is_written_down(root: Path) -> None:
    runs = [run(root), run(root)]
    lines = log(root)
    assert [line["timestamp"] for line in lines] == [each.timestamp for each in runs]
    assert lines[0]["artifacts"] == KNOWN and lines[0]["tasks"] == {"open": 5, "done": 5} and lines[0]["seconds"] > 0
    found = state(root)
    assert found["timestamp"] == runs[1].timestamp > runs[0].timestamp
    assert sorted(found["hashes"]) == sorted(path for path in FILES if "/" in path)
    assert not (root / ".context/index/errors.log").exists()
    names = {path.name for path in (root / ".context/index").iterdir()}
    assert names == {".gitignore", "index.db", "ingestion.log", "state.json"}
    assert (root / ".context/index/.gitignore").read_text() == "*\n"


def test_the_same_files_give_the_same_index(root: Path, tmp_path: Path) -> None:
    run(root)
    write(root, {"specs/004/spec.md": "# Four\n"})
    run(root)
    (root / "specs/004/spec.md").unlink()
    run(root)
    other = write(tmp_path / "other", FILES)
    for path in FILES:
        for folder in (root, other):
            os.utime(folder / path, (1_700_000_000, 1_700_000_000))
    with Context(Config(), root) as one, Context(Config(), other) as two:
        one.ingest(BuildRequest(force=True))
        two.ingest()
    assert (root / ".context/index/index.db").read_bytes() == (other / ".context/index/index.db").read_bytes()


def test_nothing_to_read_still_counts_as_a_run(tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    first = run(tmp_path)
    assert (first.artifacts, first.errors) == (0, 0)
    again = run(tmp_path)
    assert state(tmp_path)["timestamp"] == again.timestamp != first.timestamp
    with Context(Config(), tmp_path) as context:
        assert context.artifacts() == () and context.search("anything") == () and context.tasks() == ()
        assert context.health().lastIngestion == again.timestamp


def test_a_repository_without_any_of_the_directories_is_told_so(tmp_path: Path) -> None:
    found = run(tmp_path)
    assert found.artifacts == 0 and "There is none of the directories architecture" in found.notes[0]
    (tmp_path / "specs").mkdir()
    with Context(Config(), tmp_path) as context:
        assert context.health().notes == (), "before another run, too"
    assert run(tmp_path, directories=("**/specs",)).notes == ()


def test_directories_of_known_tools_are_read_until_directories_are_chosen(tmp_path: Path) -> None:
    kiro = {".kiro/specs/login/requirements.md": "# Login\n", ".kiro/steering/tech.md": "# Tech\n"}
    others = {"_bmad-output/planning-artifacts/prd.md": "# Ferry\n", "agent-os/product/mission.md": "# Mission\n"}
    write(tmp_path, {**kiro, **others, "specs/1/spec.md": "# One\n", "docs/a.md": "# A\n"})
    found = run(tmp_path)
    assert found.notes == () and found.artifacts == 5
    assert run(tmp_path, directories=("specs", ".kiro/specs")).artifacts == 2


def test_large_files_are_skipped_with_a_warning(root: Path) -> None:
    write(root, {"specs/large.md": "x" * 2000, "specs/limit.md": "y" * 1000})
    warned: list[Skipped] = []
    with Context(Config(tables={"context": ContextOptions(max_file_size_bytes=1000)}), root) as context:
        found = context.ingest(warn=warned.append)
        (note,) = context.health().notes
    assert note == "Skipped: specs/large.md (too large: 2,000 bytes, the limit is 1,000 (context.max_file_size_bytes))."
    assert [each.path for each in warned] == ["specs/large.md"] and "too large" in warned[0].reason
    assert (found.skipped, found.errors) == (1, 0)
    assert "specs/limit.md" in state(root)["hashes"] and "specs/large.md" not in state(root)["hashes"]


def test_a_file_that_fails_is_written_down_and_skipped(root: Path) -> None:
    (root / "specs/latin.md").write_bytes(b"# Caf\xe9\n")
    (root / "specs/binary.md").write_bytes(b"# x\0y\n")
    found = run(root)
    assert found.errors == 2 and found.artifacts == KNOWN
    errors = root / ".context/index/errors.log"
    lines = [json.loads(line) for line in errors.read_text(encoding="utf-8").splitlines()]
    assert [line["path"] for line in lines] == ["specs/binary.md", "specs/latin.md"]
    assert "UTF-8" in lines[1]["reason"] and lines[1]["timestamp"] == found.timestamp
    before = errors.read_bytes()
    assert run(root).errors == 2
    assert errors.read_bytes() == before  # known already: a crontab does not fill the disk
    with Context(Config(), root) as context:
        health = context.health()
    assert (health.status, health.errors, health.artifacts) == ("degraded", 2, KNOWN)
    (root / "specs/latin.md").write_text("# Café\n", encoding="utf-8")
    (root / "specs/binary.md").unlink()
    assert run(root).errors == 0
    with Context(Config(), root) as context:
        assert context.health().status == "ok"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="anything can be read here")
def test_a_file_without_permission_is_an_error(root: Path) -> None:
    (root / "specs/notes.md").chmod(0)
    assert run(root).errors == 1


def test_two_runs_at_once_wait_for_each_other(root: Path) -> None:
    folder = root / ".context/index"
    folder.mkdir(parents=True)
    began, ended = threading.Event(), []

    def hold() -> None:
        with publish.exclusive(folder / "ingestion"):
            began.set()
            time.sleep(0.4)
            ended.append(time.monotonic())

    holder = threading.Thread(target=hold)
    holder.start()
    began.wait()
    with Context(Config(), root) as context:
        with pytest.raises(IndexBusy, match="Another process is writing"):
            context.ingest(BuildRequest(lock_timeout_s=0.0))
        assert context.ingest().outcome == "built"
    holder.join()
    assert ended and ended[0] <= time.monotonic()
    assert not (folder / "ingestion.lock").exists()


def test_a_lock_that_a_dead_process_left_is_nobodys(root: Path) -> None:
    folder = root / ".context/index"
    folder.mkdir(parents=True)
    (folder / "ingestion.lock").write_bytes(b"")
    (folder / "index.db.lock").write_bytes(b"")
    with Context(Config(), root) as context:
        assert context.ingest(BuildRequest(lock_timeout_s=0.0)).outcome == "built"


def test_many_runs_at_once_end_in_one_index(root: Path) -> None:
    found: list[Ingestion] = []
    threads = [threading.Thread(target=lambda: found.append(run(root))) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(each.outcome for each in found) == ["built", "unchanged", "unchanged", "unchanged"]
    assert len(log(root)) == 4


@pytest.mark.parametrize("damage", ["missing", "half", "old", "index"])
def test_damaged_state_is_made_anew(root: Path, damage: str, reads: list[str]) -> None:
    first = run(root)
    reads.clear()
    file = root / ".context/index/state.json"
    if damage == "missing":
        file.unlink()
    elif damage == "half":
        file.write_text(file.read_text(encoding="utf-8")[:100], encoding="utf-8")
    elif damage == "old":
        file.write_text(json.dumps(state(root) | {"version": 0}), encoding="utf-8")
    else:
        index = root / ".context/index/index.db"
        index.write_bytes(index.read_bytes()[:5000])
    again = run(root)
    assert (again.artifacts, again.tasks, again.chunks) == (first.artifacts, first.tasks, first.chunks)
    assert len(reads) == (KNOWN if damage in ("old", "index") else 0)
    assert state(root)["version"] == 8 and len(state(root)["hashes"]) == KNOWN


def test_sizes_cut_anew(root: Path) -> None:
    text = "# Long\n\n" + "A sentence about ferries. " * 200
    write(root, {"specs/long.md": text})
    by_sections = run(root)
    fixed = run(root, chunk_size=400)
    assert fixed.chunks > by_sections.chunks and any("chunking" in note for note in fixed.notes)
    with Context(Config(tables={"context": ContextOptions(chunk_size=400)}), root) as context:
        found = context.search("ferries", 20)
        assert all(len(each.content) <= 400 for each in found)
        assert context.artifact(path="specs/long.md").content == text
    assert run(root).chunks == by_sections.chunks


def test_a_place_that_cannot_be_written_is_told(root: Path) -> None:
    (root / ".context").write_text("a file")
    with pytest.raises(BuildError, match=r"context\.index_dir"):
        run(root)


@pytest.mark.parametrize("name", ["errors.log", "ingestion.log", ".gitignore", "index.db.lock", "ingestion.lock"])
@pytest.mark.parametrize("there", [True, False])
def test_links_that_a_checkout_brings_are_not_written_through(root: Path, name: str, there: bool) -> None:
    (root / "specs/bad.md").write_bytes(b"\xff\xfe\x00")
    target = root.parent / "bashrc"
    if there:
        target.write_text("alias ls=ls\n")
    linked(root / ".context/index" / name, target)
    with pytest.raises(BuildError, match="is a link"):
        run(root)
    assert target.read_text() == "alias ls=ls\n" if there else not target.exists()


@pytest.mark.parametrize("name", ["state.json", "index.db.new", "ingestion.new"])
def test_links_where_a_file_is_made_anew_are_taken_away(root: Path, name: str) -> None:
    target = write(root.parent, {"bashrc": "alias ls=ls\n"}) / "bashrc"
    linked(root / ".context/index" / name, target)
    assert run(root).outcome == "built"
    assert target.read_text() == "alias ls=ls\n" and len(state(root)["hashes"]) == KNOWN
    assert not (root / ".context/index" / name).is_symlink()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
@pytest.mark.parametrize("name", ["errors.log", "ingestion.log", ".gitignore", "ingestion.lock"])
def test_a_pipe_is_no_log(root: Path, name: str) -> None:
    (root / "specs/bad.md").write_bytes(b"\xff\xfe\x00")
    (root / ".context/index").mkdir(parents=True)
    os.mkfifo(root / ".context/index" / name)
    with pytest.raises(BuildError, match="is a pipe"):
        run(root)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_a_state_that_never_ends_is_none(root: Path) -> None:
    (root / ".context/index").mkdir(parents=True)
    os.mkfifo(root / ".context/index/state.json")
    assert run(root).outcome == "built" and len(state(root)["hashes"]) == KNOWN


# --- vectors ---------------------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    thread = threading.Thread(target=found.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    found.http.shutdown()
    found.http.server_close()
    thread.join()


def remote(root: Path, url: str, key: str | None) -> Ingestion:
    embedding = EmbeddingSettings(base_url=url, api_key=key, dimensions=3)
    options = ContextOptions(embeddings=ContextEmbeddings("openai"))
    with Context(Config(embedding=embedding, tables={"context": options}), root) as context:
        found = context.ingest()
        assert "architecture/overview.md" in {each.artifactPath for each in context.search("gangway")}
        assert context.health().status == ("ok" if key else "degraded")
        return found


def test_a_provider_that_fails_leaves_text_and_is_tried_again(root: Path, server: Server) -> None:
    failed = remote(root, server.url, None)
    assert failed.outcome == "built" and failed.artifacts == KNOWN and failed.embeddings == 0
    assert any("API key" in note for note in failed.notes)
    made = remote(root, server.url, "sk-test")
    assert made.embeddings == made.chunks > 0 and made.notes == ()
    asked = len(server.requests)
    assert remote(root, server.url, "sk-test").outcome == "unchanged"
    write(root, {"specs/005/spec.md": "# Five\n\nA fifth gangway.\n"})
    partly = remote(root, server.url, None)  # what stands keeps its vectors
    assert partly.embeddings == made.embeddings and partly.chunks == made.chunks + 1
    done = remote(root, server.url, "sk-test")
    assert done.embeddings == done.chunks
    new = [text for body in server.requests[asked:] for text in body["input"] if "fifth" in text]
    assert len(new) == 1


def test_a_provider_that_there_is_not_leaves_text(root: Path) -> None:
    found = run(root, embeddings=ContextEmbeddings("cohere"))
    assert found.artifacts == KNOWN and any("cohere" in note for note in found.notes)
    with Context(Config(tables={"context": ContextOptions(embeddings=ContextEmbeddings("cohere"))}), root) as context:
        assert context.search("gangway") and context.health().status == "degraded"
