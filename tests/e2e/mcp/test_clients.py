"""Clients that others wrote, from npm: the official conformance suite, the Inspector's command line, mcporter.

``scripts/install_node_clients.sh`` installs them; without them these tests are skipped and say so.
"""

from __future__ import annotations

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

import anvil
from tests.conftest import PAGES, write
from tests.support import mcp_servers
from tests.support.mcp_servers import Process

CACHE = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
FOLDER = Path(os.environ.get("ANVIL_NODE_CLIENTS") or Path(CACHE) / "anvil" / "node-clients")
BIN = FOLDER / "node_modules" / ".bin"
NODE = FOLDER / "node_modules" / "node" / "bin" / "node"

pytestmark = pytest.mark.skipif(
    not (FOLDER / ".complete").exists() or not NODE.exists(),
    reason=f"no Node clients in {FOLDER}: run scripts/install_node_clients.sh (it needs npm)",
)

BOTH = (
    "completion-complete",
    "tools-list",
    "tools-call-error",
    "resources-list",
    "dns-rebinding-protection",
)
SCENARIOS = {
    "2025-11-25": ("server-initialize", "ping", *BOTH),
    "2026-07-28": ("sep-2164-resource-not-found", "http-header-validation", "server-sse-multiple-streams", *BOTH),
}
"""Revision -> the scenarios that a server passes whole without the suite's own tools, prompts and resources; the guide
on serving says what the others need."""
NOT_OFFERED = {
    "server-stateless": {"test_missing_capability"},
    "caching": {"prompts/list"},
}
"""Scenarios of which each failed check is about a tool or a list that a server need not have."""
CALLS: dict[str, dict[str, Any]] = {
    "search_docs": {"query": "certificate", "top_k": 2},
    "get_page": {"file_path": "install.md"},
    "get_section": {"file_path": "guides/alerts.md", "heading_path": "Alerts > E-mail"},
    "grep_docs": {"pattern": "certificate", "max_matches": 3},
    "list_pages": {"prefix": "guides"},
    "get_status": {},
}
CALLED = {"http": list(CALLS), "stdio": ["search_docs"]}
"""Tools that each client calls. A pipe carries one as it carries all, and each call over it starts a server anew."""


def node(program: str, *arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Run an installed program with the Node that came along, at home in the cache folder."""
    environment = {**mcp_servers.environment(), "HOME": str(FOLDER), "NO_COLOR": "1"}
    environment["PATH"] = f"{NODE.parent}{os.pathsep}{environment.get('PATH', '')}"
    return subprocess.run(
        [str(NODE), str(BIN / program), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
        cwd=FOLDER,
    )


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("clients")
    with anvil.open(write(place / "docs", PAGES), place / "index.db", "none") as opened:
        opened.index()
    return place / "docs"


@pytest.fixture(scope="module")
def server(docs: Path) -> Iterator[Process]:
    with mcp_servers.over_http(docs, docs.parent / "index.db", "--provider", "none") as server:
        yield server


@pytest.mark.parametrize(("revision", "scenario"), [(day, name) for day, names in SCENARIOS.items() for name in names])
def test_conformance(server: Process, revision: str, scenario: str) -> None:
    done = node("conformance", "server", "--url", server.url, "--spec-version", revision, "--scenario", scenario)
    assert done.returncode == 0, done.stdout
    assert re.search(r"Passed: (\d+)/\1, 0 failed, 0 warnings", done.stdout), done.stdout


@pytest.mark.parametrize("scenario", NOT_OFFERED)
def test_conformance_but_for_what_is_not_offered(server: Process, scenario: str) -> None:
    done = node("conformance", "server", "--url", server.url, "--spec-version", "2026-07-28", "--scenario", scenario)
    errors = re.findall(r"^ +Error: (.*)$", done.stdout, re.MULTILINE)
    assert errors and re.search(rf"Passed: [1-9]\d*/\d+, {len(errors)} failed", done.stdout), done.stdout
    assert all(any(name in error for name in NOT_OFFERED[scenario]) for error in errors), done.stdout


def inspector(docs: Path, server: Process | None, *arguments: str) -> Any:
    """What the Inspector's command line prints, over HTTP or, without a server, over stdio."""
    if server:
        target = [server.url, "--transport", "http"]
    else:
        line = [*mcp_servers.command(docs, docs.parent / "index.db"), "--provider", "none"]
        target = ["-e", f"PYTHONPATH={mcp_servers.ROOT}", *line[:1], *line[3:]]  # it takes no option of the interpreter
    done = node("mcp-inspector", "--cli", *target, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_inspector_lists_and_calls_tools(docs: Path, server: Process, way: str) -> None:
    over = server if way == "http" else None
    listed = inspector(docs, over, "--method", "tools/list")["tools"]
    assert [tool["name"] for tool in listed] == list(CALLS)
    for name in CALLED[way]:
        arguments = CALLS[name]
        given = [word for key, value in arguments.items() for word in ("--tool-arg", f"{key}={value}")]
        result = inspector(docs, over, "--method", "tools/call", "--tool-name", name, *given)
        assert not result.get("isError"), result
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]


def mcporter(docs: Path, server: Process | None, *words: str) -> str:
    """What mcporter prints, with a configuration of its own that names the server."""
    line = [*mcp_servers.command(docs, docs.parent / "index.db"), "--provider", "none"]
    entry: dict[str, Any] = (
        {"url": server.url, "allowHttp": True}
        if server
        else {
            "command": line[0],
            "args": line[1:],
            "env": {"PYTHONPATH": str(mcp_servers.ROOT)},
        }
    )
    config = docs.parent / f"mcporter-{'http' if server else 'stdio'}.json"
    config.write_text(json.dumps({"mcpServers": {"anvil": entry}, "imports": []}))
    done = node("mcporter", "--config", str(config), *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_mcporter_lists_and_calls_tools(docs: Path, server: Process, way: str) -> None:
    over = server if way == "http" else None
    listed = json.loads(mcporter(docs, over, "list", "anvil", "--schema", "--json"))
    assert [tool["name"] for tool in listed["tools"]] == list(CALLS)
    for name in CALLED[way]:
        arguments = CALLS[name]
        told = mcporter(docs, over, "call", f"anvil.{name}", "--args", json.dumps(arguments), "--output", "json")
        found = json.loads(told)
        assert found and not found.get("isError"), found


def test_the_installer_says_what_it_does() -> None:
    bash = shutil.which("bash")
    if bash is None or sys.platform == "win32":
        pytest.skip("no bash here")
    done = subprocess.run(
        [bash, str(mcp_servers.ROOT / "scripts" / "install_node_clients.sh")],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": os.environ["PATH"], "ANVIL_NODE_CLIENTS": str(FOLDER), "HOME": str(FOLDER)},
    )
    assert done.returncode == 0 and f"The Node clients are in {FOLDER}." in done.stdout
