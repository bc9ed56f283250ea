"""The doctor in projects that are broken for real: each command it prints is run, and heals what it was printed for."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import anvil
from anvil.clients import server_entries
from anvil.clients.known_clients import CLIENTS
from anvil.clients.server_entries import client_file, default_name
from anvil.doctor import cli, project_parts
from anvil.doctor.examination import ExaminedProject, Finding, Verdict, examined_project
from anvil.doctor.integrations import named_indexes
from anvil.embedding import local
from anvil.embedding.provider import PROVIDERS, NoProvider
from anvil.index_file.writer import checksum
from anvil.requests import OpenRequest
from anvil.system import installation
from tests.conftest import PAGES, write
from tests.support import fork_server, in_process, repositories
from tests.support.programs import environment
from tests.support.repositories import commit, run

isolated = pytest.fixture(autouse=True)(repositories.isolation)
INDEX = "docs/.anvil/index.db"
KEYWORDS = 'docs = "docs"\n[embedding]\nprovider = "none"\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with four pages, a configuration without vectors, and an index that git leaves out."""
    root = tmp_path / "work"
    write(root / "docs", PAGES)
    write(root, {"anvil.toml": KEYWORDS})
    run(root, "init", "-q", "-b", "main")
    commit(root, "first", at=1_700_000_000)
    monkeypatch.chdir(root)
    build()
    return root


@pytest.fixture
def committed(project: Path) -> Path:
    """The project with the index in git, and the drivers for it."""
    (project / "docs/.anvil/.gitignore").write_text("*\n!.gitignore\n!index.db\n")
    shell(call("git", "install"))
    commit(project, "index", at=1_700_000_100)
    return project


def build() -> None:
    with anvil.open() as opened:
        opened.index()


def call(*words: str) -> str:
    return f'"{sys.executable}" -m anvil {" ".join(words)}'


def shell(command: str, code: int = 0) -> str:
    """Run a command line as somebody who pastes it."""
    for program in (call().strip(), installation.line(installation.own_command())):
        if command.startswith(f"{program} "):
            command = shlex.join(fork_server.command_line("anvil")) + command.removeprefix(program)
            break
    done = subprocess.run(command, shell=True, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def findings(subject: str, **options: Any) -> list[Finding]:
    """The findings of one examination of the project in the working folder. No other examination may break down."""
    found = list(cli.examine(examined_project(OpenRequest(**options))))
    assert not [each for each in found if each.verdict == "unseen"]
    return [each for each in found if each.subject == subject]


def finding(subject: str, **options: str | None) -> Finding:
    (found,) = findings(subject, **options)
    return found


def healed(subject: str, verdict: str, said: str, **options: str | None) -> Finding:
    """The doctor finds what is broken; the command that it prints is run; the doctor finds it whole."""
    before = finding(subject, **options)
    assert before.verdict == verdict and said in before.text, before
    assert before.fix is not None
    shell(before.fix)
    after = findings(subject, **options)
    assert [each.verdict for each in after] == ["ok"], after
    return before


def test_a_sound_project(project: Path) -> None:
    found = list(cli.examine(examined_project(OpenRequest())))
    assert {each.subject for each in found} <= cli.EXAMINATIONS.keys()
    assert {each.verdict for each in found if each.subject not in ("program", "packages")} == {"ok"}
    assert "fresh: 4 pages" in finding("index").text and "leaves it out" in finding("index in git").text


def test_the_last_line_counts_what_is_wrong() -> None:
    sound, wrong, note = (Finding(verdict, "text") for verdict in ("ok", "wrong", "note"))
    assert cli.summary([sound]) == "Nothing is wrong."
    assert cli.summary([note, sound, wrong, note]) == "1 thing is wrong, 2 notes."


def test_an_examination_that_breaks_down_hides_no_other(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(project: ExaminedProject) -> Iterator[Finding]:
        yield Finding("ok", "This much was seen.")
        raise MemoryError("no more")

    monkeypatch.setitem(cli.EXAMINATIONS, "git", broken)
    found = list(cli.examine(examined_project(OpenRequest())))
    assert [each.verdict for each in found if each.subject == "git"] == ["ok", "unseen"]
    assert [each.verdict for each in found if each.subject == "index"] == ["ok"]


# --- index -----------------------------------------------------------------------------------------------


def flipped(file: Path) -> None:
    data = bytearray(file.read_bytes())
    at = data.index(b"Lighthouse watches")
    data[at : at + 4] = b"lamp"
    file.write_bytes(data)


def newer(file: Path) -> None:
    with apsw.Connection(str(file)) as handle:
        handle.pragma("user_version", 99)
    handle.close()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (flipped, "does not match its digest"),
        (lambda file: file.write_bytes(file.read_bytes()[:20_000]), "damaged"),
        (newer, "has format 99"),
    ],
    ids=["flipped", "truncated", "newer"],
)
def test_an_index_that_cannot_be_used(project: Path, damage: Callable[[Path], object], said: str) -> None:
    damage(project / INDEX)
    assert "--force" in (healed("index", "wrong", said).fix or "")


