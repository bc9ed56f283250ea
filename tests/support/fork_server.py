"""Starts programs of tests by forking: real processes, pipes, signals and exit codes, without the cost of the imports.

``python -m anvil`` and ``python -m mkdocs`` spend most of a short run on imports. On Linux, :func:`install` replaces
``subprocess.Popen`` by a class that asks a *fork server* for such a process. The fork server is a child of the test
process that has imported what the program needs, and forks for each start. The forked program gets the file
descriptors, the folder, the environment and the arguments of the call. It is a child of the test process, by a flag of
``clone(2)``, so waiting, signals and exit codes work as for any child. What git or a shell starts reaches the fork
server through :func:`command_line`.

A forked program ends without taking the interpreter apart, which would copy most of the memory that it shares: see
:func:`_leave`.

The processes of pytest-xdist are forked, too, by a fork server that has imported the tests: each would take 3 s for it.
Such a process forks a fork server of its own before its first thread.

Other command lines, and all starts inside :func:`cold`, are ordinary new processes. ``ANVIL_TESTS_COLD=1`` switches
the fork server off.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import ctypes
import functools
import gc
import importlib
import json
import marshal
import os
import platform
import re
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
_BUILD = (
    "anvil.build.builder",
    "anvil.text.markdown_blocks",
    "anvil.embedding.provider",
    "anvil.index_file.vector_cache",
    "anvil.ray.executor",
    "anvil.documents.git_tree",
    "encodings.utf_8_sig",
    "importlib.readers",
    "platformdirs.unix",
)
"""What every build of an index imports."""
PRELOADED = {
    "anvil": (
        "anvil.__main__",
        "anvil.api",
        "anvil.library.library",
        "anvil.context.context_queries",
        "anvil.doctor.cli",
        "anvil.server.http_transport",
        "anvil.server.stdio",
        "anvil.server.playground",
        "anvil.server.docs_toolset",
        "anvil.library.tools",
        "anvil.context.tools",
        "anvil.agents.agent_files",
        "anvil.build.shards",
        "anvil.git_drivers.merge",
        "anvil.live.memory_copy",
        "anvil.search.pages",
        "anvil.ci.jobs",
        *_BUILD,
        "anvil.git.tracked_file",
        "anvil.embedding.local",
        "anvil.documents.file_watcher",
        "anvil.index_file.publish",
        "anvil.index_file.writer",
        "anyio._backends._asyncio",
        "onnxruntime",
        "pygit2",
        "apsw",
        "numpy",
        "tokenizers",
        "httpcore2",
        "httpx2",
        "watchfiles",
        "anvil.doc_tests.testing",
        "anvil.fetch.auto_update",
        "anvil.impact.assessment",
        "anvil.lint.linter",
        "anvil.project_indexes",
        "anvil.status",
        *(f"anvil.cli.{name}" for name in ("build", "check", "init", "pages", "search")),
        *(f"anvil.{name}.cli" for name in ("agents", "ci", "context", "doc_tests", "fetch", "git_drivers", "impact")),
        *(f"anvil.{name}.cli" for name in ("library", "lint", "server")),
    ),
    "mkdocs": (
        "mkdocs.__main__",
        "mkdocs.commands.build",
        "mkdocs.commands.serve",
        "mkdocs.contrib.search",
        "mkdocs.themes.mkdocs",
        *(f"markdown.extensions.{name}" for name in ("admonition", "attr_list", "codehilite", "fenced_code")),
        *(f"markdown.extensions.{name}" for name in ("footnotes", "md_in_html", "tables")),
        *("material", "material.plugins.search.plugin", "mkdocs_macros.plugin", "mkdocs_static_i18n.plugin"),
        *(f"pymdownx.{name}" for name in ("details", "saneheaders", "slugs", "snippets", "superfences", "tabbed")),
        "mkdocs_anvil.plugin",
        "anvil.api",
        "anvil.doc_tests.testing",
        "anvil.sites.source_files",
        "encodings.unicode_escape",
        "apsw",
        "numpy",
        "selectolax.lexbor",
        *("pygments.formatters.html", "pygments.lexers.python", "pygments.lexers.shell", "pygments.styles.default"),
        *_BUILD,
    ),
    "properdocs": (
        *("properdocs.__main__", "properdocs.commands.build", "properdocs.contrib.search", "mkdocs_anvil.plugin"),
        *("anvil.api", "anvil.doc_tests.testing", "apsw", "numpy", "selectolax.lexbor", *_BUILD),
    ),
    "sphinx": (
        *("sphinx.cmd.build", "sphinx.application", "sphinx.jinja2glue", "sphinx.writers.latex"),
        *(f"sphinx.builders.{name}" for name in ("changes", "dirhtml", "dummy", "epub3", "gettext", "html", "latex")),
        *(f"sphinx.builders.{name}" for name in ("linkcheck", "manpage", "singlehtml", "texinfo", "text", "xml")),
        *(f"sphinx.domains.{name}" for name in ("c", "cpp", "javascript", "python", "rst")),
        *(f"sphinx.ext.{name}" for name in ("autodoc", "intersphinx", "mathjax", "napoleon")),
        *("pygments.lexers.shell", "sphinx.transforms.post_transforms.code", "sphinx_design.extension"),
        *(
            "docutils.core",
            "docutils.languages.en",
            "docutils.parsers.rst.languages.en",
            "docutils.writers.html5_polyglot",
        ),
        *("furo", "jinja2.sandbox", "myst_parser.sphinx_ext.main", "pydata_sphinx_theme", "pygments.lexers"),
        *("sphinx_copybutton", "sphinx_design", "sphinx_rtd_theme"),
    ),
    "pre_commit": ("pre_commit.main", "pre_commit.commands.hook_impl", "pre_commit.commands.run"),
    "anvil.library.conversion_process": (
        *("anvil.library.conversion_process", "bs4", "mammoth", "numpy", "openpyxl", "pandas", "pdfminer.high_level"),
        *("pdfplumber", "pptx", "pypdfium2"),
    ),
}
"""Program (``python -m NAME``, or a module of :class:`anvil.system.child_process.ChildProcess`) -> modules that its
fork server imports before the first fork. None may start a thread that does work, which would be missing after the
fork."""
WORKER = "xdist"
"""The name under which a process of pytest-xdist is forked."""
_WORKER = ["-u", "-c", "import sys;exec(eval(sys.stdin.readline()))"]
_CHILD = ["-I", "-X", "utf8", "-c"]
_CHILD_CODE = re.compile(r"import sys, json; sys\.path\[:\] = .*; from (\S+) import main; main\(\)")
PYTHON_VARIABLES = {
    *("PYTHONPATH", "PYTHONSAFEPATH", "PYTHONWARNINGS", "PYTHONUNBUFFERED"),
    *("PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED"),
}
"""``PYTHON*`` variables that a forked program obeys or need not obey; with any other one a program starts cold."""
MADV_COLLAPSE = 25
PR_GET_TID_ADDRESS = 40
SYS_CLONE = {"x86_64": 56, "aarch64": 220}
"""Machine -> the number of clone(2), whose last two arguments are in another order on each: both are the same here."""
CLONE_PARENT, CLONE_CHILD_CLEARTID, CLONE_CHILD_SETTID = 0x8000, 0x200000, 0x1000000
MAX_MESSAGE_BYTES = 1 << 20

_is_cold = False
_tests: tuple[str, ...] = ()
"""Files and folders of the tests that processes of pytest-xdist will run."""
_STREAMS: list[Any] = []
"""The fork server's own streams. A preloaded module may hold the buffer of one, which must not be closed."""
_exit_code: int | None = None
"""That of the forked program, when it has ended in the usual way."""


