"""What stands in docker/, read rather than run: held to the tools of its kinds, to the project, and to itself."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import anvil
from scripts import lock_image
from tests.support.images import admitted, steps

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
DOCKER = ROOT / "docker"
COMPOSE = DOCKER / "compose.yml"
KUBERNETES = DOCKER / "kubernetes.yaml"
HADOLINT = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
STEPS = steps((DOCKER / "Dockerfile").read_text(encoding="utf-8"))
USER = 65532
PROXY = {**os.environ, "HTTP_PROXY": "http://127.0.0.1:1", "http_proxy": "http://127.0.0.1:1"}


def objects() -> dict[str, dict[str, Any]]:
    """The Kubernetes objects by their kind."""
    return {each["kind"]: each for each in yaml.safe_load_all(KUBERNETES.read_text(encoding="utf-8"))}


def services() -> dict[str, dict[str, Any]]:
    """The services of the compose file."""
    found: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]
    return found


# --- the image -------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(HADOLINT is None, reason="there is no hadolint for this system")
def test_hadolint_has_nothing_to_say() -> None:
    done = subprocess.run([str(HADOLINT), str(DOCKER / "Dockerfile")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_base_is_named_by_its_digest_and_is_the_same_for_all_stages() -> None:
    (base,) = [step.rest for step in STEPS if step.word == "ARG" and step.rest.startswith("BASE=")]
    assert re.fullmatch(r"BASE=docker\.io/library/debian:[a-z]+-\d{8}-slim@sha256:[0-9a-f]{64}", base)
    assert {step.rest.split(" AS ")[0] for step in STEPS if step.word == "FROM"} == {"${BASE}"}
    (user,) = [step.rest for step in STEPS if step.word == "USER"]
    assert user == f"{USER}:{USER}", "a number, so that runAsNonRoot can be checked"
    for step in STEPS:
        if step.word in ("ENTRYPOINT", "CMD"):
            assert step.words(), "signals reach the program only in the exec form"


def test_a_build_reads_what_it_copies_and_nothing_else() -> None:
    wheel = f"dist/anvil_docs-{anvil.__version__}-py3-none-any.whl"
    tree = ["README.md", ".git/config", "docs/index.md", "anvil/api.py", "docker/secrets/token", "dist/anvil.tar.gz"]
    tree += [f"docker/{file.name}" for file in DOCKER.iterdir()] + [wheel]
    ignore = (ROOT / ".dockerignore").read_text(encoding="utf-8")
    let_in = admitted({path: ROOT / path for path in tree}, ignore)
    assert sorted(let_in) == sorted([wheel, "docker/health.py", "docker/requirements.txt"])
    copied = [step.rest.split()[0] for step in STEPS if step.word == "COPY" and "--from" not in step.rest]
    assert sorted(copied) == ["dist/anvil_docs-*.whl", "docker/health.py", "docker/requirements.txt"]


# --- what it installs ------------------------------------------------------------------------------------------------


def locked() -> dict[str, Version]:
    """The packages of docker/requirements.txt, each with at least one digest."""
    text = lock_image.LOCK.read_text(encoding="utf-8")
    found = re.findall(r"^(\S+)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", text, re.MULTILINE)
    assert len(found) == text.count("=="), "a line that is no package with its digests"
    return {canonicalize_name(name): Version(version) for name, version, _ in found}


def test_the_packages_are_those_that_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    there = {"python_version": lock_image.PYTHON, "sys_platform": "linux", "platform_machine": "x86_64"}
    found = locked()
    for line in project["dependencies"]:
        wanted = Requirement(line)
        name = canonicalize_name(wanted.name)
        if wanted.marker is None or wanted.marker.evaluate(there):
            assert name in found and found[name] in wanted.specifier, f"{line}: run scripts/lock_image.py"
        else:
            assert name not in found


def test_a_lock_holds_the_wheels_of_both_platforms_or_is_none() -> None:
    ours, theirs = {"a": ("1.0", {"1" * 64})}, {"a": ("1.0", {"0" * 64, "1" * 64})}
    text = lock_image.written({"x86_64-linux": ours, "aarch64-linux": theirs})
    assert "x86_64 and aarch64" in text
    assert text.endswith(f"a==1.0 \\\n    --hash=sha256:{'0' * 64} \\\n    --hash=sha256:{'1' * 64}\n")
    with pytest.raises(SystemExit, match=r"2\.0"):
        lock_image.written({"x": ours, "y": {"a": ("2.0", {"0" * 64})}})


# --- its health ------------------------------------------------------------------------------------------------------


class HealthServer(HTTPServer):
    """A server that is as well as it is told to be."""

    status = 200


class Answering(BaseHTTPRequestHandler):
    """Says how it is with the status that its server was given."""

    server: HealthServer

    def do_GET(self) -> None:
        assert self.path == "/health"
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(b'{"status": "..."}')

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[HealthServer]:
    with HealthServer(("127.0.0.1", 0), Answering) as found:
        Thread(target=found.serve_forever, args=(0.02,), daemon=True).start()
        yield found
        found.shutdown()


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1), (401, 1)])
def test_health_is_what_the_server_says(server: HealthServer, status: int, code: int) -> None:
    server.status = status
    line = [sys.executable, "-I", str(DOCKER / "health.py"), str(server.server_port)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, env=PROXY)
    assert (done.returncode, done.stdout, done.stderr) == (code, '{"status": "..."}\n', "")


def test_nobody_there_is_not_well(server: HTTPServer) -> None:
    port = server.server_port
    server.shutdown()
    server.server_close()
    line = [sys.executable, str(DOCKER / "health.py"), str(port)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stdout.startswith(f"no answer at port {port}: ") and done.stderr == ""


# --- compose ---------------------------------------------------------------------------------------------------------


def test_compose_fits_its_schema() -> None:
    line = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(COMPOSE)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["pull", "serve"])
def test_no_service_may_more_than_it_needs(name: str) -> None:
    service = services()[name]
    assert service["read_only"] is True and service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["deploy"]["resources"]["limits"].keys() == {"cpus", "memory", "pids"}
    assert service["image"] == f"${{ANVIL_IMAGE:-ghcr.io/anvil-docs/anvil:{anvil.__version__}}}"


def test_the_token_is_a_file_that_git_does_not_see() -> None:
    compose = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    assert services()["serve"]["ports"] == ["127.0.0.1:8000:8000"]
    assert services()["serve"]["volumes"] == ["index:/index:ro"]
    file = compose["secrets"]["token"]["file"]
    assert f"/docker/{Path(file).parent}/" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()


# --- Kubernetes ------------------------------------------------------------------------------------------------------


def test_kubernetes_takes_every_object() -> None:
    import kubernetes_validate

    oldest = "1.31"
    for each in objects().values():
        for version in (oldest, kubernetes_validate.latest_version()):
            kubernetes_validate.validate(each, version, strict=True)
    assert objects().keys() == {"Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"}


def test_pods_keep_to_the_restricted_profile() -> None:
    """The strictest of Kubernetes' pod security standards, and a root that cannot be written."""
    pod = objects()["Deployment"]["spec"]["template"]["spec"]
    whole = pod["securityContext"]
    assert whole["runAsNonRoot"] is True and whole["runAsUser"] == whole["fsGroup"] == USER
    assert whole["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    for container in (*pod["initContainers"], *pod["containers"]):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["image"] == f"ghcr.io/anvil-docs/anvil:{anvil.__version__}"
        assert container["resources"]["limits"]["memory"]
    assert all(each.keys() <= {"name", "emptyDir", "secret"} for each in pod["volumes"])
    (secret,) = [each["secret"] for each in pod["volumes"] if "secret" in each]
    assert secret["defaultMode"] == stat.S_IRUSR | stat.S_IRGRP


def test_a_pod_serves_what_it_fetched_and_cannot_change_it() -> None:
    pod = objects()["Deployment"]["spec"]["template"]["spec"]
    (pull,), (serve,) = pod["initContainers"], pod["containers"]
    assert any(re.fullmatch(r"--sha256=[0-9a-f]{64}", each) for each in pull["args"])
    assert {"name": "index", "mountPath": "/index", "readOnly": True} in serve["volumeMounts"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert serve[probe]["httpGet"] == {"path": "/health", "port": "http"}
    grace = serve["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["terminationGracePeriodSeconds"] >= grace + 5, "requests under way get their time after the sleep"


def test_the_objects_mean_the_same_pods() -> None:
    found = objects()
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert found["Service"]["spec"]["selector"] == labels
    assert found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert found["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == labels
    assert found["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    assert found["PodDisruptionBudget"]["spec"]["minAvailable"] < found["Deployment"]["spec"]["replicas"]