def test_a_file_that_is_no_index_is_not_to_be_replaced(project: Path) -> None:
    (project / INDEX).write_text("no index")
    found = finding("index")
    assert found.verdict == "wrong" and "is not an Anvil index" in found.text and found.fix is None


def test_an_index_that_is_stale(project: Path) -> None:
    write(project / "docs", {"index.md": "# New\n", "more.md": "# More\n"})
    (project / "docs/install.md").unlink()
    assert "1 changed, 1 added, 1 removed" in healed("index", "note", "is stale").text


def test_an_index_that_is_not_there(project: Path) -> None:
    shutil.rmtree(project / "docs/.anvil")
    healed("index", "note", "There is no index")
    shutil.rmtree(project / "docs")
    assert finding("index").verdict == "wrong" == finding("documents").verdict


def test_an_index_elsewhere_is_named_in_its_command(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project / "docs")
    before = healed("index", "note", "There is no index at", docs=".", index="../my index.db", provider="none")
    assert before.fix and "--docs . --index '../my index.db' --provider none" in before.fix


def test_an_index_built_with_other_settings(project: Path) -> None:
    write(project, {"anvil.toml": f"{KEYWORDS}[chunking]\nmax_chunk_size = 400\n"})
    healed("index", "note", "other settings")


def test_an_index_with_vectors_of_another_model(project: Path) -> None:
    write(project, {"anvil.toml": 'docs = "docs"\n'})
    healed("index", "wrong", "The vectors of docs/.anvil/index.db are of none (none)")


def test_an_index_that_is_a_part(project: Path) -> None:
    shell(call("build", "--shard", "1/2", "--index", INDEX, "--force"))
    healed("index", "wrong", "is shard 1/2")


def test_an_index_of_a_site_is_built_with_the_site(project: Path) -> None:
    with apsw.Connection(INDEX) as handle:
        handle.execute("INSERT INTO anvil_meta VALUES ('left_out', '[]')")
        handle.execute("UPDATE anvil_meta SET value = ? WHERE key = 'checksum'", (checksum(handle),))
    handle.close()
    (project / "docs/new.md").write_text("# New\n")
    found = finding("index")
    assert found.verdict == "note" and found.fix is None and "1 added" in found.text and "mkdocs build" in found.text


def test_an_index_from_elsewhere_is_not_fetched_to_look(project: Path) -> None:
    write(project, {"anvil.toml": f'index = "https://user:secret@127.0.0.1:9/index.db"\n{KEYWORDS}'})
    found = finding("index")
    assert found.verdict == "note" and "not fetched yet" in found.text
    assert not any("secret" in f"{each}" for each in cli.examine(examined_project(OpenRequest())))


