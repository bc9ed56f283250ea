"""The bundle for desktop clients: built, unpacked and started as its manifest says.

It is started with the environment of the tests in place of the one that uv would download. With ``ANVIL_MCPB`` set to a
bundle (``.ci/run`` and the release do that), that bundle is started as it is, and uv makes its environment.
"""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import uv
from mcp import StdioServerParameters, stdio_client

import anvil
from anvil.server.docs_toolset import TOOLSET
from scripts import mcpb, project
from tests.conftest import PAGES, write
from tests.e2e.mcp.test_clients import BIN, NODE
from tests.support import mcp_servers

REAL = os.environ.get("ANVIL_MCPB")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file in place of the wheel, for tests that need only its bytes."""
    file = tmp_path_factory.mktemp("wheel") / f"anvil_docs-{anvil.__version__}-py3-none-any.whl"
    file.write_bytes(b"PK")
    return file


@pytest.fixture(scope="module")
def bundle(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle as a file."""
    return Path(REAL) if REAL else mcpb.build(wheel, tmp_path_factory.mktemp("bundle"))


@pytest.fixture(scope="module")
def installed(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder where a client unpacked it; a space in its name, as on a Mac."""
    folder = tmp_path_factory.mktemp("installed") / "Client Extensions"
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(folder)
    return folder


def manifest(installed: Path) -> dict[str, Any]:
    found = json.loads((installed / "manifest.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def command(installed: Path, **chosen: str) -> StdioServerParameters:
    """The command that a client starts, with the settings of its user. One without a value stays a placeholder."""
    server = manifest(installed)["server"]["mcp_config"]
    known = {"__dirname": str(installed), **{f"user_config.{name}": value for name, value in chosen.items()}}

    def filled(text: str) -> str:
        return re.sub(r"\$\{([^}]+)\}", lambda found: known.get(found[1], found[0]), text)

    path = os.pathsep.join([str(Path(uv.find_uv_bin()).parent), os.environ["PATH"]])
    kept = {name: value for name, value in os.environ.items() if name.startswith(("UV_", "PIP_", "SSL_"))}
    ours = {
        "UV_NO_SYNC": "1",
        "UV_OFFLINE": "1",
        "UV_PROJECT_ENVIRONMENT": sys.prefix,
        "PYTHONPATH": str(mcp_servers.ROOT),
    }
    environment = {**mcp_servers.environment(), **kept, "PATH": path, "UV_CACHE_DIR": str(installed.parent / "cache")}
    del environment["PYTHONPATH"]
    return StdioServerParameters(
        command=server["command"],
        args=[filled(each) for each in server["args"]],
        env=environment if REAL else {**environment, **ours},
    )


def test_the_same_wheel_gives_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    first, second = (mcpb.build(wheel, folder).read_bytes() for folder in folders)
    assert first == second


def test_it_holds_what_it_needs_and_no_more(bundle: Path) -> None:
    with zipfile.ZipFile(bundle) as archive:
        names = archive.namelist()
        wheel = f"anvil_docs-{anvil.__version__}-py3-none-any.whl"
        assert names == sorted(["LICENSE", "icon.png", "manifest.json", "pyproject.toml", "server.py", wheel])
        assert f'path = "{wheel}"' in archive.read("pyproject.toml").decode()
        icon = archive.read("icon.png")
        assert icon[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", icon[16:24]) == (512, 512)


def test_it_lists_the_tools_of_the_server(installed: Path) -> None:
    told = manifest(installed)
    assert [each["name"] for each in told["tools"]] == [tool.name for tool in TOOLSET.tools]
    assert told["version"] == anvil.__version__ and told["manifest_version"] == "0.4"
    assert told["compatibility"]["runtimes"]["python"] == mcpb.PYTHON


def test_settings_and_arguments_are_the_same(installed: Path) -> None:
    told = manifest(installed)
    named = set(re.findall(r"\$\{user_config\.(\w+)\}", json.dumps(told["server"])))
    assert named == told["user_config"].keys() == {"docs", "index"}


def test_pythons_are_those_of_the_package() -> None:
    minors = [each.rpartition(".")[2] for each in project.table()["classifiers"] if re.search(r":: 3\.\d+$", each)]
    first, last = min(map(int, minors)), max(map(int, minors))
    assert f">=3.{first},<3.{last + 1}" == mcpb.PYTHON


def test_a_client_starts_it_and_asks(installed: Path, tmp_path: Path) -> None:
    docs = write(tmp_path / "my docs", PAGES)
    (docs / "anvil.toml").write_text('[embedding]\nprovider = "none"\n', encoding="utf-8")
    with open(os.devnull, "w") as nothing:
        server = stdio_client(command(installed, docs=str(docs)), errlog=nothing)
        with mcp_servers.connected(server, read_timeout_seconds=300) as client:
            assert client.server_info.version == anvil.__version__
            found = client.call("search_docs", query="warning before a certificate expires")
            assert found.content[0].text.startswith("guides/checks.md") and found.structured_content is None
            status = client.call("get_status").content[0].text
            assert json.loads(status)["embedding"]["provider"] == "none", "the anvil.toml of the folder"


def test_a_client_asks_an_index_alone(installed: Path, tmp_path: Path) -> None:
    index = tmp_path / "published.db"
    with anvil.open(write(tmp_path / "docs", PAGES), index, "none") as opened:
        opened.index()
    with open(os.devnull, "w") as nothing:
        server = stdio_client(command(installed, docs="", index=str(index)), errlog=nothing)
        with mcp_servers.connected(server, read_timeout_seconds=300) as client:
            found = client.call("search_docs", query="quiet window").content[0].text
            assert found.startswith("guides/alerts.md")


def test_nothing_chosen_says_what_to_choose(installed: Path) -> None:
    line = command(installed)
    done = subprocess.run(
        [line.command, *line.args], env=line.env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300
    )
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.strip().endswith(
        "Choose a documentation folder, or name a published index, in the settings of this extension."
    )


@pytest.mark.skipif(
    not ((BIN / "mcpb").exists() and NODE.exists()),
    reason="no official validator: run scripts/install_node_clients.sh (it needs npm)",
)
def test_the_official_validator_takes_it(installed: Path) -> None:
    done = subprocess.run([NODE, BIN / "mcpb", "validate", installed / "manifest.json"], capture_output=True, text=True)
    assert done.returncode == 0 and "validation passes" in done.stdout, done.stdout + done.stderr
