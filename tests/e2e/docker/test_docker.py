"""The container image: the Dockerfile's steps performed in a clean Debian, and containers of what comes out.

Needs Linux, root, and the Debian root of scripts/debian_root.sh. Layers are kept beside it, so that only what changed
is made again; where nothing is kept, packages come from Debian and PyPI.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from mcp.client.streamable_http import streamable_http_client

import anvil
from anvil.system import safe_files
from tests.conftest import PAGES, write
from tests.e2e.mcp.test_http import JSON
from tests.e2e.mcp.test_stdio import INITIALIZE
from tests.support import environments, mcp_servers
from tests.support.images import Builder, Image, admitted, steps
from tests.support.index_server import serving as publishing

if sys.platform != "linux":
    pytest.skip("containers are Linux's", allow_module_level=True)
from tests.support.containers import Container, Mount, finished, started

ROOT = Path(__file__).resolve().parents[3]
DOCKERFILE = (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")
PLACE = Path("/var/cache/anvil-image")
BASE = PLACE / "trixie"
TOKEN = "s3cret-of-the-container"
LARGEST = 440_000_000
"""Bytes of all files of the image; what docs/guides/containers.md says stays below it."""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """The image, with this checkout's wheel."""
    if os.geteuid() or not BASE.is_dir() or shutil.which("unshare") is None:
        pytest.skip("needs root and the Debian root that scripts/debian_root.sh makes")
    wheel = environments.wheel(tmp_path_factory.getbasetemp())
    context = {f"docker/{file.name}": file for file in (ROOT / "docker").iterdir() if file.is_file()}
    context[f"dist/{wheel.name}"] = wheel
    ignore = (ROOT / ".dockerignore").read_text(encoding="utf-8")
    given = {"VERSION": anvil.__version__, "REVISION": "0123456789"}
    try:
        return Builder(BASE, PLACE / "layers", admitted(context, ignore), given).build(DOCKERFILE)
    except subprocess.CalledProcessError as error:
        raise AssertionError(f"{error.stdout[-2000:]}\n{error.stderr[-4000:]}") from None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An index by words only, and a token, readable for everybody, in folders of their own."""
    for place in (tmp_path, *tmp_path.parents[:2]):
        place.chmod(0o755)  # bind mounts do not need it, but the index is opened by its path
    built(write(tmp_path / "docs", PAGES), tmp_path / "index" / "index.db")
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    return tmp_path


def built(docs: Path, index: Path) -> Path:
    with anvil.open(docs, index, "none") as opened:
        opened.index()
    return index


@contextmanager
def asking(container: Container) -> Iterator[mcp_servers.Speaker]:
    """A client with the token, in the container's network."""
    client = httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"})
    server = streamable_http_client("http://127.0.0.1:8000/mcp", http_client=client)
    with ExitStack() as stack:
        with container.network():
            speaker = stack.enter_context(mcp_servers.connected(server))
        yield speaker


def secret(folder: Path) -> dict[str, Any]:
    """The mount and the variable of a token's file."""
    return {
        "mounts": [Mount("/index", folder / "index"), Mount("/run/secrets/token", folder / "token")],
        "environment": {"ANVIL_TOKEN_FILE": "/run/secrets/token"},
    }


# --- the image ---------------------------------------------------------------------------------------------------


def test_nothing_to_build_or_install_with_is_inside(image: Image) -> None:
    """Beyond what Debian's slim base has: no compiler, no pip, no git, no downloader."""
    script = "for each in cc gcc g++ c++ clang make ld as pip pip3 uv git curl wget; do command -v $each; done; "
    script += "find /opt /usr -name pip -o -name ensurepip; command -v anvil"
    assert finished(image, "-c", script, entrypoint=["/bin/sh"]).stdout == "/opt/anvil/bin/anvil\n"


def test_the_program_cannot_be_written_and_has_its_bytecode(image: Image) -> None:
    """Owned by root, and bytecode that is neither made again nor says when it was made."""
    placed = next(layer / "opt" / "anvil" for layer in image.layers if (layer / "opt" / "anvil").is_dir())
    modules = 0
    for file in placed.rglob("*"):
        stat = file.lstat()
        assert (stat.st_uid, stat.st_gid) == (0, 0) and (file.is_symlink() or not stat.st_mode & 0o022), file
        if file.suffix == ".pyc":
            modules += 1
            assert file.read_bytes()[4] == 1, f"{file}: neither time nor check"
    assert modules > 1000
    script = "for each in / /opt/anvil /usr/local /etc; do touch $each/x && echo $each; done"
    assert finished(image, "-c", script, entrypoint=["/bin/sh"]).stdout == ""


