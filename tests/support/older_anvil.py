"""An index as the older Anvil writes it, the npm package @claymore-dev/anvil 0.1.12: its tables, in WAL mode."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

TABLES = """
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT, chunk_id TEXT UNIQUE NOT NULL, file_path TEXT NOT NULL,
    heading_path TEXT NOT NULL, heading_level INTEGER NOT NULL, content TEXT NOT NULL, content_hash TEXT NOT NULL,
    last_modified TEXT, char_count INTEGER, ordinal INTEGER NOT NULL
);
CREATE TABLE anvil_meta (key TEXT PRIMARY KEY, value TEXT);
INSERT INTO anvil_meta VALUES ('embedding_dimensions', '384');
"""


def write_index(path: Path, *, killed: bool = False) -> None:
    """Write such an index. ``killed``: as a killed program leaves it, with all tables still in the log beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_name("made.db")
    handle = sqlite3.connect(made)
    handle.execute("PRAGMA journal_mode = WAL")
    handle.executescript(TABLES)
    if killed:
        for suffix in ("", "-wal", "-shm"):
            shutil.copyfile(f"{made}{suffix}", f"{path}{suffix}")
        handle.close()
        made.unlink()
    else:
        handle.close()
        made.rename(path)
