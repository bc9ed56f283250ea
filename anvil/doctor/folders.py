"""The configuration, the documents, and what the folders around them allow."""

from __future__ import annotations

import difflib
import errno
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from anvil.configfile import nearest_config
from anvil.configuring import variables
from anvil.doctor.place import Place
from anvil.errors import SourceError
from anvil.findings import Finding, Verdict
from anvil.wording import counted, no_page

NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "9p", "afs"})
"""File systems of other machines, by the names that Linux gives them."""
NAMED = 3
"""Skipped files told at most."""


def configuration(place: Place) -> Iterator[Finding]:
    """What was read, and variables that set nothing although they look as if."""
    known = variables()
    for name in sorted(os.environ):
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.9) if name.startswith("ANVIL_") else []
        if near and name not in known:
            text = f"{name} in the environment sets nothing. Did you mean {near[0]}?"
            yield Finding("configuration", "wrong", text, f"unset {name}" if os.name != "nt" else f"set {name}=")
    if place.problem is not None:
        yield Finding("configuration", "wrong", f"{place.problem} Until then the rest is told of the defaults.")
        return
    named = dict(place.given).get("--config")
    file = Path(named) if named else nearest_config(Path.cwd())
    if file is None:
        yield Finding("configuration", "ok", "There is no file of it: all is as by default.")
    else:
        yield Finding("configuration", "ok", f"{place.shown(file)} is understood.")


def documents(place: Place) -> Iterator[Finding]:
    """The pages that would be indexed."""
    try:
        scan = place.documents.scan()
    except SourceError as error:
        yield Finding("documents", "note" if place.has_index else "wrong", str(error))
        return
    shown, count = place.shown(place.folder), len(scan.entries)
    if not count:
        yield Finding("documents", "wrong", no_page(shown, place.config.source.include))
        return
    text = f"{shown} has {counted(count, 'page')}."
    if not scan.skipped:
        yield Finding("documents", "ok", text)
        return
    few = "; ".join(f"{each.path} ({each.reason})" for each in scan.skipped[:NAMED])
    more = f"; and {len(scan.skipped) - NAMED} more" if len(scan.skipped) > NAMED else ""
    skipped = counted(len(scan.skipped), "file")
    yield Finding("documents", "note", f"{text} {skipped} cannot be read as such: {few}{more}.")


def writable(place: Place) -> Iterator[Finding]:
    """Where Anvil writes: beside the index, and in the user's cache."""
    from anvil.store import trust

    found: list[Finding] = []
    if not place.remote:
        needed: Verdict = "note" if place.has_index else "wrong"
        found += _unwritable(place, place.index.parent, "the index cannot be built", needed)
    cached = "an index is checked anew at each start"
    found += _home(cached) or _unwritable(place, trust.folder(), cached, "note")
    yield from found or [Finding("folders", "ok", "The folders of the index and of the cache can be written.")]


def _home(effect: str) -> list[Finding]:
    try:
        home = Path.home()
    except RuntimeError:
        return [Finding("folders", "note", f"There is no home folder: {effect}.")]
    if home.is_dir():
        return []
    text = f"The home folder {home} does not exist: {effect}."
    return [Finding("folders", "note", text, f"mkdir -p {shlex.quote(str(home))}")]


def _unwritable(place: Place, folder: Path, effect: str, verdict: Verdict) -> list[Finding]:
    """A finding when nothing can be written into a folder, or, where it is still to be made, into the one above."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            return []
    except OSError as error:
        text = f"{place.shown(there)} cannot be written ({error.strerror}): {effect}."
        return [Finding("folders", verdict, text, _opened(there, error.errno))]


def _opened(folder: Path, number: int | None) -> str | None:
    if os.name == "nt" or number not in (errno.EACCES, errno.EPERM):
        return None
    quoted = shlex.quote(str(folder))
    return f"chmod u+rwx {quoted}" if folder.stat().st_uid == os.geteuid() else f'sudo chown -R "$(id -u)" {quoted}'


def events(place: Place, system: Path = Path("/proc")) -> Iterator[Finding]:
    """Whether changes are told of as they happen. Answers are right without; they then read what changed when asked.

    ``system``: where Linux tells of itself.
    """
    if not sys.platform.startswith("linux") or not place.folder.is_dir():
        return
    kind = _file_system(Path(os.path.realpath(place.folder)), (system / "self/mounts").read_text("utf-8"))
    if kind in NETWORK:
        text = f"{place.shown(place.folder)} lies on another machine ({kind})"
        yield Finding("file events", "note", f"{text}: changes are seen at the next question only.")
        return
    limit = int((system / "sys/fs/inotify/max_user_watches").read_text("utf-8"))
    below = sum(len(names) for _, names, _ in os.walk(place.folder)) + 1
    if below > limit:
        text = (
            f"{place.shown(place.folder)} has {below:,} folders, more than the {limit:,} that a user may watch here: "
            "changes are seen at the next question only."
        )
        yield Finding("file events", "note", text, f"sudo sysctl fs.inotify.max_user_watches={2 * below}")
    else:
        yield Finding("file events", "ok", f"{below:,} of the {limit:,} folders that may be watched here.")


def _file_system(folder: Path, mounts: str) -> str:
    """The kind of file system that a folder lies on, by Linux' table of mounts."""
    best, kind = -1, ""
    for line in mounts.splitlines():
        _, point, found = line.split(" ")[:3]
        where = Path(point.encode().decode("unicode_escape"))
        if folder.is_relative_to(where) and len(where.parts) >= best:  # the last one lies on top
            best, kind = len(where.parts), found
    return kind
