"""The configuration of a repository's context: ``mcp.config.json``, and Anvil's own configuration over it."""

from __future__ import annotations

from pathlib import Path

import pytest

from anvil.context.settings import DIRECTORIES, ContextOptions, load_context
from anvil.errors import ConfigError
from anvil.settings.schema import Config


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository's root that is also the working folder."""
    work = tmp_path / "repository"
    (work / ".git").mkdir(parents=True)
    monkeypatch.chdir(work)
    return work


def test_mcp_config_json_as_it_stands_in_many_repositories(work: Path) -> None:
    (work / "mcp.config.json").write_text(
        """{"$schema": "x", "directories": ["specs"], "chunkSize": 800, "chunkOverlap": 100, "port": 3000,
        "embeddings": {"provider": "openai", "apiKey": "sk-secret"}, "refreshIntervalSeconds": 60,
        "maxFileSizeBytes": 5000, "indexDir": ".cache/context"}"""
    )
    config, root, notes = load_context()
    found = config.table(ContextOptions)
    assert root == work and notes == ("mcp.config.json: not used here: port, embeddings.apiKey.",)
    assert (found.directories, found.index_dir, found.embeddings.provider) == (("specs",), ".cache/context", "openai")
    assert (found.refresh_interval_seconds, found.max_file_size_bytes) == (60, 5000)
    assert found.fixed is not None and (found.fixed.size, found.fixed.overlap) == (800, 100)


def test_our_own_configuration_goes_before_it(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "mcp.config.json").write_text('{"chunkSize": 800, "directories": ["specs"]}')
    (work / "anvil.toml").write_text('[context]\nchunkSize = 1200\nindexDir = "out"\n')
    monkeypatch.setenv("ANVIL_CONTEXT_INDEX_DIR", "elsewhere")
    found = load_context(flags={"context.embeddings.provider": "local"})[0].table(ContextOptions)
    assert (found.chunk_size, found.directories, found.index_dir) == (1200, ("specs",), "elsewhere")
    assert found.embeddings.provider == "local"


def test_the_guide_names_the_directories_of_each_tool() -> None:
    rows = (Path(__file__).parents[2] / "docs/guides/context.md").read_text(encoding="utf-8").splitlines()
    for tool, directories in list(DIRECTORIES.items())[1:]:  # without those that are of no tool
        (row,) = (row for row in rows if row.startswith((f"| {tool} |", f"| [{tool}]")))
        assert all(name.rpartition("/")[2] in row for name in directories), tool


def test_nothing_said_gives_the_defaults_and_chunks_by_section(work: Path) -> None:
    config, root, notes = load_context()
    assert (config, root, notes) == (Config(), work, ()) and config.table(ContextOptions).fixed is None


def test_the_repository_is_the_nearest_that_looks_like_one(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = work / "a" / "b"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert load_context()[1] == work
    (work / "a" / "mcp.config.json").write_text("{}")
    assert load_context()[1] == work / "a"
    assert load_context(deep)[1] == deep
    with pytest.raises(ConfigError, match="--root"):
        load_context(work / "none")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "cannot be read"),
        ("[]", "a JSON object"),
        ('{"chunkSize": "800"}', "mcp.config.json must be a whole"),
        ('{"chunkSize": 10}', "200 to 100000"),
        ('{"chunkOverlap": 500}', "half a chunk"),
        ('{"embeddings": "none"}', "must be a table"),
        ('{"directories": "specs"}', "list of strings"),
        ('{"refreshIntervalSeconds": 0}', "from 1 to"),
        ('{"maxFileSizeBytes": 0}', "from 1 to"),
        ('{"indexDir": "../out"}', "inside the repository"),
    ],
)
def test_what_makes_no_sense_is_named(work: Path, text: str, told: str) -> None:
    (work / "mcp.config.json").write_text(text)
    with pytest.raises(ConfigError, match=told):
        load_context()


def test_one_size_alone_is_enough() -> None:
    for options, wanted in (
        (ContextOptions(chunk_size=300), (300, 100)),
        (ContextOptions(chunk_overlap=50), (800, 50)),
        (ContextOptions(chunk_size=1000, chunk_overlap=0), (1000, 0)),
    ):
        assert options.fixed is not None and (options.fixed.size, options.fixed.overlap) == wanted
