"""A server's side of the object: nothing waits for what takes long, and nothing is answered from stale text."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import anvil
from anvil.embedding.provider import PROVIDERS, Embedded, EmbeddingProvider
from anvil.errors import ArtifactRejected, ConfigError, NotFound, ProviderError, SourceError
from anvil.index_file import publish
from anvil.index_file.table_rows import ChunkText
from anvil.live.background_work import VectorWorker
from anvil.live.live_index import MAX_CANDIDATES
from anvil.live.memory_copy import MemoryCopy
from anvil.results import Mode
from anvil.settings.schema import Config, EmbeddingSettings
from anvil.values import Changes
from tests.conftest import PAGES, write
from tests.support import repositories
from tests.support.programs import environment
from tests.support.repositories import commit, run

isolated = pytest.fixture(repositories.isolation)  # here only where asked for


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working folder has neither documents nor configuration."""
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")


class Held:
    """The real model behind a gate: it can be kept waiting, counted, and made to fail."""

    def __init__(self, real: EmbeddingProvider) -> None:
        self.real = real
        self.gate = threading.Event()
        self.gate.set()
        self.texts = 0
        self.seen: list[str] = []
        self.error: ProviderError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def embed(self, texts: Sequence[str]) -> Embedded:
        if not self.gate.wait(60):
            raise AssertionError("nobody opened the gate")
        if self.error:
            raise self.error
        self.texts += len(texts)
        self.seen += texts
        return self.real.embed(texts)

    def close(self) -> None:
        """The model is shared by all tests."""


@pytest.fixture
def held(local: EmbeddingProvider, monkeypatch: pytest.MonkeyPatch) -> Held:
    """What the provider ``local`` is in this test."""
    found = Held(local)
    monkeypatch.setitem(PROVIDERS, "local", lambda settings: found)
    return found


@pytest.fixture
def built(docs: Path, held: Held) -> Path:
    """The four pages, indexed."""
    with anvil.open(docs) as found:
        found.index()
    return docs


@pytest.fixture
def serving(built: Path) -> Iterator[anvil.Anvil]:
    with anvil.open(built, background=True) as found:
        found.search("alerts")
        starter = found.members[0].live._starter
        assert starter is not None
        starter.join(30)  # it compares the documents too, and could be the one that sees a test's edit
        yield found


