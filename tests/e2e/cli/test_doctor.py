"""``anvil doctor`` by the real program: its looks, users who may not write, and installations that are damaged."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PAGES, write
from tests.support.environments import Installation, wheel
from tests.support.programs import environment, printed, program

KEYWORDS = 'docs = "docs"\n[embedding]\nprovider = "none"\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Four pages and a configuration; no index, no repository."""
    write(tmp_path / "work/docs", PAGES)
    return write(tmp_path / "work", {"anvil.toml": KEYWORDS})


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    made = Installation(tmp_path_factory.mktemp("installed"), wheel(tmp_path_factory.getbasetemp()))
    made.offer(["sqlite-vec"])
    return made


def of(answer: dict[str, Any], subject: str) -> list[dict[str, Any]]:
    return [each for each in answer["findings"] if each["subject"] == subject]


def asked(installed: Installation, cwd: Path, before: str = "", **more: str) -> dict[str, Any]:
    """The report of an installation's doctor, after a command in the same shell."""
    line = f"{before}\n{installed.program} doctor --json" if before else f"{installed.program} doctor --json"
    done = installed.run(line, cwd, code=None, **more)
    answer: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == {"ok": 0, "note": 0, "wrong": 1, "unseen": 2}[answer["verdict"]] and not done.stderr, done
    return answer


