"""Index files that are damaged or crafted, by the thousand: each must be refused, or answer as the sound one does.

Run it as ``python benchmarks/batter_store.py [--rounds N] [--seed N]``. It prints what was tried and what failed, and
exits with 1 when anything did. Four kinds:

values   every column of every table, and every key of the manifest, gets a list of bad values, in an index without and
         with the digests computed again: what a damaged disk does, and what somebody does on purpose
words    the keyword index is changed under a sound text: words of other rows, rows without words, other settings
flips    one bit is flipped, in each page of the file and at random places
renames  one process renames good and damaged files to a path while another opens it
kills    a build is killed at a random moment
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw

import anvil
from anvil.errors import AnvilError, ArtifactError
from anvil.index_file import connection, manifests, verify
from anvil.index_file.reader import Reader
from anvil.index_file.writer import checksum, document_digests
from anvil.system import safe_files

PAGES = {
    "index.md": "# Lighthouse\n\nIt watches servers and wakes people.\n\n## Install\n\nRun `pip install lighthouse`.\n",
    "guide/alerts.md": "---\ntags: [night]\n---\n# Alerts\n\nWho is called, and when.\n\n## Silence\n\nNobody.\n"
    "\n## Escalation\n\n" + "The next person is called after ten minutes. " * 20 + "\n",
    "guide/checks.md": "# Checks\n\n" + "".join(f"## Kind {n}\n\nA check of kind {n} asks.\n\n" for n in range(12)),
}
QUESTIONS = ("who is called at night", "kind of check", "install", "escalation minutes server")
BAD: tuple[Any, ...] = (
    None,
    -1,
    0,
    1,
    7,
    2**31,
    2**62,
    -(2**62),
    1.5,
    float("inf"),
    "",
    "x",
    "³",
    "-1",
    "1e3",
    "NaN",
    "NaN\0",
    "{}",
    "[]",
    "null",
    '{"a":NaN}',
    '{"a":"\\ud800"}',
    '{"a":' * 900 + "1" + "}" * 900,
    "[" * 50_000,
    '{"a":1' + "0" * 5000 + "}",
    "../../etc/passwd",
    "2026-13-45T99:99:99Z",
    "0/0",
    "9" * 400,
    b"",
    b"\x00",
    b"\xff" * 8,
    b"\x00" * 32,
    "a\0b",
)
"""Written as they are. Text that is not UTF-8 is made by a cast."""
TABLES = {
    "documents": (
        "id",
        "library",
        "file_path",
        "title",
        "file_type",
        "blob_id",
        "fingerprint",
        "content_hash",
        "size",
        "last_modified",
        "url",
        "nav_path",
        "metadata",
        "digest",
    ),
    "sections": (
        "document_id",
        "ordinal",
        "heading_path",
        "heading_level",
        "anchor",
        "start",
        "end",
        "start_line",
        "end_line",
    ),
    "chunks": (
        "id",
        "chunk_id",
        "document_id",
        "ordinal",
        "heading_path",
        "heading_level",
        "start",
        "start_line",
        "end_line",
        "page",
        "char_count",
        "title",
        "terms",
        "content",
    ),
    "windows": ("id", "start", "end", "key"),
    "vectors_rowids": ("rowid", "id", "chunk_id", "chunk_offset"),
    "vectors_chunks": ("chunk_id", "size", "validity", "rowids"),
    "vectors_vector_chunks00": ("rowid", "vectors"),
    "chunks_fts_data": ("id", "block"),
    "chunks_fts_idx": ("segid", "term", "pgno"),
    "chunks_fts_docsize": ("id", "sz"),
    "chunks_fts_config": ("k", "v"),
}
WORDS = (
    "INSERT INTO chunks_fts (chunks_fts, rowid, title, heading_path, content, terms) "
    "SELECT 'delete', id, title, heading_path, content, terms FROM chunks LIMIT 1",
    "INSERT INTO chunks_fts (rowid, content) SELECT max(id) + 1, 'night night night' FROM chunks",
    "INSERT INTO chunks_fts (rowid, content) SELECT min(id), 'zebra' FROM chunks",
    "INSERT INTO chunks_fts (chunks_fts) VALUES ('delete-all')",
    "DELETE FROM chunks_fts_docsize WHERE id = (SELECT max(id) FROM chunks_fts_docsize)",
    "UPDATE chunks_fts_docsize SET sz = (SELECT sz FROM chunks_fts_docsize LIMIT 1)",
    "UPDATE chunks_fts_data SET block = block || x'7f7f' WHERE id = 1",
    "INSERT OR REPLACE INTO chunks_fts_config VALUES ('rank', 'bm25(0, 0, 0, 9)')",
    "INSERT OR REPLACE INTO chunks_fts_config VALUES ('pgsz', 8)",
    "DELETE FROM chunks_fts_idx",
    "DELETE FROM chunks_fts_data WHERE id = (SELECT max(id) FROM chunks_fts_data)",
)
SECTIONS = (
    "INSERT INTO sections WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150000) "
    "SELECT (SELECT min(id) FROM documents), 1000 + i, 'x' || i, i, '', 0, 0, 1, 1 FROM n",
    'UPDATE sections SET "end" = "end" + 1000000',
    "UPDATE sections SET start = -5 WHERE ordinal = 0",
    "DELETE FROM sections WHERE ordinal = 0",
    "UPDATE windows SET id = id + 1",
    "DELETE FROM windows WHERE id = (SELECT min(id) FROM windows)",
    'UPDATE windows SET "end" = 10000000',
    "UPDATE chunks SET title = 'Another'",
)


class Battery:
    """A sound index, what it answers, and what became of each file that is made of it."""

    def __init__(self, folder: Path, pages: dict[str, str], provider: str) -> None:
        self.folder, self.provider = folder, provider
        self.docs = folder / "docs"
        for path, text in pages.items():
            (self.docs / path).parent.mkdir(parents=True, exist_ok=True)
            (self.docs / path).write_text(text, encoding="utf-8")
        self.sound = folder / "sound.db"
        with anvil.open(self.docs, self.sound, provider) as opened:
            opened.index()
        self.file = folder / "tried.db"
        self.expected = answers(self.sound, provider)
        self.tried: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.failures: list[str] = []

    def judge(self, kind: str, what: str, same: bool = True) -> None:
        """Open the tried file and ask it everything. ``same``: it has to answer as the sound one; else it only has to
        answer, for someone who computes all digests again makes another index, which is as sound as the first."""
        self.tried[kind] += 1
        try:
            found = answers(self.file, self.provider)
        except ArtifactError:
            self.refused[kind] += 1
            return
        except Exception as error:
            self.failures.append(f"{kind}: {what}: raised {type(error).__name__}: {str(error)[:120]}")
            return
        if same and found != self.expected:
            self.failures.append(f"{kind}: {what}: accepted, and answers otherwise")

    def crafted(self, statement: str, values: tuple[Any, ...] = (), again: bool = True) -> bool:
        """Make the tried file of the sound one by a statement; False when SQLite does not take it."""
        shutil.copyfile(self.sound, self.file)
        handle = connection.prepare(apsw.Connection(str(self.file)))
        try:
            handle.pragma("journal_mode", "off")
            handle.pragma("ignore_check_constraints", True)
            try:
                handle.execute(statement, values)
            except apsw.Error:
                return False
            if again:
                sealed(handle)
        finally:
            handle.close()
        return safe_files.sha256(self.file) != safe_files.sha256(self.sound)


def sealed(handle: apsw.Connection) -> None:
    """Compute digests, counts and checksum again, as far as the values allow it."""
    steps: tuple[Callable[[], None], ...] = (
        lambda: _redigest(handle),
        lambda: _recount(handle),
        lambda: _set(handle, "digest", manifests.digest(Reader(handle))),
        lambda: _set(handle, "checksum", checksum(handle)),
    )
    for step in steps:
        try:
            step()
        except Exception:  # what cannot be computed stays: then the file is refused for that
            continue


def _redigest(handle: apsw.Connection) -> None:
    for id_, digest in list(document_digests(handle)):
        handle.execute("UPDATE documents SET digest = ? WHERE id = ? AND typeof(digest) = 'blob'", (digest, id_))


def _recount(handle: apsw.Connection) -> None:
    for key, value in manifests.of_rows(Reader(handle)).items():
        _set(handle, key, value)


def _set(handle: apsw.Connection, key: str, value: object) -> None:
    handle.execute("UPDATE anvil_meta SET value = ? WHERE key = ? AND value <> ?", (value, key, value))


def answers(index: Path, provider: str) -> list[Any]:
    """What all tools say of an index that is opened alone; times of their own left out."""
    verify.check(index)  # so that an index that cannot be used is refused as such, and not built again
    with anvil.open(index=index, provider=provider) as opened:
        pages = opened.list_pages()
        found: list[Any] = [pages]
        for page in pages.pages:
            found.append(opened.get_page(page.file_path))
            found += [opened.get_section(page.file_path, path, True) for path in opened.headings(page.file_path)]
        for question in QUESTIONS:
            found += [opened.search(question, top_k=20).results, opened.search(question, mode="keyword").results]
        status = opened.get_status()
        found += [status.index.total_pages, status.index.total_chunks]
        with verify.open_checked(index) as reader:
            found += [reader.identities(), reader.times(), [each.metadata for each in reader.documents()]]
            found += [reader.excluded_hashes(), list(reader.vectors())]
        return found


def values(battery: Battery) -> Iterator[tuple[str, str, tuple[Any, ...]]]:
    """(what, statement, values) for every column and bad value."""
    first = {"sections": "ordinal = 0", "chunks_fts_idx": "1", "chunks_fts_config": "k = 'version'"}
    for table, columns in TABLES.items():
        where = first.get(table, f"rowid = (SELECT min(rowid) FROM {table})")
        for column in columns:
            change, place = f'UPDATE OR REPLACE {table} SET "{column}" =', f"{table}.{column}"
            for bad in BAD:
                yield f"{place} = {bad!r:.40}", f"{change} ? WHERE {where}", (bad,)
            yield f"{place} not UTF-8", f"{change} CAST(x'ff41' AS TEXT) WHERE {where}", ()
    with verify.open_checked(battery.sound) as reader:
        keys = [*reader.meta(), "shard", "commit", "left_out"]
    for key in keys:
        for bad in BAD:
            yield f"manifest {key} = {bad!r:.40}", "INSERT OR REPLACE INTO anvil_meta VALUES (?, ?)", (key, bad)


def crafted(battery: Battery, chance: random.Random | None = None, share: float = 1.0) -> None:
    """Values, words and sections."""
    for what, statement, given in values(battery):
        if chance is not None and chance.random() > share:
            continue
        for again in (True, False):
            if battery.crafted(statement, given, again):
                battery.judge("sealed" if again else "values", what, same=not again)
    for kind, statements in (("words", WORDS), ("sections", SECTIONS)):
        for statement in statements:
            if battery.crafted(statement):
                battery.judge(kind, statement[:80])


def flips(battery: Battery, chance: random.Random, rounds: int) -> None:
    """One bit in each page, and ``rounds`` more anywhere."""
    data = bytearray(battery.sound.read_bytes())
    page_size = int.from_bytes(data[16:18], "big")  # https://sqlite.org/fileformat.html#page_size
    places = [page + chance.randrange(page_size) for page in range(0, len(data), page_size)]
    places += [chance.randrange(len(data)) for _ in range(rounds)]
    for place in places:
        bit = 1 << chance.randrange(8)
        data[place] ^= bit
        battery.file.write_bytes(data)
        battery.judge("flips", f"bit {bit} of byte {place}")
        data[place] ^= bit


def renames(battery: Battery, seconds: float) -> None:
    """A reader never holds a file that would not pass its check, even while files are renamed."""
    battery.crafted("UPDATE chunks SET content = replace(content, 'a', 'e')", again=False)
    bad, path, ended = battery.file.read_bytes(), battery.folder / "renamed.db", threading.Event()
    good = battery.sound.read_bytes()
    path.write_bytes(good)

    def rename() -> None:
        fresh = battery.folder / "fresh.db"
        while not ended.is_set():
            for data in (bad, good):
                fresh.write_bytes(data)
                os.replace(fresh, path)

    thread = threading.Thread(target=rename)
    thread.start()
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            battery.tried["renames"] += 1
            try:
                with verify.open_checked(path) as reader:
                    held = "".join(text for (text,) in reader.connection.execute("SELECT content FROM chunks"))
                if "a" not in held:
                    battery.failures.append("renames: a file that was not checked was opened")
            except ArtifactError:
                battery.refused["renames"] += 1
    finally:
        ended.set()
        thread.join()


def kills(battery: Battery, chance: random.Random, rounds: int) -> None:
    """A killed build leaves the old index or the new one."""
    index = battery.folder / "killed.db"
    shutil.copyfile(battery.sound, index)
    for number in range(rounds):
        (battery.docs / "index.md").write_text(f"# Lighthouse\n\nRound {number}.\n", encoding="utf-8")
        build = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "anvil",
                "build",
                "--docs",
                str(battery.docs),
                "--index",
                str(index),
                "--provider",
                battery.provider,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(chance.random() * 1.5)
        build.send_signal(signal.SIGTERM if os.name == "nt" else signal.SIGKILL)
        build.wait()
        battery.tried["kills"] += 1
        try:
            verify.check(index)
        except AnvilError as error:
            battery.failures.append(f"kills: {error}")


def main() -> int:
    """Everything, at length."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=500, help="flips at random places (default 500)")
    options.add_argument("--kills", type=int, default=20, help="builds that are killed (default 20)")
    options.add_argument("--seconds", type=float, default=20, help="of renaming (default 20)")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--provider", default="local", help="local (default) or none")
    given = options.parse_args()
    chance = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder  # what passes here is not remembered for anybody
        battery = Battery(Path(folder), PAGES, given.provider)
        crafted(battery)
        flips(battery, chance, given.rounds)
        renames(battery, given.seconds)
        kills(battery, chance, given.kills)
    from measuring import heading, table  # the tests import this module from another folder

    print(heading())
    rows = [(kind, f"{count:,}", f"{battery.refused[kind]:,}") for kind, count in battery.tried.items()]
    print(table(("kind", "tried", "refused"), rows))
    print(f"\n{len(battery.failures)} failures")
    for failure in battery.failures:
        print(" ", failure)
    return 1 if battery.failures else 0


if __name__ == "__main__":
    sys.exit(main())
