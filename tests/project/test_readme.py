"""Everything in the README is run: its commands, its snippets, its recording; its tables say what the code says."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
import yaml

import anvil
from anvil.cli.program import group
from anvil.formats import data_formats
from anvil.registry import COMMANDS
from scripts import recording, summary_picture
from tests.conftest import PAGES, write
from tests.project.test_docs import anvil_calls
from tests.support import environments, generators, in_process, mcp_servers, mkdocs_sites, repositories
from tests.support.action_runner import OFFLINE
from tests.support.commits import call, pre_commit, program_folder
from tests.support.repositories import run

ROOT = Path(__file__).parents[2]
PROJECT = data_formats.read_toml((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
PACKAGES = [each for each in sys.path if each.endswith(("site-packages", "dist-packages"))]
isolated = pytest.fixture(repositories.isolation)  # here only where asked for


@dataclass(frozen=True)
class Place:
    """Where a snippet is tried: a clean checkout, an environment of its own for programs, and a folder for the rest."""

    checkout: Path
    programs: Path
    work: Path
    patch: pytest.MonkeyPatch

    def shell(self, line: str, **more: str) -> str:
        """Run a line as it stands in the checkout, with pip kept off the network; what it printed."""
        path = f"{self.programs}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-euc", line],
            cwd=self.checkout,
            env={**os.environ, **OFFLINE, "PATH": path, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files as they lie here, in a repository of their own, tagged as the release that the README names.

    The models are left empty: nothing here needs vectors, and packages are made of them. ``.ci/run`` asks with the
    models. The hooks call a program that is installed.
    """
    folder = environments.checkout(tmp_path_factory.mktemp("checkout") / "anvil")
    if folder is None:
        pytest.skip("this is no checkout")
    hooks = folder / ".pre-commit-hooks.yaml"
    hooks.write_text(hooks.read_text(encoding="utf-8").replace("language: python", "language: system"))
    run(folder, "init", "-q")
    run(folder, "add", "-A")
    who = ("-c", "user.name=A Writer", "-c", "user.email=writer@example.com")
    run(folder, *who, "commit", "-q", "-m", "what is tried")
    run(folder, "tag", f"v{anvil.__version__}")
    return folder


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new environment that is empty but for what Anvil needs: that is taken from the tests' own."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=os.name != "nt")
    own = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    write(own, {"tests.pth": "".join(f"{each}\n" for each in PACKAGES)})
    found = folder / ("Scripts" if os.name == "nt" else "bin")
    for name in ("pip", "pytest"):
        write(found, {name: f'#!/bin/sh\nexec "{found}/python" -m {name} "$@"\n'})
        (found / name).chmod(0o755)
    return found


# --- its snippets --------------------------------------------------------------------------------------------------


def asks(place: Place, body: str) -> None:
    said = place.shell(body, ANVIL_EMBEDDING_PROVIDER="none")  # for speed; .ci/run asks with the model
    assert re.search(r"^1\. docs/guides/keep-fresh\.md:1 ", said, re.MULTILINE), said
    whose = place.shell("python -I -c 'import anvil; print(anvil.__file__)'")  # without the working folder
    assert str(place.programs.parent) in whose, "what answered is what was installed"


def suite(place: Place, body: str) -> None:
    """``asks`` runs pip. pytest alone runs in the checkout, so the package need not be installed again."""
    install, _, line = body.partition(" && ")
    assert install == "pip install '.[test]'" and "test" in PROJECT["optional-dependencies"]
    few = {"PYTEST_ADDOPTS": "tests/formats/test_patterns.py", "PYTEST_XDIST_AUTO_NUM_WORKERS": "1"}
    said = place.shell(line, **few, ANVIL_TESTS_COLD="1")  # a fork server takes 4 s in a new checkout
    assert "[100%]" in said, said


def site(place: Place, body: str) -> None:
    folder = mkdocs_sites.make(place.work, PAGES)
    settings = yaml.safe_load((folder / "mkdocs.yml").read_text(encoding="utf-8"))
    del settings["plugins"]
    write(folder, {"mkdocs.yml": yaml.safe_dump(settings) + body})
    place.patch.setenv("ANVIL_EMBEDDING_PROVIDER", "none")
    mkdocs_sites.build(folder, "--strict")
    assert mkdocs_sites.documents(folder).keys() == PAGES.keys()