def test_a_secret_in_an_address_is_in_no_command(project: Path) -> None:
    for address, spelled in (
        ("https://u:SECRETPW@127.0.0.1:9/x", "--index https://NAME:PASSWORD@127.0.0.1:9/x"),
        ("https://SECRETPW@127.0.0.1:9/x", "--index https://NAME:PASSWORD@127.0.0.1:9/x"),
        ("https://127.0.0.1:9/i.db?sig=SECRETPW", "--index 'https://127.0.0.1:9/i.db?QUERY'"),
        ("github:o/r#release:v1", "--index 'github:o/r#release:v1'"),
    ):
        found = [*cli.examine(examined_project(OpenRequest(index=address)))]
        (index,) = [each for each in found if each.subject == "index"]
        assert index.fix and (index.fix.endswith(spelled) or os.name == "nt")
        assert "SECRETPW" not in f"{found}"


def test_an_index_in_milvus_is_named_and_not_looked_for_on_disk(project: Path) -> None:
    (note,) = findings("index", index="milvus://127.0.0.1:19530/docs")
    assert note.verdict == "note" and "milvus://127.0.0.1:19530/docs" in note.text and note.fix
    assert note.fix.endswith("status --index milvus://127.0.0.1:19530/docs")
    found = [*cli.examine(examined_project(OpenRequest("gone", "milvus://127.0.0.1:19530/docs")))]
    assert not [each for each in found if each.verdict == "unseen"]
    assert [each.verdict for each in found if each.subject == "documents"] == ["note"]  # there is something to ask
    (wrong,) = findings("index", index="milvus://u:SECRETPW@127.0.0.1:19530/docs")
    assert wrong.verdict == "wrong" and "SECRETPW" not in f"{wrong}" and "ANVIL_MILVUS_TOKEN" in wrong.text


