"""Opening SQLite files: index files read-only and hardened, working copies writable; and which program wrote a file.

SQLite's errors become Anvil's errors here, with the path and the next step.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib.resources
import importlib.util
import os
import re
import urllib.parse
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path, PurePath
from typing import NamedTuple

import apsw

from anvil.errors import AnvilError, ArtifactMissing, ArtifactRejected, BuildError, IndexBusy
from anvil.index_file.table_rows import FORMAT_VERSION, VECTOR_COLUMN
from anvil.settings.schema import INDEX_FOLDER, INDEX_NAME, SITE_INDEX
from anvil.system import installation

MAGIC = b"SQLite format 3\0"
APPLICATION_ID = 0x414E564C  # "ANVL"
MAX_INTEGER = 1 << 53
"""The largest whole number in an index: JSON readers round larger ones, and no count is as large."""
# The two layouts were chosen by the bytes of real indexes: the small one saves them a tenth to a fifth.


class FileLayout(NamedTuple):
    """The layout of an index in its file.

    ``page_size``: bytes of a page. ``vector_group``: vectors in one blob, a multiple of 8.
    """

    page_size: int
    vector_group: int


LARGE = FileLayout(16384, 184)
"""Large pages waste less space on rows of a few thousand bytes. A blob fills whole pages."""
SMALL = FileLayout(1024, 32)
"""A small index is mostly the roots of tables, each of which takes a page, and a blob that is not full."""
SMALL_CHARACTERS = 1_000_000
"""An index with less text has the layout ``SMALL``."""


def layout(characters: int) -> FileLayout:
    return SMALL if characters < SMALL_CHARACTERS else LARGE


def schema(dimensions: int, vector_group: int = LARGE.vector_group) -> str:
    """The statements that make an empty index. With 0 ``dimensions`` there is no table of vectors."""
    text = importlib.resources.files("anvil.index_file").joinpath("schema.sql").read_text(encoding="utf-8")
    if dimensions:
        text += "\n" + vector_table(dimensions, vector_group)
    return text


def vector_table(dimensions: int, vector_group: int = LARGE.vector_group) -> str:
    """The definition of the table of vectors: a row for each window, compared by cosine."""
    return (
        f"CREATE VIRTUAL TABLE vectors USING vec0(id integer primary key, "
        f"embedding {VECTOR_COLUMN.format(int(dimensions))} distance_metric=cosine, chunk_size={int(vector_group)});\n"
    )


_OLDER_COLUMNS = {"chunks": {"chunk_id", "heading_path", "content_hash", "ordinal"}, "anvil_meta": {"key", "value"}}
"""Table -> some of its columns, in an index of the older Anvil, a program for Node.js with the same default path."""
_OLDER_LOG = "-wal"
REBUILD = "Build it again with 'anvil build --force', or fetch it again."
REBUILD_SITE = "Build its site again with 'mkdocs build', or fetch it again."
FREE_TEMPORARY = "Free some space, or name another folder with TMPDIR."
MANIFEST_TABLE = "table", "anvil_meta"

NAME_ANOTHER = "Name another, or build one in another place."
"""The next step for a file that is not an index. Anvil never replaces such a file."""


class Kind(NamedTuple):
    """A kind of file for messages: its name, and the next step if it cannot be used or cannot be written."""

    name: str
    restore: str
    elsewhere: str


INDEX = Kind("an index", "Build it again with 'anvil build --force'.", "choose another place for the index")


@contextlib.contextmanager
def translate_errors(path: str | os.PathLike[str], kind: Kind = INDEX) -> Iterator[None]:
    """Turn SQLite's exceptions about ``path`` into Anvil's."""
    try:
        yield
    except (apsw.NotADBError, apsw.CorruptError, apsw.FormatError) as error:
        raise ArtifactRejected(f"{path} is damaged or not {kind.name} ({error}).", kind.restore) from error
    except (apsw.FullError, apsw.SQLError) as error:
        if not is_full(error):
            raise
        raise BuildError(f"The disk is full while writing {path}. Free some space and try again.") from error
    except (apsw.BusyError, apsw.LockedError) as error:
        raise IndexBusy(f"Another process is writing {path}. Try again when it has finished.") from error
    except (apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError, apsw.IOError) as error:
        raise BuildError(
            f"{path} cannot be written ({error}). Check the folder's permissions, or {kind.elsewhere}."
        ) from error


@contextlib.contextmanager
def translate_scratch_errors() -> Iterator[None]:
    """Turn SQLite's exceptions about a database of :func:`open_scratch` into Anvil's."""
    try:
        yield
    except (apsw.FullError, apsw.SQLError) as error:
        if not is_full(error):
            raise
        raise BuildError(f"The disk for temporary files is full. {FREE_TEMPORARY}") from error


def is_full(error: apsw.Error) -> bool:
    """Whether a disk is full. A full disk ends a transaction. Ending it again is then the error that is raised, so the
    context of the error is looked at, too."""
    return isinstance(error, apsw.FullError) or isinstance(error.__context__, apsw.FullError)


@lru_cache(maxsize=1)  # find_spec looks through all folders of sys.path
def _sqlite_vec() -> str:
    """The path of sqlite-vec's library. Its package is not imported, because that imports numpy."""
    spec = importlib.util.find_spec("sqlite_vec")
    if spec is None or not spec.submodule_search_locations:
        raise ArtifactRejected("The package sqlite-vec is not installed. Install it with 'pip install sqlite-vec'.")
    return str(Path(spec.submodule_search_locations[0]) / "vec0")


