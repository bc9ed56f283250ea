"""A build whose embedding provider fails, by the real program and a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.embedding.test_openai import Server, error, good, server  # noqa: F401 - a fixture, and what it gives
from tests.support import in_process, programs


def test_a_build_whose_provider_makes_no_vector_keeps_those_there_are(
    tmp_path: Path,
    server: Server,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("# A\n\nWords.\n", encoding="utf-8")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("ANVIL_EMBEDDING_DIMENSIONS", "3")
    words = ["--docs", str(tmp_path / "docs"), "--provider", "openai"]
    in_process.program("build", *words)
    index = tmp_path / "docs/.anvil/index.db"
    before = index.read_bytes()
    server.script = lambda body, call: error(400, "invalid input", param="input[0]")
    done = programs.program("build", *words, "--force", code=2)
    assert "No vector could be made: " in done.stderr and "The old ones are kept." in done.stderr
    assert index.read_bytes() == before
    server.script = good
    in_process.program("build", *words, "--force")


def test_a_passage_that_the_provider_refuses_each_time_fails_no_build(
    tmp_path: Path,
    server: Server,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("# A\n\nWords.\n", encoding="utf-8")
    (tmp_path / "docs/b.md").write_text("# B\n\nRefused.\n", encoding="utf-8")
    for name, value in (("OPENAI_API_KEY", "sk"), ("OPENAI_BASE_URL", server.url), ("ANVIL_EMBEDDING_DIMENSIONS", "3")):
        monkeypatch.setenv(name, value)
    server.script = lambda body, call: error(400, "no") if "Refused" in str(body["input"]) else good(body, call)
    for _ in range(2):
        told = in_process.program("build", "--docs", str(tmp_path / "docs"), "--provider", "openai").stderr
        assert "found by keyword only: b.md: B" in told and "No vector could be made" not in told


def test_a_server_that_is_down_fails_each_build_that_needs_vectors(
    tmp_path: Path,
    server: Server,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("# A\n\nWords.\n", encoding="utf-8")
    for name, value in (("OPENAI_API_KEY", "sk"), ("OPENAI_BASE_URL", server.url), ("ANVIL_EMBEDDING_DIMENSIONS", "3")):
        monkeypatch.setenv(name, value)
    words = ["build", "--docs", str(tmp_path / "docs"), "--provider", "openai"]
    in_process.program(*words)
    (tmp_path / "docs/b.md").write_text("# B\n\nLate.\n", encoding="utf-8")
    server.script = lambda body, call: error(503, "down")
    for _ in range(2):
        assert "503" in in_process.program(*words, code=2).stderr
    server.script = good
    in_process.program(*words)
