"""Where a build embeds: the same bytes whoever does it, and no cluster where there is little to do."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import anvil
from anvil.build import builder
from anvil.documents.working_tree import WorkingTree
from anvil.embedding.provider import Embedded, EmbeddedBatches, EmbeddingProvider, LocalExecutor, create_provider
from anvil.errors import BuildError, ConfigError
from anvil.ray import executor
from anvil.requests import BuildRequest
from anvil.settings.schema import ChunkingOptions, EmbeddingSettings
from tests.conftest import PAGES, write

OPTIONS = ChunkingOptions(min_chunk_size=0, merge_short_sections=False)


class Ahead:
    """An executor that takes some batches ahead of their answers."""

    batch = 2

    def __init__(self, provider: EmbeddingProvider, most: int = 4) -> None:
        self.closed = False
        self.under_way: list[int] = []
        self._provider = provider
        self._most = most

    def embed(self, batches: Iterable[Sequence[str]]) -> EmbeddedBatches:
        pending: deque[Embedded] = deque()
        try:
            for texts in batches:
                pending.append(self._provider.embed(texts))
                self.under_way.append(len(pending))
                if len(pending) == self._most:
                    yield pending.popleft()
            yield from pending
        finally:
            self.closed = True


def built(docs: Path, index: Path, provider: EmbeddingProvider, **more: Any) -> bytes:
    """The bytes of an index."""
    builder.build(WorkingTree(docs), index, provider, OPTIONS, BuildRequest(**more))
    return index.read_bytes()


def test_batches_that_are_taken_ahead_make_the_same_bytes(docs: Path, tmp_path: Path, local: EmbeddingProvider) -> None:
    ahead = Ahead(local)
    told: list[tuple[str, int, int]] = []
    index = tmp_path / "ahead.db"
    report = builder.build(
        WorkingTree(docs),
        index,
        local,
        OPTIONS,
        BuildRequest(workers=ahead, progress=lambda *word: told.append(word)),
    )
    assert index.read_bytes() == built(docs, tmp_path / "here.db", local)
    assert max(ahead.under_way) == 4 and ahead.closed
    assert not report.reasons and report.embedded == report.windows
    done = [count for stage, count, _ in told if stage == "embedding"]
    assert done == sorted(done) and done[-1] == report.chunks and len(done) > 4


def test_a_build_that_is_called_off_lets_go_of_the_executor(
    docs: Path, tmp_path: Path, local: EmbeddingProvider
) -> None:
    ahead = Ahead(local)

    def stop(stage: str, done: int, total: int) -> None:
        if stage == "embedding" and done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        built(docs, tmp_path / "never.db", local, workers=ahead, progress=stop)
    assert ahead.closed and not (tmp_path / "never.db").exists()


def test_here_takes_one_batch_after_the_other(local: EmbeddingProvider) -> None:
    taken: list[int] = []

    def batches() -> Iterator[list[str]]:
        for number in range(3):
            taken.append(number)
            yield [f"text {number}"]

    for number, answer in enumerate(LocalExecutor(local).embed(batches())):
        assert taken == list(range(number + 1))
        assert np.array_equal(answer.vectors, local.embed([f"text {number}"]).vectors)


# --- which executor --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address", ["", "ray", "ray://", "ray://host", "ray://host:port", "http://host:10001", "ray://a b:1", "ray://h:1/x"]
)
def test_addresses_that_make_no_sense_are_refused(address: str, local: EmbeddingProvider) -> None:
    with pytest.raises(ConfigError, match=r"is not an executor\. Name a cluster as ray://HOST:10001"):
        executor.executor(address, local, EmbeddingSettings())


def test_only_the_local_model_is_spread(keywords: EmbeddingProvider) -> None:
    settings = EmbeddingSettings(provider="openai", api_key="sk-secret")
    with pytest.raises(ConfigError, match=r"'openai' embeds elsewhere already") as raised:
        executor.executor("ray://local", create_provider("openai", settings), settings)
    assert "secret" not in str(raised.value)
    assert isinstance(executor.executor("ray://local", keywords, EmbeddingSettings()), LocalExecutor)


def test_without_ray_the_error_says_how_to_install_it(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        anvil.open(docs, tmp_path / "index.db") as opened,
        pytest.raises(ConfigError, match=r"\[ray\]"),
    ):
        opened.index(executor="ray://local")


# --- a cluster, when it is needed ------------------------------------------------------------------------------


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that tells that Ray was imported, by any process."""
    package = tmp_path / "packages" / "ray"
    package.mkdir(parents=True)
    told = tmp_path / "imported"
    (package / "__init__.py").write_text(f"open({str(told)!r}, 'w').close()\nraise ImportError('a trap')\n")
    monkeypatch.syspath_prepend(str(package.parent))
    return told


def test_a_small_build_and_one_with_nothing_to_do_never_import_ray(docs: Path, tmp_path: Path, trap: Path) -> None:
    with anvil.open(docs, tmp_path / "index.db") as opened:
        assert opened.index(executor="ray://local").embedded > 0
        assert opened.index(executor="ray://local").outcome == "unchanged"
    assert not trap.exists()


