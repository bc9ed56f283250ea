"""The whole story: built by the action where the docs are, uploaded, pulled into a clone that has moved on, served."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from mcp import StdioServerParameters, stdio_client

from tests.conftest import PAGES, write
from tests.support.action_runner import OFFLINE, STANDS, Job, upload
from tests.support.commits import program_folder
from tests.support.index_server import GitHub, packed, serving
from tests.support.mcp_servers import connected, environment
from tests.support.programs import program
from tests.support.repositories import commit, isolated, run

__all__ = ["isolated"]
ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.skipif(os.name == "nt", reason="the action's steps are run by a bash with POSIX paths")


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHub]:
    """GitHub's API on loopback, and the host that its signed URLs lead to."""
    with serving() as api, serving() as storage:
        monkeypatch.setenv("GITHUB_API_URL", api.url)
        monkeypatch.setenv("GITHUB_TOKEN", "ghp_secret")
        yield GitHub(api, storage)


def build_in_ci(checkout: Path, services: Path, github: GitHub) -> dict[str, str]:
    """A run of the action at the checkout's HEAD; what it uploads can be had from GitHub. Its outputs."""

    def to_github(job: Job, given: Mapping[str, str]) -> Mapping[str, str]:
        told = upload(job, given)
        files = {file.name: file.read_bytes() for file in (job.artifacts / given["name"]).iterdir()}
        github.artifact(run(checkout, "rev-parse", "HEAD"), packed(files), name=given["name"])
        return told

    temp, caches, artifacts = (services / name for name in ("temp", "caches", "artifacts"))
    for folder in (temp, caches, artifacts):
        folder.mkdir(parents=True)
    stands = {**STANDS, "actions/upload-artifact": to_github}
    installed = program_folder(services / "installed/bin").parent
    job = Job(checkout, temp, caches, artifacts, environment=OFFLINE, stands=stands, installed=installed)
    done = job.use(ROOT, docs="docs", artifact_name="docs-index")
    assert done.succeeded, done.log
    return done.outputs


def test_what_ci_built_at_one_commit_is_served_with_the_text_of_another(tmp_path: Path, github: GitHub) -> None:
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    write(origin / "docs", PAGES)
    run(origin, "init", "-q", "-b", "main")
    built = commit(origin, "docs", at=1_700_000_000)
    outputs = build_in_ci(origin, tmp_path / "services", github)
    assert outputs["changed"] == "true" and int(outputs["embedded"]) > 0

    edits = {
        "guides/alerts.md": PAGES["guides/alerts.md"].replace("fails three times", "fails seven times"),
        "index.md": PAGES["index.md"].replace("every minute", "every fortnight"),
    }
    for number, (path, text) in enumerate(edits.items(), 1):
        write(origin / "docs", {path: text})
        commit(origin, f"edit {number}", at=1_700_000_000 + number)
    run(tmp_path, "clone", "-q", str(origin), str(clone))

    pulled = program("pull", "github:owner/repo", "artifact:docs-index", cwd=clone)
    assert f"Built from commit {built[:12]}, 2 commits before HEAD." in pulled.stdout
    assert "2 pages differ from the working tree" in pulled.stdout
    assert "ghp_secret" not in pulled.stdout + pulled.stderr
    artifact = (tmp_path / "services/artifacts/docs-index/index.db").read_bytes()
    index = clone / "docs/.anvil/index.db"
    assert index.read_bytes() == artifact

    variables = {"GITHUB_API_URL": github.api.url, "GITHUB_TOKEN": "ghp_secret", "HOME": os.environ["HOME"]}
    for where in ([], ["--index", "github:owner/repo#artifact:docs-index"]):  # what was pulled; the source itself
        line = ["-W", "error::ResourceWarning", "-m", "anvil", "serve", *where]
        parameters = StdioServerParameters(command=sys.executable, args=line, env=environment(**variables), cwd=clone)
        with open(os.devnull, "w") as nothing, connected(stdio_client(parameters, errlog=nothing)) as speaker:
            speaker.wait_for_index()
            found = speaker.ok("search_docs", query="after how many failures is an alert sent?")
            assert found["results"][0]["metadata"]["file_path"] == "guides/alerts.md"
            assert "fails seven times" in found["results"][0]["content"]
            found = speaker.ok("search_docs", query="how often is each server asked?")
            assert any("every fortnight" in each["content"] for each in found["results"])
            assert not any("every minute, from" in each["content"] for each in found["results"])
            assert found["freshness"]["commit"] == built and "checked" not in found["freshness"]
            status = speaker.ok("get_status")
            told = status["index"]["artifact"]
            assert (told["commit"], told["distance"]) == (built, 2)
            assert "2 pages are newer than in this index, and refreshed: guides/alerts.md, index.md." in told["note"]
            assert status["git"]["head_commit"] == run(clone, "rev-parse", "--short", "HEAD")
            assert status["index"]["pending_vectors"] == 0
    assert index.read_bytes() == artifact, "serving never writes what was pulled"
    assert run(clone, "status", "--porcelain") == ""
