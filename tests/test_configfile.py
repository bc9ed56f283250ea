"""Where the configuration is found, and where its relative paths start."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from anvil.config import Config, ContextOptions
from anvil.configfile import load_config, load_context
from anvil.errors import ConfigError


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository's root that is also the working folder."""
    work = tmp_path / "repository"
    (work / ".git").mkdir(parents=True)
    monkeypatch.chdir(work)
    return work


def refusal(path: Path | None = None) -> str:
    with pytest.raises(ConfigError) as error:
        load_config(path)
    return str(error.value)


def test_without_a_file_the_defaults_start_from_the_working_folder(work: Path) -> None:
    assert load_config() == (Config(), work)


def test_the_nearest_file_counts(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "anvil.toml").write_text('docs = "far"\n')
    deep = work / "a" / "b"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert load_config() == (Config(docs="far"), work)
    (work / "a" / "anvil.toml").write_text('docs = "near"\n')
    assert load_config() == (Config(docs="near"), work / "a")


def test_above_the_repository_nothing_is_read(work: Path) -> None:
    (work.parent / "anvil.toml").write_text('docs = "not ours"\n')
    assert load_config() == (Config(), work)


def test_a_table_in_pyproject_does_as_well(work: Path) -> None:
    (work / "pyproject.toml").write_text('[tool.anvil]\ndocs = "d"\n[tool.anvil.chunking]\nmaxChunkSize = 900\n')
    config, base = load_config()
    assert (config.docs, config.chunking.max_chunk_size, base) == ("d", 900, work)
    assert load_config(work / "pyproject.toml")[0] == config


def test_a_pyproject_without_our_table_is_passed_over(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "anvil.toml").write_text('docs = "outer"\n')
    inner = work / "inner"
    inner.mkdir()
    (inner / "pyproject.toml").write_text('[project]\nname = "x"\n[tool.ruff]\nline-length = 99\n')
    monkeypatch.chdir(inner)
    assert load_config()[0].docs == "outer"


def test_anvil_toml_goes_before_pyproject(work: Path) -> None:
    (work / "pyproject.toml").write_text('[tool.anvil]\ndocs = "project"\n')
    (work / "anvil.toml").write_text('docs = "own"\n')
    assert load_config()[0].docs == "own"


