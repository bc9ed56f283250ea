"""Whether SQLite can do here what an index needs, tried on a database in memory."""

from __future__ import annotations

import contextlib

import apsw

from anvil.backends.store.connection import open_scratch


def versions() -> str:
    """SQLite's version, and that of the package which carries it."""
    return f"SQLite {apsw.sqlite_lib_version()} of apsw {apsw.apsw_version()}"


def keyword_index() -> None:
    """Search a keyword index. Raises what SQLite raises when it has none."""
    with contextlib.closing(apsw.Connection(":memory:")) as handle:
        handle.execute("CREATE VIRTUAL TABLE words USING fts5(text)")
        handle.execute("INSERT INTO words VALUES ('hammer and anvil')")
        assert handle.execute("SELECT count(*) FROM words WHERE words MATCH 'anvil'").get == 1


def vectors() -> str:
    """Compare two vectors; sqlite-vec's version. Raises what loading it raises."""
    with contextlib.closing(open_scratch(":memory:")) as handle:
        version, distance = handle.execute("SELECT vec_version(), vec_distance_cosine('[3, 4]', '[4, 3]')").get
        assert abs(distance - 0.04) < 1e-6
        return str(version)