def test_what_is_known_is_taken_over_before_anything_is_sent(
    docs: Path, tmp_path: Path, trap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with anvil.open(docs, tmp_path / "index.db") as opened:
        opened.index()
    (docs / "install.md").rename(docs / "moved.md")
    monkeypatch.setattr(executor, "MAX_LOCAL_TEXTS", 0)
    with anvil.open(docs, tmp_path / "index.db") as opened:
        report = opened.index(executor="ray://local")
    assert report.outcome == "built" and report.embedded == 0 and report.reused > 0
    assert not trap.exists()


def test_a_larger_build_asks_the_cluster_and_fails_with_it(
    docs: Path, tmp_path: Path, trap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with anvil.open(docs, tmp_path / "index.db", "none") as opened:
        opened.index()
    before = (tmp_path / "index.db").read_bytes()
    monkeypatch.setattr(executor, "MAX_LOCAL_TEXTS", 0)
    with anvil.open(docs, tmp_path / "index.db") as opened, pytest.raises(BuildError) as raised:
        opened.index(executor="ray://local")
    assert trap.exists()
    assert str(raised.value).startswith("The Ray cluster at ray://local cannot be used (ImportError: a trap).")
    assert (tmp_path / "index.db").read_bytes() == before


def test_nobody_is_waited_for_in_vain(docs: Path, tmp_path: Path, trap: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "packages" / "ray" / "__init__.py"
    package.write_text(f"open({str(trap)!r}, 'w').close()\nimport time\ntime.sleep(600)\n")
    monkeypatch.setattr(executor, "MAX_LOCAL_TEXTS", 0)
    monkeypatch.setattr(executor, "START_TIMEOUT_S", 2.0)
    began = time.monotonic()
    with (
        anvil.open(docs, tmp_path / "index.db") as opened,
        pytest.raises(BuildError, match=r"does not answer within 2 seconds\. The index was not changed\."),
    ):
        opened.index(executor="ray://local")
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("named", ["address", "environment"])
def test_a_cluster_that_is_not_there_is_told_at_once(
    docs: Path, tmp_path: Path, trap: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    monkeypatch.setattr(executor, "MAX_LOCAL_TEXTS", 0)
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{port}")
    with (
        anvil.open(docs, tmp_path / "index.db") as opened,
        pytest.raises(BuildError, match=rf"127\.0\.0\.1:{port} cannot be reached \(.+\)\. Check the address"),
    ):
        opened.index(executor="ray://auto" if named == "environment" else f"ray://127.0.0.1:{port}")
    assert not trap.exists()


# --- what runs on a worker -------------------------------------------------------------------------------------


def asked(provider: EmbeddingProvider, **other: Any) -> dict[str, Any]:
    """What a worker is asked for."""
    found = {
        "version": anvil.__version__,
        "digest": provider.digest,
        "model": "",
        "dimensions": None,
    }
    return {**found, **other}


def test_a_worker_on_one_thread_makes_the_same_bits(local: EmbeddingProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "true")  # put back behind the test
    texts = list(PAGES.values())
    found = executor.work(asked(local), texts)
    assert not found["failed"]
    assert found["vectors"] == local.embed(texts).vectors.tobytes()


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"version": "9.9"}, f"Anvil {anvil.__version__} is installed there and 9.9 here"),
        ({"digest": "f" * 64}, "the model there is another (1a2b) than the one here (ffffffffffff)"),
        ({"model": "./nowhere"}, "the model is not available there: There is no model folder ./nowhere."),
    ],
)
def test_a_worker_that_is_not_what_was_asked_for_says_so(
    local: EmbeddingProvider, monkeypatch: pytest.MonkeyPatch, other: dict[str, Any], said: str
) -> None:
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "true")
    found = executor.work(asked(local, **other), ["a text"])
    assert found.keys() == {"refused"}
    assert found["refused"].startswith(said.replace("1a2b", local.digest[:12]))


def test_a_worker_imports_no_ray() -> None:
    code = "import sys\nimport anvil.ray.executor\nassert 'ray' not in sys.modules\n"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_rows_that_failed_keep_their_reasons(docs: Path, tmp_path: Path, local: EmbeddingProvider) -> None:
    class Failing(LocalExecutor):
        def embed(self, batches: Iterable[Sequence[str]]) -> EmbeddedBatches:
            for answer in super().embed(batches):
                yield Embedded(answer.vectors, {0: "the worker could not"})

    write(docs, {"index.md": "# One\n\nA page of one section.\n"})
    report = builder.build(
        WorkingTree(docs),
        tmp_path / "index.db",
        local,
        OPTIONS,
        BuildRequest(workers=Failing(local, 4)),
    )
    assert report.failed and {each.reason for each in report.failed} == {"the worker could not"}
    assert report.embedded + len(report.failed) == report.windows