class _Program(NamedTuple):
    """A command line that can be forked: ``python [-W FILTER] -m NAME ARGUMENTS``, or that of a child process, whose
    first argument is the path of modules."""

    name: str
    arguments: list[str]
    filters: list[str]


@contextlib.contextmanager
def cold() -> Iterator[None]:
    """Programs start as new interpreters within this block."""
    global _is_cold
    before, _is_cold = _is_cold, True
    try:
        yield
    finally:
        _is_cold = before


def install(tests: Sequence[str]) -> None:
    """Let ``subprocess`` start known programs by forking. On Linux only; elsewhere nothing changes.

    Neither this process nor what is forked waits for the disk: no test takes its power away. ``tests`` are what pytest
    was asked to run.
    """
    global _tests
    os.fsync = _not_waiting
    if sys.platform == "linux" and platform.machine() in SYS_CLONE and "ANVIL_TESTS_COLD" not in os.environ:
        _tests = tuple(str(Path(each.partition("::")[0]).resolve()) for each in tests)
        subprocess.Popen = _ForkingPopen  # type: ignore[misc]


def _not_waiting(fd: object) -> None:
    """What ``os.fsync`` is in tests: thousands of new files would take 2 ms each."""


def command_line(name: str) -> list[str]:
    """The words by which git or a shell starts a known program: by forking, or else ``python -m NAME``."""
    if subprocess.Popen is not _ForkingPopen:
        return [sys.executable, "-m", name]
    return [*_client(), _server_of(name).address, name]


