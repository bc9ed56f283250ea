"""The index: whether it can be used, whether it is fresh, and its state in git."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from anvil.doctor.examined_project import ExaminedProject, Result
from anvil.errors import AnvilError, ArtifactError, ArtifactMissing, ConfigError, FormatTooNew, GitError, SourceError
from anvil.library.settings import LibraryOptions
from anvil.settings import index_url
from anvil.system import installation
from anvil.wording import counted

if TYPE_CHECKING:
    from anvil.git.tracked_file import TrackedIndex
    from anvil.index_file.reader import Reader


PLACE = ("--docs", "--index", "--config")


def examine(project: ExaminedProject) -> Iterator[Result]:
    """The file, checked like one from elsewhere, and then compared with the documents."""
    from anvil.git import tracked_file
    from anvil.index_file import publish, verify

    if project.in_milvus:
        yield _in_milvus(project)
        return
    path, shown = project.index, project.shown(project.index)
    if tracked_file.is_pointer(path):
        yield Result("wrong", f"{shown} is in Git LFS and was not fetched.", "git lfs pull")
        return
    try:
        reader = verify.open_checked(path)
    except ArtifactMissing:
        yield _missing(project)
    except FormatTooNew as error:
        yield Result("wrong", f"{error} Or build it again with this version:", project.build("--force"))
    except ArtifactError as error:
        protected = True
        with contextlib.suppress(OSError):  # the ArtifactError has the reason
            protected = project.remote or publish.is_foreign(path)
        yield Result("wrong", str(error), None if protected else project.build("--force"))
    else:
        with reader:
            problems = list(_shortcomings(project, reader))
            meta, counts = reader.meta(), reader.counts()
        contents = f"{counted(counts['documents'], 'page')} in {counted(counts['chunks'], 'chunk')}"
        contents += f"; newest document: {meta['last_index_timestamp'] or 'none'}"
        fresh = ", fresh" if project.folder.is_dir() else ""
        yield from problems or [Result("ok", f"{shown} is sound{fresh}: {contents}.")]


def _in_milvus(project: ExaminedProject) -> Result:
    try:
        shown = index_url.milvus(project.config.index or "").shown
    except ConfigError as error:
        return Result("wrong", str(error))
    text = f"The index is in Milvus, {shown}. 'anvil doctor' does not use the network. To ask the server:"
    return Result("note", text, project.anvil("status", options=PLACE))


def _missing(project: ExaminedProject) -> Result:
    shown = project.shown(project.index)
    if project.remote:
        command = project.anvil("status", options=PLACE)
        return Result("note", "The index is published elsewhere, and was not fetched yet.", command)
    if project.folder.is_dir():
        text = f"There is no index at {shown} yet. The first search builds it. To build it now:"
        return Result("note", text, project.build())
    return Result("wrong", f"There is neither an index at {shown} nor a folder to build it from.")


def _shortcomings(project: ExaminedProject, reader: Reader) -> Iterator[Result]:
    from anvil.build import indexer
    from anvil.documents import document_source
    from anvil.embedding.factory import create_provider
    from anvil.index_file.writer import OPTIONAL_SETTINGS
    from anvil.live import site_view
    from anvil.member import configured

    meta, shown = reader.meta(), project.shown(project.index)
    of_site = reader.excluded_hashes() is not None  # such an index has settings of its own
    build = None if project.remote or of_site else project.build()
    if "shard" in meta:
        yield Result("wrong", f"{shown} is shard {meta['shard']} of an index, not a whole one.", build)
        return
    wanted: dict[str, str] = {}
    if project.problem is None:  # else the configured settings are not known
        with contextlib.suppress(AnvilError):  # a finding of "model"
            provider = create_provider(project.config.embedding.provider, project.config.embedding)
            options = configured(project.config)
            wanted = indexer.settings(provider, project.config.chunking, options)
    key = "embedding_model_digest"
    if wanted and wanted[key] != meta[key]:
        theirs, ours = (f"{keys['embedding_model']} ({keys['embedding_provider']})" for keys in (meta, wanted))
        text = f"The vectors of {shown} are of {theirs}, the configured model is {ours}: search uses keywords only."
        yield Result("wrong", text, build)
    elif build and wanted and any(meta.get(name) != wanted.get(name) for name in (*wanted, *OPTIONAL_SETTINGS)):
        yield Result("note", f"{shown} was built with other settings than the configuration's.", build)
    elif meta["needs_reembed"] != "0":
        pending = counted(int(meta["needs_reembed"]), "passage", "have")
        yield Result("note", f"In {shown} {pending} no vector yet.", build)
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
            yield Result("note", text, build)


def in_git(project: ExaminedProject) -> Iterator[Result]:
    """Whether the index is in git or ignored, and whether git can show and merge it."""
    from anvil.git.tracked_file import TrackedIndex

    if project.remote:
        return
    try:
        tracked = TrackedIndex(project.index, project.folder if project.folder.is_dir() else project.index.parent)
        entry = tracked.repository.entry(tracked.path)
        ignored = tracked.ignored
    except (GitError, SourceError):  # a finding of "git", or there is no repository
        return
    add = installation.line(["git", "add", project.shown(project.index)])
    if entry is None:
        if ignored:
            yield Result("ok", "Git leaves it out: each machine builds its own.")
        elif project.index.exists():
            yield Result("note", f"{tracked.path} is neither in git nor ignored. To commit it:", add)
    elif entry.kind == "conflict":
        text = f"{tracked.path} is in conflict. Resolve the pages first; then:"
        yield Result("wrong", text, f"{project.build('--staged')} && {add}")
    elif not tracked.is_staged():
        yield Result("note", f"{tracked.path} in the folder differs from the one in git. To commit it:", add)
        yield from _drivers(project, tracked)
    else:
        yield from list(_drivers(project, tracked)) or [
            Result("ok", f"{tracked.path} is in git, which can show and merge it.")
        ]


def _drivers(project: ExaminedProject, tracked: TrackedIndex) -> Iterator[Result]:
    """Findings about the setup of ``anvil git install``; none if it is complete."""
    from anvil.git_drivers.cli import ATTRIBUTES_FILE, drivers

    repository, path = tracked.repository, tracked.path
    if repository.attribute(path, "merge") != "anvil":
        text = f"Git cannot show and merge {path}: two branches that edit pages conflict in it."
        yield Result("note", text, project.anvil("git", "install", options=PLACE))
        return
    own = {key: repository.configured(key) for key in drivers("")}
    lfs = "git lfs merge-driver" in (own["merge.anvil.driver"] or "")
    install = project.anvil("git", "install", *(["--lfs"] if lfs else []), options=PLACE)
    program = (own["diff.anvil.textconv"] or "").removesuffix(" git textconv")
    if not program:
        text = f"{ATTRIBUTES_FILE} names drivers for {path} that this clone does not define."
        yield Result("wrong", text, install)
    elif shutil.which(" ".join(shlex.split(program))) is None:
        yield Result("wrong", f"The drivers of {path} call {program}, which does not exist.", install)
    elif own != drivers(program, path if lfs else None):
        yield Result("note", f"The drivers of {path} differ from those of this version.", install)


MAX_LIBRARY_BYTES = 500_000_000
"""A larger library is not checked."""


def examine_library(project: ExaminedProject) -> Iterator[Result]:
    """The library that ``anvil ingest`` and the library surface would use here."""
    from anvil.library import library_file

    own = project.config.table(LibraryOptions).index
    path = Path(os.path.abspath(project.base / own)) if own else library_file.default_path()
    if not path.exists():
        yield Result("ok", "There is no document library yet. 'anvil ingest FOLDER' makes one.")
        return
    size = path.stat().st_size
    if size > MAX_LIBRARY_BYTES:
        yield Result("note", f"{project.shown(path)} has {size:,} bytes and was not checked: that would take long.")
        return
    try:
        meta, documents = library_file.examine(path)
    except AnvilError as error:
        yield Result("wrong", str(error))
        return
    text = f"{project.shown(path)} is sound and has {counted(documents, 'document')}."
    other = _other_model(project, meta) if documents else None
    if other is None:
        yield Result("ok", text)
        return
    text += (
        f" Its vectors are of {meta['embedding_model']}, the configured model is {other}: search uses keywords only."
    )
    yield Result("note", text, project.anvil("ingest", "--reembed", options=("--config", "--provider")))


def _other_model(project: ExaminedProject, meta: dict[str, str]) -> str | None:
    """The configured model if the library's vectors are of another one, else None. None also for a model that cannot be
    used: that is another finding."""
    from anvil.build.indexer import settings
    from anvil.embedding.factory import create_provider

    try:
        provider = create_provider(project.config.embedding.provider, project.config.embedding)
        wanted = settings(provider, project.config.chunking)
    except AnvilError:
        return None
    same = all(meta[key] == value for key, value in wanted.items() if key.startswith("embedding_"))
    return None if same else provider.model
