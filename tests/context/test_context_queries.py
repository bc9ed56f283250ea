"""The context of a repository as a program asks for it."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from anvil.context.context_queries import Context
from anvil.context.settings import ArtifactTypes, ContextEmbeddings, ContextOptions
from anvil.context.tasks import TaskCounts
from anvil.errors import ConfigError, NotFound
from anvil.settings.schema import Config
from tests.conftest import write
from tests.support import repositories
from tests.support.context_folders import CONTEXT_JSON, FILES

KNOWN = {path: text for path, text in FILES.items() if "/" in path}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write(tmp_path / "ferry", {**FILES, "context.json": CONTEXT_JSON})


def opened(root: Path, **more: Any) -> Context:
    return Context(Config(tables={"context": ContextOptions(**more)}), root)


# --- artifacts -------------------------------------------------------------------------------------------------


def test_artifacts_have_types_titles_and_times(root: Path) -> None:
    with opened(root) as context:
        found = {each.path: each for each in context.artifacts()}
        assert list(found) == sorted(KNOWN)
        assert found["specs/001-booking/spec.md"].title == "Booking a crossing"  # front matter
        assert found["specs/001-booking/plan.md"].title == "Implementation Plan: Booking"  # first h1
        assert found["specs/002-timetable/spec.md"].title == "Timetable"  # any first heading
        assert found["specs/notes.md"].title == "notes"
        assert found["specs/001-booking/tasks.md"].tasks == TaskCounts(4, 4)
        assert found[".specify/templates/tasks-template.md"].tasks.open == 0  # nobody is to do a template's
        assert [each.path for each in context.artifacts("decision")] == ["architecture/adr/0001-use-sqlite.md"]
        with pytest.raises(ConfigError, match="Use one of spec, plan"):
            context.artifacts("novel")


def test_updated_is_the_last_commit_else_the_files_time(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(root.parent))
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "A Writer")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "writer@example.com")
    repositories.run(root, "init", "-q")
    repositories.run(root, "add", "specs")
    repositories.run(root, "commit", "-q", "-m", "specs", at=1_700_000_000)
    os.utime(root / "architecture/overview.md", (1_600_000_000, 1_600_000_000))
    with opened(root) as context:
        context.ingest()
        found = {each.path: each.updated for each in context.artifacts()}
        write(root, {"specs/notes.md": "Other notes.\n"})
        os.utime(root / "specs/notes.md", (1_705_000_000, 1_705_000_000))
        edited = {each.path: each.updated for each in context.artifacts()}
        assert edited == {**found, "specs/notes.md": "2024-01-11T19:06:40Z"}  # not committed yet
        repositories.run(root, "commit", "-q", "-a", "-m", "notes", at=1_710_000_000)
        later = {each.path: each.updated for each in context.artifacts()}
    assert later == {**found, "specs/notes.md": "2024-03-09T16:00:00Z"}
    assert found["specs/notes.md"] == "2023-11-14T22:13:20Z"
    assert found["architecture/overview.md"] == "2020-09-13T12:26:40Z"
    assert repositories.run(root, "status", "--porcelain", "--", ".context") == ""


def test_ids_stay_when_others_come_and_go(root: Path) -> None:
    with opened(root) as context:
        before = {each.path: each.id for each in context.artifacts()}
        write(root, {"specs/000-first/spec.md": "# First\n", "specs/001-booking/b/spec.md": "# Deeper\n"})
        (root / "specs/002-timetable/spec.md").unlink()
        after = {each.path: each.id for each in context.artifacts()}
        assert all(after[path] == id_ for path, id_ in before.items() if path in after)
        assert len(set(after.values())) == len(after) == len(before) + 1


def test_an_artifact_is_found_however_it_is_named(root: Path) -> None:
    path = "specs/001-booking/spec.md"
    with opened(root) as context:
        for name in (path, f"./{path}", f"/{path}", str(root / path)):
            found = context.artifact(path=name)
            assert (found.id, found.path, found.content) == ("spec-001-booking", path, FILES[path])
        with pytest.raises(NotFound, match="Closest: spec-001-booking"):
            context.artifact(id="spec-001-bookings")
        with pytest.raises(ConfigError):
            context.artifact("spec-001-booking", path)


def test_types_and_directories_are_configurable(root: Path) -> None:
    write(root, {"rfcs/7-tides.md": "# Tides\n", "docs/deep/er/decisions/x.markdown": "# X\n"})
    with opened(root, directories=("rfcs", "./docs/", "nowhere"), types=ArtifactTypes(spec=("rfcs/*.md",))) as context:
        assert [(each.id, each.type) for each in context.artifacts()][1] == ("spec-rfcs.7-tides", "spec")
        assert [each.type for each in context.artifacts()] == ["decision", "spec"]
    with opened(root, directories=(".",)) as context:
        paths = [each.path for each in context.artifacts()]
        assert "README.md" in paths and "rfcs/7-tides.md" in paths
        assert ".specify/templates/tasks-template.md" not in paths  # hidden, unless it is spelled out


PATHS = [
    "README.md",
    "../ferry/README.md",
    "specs/../README.md",
    "/etc/passwd",
    "specs/../../secret.md",
    "context.json",
    "specs/link.md",
    "specs/linked/secret.md",
    "architecture",
    "",
    "specs/001-booking/spec.md\0",
    "C:\\secret.md",
    "\udc80.md",
    ".context/index/state.json",
]


@pytest.mark.parametrize("path", PATHS)
def test_nothing_outside_the_directories_is_read(path: str, root: Path) -> None:
    write(root.parent, {"secret.md": "# Secret\n\nMarmalade lies under the mat.\n"})
    if os.name != "nt":
        (root / "specs/link.md").symlink_to(root.parent / "secret.md")
        (root / "specs/linked").symlink_to(root.parent)
    with opened(root) as context:
        for named in ({"path": path}, {"id": path}, {"path": str(root / path)}):
            with pytest.raises((NotFound, ConfigError)):
                context.artifact(**named)
        assert [each.path for each in context.artifacts()] == sorted(KNOWN)
        if path in ("", "architecture"):  # the repository, and a folder in it
            assert {task.artifactPath for task in context.tasks("all", path)} <= set(KNOWN)
        else:
            with pytest.raises(NotFound):
                context.tasks("all", path)
        assert not context.search("marmalade secret albatross")


@pytest.mark.parametrize("place", ["../elsewhere", "/tmp/elsewhere", "~/elsewhere", "C:/elsewhere", "a/../../b"])
def test_a_configuration_leads_nowhere_else(place: str) -> None:
    for options in ({"index_dir": place}, {"directories": ("specs", place)}):
        with pytest.raises(ConfigError, match="inside the repository"):
            ContextOptions(**options)


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_an_index_folder_that_is_a_link_out_is_refused(root: Path) -> None:
    (root / ".context").symlink_to(root.parent)
    with pytest.raises(ConfigError, match="outside"):
        opened(root)


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_a_repository_whose_link_is_set_to_another_revision(root: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other", {"specs/new.md": "# Quagga\n", "context.json": '{"new": true}'})
    (tmp_path / "current").symlink_to(root)
    with opened(tmp_path / "current") as context:
        assert set(KNOWN) == {each.path for each in context.artifacts()}
        (tmp_path / "next").symlink_to(other)
        (tmp_path / "next").replace(tmp_path / "current")
        assert [each.path for each in context.artifacts()] == ["specs/new.md"]
        shutil.rmtree(root)
        assert context.artifact(path=str(tmp_path / "current/specs/new.md")).content == "# Quagga\n"
        assert context.get().context == {"new": True}
        context.ingest()
        assert (other / ".context").is_dir() and not root.exists()
        (tmp_path / "out").mkdir()
        (tmp_path / "out/.context").symlink_to(tmp_path)
        (tmp_path / "next").symlink_to(tmp_path / "out")
        (tmp_path / "next").replace(tmp_path / "current")
        with pytest.raises(ConfigError, match="outside"):
            context.ingest()


# --- search ----------------------------------------------------------------------------------------------------


def test_search_by_words(root: Path) -> None:
    with opened(root) as context:
        found = context.search("gangway")
        assert {each.artifactPath for each in found} == {
            "architecture/overview.md",
            "specs/001-booking/spec.md",
            "specs/002-timetable/spec.md",
        }
        assert len(context.search("gangway", 1)) == len(context.search("gangway", -3)) == 1
        assert len(context.search("gangway", 1000)) == len(found)
        specs = context.search("gangway", type="spec")
        assert {each.type for each in specs} == {"spec"} and len({each.artifactPath for each in specs}) == 2
        assert context.search("gangway", type="plan") == ()
        for each in found:
            lines = FILES[each.artifactPath].splitlines()
            assert each.content.splitlines()[0] == lines[each.startLine - 1]
        write(root, {"architecture/short.md": "# Short\n\n## One\n\nA line.\n\n## Two\n\nThe capstan.\n"})
        (short,) = context.search("capstan", 1)  # short sections are one chunk
        assert (short.content.splitlines()[0], short.startLine, short.heading) == ("## One", 3, "Short > Two")
        again = {each.chunkId for each in found}
        write(root, {"architecture/zebra.md": "# Zebra\n\nOf the gangway.\n"})
        assert again < {each.chunkId for each in context.search("gangway", 20)}  # ids stay
        with pytest.raises(ConfigError, match="query"):
            context.search("  ")


def test_a_template_is_found_by_a_search_for_templates_only(root: Path) -> None:
    with opened(root) as context:
        paths = [found.artifactPath for found in context.search("sample task replaced when used", 20)]
        assert paths and not any("templates" in path for path in paths)
        (found,) = context.search("sample task replaced when used", type="template")
        assert found.artifactPath == ".specify/templates/tasks-template.md"


def test_search_by_meaning_where_there_are_vectors(root: Path) -> None:
    with opened(root, embeddings=ContextEmbeddings("local")) as context:
        run = context.ingest()
        assert run.embeddings >= run.chunks
        found = context.search("which relational store did we pick?")
        assert found[0].artifactPath == "architecture/adr/0001-use-sqlite.md"
        assert context.health().embeddings == run.embeddings
    with opened(root) as context:  # the same index, by somebody without the model: words only
        assert context.search("database")[0].artifactPath == "architecture/adr/0001-use-sqlite.md"


# --- tasks -----------------------------------------------------------------------------------------------------


def test_tasks_by_status_and_place(root: Path) -> None:
    with opened(root) as context:
        every = context.tasks("all")
        assert len(every) == 10 and {each.status for each in every} == {"open", "done"}
        assert set(context.tasks()) | set(context.tasks("done")) == set(every)
        assert context.tasks(path="specs/001-booking") == context.tasks()
        assert context.tasks(path=".") == context.tasks(path=f"{root}/") == context.tasks()
        with pytest.raises(NotFound, match=r"^No artifact in specs/001-book\. Give .* Closest: specs/001-booking, "):
            context.tasks(path="specs/001-book")
        assert len(context.tasks(path="specs/001-booking/checklists/")) == 1
        with pytest.raises(ConfigError, match="open, done or all"):
            context.tasks("doing")


def test_a_box_that_is_ticked_is_done_at_once(root: Path) -> None:
    file = root / "specs/001-booking/tasks.md"
    with opened(root) as context:
        before = context.health().tasks
        file.write_text(FILES["specs/001-booking/tasks.md"].replace("- [ ] T002 ", "- [x] T002 "), encoding="utf-8")
        assert not any(each.text.startswith("T002 ") for each in context.tasks())
        assert context.health().tasks.done == before.done + 1


# --- context.json ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said", "note"),
    [
        ("[1, 2]", [1, 2], ""),
        ('\ufeff{"a": "\u00e9"}', {"a": "\u00e9"}, ""),
        ("", None, "not JSON"),
        ('{"a": 1,\n "b"}', None, "line 2"),
        ("[" * 200_000, None, "cannot be read"),
        (None, None, "no context.json"),
        ('"' + "x" * 1_100_000 + '"', None, "it has more than 1,000,000 bytes"),
        ("\udce9", None, "cannot be read"),
        ("[NaN]", None, "NaN is not JSON"),
        (r'["\ud800"]', None, "cannot be read"),
        ("[" * 70 + "]" * 70, None, "deeper"),
        ("[" * 60 + "]" * 60, eval("[" * 60 + "]" * 60), ""),
    ],
)
def test_context_json_as_it_is_or_why_not(root: Path, text: str | None, said: object, note: str) -> None:
    file = root / "context.json"
    file.unlink() if text is None else file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with opened(root) as context:
        found = context.get()
    assert found.context == said
    assert bool(found.notes) == bool(note) and all(note in each for each in found.notes)
    assert sum(found.inventory.artifacts.values()) == len(KNOWN) and found.inventory.tasks.open == 5


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_context_json_that_leads_out_is_not_read(root: Path) -> None:
    write(root.parent, {"secret.json": '{"secret": 1}'})
    (root / "context.json").unlink()
    (root / "context.json").symlink_to(root.parent / "secret.json")
    with opened(root) as context:
        found = context.get()
    assert found.context is None and "outside" in found.notes[0]


# --- life ------------------------------------------------------------------------------------------------------


def test_health_counts_are_those_of_the_index(root: Path) -> None:
    with opened(root) as context:
        run = context.ingest()
        health = context.health()
        assert (health.status, health.errors, health.notes) == ("ok", 0, ())
        assert (health.artifacts, health.chunks, health.embeddings) == (run.artifacts, run.chunks, run.embeddings)
        assert health.tasks == run.tasks and health.lastIngestion == run.timestamp
        write(root, {"specs/009/spec.md": "# Nine\n\n- [ ] one\n"})
        assert context.health().artifacts == run.artifacts + 1 and context.health().tasks.open == run.tasks.open + 1


def test_it_can_be_asked_from_many_threads(root: Path) -> None:
    problems: list[BaseException] = []

    def ask(context: Context, number: int) -> None:
        try:
            for turn in range(8):
                write(root, {f"operations/{number}-{turn}.md": f"# Note {number} {turn}\n\n- [ ] see to it\n"})
                assert context.artifact(path=f"operations/{number}-{turn}.md").tasks.open == 1
                assert context.search(f"note {number}") and context.tasks()
        except BaseException as problem:
            problems.append(problem)

    with Context(Config(), root, background=True) as context:
        context.start()
        threads = [threading.Thread(target=ask, args=(context, number)) for number in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert problems == []
        assert len(context.artifacts()) == len(KNOWN) + 32


def test_a_read_only_repository_is_served_from_memory(root: Path) -> None:
    (root / ".context").write_text("no folder can be made here")
    with Context(Config(), root, background=True) as context:
        context.start()
        assert len(context.artifacts()) == len(KNOWN)
        assert context.search("gangway") and context.health().lastIngestion is None


def test_closed_is_closed(root: Path) -> None:
    context = opened(root)
    context.close()
    context.close()
    with pytest.raises(ConfigError, match="closed"):
        context.artifacts()
