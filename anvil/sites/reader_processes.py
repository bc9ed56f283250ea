"""Reading of a site's HTML files, in several processes at the same time if they are many.

:func:`main` runs in each of these processes.
"""

from __future__ import annotations

import hashlib
import json
import os
import queue
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from anvil.sites import page_addresses
from anvil.sites.html_page import linked_twins, read_with_twin
from anvil.sites.page_content import PageRules
from anvil.sites.site_listing import recorded_paths
from anvil.sites.site_pages import PageFacts
from anvil.system.child_process import ChildProcess, take_over_pipes, write_message
from anvil.text.section_places import Heading

MIN_FILES = 400
"""Files from which several processes are used. Fewer are read sooner than other processes start."""
MAX_PROCESSES = 8
_BATCH = 16
"""Files in a request to a process."""
_BATCHES_WAITING = 64
"""Batches whose answers may be in memory at the same time."""
_LINE_BYTES = 1000
_CLOSE_TIMEOUT_S = 5.0


class Loaded(NamedTuple):
    """The bytes of an HTML file, and those of the page's Markdown file, which is called its twin.

    ``linked``: the paths that the twin may have by a link in the HTML. ``twin``: the path of the twin that was loaded;
    None without one.
    """

    data: bytes
    twin_data: bytes | None
    linked: tuple[str, ...]
    twin: str | None

    @property
    def digest(self) -> str:
        """The SHA-256 (hex) of the bytes of both files."""
        digest = hashlib.sha256(self.data)
        if self.twin_data is not None:
            digest.update(b"\0twin" + self.twin_data)
        return digest.hexdigest()


class AnsweredFile(NamedTuple):
    """The result of reading an HTML file.

    ``digest``: :attr:`Loaded.digest`; empty if the file could not be read, and then ``facts`` has a problem. ``linked``
    and ``twin``: as in :class:`Loaded`. ``text``: packed Markdown and headings, see :func:`unpacked`; empty for a page
    without text.
    """

    path: str
    digest: str
    facts: PageFacts
    linked: tuple[str, ...] = ()
    twin: str | None = None
    text: bytes = b""


def load(folder: Path, path: str, twin: str | None) -> Loaded:
    """Load an HTML file and its twin: the Markdown file that it links to, else ``twin``. Files that Anvil wrote are no
    twins. Raises :class:`OSError` if the HTML file cannot be read."""
    data = (folder / path).read_bytes()
    linked = linked_twins(data, path)
    if linked:
        written_by_anvil = recorded_paths(folder)
        linked = tuple(each for each in linked if each not in written_by_anvil)
    for candidate in (next((each for each in linked if is_inside(folder, each)), None), twin):
        if candidate is not None:
            with suppress(OSError):  # it was deleted after it was listed
                return Loaded(data, (folder / candidate).read_bytes(), linked, candidate)
    return Loaded(data, None, linked, None)


def is_inside(folder: Path, path: str) -> bool:
    """Whether a path is a file in a folder, and no part of it is a symbolic link. The file system is not asked for a
    path to elsewhere: on Windows that alone connects to a network share."""
    if not page_addresses.is_plain(path):
        return False
    real = os.path.realpath(folder)
    file = os.path.join(real, *path.split("/"))
    return Path(file).is_relative_to(real) and os.path.realpath(file) == file and os.path.isfile(file)


def read_one(folder: Path, path: str, twin: str | None, rules: PageRules) -> AnsweredFile:
    """Read an HTML file. ``twin``: the path of the Markdown file with the same name, or None."""
    try:
        loaded = load(folder, path, twin)
    except FileNotFoundError:
        return AnsweredFile(path, "", PageFacts(problem="it was deleted while the site was read"))
    except OSError as error:
        return AnsweredFile(path, "", PageFacts(problem=f"it cannot be read ({error.strerror})"))
    markdown, headings, facts = read_with_twin(loaded.data, loaded.twin_data, rules)
    text = zlib.compress(json.dumps([markdown, headings]).encode("ascii"), 1) if markdown else b""
    return AnsweredFile(path, loaded.digest, facts, loaded.linked, loaded.twin, text)


def unpacked(text: bytes) -> tuple[str, tuple[Heading, ...]]:
    """The Markdown and headings in :attr:`AnsweredFile.text`."""
    markdown, headings = json.loads(zlib.decompress(text))
    return markdown, tuple(Heading(*each) for each in headings)


def read_all(folder: Path, files: Sequence[tuple[str, str | None]], rules: PageRules) -> Iterator[AnsweredFile]:
    """Read HTML files in order. ``files``: (path, path of the Markdown file with the same name or None)."""
    count = min(os.cpu_count() or 1, MAX_PROCESSES)
    if len(files) < MIN_FILES or count < 2:
        yield from (read_one(folder, path, twin, rules) for path, twin in files)
        return
    with ExitStack() as stack:
        idle: queue.SimpleQueue[ChildProcess] = queue.SimpleQueue()
        for _ in range(count):
            child = ChildProcess(__name__, env=os.environ)
            stack.callback(child.close, _CLOSE_TIMEOUT_S)
            idle.put(child)

        def ask(batch: Sequence[tuple[str, str | None]]) -> list[AnsweredFile]:
            child = idle.get()
            try:
                child.send({"folder": str(folder.absolute()), "rules": rules, "files": batch})
                _, data = child.receive(_LINE_BYTES)
                return _answers(data or b"")
            except (OSError, EOFError, ValueError):  # the process was killed: read the batch here
                return [read_one(folder, path, twin, rules) for path, twin in batch]
            finally:
                idle.put(child)

        pool = stack.enter_context(ThreadPoolExecutor(count, thread_name_prefix="anvil-site"))
        batches = [files[first : first + _BATCH] for first in range(0, len(files), _BATCH)]
        for first in range(0, len(batches), _BATCHES_WAITING):
            for answers in pool.map(ask, batches[first : first + _BATCHES_WAITING]):
                yield from answers


def _answers(data: bytes) -> list[AnsweredFile]:
    return [
        AnsweredFile(path, digest, PageFacts.of_json(facts), tuple(linked), twin, b64decode(text))
        for path, digest, facts, linked, twin, text in json.loads(data)
    ]


def main() -> None:
    """Answer the requests of :func:`read_all` until the pipe is closed."""
    requests, pipe = take_over_pipes()
    for request in requests:
        rules = PageRules(*(tuple(selectors) for selectors in request["rules"]))
        folder = Path(request["folder"])
        answers = [read_one(folder, path, twin, rules) for path, twin in request["files"]]
        values = [[*answer[:-1], b64encode(answer.text).decode("ascii")] for answer in answers]
        write_message(pipe, {}, json.dumps(values).encode("ascii"))