def prepare(connection: apsw.Connection) -> apsw.Connection:
    """Add sqlite-vec to a new connection, and forbid its schema to call unsafe functions."""
    connection.enable_load_extension(True)
    connection.load_extension(_sqlite_vec())
    connection.enable_load_extension(False)  # for SQL, too: a file must not load a library of its own
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    return connection


def open_artifact(path: Path) -> apsw.Connection:
    """Open an index file for reading: immutable, defensive, its schema not trusted. The file is not checked yet.

    Raises :class:`ArtifactMissing` or :class:`ArtifactRejected`.
    """
    try:
        if not (path.is_file() or path.is_dir()) and os.path.exists(path):  # opening a pipe would wait for a writer
            raise ArtifactRejected(f"{path} is a pipe or a device, not an Anvil index. {NAME_ANOTHER}")
        # Read here: SQLite takes an empty file for an empty database, and of others says only that they are none.
        with path.open("rb") as file:
            magic = file.read(16)
    except FileNotFoundError:
        words: list[str] = []
        if path.as_posix().endswith(f"/{SITE_INDEX}"):
            words = ["--site", str(path.parent.parent)]
        elif path.parts[-2:] != (INDEX_FOLDER, INDEX_NAME):
            words = ["--index", str(path)]
        command = installation.line(["anvil", "build", *words])
        raise ArtifactMissing(f"There is no index at {path}.", f"Build it with '{command}'.") from None
    except OSError as error:
        raise ArtifactRejected(f"{path} cannot be read ({error.strerror}). Check the path.") from error
    if not magic:
        raise ArtifactRejected(f"{path} is not an Anvil index: it is empty.", "Build one with 'anvil build'.")
    if magic != MAGIC:
        raise ArtifactRejected(f"{path} is not an Anvil index. {NAME_ANOTHER}")
    with translate_errors(path):
        try:
            handle = apsw.Connection(uri(path.resolve()), flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
            connection = prepare(handle)
            connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
            connection.pragma("query_only", True)
            connection.pragma("cell_size_check", True)  # finds damage in a page when it is read, before it is followed
        except apsw.SQLError as error:  # for an address that SQLite cannot parse
            raise ArtifactRejected(f"{path} cannot be opened ({error}). Copy it to another place.") from error
        except apsw.IOError as error:
            raise ArtifactRejected(f"{path} cannot be read ({error}). Check its disk, and try again.") from error
    return connection


_BLOCK_BYTES = 1 << 20
# The types of two functions in SQLite's table of file methods.
_Read = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64)
_Size = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64))
_Pointers = ctypes.POINTER(ctypes.c_void_p)