def any_site(place: Place, body: str) -> None:
    folder = mkdocs_sites.make(place.work, PAGES)
    settings = yaml.safe_load((folder / "mkdocs.yml").read_text(encoding="utf-8"))
    del settings["plugins"]
    write(folder, {"mkdocs.yml": yaml.safe_dump(settings)})
    site_build, _, index_build = body.strip().partition(" && ")
    generators.run([generators.program("zensical"), *site_build.split()[1:]], folder)
    place.patch.setenv("ANVIL_EMBEDDING_PROVIDER", "none")
    in_process.program(*index_build.split()[1:], cwd=folder)
    assert mkdocs_sites.documents(folder).keys() == PAGES.keys()


def hook(place: Place, body: str) -> None:
    """From the published address, which leads to the checkout. ``.ci/run`` installs the hooks, too, as pre-commit
    does it; here the program is there already."""
    own = write(place.work / "pages", {".pre-commit-config.yaml": body})
    write(own / "docs", PAGES)
    run(own, "init", "-q")
    write(Path.home(), {".gitconfig": f'[url "{place.checkout}"]\n\tinsteadOf = https://github.com/anvil-docs/anvil\n'})
    for name, value in {
        "PRE_COMMIT_HOME": str(place.work / "cache"),
        "ANVIL_EMBEDDING_PROVIDER": "none",
        "PATH": f"{program_folder(place.work / 'bin')}{os.pathsep}{os.environ['PATH']}",
    }.items():
        place.patch.setenv(name, value)
    pre_commit(own, "install")
    run(own, "add", "-A")
    assert "Run: git add docs.anvil.db" in call(own, "git", "commit", "-m", "pages", code=1)
    run(own, "add", "docs.anvil.db")
    call(own, "git", "commit", "-m", "pages and their index")
    in_process.program("check", "--index", "docs.anvil.db", "--ref", "HEAD", "--tracked", cwd=own)


def action(place: Place, body: str) -> None:
    steps = yaml.safe_load(body)
    inputs = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"]
    assert [step["uses"] for step in steps] == ["anvil-docs/anvil@v0"]
    assert all(step.get("with", {}).keys() <= inputs.keys() for step in steps)
    job = {"runs-on": "ubuntu-latest", "steps": steps}
    write(place.work, {"workflow.yml": yaml.safe_dump({"name": "Docs", "on": "push", "jobs": {"docs": job}})})
    line = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", "workflow.yml"]
    call(place.work, *line)


def client(place: Place, body: str) -> None:
    write(place.work / "docs", PAGES)
    in_process.program("init", "--client", "claude-code", "--command", "anvil", cwd=place.work)
    assert json.loads((place.work / ".mcp.json").read_text(encoding="utf-8")) == json.loads(body)
    entry = json.loads(body)["mcpServers"]["docs"]
    program = Path(sys.executable).with_name(entry["command"])
    if not program.exists():
        pytest.skip("the package under test is not installed")
    with mcp_servers.piped([str(program), *entry["args"], "--provider", "none"], place.work) as speaker:
        found = speaker.call("search_docs", query="quiet window").content[0].text
        assert found.startswith("guides/alerts.md#")


def python(place: Place, body: str) -> None:
    pages = {path: (ROOT / "docs" / path).read_text(encoding="utf-8") for path in ("index.md", "guides/keep-fresh.md")}
    write(place.work / "docs", pages)
    place.patch.setenv("ANVIL_EMBEDDING_PROVIDER", "none")
    place.patch.chdir(place.work)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", body],
        env=mcp_servers.environment(ANVIL_EMBEDDING_PROVIDER="none"),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "guides/keep-fresh.md:1 Keep the index fresh" in done.stdout


WAYS: dict[tuple[str, str], Callable[[Place, str], None]] = {
    ("bash", "pip install . "): asks,
    ("bash", "pip install '.[test]' "): suite,
    ("bash", "zensical build "): any_site,
    ("yaml", "plugins:"): site,
    ("yaml", "repos:"): hook,
    ("yaml", "- uses:"): action,
    ("json", '{"mcpServers"'): client,
    ("python", "import anvil"): python,
}
"""How each snippet is run, by its language and how it begins."""