@functools.cache
def _client() -> list[str]:
    """The client of a fork server: compiled where a C compiler can do it, as hundreds are started."""
    source, compiler = Path(__file__).with_name("fork_client.c"), shutil.which("cc")
    folder = tempfile.TemporaryDirectory()
    _kept.append(folder)
    command = [compiler or "", "-O1", "-o", f"{folder.name}/client", str(source)]
    if compiler and subprocess.run(command, capture_output=True, check=False).returncode == 0:
        return [f"{folder.name}/client"]
    return [sys.executable, "-I", "-S", str(source.with_suffix(".py"))]


class _ForkingPopen(subprocess.Popen[Any]):
    """``subprocess.Popen`` that starts a known program by its fork server."""

    def _execute_child(self, *values: Any) -> None:
        # The order of CPython 3.10 to 3.13; later versions append.
        arguments, executable, before_exec, _, passed, cwd, environment = values[:7]
        descriptors, (_, gid, gids, uid, umask, is_session) = values[10:16], values[16:22]
        plain = executable is None and before_exec is None and not passed and gid is gids is uid is None and umask < 0
        program = _forkable(arguments, environment) if plain and not _is_cold else None
        if program is None:
            super()._execute_child(*values)  # type: ignore[misc]
            return
        stdin, _, _, stdout, _, stderr = descriptors
        request = {
            "program": tuple(program),
            "cwd": os.fspath(cwd) if cwd is not None else os.getcwd(),
            "environment": dict(os.environ if environment is None else environment),
            "session": bool(is_session),
        }
        streams = [given if given != -1 else own for own, given in enumerate((stdin, stdout, stderr))]
        self.pid = _server_of(program.name).start(request, streams)
        self._child_created = True
        self._close_pipe_fds(*descriptors)  # type: ignore[attr-defined]


def _forkable(arguments: Any, environment: Any) -> _Program | None:
    if isinstance(arguments, str | bytes | os.PathLike):
        return None
    words = [os.fspath(word) for word in arguments]
    if not all(isinstance(word, str) for word in words) or words[0] != sys.executable:
        return None
    given = os.environ if environment is None else environment
    python = {name for name in given if name.startswith("PYTHON") or name.startswith("LD_")}
    if not python <= PYTHON_VARIABLES or given.get("PYTHONPATH", str(ROOT)).split(os.pathsep)[0] != str(ROOT):
        return None
    if words[1:] == _WORKER:
        return _Program(WORKER, [], [])
    child = _CHILD_CODE.fullmatch(words[5]) if words[1:5] == _CHILD else None
    if child:
        return _Program(child[1], words[6:], []) if child[1] in PRELOADED else None
    rest, filters = words[1:], []
    while len(rest) > 2 and rest[0] == "-W":
        filters.append(rest[1])
        rest = rest[2:]
    if len(rest) < 2 or rest[0] != "-m" or rest[1] not in PRELOADED:
        return None
    return _Program(rest[1], rest[2:], filters)


