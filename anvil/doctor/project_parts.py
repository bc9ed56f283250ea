"""Examinations of the project: configuration, documents, folders, git, index, context and library."""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from anvil.cli.output import relative
from anvil.context.settings import CONTEXT_NAME, ContextOptions, load_context
from anvil.doctor.examination import Examination, ExaminedProject, Finding, Verdict
from anvil.documents.folder_advice import folder_advice, no_page, other_formats_note
from anvil.errors import AnvilError, ArtifactError, ArtifactMissing, FormatTooNew, GitError, NotOwned, SourceError
from anvil.library.settings import LibraryOptions
from anvil.settings import index_url
from anvil.settings.configuration import nearest_config, variables
from anvil.system import installation
from anvil.wording import closest_names, counted, first_of

if TYPE_CHECKING:
    from anvil.git.tracked_file import TrackedIndex
    from anvil.index_file.reader import Reader


MAX_SKIPPED_NAMED = 3
"""Skipped files that a finding names."""


def configuration(project: ExaminedProject) -> Iterator[Finding]:
    """Whether the configuration file is valid, and whether ANVIL_ variables have a misspelled name."""
    known_names = variables()
    for name in sorted(os.environ):
        close = closest_names(name, known_names, cutoff=0.9) if name.startswith("ANVIL_") else []
        if close and name not in known_names:
            text = f"{name} in the environment sets nothing. Did you mean {close[0]}?"
            yield Finding("wrong", text, f"unset {name}" if os.name != "nt" else f"set {name}=")
    if project.problem is not None:
        yield Finding("wrong", f"{project.problem} The other checks use the defaults.")
        return
    given = project.given.get("config")
    file = Path(given) if given else nearest_config(Path.cwd())
    if file is None:
        yield Finding("ok", "There is no configuration file: the defaults are used.")
    else:
        text = f"{relative(file)} is valid."
        if project.other_folders:
            others = ", ".join(project.other_folders)
            text += f" Of its collections {relative(project.folder)} is examined. For another, add --docs: {others}."
        yield Finding("ok", text)


def documents(project: ExaminedProject) -> Iterator[Finding]:
    try:
        scan = project.documents.scan()
    except SourceError as error:
        yield Finding("note" if project.has_index else "wrong", str(error))
        return
    shown, count = relative(project.folder), len(scan.entries)
    if (others := other_formats_note(project.folder, count)) is not None:
        yield Finding("note" if count else "wrong", f"{shown} has {counted(count, 'page')}. {others}")
        return
    if not count:
        yield Finding("wrong", f"{no_page(shown, project.config.source.include)} {folder_advice(project.folder)}")
        return
    text = f"{shown} has {counted(count, 'page')}."
    if not scan.skipped:
        yield Finding("ok", text)
        return
    few = first_of([f"{skipped.path} ({skipped.reason})" for skipped in scan.skipped], MAX_SKIPPED_NAMED)
    yield Finding("note", f"{text} {counted(len(scan.skipped), 'file')} cannot be read: {few}.")


def writable(project: ExaminedProject) -> Iterator[Finding]:
    """Whether the folders that Anvil writes to can be written: that of the index, and the user's cache."""
    from anvil.index_file import verify

    findings: list[Finding] = []
    if not project.remote:
        verdict: Verdict = "note" if project.has_index else "wrong"
        findings += _unwritable(project.index.parent, "the index cannot be built", verdict)
    cache = verify.cache_folder().parent
    findings += _unwritable(cache, "an index is checked again at each start", "note")
    yield from findings or [Finding("ok", f"The folders of the index and of the cache, {cache}, can be written.")]


