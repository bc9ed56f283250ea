"""The library surface by real clients: the SDK's over stdio and HTTP, curl for uploads, the program for folders."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import anvil
from tests.support import documents, mcp_servers
from tests.support.programs import complaint, environment, printed, program

TEN = [
    "ingest_file",
    "ingest_content",
    "ingest_url",
    "ingest_folder",
    "search",
    "list_documents",
    "list_libraries",
    "delete_document",
    "update_document",
    "get_document",
    "server_info",
]
READING = {"search", "list_documents", "list_libraries", "get_document", "server_info"}


@contextmanager
def over_stdio(folder: Path, *flags: str) -> Iterator[mcp_servers.Speaker]:
    given = ("--surface", "library", "--library-index", str(folder / "library.db"), "--provider", "none", *flags)
    (folder / "docs").mkdir(exist_ok=True)
    with mcp_servers.over_stdio(folder / "docs", None, *given) as speaker:
        yield speaker


@contextmanager
def over_http(folder: Path, *flags: str, **variables: str) -> Iterator[mcp_servers.Process]:
    given = ("--surface", "library", "--library-index", str(folder / "library.db"), "--provider", "none", *flags)
    (folder / "docs").mkdir(exist_ok=True)
    with mcp_servers.over_http(folder / "docs", None, *given, **variables) as process:
        yield process


def error(speaker: mcp_servers.Speaker, tool: str, **arguments: Any) -> str:
    """The message of an error that came back as a value."""
    result = speaker.call(tool, **arguments)
    assert result.is_error and json.loads(result.content[0].text) == result.structured_content
    assert result.structured_content.keys() == {"status", "error"}
    assert result.structured_content["status"] == "error"
    message: str = result.structured_content["error"]
    assert "Traceback" not in message and "\n" not in message
    return message


def test_all_tools_over_stdio(tmp_path: Path) -> None:
    path = documents.docx(tmp_path / "plan.docx", "Plan", "The keeper sleeps at noon.")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.md").write_text("# Alpha\n\nlamp oil\n")
    (tmp_path / "more" / "bad.pdf").write_text("no pdf")
    with over_stdio(tmp_path) as speaker:
        tools = {tool.name: tool for tool in speaker.do("list_tools").tools}
        assert list(tools) == TEN
        assert {name for name, tool in tools.items() if tool.annotations.read_only_hint} == READING
        assert all(tools[name].annotations.read_only_hint is False for name in set(TEN) - READING)
        assert tools["ingest_url"].annotations.open_world_hint is True

        taken = speaker.ok("ingest_file", path=str(path), library="papers", metadata={"year": 2026})
        assert taken == {
            "status": "indexed",
            "doc_id": taken["doc_id"],
            "source": str(path),
            "library": "papers",
            "chunk_count": 1,
            "notes": [],
        }
        assert speaker.ok("ingest_file", path=str(path), library="papers")["status"] == "skipped"
        assert speaker.ok("ingest_content", content="# Tides\n\nspring tide", source="t.md")["library"] == "default"
        folder = speaker.ok("ingest_folder", folder=str(tmp_path / "more"), library="more")
        assert {key: folder[key] for key in ("total_files", "indexed", "replaced", "skipped", "failed")} == {
            "total_files": 2,
            "indexed": 1,
            "replaced": 0,
            "skipped": 0,
            "failed": 1,
        }
        assert folder["errors"][0]["file"].endswith("bad.pdf") and "PDF" in folder["errors"][0]["error"]

        (found,) = speaker.ok("search", query="keeper", filter={"metadata.year": 2026})["results"]
        assert {key: found[key] for key in ("doc_id", "title", "library", "file_type", "page", "chunk_index")} == {
            "doc_id": taken["doc_id"],
            "title": "Plan",
            "library": "papers",
            "file_type": "docx",
            "page": 0,
            "chunk_index": 0,
        }
        assert found["metadata"] == {"year": 2026} and "sleeps at noon" in found["content"]
        listed = speaker.ok("list_documents", limit=2)
        assert (listed["count"], listed["total"]) == (2, 3)
        assert [each["library"] for each in speaker.ok("list_libraries")["libraries"]] == ["default", "more", "papers"]
        whole = speaker.ok("get_document", doc_id=taken["doc_id"])
        assert whole["content"] == "# Plan\n\nThe keeper sleeps at noon.\n\n"
        info = speaker.ok("server_info", check_path="/nowhere/a.pdf")
        assert info["transport"] == "stdio" and info["index_path"] == str(tmp_path / "library.db")
        assert info["path_check"].keys() == {"path", "readable", "error"} and info["path_check"]["readable"] is False
        assert info["path_check"]["path"] == os.path.abspath("/nowhere/a.pdf")
        assert "path_check" not in speaker.ok("server_info")
        check = speaker.ok("server_info", check_path=str(path))["path_check"]
        assert check == {"path": str(path), "readable": True, "size_bytes": path.stat().st_size}
        updated = speaker.ok("update_document", doc_id=taken["doc_id"], metadata={"year": 2027, "ok": True})
        assert updated == {
            "status": "updated",
            "doc_id": taken["doc_id"],
            "source": str(path),
            "library": "papers",
            "metadata": {"year": 2027, "ok": True},
        }
        assert speaker.ok("search", query="keeper", filter={"metadata.year": {"gt": 2026}})["results"]
        assert speaker.ok("delete_document", doc_id=taken["doc_id"]) == {
            "status": "deleted",
            "doc_id": taken["doc_id"],
            "deleted_chunks": 1,
        }


def test_errors_are_values(tmp_path: Path) -> None:
    with over_stdio(tmp_path) as speaker:
        assert "There is no file" in error(speaker, "ingest_file", path="/nowhere.md")
        assert "There is no file" in error(speaker, "ingest_file", path="/nowhere")
        assert "is a folder. Use ingest_folder" in error(speaker, "ingest_file", path=str(tmp_path))
        assert "path parameter is required" in error(speaker, "ingest_file")
        assert "must be an object" in error(speaker, "ingest_file", path="/a.md", metadata="text")
        assert "max_concurrency must be 1" in error(speaker, "ingest_folder", folder="/", max_concurrency=0)
        assert "private network" in error(speaker, "ingest_url", url="http://169.254.169.254/latest/meta-data")
        assert "not an http or https URL" in error(speaker, "ingest_url", url="file:///etc/passwd")
        assert "query parameter is required" in error(speaker, "search", query=" ")
        for tool, name, more in [
            ("ingest_folder", "folder", {}),
            ("ingest_file", "path", {}),
            ("ingest_url", "url", {}),
            ("ingest_content", "content", {"source": "a.md"}),
            ("ingest_content", "source", {"content": "text"}),
        ]:
            for blank in ("", " \n"):
                assert f"{name} is empty" in error(speaker, tool, **{name: blank}, **more)
        assert "has 5,000 characters" in error(speaker, "ingest_folder", folder="x" * 5000)
        assert "cannot be read" in error(speaker, "ingest_folder", folder="x" * 1000)
        assert "Unknown operator" in error(speaker, "search", query="x", filter={"page": {"near": 1}})
        assert "Use file_type, page" in error(speaker, "search", query="x", filter={"colour": 1})
        for tool in ("get_document", "delete_document"):
            assert "No document has the id" in error(speaker, tool, doc_id="none")
        assert speaker.ok("list_documents", limit=5000)["documents"] == []


def test_what_the_guide_says_is_different_from_mcpvectordb(tmp_path: Path) -> None:
    with over_stdio(tmp_path) as speaker:
        for name in ("c", "a", "b"):
            speaker.ok("ingest_content", content=f"The lamp of {name} burns.", source=f"{name}.md")
        assert len(speaker.ok("search", query="lamp", top_k=0)["results"]) == 1
        assert len(speaker.ok("search", query="lamp", top_k=101)["results"]) == 3
        assert [each["source"] for each in speaker.ok("list_documents", limit=0)["documents"]] == ["a.md"]
        listed = speaker.ok("list_documents", limit=1001, offset=-1)["documents"]
        assert [each["source"] for each in listed] == ["a.md", "b.md", "c.md"]
        again = speaker.ok("ingest_content", content="The lamp of a burns.", source="a.md")
        assert (again["status"], again["chunk_count"]) == ("skipped", 1)
        assert "No document has the id 'gone'" in error(speaker, "delete_document", doc_id="gone")
        info = speaker.ok("server_info")
        assert "index_path" in info and "model_path" in info and "lancedb_uri" not in info
    complaint("ingest", tmp_path / "none", "--index", tmp_path / "library.db", "--provider", "none", code=2)


def test_a_library_that_cannot_be_used_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(5):
        (tmp_path / "in" / f"{number}.md").write_text("text")
    (tmp_path / "library.db").write_text("no database" * 100)
    with over_stdio(tmp_path) as speaker:
        assert "not a library" in error(speaker, "ingest_folder", folder=str(tmp_path / "in"))
    told = complaint("ingest", tmp_path / "in", "--index", tmp_path / "library.db", "--provider", "none")
    assert told.count("not a library") == 1 and "in/" not in told


def test_http_with_a_token(tmp_path: Path) -> None:
    if not shutil.which("curl"):
        pytest.skip("needs curl")
    path = documents.pdf(tmp_path / "tides.pdf", ["High water.", "Low water."])
    with over_http(tmp_path, "--token", "letmein") as process:
        assert curl(process, path, token=None)[0] == 401
        assert curl(process, path, "-H", "Host: evil.example")[0] == 403
        status, taken = curl(process, path, "-F", "library=papers", "-F", 'metadata={"year": 2026}')
        assert status == 200 and taken == {
            "status": "indexed",
            "doc_id": taken["doc_id"],
            "source": "tides.pdf",
            "library": "papers",
            "chunk_count": 2,
            "notes": [],
        }
        assert curl(process, path, "-F", "library=papers")[1]["status"] == "skipped"
        documents.pdf(path, ["High water.", "Low water at six."])
        assert curl(process, path, "-F", "library=papers")[1]["status"] == "replaced"
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        client = httpx2.AsyncClient(headers={"Authorization": "Bearer letmein"})
        with mcp_servers.connected(streamable_http_client(process.url, http_client=client)) as speaker:
            (found,) = speaker.ok("search", query="low", filter={"metadata.year": 2026, "page": 2})["results"]
            assert found["source"] == "tides.pdf"
            assert "POST /upload" in speaker.ok("server_info")["note"]
        health = httpx2.get(f"{process.base}/health").json()
        assert (health["status"], health["documents"], health["chunks"]) == ("ok", 1, 2)


def curl(
    process: mcp_servers.Process, file: Path | None, *flags: str, token: str | None = "letmein"
) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [
            "curl",
            "-s",
            "-w",
            "\n%{http_code}",
            *(["-H", f"Authorization: Bearer {token}"] if token else []),
            *(["-F", f"file=@{file}"] if file else []),
            *flags,
            f"{process.base}/upload",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    body, _, status = done.stdout.rpartition("\n")
    found: dict[str, Any] = json.loads(body)
    return int(status), found


def test_each_status_of_an_upload(tmp_path: Path) -> None:
    if not shutil.which("curl"):
        pytest.skip("needs curl")
    (tmp_path / "a.md").write_text("# A\n\ntext\n")
    (tmp_path / "a.exe").write_text("MZ")
    (tmp_path / "bad.docx").write_bytes(b"PK broken")
    (tmp_path / "big.md").write_text("x" * 3_000_000)
    with over_http(tmp_path, ANVIL_LIBRARY_MAX_UPLOAD_BYTES="2000000") as process:
        for flags, told in [
            (("-F", "library=x"), "has no file"),
            (("-F", "file=text"), "has no file"),
            (("--json", '{"file": 1}'), "has no file"),
        ]:
            status, answer = curl(process, None, *flags)
            assert status == 400 and told in answer["error"] and answer["status"] == "error"
        for text in (b"", b" \n\t" * 50_000):
            (tmp_path / "blank.md").write_bytes(text)
            status, answer = curl(process, tmp_path / "blank.md")
            assert status == 400 and "The file is empty" in answer["error"]
        status, answer = curl(process, tmp_path / "a.md", "-F", "library=")
        assert status == 400 and "library must be a name" in answer["error"]
        for metadata in ("[1]", "{", '"text"', json.dumps({"a": "x" * 20_000})):
            status, answer = curl(process, tmp_path / "a.md", "-F", f"metadata={metadata}")
            assert status == 400 and "metadata" in answer["error"], metadata
        for header in ([], ["-H", "Transfer-Encoding: chunked"]):  # its length known, and not
            status, answer = curl(process, tmp_path / "big.md", *header)
            assert status == 413 and "larger than 2,000,000 bytes" in answer["error"]
        announced = [
            "-X",
            "POST",
            "-H",
            "Content-Type: multipart/form-data; boundary=x",
            "-H",
            "Content-Length: 3000000",
        ]
        status, answer = curl(process, None, *announced)  # refused before its body, which never comes
        assert status == 413 and "larger than 2,000,000 bytes" in answer["error"]
        status, answer = curl(process, tmp_path / "a.exe")
        assert status == 422 and "are not read" in answer["error"]
        status, answer = curl(process, tmp_path / "bad.docx")
        assert status == 500 and "cannot be read as DOCX" in answer["error"]
        status, answer = curl(process, tmp_path / "a.md", "-F", "filename=../../etc/passwd")
        assert status == 200 and answer["source"] == "a.md"
        for name in ("a\x1b[31m.md", "a\u202ecba.md"):
            status, answer = curl(process, None, "-F", f"file=@{tmp_path / 'a.md'};filename={name}")
            assert status == 400 and answer["error"].startswith("source "), name
        assert process.stop() == 0 and "Traceback" not in process.log()


def test_docs_and_library_in_one_server(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Lighthouse\n\nIt stands on a rock.\n")
    flags = ("--surface", "docs,library", "--library-index", str(tmp_path / "l.db"), "--provider", "none")
    with mcp_servers.over_stdio(tmp_path / "docs", tmp_path / "i.db", *flags) as speaker:
        speaker.ok("ingest_content", content="# Other\n\nA rock in the sea.", source="o.md")
        assert [each["source"] for each in speaker.ok("search", query="rock")["results"]] == ["o.md"]
        (found,) = speaker.ok("search_docs", query="rock")["results"]
        assert found["metadata"]["file_path"] == "index.md"


# --- anvil ingest ------------------------------------------------------------------------------------------------


def test_ingest_and_its_exit_codes(tmp_path: Path) -> None:
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "in" / "a.md").write_text("# A\n\ntext\n")
    (tmp_path / "in" / "sub" / "b.md").write_text("# B\n\ntext\n")
    given = ("--index", tmp_path / "l.db", "--provider", "none")
    done = program("ingest", tmp_path / "in", *given, "--library", "mine", "--no-recursive", "--max-concurrency", "2")
    assert done.stdout.splitlines() == [
        f"1 document of {tmp_path / 'in'} for library 'mine': 1 new.",
        f"The library is {tmp_path / 'l.db'}.",
    ]
    assert done.stderr == ""
    alone = program("ingest", tmp_path / "in" / "a.md", *given, "--library", "mine").stdout
    assert alone.startswith(f"{tmp_path / 'in' / 'a.md'} for library 'mine': skipped.\n")
    report = printed("ingest", tmp_path / "in", *given, "--library", "mine")
    assert (report["total_files"], report["indexed"], report["skipped"]) == (2, 1, 1)
    (tmp_path / "in" / "bad.md").write_bytes(b"a\0b")
    done = program("ingest", tmp_path / "in", *given, "--library", "mine", code=1)
    assert "2 unchanged, 1 failed" in done.stdout and "NUL byte" in done.stderr and "bad.md" in done.stderr
    (tmp_path / "empty").mkdir()
    for name in ("old.DOC", "older.doc", "run.py", "LICENSE", ".hidden.rtf"):
        (tmp_path / "empty" / name).write_text("x")
    done = program("ingest", tmp_path / "empty", *given)
    assert "No documents found" in done.stdout
    left_out = "anvil: Left out, because files of their type are not read: 2 .doc, 1 .py."
    assert done.stderr == f"{left_out} Of the files that were left out, save .doc as .docx, and add those.\n"
    (tmp_path / "empty" / "gone.md").symlink_to(tmp_path / "nowhere.md")
    assert "There is no file" in complaint("ingest", tmp_path / "empty" / "gone.md", *given)
    private = complaint("ingest", "http://127.0.0.1:9/page", *given)
    assert private.endswith("which is not allowed. Set ANVIL_LIBRARY_ALLOW_PRIVATE_URLS=true to allow that.")
    assert "There is no folder" in complaint("ingest", tmp_path / "no", *given)
    assert "folder is empty" in complaint("ingest", "", *given) and "path" not in complaint("ingest", " ", *given)
    for wrong in (("--max-concurrency", "0"), ("--max-concurrency", "x"), ("--library", " "), ("--unknown",)):
        assert program("ingest", tmp_path / "in", *given, *wrong, code=2).stdout == ""
    assert "Name the folder" in program("ingest", code=2).stderr
    with anvil.open_library(tmp_path / "l.db", "none") as library:
        assert [each.document_count for each in library.list_libraries().libraries] == [2]


@pytest.mark.skipif(os.name == "nt", reason="signals are different there")
def test_ctrl_c_leaves_what_is_finished(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(30):
        (tmp_path / "in" / f"a{number:02}.md").write_text(f"# A{number}\n\ntext\n")
    documents.pdf(tmp_path / "in" / "z.pdf", [f"page {n} " * 60 for n in range(600)])
    given = ["--index", str(tmp_path / "l.db"), "--provider", "none"]
    process = subprocess.Popen(
        [sys.executable, "-m", "anvil", "ingest", str(tmp_path / "in"), *given],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with anvil.open_library(tmp_path / "l.db", "none") as library:
        end = time.monotonic() + 60
        while library.list_documents().total < 30 and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert process.returncode == 130 and out == "" and "interrupted" in err and "Traceback" not in err
        assert library.list_documents().total == 30
        (tmp_path / "in" / "z.pdf").unlink()
        assert library.ingest_folder(str(tmp_path / "in")).skipped == 30
