"""A build whose embedding provider fails, by the real program and a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import write
from tests.embedding.test_openai import Server, error, good, server  # noqa: F401 - a fixture, and what it gives
from tests.support import in_process, programs


@pytest.fixture
def words(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> list[str]:  # noqa: F811
    """The words of a build of one page by the server."""
    for name, value in (("OPENAI_API_KEY", "sk"), ("OPENAI_BASE_URL", server.url), ("ANVIL_EMBEDDING_DIMENSIONS", "3")):
        monkeypatch.setenv(name, value)
    docs = write(tmp_path / "docs", {"a.md": "# A\n\nWords.\n"})
    return ["build", "--docs", str(docs), "--provider", "openai"]


def test_a_build_whose_provider_makes_no_vector_keeps_those_there_are(
    tmp_path: Path,
    server: Server,  # noqa: F811
    words: list[str],
) -> None:
    in_process.program(*words)
    index = tmp_path / "docs/.anvil/index.db"
    before = index.read_bytes()
    server.script = lambda body, call: error(400, "invalid input", param="input[0]")
    done = programs.program(*words, "--force", code=2)
    assert "No vector could be made: " in done.stderr and "The old ones are kept." in done.stderr
    assert index.read_bytes() == before
    server.script = good
    in_process.program(*words, "--force")


def test_a_passage_that_the_provider_refuses_each_time_fails_no_build(
    tmp_path: Path,
    server: Server,  # noqa: F811
    words: list[str],
) -> None:
    write(tmp_path / "docs", {"b.md": "# B\n\nRefused.\n"})
    server.script = lambda body, call: error(400, "no") if "Refused" in str(body["input"]) else good(body, call)
    for _ in range(2):
        told = in_process.program(*words).stderr
        assert "found by keyword only: b.md: B" in told and "No vector could be made" not in told


def test_a_server_that_is_down_fails_each_build_that_needs_vectors(
    tmp_path: Path,
    server: Server,  # noqa: F811
    words: list[str],
) -> None:
    in_process.program(*words)
    write(tmp_path / "docs", {"b.md": "# B\n\nLate.\n"})
    server.script = lambda body, call: error(503, "down")
    for _ in range(2):
        assert "503" in in_process.program(*words, code=2).stderr
    server.script = good
    in_process.program(*words)