def _unwritable(folder: Path, effect: str, verdict: Verdict) -> list[Finding]:
    """A finding if the folder, or its nearest parent that exists, cannot be written. ``effect``: what then happens."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            return []
    except OSError as error:
        text = f"{relative(existing)} cannot be written ({error.strerror}): {effect}."
        return [Finding(verdict, text, write_permission(existing, error.errno))]


def write_permission(folder: Path, number: int | None) -> str | None:
    """The command that makes a folder writable; None for an error (by its ``number``) that has another cause."""
    if os.name == "nt" or number not in (errno.EACCES, errno.EPERM):
        return None
    quoted = shlex.quote(str(folder))
    return f"chmod u+rwx {quoted}" if folder.stat().st_uid == os.geteuid() else f'sudo chown -R "$(id -u)" {quoted}'


def git(project: ExaminedProject) -> Iterator[Finding]:
    """Whether the repository can be read, and whether its history is complete."""
    from anvil.git.repository import Repository

    try:
        repository = Repository.discover(project.folder)
        head = repository.head() if repository else None
        commit = repository.short(head) if repository and head else None
    except NotOwned as error:
        yield Finding("wrong", str(error).partition(" If you trust")[0], error.trust_command)
        return
    except GitError as error:
        yield Finding("wrong", f"{error} Until then pages are indexed without the times of commits.")
        return
    if repository is None:
        yield Finding("ok", "The documents are in no repository: their times are those of the files.")
    elif commit is None:
        yield Finding("ok", f"The repository {repository.root} has no commit yet.")
    elif repository.is_shallow:
        text = f"HEAD is {commit}. The clone is shallow: older pages get the time of its first commit."
        yield Finding("note", text, "git fetch --unshallow")
    else:
        yield Finding("ok", f"HEAD of {repository.root} is {commit}.")


def context(project: ExaminedProject) -> Iterator[Finding]:
    """The context of the repository around the working folder, if a file configures it or it was ingested."""
    if project.problem is not None:  # the examination "configuration" reports it
        return
    config_path = project.given.get("config")
    config, root, notes = load_context(None, config_path)
    from anvil.context.ingestion import Records, missing_directories

    file, options = root / CONTEXT_NAME, config.table(ContextOptions)
    records = Records(root / options.index_dir)
    if not file.exists() and not records.index.exists():
        return
    subject = relative(file) if file.exists() else "The context"
    for note in notes:
        yield Finding("note", note)
    if errors := records.state().errors:
        first = f"{errors[0].path} ({errors[0].reason})"
        text = f"{counted(len(errors), 'file', 'could')} not be read in the last run, such as {first}."
        yield Finding("note", text, project.at(root, project.anvil("context", "ingest")))
    elif missing := missing_directories(options, root):
        yield Finding("note", f"The context is empty. {missing}")
    else:
        yield Finding("ok", f"{subject} is valid.")


INDEX_OPTIONS = ("docs", "index", "config")
"""The options that name an index. Printed commands repeat them."""


def index(project: ExaminedProject) -> Iterator[Finding]:
    """Whether the index file is sound, was built with the configured settings, and is fresh."""
    from anvil.git import tracked_file
    from anvil.index_file import publish, verify

    if project.in_milvus:
        shown = index_url.milvus(project.config.index or "").shown
        text = f"The index is in Milvus, {shown}. 'anvil doctor' does not use the network. To ask the server:"
        yield Finding("note", text, project.anvil("status", options=INDEX_OPTIONS))
        return
    path, shown = project.index, relative(project.index)
    if tracked_file.is_pointer(path):
        yield Finding("wrong", f"{shown} is in Git LFS and was not fetched.", "git lfs pull")
        return
    try:
        reader = verify.open_checked(path)
    except ArtifactMissing:
        yield _missing(project)
    except FormatTooNew as error:
        yield Finding("wrong", f"{error} Or build it again with this version:", project.build("--force"))
    except ArtifactError as error:
        is_protected = True  # the finding has no command that would overwrite a file that is no index
        with contextlib.suppress(OSError):  # the ArtifactError has the reason
            is_protected = project.remote or publish.is_foreign(path)
        yield Finding("wrong", str(error), None if is_protected else project.build("--force"))
    else:
        with reader:
            problems = list(_shortcomings(project, reader))
            meta, counts = reader.meta(), reader.counts()
        contents = f"{counted(counts['documents'], 'page')} in {counted(counts['chunks'], 'chunk')}"
        contents += f"; newest document: {meta['last_index_timestamp'] or 'none'}"
        fresh = ", fresh" if project.folder.is_dir() else ""
        yield from problems or [Finding("ok", f"{shown} is sound{fresh}: {contents}.")]


def _missing(project: ExaminedProject) -> Finding:
    shown = relative(project.index)
    if project.remote:
        command = project.anvil("status", options=INDEX_OPTIONS)
        return Finding("note", "The index is published elsewhere, and was not fetched yet.", command)
    if project.folder.is_dir():
        text = f"There is no index at {shown} yet. The first search builds it. To build it now:"
        return Finding("note", text, project.build())
    return Finding("wrong", f"There is neither an index at {shown} nor a folder to build it from.")


def _shortcomings(project: ExaminedProject, reader: Reader) -> Iterator[Finding]:
    """Findings about a sound index: a shard, another model or other settings, missing vectors, stale pages."""
    from anvil.documents import document_source
    from anvil.index_file.manifests import OPTIONAL_SETTINGS, recorded
    from anvil.live import site_view

    meta, shown = reader.meta(), relative(project.index)
    of_site = reader.excluded_hashes() is not None  # such an index has settings of its own
    build = None if project.remote or of_site else project.build()
    if "shard" in meta:
        yield Finding("wrong", f"{shown} is shard {meta['shard']} of an index, not a whole one.", build)
        return
    wanted = {} if project.problem is not None else _wanted_settings(project, recorded(project.config))
    key = "embedding_model_digest"
    if wanted and wanted[key] != meta[key]:
        own, other = (f"{keys['embedding_model']} ({keys['embedding_provider']})" for keys in (meta, wanted))
        text = f"The vectors of {shown} are of {own}, the configured model is {other}: search uses keywords only."
        yield Finding("wrong", text, build)
    elif build and wanted and any(meta.get(name) != wanted.get(name) for name in (*wanted, *OPTIONAL_SETTINGS)):
        yield Finding("note", f"{shown} was built with other settings than the configuration's.", build)
    elif meta["needs_reembed"] != "0":
        pending = counted(int(meta["needs_reembed"]), "passage", "have")
        yield Finding("note", f"In {shown} {pending} no vector yet.", build)
    if project.folder.is_dir():
        indexed = reader.blob_ids()
        entries = site_view.view_of(project.documents, reader).scan(indexed).entries
        changes = document_source.compare(indexed, entries)
        if changes:
            kinds = {"changed": changes.changed, "added": changes.added, "removed": changes.removed}
            counts = ", ".join(f"{len(paths)} {kind}" for kind, paths in kinds.items() if paths)
            text = f"{shown} is stale: {counts}. Each search reads these pages again. To update the index:"
            if build is None:
                advice = " It is built with its site, by 'mkdocs build'." if of_site and not project.remote else ""
                text = f"{shown} is stale: {counts}.{advice}"
            yield Finding("note", text, build)


def index_in_git(project: ExaminedProject) -> Iterator[Finding]:
    """Whether the index is in git or ignored, and whether git can show and merge it."""
    from anvil.git.tracked_file import TrackedIndex

    if project.remote:
        return
    try:
        tracked = TrackedIndex(project.index, project.folder if project.folder.is_dir() else project.index.parent)
        entry = tracked.repository.entry(tracked.path)
        ignored = tracked.ignored
    except (GitError, SourceError):  # the examination "git" reports it, or there is no repository
        return
    add = installation.line(["git", "add", relative(tracked.index)])
    if entry is None:
        if ignored:
            yield Finding("ok", "Git leaves it out: each machine builds its own.")
        elif project.index.exists():
            yield Finding("note", f"{tracked.path} is neither in git nor ignored. To commit it:", add)
    elif entry.kind == "conflict":
        text = f"{tracked.path} is in conflict. Resolve the pages first; then:"
        yield Finding("wrong", text, f"{project.build('--staged')} && {add}")
    elif not tracked.is_staged():
        yield Finding("note", f"{tracked.path} in the folder differs from the one in git. To commit it:", add)
        yield from _drivers(project, tracked)
    else:
        yield from list(_drivers(project, tracked)) or [
            Finding("ok", f"{tracked.path} is in git, which can show and merge it.")
        ]


def _drivers(project: ExaminedProject, tracked: TrackedIndex) -> Iterator[Finding]:
    """Findings about the drivers that ``anvil git install`` sets up; none if they are complete."""
    from anvil.git_drivers.cli import ATTRIBUTES_FILE

    repository, path = tracked.repository, tracked.path
    if repository.attribute(path, "merge") != "anvil":
        text = f"Git cannot show and merge {path}: two branches that edit pages conflict in it."
        yield Finding("note", text, project.anvil("git", "install", options=INDEX_OPTIONS))
        return
    program = (repository.configured("diff.anvil.textconv") or "").removesuffix(" git textconv")
    problem = "that this clone does not define" if not program else f"that call {program}, which does not exist"
    if not program or shutil.which(" ".join(shlex.split(program))) is None:
        text = f"{ATTRIBUTES_FILE} names drivers for {path} {problem}."
        yield Finding("wrong", text, project.anvil("git", "install", options=INDEX_OPTIONS))


MAX_LIBRARY_BYTES = 500_000_000
"""A larger library is not checked."""


def library(project: ExaminedProject) -> Iterator[Finding]:
    """Whether the library that ``anvil ingest`` and the library surface use here is sound."""
    from anvil.library import library_file

    configured = project.config.table(LibraryOptions).index
    path = Path(os.path.abspath(project.base / configured)) if configured else library_file.default_path()
    if not path.exists():
        yield Finding("ok", "There is no document library yet. 'anvil ingest FOLDER' makes one.")
        return
    size = path.stat().st_size
    if size > MAX_LIBRARY_BYTES:
        yield Finding("note", f"{relative(path)} has {size:,} bytes and was not checked: that would take long.")
        return
    meta, documents = library_file.examine(path)
    text = f"{relative(path)} is sound and has {counted(documents, 'document')}."
    wanted = _wanted_settings(project) if documents else {}
    if all(meta[key] == value for key, value in wanted.items() if key.startswith("embedding_")):
        yield Finding("ok", text)
        return
    models = f"{meta['embedding_model']}, the configured model is {wanted['embedding_model']}"
    text += f" Its vectors are of {models}: search uses keywords only."
    yield Finding("note", text, project.anvil("ingest", "--reembed", options=("config", "provider")))


def _wanted_settings(project: ExaminedProject, *configured: dict[str, str | None]) -> dict[str, str]:
    """The configured settings of an index. Empty if the model cannot be used, which is another finding."""
    from anvil.embedding.provider import create_provider
    from anvil.index_file.manifests import settings

    try:
        provider = create_provider(project.config.embedding.provider, project.config.embedding)
        return settings(provider, project.config.chunking, *configured)
    except AnvilError:
        return {}


EXAMINATIONS: dict[str, Examination] = {
    "configuration": configuration,
    "documents": documents,
    "git": git,
    "index": index,
    "index in git": index_in_git,
    "folders": writable,
    "context": context,
    "library": library,
}