def healed(
    installed: Installation, cwd: Path, subject: str, said: str, **more: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The reports before and after the command that the doctor printed for a broken thing. The command repairs it."""
    answer = asked(installed, cwd, **more)
    (found,) = [each for each in of(answer, subject) if each["verdict"] != "ok"]
    assert said in found["text"] and found["fix"], found
    after = asked(installed, cwd, found["fix"], **more)
    assert [each["verdict"] for each in of(after, subject)] == ["ok"], after
    return answer, after


# --- looks -------------------------------------------------------------------------------------------------------


def test_it_reads_well_and_changes_nothing(project: Path) -> None:
    before = sorted(project.rglob("*"))
    done = program("doctor", cwd=project)
    lines = done.stdout.splitlines()
    assert "\x1b" not in done.stdout and not done.stderr
    assert [line[:6].strip() for line in lines if line[:6].strip()][:1] == ["ok"] and lines[-1].endswith(".")
    assert all(len(line) <= 100 for line in lines if "$ " not in line)
    fix = next(line for line in lines if "anvil build" in line)
    assert fix.strip().startswith("$ ")
    assert sorted(project.rglob("*")) == before
    program("build", cwd=project)
    assert " docs/.anvil/index.db is sound, fresh: 4 pages" in " ".join(program("doctor", cwd=project).stdout.split())


def test_json_says_the_same(project: Path) -> None:
    answer = printed("doctor", cwd=project)
    assert answer["verdict"] == "note" and of(answer, "index")[0].keys() == {"subject", "verdict", "text", "fix"}


def test_a_typing_error_in_the_environment(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANVIL_EMBEDING_PROVIDER", "none")
    monkeypatch.setenv("ANVIL_TOKEN", "secret-token")  # not of the configuration, and like none of it
    answer = printed("doctor", cwd=project, code=1)
    (wrong, _) = of(answer, "configuration")
    assert "ANVIL_EMBEDDING_PROVIDER?" in wrong["text"] and "secret" not in json.dumps(answer)
    line = f'{wrong["fix"]}; "{sys.executable}" -m anvil doctor --json'
    done = subprocess.run(line, shell=True, cwd=project, env=environment(), capture_output=True, check=False)
    assert [each["verdict"] for each in of(json.loads(done.stdout), "configuration")] == ["ok"]


def test_a_folder_that_is_gone_is_no_reason_to_give_up(tmp_path: Path) -> None:
    answer = printed("doctor", "--provider", "none", cwd=tmp_path, code=1)
    assert {each["subject"] for each in answer["findings"] if each["verdict"] == "wrong"} == {"documents", "index"}


@pytest.mark.skipif(os.name == "nt", reason="rights are another matter there")
def test_folders_that_cannot_be_written(project: Path, tmp_path: Path) -> None:
    """Root may write anywhere: without that one right, it is a user like any other."""
    plain = [] if os.geteuid() else ["setpriv", "--bounding-set", "-dac_override"]
    if plain and shutil.which("setpriv") is None:
        pytest.skip("root may write anywhere here")

    def run(*words: str) -> str:
        more = environment(XDG_CACHE_HOME=str(tmp_path / "cache"))
        done = subprocess.run([*plain, *words], cwd=project, env=more, capture_output=True, text=True, check=False)
        assert not done.stderr, done
        return done.stdout

    def folders() -> list[dict[str, Any]]:
        return of(json.loads(run(sys.executable, "-m", "anvil", "doctor", "--json")), "folders")

    (tmp_path / "cache").mkdir()
    (project / "docs").chmod(0o555)
    (tmp_path / "cache").chmod(0o555)
    index, cache = folders()
    assert (index["verdict"], cache["verdict"]) == ("wrong", "note")
    assert "cannot be built" in index["text"] and "checked again" in cache["text"]
    for each in (index, cache):
        run("sh", "-c", each["fix"])
    assert [each["verdict"] for each in folders()] == ["ok"]


# --- damaged installations -----------------------------------------------------------------------------------------


def test_sqlite_vec_that_cannot_be_loaded(installed: Installation, project: Path) -> None:
    (library,) = [each.name for each in (installed.site / "sqlite_vec").glob("vec0.*")]
    installed.replace(f"sqlite_vec/{library}", b"no library")
    before, _ = healed(installed, project, "sqlite", "cannot use sqlite-vec")
    assert of(before, "documents")[0]["verdict"] == "ok"


def test_sqlite_that_cannot_be_loaded(installed: Installation, project: Path) -> None:
    """Its command is that of any package that cannot be loaded, such as sqlite-vec."""
    (library,) = (installed.site / "apsw").glob("__init__.*.*")
    kept = library.read_bytes()
    installed.replace(f"apsw/{library.name}", b"no library")
    answer = asked(installed, project)
    installed.replace(f"apsw/{library.name}", kept)
    (wrong,) = of(answer, "packages")  # and none that says that all of them load
    assert "apsw cannot be loaded" in wrong["text"] and wrong["fix"].endswith("--force-reinstall --no-deps apsw")
    unseen = {each["subject"] for each in answer["findings"] if each["verdict"] == "unseen"}
    assert "sqlite" in unseen and of(answer, "git")[0]["verdict"] == of(answer, "documents")[0]["verdict"] == "ok"


def test_a_runtime_that_cannot_be_loaded_and_a_package_that_is_missing(installed: Installation, project: Path) -> None:
    write(project, {"anvil.toml": 'docs = "docs"\n'})
    kept = (installed.site / "onnxruntime/__init__.py").read_bytes()
    installed.replace("onnxruntime/__init__.py", b"raise ImportError('DLL load failed')\n")
    package = installed.site / "watchfiles"
    hidden = package.rename(package.with_name("hidden"))
    answer = asked(installed, project)
    hidden.rename(package)
    damaged, missing = [each for each in of(answer, "packages") if each["verdict"] == "wrong"]
    assert "No module named 'watchfiles'" in missing["text"] and missing["fix"].endswith("--no-deps watchfiles")
    assert "DLL load failed" in damaged["text"] and damaged["fix"].endswith("--force-reinstall --no-deps onnxruntime")
    assert of(answer, "index")[0]["verdict"] == "note"
    installed.replace("onnxruntime/__init__.py", kept)


def test_optional_parts(installed: Installation, project: Path) -> None:
    """The command installs the packages that the plugin and OpenAI's API need. The key is not shown."""
    write(project, {"mkdocs.yml": "site_name: x\nplugins: [search, anvil]\n"})
    client = "class OpenAI(dict):\n    def close(self):\n        pass\n"  # what is used of the packages
    installed.offer({*directly("mkdocs"), *directly("openai")}, client)
    openai = {"ANVIL_EMBEDDING_PROVIDER": "openai"}
    _, without = healed(installed, project, "mkdocs", "names the plugin, but mkdocs is not installed", **openai)
    (keyless,) = of(without, "model")
    assert keyless["verdict"] == "wrong" and "needs a key" in keyless["text"]
    (missing,) = of(asked(installed, project, keyless["fix"], **openai), "model")
    assert missing["verdict"] == "wrong" and "not installed" in missing["text"]
    after = asked(installed, project, missing["fix"], OPENAI_API_KEY="sk-very-secret", **openai)
    (model,) = of(after, "model")
    assert model["verdict"] == "ok" and "A key is set" in model["text"] and "sk-very" not in json.dumps(after)


def directly(extra: str) -> list[str]:
    """The distributions that an extra of Anvil requires itself."""
    lines = importlib.metadata.requires("anvil-docs") or []
    return [re.split(r"[^\w.-]", line)[0] for line in lines if re.search(rf"extra == ['\"]{extra}['\"]", line)]


@pytest.fixture
def another(tmp_path: Path) -> Iterator[str]:
    """A folder with another ``anvil``."""
    file = tmp_path / "elsewhere/anvil"
    write(file.parent, {"anvil": "#!/bin/sh\nexit 9\n"})
    file.chmod(0o755)
    yield str(file.parent)


@pytest.mark.skipif(os.name == "nt", reason="a program of the shell stands in")
def test_another_program_on_the_path(installed: Installation, project: Path, another: str) -> None:
    rest = os.pathsep.join(each for each in os.environ["PATH"].split(os.pathsep) if not Path(each, "anvil").exists())
    before, after = healed(installed, project, "program", "start that one", PATH=f"{another}{os.pathsep}{rest}")
    assert str(installed.program) in of(before, "index")[0]["fix"]
    assert of(after, "index")[0]["fix"] == "anvil build"
    healed(installed, project, "program", "is not on the PATH", PATH=rest)


def test_a_model_that_is_not_whole(
    installed: Installation, project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A file with other bytes, and then one that is gone, too: one command heals both."""
    shutil.copyfile(wheel(tmp_path_factory.getbasetemp()), installed.wheel)  # the one that has the models
    write(project, {"anvil.toml": 'docs = "docs"\n'})
    path = "anvil/embedding/model"
    data = bytearray((installed.site / path / "tokenizer.json").read_bytes())
    data[len(data) // 2] ^= 1
    installed.replace(f"{path}/tokenizer.json", bytes(data))
    (other,) = [each for each in of(asked(installed, project), "model") if each["verdict"] != "ok"]
    assert "their digest differs" in other["text"]
    installed.replace(f"{path}/model.onnx", None)
    before, _ = healed(installed, project, "model", "has no model.onnx")
    assert other["fix"] in [each["fix"] for each in of(before, "model")]
