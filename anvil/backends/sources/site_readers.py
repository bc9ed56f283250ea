"""Processes that read the HTML files of a large site at the same time. :func:`main` runs in each of them."""

from __future__ import annotations

import dataclasses
import json
import os
import queue
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from anvil.backends.child_process import ChildProcess, take_over_pipes, write_message
from anvil.core.html.content import PageRules
from anvil.core.markdown.rendered_anchors import Heading
from anvil.core.site import reading
from anvil.core.site.pages import PageFacts
from anvil.core.site.reading import ReadFile

MIN_FILES = 400
"""Fewer files are read by this process, since starting others takes longer."""
MAX_PROCESSES = 8
_BATCH = 16
_BATCHES_WAITING = 64
_LINE_BYTES = 1000
_CLOSE_TIMEOUT_S = 5.0


class Answer(NamedTuple):
    """A file that was read: the digest of the bytes that were read, and what they say; None for a missing file."""

    path: str
    digest: str
    read: ReadFile | None


def read_one(folder: Path, path: str, twin: str | None, rules: PageRules) -> Answer:
    """Read a file of a site, with its Markdown at ``twin``."""
    try:
        data = (folder / path).read_bytes()
    except OSError:
        return Answer(path, "", None)
    try:
        said = None if twin is None else (folder / twin).read_bytes()
    except OSError:  # deleted since it was listed
        said = None
    return Answer(path, reading.digest_of(data, said), reading.read_file(data, said, rules))


def read_all(folder: Path, files: Sequence[tuple[str, str | None]], rules: PageRules) -> Iterator[Answer]:
    """Read files, each with the path of its Markdown or None, in order. Large numbers are read by several processes."""
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

        def ask(batch: Sequence[tuple[str, str | None]]) -> list[Answer]:
            child = idle.get()
            try:
                child.send({"folder": str(folder.absolute()), "rules": rules, "files": batch})
                _, data = child.receive(_LINE_BYTES)
                return [_answer(values) for values in json.loads(data or b"")]
            except (OSError, EOFError, ValueError):  # it was killed
                return [read_one(folder, path, twin, rules) for path, twin in batch]
            finally:
                idle.put(child)

        pool = stack.enter_context(ThreadPoolExecutor(count, thread_name_prefix="anvil-site"))
        batches = [files[first : first + _BATCH] for first in range(0, len(files), _BATCH)]
        for first in range(0, len(batches), _BATCHES_WAITING):
            for answers in pool.map(ask, batches[first : first + _BATCHES_WAITING]):
                yield from answers


def _answer(values: list[Any]) -> Answer:
    path, digest, read = values
    if read is None:
        return Answer(path, digest, None)
    facts, markdown, headings = read
    return Answer(path, digest, ReadFile(PageFacts(*facts), markdown, tuple(Heading(*each) for each in headings)))


def main() -> None:
    """Answer the requests of :func:`read_all` until its pipe is closed."""
    requests, answers = take_over_pipes()
    for request in requests:
        rules = PageRules(*(tuple(selectors) for selectors in request["rules"]))
        folder = Path(request["folder"])
        values = []
        for path, twin in request["files"]:
            answer = read_one(folder, path, twin, rules)
            read = answer.read and [dataclasses.astuple(answer.read.facts), answer.read.markdown, answer.read.headings]
            values.append([path, answer.digest, read])
        write_message(answers, {}, json.dumps(values).encode("ascii"))
