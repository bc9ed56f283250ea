"""A git repository on a server: its tags, and some files of one commit, fetched by the git program with limits.

libgit2 cannot leave files out of a fetch, git can (``--filter=blob:none``): trees are fetched first, then the wanted
blobs in one request. git uses its own credentials. The objects are read, and nothing is checked out, so no hook, filter
or attribute of the repository has an effect.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from anvil.errors import FetchError, NotFound, Unreachable
from anvil.formats import version_names
from anvil.git.objects import Entry
from anvil.git.repository import Repository
from anvil.http.allowed_servers import ALLOW_DEPENDENCIES, HttpPolicy
from anvil.http.client import HttpClient, Limits
from anvil.settings import index_url
from anvil.system.child_process import kill_session
from anvil.values import Progress, silent

STAGE = "fetching kB of the repository"
"""The stage of progress reports. The total is the limit, because git does not say how many bytes will come."""
STALL_TIMEOUT_S = 120.0
"""Seconds without a new byte after which a fetch ends with an error."""
POLL_S = 0.05
MAX_TAGS = 200_000
MAX_NAMED_TAGS = 3
"""Tags that an error names."""
MAX_LIST_MEMORY_KB = 1_000_000
"""Memory of git while it lists tags. It holds all of them before it prints one; this is enough for three million."""
_LIMITED = 'ulimit -v "$0" 2>/dev/null; exec "$@"'
"""A script for sh: run a program with a limit on memory, in kB, if the system has such limits."""
_NO_MEMORY = ("out of memory", "cannot allocate memory")
_TAG_LINE = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64})\trefs/tags/([^\x00-\x20\x7f]+?)(\^\{\})?")
_LOCAL = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES")
"""Variables that git sets for hooks. They would lead git to another repository."""
_FAILURES: tuple[tuple[str, type[FetchError], str], ...] = (
    (
        "no space left|disk quota exceeded",
        FetchError,
        "The disk is full: git cannot write to {folder}, where it keeps what it fetches from {url}. Free some space, "
        "or set TMPDIR to a folder on another disk.",
    ),
    (
        "authentication failed|could not read (?:username|password)|permission denied|returned error: 401|http 401",
        FetchError,
        "{url} needs credentials. Give them to git (git credential, or an SSH key).",
    ),
    (
        "returned error: 403|http 403",
        FetchError,
        "{url} refuses access (status 403). Give git credentials that may read it (git credential, or an SSH key), and "
        "check that no proxy forbids it.",
    ),
    (
        "could not resolve host|failed to connect|timed out|connection refused|no route to host|network is unreachable",
        Unreachable,
        "{url} cannot be reached. Check the network.",
    ),
    (
        "early eof|transfer closed|hung up|rpc failed|returned error: (?:5|429)",
        Unreachable,
        "{url} broke off, or has an error. Try again later.",
    ),
    ("transport .*not allowed", FetchError, "{url} cannot be used: the protocols that are allowed are {protocols}."),
    (
        "not found|does not exist|does not appear to be a git",
        FetchError,
        "There is no repository at {url}. Check the address.",
    ),
)
"""(words in git's message, error, message). The first row that fits counts: after a full disk, a refusal or a failed
connection git also says that the server hung up."""
# No setting of the user and no file of the repository may start a program or another request. Redirects are followed
# earlier, with a check of each host (:func:`checked`).
_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.protectNTFS": "true",
    "credential.interactive": "false",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "http.followRedirects": "false",
    "maintenance.auto": "false",
    "protocol.version": "2",
    "submodule.recurse": "false",
}


_ADVICE = "Check the address, or take the documentation from elsewhere."


class _TooLarge(FetchError):
    """The server sends more than is allowed."""


class RemoteRepository:
    """The repository at ``url``; a context manager with a temporary folder.

    ``protocols``: those that git may use (``https``, ``ssh``, ...). ``settings``: further settings for git, such as the
    address of a checked host name. ``max_bytes``: the limit for everything that is fetched.
    """

    def __init__(
        self,
        url: str,
        protocols: Sequence[str],
        settings: Mapping[str, str] | None = None,
        max_bytes: int = 500_000_000,
        progress: Progress = silent,
    ) -> None:
        program = shutil.which("git")
        if program is None:
            raise FetchError("The program git is needed to fetch documentation from a repository. Install git.")
        self._program = program
        self.url = url
        self.shown = index_url.without_secrets(url)
        self._protocols = ":".join(protocols)
        self._settings = {**_SETTINGS, **(settings or {})}
        self._max_bytes = max_bytes
        self._progress = progress
        self._stack = contextlib.ExitStack()
        self.folder = Path()
        self._commit = ""
        self._absent: set[str] = set()
        self._advice = _ADVICE

    def __enter__(self) -> RemoteRepository:
        temporary = tempfile.TemporaryDirectory(prefix="anvil-git-", ignore_cleanup_errors=True)
        self.folder = Path(os.path.realpath(self._stack.enter_context(temporary)))
        self._run("init", "--quiet", "--template=", "--object-format=sha1", ".")
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def tags(self) -> dict[str, str]:
        """Tag -> commit."""
        tags: dict[str, str] = {}
        listed = self._run("ls-remote", "--tags", "--", self.url, memory_kb=MAX_LIST_MEMORY_KB)
        for line in listed.decode("utf-8", "replace").splitlines():
            match = _TAG_LINE.fullmatch(line)
            if match and (match[3] or match[2] not in tags) and len(tags) < MAX_TAGS:
                tags[match[2]] = match[1]  # of an annotated tag a line with ^{} follows, which has the commit
        return tags

    def tag_of(self, name: str, version: str, named: str | None = None) -> tuple[str, str]:
        """The tag of a version of a package, and its commit. ``name``: the package's. ``named``: the tag that the user
        gave. Raises :class:`NotFound` with the closest tags."""
        tags, wanted = self.tags(), named or version
        tag = named or version_names.find_tag(tags, name, version)
        if tag is None or tag not in tags:
            near = ", ".join(version_names.closest_tags(tags, name, wanted, MAX_NAMED_TAGS))
            hint = f"The closest are {near}. Name one with --tag." if near else "It has no tags."
            raise NotFound(f"There is no tag for {wanted} in {self.shown}. {hint}")
        return tag, tags[tag]

    def fetch(self, commit: str, tag: str | None = None) -> None:
        """Fetch a commit and its trees. ``tag``: for servers that do not send a commit by its id."""
        self._advice = "Its server cannot send a part of a repository, so all files came. Raise the limit."
        options = ("--depth=1", "--no-tags", "--filter=blob:none", "--", self.url)
        try:
            self._fetch(*options, f"+{commit}:refs/anvil")
        except (_TooLarge, Unreachable):
            raise  # fetching by the tag would fail, too, and git left lock files when it was stopped
        except FetchError:
            if tag is None:
                raise
            self._fetch(*options, f"+refs/tags/{tag}:refs/anvil")
        fetched_commit = self._run("rev-parse", "refs/anvil^{commit}").decode("ascii").strip()
        if fetched_commit != commit:
            raise self.moved_tag_error(tag or "", fetched_commit, commit)
        self._run("update-ref", "--no-deref", "HEAD", commit)
        self._commit = commit
        missing = self._run("rev-list", "--objects", "--missing=print", "--no-object-names", "HEAD").decode("ascii")
        self._absent = {line[1:] for line in missing.splitlines() if line.startswith("?")}
        self._advice = "Raise the limit, or name a smaller folder with --folder."

    def moved_tag_error(self, tag: str, here: str, commit: str) -> FetchError:
        """The error for a tag that leads to the commit ``here`` instead of ``commit``."""
        return FetchError(
            f"The tag {tag} of {self.shown} is now the commit {here[:12]}, not {commit[:12]}. "
            "Run 'anvil deps update' to take it, after you have seen why it moved."
        )

    def tree(self) -> dict[str, Entry]:
        """Path -> entry of all files of the commit that was fetched."""
        return self.repository().tree(self._commit, ".")

    def fetch_blobs(self, ids: Iterable[str]) -> None:
        """Fetch the blobs with these ids that are not here yet, in one request."""
        wanted = sorted(set(ids) & self._absent)
        if wanted:
            text = "".join(f"{blob}\n" for blob in wanted).encode("ascii")
            options = ("--no-tags", "--no-write-fetch-head", "--filter=blob:none", "--stdin")
            # "noop": git need not tell the server which commits are here, because it asks for blobs by their ids
            noop = ("-c", "fetch.negotiationAlgorithm=noop")
            self._fetch(*options, "--", self.url, settings=noop, stdin=text)
            self._absent.difference_update(wanted)

    def has(self, blob: str) -> bool:
        """Whether a blob of the commit is here."""
        return blob not in self._absent

    def repository(self) -> Repository:
        """The fetched objects as a repository for libgit2, without the mark of a partial one, which libgit2 refuses."""
        with contextlib.suppress(FetchError):  # there is no mark if the server sent everything
            self._run("config", "--remove-section", "extensions")
        self._run("config", "core.repositoryFormatVersion", "0")
        repository = Repository.discover(self.folder)
        assert repository is not None
        return repository

    # --- the program -----------------------------------------------------------------------------------------

    def _fetch(self, *arguments: str, settings: Sequence[str] = (), stdin: bytes = b"") -> None:
        self._run(*settings, "fetch", "--quiet", "--no-recurse-submodules", *arguments, stdin=stdin)

    def _run(self, *arguments: str, stdin: bytes = b"", memory_kb: int | None = None) -> bytes:
        """Run git and return its output. ``memory_kb``: its limit of memory. Raises :class:`FetchError`."""
        options = [word for key, value in self._settings.items() for word in ("-c", f"{key}={value}")]
        shell = shutil.which("sh") if memory_kb is not None and os.name == "posix" else None
        limit = [] if shell is None else [shell, "-c", _LIMITED, str(memory_kb)]
        environment = {name: value for name, value in os.environ.items() if name not in _LOCAL}
        environment |= {"GIT_ALLOW_PROTOCOL": self._protocols, "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}
        environment["LC_ALL"] = "C"  # messages in English, for _error
        # Files instead of pipes: a full pipe would stop git while this thread watches the size of the folder.
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as data:
            data.write(stdin)
            data.seek(0)
            process = subprocess.Popen(
                [*limit, self._program, *options, *arguments],
                cwd=self.folder,
                stdin=data,
                stdout=output,
                stderr=errors,
                env=environment,
                start_new_session=True,  # so that the programs which git starts can be ended with it
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
            try:
                self._watch(process, output.fileno())
            finally:
                if process.poll() is None:
                    kill_session(process)
                process.wait()
            output.seek(0)
            errors.seek(0)
            if process.returncode:
                text = errors.read(20_000).decode("utf-8", "replace")
                if limit and any(sign in text.lower() for sign in _NO_MEMORY):
                    raise _TooLarge(f"{self.shown} lists more tags than git can hold in {memory_kb} kB. {_ADVICE}")
                raise self._error(text)
            return output.read()

    def _watch(self, process: subprocess.Popen[bytes], output: int) -> None:
        """Wait for git, within the limits on size and on time without progress."""
        size, changed = -1, time.monotonic()
        pause = 0.002
        runs = True
        while runs:
            time.sleep(pause)
            pause = min(pause * 2, POLL_S)
            runs = process.poll() is None  # before the size is taken, so that its last bytes count, too
            now, before = time.monotonic(), size
            size = _size(self.folder) + os.fstat(output).st_size
            if size > self._max_bytes:
                raise _TooLarge(
                    f"{self.shown} sends more than {self._max_bytes:,} bytes (deps.max_fetch_bytes). {self._advice}"
                )
            if size != before:
                changed = now
                self._progress(STAGE, size // 1000, self._max_bytes // 1000)
            elif runs and now - changed > STALL_TIMEOUT_S:
                raise Unreachable(f"{self.shown} sent nothing for {STALL_TIMEOUT_S:.0f} s. Try again later.")

    def _error(self, text: str) -> FetchError:
        """The error for git's message. The message itself is not shown, because it may have the URL with a password."""
        # Lines of the server are left out: they can have any words, such as those about a full disk, which is its own.
        own_words = "\n".join(line for line in text.lower().splitlines() if not line.startswith("remote:"))
        values = {"url": self.shown, "folder": self.folder.parent, "protocols": self._protocols.replace(":", ", ")}
        for words, error, message in _FAILURES:
            if re.search(words, own_words):
                return error(message.format(**values))
        last = next((line for line in reversed(text.splitlines()) if line.startswith("fatal:")), "").strip()
        reason = re.sub(r"\S*://\S*", self.shown, last.removeprefix("fatal:").strip())[:200]
        return FetchError(f"git cannot fetch from {self.shown}{f' ({reason})' if reason else ''}. Check the address.")


def _size(folder: Path) -> int:
    """Bytes of the files below a folder, in which git may rename some meanwhile."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_size
    return total


RESOLVE_TIMEOUT_S = 10.0
_PORTS = {"https": 443, "http": 80, "ssh": 22}


def checked(url: str, policy: HttpPolicy, allow_local: bool) -> tuple[str, tuple[str, ...], Mapping[str, str]]:
    """(URL after redirects, protocols, settings) for git to fetch from ``url``.

    The host of an https URL is resolved here, and git connects to the IP address that was checked. ``allow_local``:
    whether ``file://`` can be used. Raises :class:`FetchError` if the URL is not valid or not allowed.
    """
    parts = index_url.split(url)
    if not parts.scheme:
        raise FetchError(f"{url[:100]} is not the address of a repository. Write https://HOST/PATH.")
    if parts.scheme == "file" and allow_local:
        return url, ("file",), {}
    if parts.scheme == "ssh" and parts.hostname:
        # raises for a host that is not allowed
        policy.resolve(parts.hostname, parts.port or _PORTS["ssh"], RESOLVE_TIMEOUT_S)
        return url, ("ssh",), {}
    if parts.scheme not in ("https", "http"):
        reason = ALLOW_DEPENDENCIES if parts.scheme == "file" else "Use https or ssh."
        raise FetchError(f"A repository at {parts.scheme}: is not fetched. {reason}")
    final = _redirect_target(url, policy)
    parts = urllib.parse.urlsplit(final)
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    address = policy.resolve(host, port, RESOLVE_TIMEOUT_S)
    settings = {} if address is None else {"http.curloptResolve": f"{host}:{port}:{address}"}
    return final, (parts.scheme,), settings


def _redirect_target(url: str, policy: HttpPolicy) -> str:
    """The URL to which a server redirects git, such as that of a renamed repository; else ``url``."""
    advertisement = "/info/refs?service=git-upload-pack"
    with HttpClient(Limits(), policy=policy) as http, http.get(url.rstrip("/") + advertisement) as reply:
        moved = reply.url.removesuffix(advertisement)
    return moved if reply.status == 200 and moved != reply.url else url