def test_it_is_small(image: Image) -> None:
    """The sum of its layers, as engines count it."""
    files = [file.lstat() for layer in image.layers for file in layer.rglob("*")]
    size = sum({(each.st_dev, each.st_ino): each.st_size for each in files}.values())
    assert LARGEST / 2 < size < LARGEST, f"{size / 1e6:.0f} MB"
    told = (ROOT / "docs" / "guides" / "containers.md").read_text(encoding="utf-8")
    assert f"{LARGEST // 1_000_000} MB" in told


def test_it_says_what_it_is(image: Image) -> None:
    labels = {name.removeprefix("org.opencontainers.image."): text for name, text in image.settings.labels.items()}
    assert labels["version"] == anvil.__version__ and labels["revision"] == "0123456789"
    assert labels["licenses"] == "Apache-2.0" and labels["base.name"].startswith("docker.io/library/debian:")
    assert finished(image, "--version").stdout == f"anvil, version {anvil.__version__}\n"
    assert image.settings.user == "65532:65532" and image.settings.ports == ("8000",)


# --- its server --------------------------------------------------------------------------------------------------


def test_it_serves_an_index_with_nothing_to_write_to(image: Image, folder: Path) -> None:
    """By the image's own command; with the model; asked with the token; to the end."""
    with anvil.open(folder / "docs", folder / "index" / "index.db") as opened:
        opened.index()
    with started(image, **secret(folder)) as container:
        container.answers(8000)
        assert json.loads(container.well(image.settings.health))["pages"] == len(PAGES)
        assert container.run("id", "-u").stdout == "65532\n"
        with asking(container) as speaker:
            found = speaker.ok("search_docs", query="how long before its end does a certificate warn?", mode="semantic")
        assert "two weeks" in found["results"][0]["content"] and "notes" not in found.get("freshness", {})
        with container.network():
            assert httpx2.post("http://127.0.0.1:8000/mcp", json=INITIALIZE, headers=JSON).status_code == 401
        assert container.stop(5) == 0
        out, log = container.process.communicate()
        assert out == "" and "token=required" in log and TOKEN not in log and "rror" not in log
        assert len(log.splitlines()) == 2 and "refused a request (status=401 path=/mcp" in log, log
    gone = finished(image, *image.settings.health, entrypoint=[])
    assert gone.returncode == 1 and gone.stdout.startswith("no answer at port 8000: ")


def test_it_ends_at_once_while_it_starts(image: Image, folder: Path) -> None:
    """Of process 1 the kernel keeps away every signal that it does not handle itself."""
    with started(image, **secret(folder)) as container:
        while not container.handles(signal.SIGTERM):
            assert container.process.poll() is None
        assert container.stop(20) in (0, 128 + signal.SIGTERM)  # the second until the server handles it itself
        assert container.process.communicate() == ("", "")


def test_it_does_not_serve_without_a_token(image: Image, folder: Path) -> None:
    mounts = [Mount("/index", folder / "index"), Mount("/run/secrets/token", folder / "token")]
    open_door = finished(image, mounts=mounts)
    assert open_door.returncode == 2 and "0.0.0.0 can be reached from other machines" in open_door.stderr
    (folder / "token").chmod(0o600)
    hidden = finished(image, mounts=mounts, environment={"ANVIL_TOKEN_FILE": "/run/secrets/token"})
    assert hidden.returncode == 2 and "/run/secrets/token cannot be read (Permission denied)" in hidden.stderr


def test_it_is_not_well_without_an_index(image: Image, folder: Path) -> None:
    """It waits for one, and says so."""
    (folder / "index" / "index.db").rename(folder / "index" / "later.db")
    with started(image, **secret(folder)) as container:
        container.answers(8000)
        ill = container.run(*image.settings.health)
        assert ill.returncode == 1 and "/index/index.db" in json.loads(ill.stdout)["error"]
        (folder / "index" / "later.db").rename(folder / "index" / "index.db")
        container.well(image.settings.health)
        assert container.stop(5) == 0