def sha256(connection: apsw.Connection) -> tuple[str, int]:
    """SHA-256 (hex) and size in bytes of the file that a connection has open.

    Between two openings of a path another file may be renamed to it, so the file is read through SQLite's own file
    functions: https://sqlite.org/c3ref/io_methods.html
    """
    file = ctypes.c_void_p()
    if not connection.file_control("main", apsw.SQLITE_FCNTL_FILE_POINTER, ctypes.addressof(file)):
        raise AssertionError("SQLite gives no pointer to its open file")
    assert file.value is not None
    methods = ctypes.cast(ctypes.cast(file.value, _Pointers)[0], _Pointers)
    # Behind iVersion and xClose; behind xWrite, xTruncate and xSync.
    read_at, file_size = _Read(methods[2]), _Size(methods[6])
    size = ctypes.c_int64()
    if file_size(file, ctypes.byref(size)) != apsw.SQLITE_OK:
        raise apsw.IOError("the size of the file cannot be read")
    block, whole = ctypes.create_string_buffer(_BLOCK_BYTES), hashlib.sha256()
    for start in range(0, size.value, _BLOCK_BYTES):
        length = min(_BLOCK_BYTES, size.value - start)
        if read_at(file, block, length, start) != apsw.SQLITE_OK:
            raise apsw.IOError("the file cannot be read, or is shorter than it was")
        whole.update(memoryview(block)[:length])
    return whole.hexdigest(), size.value


IMMUTABLE = "?immutable=1"
"""The part of a URI by which SQLite takes the file to be unchanging, and looks for no log beside it."""


def uri(path: PurePath) -> str:
    """SQLite's URI for a file that does not change. ``path`` is absolute.

    SQLite reads the text between ``//`` and the next slash as a host, and accepts none. So the path of a Windows share
    gets an empty host: ``file:////server/share/index.db``. https://sqlite.org/uri.html
    """
    quoted = urllib.parse.quote(path.as_posix())
    return f"file:{'//' if quoted.startswith('//') else ''}{quoted}{IMMUTABLE}"


def open_scratch(path: Path | str = "", page_size: int = LARGE.page_size) -> apsw.Connection:
    """Open a writable database that only this process uses, so it needs no journal on disk.

    With the default, SQLite makes a temporary file, keeps it in memory while it is small, and removes it on closing.
    """
    connection = prepare(apsw.Connection(str(path)))
    connection.pragma("page_size", page_size)
    connection.pragma("journal_mode", "memory")  # and not "off": a transaction that fails is still taken back
    connection.pragma("synchronous", "off")
    return connection


def create_tables(connection: apsw.Connection, dimensions: int, vector_group: int = LARGE.vector_group) -> None:
    connection.pragma("application_id", APPLICATION_ID)
    connection.pragma("user_version", FORMAT_VERSION)
    with connection:
        for _ in connection.execute(schema(dimensions, vector_group)):
            pass


def fill(target: apsw.Connection, source: apsw.Connection) -> None:
    """Copy the whole content of ``source`` over that of ``target``, page by page."""
    with target.backup("main", source, "main") as backup:
        while not backup.done:
            backup.step(10_000)  # in steps, so that Ctrl-C is noticed in between


def rebuild_advice(path: Path) -> str:
    """A sentence on how to make an index again that cannot be used."""
    return REBUILD_SITE if is_marked_as_site(path) else REBUILD


def is_marked_as_site(path: Path) -> bool:
    """Whether a file says that it was built with a site. A damaged file is read as far as possible."""
    try:
        with contextlib.closing(open_artifact(path)) as handle:
            table = handle.execute("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = 'anvil_meta'").get
            if _without_comments(table) != expected_definitions(0)[MANIFEST_TABLE]:
                return False
            return bool(handle.execute("SELECT count(*) FROM anvil_meta WHERE key = 'left_out'").get)
    except (AnvilError, apsw.Error, UnicodeDecodeError):
        return False


