"""The configuration, the documents, and the permissions of the folders."""

from __future__ import annotations

import difflib
import errno
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from anvil.context.settings import CONTEXT_NAME, ContextOptions, load_context
from anvil.doctor.examined_project import ExaminedProject, Result, Verdict
from anvil.documents.file_selection import no_page
from anvil.errors import AnvilError, GitError, NotOwned, SourceError
from anvil.settings.files import nearest_config
from anvil.settings.layers import variables
from anvil.wording import counted

NETWORK_FILE_SYSTEMS = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "9p", "afs"})
"""File systems of other machines, by the names that Linux gives them."""
MAX_SKIPPED_NAMED = 3
"""Skipped files that a finding names."""


def configuration(project: ExaminedProject) -> Iterator[Result]:
    """The configuration file, and ANVIL_ variables with a misspelled name."""
    known = variables()
    for name in sorted(os.environ):
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.9) if name.startswith("ANVIL_") else []
        if near and name not in known:
            text = f"{name} in the environment sets nothing. Did you mean {near[0]}?"
            yield Result("wrong", text, f"unset {name}" if os.name != "nt" else f"set {name}=")
    if project.problem is not None:
        yield Result("wrong", f"{project.problem} The other checks use the defaults.")
        return
    given = dict(project.given).get("--config")
    file = Path(given) if given else nearest_config(Path.cwd())
    if file is None:
        yield Result("ok", "There is no configuration file: the defaults are used.")
    else:
        yield Result("ok", f"{project.shown(file)} is valid.")


def documents(project: ExaminedProject) -> Iterator[Result]:
    """The pages that would be indexed."""
    try:
        scan = project.documents.scan()
    except SourceError as error:
        yield Result("note" if project.has_index else "wrong", str(error))
        return
    shown, count = project.shown(project.folder), len(scan.entries)
    if not count:
        yield Result("wrong", no_page(shown, project.config.source.include))
        return
    text = f"{shown} has {counted(count, 'page')}."
    if not scan.skipped:
        yield Result("ok", text)
        return
    few = "; ".join(f"{skipped.path} ({skipped.reason})" for skipped in scan.skipped[:MAX_SKIPPED_NAMED])
    more = f"; and {len(scan.skipped) - MAX_SKIPPED_NAMED} more" if len(scan.skipped) > MAX_SKIPPED_NAMED else ""
    count_skipped = counted(len(scan.skipped), "file")
    yield Result("note", f"{text} {count_skipped} cannot be read: {few}{more}.")


def writable(project: ExaminedProject) -> Iterator[Result]:
    """Whether the folders that Anvil writes to can be written: the index's own, and the user's cache."""
    from anvil.index_file import verify

    findings: list[Result] = []
    if not project.remote:
        verdict: Verdict = "note" if project.has_index else "wrong"
        findings += _unwritable(project, project.index.parent, "the index cannot be built", verdict)
    effect = "an index is checked again at each start"
    findings += _home(effect) or _unwritable(project, verify.cache_folder(), effect, "note")
    yield from findings or [Result("ok", "The folders of the index and of the cache can be written.")]


def _home(effect: str) -> list[Result]:
    try:
        home = Path.home()
    except RuntimeError:
        return [Result("note", f"There is no home folder: {effect}.")]
    if home.is_dir():
        return []
    text = f"The home folder {home} does not exist: {effect}."
    return [Result("note", text, f"mkdir -p {shlex.quote(str(home))}")]