class _ForkServer:
    """The test process's end of a fork server."""

    def __init__(self, connection: socket.socket, address: str) -> None:
        self.owner = os.getpid()
        self._socket = connection
        self.address = address

    def start(self, request: dict[str, Any], streams: Sequence[int]) -> int:
        """Fork; the process id of the program, which is a child of this process."""
        body = marshal.dumps(request)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", streams))]
        self._socket.sendmsg([len(body).to_bytes(4, "big")], rights)
        self._socket.sendall(body)
        reply = self._socket.recv(4, socket.MSG_WAITALL)
        assert len(reply) == 4, "the fork server has ended"
        return int.from_bytes(reply, "big")


_servers: dict[str, _ForkServer] = {}
_kept: list[Any] = []
"""The folders of sockets and the processes of the fork servers that this process has started."""


def _server_of(name: str) -> _ForkServer:
    server = _servers.get(name)
    if server is None or server.owner != os.getpid():
        server = _servers[name] = _new_server(name)
    return server


def _new_server(name: str) -> _ForkServer:
    """Start a fork server as a new interpreter."""
    from anvil.embedding.local import QUIET  # here, as most fork servers need nothing of Anvil

    folder = tempfile.TemporaryDirectory()  # for this user only, as what is started here acts for the user
    ours, theirs, listener = _sockets(f"{folder.name}/socket")
    # No thread of numpy's; no message of onnxruntime's to its makers.
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", **QUIET}
    command = [sys.executable, "-m", __name__, name, str(theirs.fileno()), str(listener.fileno())]
    with cold(), theirs, listener:
        process = subprocess.Popen(
            [*command, *(_tests if name == WORKER else ())],
            pass_fds=[theirs.fileno(), listener.fileno()],
            cwd="/",
            env=environment,
        )
    _kept.append((folder, process))
    return _ForkServer(ours, f"{folder.name}/socket")


def _sockets(address: str) -> tuple[socket.socket, socket.socket, socket.socket]:
    """Both ends of a connection, and a socket that listens at ``address``."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(address)
    listener.listen()
    return *socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM), listener


def main(name: str, connection: int, listener: int, tests: Sequence[str]) -> None:
    """Be a fork server until the test process ends. ``tests`` are those that processes of pytest-xdist run."""
    os.fsync = _not_waiting
    atexit.register(_leave)  # before any module's, so that it is the last to be called
    program = name
    with _tests_imported(tests) if name == WORKER else contextlib.nullcontext():
        if name == WORKER:  # the tests that start programs import this module
            program = "anvil" if "tests.support.programs" in sys.modules else ""
        for module in PRELOADED.get(program, ()):
            importlib.import_module(module)
    if program == "anvil":  # a program that asks or embeds would load the models for 0.2 s
        from tests.support import model_memory

        model_memory.preload()
    threads = [Path(f"/proc/self/task/{each}/comm").read_text() for each in os.listdir("/proc/self/task")]
    assert name != WORKER or len(threads) == 1, f"a module of tests has started a thread, which forks lack: {threads}"
    gc.collect()
    gc.set_threshold(20_000, 20, 20)  # a program of a test lives for less than a second
    gc.freeze()  # the forked programs share these objects' memory
    _use_huge_pages()
    with socket.socket(fileno=connection) as served, socket.socket(fileno=listener) as listening:
        folder = os.path.dirname(listening.getsockname())
        request = _serve(served, listening)
    if request is not None and request["program"][0] == WORKER:
        request = (program and _fork_own_server(program, f"{folder}/{os.getpid()}")) or request
    if request is not None:
        _become(request)


def _use_huge_pages() -> None:
    """Put this process's memory on huge pages where the kernel can: a fork copies a list of small ones."""
    libc = ctypes.CDLL(None)
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, rights, _, _, inode, *_ = line.split(maxsplit=5)
        start, end = (int(address, 16) for address in span.split("-"))
        if rights == "rw-p" and inode == "0":
            libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), MADV_COLLAPSE)


