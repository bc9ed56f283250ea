"""``anvil export``, and the programs that answer from Milvus: real processes, over loopback and over a file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from anvil.cli import program as app
from anvil.milvus.milvus_client import Client
from anvil.settings import index_url
from tests.conftest import PAGES, write
from tests.support import in_process, mcp_servers
from tests.support.milvus import lite_server
from tests.support.programs import printed, program


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with docs and their index, without vectors: they do not matter here."""
    folder = tmp_path_factory.mktemp("milvus") / "work"
    write(folder / "docs", PAGES)
    write(folder, {"anvil.toml": 'docs = "docs"\n[embedding]\nprovider = "none"\n'})
    in_process.program("build", cwd=folder)
    return folder


@pytest.fixture(scope="module")
def cluster(work: Path) -> Iterator[str]:
    """The index in Milvus, over a loopback port."""
    with lite_server(work) as port:
        source = f"milvus://127.0.0.1:{port}/docs"
        done = program("export", "--to", source, cwd=work)
        assert done.stdout.startswith(f"Exported to {source}: 4 pages, 13 chunks, 0 vectors in ")
        yield source


def test_an_export_is_told_once_and_found_done_after(
    work: Path, cluster: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    again = in_process.printed("export", "--to", cluster, cwd=work)
    assert (again["outcome"], again["target"], again["pages"]) == ("unchanged", cluster, 4)
    monkeypatch.chdir(work)
    assert app.run(["export", "--to", cluster, "--quiet"]) == 0 and capsys.readouterr() == ("", "")
    assert app.run(["export", "--to", cluster]) == 0 and "is up to date: 4 pages" in capsys.readouterr().out


def test_every_command_answers_as_from_the_file(
    work: Path, cluster: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(work)
    for line in (
        ["search", "certificates expire"],
        ["search", "--filter", "guides/*", "alert"],
        ["list"],
        ["show", "install.md"],
        ["show", "guides/alerts.md#E-mail"],
        ["grep", "certificate"],
        ["grep", "--regex", "^#+ [A-Z]", "guides"],
        ["grep", "--context", "2", "e-mail", "guides/*.md"],
    ):
        assert app.run(line) == 0
        own = capsys.readouterr().out
        assert app.run([*line, "--index", cluster]) == 0
        assert capsys.readouterr().out == own != ""
    assert in_process.program("check", "--index", cluster, cwd=work).stdout.startswith(cluster)
    status = in_process.printed("status", "--index", cluster, cwd=work)
    assert status["index"]["db_path"] == status["index"]["artifact"]["origin"] == cluster
    assert (
        status["index"]["artifact"]["digest"] == in_process.printed("status", cwd=work)["index"]["artifact"]["digest"]
    )


def test_the_configuration_names_it_too(work: Path, cluster: str) -> None:
    write(work, {"milvus.toml": f'docs = "docs"\nindex = "{cluster}"\n[embedding]\nprovider = "none"\n'})
    found = in_process.printed("search", "--config", "milvus.toml", "certificates expire", cwd=work)
    assert found["freshness"]["checked"] == "working tree"
    assert "not built here" in in_process.complaint("build", "--config", "milvus.toml", cwd=work)
    assert "Name the file" in in_process.complaint("export", "--config", "milvus.toml", "--to", cluster, cwd=work)


def test_a_server_answers_from_milvus_and_from_the_files_that_moved_on(work: Path, cluster: str) -> None:
    with mcp_servers.piped(
        mcp_servers.program("--config", str(work / "anvil.toml"), "--index", cluster), work
    ) as client:
        found = client.ok("search_docs", query="certificates expire")
        assert found["results"][0]["metadata"]["file_path"] == "guides/checks.md"
        assert not {"checked", "refreshed"} & found.get("freshness", {}).keys()  # both are as usual
        alerts = work / "docs/guides/alerts.md"
        alerts.write_text(PAGES["guides/alerts.md"] + "\n## Zebra\n\nA zebra crosses at night.\n", encoding="utf-8")
        try:
            found = client.ok("search_docs", query="zebra")
            assert "A zebra crosses" in found["results"][0]["content"]
            # Absent if the watcher read the page ahead of the question.
            assert found.get("freshness", {}).get("refreshed", ["guides/alerts.md"]) == ["guides/alerts.md"]
            (match,) = client.ok("grep_docs", pattern="zebra crosses")["matches"]
            assert (match["file_path"], match["heading_path"]) == ("guides/alerts.md", "Alerts > Zebra")
            assert client.ok("grep_docs", pattern="dpkg", path="install.md")["total_matches"] == 1
            page = client.ok("get_page", file_path="guides/alerts.md")
            assert "".join(chunk["content"] for chunk in page["chunks"]).endswith("A zebra crosses at night.\n")
            section = client.ok("get_section", file_path="install.md", heading_path="Install > Linux")
            assert "dpkg" in section["content"]
        finally:
            alerts.write_bytes(PAGES["guides/alerts.md"].encode())
        assert len(client.ok("list_pages")["pages"]) == 4
        assert client.ok("get_status")["index"]["db_path"] == cluster
        resources = client.do("list_resources").resources
        assert any("install.md" in str(each.uri) for each in resources)
        assert "Closest: install.md" in client.refused("get_page", file_path="instal.md")


def test_without_a_folder_answers_come_as_they_are(cluster: str, tmp_path: Path) -> None:
    line = mcp_servers.program("--index", cluster, "--provider", "none")
    with mcp_servers.piped(line, tmp_path) as client:
        assert client.ok("search_docs", query="certificates expire")["freshness"]["checked"] is None


def test_a_cluster_that_is_away_is_told_by_each_question(work: Path, tmp_path: Path) -> None:
    with lite_server(tmp_path) as port:
        source = f"milvus://127.0.0.1:{port}/docs"
    with mcp_servers.piped(
        mcp_servers.program("--config", str(work / "anvil.toml"), "--index", source), work
    ) as client:
        assert "does not respond" in client.refused("search_docs", query="certificates")
        with lite_server(tmp_path, port):
            in_process.program("export", "--to", source, cwd=work)
            assert client.ok("search_docs", query="certificates expire")["results"]


def test_a_file_of_milvus_lite_needs_no_server(work: Path, tmp_path: Path) -> None:
    source = "milvus+lite:lite.db/docs"
    index = work / "docs/.anvil/index.db"
    program("export", "--index", index, "--to", source, cwd=tmp_path)
    found = printed("search", "--index", source, "--provider", "none", "certificates expire", cwd=tmp_path)
    assert found["results"][0]["metadata"]["file_path"] == "guides/checks.md"


@pytest.mark.parametrize(
    "source",
    [
        "milvus://",
        "milvus://host",
        "milvus://host/a-b",
        "milvus://user:secret@host/docs",
        "milvus+lite:x/docs",
        "milvus://host:99999/docs",
        "https://host/docs",
        "docs.db",
    ],
)
def test_an_address_that_makes_no_sense_is_said_to_and_holds_no_secret(work: Path, source: str) -> None:
    said = in_process.complaint("export", "--to", source, cwd=work)
    assert "milvus" in said.lower() and "secret" not in said


def test_answering_from_a_file_imports_nothing_of_it(work: Path) -> None:
    script = "import sys; from anvil.cli import program as app; app.run(['search', 'alerts']); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], cwd=work, capture_output=True, text=True, check=True).stdout
    assert not {"pymilvus", "grpc", "anvil.milvus", "anvil.milvus.milvus_index"} & set(loaded.splitlines()[-1].split())


def test_the_collections_are_as_the_reference_says(cluster: str) -> None:
    """docs/reference/milvus.md is held to what is there."""
    client = Client(index_url.milvus(cluster), Path.cwd())
    text = (mcp_servers.ROOT / "docs/reference/milvus.md").read_text(encoding="utf-8")
    generation = client.ask("describe_alias", "docs")["collection_name"].removesuffix("_chunks")
    for kind in ("chunks", "windows", "pages", "parts"):
        part = text.partition(f"## {kind}\n")[2].partition("\n## ")[0]
        for field in client.ask("describe_collection", f"{generation}_{kind}")["fields"]:
            assert f"| `{field['name']}` |" in part, (kind, field["name"])
    client.close()
