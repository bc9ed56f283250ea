"""The agents' files: which get the pointer, what is kept, and what is left alone."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

import anvil
from anvil.agents import agent_files, marked_block
from anvil.agents.agent_files import AgentFiles, AgentsReport, StaleFiles
from anvil.documents.document_source import SourceWrapper
from anvil.errors import ConfigError
from anvil.values import Document, Skipped
from tests.support.repositories import isolated, root, run, write

__all__ = ["isolated", "root"]


def update(root: Path, docs: str = "docs", **options: bool) -> AgentsReport:
    with anvil.open(root / docs) as opened:
        assert opened.tree is not None
        return AgentFiles(root / docs, root).write(opened.tree, **options)


def compare(root: Path, docs: str = "docs") -> StaleFiles:
    with anvil.open(root / docs) as opened:
        assert opened.tree is not None
        return AgentFiles(root / docs, root).compare(opened.tree)


def text(file: Path) -> str:
    return file.read_bytes().decode()


def test_files_that_exist_get_the_pointer_and_nothing_else_changes(root: Path) -> None:
    before = {"CLAUDE.md": "# Rules\r\n\r\nBe kind.\r\n", ".github/copilot-instructions.md": "no line end"}
    for name, content in before.items():
        write(root / name, content)
    (root / ".cursor/rules").mkdir(parents=True)
    report = update(root)
    assert {file.path for file in report.files} == {*before, ".cursor/rules/anvil.mdc"} and not report.problems
    assert not (root / "AGENTS.md").exists()
    for name, content in before.items():
        assert text(root / name).startswith(content)
    assert "\n" not in text(root / "CLAUDE.md").replace("\r\n", "")
    rule = text(root / ".cursor/rules/anvil.mdc")
    assert rule.startswith("---\n") and yaml.safe_load(rule.split("---\n")[1])["alwaysApply"] is False
    assert {file.outcome for file in update(root).files} == {"unchanged"}
    assert not compare(root) and compare(root).compared == 3

    write(root / "docs/new.md", "# New page\n")
    assert set(compare(root).stale) == {*before, ".cursor/rules/anvil.mdc"}
    assert len(update(root, only_marked=True).changed()) == 3 and not compare(root)

    report = AgentFiles(root / "docs", root).remove()
    assert len(report.files) == 3
    assert {name: text(root / name).rstrip() for name in before} == {k: v.rstrip() for k, v in before.items()}
    assert not (root / ".cursor/rules/anvil.mdc").exists()


def test_agents_md_is_made_where_there_is_none_of_the_files(root: Path) -> None:
    assert update(root, only_marked=True).files == ()
    assert update(root).changed() == ("AGENTS.md",)
    assert update(root / "..", "repo/docs").files[0].outcome == "unchanged"
    AgentFiles(root / "docs", root).remove()
    assert not (root / "AGENTS.md").exists()


def test_a_file_in_place_of_a_folder_has_no_pointer(root: Path) -> None:
    """The repository of Biome has a README beside the folders of skills."""
    write(root / ".claude/skills/README.md", "# Skills\n")
    write(root / ".github", "")
    write(root / ".cursor", "")
    name = ".claude/skills/repo-docs/SKILL.md"
    assert [file.path for file in update(root).files] == ["AGENTS.md", name]
    assert [file.outcome for file in update(root).files] == ["unchanged", "unchanged"]


def test_skills_are_valid_by_the_published_format(root: Path) -> None:
    write(root / "pyproject.toml", '[build-system]\nname = "no"\n[project]\nname = "My_Tool"\n')
    assert set(update(root, skill_wanted=True).changed()) == {
        "AGENTS.md",
        ".claude/skills/my-tool-docs/SKILL.md",
        ".agents/skills/my-tool-docs/SKILL.md",
    }
    content = text(root / ".claude/skills/my-tool-docs/SKILL.md")
    _, front, body = content.split("---\n", 2)
    fields = yaml.safe_load(front)
    assert fields.keys() == {"name", "description"} and fields["name"] == "my-tool-docs"
    assert 1 <= len(fields["description"]) <= 1024 and "<" not in fields["description"]
    assert "has 1 page of documentation" in body and len(content.splitlines()) < 500
    (root / "pyproject.toml").unlink()  # the name of the folder is decided once
    assert len(update(root).files) == 3
    AgentFiles(root / "docs", root).remove()
    assert not list(root.glob(".*/skills")) and not (root / ".claude").exists() and not (root / ".agents").exists()
    assert [file.path for file in update(root).files] == ["AGENTS.md"], "skills that were removed are not written again"


def test_a_project_that_has_nothing_but_the_pointer_keeps_its_folder(tmp_path: Path) -> None:
    project = tmp_path / "project"
    write(project / "index.md", "# Guide\n")
    with anvil.open(project) as opened:
        assert opened.tree is not None
        AgentFiles(project, project).write(opened.tree, skill_wanted=True)
    (project / "index.md").unlink()
    AgentFiles(project, project).remove()
    assert project.is_dir() and not list(project.iterdir())


def test_removing_the_pointer_keeps_folders_with_something_else(root: Path) -> None:
    write(root / ".claude/skills/own/SKILL.md", "# Own\n")
    write(root / ".agents/note.txt", "a note")
    update(root, skill_wanted=True)
    AgentFiles(root / "docs", root).remove()
    assert [path.name for path in (root / ".claude/skills").iterdir()] == ["own"]
    assert [path.name for path in (root / ".agents").iterdir()] == ["note.txt"]


def test_a_link_to_another_of_the_files_or_an_import_of_it_needs_no_pointer(root: Path) -> None:
    write(root / "AGENTS.md", "# Rules\n")
    (root / "CLAUDE.md").symlink_to("AGENTS.md")
    write(root / "GEMINI.md", "# Gemini\n\n@AGENTS.md\n")
    report = update(root)
    assert report.changed() == ("AGENTS.md",) and not report.problems
    assert text(root / "GEMINI.md") == "# Gemini\n\n@AGENTS.md\n" and (root / "CLAUDE.md").is_symlink()
    assert not compare(root)


def test_a_link_to_a_page_of_the_repository_leads_to_the_file_that_gets_the_pointer(root: Path) -> None:
    write(root / ".ai/rules.md", "# Rules\n")
    (root / "CLAUDE.md").symlink_to(".ai/rules.md")
    (root / "GEMINI.md").symlink_to("CLAUDE.md")
    report = update(root)
    assert report.changed() == (".ai/rules.md",) and not report.problems
    assert (root / "CLAUDE.md").is_symlink() and not compare(root)
    write(root / "docs/new.md", "# New\n")
    assert compare(root).stale == (".ai/rules.md",)
    assert AgentFiles(root / "docs", root).remove().changed() == (".ai/rules.md",)
    assert text(root / ".ai/rules.md") == "# Rules\n"


def test_a_link_to_a_file_that_is_missing_is_created_with_it(root: Path) -> None:
    (root / "CLAUDE.md").symlink_to("AGENTS.md")
    assert update(root).changed() == ("AGENTS.md",) and not compare(root)


def _linked(file: Path) -> None:
    target = file.parent.parent / "elsewhere.md"
    write(target, "secret\n")
    file.unlink()
    file.symlink_to(target)


def _one_marker(file: Path) -> None:
    write(file, f"# Rules\n\n{marked_block.markers('docs')[0]}\nold\n")


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "link": (_linked, "is a link"),
    "read-only": (lambda file: file.chmod(0o444), "is read-only"),
    "huge": (lambda file: write(file, "x" * (agent_files.MAX_FILE_BYTES + 1)), "leaves files of more than"),
    "one marker": (_one_marker, "one marker"),
    "not UTF-8": (lambda file: file.write_bytes("# Ünï".encode("utf-16")), "not UTF-8"),
    "folder": (_folder, "is a folder"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_cannot_be_written_costs_one_message_and_nothing_is_lost(root: Path, kind: str) -> None:
    spoil, message = HOSTILE[kind]
    write(root / "AGENTS.md", "# Rules\n")
    write(root / "CLAUDE.md", "# Claude\n")
    spoil(root / "AGENTS.md")
    before = None if kind == "folder" else (root / "AGENTS.md").read_bytes()
    report = update(root)
    assert len(report.problems) == 1 and message in report.problems[0] and str(root) not in report.problems[0]
    assert report.changed() == ("CLAUDE.md",)
    assert before is None or (root / "AGENTS.md").read_bytes() == before
    if kind == "one marker":
        assert len(compare(root).problems) == 1
        assert update(root, only_marked=True).problems == report.problems


def test_a_folder_that_leads_out_of_the_repository_is_not_written_to(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (root / ".claude").mkdir()
    (root / ".claude/skills").symlink_to(tmp_path / "outside")
    (root / ".cursor").symlink_to(tmp_path / "outside")
    report = update(root)
    assert report.changed() == ("AGENTS.md",) and len(report.problems) == 1
    assert not any((tmp_path / "outside").rglob("*.*"))


def test_a_skill_of_somebody_else_is_kept(root: Path) -> None:
    own = root / ".claude/skills/repo-docs/SKILL.md"
    write(own, "---\nname: repo-docs\n---\n")
    assert update(root).changed() == ("AGENTS.md",)
    with pytest.raises(ConfigError, match="did not write it"):
        update(root, skill_wanted=True)
    assert text(own) == "---\nname: repo-docs\n---\n"


def test_two_documentation_folders_have_a_pointer_each_and_one_that_is_gone_has_none(root: Path) -> None:
    write(root / "other/docs/x.md", "# X\n")
    update(root)
    update(root, "other/docs")
    both = text(root / "AGENTS.md")
    assert "`docs/` has" in both and "`other/docs/` has" in both and "--docs other/docs" in both
    assert not compare(root) and not compare(root, "other/docs")
    (root / "other").rename(root / "moved")
    assert compare(root).stale == ("AGENTS.md",)
    update(root)
    assert "other/docs" not in text(root / "AGENTS.md") and not compare(root)


@pytest.mark.parametrize(
    ("config", "docs", "words"),
    [
        (None, "docs", ""),
        (None, "my docs", " --docs 'my docs'"),
        (("anvil.toml", "my docs"), "my docs", ""),
        (("sub/anvil.toml", "pages"), "sub/pages", " --config sub/anvil.toml"),
    ],
)
def test_the_commands_name_the_documents(
    root: Path, monkeypatch: pytest.MonkeyPatch, config: tuple[str, str] | None, docs: str, words: str
) -> None:
    write(root / docs / "a.md", "# Title here\n\n## Part\n\nA sentence with words in it.\n")
    if config:
        write(root / config[0], f'docs = "{config[1]}"\n')
    update(root, docs)
    content = text(root / "AGENTS.md")
    assert f"`anvil search{words} --json" in content
    from tests.support.in_process import program

    monkeypatch.chdir(root)
    command = next(part for part in content.split("`") if part.startswith("anvil show"))
    shown = program(*shlex.split(command.replace("PAGE#HEADING", "a.md#part"))[1:], cwd=root).stdout
    assert "A sentence with words in it." in shown


def test_the_pointer_does_not_count_itself(root: Path) -> None:
    write(root / ".claude/skills/x/y.md", "# Y\n")
    update(root, ".")
    content = text(root / "AGENTS.md")
    assert "This folder has 1 page of documentation" in content
    assert not compare(root, ".") and update(root, ".").changed() == ()


def test_the_staged_files_and_those_of_a_commit_are_compared(root: Path) -> None:
    update(root)
    run(root, "add", "-A")
    run(root, "commit", "-q", "-m", "pointer", at=1_700_000_100)
    write(root / "docs/b.md", "# B\n")
    run(root, "add", "docs")
    update(root)
    with anvil.open(root / "docs") as opened:
        from anvil.documents.git_tree import CommitTree, StagedTree

        files, staged = AgentFiles(root / "docs", root), StagedTree(root / "docs")
        assert opened.tree is not None and not files.compare(opened.tree)
        assert files.compare(staged, staged=True).stale == ("AGENTS.md",)
        assert files.unstaged() == ("AGENTS.md",)
        run(root, "add", "AGENTS.md")
        assert not AgentFiles(root / "docs", root).compare(staged, staged=True)
        assert not files.compare(CommitTree(root / "docs", "HEAD"), "HEAD")


def test_without_a_repository_the_files_are_next_to_the_folder(tmp_path: Path) -> None:
    write(tmp_path / "project/docs/a.md", "# A\n")
    update(tmp_path / "project")
    assert os.listdir(tmp_path / "project") != ["docs"] and (tmp_path / "project/AGENTS.md").is_file()
    assert not (tmp_path / "AGENTS.md").exists()


class Unread(SourceWrapper):
    """A source whose pages may not be read."""

    def text(self, path: str) -> Document | Skipped:
        raise AssertionError(path)

    read = text


def test_an_edit_of_a_page_changes_nothing_and_no_page_is_read(root: Path) -> None:
    update(root)
    write(root / "docs/a.md", "# Another title\n\nAnother text, with [a link](b.md).\n")
    assert not compare(root) and update(root).changed() == ()
    with anvil.open(root / "docs") as opened:
        assert opened.tree is not None
        assert AgentFiles(root / "docs", root).pointer(Unread(opened.tree)).pages == 1