def until(true: Callable[[], object], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


def many(count: int, word: str = "zebra") -> dict[str, str]:
    return {f"many/{i}.md": f"# Page {i}\n\nThe {word} of page {i} eats grass number {i}.\n" for i in range(count)}


# --- vectors behind the answer -----------------------------------------------------------------------------


def test_a_small_change_is_answered_with_its_vectors(serving: anvil.Anvil, built: Path, held: Held) -> None:
    before = held.texts
    write(built, {"new.md": "# Quagga\n\nAn animal that no longer exists, striped in front only.\n"})
    result = serving.search("extinct striped animal", mode="semantic")
    assert result.results[0].metadata.file_path == "new.md"
    assert (result.freshness.pending_vectors, result.freshness.notes) == (0, ())
    assert result.freshness.refreshed == ("new.md",) and held.texts == before + 1


def test_an_edit_within_one_tick_of_the_clock_is_seen(
    serving: anvil.Anvil, built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)  # as on Windows, for 16 ms
    serving.search("quagga", mode="keyword")
    write(built, {"new.md": "# Quagga\n"})
    assert serving.search("quagga", mode="keyword").freshness.refreshed == ("new.md",)


def test_a_large_change_is_answered_at_once_and_embedded_behind(
    serving: anvil.Anvil, built: Path, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anvil.live.live_index.VECTOR_WAIT_S", 0.1)
    held.gate.clear()
    write(built, many(100))
    result = serving.search("zebra grass 7", file_filter="many/*")
    assert result.results and result.total_chunks == 100
    assert result.freshness.pending_vectors == 100 and "still being made" in result.freshness.notes[0]
    assert serving.get_status().index.pending_vectors == 100
    held.gate.set()
    until(lambda: serving.search("grass", mode="keyword").freshness.pending_vectors == 0)
    assert serving.search("x", mode="keyword").freshness.notes == ()
    assert serving.search("Page 42", mode="semantic").results[0].metadata.file_path == "many/42.md"


def test_a_private_index_is_brought_up_to_date_when_it_is_quiet(
    serving: anvil.Anvil, built: Path, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anvil.live.background_work.QUIET_S", 0.3)
    write(built, {"new.md": "# Quagga\n\nAn animal that no longer exists, striped in front only.\n"})
    assert serving.search("extinct striped animal", mode="semantic").freshness.refreshed == ("new.md",)
    texts = held.texts
    until(lambda: not serving.check())
    assert serving.search("extinct striped animal").freshness.refreshed == ()
    assert held.texts == texts, "the vector was kept"


def test_a_private_index_of_another_model_is_embedded_again_without_an_edit(
    built: Path, held: Held, local: EmbeddingProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Other(Held):
        digest, model = "0" * 64, "another-model"

    monkeypatch.setattr("anvil.live.background_work.QUIET_S", 1.0)
    other = Other(local)
    PROVIDERS["local"] = lambda settings: other
    with anvil.open(built, background=True) as found:
        (note,) = found.search("alerts").freshness.notes
        assert note == (
            "Semantic search is off: the index was built with all-MiniLM-L6-v2-docs, and the current model is "
            "another-model. It is embedded again when no page has changed for a minute; until then, search is by words."
        )
        with pytest.raises(ConfigError) as caught:
            found.search("alerts", mode="semantic")
        assert str(caught.value) == note
        until(lambda: found.search("alerts").freshness.notes == ())
        assert found.search("alerts", mode="semantic").results and found.get_status().embedding.model == "another-model"
        assert not found.check()
    texts = other.texts
    assert texts > 0
    with anvil.open(built, background=True) as found:  # it was written
        assert found.search("alerts", mode="semantic").results and other.texts == texts


def test_a_server_without_a_model_leaves_the_vectors_of_a_private_index(
    built: Path, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build by it would write the pages without any vector, which the next server with a model would make again."""
    monkeypatch.setattr("anvil.live.background_work.QUIET_S", 0.0)
    before = (built / ".anvil/index.db").read_bytes()
    with anvil.open(built, provider="none", background=True) as found:
        write(built, {"new.md": "# Quagga\n"})
        assert found.search("quagga").freshness.refreshed == ("new.md",)
        time.sleep(0.5)
        assert found.search("quagga").results[0].metadata.file_path == "new.md"
    assert (built / ".anvil/index.db").read_bytes() == before


def test_a_server_without_a_model_brings_an_index_without_vectors_up_to_date(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anvil.live.background_work.QUIET_S", 0.0)
    with anvil.open(docs, provider="none") as found:
        found.index()
    with anvil.open(docs, provider="none", background=True) as found:
        write(docs, {"new.md": "# Quagga\n"})
        assert found.search("quagga").freshness.refreshed == ("new.md",)
        until(lambda: not found.check())


@pytest.mark.parametrize("index", ["held by git", "named"])
def test_an_index_that_is_not_private_keeps_its_model(
    built: Path, held: Held, local: EmbeddingProvider, monkeypatch: pytest.MonkeyPatch, index: str
) -> None:
    class Other(Held):
        digest, model = "0" * 64, "another-model"

    monkeypatch.setattr("anvil.live.background_work.QUIET_S", 0.0)
    if index == "held by git":
        (built / ".anvil/.gitignore").write_text("*\n!.gitignore\n!index.db\n")
    PROVIDERS["local"] = lambda settings: Other(local)
    before = (built / ".anvil/index.db").read_bytes()
    with anvil.open(built, built / ".anvil/index.db" if index == "named" else None, background=True) as found:
        assert "Rebuild the index, or" in found.search("alerts").freshness.notes[0]
        time.sleep(0.5)
        assert "Rebuild the index, or" in found.search("alerts").freshness.notes[0]
    assert (built / ".anvil/index.db").read_bytes() == before


def test_a_server_that_closes_does_not_finish_its_index(
    built: Path, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anvil.live.background_work.QUIET_S", 0.0)
    with anvil.open(built, background=True) as found:
        found.search("alerts")
        held.gate.clear()
        write(built, many(100))
        assert found.search("zebra", mode="keyword").freshness.pending_vectors
        until(lambda: any(thread.name == "anvil-saver" for thread in threading.enumerate()))
        time.sleep(0.3)  # it builds, and waits for the model
        closing = threading.Thread(target=found.close)
        closing.start()
        until(lambda: found.members[0].live.closed)
        held.gate.set()
        closing.join(30)
    with anvil.open(built) as found:
        assert len(found.check().added) == 100


def test_an_index_that_git_holds_is_never_written_by_a_server(
    serving: anvil.Anvil, built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anvil.live.background_work.QUIET_S", 0.0)
    (built / ".anvil/.gitignore").write_text("*\n!.gitignore\n!index.db\n")
    before = (built / ".anvil/index.db").stat()
    write(built, {"new.md": "# Quagga\n"})
    assert serving.search("quagga").freshness.refreshed == ("new.md",)
    time.sleep(0.3)
    assert (built / ".anvil/index.db").stat().st_mtime_ns == before.st_mtime_ns


def test_the_best_matches_by_words_are_embedded_first(serving: anvil.Anvil, built: Path, held: Held) -> None:
    before = held.texts
    write(built, {**many(100), "new.md": "# Quagga\n\nAn animal that no longer exists, striped in front only.\n"})
    result = serving.search("quagga that no longer exists")
    assert result.results[0].metadata.file_path == "new.md"
    assert "Quagga" in "".join(held.seen[before : before + MAX_CANDIDATES])
    assert result.freshness.pending_vectors < 101


def test_a_large_folder_is_answered_before_its_index_is_built(docs: Path, held: Held) -> None:
    write(docs, many(100))
    with anvil.open(docs, build_first=False) as found:
        result = found.search("silence at night")
        assert found.provisional and not found.index_path.exists()
        assert 0 < held.texts <= 2 * MAX_CANDIDATES, "only candidates are embedded"
        assert result.results[0].metadata.file_path == "guides/alerts.md"
        assert result.freshness.notes[0].startswith("There is no index yet") and result.freshness.refreshed == ()
        assert len(held.seen) == len(set(held.seen))
        found.index()
        assert found.search("silence at night").freshness.notes == () and not found.provisional
    assert len(held.seen) == len(set(held.seen)), "nothing was embedded twice"


@pytest.mark.parametrize("background", [True, False])
def test_a_damaged_index_is_not_said_to_have_replaced_one(docs: Path, held: Held, background: bool) -> None:
    write(docs, many(100))
    with anvil.open(docs) as found:
        found.index()
    (docs / ".anvil/index.db").write_bytes((docs / ".anvil/index.db").read_bytes()[:5000])
    with anvil.open(docs, build_first=False, background=background) as found:
        notes = found.search("silence at night").freshness.notes
        assert notes and not any("replaced" in note for note in notes)
        if background:
            until(lambda: not found.search("silence at night").freshness.notes)
        else:
            found.index()
        result = found.search("silence at night")
        assert result.freshness.notes == () and not found.provisional


def test_a_small_folder_is_built_before_the_answer(docs: Path, held: Held) -> None:
    with anvil.open(docs, build_first=False) as found:
        assert found.search("silence at night").freshness.notes == ()
        assert not found.provisional and found.index_path.exists()


@pytest.mark.parametrize(("count", "is_built"), [(64, True), (65, False)])
def test_a_folder_of_64_passages_is_built_before_the_answer(
    tmp_path: Path, held: Held, count: int, is_built: bool
) -> None:
    with anvil.open(write(tmp_path / "docs", many(count)), build_first=False) as found:
        assert found.search("zebra").results
        assert found.index_path.exists() == is_built == (not found.provisional)


def test_a_page_that_changes_while_it_is_embedded_keeps_its_new_text(
    serving: anvil.Anvil, built: Path, held: Held
) -> None:
    held.gate.clear()
    write(built, many(100))
    serving.list_pages()
    write(built, {"many/5.md": "# Page 5\n\nBaking bread with rye flour and sourdough.\n"})
    assert "rye" in serving.get_page("many/5.md").chunks[0].content
    held.gate.set()
    until(lambda: serving.get_status().index.pending_vectors == 0)
    found = serving.search("sourdough bread", mode="semantic").results[0]
    assert found.metadata.file_path == "many/5.md" and found.score > 0.4


def test_a_model_that_is_slow_does_not_keep_the_text(
    serving: anvil.Anvil, built: Path, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anvil.live.live_index.VECTOR_WAIT_S", 0.1)
    held.gate.clear()
    write(built, {"new.md": "# Quagga\n"})
    result = serving.search("quagga")
    assert result.results[0].metadata.file_path == "new.md" and result.freshness.pending_vectors == 1
    held.gate.set()
    until(lambda: serving.get_status().index.pending_vectors == 0)


def test_a_provider_that_fails_leaves_the_text_right_and_says_why(
    serving: anvil.Anvil, built: Path, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anvil.live.background_work.RETRY_S", 0.2)
    held.error = ProviderError("The service is down.")
    write(built, {"new.md": "# Quagga\n"})
    result = serving.search("quagga")
    assert result.results[0].metadata.file_path == "new.md"
    assert result.freshness.pending_vectors == 1 and "The service is down." in result.freshness.notes[0]
    held.error = None
    until(lambda: serving.get_status().index.pending_vectors == 0)
    assert serving.search("quagga").freshness.notes == ()


def test_the_thread_of_vectors_outlives_an_error_of_the_index(
    serving: anvil.Anvil, built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anvil.live.background_work.RETRY_S", 0.1)
    errors = [OSError("The disk is gone")]
    pending_chunks = MemoryCopy.pending_chunks

    def failing_once(copy: MemoryCopy, after: int, limit: int) -> list[ChunkText]:
        if errors:
            raise errors.pop()
        return pending_chunks(copy, after, limit)

    monkeypatch.setattr(MemoryCopy, "pending_chunks", failing_once)
    write(built, {"new.md": "# Quagga\n"})
    assert serving.search("quagga").results[0].metadata.file_path == "new.md"
    until(lambda: serving.get_status().index.pending_vectors == 0)
    assert not errors


def test_a_thread_without_work_does_not_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anvil.live.background_work.RETRY_S", 0.05)
    looks: list[float] = []
    guard = threading.RLock()
    worker = VectorWorker(guard, lambda: looks.append(time.monotonic()), lambda: True)
    with guard:
        worker._failed("The service is down.")  # then a build makes the vectors
        worker._start()
    time.sleep(0.5)
    worker.close()
    assert len(looks) < 8


def test_one_text_that_fails_loses_no_other_and_is_tried_again(
    serving: anvil.Anvil, built: Path, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anvil.live.background_work.RETRY_S", 0.3)

    def embed(texts: Sequence[str]) -> Embedded:
        found = held.real.embed(texts)
        return Embedded(found.vectors, {place: "too odd" for place, text in enumerate(texts) if "page 7 " in text})

    with monkeypatch.context() as patched:
        patched.setattr(held, "embed", embed)
        write(built, many(30))
        result = serving.search("zebra of page 8", mode="semantic")
        assert result.results[0].metadata.file_path == "many/8.md"
        until(lambda: serving.get_status().index.pending_vectors == 1)
        until(lambda: "too odd" in serving.search("zebra").freshness.notes[0])
    until(lambda: serving.get_status().index.pending_vectors == 0)


def test_vectors_that_a_build_could_not_make_are_made(docs: Path, held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    def embed(texts: Sequence[str]) -> Embedded:
        return Embedded(held.real.embed(texts).vectors, {0: "too odd"})

    with monkeypatch.context() as patched, anvil.open(docs) as found:
        patched.setattr(held, "embed", embed)
        assert found.index().failed
    with anvil.open(docs, background=True) as found:
        found.search("alerts")
        until(lambda: found.get_status().index.pending_vectors == 0)
        assert found.search("alerts").freshness.notes == ()


def test_pages_moved_to_another_folder_embed_nothing(serving: anvil.Anvil, built: Path, held: Held) -> None:
    before = held.texts
    (built / "guides").rename(built / "books")
    result = serving.search("silence at night")
    assert result.results[0].metadata.file_path == "books/alerts.md" and result.freshness.pending_vectors == 0
    assert held.texts == before


def test_the_artifact_is_never_written(serving: anvil.Anvil, built: Path) -> None:
    before, stat = serving.index_path.read_bytes(), serving.index_path.stat()
    write(built, many(80))
    serving.search("zebra")
    until(lambda: serving.get_status().index.pending_vectors == 0)
    assert serving.index_path.read_bytes() == before and serving.index_path.stat().st_mtime_ns == stat.st_mtime_ns


def test_other_threads_are_answered_while_a_question_is_embedded(
    serving: anvil.Anvil, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, gate = threading.Event(), threading.Event()

    def embed_query(text: str) -> object:
        if text == "slow":
            inside.set()
            assert gate.wait(30)
        return held.real.embed_query(text)

    monkeypatch.setattr(held, "embed_query", embed_query, raising=False)
    thread = threading.Thread(target=lambda: serving.search("slow"))
    thread.start()
    assert inside.wait(30)
    assert serving.search("alerts").results and serving.get_page("index.md").chunks  # would hang
    gate.set()
    thread.join(30)
    assert not thread.is_alive()


def test_closing_while_vectors_are_made(built: Path, held: Held) -> None:
    found = anvil.open(built, background=True)
    found.search("alerts")
    write(built, many(200))
    assert found.search("zebra").freshness.pending_vectors
    found.close()
    found.close()
    with pytest.raises(ConfigError, match="closed"):
        found.search("zebra")
    alive = {each.name for each in threading.enumerate()}
    assert not alive & {"anvil-vectors", "anvil-saver", "anvil-start", "anvil-first-build", "anvil-watcher"}


def test_another_model_searches_by_words_and_says_so(built: Path, held: Held, local: EmbeddingProvider) -> None:
    class Other(Held):
        digest, model = "0" * 64, "another-model"

    PROVIDERS["local"] = lambda settings: Other(local)
    with anvil.open(built, background=True) as found:
        write(built, {"new.md": "# Quagga\n"})
        result = found.search("quagga")
        assert result.results[0].metadata.file_path == "new.md" and result.freshness.pending_vectors == 0
        assert "built with all-MiniLM-L6-v2-docs, and the current model is another-model" in result.freshness.notes[0]
        assert found.search("quagga", mode="keyword").freshness.notes == ()
        with pytest.raises(ConfigError, match="another-model"):
            found.search("quagga", mode="semantic")


@pytest.mark.parametrize("mode", ["hybrid", "semantic"])
def test_vectors_that_are_not_used_say_what_to_set(docs: Path, tmp_path: Path, mode: Mode) -> None:
    def told(config: Config) -> str:
        with anvil.open(docs, tmp_path / "i.db", config=config) as found:
            if mode == "hybrid":
                return " ".join(found.search("alerts").freshness.notes)
            with pytest.raises(ConfigError) as caught:
                found.search("alerts", mode=mode)
            return str(caught.value)

    with anvil.open(docs, tmp_path / "i.db") as built:
        built.index()
    off, built_with = "Semantic search is off: ", "the index was built with all-MiniLM-L6-v2-docs"
    asked = f"{off}keywords only were asked for (embedding provider none). To use the index's vectors of "
    way = "set embedding.provider to 'local' and leave embedding.model empty."
    assert told(Config(embedding=EmbeddingSettings(provider="none"))) == f"{asked}all-MiniLM-L6-v2-docs, {way}"
    other = told(Config(embedding=EmbeddingSettings(provider="openai", api_key="k")))
    assert other == f"{off}{built_with}, and the current model is text-embedding-3-small. Rebuild the index, or {way}"
    model = shutil.copytree(Path(anvil.__file__).parent / "embedding/model", tmp_path / "other")
    about = json.loads((model / "model.json").read_text("utf-8"))
    (model / "model.json").write_text(json.dumps(about | {"name": "mine", "query_prefix": "q: "}), "utf-8")
    mine = Config(embedding=EmbeddingSettings(model=str(model)))
    assert told(mine).endswith(f"the current model is mine. Rebuild the index, or {way}")
    with anvil.open(docs, tmp_path / "i.db", config=mine) as built:
        built.index()
    way = "set embedding.provider to 'local' and embedding.model to the model of the index."
    assert told(Config()).endswith(f"is all-MiniLM-L6-v2-docs. Rebuild the index, or {way}")
    none = told(Config(embedding=EmbeddingSettings(provider="none")))
    assert none == f"{asked}mine, set embedding.provider to 'local' and embedding.model to the model of the index."


def test_what_compares_vectors_gets_those_of_changed_pages(docs: Path, tmp_path: Path) -> None:
    with anvil.open(docs, tmp_path / "i.db") as found:
        found.index()
        write(docs, {"new.md": "# New\n\nA zebra.\n"})
        assert found.grep("zebra").total_matches == found.get_status().index.pending_vectors == 1
        assert found.health().pending_vectors == 0


def test_changed_pages_are_read_without_a_model(docs: Path, tmp_path: Path) -> None:
    with anvil.open(docs, tmp_path / "i.db") as built:
        built.index()
    write(docs, {"new.md": "# New\n\nA zebra.\n"})
    missing = Config(embedding=EmbeddingSettings(model=str(tmp_path / "no model")))
    with anvil.open(docs, tmp_path / "i.db", config=missing) as found:
        assert found.grep("zebra").total_matches == 1
        assert [hit.title for hit in found.search("zebra", mode="keyword").results] == ["New"]
        assert "There is no model folder" in found.search("zebra").freshness.notes[0]


# --- the first build ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ahead", [0.0, 60.0])
def test_questions_during_the_first_build(
    docs: Path, held: Held, ahead: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anvil.live.live_index.FIRST_READING_S", ahead)
    monkeypatch.setattr("anvil.live.live_index.VECTOR_WAIT_S", 0.1)
    write(docs, many(60))
    held.gate.clear()
    told: list[tuple[str, int, int]] = []
    with anvil.open(docs, background=True) as found:
        found.start(lambda *each: told.append(each))
        found.start()
        first = found.search("zebra")
        assert any("being built" in note for note in first.freshness.notes)
        assert first.results or not ahead  # nobody waits for pages then, and some may have been read all the same
        until(lambda: found.list_pages().total_pages == 64)
        result = found.search("silence at night")
        assert result.results[0].metadata.file_path == "guides/alerts.md" and not found.index_path.exists()
        assert found.get_status().index.artifact is None and result.freshness.pending_vectors > 0
        write(docs, {"new.md": "# Quagga\n"})  # while it is built
        assert found.get_page("new.md").title == "Quagga"
        held.gate.set()
        until(found.index_path.exists)
        until(lambda: not found.search("zebra").freshness.notes)
        assert found.get_status().index.artifact is not None
        assert found.search("quagga").results[0].metadata.file_path == "new.md"
    assert ("reading", 64, 64) in told and told[-1][0] == "writing"


def test_a_page_not_read_yet_is_not_said_to_be_unknown(docs: Path, held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anvil.live.live_index.PAGES_PER_STEP", 1)
    monkeypatch.setattr("anvil.live.live_index.FIRST_READING_S", 0)
    gate = threading.Event()
    with anvil.open(docs, background=True) as found:

        def wait(stage: str, done: int, total: int) -> None:
            gate.wait(30)

        found.start(wait)
        until(lambda: found.list_pages().total_pages)
        listing = found.list_pages()
        assert listing.total_pages < len(PAGES) and "being built" in " ".join(listing.notes or ())
        with pytest.raises(NotFound, match="being built"):
            found.get_page("nothing.md")
        assert found.get_page("install.md").title.startswith("Install")
        for path in [page.file_path for page in found.list_pages().pages]:  # what was read already, too
            write(docs, {path: "# Quagga\n\nEdited while the others are read.\n"})
            assert "Edited while" in found.get_page(path).chunks[0].content
            assert "Edited while" in found.get_section(path, "Quagga").content
        gate.set()
        until(lambda: found.list_pages().notes is None)
        assert found.list_pages().total_pages == len(PAGES)


def test_a_place_that_cannot_be_written_is_served_all_the_same(docs: Path, held: Held) -> None:
    (docs / ".anvil").write_text("in the way")
    with anvil.open(docs, background=True) as found:
        until(lambda: any("could not be built" in note for note in found.search("night").freshness.notes))
        until(lambda: found.search("night").freshness.pending_vectors == 0)
        assert found.search("quiet hours", mode="semantic").results
        write(docs, {"new.md": "# Quagga\n"})
        assert found.search("quagga").results[0].metadata.file_path == "new.md"


def test_a_named_file_that_is_no_index_is_left_alone(docs: Path, tmp_path: Path, held: Held) -> None:
    (tmp_path / "mine.db").write_bytes(b"precious")
    with anvil.open(docs, tmp_path / "mine.db", background=True) as found:
        for _ in range(2):
            with pytest.raises(ArtifactRejected, match="not an Anvil index"):
                found.search("alerts")
    assert (tmp_path / "mine.db").read_bytes() == b"precious"


def test_a_pointer_of_git_lfs_is_no_page_until_its_text_is_there(docs: Path) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 12\n"
    write(docs, {"large.md": pointer})
    with anvil.open(docs, docs.parent / "i.db", provider="none") as found:
        assert [each.reason for each in found.index().skipped] == [
            "a pointer of Git LFS; run 'git lfs pull' to get its text"
        ]
        write(docs, {"large.md": "# Large\n\nThe whole text.\n"})
        assert found.search("whole text").results[0].metadata.file_path == "large.md"


HOLD = """
import sys, time
from pathlib import Path
from anvil.index_file import publish
with publish.exclusive(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(120)
"""


def test_a_build_that_is_killed_is_taken_over(docs: Path, held: Held) -> None:
    index = docs / ".anvil/index.db"
    command = [sys.executable, "-c", HOLD, str(index)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, env=environment()) as holder,
        anvil.open(docs, background=True) as found,
    ):
        assert holder.stdout and holder.stdout.readline()
        until(lambda: any("Another process" in note for note in found.search("night").freshness.notes))
        assert found.search("silence at night").results[0].metadata.file_path == "guides/alerts.md"
        holder.kill()
        until(index.exists)
        until(lambda: not found.search("night").freshness.notes)


def test_a_build_that_hangs_is_not_waited_for_without_end(
    docs: Path, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anvil.live.live_index.LOCK_TIMEOUT_S", 0.2)
    with publish.exclusive(docs / ".anvil/index.db"), anvil.open(docs, background=True) as found:
        until(lambda: any("could not be built" in note for note in found.search("night").freshness.notes))
        until(lambda: found.search("night").freshness.pending_vectors == 0)
        assert found.search("quiet hours", mode="semantic").results


def test_servers_on_one_folder_share_the_first_build(docs: Path, held: Held) -> None:
    write(docs, many(40))
    held.gate.clear()
    with anvil.open(docs, background=True) as one, anvil.open(docs, background=True) as two:
        one.start()
        until(lambda: (docs / ".anvil/index.db.lock").exists())
        two.start()
        until(lambda: two.list_pages().total_pages == 44)
        held.gate.set()
        until(lambda: not one.search("zebra").freshness.notes)
        until(lambda: not two.search("zebra").freshness.notes)
        assert one.get_status().index.artifact == two.get_status().index.artifact
        chunks = two.get_status().index.total_chunks  # each is short enough to be one window
        assert chunks <= held.texts <= chunks + 2 * MAX_CANDIDATES, "one build, and the candidates of two searches"


# --- what moves while it runs ------------------------------------------------------------------------------


def test_branches_are_switched(tmp_path: Path, held: Held, isolated: None) -> None:
    root = tmp_path / "repo"
    docs = write(root / "docs", PAGES)
    run(root, "init", "-q", "-b", "main")
    commit(root, "first", at=1_700_000_000)
    run(root, "checkout", "-q", "-b", "other")
    write(root / "docs", {"new.md": "# Quagga\n", "index.md": "# Another lighthouse\n"})
    (root / "docs/install.md").unlink()
    commit(root, "second", at=1_700_000_100)
    run(root, "checkout", "-q", "main")
    with anvil.open(docs, background=True) as found:
        until(lambda: not found.search("night").freshness.notes)
        texts = held.texts
        for branch, expected in (("other", ["new.md"]), ("main", []), ("other", ["new.md"])):
            run(root, "checkout", "-q", branch)
            assert [each.file_path for each in found.list_pages().pages if each.file_path == "new.md"] == expected
            assert found.get_page("index.md").title == ("Another lighthouse" if expected else "Lighthouse")
        run(root, "checkout", "-q", "main")
        assert found.search("watches your servers", mode="semantic").results[0].metadata.file_path == "index.md"
        assert found.search("x").freshness.pending_vectors == 0
        assert held.texts <= texts + 2 * 2  # going back costs nothing: the artifact still holds those vectors


def test_a_replaced_artifact_is_picked_up_and_a_damaged_one_is_not(serving: anvil.Anvil, built: Path) -> None:
    before = serving.get_status().index.artifact
    write(built, {"new.md": "# Quagga\n"})
    serving.index()
    after = serving.get_status().index
    assert before and after.artifact and after.artifact.digest != before.digest and after.stale.added == 0
    damaged = serving.index_path.with_name("damaged")
    damaged.write_bytes(serving.index_path.read_bytes()[:5000])
    damaged.replace(serving.index_path)
    for _ in range(2):
        result = serving.search("quagga")
        assert result.results[0].metadata.file_path == "new.md" and "not used" in result.freshness.notes[0]
    write(built, {"newer.md": "# Okapi\n"})
    serving.index()
    result = serving.search("okapi")
    assert result.results[0].metadata.file_path == "newer.md" and result.freshness.notes == ()


def test_an_artifact_that_is_deleted_is_not_missed(serving: anvil.Anvil, built: Path) -> None:
    shutil.rmtree(built / ".anvil")
    write(built, {"new.md": "# Quagga\n"})
    assert serving.search("quagga").results[0].metadata.file_path == "new.md"
    assert serving.get_status().index.db_size_bytes == 0


def test_a_folder_that_goes_and_returns(serving: anvil.Anvil, built: Path) -> None:
    aside = built.with_name("aside")
    for _ in range(2):
        built.rename(aside)
        with pytest.raises(SourceError, match="no folder"):
            serving.search("alerts")
        aside.rename(built)
        assert serving.search("silence at night").results[0].metadata.file_path == "guides/alerts.md"
    (built / "guides").rename(aside)
    assert serving.list_pages("guides").total_pages == 0
    aside.rename(built / "guides")
    assert serving.list_pages("guides").total_pages == 2


# --- being told --------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
@pytest.mark.parametrize("background", [False, True])
def test_a_folder_whose_link_is_set_to_another_revision(docs: Path, tmp_path: Path, background: bool) -> None:
    other = write(tmp_path / "other", {"install.md": "# Install\n\nAsk the quagga.\n"})
    (tmp_path / "current").symlink_to(docs)
    with anvil.open(tmp_path / "current", tmp_path / "index.db", provider="none", background=background) as found:
        found.index()
        assert "Two packages" in found.get_page("install.md").chunks[0].content
        (tmp_path / "next").symlink_to(other)
        (tmp_path / "next").replace(tmp_path / "current")
        assert len(found.check()) == len(PAGES)
        assert "quagga" in found.get_page("install.md").chunks[0].content
        shutil.rmtree(docs)
        assert [page.file_path for page in found.list_pages().pages] == ["install.md"]
        found.index()
        assert not found.check()


def test_listeners_are_told_what_changed(serving: anvil.Anvil, built: Path) -> None:
    told: list[Changes] = []
    stop = serving.on_change(told.append)
    serving.list_pages()
    assert told == []
    write(built, {"new.md": "# Quagga\n", "index.md": "# Other\n"})
    (built / "install.md").unlink()
    serving.list_pages()
    assert told == [Changes(("index.md",), ("new.md",), ("install.md",))]
    stop()
    write(built, {"index.md": "# Third\n"})
    serving.list_pages()
    assert len(told) == 1


def test_a_listener_may_ask_and_may_fail(serving: anvil.Anvil, built: Path, caplog: pytest.LogCaptureFixture) -> None:
    titles: list[str] = []
    serving.on_change(lambda changes: titles.append(serving.get_page(changes.changed[0]).title))
    serving.on_change(lambda changes: titles.append(changes.changed[7]))
    write(built, {"index.md": "# Other\n"})
    assert serving.get_page("index.md").title == "Other"
    assert titles == ["Other"] and "A listener to changed pages failed" in caplog.text


def test_file_events_read_ahead_of_the_question(built: Path, held: Held) -> None:
    told: list[Changes] = []
    with anvil.open(built, background=True, watch=True) as found:
        found.on_change(told.append)
        found.search("alerts")
        time.sleep(0.5)  # until the watcher listens
        write(built, {"new.md": "# Quagga\n"})
        until(lambda: told, 10)
        assert told == [Changes(added=("new.md",))]


def test_an_index_alone_tells_what_a_new_one_changed(built: Path, held: Held, tmp_path: Path) -> None:
    index = tmp_path / "published" / "site.db"
    index.parent.mkdir()
    shutil.copy(built / ".anvil/index.db", index)
    told: list[Changes] = []
    with anvil.open(index=index, background=True, watch=True) as found:
        found.on_change(told.append)
        assert found.search("alerts").freshness.checked is None
        time.sleep(0.5)  # until the watcher listens
        write(built, {"new.md": "# Quagga\n"})
        with anvil.open(built) as builder:
            builder.index()
        shutil.copy(built / ".anvil/index.db", tmp_path / "fresh.db")
        (tmp_path / "fresh.db").replace(index)
        until(lambda: told, 10)
        assert told == [Changes(added=("new.md",))]
        assert found.search("quagga").results[0].metadata.file_path == "new.md"


def test_a_file_written_over_in_place_is_an_error_once_and_then_read(serving: anvil.Anvil, built: Path) -> None:
    whole = serving.index_path.read_bytes()
    serving.index_path.write_bytes(whole[:7000])
    with anvil.open(index=serving.index_path) as alone, pytest.raises(ArtifactRejected):
        alone.search("alerts")
    assert serving.list_pages().total_pages == 4  # the documents are there: another index is built from them
    serving.index_path.write_bytes(whole)
    until(lambda: not serving.search("alerts").freshness.notes)
    assert serving.search("silence at night").results[0].metadata.file_path == "guides/alerts.md"


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be written over there")
def test_an_index_written_over_in_place_with_its_size_and_time_is_read(tmp_path: Path) -> None:
    """As by a copying program that keeps times; or by somebody who lets in what was never checked."""
    for name, word in (("a", "anchor"), ("b", "beacon")):
        docs = write(tmp_path / name, {"p.md": f"# {word}\n\nThe {word} is here.\n"})
        with anvil.open(docs, provider="none") as made:
            made.index()
    index, other = tmp_path / "a/.anvil/index.db", (tmp_path / "b/.anvil/index.db").read_bytes()
    before = index.stat()
    assert before.st_size == len(other)
    with anvil.open(index=index, provider="none") as opened:
        assert opened.get_page("p.md").title == "anchor"
        with index.open("r+b") as file:
            file.write(other)
        os.utime(index, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert opened.get_page("p.md").title == "beacon"
        with index.open("r+b") as file:
            file.seek(len(other) // 2)
            file.write(bytes(64))
        os.utime(index, ns=(before.st_atime_ns, before.st_mtime_ns))
        with pytest.raises(ArtifactRejected, match=r"damaged|refused"):
            opened.get_page("p.md")


@pytest.mark.parametrize("watch", [True, False])
def test_answers_are_right_whatever_becomes_of_the_events(
    built: Path, held: Held, watch: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with anvil.open(built, background=True, watch=watch) as found:
        found.search("alerts")
        if watch:  # its thread ends, nobody notices
            watcher = found.members[0].live._watcher
            assert watcher is not None
            watcher.close()
            assert not watcher._thread.is_alive()
        for number in range(5):
            write(built, {"index.md": f"# Number {number}\n"})
            assert found.get_page("index.md").title == f"Number {number}"


def test_a_change_just_before_the_question_is_seen_before_its_event(built: Path, held: Held) -> None:
    with anvil.open(built, background=True, watch=True) as found:
        for number in range(30):
            write(built, {"index.md": f"# Number {number}\n"})
            assert found.get_page("index.md").title == f"Number {number}"


def test_only_what_runs_behind_can_be_started(docs: Path) -> None:
    with anvil.open(docs, provider="none") as found, pytest.raises(ConfigError, match="background=True"):
        found.start()


def test_without_its_model_the_text_is_right_and_the_reason_is_said(docs: Path, tmp_path: Path) -> None:
    with anvil.open(docs) as found:
        found.index()
    settings = Config(docs=str(docs), embedding=EmbeddingSettings(model=str(tmp_path / "nowhere")))
    with anvil.open(config=settings, background=True) as found:
        write(docs, {"new.md": "# Quagga\n"})
        result = found.search("quagga")
        assert result.results[0].metadata.file_path == "new.md" and result.freshness.pending_vectors == 0
        assert [note for note in result.freshness.notes if "nowhere" in note]
        with pytest.raises(ConfigError, match="nowhere"):
            found.search("quagga", mode="semantic")
        assert found.get_page("new.md").title == "Quagga"


@pytest.mark.parametrize("provider", ["none", "local"])
def test_a_server_without_vectors(docs: Path, provider: str) -> None:
    with anvil.open(docs, provider="none") as found:
        found.index()
    with anvil.open(docs, provider=provider, background=True) as found:
        write(docs, many(100))
        result = found.search("zebra of page 77")
        assert result.results[0].metadata.file_path == "many/77.md" and result.freshness.pending_vectors == 0
        assert any("without vectors" in note for note in result.freshness.notes)


def test_a_server_reads_the_vectors_before_the_first_question(built: Path) -> None:
    with anvil.open(built, background=True) as found:
        live = found.members[0].live
        live.start()
        assert live._starter is not None
        live._starter.join(30)
        index: Any = live._refreshed(time.monotonic()).searcher.index
        assert index._vectors is not None
