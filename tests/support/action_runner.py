"""A runner of composite actions: their steps in order, with real shells, real files, and other people's actions stood
in for.

What it does is what the reference "Metadata syntax for GitHub Actions" and "Workflow commands" say a runner does.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.support import action_expressions
from tests.support.sigstore import Sigstore

Stand = Callable[["Job", Mapping[str, str]], Mapping[str, str]]
"""A substitute for another project's action: (the job, the step's ``with``) -> the step's outputs."""
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_COMPILE": "0"}
"""Settings of pip, which installs Anvil without a network; the dependencies come from the tests' environment."""
_names: dict[tuple[str, ...], dict[str, str]] = {}
"""What the step "Name the program" said: (action, its variables) -> its outputs."""
_COMMAND = re.compile(r"^\s*::(?P<name>[a-z-]+)(?: (?P<properties>[^:]*(?:%3A[^:]*)*))?::(?P<message>.*)$")
_OLD_COMMAND = re.compile(r"##\[(?P<name>[a-z-]+)(?: [^\]]*)?\](?P<message>.*)")


@dataclass(frozen=True)
class Annotation:
    """A message that the runner shows: ``level`` is ``notice``, ``warning`` or ``error``."""

    level: str
    message: str
    properties: Mapping[str, str]


@dataclass
class Run:
    """The result of a run of an action. ``steps``: name -> outcome."""

    succeeded: bool = True
    outputs: dict[str, str] = field(default_factory=dict)
    steps: dict[str, str] = field(default_factory=dict)
    summary: str = ""
    log: str = ""
    commands: list[tuple[str, str]] = field(default_factory=list)
    annotations: list[Annotation] = field(default_factory=list)


@dataclass
class Job:
    """A job on a runner: a checkout, a temporary folder, an environment, and an event that started it.

    ``caches`` and ``artifacts`` are folders that outlive it, for what stands in for GitHub's services.
    """

    workspace: Path
    temp: Path
    caches: Path
    artifacts: Path
    event: str = "push"
    environment: dict[str, str] = field(default_factory=dict)
    stands: dict[str, Stand] = field(default_factory=dict)
    installed: Path | None = None
    """The result of the step "Install Anvil" in another job: it is copied, and pip does not run again. Its name is
    computed once, too: it depends on the action's source and inputs only."""
    sigstore: Sigstore = field(default_factory=Sigstore)
    """What signs attestations."""

    def use(self, action: Path, **inputs: str) -> Run:
        """Run an action's steps; ``inputs`` with ``_`` for ``-``."""
        metadata = _metadata((action / "action.yml").read_text(encoding="utf-8"))
        given = {name.replace("_", "-"): value for name, value in inputs.items()}
        assert given.keys() <= metadata["inputs"].keys(), "an unknown input is a warning that nobody reads"
        settled = {name: given.get(name, told.get("default", "")) for name, told in metadata["inputs"].items()}
        run = Run()
        steps: dict[str, Any] = {}
        contexts = {
            "inputs": settled,
            "steps": steps,
            "github": {"event_name": self.event, "action_path": str(action)},
            "runner": {"os": "Linux", "temp": str(self.temp)},
        }
        functions = {"success": lambda: run.succeeded, "always": lambda: True, "failure": lambda: not run.succeeded}
        for number, step in enumerate(metadata["runs"]["steps"]):
            name = step["name"]
            if not action_expressions.condition(step.get("if", "success()"), contexts, functions):
                run.steps[name] = "skipped"
                continue

            def settle(values: Mapping[str, str]) -> dict[str, str]:
                return {key: action_expressions.interpolate(each, contexts, functions) for key, each in values.items()}

            outputs: dict[str, str] = {}
            if name == "Restore the program" and self.installed:
                if not (self.temp / "anvil").exists():
                    (self.temp / "anvil").symlink_to(self.installed, target_is_directory=True)
                outcome, outputs = "success", {"cache-hit": "true"}
            elif name == "Install Anvil" and self.installed:
                if not (self.temp / "anvil").exists():
                    (self.temp / "anvil").symlink_to(self.installed, target_is_directory=True)
                outcome = "success"
            elif "uses" in step:
                outputs = dict(self.stands[step["uses"].partition("@")[0]](self, settle(step.get("with", {}))))
                outcome = "success"
            else:
                assert step["shell"] == "bash" and "${{" not in step["run"]
                variables = settle(step.get("env", {}))
                known = (str(action), *variables.values()) if name == "Name the program" and self.installed else ()
                if known in _names:
                    outcome, outputs = "success", _names[known]
                else:
                    outcome, outputs = self._shell(step["run"], variables, action, number, run)
                    if known and outcome == "success":
                        _names[known] = outputs
            run.steps[name] = outcome
            run.succeeded = run.succeeded and outcome == "success"
            if "id" in step:
                steps[step["id"]] = {"outputs": outputs, "outcome": outcome, "conclusion": outcome}
        run.outputs = {
            name: action_expressions.interpolate(told["value"], contexts, functions)
            for name, told in metadata["outputs"].items()
        }
        return run

    def _shell(
        self, script: str, env: Mapping[str, str], action: Path, number: int, run: Run
    ) -> tuple[str, dict[str, str]]:
        files = {
            name: self.temp / "_runner_file_commands" / f"{name.lower()}_{number}"
            for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ENV", "GITHUB_PATH")
        }
        for file in files.values():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(b"")
        file = self.temp / f"step {number}.sh"
        file.write_text(script, encoding="utf-8")
        variables = {
            **{name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ},
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_ACTION_PATH": str(action),
            "GITHUB_EVENT_NAME": self.event,
            "RUNNER_TEMP": str(self.temp),
            "RUNNER_OS": "Linux",
            **{name: str(path) for name, path in files.items()},
            **self.environment,
            **env,
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(file)],
            cwd=self.workspace,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            timeout=300,
            check=False,
        )
        text = done.stdout.decode("utf-8")
        run.log += text
        for line in re.split(r"\r\n|\n|\r", text):
            self._read(line, run)
        summary = files["GITHUB_STEP_SUMMARY"].read_bytes()
        assert len(summary) <= 1024 * 1024, "such a summary is not shown"
        run.summary += summary.decode("utf-8")
        self.environment |= pairs(files["GITHUB_ENV"])
        for folder in files["GITHUB_PATH"].read_text(encoding="utf-8").splitlines():
            self.environment["PATH"] = folder + os.pathsep + self.environment.get("PATH", os.environ["PATH"])
        return "failure" if done.returncode else "success", pairs(files["GITHUB_OUTPUT"])

    def _read(self, line: str, run: Run) -> None:
        found = _COMMAND.match(line)
        if found is None:
            old = _OLD_COMMAND.search(line)
            if old:
                run.commands.append((old["name"], old["message"]))
            return
        run.commands.append((found["name"], unescaped(found["message"])))
        if found["name"] in ("notice", "warning", "error"):
            properties = {}
            for each in filter(None, (found["properties"] or "").split(",")):
                key, _, value = each.partition("=")
                properties[key] = unescaped(value.replace("%3A", ":").replace("%2C", ","))
            run.annotations.append(Annotation(found["name"], unescaped(found["message"]), properties))