def _unwritable(project: ExaminedProject, folder: Path, effect: str, verdict: Verdict) -> list[Result]:
    """A finding when the folder, or its nearest parent that exists, cannot be written."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            return []
    except OSError as error:
        text = f"{project.shown(existing)} cannot be written ({error.strerror}): {effect}."
        return [Result(verdict, text, _permit(existing, error.errno))]


def _permit(folder: Path, number: int | None) -> str | None:
    if os.name == "nt" or number not in (errno.EACCES, errno.EPERM):
        return None
    quoted = shlex.quote(str(folder))
    return f"chmod u+rwx {quoted}" if folder.stat().st_uid == os.geteuid() else f'sudo chown -R "$(id -u)" {quoted}'


def events(project: ExaminedProject, system: Path = Path("/proc")) -> Iterator[Result]:
    """Whether Linux can report file changes. Without it answers are right too: each query checks the files.

    ``system``: the folder of Linux's own tables.
    """
    if not sys.platform.startswith("linux") or not project.folder.is_dir():
        return
    kind = _file_system(Path(os.path.realpath(project.folder)), (system / "self/mounts").read_text("utf-8"))
    if kind in NETWORK_FILE_SYSTEMS:
        text = f"{project.shown(project.folder)} is on another machine ({kind})"
        yield Result("note", f"{text}: changes are seen at the next query only.")
        return
    limit = int((system / "sys/fs/inotify/max_user_watches").read_text("utf-8"))
    below = sum(len(names) for _, names, _ in os.walk(project.folder)) + 1
    if below > limit:
        text = (
            f"{project.shown(project.folder)} has {below:,} folders, more than the {limit:,} that a user may watch "
            "here: changes are seen at the next query only."
        )
        yield Result("note", text, f"sudo sysctl fs.inotify.max_user_watches={2 * below}")
    else:
        yield Result("ok", f"{below:,} of the {limit:,} folders that may be watched here.")


def _file_system(folder: Path, mounts: str) -> str:
    """The kind of file system that a folder is on, by Linux's table of mounts."""
    best, kind = -1, ""
    for line in mounts.splitlines():
        _, point, mount_kind = line.split(" ")[:3]
        where = Path(point.encode().decode("unicode_escape"))
        if folder.is_relative_to(where) and len(where.parts) >= best:  # of equals, the last mount counts
            best, kind = len(where.parts), mount_kind
    return kind


def examine(project: ExaminedProject) -> Iterator[Result]:
    """Whether git's data can be read, and whether the history is complete."""
    from anvil.git.repository import Repository

    try:
        repository = Repository.discover(project.folder)
        head = repository.head() if repository else None
        commit = repository.short(head) if repository and head else None
    except NotOwned as error:
        yield Result("wrong", str(error).partition(" If you trust")[0], error.trust_command)
        return
    except GitError as error:
        yield Result("wrong", f"{error} Until then pages are indexed without the times of commits.")
        return
    if repository is None:
        yield Result("ok", "The documents are in no repository: their times are those of the files.")
    elif commit is None:
        yield Result("ok", f"The repository {repository.root} has no commit yet.")
    elif repository.is_shallow:
        text = f"HEAD is {commit}. The clone is shallow: older pages get the time of its first commit."
        yield Result("note", text, "git fetch --unshallow")
    else:
        yield Result("ok", f"HEAD of {repository.root} is {commit}.")


def examine_context(project: ExaminedProject) -> Iterator[Result]:
    """The context of the repository around the working folder, where a file configures it or it was ingested."""
    if project.problem is not None:  # the finding of "configuration"
        return
    config_path = dict(project.given).get("--config")
    try:
        config, root, notes = load_context(None, config_path)
    except AnvilError as error:
        yield Result("wrong", str(error))
        return
    from anvil.context.ingestion import Records

    file, options = root / CONTEXT_NAME, config.table(ContextOptions)
    records = Records(root / options.index_dir)
    if not file.exists() and not records.index.exists():
        return
    named = project.shown(file) if file.exists() else "The context"
    for note in notes:
        yield Result("note", note)
    plain = [directory for directory in options.directories if not any(sign in directory for sign in "*?[{")]
    missing = [directory for directory in plain if not (root / directory).is_dir()]
    if len(missing) == len(options.directories):
        text = f"{named} names directories that do not exist: {', '.join(missing)}. Correct 'directories'."
        yield Result("wrong", text)
        return
    errors = records.state().errors
    if errors:
        first = f"{errors[0].path} ({errors[0].reason})"
        text = f"{counted(len(errors), 'file', 'could')} not be read in the last run, such as {first}."
        yield Result("note", text, project.at(root, project.anvil("context", "ingest")))
    else:
        count = len(options.directories)
        yield Result("ok", f"{named} is valid; {count - len(missing)} of its {count} directories exist.")
