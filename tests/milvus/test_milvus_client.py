"""The door to Milvus: bounded in time, quiet, and plain about what is wrong."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from anvil.errors import ConfigError, FetchError, Unreachable
from anvil.milvus import milvus_client
from anvil.milvus.milvus_client import Client, Gone
from anvil.settings import index_url
from anvil.settings.index_url import MILVUS_TOKEN


def client(source: str, folder: Path) -> Client:
    return Client(index_url.milvus(source), folder)


def test_nobody_at_the_port_is_a_sentence_and_soon(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: nobody else gets it
        began = time.monotonic()
        with pytest.raises(Unreachable, match=r"does not respond for milvus://127.0.0.1:\d+/docs"):
            client(f"milvus://127.0.0.1:{taken.getsockname()[1]}/docs", tmp_path).ask("list_collections")
        assert time.monotonic() - began < 15


def test_120_characters_of_an_error_are_shown(tmp_path: Path) -> None:
    error = client("milvus://127.0.0.1:1/docs", tmp_path)._translate(RuntimeError("connection refused " + "x" * 500))
    assert str(error).startswith(
        f"Milvus does not respond for milvus://127.0.0.1:1/docs (connection refused {'x' * 101})."
    )


def test_who_listens_and_says_nothing_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(milvus_client, "CONNECT_TIMEOUT_S", 0.5)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        began = time.monotonic()
        with pytest.raises(Unreachable):
            client(f"milvus://127.0.0.1:{silent.getsockname()[1]}/docs", tmp_path).ask("list_collections")
        assert time.monotonic() - began < 20


def test_what_goes_wrong_is_raised_and_not_also_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = client("milvus+lite:lite.db/docs", tmp_path)
    with pytest.raises(Gone):
        opened.ask("describe_collection", "none")
    monkeypatch.setattr(opened, "_token", "hunter2")
    with pytest.raises(FetchError) as caught:
        opened.ask("query", "hunter2", filter="hunter2 ==")
    assert "hunter2" not in str(caught.value)
    opened.close()
    assert capfd.readouterr() == ("", "") and logging.getLogger("pymilvus").level == logging.CRITICAL


def test_a_file_that_another_process_holds_is_said_to_be(tmp_path: Path) -> None:
    script = "from milvus_lite import MilvusLite; db = MilvusLite('lite.db'); print('open', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == "open\n"
        with pytest.raises(Unreachable, match="Only one process"):
            client("milvus+lite:lite.db/docs", tmp_path).ask("list_collections")
        other.communicate("\n")


def test_what_is_not_installed_is_named_with_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymilvus", None)
    with pytest.raises(ConfigError, match=r"Install it with: .*\[milvus\]"):
        client("milvus://localhost/docs", tmp_path).ask("list_collections")
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "milvus_lite", None)
    with pytest.raises(ConfigError, match="pip install milvus-lite"):
        client("milvus+lite:lite.db/docs", tmp_path).ask("list_collections")
    with pytest.raises(ConfigError, match="no folder"):
        client("milvus+lite:none/lite.db/docs", tmp_path).ask("list_collections")


def test_the_token_comes_from_the_environment_and_goes_to_servers_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MILVUS_TOKEN, "root:secret")
    there = client("milvus+https://db.example.com/docs", tmp_path)
    assert there._token == "root:secret" and "secret" not in there.shown
    assert client("milvus+lite:lite.db/docs", tmp_path)._token == ""