@functools.cache
def _metadata(text: str) -> Any:
    """An ``action.yml``, scalars as written."""
    return yaml.load(text, yaml.BaseLoader)


def unescaped(text: str) -> str:
    """The data of a workflow command."""
    return text.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")


def pairs(file: Path) -> dict[str, str]:
    """A file of ``name=value`` and ``name<<delimiter`` entries. Whatever else is in it fails the step, as it would."""
    found: dict[str, str] = {}
    lines = re.split(r"\r\n|\n|\r", file.read_bytes().decode("utf-8"))
    while lines:
        line = lines.pop(0)
        if not line:
            continue
        equals, heredoc = line.find("="), line.find("<<")
        if equals >= 0 and (heredoc < 0 or equals < heredoc):
            found[line[:equals]] = line[equals + 1 :]
            continue
        assert heredoc > 0, f"neither name=value nor name<<delimiter: {line!r}"
        delimiter, body = line[heredoc + 2 :], []
        while lines[0] != delimiter:
            body.append(lines.pop(0))
        lines.pop(0)
        found[line[:heredoc]] = "\n".join(body)
    return found


# --- what stands in for other people's actions -------------------------------------------------------------------


def set_up_python(job: Job, given: Mapping[str, str]) -> Mapping[str, str]:
    """``actions/setup-python``: the Python of the tests."""
    assert given["update-environment"] == "false"
    return {"python-path": sys.executable}


def restore_cache(job: Job, given: Mapping[str, str]) -> Mapping[str, str]:
    """``actions/cache/restore``: the exact key, else the newest that begins with a restore key."""
    wanted = [given["key"], *given.get("restore-keys", "").split()]
    kept = sorted(job.caches.iterdir(), key=lambda folder: folder.stat().st_mtime_ns, reverse=True)
    for key in wanted:
        assert key, "an empty key is refused"
        for folder in kept:
            if folder.name.startswith(key):
                shutil.copytree(folder / "0", given["path"], dirs_exist_ok=True)
                return {"cache-hit": str(folder.name == given["key"]).lower(), "cache-matched-key": folder.name}
    return {"cache-hit": "false"}


def save_cache(job: Job, given: Mapping[str, str]) -> Mapping[str, str]:
    """``actions/cache/save``: a cache that exists is never changed."""
    folder = job.caches / given["key"]
    assert not folder.exists(), "a warning, and nothing saved"
    shutil.copytree(given["path"], folder / "0")
    return {}


def upload(job: Job, given: Mapping[str, str]) -> Mapping[str, str]:
    """``actions/upload-artifact``: files below their least common folder; hidden ones are left out."""
    files = [Path(line) for line in given["path"].splitlines() if line.strip()]
    assert all(file.is_file() for file in files) or given["if-no-files-found"] != "error"
    folder = job.artifacts / given["name"]
    assert not folder.exists(), "an artifact of that name exists already"
    root = Path(os.path.commonpath([file.parent for file in files]))
    for file in files:
        below = file.relative_to(root)
        if not any(part.startswith(".") for part in below.parts):
            (folder / below).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, folder / below)
    number = str(len(list(job.artifacts.iterdir())))
    return {"artifact-id": number, "artifact-url": f"https://github.test/o/r/actions/runs/1/artifacts/{number}"}


def attest(job: Job, given: Mapping[str, str]) -> Mapping[str, str]:
    """``actions/attest-build-provenance``: refused where the token may not sign. It writes the bundle as one line."""
    assert job.event != "pull_request", "a pull request's token may not ask for an identity"
    bundle = job.temp / "attestation.json"
    subject = Path(given["subject-path"]).read_bytes()
    bundle.write_text(json.dumps(job.sigstore.bundle(subject, "acme/docs")) + "\n", encoding="utf-8")
    return {"attestation-id": "1", "bundle-path": str(bundle)}


STANDS: dict[str, Stand] = {
    "actions/setup-python": set_up_python,
    "actions/cache/restore": restore_cache,
    "actions/cache/save": save_cache,
    "actions/upload-artifact": upload,
    "actions/attest-build-provenance": attest,
}
