"""Where the configuration is found, and where its relative paths start."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from anvil.context.settings import load_context
from anvil.errors import ConfigError
from anvil.library.settings import LibraryOptions
from anvil.settings.configuration import load_config
from anvil.settings.schema import Config


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository's root that is also the working folder."""
    work = tmp_path / "repository"
    (work / ".git").mkdir(parents=True)
    monkeypatch.chdir(work)
    return work


def context_refusal() -> str:
    with pytest.raises(ConfigError) as error:
        load_context()
    return str(error.value)


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


def test_a_folder_of_documents_may_be_in_the_home_folder(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("USERPROFILE", "/home/ada")
    names = '[collections.old]\ndocs = "~/old"\n[[collections.api]]\ndocs = "~/api"\nversion = "2"\n'
    (work / "anvil.toml").write_text(f'docs = "~/notes"\nindex = "~/notes.db"\n{names}')
    config = load_config()[0]
    folders = [config.docs, *(each.docs for each in config.collections)]
    assert folders == ["/home/ada/notes", "/home/ada/old", "/home/ada/api"]
    assert config.index == "~/notes.db", "what is written is in the project, unless its whole path is named"
    assert load_config(flags={"docs": "~/more"})[0].docs == str(Path("/home/ada/more"))
    for name in ("~", "~root/notes", "notes~/a"):
        assert load_config(flags={"docs": name})[0].docs == str(work / name)


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


EVIL = 'provider = "openai"\nbase_url = "https://me:SECRETPW@models.example.org/v1?key=Q"\n'


def test_a_file_that_was_found_does_not_name_who_gets_the_key(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be a stranger's: of a cloned repository, or of a pull request."""
    file = work / "anvil.toml"
    file.write_text(f"[embedding]\n{EVIL}")
    for refused in (refusal(), refusal(work), context_refusal()):
        assert str(file) in refused and "https://models.example.org/v1:" in refused
        assert "OPENAI_API_KEY" in refused and "OPENAI_BASE_URL" in refused and "--config" in refused
        assert "SECRETPW" not in refused and "key=Q" not in refused
    monkeypatch.setenv("OPENAI_BASE_URL", "https://models.example.org/v1")
    assert "OPENAI_BASE_URL" in refusal()  # another: this one shows the server a password
    url = "https://me:SECRETPW@models.example.org/v1?key=Q"
    monkeypatch.setenv("OPENAI_BASE_URL", url + "/")
    assert load_config()[0].embedding.base_url == load_context()[0].embedding.base_url == url


def test_it_does_not_in_pyproject_either_nor_when_another_layer_names_the_provider(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "pyproject.toml").write_text('[tool.anvil.embedding]\nbaseUrl = "https://models.example.org/v1"\n')
    load_config(flags={"embedding.provider": "local"})  # nothing is sent anywhere
    with pytest.raises(ConfigError, match=r"pyproject\.toml sets embedding\.base_url"):
        load_config(flags={"embedding.provider": "openai"})
    with pytest.raises(ConfigError, match=r"pyproject\.toml sets embedding\.base_url"):
        load_context(flags={"context.embeddings.provider": "openai"})
    with pytest.raises(ConfigError, match=r"pyproject\.toml sets embedding\.base_url"):
        load_config(flags={"embedding.provider": "another-service"})
    monkeypatch.setenv("ANVIL_EMBEDDING_PROVIDER", "openai")
    assert "models.example.org" in refusal()


def test_whoever_names_the_file_or_the_address_is_believed(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = work / "anvil.toml"
    file.write_text(f"[embedding]\n{EVIL}[library]\nallow_private_urls = true\ntranscribe_audio = true\n")
    named = load_config(file)[0]
    library = named.table(LibraryOptions)
    assert library.allow_private_urls and library.transcribe_audio
    assert named == load_config("anvil.toml")[0]
    assert named.embedding == load_context(path=file)[0].embedding
    file.write_text(f"[embedding]\n{EVIL}")
    assert load_config(flags={"embedding.base_url": "https://own.example/v1"})[0].embedding.base_url
    monkeypatch.setenv("ANVIL_EMBEDDING_BASE_URL", "https://own.example/v1")
    assert load_config()[0].embedding.base_url == "https://own.example/v1"


@pytest.mark.parametrize(
    "url", ["http://localhost:11434/v1", "http://127.0.0.1:1/v1", "http://127.8.9.1/v1", "https://[::1]:8/v1"]
)
def test_a_server_on_this_machine_may_be_named_by_any_file(work: Path, url: str) -> None:
    (work / "anvil.toml").write_text(f'[embedding]\nprovider = "openai"\nbase_url = "{url}"\n')
    assert load_config()[0].embedding.base_url == url


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost.example.org/v1",
        "https://127.0.0.1@example.org/v1",
        "https://127.0.0.1.example.org",
        "//x",
        "http://[::1",
        "http://127.0.0.256/",
        "https://example.org/#http://localhost",
        "http://0.0.0.0/",
    ],
)
def test_what_only_looks_like_this_machine_may_not(work: Path, url: str) -> None:
    (work / "anvil.toml").write_text(f'[embedding]\nprovider = "openai"\nbase_url = "{url}"\n')
    assert "embedding.base_url" in refusal()


@pytest.mark.parametrize(
    ("key", "way"),
    [("allow_private_urls", "--allow-private-urls"), ("transcribe_audio", "ANVIL_LIBRARY_TRANSCRIBE_AUDIO=true")],
)
def test_a_file_that_was_found_lifts_no_guard(work: Path, monkeypatch: pytest.MonkeyPatch, key: str, way: str) -> None:
    (work / "anvil.toml").write_text(f"[library]\n{key} = true\n")
    for refused in (refusal(), context_refusal()):
        assert f"anvil.toml sets library.{key}" in refused and way in refused and "--config" in refused
    monkeypatch.setenv(f"ANVIL_LIBRARY_{key.upper()}", "true")
    for config in (load_config()[0], load_context()[0]):
        assert getattr(config.table(LibraryOptions), key)
    monkeypatch.setenv(f"ANVIL_LIBRARY_{key.upper()}", "false")
    assert not getattr(load_config()[0].table(LibraryOptions), key)


def test_a_file_that_was_found_does_not_name_who_gets_the_token_of_milvus(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = work / "anvil.toml"
    file.write_text('index = "milvus+https://vectors.example.org/docs"\n')
    load_config()  # there is no token to lose
    monkeypatch.setenv("ANVIL_MILVUS_TOKEN", "root:SECRETPW")
    assert "ANVIL_MILVUS_TOKEN would be sent there" in refusal() and "SECRETPW" not in refusal()
    assert load_config(file)[0] == load_config(flags={"index": "milvus+https://vectors.example.org/docs"})[0]
    for harmless in ("milvus://localhost:19530/docs", "milvus+lite:x.db/docs"):
        file.write_text(f'index = "{harmless}"\n')
        assert load_config()[0].index == harmless
    file.write_text('[collections.x]\nindex = "milvus+https://vectors.example.org/docs"\n')
    assert "anvil.toml sets collections.x.index" in refusal()


def test_a_folder_in_place_of_a_file_is_looked_through(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "anvil.toml").write_text('docs = "far"\n')
    (work / "a").mkdir()
    monkeypatch.chdir(work.parent)
    assert load_config(work / "a") == load_config("repository/a") == (Config(docs="far"), work)
    assert load_context(work, work / "a")[0] == Config(docs="far")
    (work / "anvil.toml").unlink()
    assert "There is no configuration in" in refusal(work / "a")


def test_a_secret_in_a_broken_file_is_not_printed(work: Path) -> None:
    (work / "anvil.toml").write_text('[embedding]\napi_key = "sk-very-secret" oops\n')
    assert "sk-very-secret" not in refusal()
    (work / "anvil.toml").write_text('[embedding]\napi_key = ["sk-very-secret"]\n')
    assert "sk-very-secret" not in refusal()


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