def definitions(handle: apsw.Connection) -> dict[tuple[str, str], str | None]:
    """(kind, name) -> SQL, of all tables and indexes of a database, without comments, in which versions differ."""
    rows = handle.execute("SELECT type, name, sql FROM sqlite_schema")
    return {(kind, name): _without_comments(sql) for kind, name, sql in rows}


def _without_comments(sql: str | None) -> str | None:
    """SQL without its comments. In quotes ``--`` is no comment. Text that is left out then includes the closing quote,
    so the rest equals no expected definition."""
    return re.sub(r"[ \t]*--[^\n\0]*", "", sql) if isinstance(sql, str) else sql  # a damaged file has any value


@lru_cache(maxsize=4)
def expected_definitions(dimensions: int, vector_group: int = LARGE.vector_group) -> dict[tuple[str, str], str | None]:
    """The definitions of an index with vectors of so many dimensions."""
    with contextlib.closing(open_scratch(":memory:")) as model:
        create_tables(model, dimensions, vector_group)
        return definitions(model)


def row_rule(handle: apsw.Connection, table: str, alias: str = "", *, any_text: bool = False) -> str:
    """A condition in SQL: each value of a row has the type of its column in the definition of the table.

    Whole numbers are from 0 to :data:`MAX_INTEGER`. ``any_text``: text may have NUL, which ends it for SQLite.
    """
    rules = []
    columns = handle.execute('SELECT name, lower(type), "notnull" OR pk FROM pragma_table_info(?)', (table,))
    for name, kind, is_set in columns:
        column = f'{alias}"{name}"'
        rule = f"typeof({column}) = '{kind}'"
        if kind == "integer":
            rule += f" AND {column} BETWEEN 0 AND {MAX_INTEGER}"
        elif kind == "text" and not any_text:
            rule += f" AND instr({column}, char(0)) = 0"
        rules.append(f"({rule})" if is_set else f"({column} IS NULL OR {rule})")
    return " AND ".join(rules)


def is_of_older_anvil(path: Path) -> bool:
    """Whether the older Anvil wrote the file at ``path``.

    A build may replace it, since it is made from documents, like every index. Its tables may be in the write-ahead log.
    """
    if not path.is_file():  # SQLite would wait for a pipe
        return False
    address = uri(path.resolve())
    if _beside(path, _OLDER_LOG).exists():  # an immutable file is read without its log
        address = address.removesuffix(IMMUTABLE)
    try:
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        with contextlib.closing(apsw.Connection(address, flags=flags)) as handle:
            return not handle.pragma("application_id") and all(
                columns <= {name for (name,) in handle.execute("SELECT name FROM pragma_table_info(?)", (table,))}
                for table, columns in _OLDER_COLUMNS.items()
            )
    except (apsw.Error, UnicodeDecodeError):
        return False


def clear_older_logs(path: Path) -> None:
    """Delete the logs of an index of the older Anvil before another file is renamed to ``path``: SQLite would read them
    as logs of the new file. Raises :class:`OSError`."""
    logs = [log for log in (_beside(path, _OLDER_LOG), _beside(path, "-shm")) if log.exists()]
    if logs and is_of_older_anvil(path):
        for log in logs:
            log.unlink(missing_ok=True)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def versions() -> str:
    """The version of SQLite and of the package that contains it."""
    return f"SQLite {apsw.sqlite_lib_version()} of apsw {apsw.apsw_version()}"


def try_keyword_index() -> None:
    """Search a small keyword index, to see whether FTS5 works. Raises SQLite's own error."""
    with contextlib.closing(apsw.Connection(":memory:")) as handle:
        handle.execute("CREATE VIRTUAL TABLE words USING fts5(text)")
        handle.execute("INSERT INTO words VALUES ('hammer and anvil')")
        assert handle.execute("SELECT count(*) FROM words WHERE words MATCH 'anvil'").get == 1


def try_vectors() -> str:
    """The version of sqlite-vec, after it has compared two vectors. Raises the error of loading it."""
    with contextlib.closing(open_scratch(":memory:")) as handle:
        version, distance = handle.execute("SELECT vec_version(), vec_distance_cosine('[3, 4]', '[4, 3]')").get
        assert abs(distance - 0.04) < 1e-6
        return str(version)
