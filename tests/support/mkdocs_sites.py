"""Sites for tests, built and served by the real MkDocs in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import yaml

from anvil.index_file import verify
from anvil.index_file.reader import Reader
from anvil.index_file.table_rows import StoredDocument
from tests.conftest import write
from tests.support import fork_server
from tests.support.programs import environment, script

SITE = "https://docs.example.com/"


def make(folder: Path, pages: dict[str, str], hook: str = "", anvil: object = None, **more: object) -> Path:
    """Write a site's pages, its ``mkdocs.yml`` and, where given, a hook of its own; the folder."""
    write(folder / "docs", pages)
    options = {"embedding": {"provider": "none"}, **(anvil if isinstance(anvil, dict) else {})}
    config: dict[str, object] = {"site_name": "Lighthouse", "site_url": SITE, "plugins": ["search", {"anvil": options}]}
    if hook:
        (folder / "hook.py").write_text(hook, encoding="utf-8")
        config["hooks"] = ["hook.py"]
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(config | more, sort_keys=False), encoding="utf-8")
    return folder


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "mkdocs", *arguments]


def _surroundings(**more: str) -> dict[str, str]:
    return {**environment(**more), "PYTHONWARNINGS": "ignore", "NO_MKDOCS_2_WARNING": "1"}


def build(folder: Path, *arguments: str, code: int = 0, **environ: str) -> str:
    """Run ``mkdocs build``. Returns its output."""
    done = subprocess.run(
        _command("build", *arguments),
        cwd=folder,
        env=_surroundings(**environ),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stderr


def mike(folder: Path, *arguments: str) -> None:
    """Run ``mike``, which finds a generator on the path: ``mkdocs``, and from version 2.2 on ``properdocs`` if that is
    installed."""
    with tempfile.TemporaryDirectory() as programs:
        for name in ("mkdocs", "properdocs"):
            script(Path(programs, name), f'exec {shlex.join(fork_server.command_line(name))} "$@"')
        _mike(folder, arguments, os.pathsep.join([programs, os.environ["PATH"]]))


def _mike(folder: Path, arguments: Sequence[str], path: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from mike.driver import main; raise SystemExit(main())", *arguments],
        cwd=folder,
        env=_surroundings(PATH=path),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def index(folder: Path, path: str = "site/anvil/index.db") -> Iterator[Reader]:
    """The index in the built site, checked."""
    with verify.open_checked(folder / path) as reader:
        yield reader


def documents(folder: Path, path: str = "site/anvil/index.db") -> dict[str, StoredDocument]:
    """The documents of the built site's index by path."""
    with index(folder, path) as reader:
        return {each.file_path: each for each in reader.documents()}


def text(folder: Path, page: str) -> str:
    """The text of a page in the index of the built site."""
    with index(folder) as reader:
        document = reader.document(page)
        assert document is not None
        return "".join(chunk.content for chunk in reader.page_chunks(document.id))


def anchors(folder: Path, page: str) -> list[tuple[str, str]]:
    """(breadcrumb, anchor) of a page's sections in the index of the built site."""
    with index(folder) as reader:
        document = reader.document(page)
        assert document is not None
        return [(section.heading_path, section.anchor) for section in reader.sections(document.id)]


class Served:
    """A running ``mkdocs serve``: its output, and the files that it serves."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process, self.port = process, port
        self.said: list[str] = []
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)

    def close(self) -> None:
        """Read the rest of the output."""
        self._reading.join(20)
        assert self.process.stderr is not None
        self.process.stderr.close()

    def get(self, path: str) -> bytes:
        """A file of the site."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{path}", timeout=20) as reply:
            found: bytes = reply.read()
        return found

    def digest(self) -> str:
        """The digest that the site's manifest names."""
        return str(json.loads(self.get("anvil/index.json"))["digest"])

    def until(self, holds: Callable[[], bool], seconds: float = 60) -> None:
        """Wait until a condition is true; fail with the output of MkDocs."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert self.process.poll() is None, "".join(self.said)
            with contextlib.suppress(OSError, ValueError):
                if holds():
                    return
            time.sleep(0.1)
        raise AssertionError("".join(self.said))

    def builds(self) -> int:
        """The number of finished builds. MkDocs does not say again "built in 0.09 seconds" after as long a build."""
        return sum("Serving on" in line or "Reloading browsers" in line for line in self.said)


@contextlib.contextmanager
def serve(folder: Path, *arguments: str) -> Iterator[Served]:
    """Run ``mkdocs serve`` until the block ends."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        _command("serve", "--dev-addr", f"127.0.0.1:{port}", *arguments),
        cwd=folder,
        env=_surroundings(PYTHONUNBUFFERED="1"),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
    )
    served = Served(process, port)
    try:
        served.until(lambda: any("Serving on" in line for line in served.said))
        yield served
    finally:
        process.send_signal(signal.SIGINT) if os.name != "nt" else process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        served.close()
