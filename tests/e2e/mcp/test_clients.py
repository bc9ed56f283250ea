"""Clients that others wrote, from npm: the official conformance suite, the Inspector's command line, mcporter.

``scripts/install_node_clients.sh`` installs them; without them these tests are skipped and say so.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import anvil
from tests.conftest import PAGES, write
from tests.support import mcp_servers
from tests.support.commits import program_folder
from tests.support.mcp_servers import Process

Checks = dict[str, list[dict[str, Any]]]
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
"""Scenarios of which each failed check is about a tool or a list that a server need not have (newest revision)."""
CALLS: dict[str, dict[str, Any]] = {
    "search_docs": {"query": "certificate", "top_k": 2},
    "get_page": {"file_path": "install.md"},
    "get_section": {"file_path": "guides/alerts.md", "heading_path": "Alerts > E-mail"},
    "grep_docs": {"pattern": "certificate", "max_matches": 3},
    "list_pages": {"prefix": "guides"},
    "get_status": {},
}
INSPECTOR_CLI = FOLDER / "node_modules" / "@modelcontextprotocol" / "inspector" / "clients/cli/build/index.js"
"""The client that the program ``mcp-inspector --cli`` starts in a process of its own."""
CALL_ALL = """
import { createRuntime } from "mcporter";
const [configPath, calls] = process.argv.slice(1);
const runtime = await createRuntime({ configPath });
const results = {};
for (const [name, args] of Object.entries(JSON.parse(calls)))
  results[name] = await runtime.callTool("anvil", name, { args });
await runtime.close();
console.log(JSON.stringify(results));
"""
"""mcporter's library, as its program uses it, for several calls in one process."""


def node(*words: str | Path, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run the Node that came along, at home in the cache folder."""
    environment = {**mcp_servers.environment(), "HOME": str(FOLDER), "NO_COLOR": "1"}
    environment["PATH"] = f"{NODE.parent}{os.pathsep}{environment.get('PATH', '')}"
    environment["NODE_COMPILE_CACHE"] = str(FOLDER / "compile-cache")
    return subprocess.run(
        [str(NODE), *map(str, words)],
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


@pytest.fixture(scope="module")
def conformance(server: Process, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Checks]:
    """Revision -> scenario -> its checks. The official suite runs once for each revision, with all its scenarios."""

    @functools.cache
    def run(revision: str) -> Checks:
        folder = tmp_path_factory.mktemp("conformance")
        line = ("--url", server.url, "--spec-version", revision, "--suite", "all", "--output-dir", str(folder))
        done = node(BIN / "conformance", "server", *line)
        found = {}
        for file in folder.glob("server-*/checks.json"):
            scenario = re.sub(r"^server-|-\d{4}-\d\d-\d\dT[\d-]+Z$", "", file.parent.name)
            found[scenario] = json.loads(file.read_text(encoding="utf-8"))
        assert found, done.stdout + done.stderr
        return found

    return run


@pytest.mark.parametrize(("revision", "scenario"), [(day, name) for day, names in SCENARIOS.items() for name in names])
def test_conformance(conformance: Callable[[str], Checks], revision: str, scenario: str) -> None:
    checks = conformance(revision)[scenario]
    statuses = {check["status"] for check in checks}
    assert "SUCCESS" in statuses and statuses.isdisjoint({"FAILURE", "WARNING"}), checks


@pytest.mark.parametrize("scenario", NOT_OFFERED)
def test_conformance_but_for_what_is_not_offered(conformance: Callable[[str], Checks], scenario: str) -> None:
    checks = conformance("2026-07-28")[scenario]
    failed = [check for check in checks if check["status"] == "FAILURE"]
    assert failed and any(check["status"] == "SUCCESS" for check in checks), checks
    assert all(any(name in check["errorMessage"] for name in NOT_OFFERED[scenario]) for check in failed), failed


@pytest.fixture(scope="module")
def stdio(docs: Path) -> list[str]:
    """The command line of a server that a client starts."""
    folder = program_folder(docs.parent / "bin")
    return [str(folder / "anvil"), "serve", "--docs", str(docs), "--index", str(docs.parent / "index.db")]


def printed(*words: str | Path) -> Any:
    """The JSON that a program of Node prints."""
    done = node(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_inspector_lists_and_calls_tools_over_stdio(stdio: list[str]) -> None:
    """It also judges whether the schemas of the tools are portable: with an error, --strict exits with 6."""
    target = [*stdio, "--provider", "none"]
    listed = printed(INSPECTOR_CLI, *target, "--method", "tools/list", "--strict")["tools"]
    assert [tool["name"] for tool in listed] == list(CALLS)
    given = [word for key, value in CALLS["search_docs"].items() for word in ("--tool-arg", f"{key}={value}")]
    result = printed(INSPECTOR_CLI, *target, "--method", "tools/call", "--tool-name", "search_docs", *given)
    assert not result.get("isError"), result
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]


def test_inspector_verifies_the_skills(server: Process) -> None:
    """By the newest revision: the form of each entry, and that each file has the digest and the size that it names."""
    report = printed(
        INSPECTOR_CLI, "--server-url", server.url, "--protocol-era", "modern", "--method", "skills/list", "--verify"
    )
    assert report["outcome"] == "verified" and [file["status"] for file in report["files"]] == ["verified"], report


def test_mcporter_lists_and_calls_tools_over_http(docs: Path, server: Process) -> None:
    """Listed by its program, called by its library."""
    config = docs.parent / "mcporter.json"
    entry = {"url": server.url, "allowHttp": True}
    config.write_text(json.dumps({"mcpServers": {"anvil": entry}, "imports": []}))
    listed = printed(BIN / "mcporter", "--config", config, "list", "anvil", "--schema", "--json")
    assert [tool["name"] for tool in listed["tools"]] == list(CALLS)
    results = printed("--input-type=module", "-e", CALL_ALL, config, json.dumps(CALLS))
    assert results.keys() == CALLS.keys()
    assert all(result["structuredContent"] and not result.get("isError") for result in results.values()), results


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