def test_it_serves_what_is_published_with_a_cache_in_memory(image: Image, folder: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with publishing() as site:
        site.publish(folder / "index" / "index.db")
        command = ["serve", "--transport", "http", "--index", site.url, "--port", port]
        how: dict[str, Any] = {"environment": {"ANVIL_TOKEN": TOKEN}, "network": "host"}
        with started(image, *command, mounts=[Mount("/cache")], **how) as container:
            container.answers(int(port))
            container.well([*image.settings.health, port])
            assert container.stop(5) == 0


# --- as compose.yml and kubernetes.yaml run it -----------------------------------------------------------------------


def composed(name: str, folder: Path, **variables: str) -> tuple[list[str], dict[str, Any]]:
    """The command of a service of compose.yml, and how its container is started; named volumes are folders."""
    text = (ROOT / "docker" / "compose.yml").read_text(encoding="utf-8")
    service = yaml.safe_load(text)["services"][name]

    def filled(value: str) -> str:
        return re.sub(r"\$\{(\w+)[^}]*\}", lambda found: variables[found[1]], value)

    volumes = [each.split(":") for each in service["volumes"]]
    mounts = [Mount(target, folder / source, writable=not mode) for source, target, *mode in volumes]
    mounts += [Mount(f"/run/secrets/{each}", folder / each) for each in service.get("secrets", [])]
    environment = {key: filled(value) for key, value in service["environment"].items()}
    return [filled(each) for each in service.get("command", [])], {"mounts": mounts, "environment": environment}


@pytest.fixture
def volumes(folder: Path) -> Path:
    """Empty volumes, as an engine makes them: with the owner that the image's folders have."""
    shutil.rmtree(folder / "index")
    for name in ("index", "fetched"):
        (folder / name).mkdir()
        os.chown(folder / name, 65532, 65532)
    return folder


def test_compose_pulls_serves_and_takes_a_newer_index(image: Image, volumes: Path) -> None:
    with publishing() as site:
        site.publish(built(volumes / "docs", volumes / "published" / "index.db"))
        command, how = composed("pull", volumes, ANVIL_SOURCE=f"{site.url}/", GITHUB_TOKEN="")
        pulled = finished(image, *command, **how, network="host")
        assert pulled.returncode == 0 and "index.db pulled: 4 pages" in pulled.stdout, pulled
        assert "without a manifest" not in pulled.stderr
        _, serve = composed("serve", volumes, ANVIL_ALLOWED_HOST="")
        with started(image, **serve) as container:
            container.answers(8000)
            with asking(container) as speaker:
                assert speaker.ok("search_docs", query="dpkg")["results"]
                write(volumes / "docs", {"new.md": "# Buoys\n\nA buoy is a page that came later.\n"})
                site.publish(built(volumes / "docs", volumes / "published" / "index.db"))
                newer = finished(image, *command, **how, network="host")
                assert newer.returncode == 0 and "pulled: 5 pages" in newer.stdout, newer
                (found, *_) = speaker.ok("search_docs", query="buoy")["results"]
                assert found["metadata"]["file_path"] == "new.md"
            assert container.stop(5) == 0
    site_gone = finished(image, *command, **how, network="host")
    assert site_gone.returncode == 0 and "is used" in site_gone.stderr, "what was fetched before does"


def test_a_pod_takes_the_very_index_it_is_told_or_none(image: Image, volumes: Path) -> None:
    text = (ROOT / "docker" / "kubernetes.yaml").read_text(encoding="utf-8")
    (init,) = next(iter(yaml.safe_load_all(text)))["spec"]["template"]["spec"]["initContainers"]
    mounts = [Mount(each["mountPath"], volumes / each["name"], True) for each in init["volumeMounts"]]
    with publishing() as site:
        site.publish(built(volumes / "docs", volumes / "published" / "index.db"))
        told = [each.replace("https://docs.example.com", site.url) for each in init["args"]]
        refused = finished(image, *told, mounts=mounts, network="host")
        assert refused.returncode == 1 and "not 0000" in refused.stderr
        assert list((volumes / "index").iterdir()) == []
        told = [each.replace("0" * 64, safe_files.sha256(volumes / "published" / "index.db")) for each in told]
        assert finished(image, *told, mounts=mounts, network="host").returncode == 0
    assert (volumes / "index" / "index.db").read_bytes() == (volumes / "published" / "index.db").read_bytes()


def test_every_step_was_performed(image: Image) -> None:
    """That the Dockerfile is read as engines read it: no instruction is passed over."""
    made = sum(step.word in ("RUN", "COPY") for step in steps(DOCKERFILE[DOCKERFILE.rindex("FROM ") :]))
    assert len(image.layers) == 1 + made