@pytest.mark.skipif(shutil.which("git-lfs") is None, reason="git-lfs is not installed")
def test_an_index_that_lfs_did_not_fetch(committed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(committed, "lfs", "install", "--local")
    run(committed, "lfs", "track", INDEX)
    run(committed, "rm", "-q", "--cached", INDEX)
    commit(committed, "lfs", at=1_700_000_200)
    monkeypatch.setenv("GIT_LFS_SKIP_SMUDGE", "1")
    run(tmp_path, "clone", "-q", committed.as_uri(), "clone")
    run(tmp_path / "clone", "lfs", "install", "--local")
    monkeypatch.delenv("GIT_LFS_SKIP_SMUDGE")
    monkeypatch.chdir(tmp_path / "clone")
    assert healed("index", "wrong", "is in Git LFS").fix == "git lfs pull"


# --- git ---------------------------------------------------------------------------------------------------


def test_an_index_that_git_neither_holds_nor_ignores(project: Path) -> None:
    write(project, {"anvil.toml": f'index = "docs.db"\n{KEYWORDS}'})
    build()
    before = finding("index in git")
    assert before.verdict == "note" and before.fix == "git add docs.db"
    shell(before.fix)
    healed("index in git", "note", "cannot show and merge docs.db")


def test_an_index_that_git_holds_in_another_state(committed: Path) -> None:
    assert finding("index in git").verdict == "ok"
    write(committed / "docs", {"index.md": "# New\n"})
    build()
    healed("index in git", "note", "differs from the one in git")


def test_an_index_in_conflict(committed: Path) -> None:
    for branch, text in (("other", "# One\n"), ("main", "# Two\n")):
        run(committed, "checkout", "-q", *(["-b", branch] if branch == "other" else [branch]))
        write(committed / "docs", {"index.md": text})
        build()
        commit(committed, branch, at=1_700_000_300)
    run(committed, "config", "merge.anvil.driver", "false")
    subprocess.run(["git", "merge", "-q", "other"], check=False, capture_output=True)
    write(committed / "docs", {"index.md": "# Both\n"})
    run(committed, "add", "docs/index.md")
    run(committed, "config", "merge.anvil.driver", "x")
    before = finding("index in git")
    assert before.verdict == "wrong" and before.fix and "in conflict" in before.text
    shell(before.fix)
    assert "in conflict" not in finding("index in git").text


def test_a_clone_without_the_drivers(committed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, "clone", "-q", str(committed), "clone")
    monkeypatch.chdir(tmp_path / "clone")
    healed("index in git", "wrong", "that this clone does not define")


def test_drivers_that_call_what_is_gone(committed: Path) -> None:
    run(committed, "config", "diff.anvil.textconv", "'/gone/my anvil' git textconv")
    before = healed("index in git", "wrong", "'/gone/my anvil', which does not exist")
    assert before.fix and before.fix.endswith("git install")


def test_a_shallow_clone(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(project, "second", at=1_700_000_100)
    run(tmp_path, "clone", "-q", "--depth", "1", project.as_uri(), "clone")
    monkeypatch.chdir(tmp_path / "clone")
    healed("git", "note", "The clone is shallow")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_a_repository_of_another_user(project: Path) -> None:
    for folder in (project, project / ".git"):
        os.chown(folder, 4321, 4321)
    assert "safe.directory" in (healed("git", "wrong", "belongs to another user").fix or "")


def test_no_repository_and_one_without_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "plain/docs", PAGES)
    monkeypatch.chdir(tmp_path / "plain")
    assert finding("git", provider="none").verdict == "ok" and not findings("index in git", provider="none")
    run(tmp_path / "plain", "init", "-q")
    assert "no commit yet" in finding("git", provider="none").text


def test_a_repository_that_cannot_be_read(project: Path) -> None:
    (project / ".git/HEAD").unlink()
    found = finding("git")
    assert found.verdict == "wrong" and "no HEAD" in found.text
    assert finding("documents").verdict == "ok"


# --- configuration, documents, folders -------------------------------------------------------------------------


def test_a_configuration_that_is_not_understood(project: Path) -> None:
    write(project, {"anvil.toml": 'dosc = "docs"\n[embedding]\napi_key = "sk-very-secret"\n'})
    found = list(cli.examine(examined_project(OpenRequest(provider="none"))))
    wrong = [each for each in found if each.verdict == "wrong"]
    assert [each.subject for each in wrong] == ["configuration"] and "Did you mean docs?" in wrong[0].text
    assert not any("sk-very" in str(each) for each in found)


def test_a_provider_that_does_not_exist(project: Path) -> None:
    assert "one of: local, none, openai" in finding("model", provider="locl").text


def test_a_provider_that_somebody_added_is_named(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class WordsProvider(NoProvider):
        name = "words"
        model = "hashed-words"

    monkeypatch.setitem(PROVIDERS, "words", WordsProvider)
    named = finding("model", provider="words")
    assert (named.verdict, named.text) == ("ok", "Those of the provider 'words'; it was not tried.")


def test_the_scripts_that_the_model_reads(project: Path) -> None:
    assert finding("model", provider="local").text.endswith(
        "It reads Latin script; questions in others are answered by words alone."
    )


def test_a_model_of_ones_own_need_not_be_the_bundled_one(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "model_digest", lambda *_: "another")
    assert "their digest differs" in finding("model", provider="local").text
    write(project, {"anvil.toml": f"[embedding]\nmodel = {json.dumps(str(local.BUNDLED))}\n"})
    assert finding("model").verdict == "ok"


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_a_folder_that_may_not_be_written_has_a_command(tmp_path: Path) -> None:
    for number in (errno.EACCES, errno.EPERM):
        assert project_parts.write_permission(tmp_path, number) == f"chmod u+rwx {tmp_path}"
    assert project_parts.write_permission(tmp_path, errno.ENOSPC) is None


def test_pages_that_cannot_be_read(project: Path) -> None:
    (project / "docs/latin.md").write_bytes("# Größe\n".encode("latin-1"))
    assert finding("documents").verdict == "note" and "latin.md (not UTF-8" in finding("documents").text
    for page in (project / "docs").rglob("*.md"):
        page.unlink()
    assert finding("documents").verdict == "wrong"


def test_a_cache_that_is_a_file(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    (tmp_path / "file").write_text("")
    if sys.platform.startswith("linux"):
        found = finding("folders")
        assert found.verdict == "note" and "checked again" in found.text and found.fix is None


# --- clients, pre-commit, MkDocs -------------------------------------------------------------------------------


@pytest.fixture
def on_path(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A shell that finds ``anvil``."""
    file = tmp_path / "bin/anvil"
    write(file.parent, {"anvil": f'#!/bin/sh\nexec "{sys.executable}" -m anvil "$@"\n'})
    file.chmod(0o755)
    monkeypatch.setenv("PATH", str(file.parent), prepend=os.pathsep)
    return project


def listed(name: str) -> tuple[Path, dict[str, Any]]:
    """A client's file, and the entry in it."""
    place = client_file(CLIENTS[name], Path.cwd())
    file, title = place.path, default_name(place, Path.cwd())
    return file, server_entries.servers_in(file.read_text(), CLIENTS[name])[title]


def rewritten(name: str, title: str | None = None, **changes: Any) -> None:
    file, server = listed(name)
    own = title or default_name(client_file(CLIENTS[name], Path.cwd()), Path.cwd())
    file.write_text(server_entries.snippet(CLIENTS[name], own, server | changes))


posix = pytest.mark.skipif(os.name == "nt", reason="a program of the shell stands in")


@posix
@pytest.mark.parametrize(
    ("name", "damage", "said"),
    [
        ("claude-code", {"command": "/gone/anvil"}, "there is no program /gone/anvil"),
        (
            "claude-desktop",
            {"args": ["serve", "--docs", "/gone/docs"]},
            "--docs names /gone/docs, which does not exist",
        ),
        ("junie", {"args": ["serve", "-d", "/gone/docs"]}, "-d names /gone/docs, which does not exist"),
        ("devin", {"args": ["serve", "/gone/docs"]}, "FOLDER names /gone/docs, which does not exist"),
        ("cursor", {"args": ["serve", "--config=../gone.toml"]}, "gone.toml, which does not exist"),
        ("zed", {"args": ["serve", "--docs", "docs"]}, "is not an absolute path"),
        ("codex", {"command": "/gone/anvil"}, "there is no program /gone/anvil"),
        ("opencode", {"command": ["/gone/anvil", "serve"]}, "there is no program /gone/anvil"),
        ("goose", {"cmd": "/gone/anvil"}, "there is no program /gone/anvil"),
    ],
)
def test_a_client_that_cannot_start_the_server(on_path: Path, name: str, damage: dict[str, Any], said: str) -> None:
    shell(call("init", "--client", name))
    assert finding("clients").verdict == "ok" and CLIENTS[name].title in finding("clients").text
    rewritten(name, **damage)
    healed("clients", "wrong", said)


def test_a_broken_file_is_left_to_its_owner(on_path: Path) -> None:
    """If a file also has other settings and does not name Anvil, it is not reported."""
    file = write(on_path, {".codex/config.toml": "model = "}) / ".codex/config.toml"
    assert "No MCP client" in finding("clients").text
    file.write_text('[mcp_servers.docs]\ncommand = "anvil\n')
    found = finding("clients")
    assert found.verdict == "wrong" and "cannot be read" in found.text and not found.fix


@posix
def test_a_client_that_knows_nothing_yet(on_path: Path) -> None:
    found = finding("clients")
    assert found.verdict == "ok" and found.fix and "No MCP client" in found.text
    shell(found.fix)
    assert finding("clients").text == "Claude Code can start 'docs' of .mcp.json."
    rewritten("claude-code", title="mine", command="/gone/anvil")
    healed("clients", "wrong", "no program /gone/anvil")
    servers = json.loads(Path(".mcp.json").read_text())["mcpServers"]
    assert [*servers] == ["mine"], "the entry is mended under its own name"
    Path(".mcp.json").write_text('{"mcpServers": {"mine": {"command": "/gone/other"}}}')
    assert "No MCP client" in finding("clients").text  # it is not ours


@posix
def test_a_program_in_an_active_environment_is_none_that_a_client_finds(
    on_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell(call("init", "--client", "claude-code"))
    (on_path.parent / "pyvenv.cfg").touch()  # next to the folder of the 'anvil' on the PATH
    found = finding("clients")
    assert found.verdict == "wrong" and "it is in a virtual environment" in found.text
    assert found.fix is not None and found.fix.startswith("uv tool install ")
    assert listed("claude-code")[1]["command"] == "anvil"  # the file is for all who open the project


@posix
def test_a_client_that_is_led_elsewhere(on_path: Path, tmp_path: Path) -> None:
    write(tmp_path / "other", {"docs/index.md": "# Other\n"})
    shell(call("init", "--client", "claude-desktop"))
    rewritten("claude-desktop", args=["serve", "--docs", str(tmp_path / "other/docs")])
    healed("clients", "note", "serves")


@posix
def test_a_client_is_looked_at_where_the_configuration_lies(on_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shell(call("init", "--client", "cursor"))
    rewritten("cursor", command="/gone/anvil")
    monkeypatch.chdir(on_path / "docs/guides")
    healed("clients", "wrong", "/gone/anvil")


def test_servers_of_others_are_nobodys_business(project: Path) -> None:
    other = {"command": "/gone/other", "env": {"KEY": "sk-secret"}}
    servers = {"a": {"url": "http://127.0.0.1/mcp"}, "b": other, "c": 3}
    write(project, {".mcp.json": json.dumps({"mcpServers": servers})})
    assert "No MCP client" in finding("clients").text


def test_hooks_that_do_not_run(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "pre-commit"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")  # that of the tests
    hooks = "repos:\n- repo: https://example.com/anvil\n  rev: v1\n  hooks:\n  - id: anvil-check\n"
    write(project, {".pre-commit-config.yaml": "repos: []\n"})
    assert not findings("pre-commit")
    named = "repos: [{repo: x, hooks: [{id: anvil-build, args: [--index, docs.anvil.db]}]}]"  # as README says
    write(project, {".pre-commit-config.yaml": named})
    assert "pre-commit is not set up" in finding("pre-commit").text
    write(project, {".pre-commit-config.yaml": hooks})
    healed("pre-commit", "wrong", "pre-commit is not set up")
    write(project, {".pre-commit-config.yaml": "repos: [{repo: x, hooks: [{id: anvil-impact}]}]"})
    assert finding("pre-commit").text == "Each commit runs anvil-impact."
    (project / ".git/hooks/pre-commit").write_text("#!/bin/sh\nmake check\n")
    (alone,) = findings("pre-commit")
    assert alone.text.endswith("has anvil-impact, but pre-commit is not set up in this clone.")
    for damaged in ("repos: [", "[" * 100_000):
        write(project, {".pre-commit-config.yaml": damaged})
        assert finding("pre-commit").verdict == "wrong"


def test_indexes_that_hooks_name_are_in_order(project: Path) -> None:
    hooks = ", ".join(f"{{id: anvil-check, args: [--index={name}]}}" for name in ("docs/z.db", "../out.db", "a.db"))
    write(project, {".pre-commit-config.yaml": f"repos: [{{repo: x, hooks: [{hooks}]}}]"})
    assert named_indexes(project) == ["a.db", "docs/z.db"]


def test_hooks_in_a_folder_of_their_own(project: Path) -> None:
    write(project, {".pre-commit-config.yaml": "repos: [{repo: x, hooks: [{id: anvil-build}]}]\n"})
    write(project, {"hooks/pre-commit": "#!/bin/sh\npre-commit run\n"})
    run(project, "config", "core.hooksPath", "hooks")
    assert not [each for each in findings("pre-commit") if "pre-commit is not set up" in each.text]


def test_the_plugin(project: Path) -> None:
    write(project, {"mkdocs.yml": "site_name: x\nplugins: [search]\n"})
    assert not findings("mkdocs")
    write(project, {"mkdocs.yml": "site_name: !ENV [NAME, x]\nplugins:\n- anvil: {enabled: !ENV [CI, false]}\n"})
    assert finding("mkdocs").verdict == "ok"
    write(project, {"mkdocs.yml": "docs_dir: pages\nplugins: {anvil: {}}\n"})
    assert finding("mkdocs").verdict == "note" and "pages" in finding("mkdocs").text
    (project / "mkdocs.yml").rename(project / "mkdocs.yaml")  # MkDocs reads it, too
    assert finding("mkdocs").verdict == "note" and "pages" in finding("mkdocs").text
    (project / "mkdocs.yaml").unlink()
    write(project, {"mkdocs.yml": "plugins: [\n"})
    assert finding("mkdocs").verdict == "wrong"


# --- library and context -----------------------------------------------------------------------------------------


def test_the_library(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANVIL_LIBRARY_INDEX", str(tmp_path / "library.db"))
    assert "no document library yet" in finding("library").text and not (tmp_path / "library.db").exists()
    with anvil.open_library() as library:
        library.ingest_content("# A\n\ntext", "a.md")
    assert finding("library").verdict == "ok" and "has 1 document." in finding("library").text
    monkeypatch.setenv("ANVIL_EMBEDDING_PROVIDER", "local")
    healed("library", "note", "the configured model is all-MiniLM-L6-v2-docs: search uses keywords only")
    with contextlib.closing(apsw.Connection(str(tmp_path / "library.db"))) as library:
        library.execute("UPDATE documents SET metadata = '['")
    found = finding("library")
    assert found.verdict == "wrong" and "JSON object" in found.text and "Put a copy back" in found.text
    (tmp_path / "library.db").write_text("no library")
    assert finding("library").verdict == "wrong"


def test_the_context(project: Path) -> None:
    assert findings("context") == []
    file = project / "mcp.config.json"
    file.write_text('{"directories": ["specs"], "port": 8000}')
    told, empty = findings("context")
    assert told.verdict == "note" and "not used here: port" in told.text
    assert empty.verdict == "note" and "none of the directories specs in" in empty.text and "valid" not in empty.text
    (project / "specs").mkdir()
    assert findings("context")[1] == Finding("ok", "mcp.config.json is valid.", None, "context")
    file.write_text('{"directories": ["specs", "plans"]}')
    write(project, {"specs/a.md": "# A\n", "specs/b.md": "# B\n"})
    (project / "specs/b.md").write_bytes(b"a\0b")
    shell(call("context", "ingest"))
    (project / "specs/b.md").write_text("# B\n")
    healed("context", "note", "1 file could not be read in the last run, such as specs/b.md (binary")
    file.write_text('{"chunkSize": "many"}')
    assert finding("context").verdict == "wrong" and "chunkSize" in finding("context").text
    file.write_text("{")
    assert finding("context").verdict == "wrong" and "mcp.config.json cannot be read" in finding("context").text


@pytest.mark.parametrize(
    ("verdicts", "worst", "code"),
    [(["ok", "note"], "note", 0), (["note", "unseen"], "unseen", 2), (["unseen", "wrong", "ok"], "wrong", 1)],
)
def test_the_worst_verdict_is_the_exit_code(
    project: Path, monkeypatch: pytest.MonkeyPatch, verdicts: list[Verdict], worst: str, code: int
) -> None:
    monkeypatch.setattr(cli, "EXAMINATIONS", {"x": lambda project: (Finding(each, "") for each in verdicts)})
    assert json.loads(in_process.program("doctor", "--json", code=code).stdout)["verdict"] == worst