@contextlib.contextmanager
def _tests_imported(tests: Sequence[str]) -> Iterator[None]:
    """Import tests as pytest does, and what is imported within this block too, as pytest compiles some packages itself.

    A test that cannot be imported is reported by the process that runs it.
    """
    import pytest
    from _pytest.config import _prepareconfig

    config = _prepareconfig(["-s", "-p", "no:cacheprovider", *tests])  # it compiles assertions with their messages
    paths = [Path(each) for each in tests]
    files = {file for path in paths for file in (path.rglob("test_*.py") if path.is_dir() else [path])}
    for module in (".".join(file.relative_to(ROOT).with_suffix("").parts) for file in sorted(files)):
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(module)
    fill_tables_of_hypothesis()
    yield
    config._ensure_unconfigure()


def fill_tables_of_hypothesis() -> None:
    """Run a property test: the first one makes tables of all characters and of the constants of all modules, which
    takes 5 s in a new checkout. The processes that are forked have them."""
    from hypothesis import given, strategies

    @given(strategies.text())
    def any_test(text: str) -> None:
        pass

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that this is slow before a session of pytest
        any_test()


def _fork_own_server(program: str, address: str) -> dict[str, Any] | None:
    """Fork the fork server of this process for a program, which must be a child of this process.

    Returns None in this process, and a request in a process that the fork server has forked.
    """
    ours, theirs, listener = _sockets(address)
    if os.fork():
        theirs.close()
        listener.close()
        _servers[program] = _ForkServer(ours, address)
        return None
    ours.close()
    with open(os.devnull, "r+b") as nothing:  # the pipes are those of pytest-xdist, which waits until they are closed
        os.dup2(nothing.fileno(), 0)
        os.dup2(nothing.fileno(), 1)
    with theirs, listener:
        request = _serve(theirs, listener)
    if request is None:
        os._exit(0)
    return request