@pytest.mark.parametrize(("language", "body"), BLOCKS, ids=[body.split("\n")[0][:40] for _, body in BLOCKS])
def test_each_snippet_runs(
    language: str,
    body: str,
    request: pytest.FixtureRequest,
    isolated: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ways = [way for (kind, start), way in WAYS.items() if kind == language and body.startswith(start)]
    assert len(ways) == 1, "a snippet that nobody runs"
    if os.name == "nt" and ways[0] in (asks, suite, hook):
        pytest.skip("is run by a shell with POSIX paths")
    place = Place(request.getfixturevalue("checkout"), request.getfixturevalue("programs"), tmp_path, monkeypatch)
    ways[0](place, body)


def test_each_way_is_needed() -> None:
    assert len(BLOCKS) == len(WAYS)


def test_commands_within_sentences_are_taken() -> None:
    told = [line for line in README.splitlines() if not line.startswith("| `anvil ")]
    calls = re.findall(r"`anvil ([^`]+)`", "\n".join(told))
    assert calls
    for call_ in calls:
        words = shlex.split(call_)
        command = group.get_command(click.Context(group), words[0])
        assert command is not None, call_
        command.make_context(words[0], words[1:])


def test_the_quickstart_goes_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = ("index.md", "quickstart.md", "guides/keep-fresh.md")
    write(tmp_path / "docs", {path: (ROOT / "docs" / path).read_text(encoding="utf-8") for path in pages})
    monkeypatch.setenv("ANVIL_EMBEDDING_PROVIDER", "none")
    said = {
        " ".join(words): in_process.program(*words, cwd=tmp_path).stdout
        for words in anvil_calls(ROOT / "docs" / "quickstart.md")
    }
    assert said["search --docs docs how do I keep the index fresh?"].startswith("1. docs/guides/keep-fresh.md:1 ")
    assert said["show --docs docs quickstart.md#install"].startswith("## Install\n")
    assert (tmp_path / "anvil.toml").exists() and (tmp_path / ".mcp.json").exists()


@pytest.mark.skipif(os.name == "nt", reason="there is no pseudo-terminal")
def test_the_recording_shows_what_happens() -> None:
    made = recording.drawn(recording.session())
    assert recording.same(recording.PICTURE.read_text(encoding="utf-8"), made), "run 'python scripts/recording.py'"
    assert "docs/assets/session.svg" in README


def test_the_picture_of_a_pull_request_shows_what_happens() -> None:
    made = summary_picture.drawn(summary_picture.summary())
    assert summary_picture.PICTURE.read_text(encoding="utf-8") == made, "run 'python scripts/summary_picture.py'"


# --- its tables, pictures and numbers ------------------------------------------------------------------------------


def subcommands(command: click.Command) -> Iterator[click.Command]:
    """A command, or those within it."""
    yield from command.commands.values() if isinstance(command, click.Group) else [command]


def test_the_commands_are_those_of_the_program_in_its_order() -> None:
    assert re.findall(r"^\| `anvil ([a-z]+)", README, re.MULTILINE) == [name for name in COMMANDS if name != "index"]


def test_commands_without_json_are_named() -> None:
    without = []
    for name in COMMANDS:
        command = group.get_command(click.Context(group), name)
        assert command is not None
        options = [{each for param in one.params for each in param.opts} for one in subcommands(command)]
        if not any("--json" in each for each in options):
            without.append(name)
    told = re.search(r"^All but (.*) take `--json`\.", README, re.MULTILINE)
    assert told and re.findall(r"`(\w+)`", told[1]) == without


def test_pictures_are_there_and_are_told() -> None:
    pictures = re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", README)
    assert len(pictures) == 3
    for told, path in pictures:
        assert told and (ROOT / path).is_file()


def test_peers_are_those_of_the_comparison() -> None:
    page = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
    own = re.findall(r"^\| ([a-z][\w-]+) \|", README, re.MULTILINE)
    assert [name for name in own if name != "command"] == re.findall(r"^## ([a-z][\w-]+)$", page, re.MULTILINE)
    assert re.findall(r"^\| \[([\w-]+)\]", page, re.MULTILINE) == [name for name in own if name != "command"]


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 150
