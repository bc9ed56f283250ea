"""Builds on a real Ray cluster on this machine: the same bytes, whatever happens to workers; one message otherwise."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import anvil
from anvil.errors import BuildError
from anvil.ray import executor
from tests.conftest import write
from tests.support.in_process import complaint
from tests.support.programs import environment
from tests.support.ray_cluster import TOKEN, RayCluster, alive, descendants, gone, processes, ray_cluster

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="Ray's processes are looked for in /proc"),
    pytest.mark.skipif(find_spec("ray") is None, reason="the extra 'ray' is not installed"),
]


@pytest.fixture(scope="module")
def ray() -> Iterator[RayCluster]:
    """One cluster for all tests of the file: the last of those that take it ends it."""
    with ray_cluster() as found:
        yield found


@pytest.fixture(autouse=True)
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What the cluster wants to know, and batches small enough for a good number of them."""
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)
    monkeypatch.setattr(executor, "MAX_LOCAL_TEXTS", 16)
    monkeypatch.setattr(executor.Cluster, "batch", 8)
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        monkeypatch.setenv("RAY_TMPDIR", folder)  # of ray://local; Ray's sockets want a short name
        yield


PLAIN = "[chunking]\nmerge_short_sections = false\n"


def pages(count: int) -> dict[str, str]:
    """Pages of 24 short sections each."""
    text = "## Valve {0}-{1}\n\nIt opens at {2} degrees.\n\n"  # the model reads each of hundreds
    return {
        f"p{page:02}.md": f"# Plant {page}\n\n" + "".join(text.format(page, n, page * n) for n in range(24))
        for page in range(count)
    }


@pytest.fixture
def few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of documents that make 13 batches, in the working folder."""
    (tmp_path / "anvil.toml").write_text(PLAIN)
    monkeypatch.chdir(tmp_path)
    return write(tmp_path / "docs", pages(4))


def build(folder: Path, name: str, executor: str | None = None, **more: Any) -> bytes:
    """Build in this process; the index's bytes."""
    with anvil.open(folder, folder.parent / name, config=folder.parent / "anvil.toml", **more) as opened:
        report = opened.index(executor=executor)
    assert report.embedded == report.windows and not report.failed and not report.reasons
    return (folder.parent / name).read_bytes()


class Once:
    """Progress that does something when vectors come in for the first time, while most are still to come."""

    def __init__(self, action: Any) -> None:
        self._action = action
        self.done = False

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage == "embedding" and done and not self.done:
            assert done < total / 2
            self.done = True
            self._action()


def test_killed_workers_and_other_processors_do_not_change_the_bytes(
    ray: RayCluster, few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers that are killed cost nothing but time. No key and no text is in the logs of the cluster."""
    killed: list[int] = []

    def kill() -> None:
        killed.extend(ray.workers())
        for pid in killed:
            os.kill(pid, signal.SIGKILL)

    here = build(few, "here.db")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    killing = Once(kill)
    with anvil.open(few, tmp_path / "killed.db", config=tmp_path / "anvil.toml", progress=killing) as opened:
        report = opened.index(executor=ray.address)
    assert (tmp_path / "killed.db").read_bytes() == here
    assert report.embedded == report.windows and not report.failed and not report.reasons
    assert killed and gone(killed)
    logs = [path.read_bytes() for path in ray.folder.rglob("*.*") if path.is_file() and "logs" in path.parts]
    assert logs and not any(b"sk-secret" in log or b"Valve 3-4" in log for log in logs)


def test_workers_with_another_model_are_refused(
    ray: RayCluster, few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the command, connected to the cluster's head itself, as a process on one of its machines is."""
    monkeypatch.setenv("RAY_ADDRESS", ray.head)
    bundled = Path(anvil.__file__).parent / "embedding" / "model"
    model = write(tmp_path / "model", {"model.json": '{"dimensions": 384}'})
    for name in ("model.onnx", "tokenizer.json"):
        (model / name).symlink_to(bundled / name)
    reachable = executor._ensure_reachable

    def changed_meanwhile(address: str) -> None:
        reachable(address)
        write(model, {"model.json": '{"dimensions": 384, "document_prefix": "passage: "}'})

    monkeypatch.setattr(executor, "_ensure_reachable", changed_meanwhile)
    (tmp_path / "anvil.toml").write_text('[embedding]\nmodel = "model"\n[chunking]\nmerge_short_sections = false\n')
    said = complaint("build", "--index", "other.db", "--executor", "ray://auto", cwd=tmp_path)
    assert re.search(r"the model there is another \(\w{12}\) than the one here", said)
    assert not Path("other.db").exists()


def test_a_cluster_that_goes_away_leaves_the_old_index(
    ray: RayCluster, few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", ray.head)
    monkeypatch.setenv("RAY_gcs_rpc_server_reconnect_timeout_s", "1")  # else Ray hopes for a minute
    with anvil.open(few, tmp_path / "index.db", "none") as opened:
        opened.index()
    before = (tmp_path / "index.db").read_bytes()

    def kill() -> None:
        for pid in [each for each in descendants(os.getpid()) if is_of_ray(each)]:
            os.kill(pid, signal.SIGKILL)

    began = time.monotonic()
    with pytest.raises(BuildError, match=r"ray://auto was lost during the build \(.*\)\. The index was not changed\."):
        build(few, "index.db", "ray://auto", progress=Once(kill))
    assert time.monotonic() - began < 90
    assert (tmp_path / "index.db").read_bytes() == before
    assert not any(is_of_ray(pid) for pid in descendants(os.getpid()))


def is_of_ray(pid: int) -> bool:
    """Whether a process is the part of a cluster that keeps it together."""
    return pid in processes(lambda line: line.split("\0")[0].rpartition("/")[2] in ("gcs_server", "raylet"))


def test_an_interrupt_leaves_nothing_behind(few: Path) -> None:
    write(few, pages(22))
    process = subprocess.Popen(
        [sys.executable, "-m", "anvil", "build", "--index", "never.db", "--executor", "ray://local"],
        env=environment(OPENAI_API_KEY="sk-secret"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 150
    below: list[int] = []
    while not any(is_of_ray(pid) for pid in below):
        below = descendants(process.pid)
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.2)
    assert not any(b"sk-secret" in Path(f"/proc/{pid}/environ").read_bytes() for pid in below if alive(pid))
    process.send_signal(signal.SIGINT)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 130 and messages.splitlines()[-1] == "anvil: interrupted"
    assert "Traceback" not in messages
    assert gone(below) and not Path("never.db").exists()