def _serve(connection: socket.socket, listener: socket.socket) -> dict[str, Any] | None:
    """Fork at each request. Returns a request in the process that was forked for it, None in the fork server.

    ``connection`` leads to the test process; clients that git or a shell started (fork_client) come to ``listener``.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    clients: dict[Any, tuple[int, socket.socket]] = {}  # descriptor of a client's program -> its pid, the connection
    while True:
        ready, _, _ = select.select([connection, listener, *clients], [], [])
        for ended in clients.keys() & set(ready):
            pid, client = clients.pop(ended)
            _, status = os.waitpid(pid, 0)
            with contextlib.suppress(BrokenPipeError), client:  # a test has killed the client
                client.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))
            os.close(ended)
        asking = listener.accept()[0] if listener in ready else connection if connection in ready else None
        if asking is None:
            continue
        received = _received(asking)
        if received is None and asking is connection:
            return None
        if received is None:
            asking.close()
            continue
        request, streams = received
        reading, writing = os.pipe()
        pid = _fork_sibling() if asking is connection else os.fork()
        if pid == 0:
            if request["session"]:
                os.setsid()  # before its pid is known: a process that has it may kill the session
            _close(reading, writing, *clients)
            for each in (connection, listener, asking, *(client for _, client in clients.values())):
                each.close()
            _take(streams)
            return request
        _close(writing, *streams)
        os.read(reading, 1)
        os.close(reading)
        if asking is connection:
            connection.sendall(pid.to_bytes(4, "big"))
        else:
            clients[os.pidfd_open(pid)] = pid, asking


def _fork_sibling() -> int:
    """``os.fork`` of a process whose parent is that of this one, the test process: see clone(2)."""
    libc, python = ctypes.PyDLL(None, use_errno=True), ctypes.pythonapi  # neither lets another thread run meanwhile
    thread_id = ctypes.c_void_p()  # where glibc keeps that of a thread; the kernel writes the new one there
    libc.prctl(PR_GET_TID_ADDRESS, ctypes.byref(thread_id), 0, 0, 0)
    flags = CLONE_PARENT | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | signal.SIGCHLD
    python.PyOS_BeforeFork()
    pid: int = libc.syscall(SYS_CLONE[platform.machine()], flags, None, None, thread_id, thread_id)
    if pid == 0:
        python.PyOS_AfterFork_Child()
    else:
        python.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(ctypes.get_errno(), "clone(2) cannot fork for the tests: set ANVIL_TESTS_COLD=1")
    return pid


def _received(connection: socket.socket) -> tuple[dict[str, Any], array.array[int]] | None:
    """A request and the descriptors of its standard streams; None where the other side has ended."""
    streams = array.array("i")
    head, ancillary, *_ = connection.recvmsg(4, socket.CMSG_SPACE(3 * streams.itemsize))
    if len(head) < 4:
        return None
    streams.frombytes(ancillary[0][2])
    body = connection.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)
    if len(body) < int.from_bytes(head, "big"):
        _close(*streams)
        return None
    request: dict[str, Any] = marshal.loads(body)
    name, arguments, filters = request["program"]  # those of a client are bytes
    request["program"] = (os.fsdecode(name), [os.fsdecode(each) for each in arguments], filters)
    request["cwd"] = os.fsdecode(request["cwd"])
    request["environment"] = {os.fsdecode(key): os.fsdecode(value) for key, value in request["environment"].items()}
    return request, streams


def _take(streams: array.array[int]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    _close(*streams)


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _become(request: dict[str, Any]) -> None:
    """Run the program of a request as ``python -m`` does."""
    global _exit_code
    name, arguments, filters = request["program"]
    environment = request["environment"]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(environment)
    unbuffered = bool(environment.get("PYTHONUNBUFFERED"))
    encoding = environment.get("PYTHONIOENCODING", "utf-8").partition(":")[0]
    _settle_libgit2(environment)
    _STREAMS.extend((sys.stdin, sys.stdout, sys.stderr))
    sys.stdin = open(0, encoding=encoding, closefd=False)  # noqa: SIM115 - open until the program ends
    sys.stdout = open(1, "w", encoding=encoding, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding=encoding, errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stdout.reconfigure(line_buffering=os.isatty(1) or unbuffered, write_through=unbuffered)
    sys.stderr.reconfigure(line_buffering=True)
    for stream in ("stdin", "stdout", "stderr"):
        setattr(sys, f"__{stream}__", getattr(sys, stream))
    warnings.resetwarnings()
    for rule in ("ignore", *environment.get("PYTHONWARNINGS", "").split(","), *filters):
        if rule:
            warnings._setoption(rule)  # type: ignore[attr-defined]
    sys.path[:1] = [] if "PYTHONSAFEPATH" in environment else [request["cwd"]]
    sys.argv = [name, *arguments]
    module = sys.modules.get(name)
    try:
        if name == WORKER:
            from tests.support import model_memory

            model_memory.restore()
            exec(_WORKER[-1], {"__name__": "__main__"})
        elif module is not None and "." in name:
            sys.path[:] = json.loads(arguments[0])
            module.main()
        else:
            sys.modules.pop(f"{name}.__main__", None)
            runpy.run_module(name, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        _exit_code = ended.code if isinstance(ended.code, int) else None if ended.code else 0
        raise
    _exit_code = 0


def _settle_libgit2(environment: dict[str, str]) -> None:
    """Give a preloaded libgit2 the folders of settings that it takes from the environment when it is loaded."""
    if "pygit2" in sys.modules:
        import pygit2
        from pygit2.enums import ConfigLevel

        home = environment.get("HOME", "")
        own = environment.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else "")
        if hasattr(pygit2.settings, "homedir"):  # newer than the lowest version; it is for paths that begin with ~
            pygit2.settings.homedir = home
        pygit2.settings.search_path[ConfigLevel.GLOBAL] = home
        pygit2.settings.search_path[ConfigLevel.XDG] = f"{own}/git" if own else ""


def _leave() -> None:
    """End a forked program when its threads have been waited for and its exit functions have run.

    One that has failed, or has threads that nobody waits for, ends as any interpreter does.
    """
    if _exit_code is None or threading.active_count() > 1:
        return
    gc.collect()  # an open file in a cycle is warned of, as at any end
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        return
    os._exit(_exit_code & 0xFF)


if __name__ == "__main__":
    from tests.support import fork_server  # a process of tests has this module under this name, with its fork server

    fork_server.main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
