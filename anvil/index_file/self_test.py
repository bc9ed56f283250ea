"""Tests of the installed SQLite, on a database in memory: a keyword index and vectors."""

from __future__ import annotations

import contextlib

import apsw

from anvil.index_file.connection import open_scratch


def versions() -> str:
    """The version of SQLite and of the package that contains it."""
    return f"SQLite {apsw.sqlite_lib_version()} of apsw {apsw.apsw_version()}"


def keyword_index() -> None:
    """Search a small keyword index. Raises SQLite's own error."""
    with contextlib.closing(apsw.Connection(":memory:")) as handle:
        handle.execute("CREATE VIRTUAL TABLE words USING fts5(text)")
        handle.execute("INSERT INTO words VALUES ('hammer and anvil')")
        assert handle.execute("SELECT count(*) FROM words WHERE words MATCH 'anvil'").get == 1


def vectors() -> str:
    """Compare two vectors; the version of sqlite-vec. Raises the error of loading it."""
    with contextlib.closing(open_scratch(":memory:")) as handle:
        version, distance = handle.execute("SELECT vec_version(), vec_distance_cosine('[3, 4]', '[4, 3]')").get
        assert abs(distance - 0.04) < 1e-6
        return str(version)