def test_paths_start_from_the_file_or_from_where_they_are_said(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "elsewhere" / "my.toml"
    file.parent.mkdir()
    file.write_text('docs = "guide"\nindex = "out/i.db"\n')
    config, base = load_config(file)
    assert base == file.parent and (config.docs, config.index) == ("guide", "out/i.db")
    config, base = load_config(file, {"docs": "here"}, {})
    assert base / config.docs == work / "here" and base / str(config.index) == file.parent / "out/i.db"
    monkeypatch.setenv("ANVIL_INDEX", "env.db")
    config, base = load_config(file)
    assert base / str(config.index) == work / "env.db" and base / config.docs == file.parent / "guide"


def test_layers_meet_here(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "anvil.toml").write_text('[embedding]\nprovider = "openai"\nmodel = "m"\n[search]\nthreshold = 0.3\n')
    monkeypatch.setenv("ANVIL_EMBEDDING_PROVIDER", "local")
    assert load_config()[0].embedding.provider == "local"
    config, _ = load_config(None, {"embedding.provider": "none"})
    assert (config.embedding.provider, config.embedding.model, config.search.threshold) == ("none", "m", 0.3)


def test_a_file_that_is_not_there_names_the_way_out(work: Path) -> None:
    assert refusal(work / "no.toml") == (
        f"There is no configuration file at {work / 'no.toml'}. Write one with 'anvil init'."
    )


def test_an_unknown_key_names_the_file(work: Path) -> None:
    (work / "anvil.toml").write_text("[chunking]\nmax_chunk_sice = 3\n")
    message = refusal()
    assert "'chunking.max_chunk_sice'" in message and str(work / "anvil.toml") in message
    assert "Did you mean chunking.max_chunk_size?" in message


@pytest.mark.parametrize(
    "content",
    [b"docs = ", b"[[[", b"docs = 'a'\ndocs = 'b'\n", b"\xff\xfe", b'docs = "\xff"', b"\0"],
    ids=["cut off", "brackets", "twice", "UTF-16", "Latin-1", "NUL"],
)
def test_a_broken_file_is_named(work: Path, content: bytes) -> None:
    (work / "anvil.toml").write_bytes(content)
    message = refusal()
    assert message.startswith(f"{work / 'anvil.toml'} cannot be read: ") and "--config" in message


def test_a_folder_in_place_of_a_file_is_an_error(work: Path) -> None:
    assert "cannot be read" in refusal(work)


def test_a_byte_order_mark_is_passed_over(work: Path) -> None:
    (work / "anvil.toml").write_bytes(b'\xef\xbb\xbfdocs = "d"\n')
    assert load_config()[0].docs == "d"


@pytest.mark.parametrize("content", ["tool = 3\n", "[tool]\nanvil = 'x'\n", "[[tool]]\nanvil = 1\n"])
def test_a_pyproject_of_the_wrong_shape_is_no_crash(work: Path, content: str) -> None:
    (work / "pyproject.toml").write_text(content)
    if "anvil" in content and "[[" not in content:
        assert "tool.anvil" in refusal() and "table" in refusal()
    else:
        assert load_config() == (Config(), work)


def test_a_secret_in_a_broken_file_is_not_printed(work: Path) -> None:
    (work / "anvil.toml").write_text('[embedding]\napi_key = "sk-very-secret" oops\n')
    assert "sk-very-secret" not in refusal()
    (work / "anvil.toml").write_text('[embedding]\napi_key = ["sk-very-secret"]\n')
    assert "sk-very-secret" not in refusal()


# --- the context of a repository -------------------------------------------------------------------------------


def test_mcp_config_json_as_it_stands_in_many_repositories(work: Path) -> None:
    (work / "mcp.config.json").write_text(
        """{"$schema": "x", "directories": ["specs"], "chunkSize": 800, "chunkOverlap": 100, "port": 3000,
        "embeddings": {"provider": "openai", "apiKey": "sk-secret"}, "refreshIntervalSeconds": 60,
        "maxFileSizeBytes": 5000, "indexDir": ".cache/context"}"""
    )
    config, root, notes = load_context()
    found = config.context
    assert root == work and notes == ("mcp.config.json: not used here: port, embeddings.apiKey.",)
    assert (found.directories, found.index_dir, found.embeddings.provider) == (("specs",), ".cache/context", "openai")
    assert (found.refresh_interval_seconds, found.max_file_size_bytes) == (60, 5000)
    assert found.fixed is not None and (found.fixed.size, found.fixed.overlap) == (800, 100)


def test_our_own_configuration_goes_before_it(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "mcp.config.json").write_text('{"chunkSize": 800, "directories": ["specs"]}')
    (work / "anvil.toml").write_text('[context]\nchunkSize = 1200\nindexDir = "out"\n')
    monkeypatch.setenv("ANVIL_CONTEXT_INDEX_DIR", "elsewhere")
    found = load_context(flags={"context.embeddings.provider": "local"})[0].context
    assert (found.chunk_size, found.directories, found.index_dir) == (1200, ("specs",), "elsewhere")
    assert found.embeddings.provider == "local"


def test_nothing_said_gives_the_defaults_and_chunks_by_section(work: Path) -> None:
    config, root, notes = load_context()
    assert (config, root, notes) == (Config(), work, ()) and config.context.fixed is None


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
        ("{", "cannot be read"), ("[]", "a JSON object"), ('{"chunkSize": "800"}', "mcp.config.json must be a whole"),
        ('{"chunkSize": 10}', "200 to 100000"), ('{"chunkOverlap": 500}', "half a chunk"),
        ('{"embeddings": "none"}', "must be a table"), ('{"directories": "specs"}', "list of strings"),
        ('{"refreshIntervalSeconds": 0}', "at least 1"), ('{"maxFileSizeBytes": 0}', "at least 1"),
        ('{"indexDir": "../out"}', "inside the repository"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_named(work: Path, text: str, told: str) -> None:
    (work / "mcp.config.json").write_text(text)
    with pytest.raises(ConfigError, match=told):
        load_context()


def test_one_size_alone_is_enough() -> None:
    for options, wanted in (
        (ContextOptions(chunk_size=300), (300, 100)), (ContextOptions(chunk_overlap=50), (800, 50)),
        (ContextOptions(chunk_size=1000, chunk_overlap=0), (1000, 0)),
    ):  # fmt: skip
        assert options.fixed is not None and (options.fixed.size, options.fixed.overlap) == wanted


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_links_of_folders_are_kept_and_those_of_files_are_followed(work: Path, tmp_path: Path) -> None:
    (tmp_path / "rev1").mkdir()
    (tmp_path / "rev1/anvil.toml").write_text('docs = "docs"\n')
    current = tmp_path / "current"
    current.symlink_to("rev1")
    assert load_config(current / "anvil.toml")[1] == current  # it may lead to another revision while we run
    assert load_config(Path("../current/anvil.toml"))[1] == current
    (work / "anvil.toml").symlink_to("../current/anvil.toml")
    assert load_config()[1] == current
    (work / "deep/er").mkdir(parents=True)
    (tmp_path / "short").symlink_to(work / "deep/er")
    (work / "deep/anvil.toml").write_text("")
    assert load_config(tmp_path / "short/../anvil.toml")[1].samefile(work / "deep")
