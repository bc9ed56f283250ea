"""``anvil check``, which compares an index with its documents; ``anvil status``, ``anvil verify``; and their output."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from anvil import registry
from anvil.cli import options, output
from anvil.cli.output import ERROR, NO, OK
from anvil.errors import AnvilError, ArtifactRejected, FormatTooNew
from anvil.requests import OpenRequest
from anvil.values import Changes, labelled
from anvil.wording import counted

if TYPE_CHECKING:
    from anvil.api import Anvil
    from anvil.status import CollectionStatus, EmbeddingStatus, StaleCounts, Status


@click.command("check", epilog="Example: anvil check --staged --tracked && git commit")
@options.given(options.docs, options.index, options.config, options.collections)
@options.site
@options.site_url
@options.tree
@click.option(
    "--tracked", is_flag=True, help="With --staged or --ref: compare the index in git, not the file in the folder."
)
@options.as_json
@options.quiet
@options.folder
def command(given: OpenRequest, staged: bool, ref: str | None, tracked: bool, as_json: bool, quiet: bool) -> int:
    """Compare the index with the documents, and the pointer of 'anvil agents' where a file has it.

    Exit code 0: fresh, 1: stale, 2: an error.
    """

    agents = registry.part("agent files")

    def check(opened: Anvil) -> Checked:
        options.warn_of_unrun_plugin(opened)
        with contextlib.ExitStack() as stack:
            source = options.documents(opened, staged, ref)
            file = stack.enter_context(options.in_git(opened, staged or ref is not None).file(ref)) if tracked else None
            changes = opened.check(source if staged or ref is not None else None, file)
            if source is not None and source.problem:
                output.warn(source.problem)
            stale_agents, messages = (), ()
            if source is not None and opened.folder is not None:
                pointers = agents.agent_files(opened).compare(source, ref, staged)
                docs = output.relative(opened.folder) if opened.only.label else given.docs
                stale_agents = pointers.stale
                messages = pointers.messages(agents.write_command(replace(given, docs=docs)))
            advice = ""
            if changes and not opened.origin:
                if source is None and opened.config.site.folder is not None:
                    advice = f" {_site_advice(opened, given, changes)}"
                else:
                    build = _build_command(opened, given, staged, ref, tracked)
                    advice = f" {options.update_advice(file or opened.index_path, build)}"
            name = source.name if source is not None else "site" if opened.config.site.folder else "documents"
            location, shown = (
                opened.origin or str(opened.index_path),
                opened.origin or output.relative(opened.index_path),
            )
            return Checked(changes, name, location, shown, advice, stale_agents, messages)

    given = replace(given, docs_in_git=staged or ref is not None)
    outcomes = list(options.for_each_own(check, given))
    if as_json:
        options.print_each(outcomes, Checked.as_json)
    for label, checked in outcomes:
        if not isinstance(checked, Checked):
            continue
        if not as_json and not quiet:
            output.say(_render(checked, f"{label}: " if label else ""))
        for line in checked.messages:
            output.warn(line)
    return max(checked.code if isinstance(checked, Checked) else ERROR for _, checked in outcomes)


class Checked(NamedTuple):
    """The comparison of one index with its documents."""

    changes: Changes
    source: str
    """The name of the documents, such as ``working tree``."""
    location: str
    """The path of the index file, or the address of a published one."""
    shown: str
    """The same for people: a path below the working folder is relative to it."""
    advice: str
    """How to update the index, after a space; empty if there is nothing to do."""
    stale_agents: tuple[str, ...]
    """The files whose pointer of 'anvil agents' is out of date."""
    messages: tuple[str, ...]
    """Messages about these files, and about files that cannot be compared."""

    @property
    def code(self) -> int:
        """The exit code, for whether the index or the pointer for agents is stale."""
        return NO if self.changes or self.messages else OK

    def as_json(self) -> dict[str, Any]:
        return {
            "fresh": not self.changes,
            "compared_with": self.source,
            "index": self.location,
            "changed": self.changes.changed,
            "added": self.changes.added,
            "removed": self.changes.removed,
            "agents": self.stale_agents,
        }


def _site_advice(opened: Anvil, given: OpenRequest, changes: Changes) -> str:
    """How to update the index of a built site."""
    from anvil.index_file import verify
    from anvil.system import installation

    with verify.open_checked(opened.index_path) as reader:
        pages, of_site = list(reader.documents()), reader.excluded_hashes() is not None
    # Only the MkDocs plugin knows the place of a page in the navigation, so this index is not one that it built.
    if not (of_site and any(page.nav_path is not None for page in pages)):
        label = opened.only.label or None
        build = options.build_command(given, **{"site": given.site, "site-url": given.site_url, "collection": label})
        # If --site-url was given to the build and not to this command, the addresses of all pages differ.
        all_differ = not opened.config.site.url and len(changes.changed) == len(pages)
        hint = " If it was built with --site-url, give that to check, too." if all_differ else ""
        return f"Build the site, and run: {build}{hint}"
    docs = given.docs or (output.relative(opened.folder) if opened.folder is not None else "FOLDER")
    words = ["--docs", docs, "--index", output.relative(opened.index_path), *options.option_words(given, "config")]
    command = installation.line([*installation.user_command(), "check", *words])
    return (
        "The MkDocs plugin built this index from pages before they became HTML, so all of them differ from the HTML. "
        f"To compare it with its documents, run: {command}"
    )


def _build_command(opened: Anvil, given: OpenRequest, staged: bool, ref: str | None, tracked: bool) -> str:
    from anvil.system import installation

    words = ["--staged"] if staged else []
    build = options.build_command(given, *words, ref=ref, collection=opened.only.label or None)
    if not (tracked and staged):
        return build
    in_git = options.tracked_index(opened)
    add = installation.line(["git", "add", output.relative(in_git.index)])
    if in_git.repository.staging.temporary is None:
        return f"{build} && {add}"
    # 'git commit -a' and 'git commit FILE' stage pages for that one commit only. A build afterwards would not see them.
    if in_git.repository.staging.temporary == "all":
        return f"git add -u && {build} && {add}"
    pages = installation.line(["git", "add", "-u", output.relative(in_git.docs)])
    return f"{pages} && {build} && {add}. Then commit without naming files: git commit"


def _render(checked: Checked, before: str) -> str:
    """The changed pages of an index, and a sentence on whether it is fresh, with its name ``before`` it."""
    changes, index = checked.changes, before + checked.shown
    if not changes:
        return f"{index} is fresh: no page differs from the {checked.source}."
    kinds = (("changed", changes.changed), ("added", changes.added), ("removed", changes.removed))
    lines = [f"{kind:>8}  {path}" for kind, paths in kinds for path in paths]
    differ = counted(len(changes), "page", "differ")
    return "\n".join([*lines, f"{index} is stale: {differ} from the {checked.source}.{checked.advice}"])


@click.command("status", epilog="Example: anvil status --docs docs --json")
@options.project
@options.in_site
@options.as_json
@options.folder
def status_command(given: OpenRequest, as_json: bool) -> None:
    """Show the contents of the index, its origin, and how it differs from the documents."""
    with options.opened(given) as opened:
        status = opened.get_status()
    if as_json:
        output.print_json(status)
        return
    if status.collections is not None:
        _print_collections(status.collections, status.embedding, f" Run: {options.build_command(given)} --collection ")
        return
    advice = "" if opened.origin else f" {options.update_advice(opened.index_path, options.build_command(given))}"
    for name, text in _rows(status, opened.origin, advice):
        output.say(f"{name:>10}  {text}")


def _rows(status: Status, origin: str | None, advice: str) -> list[tuple[str, str]]:
    """(name, text) of each line about an index. ``origin``: of a published index. ``advice``: how to update it."""
    index_ = status.index
    contents = f"{counted(index_.total_pages, 'page')}, {counted(index_.total_chunks, 'chunk')}"
    root, path = status.server.docs_root, index_.db_path if origin else output.relative(index_.db_path)
    fresh = _fresh(index_.stale, advice) if root else "not known: there are no documents to compare with"
    rows = [
        ("docs", output.relative(root) if root else "none: answers come from the index only"),
        ("index", f"{path} ({index_.db_size_bytes / 1e6:.1f} MB)" if index_.db_size_bytes else path),
        ("holds", f"{contents}; newest document: {index_.newest_document or 'none'}"),
        ("made", index_.last_indexed or "not known"),
        ("fresh", fresh),
        ("embedding", _model(status.embedding)),
    ]
    if index_.artifact:
        rows.append(("digest", index_.artifact.digest))
        distance = index_.artifact.distance
        ahead = f", HEAD is {counted(distance, 'commit')} ahead" if distance else ""
        rows.append(("commit", (index_.artifact.commit or "none") + ahead))
    if status.git:
        dirty = ", pages have uncommitted changes" if status.git.dirty else ""
        rows.append(("git", f"HEAD {status.git.head_commit or 'unborn'}{dirty}"))
    if index_.pending_vectors:
        pending = counted(index_.pending_vectors, "passage", "have")
        rows.append(("pending", f"{pending} no vector yet.{advice}"))
    if origin:
        rows.insert(1, ("from", origin))
    if index_.artifact and index_.artifact.note:
        rows.append(("note", index_.artifact.note))
    return rows


def _print_collections(collections: Sequence[CollectionStatus], embedding: EmbeddingStatus, build: str) -> None:
    """Print a block for each collection. If it has several versions, the default one is marked. ``build``: the command
    that updates one, without its name."""
    for collection in collections:
        name = labelled(collection.name, collection.version)
        has_versions = sum(other.name == collection.name for other in collections) > 1
        mark = "  (default version)" if collection.default and has_versions else ""
        title = f"  {collection.title}" if collection.title != collection.name else ""
        output.say(f"{output.style(name, 'bold')}{title}{mark}")
        rows = []
        if collection.docs_root or collection.origin:
            location = output.relative(collection.docs_root) if collection.docs_root else collection.origin or ""
            rows.append(("docs" if collection.docs_root else "from", location))
        if collection.total_pages is not None and collection.total_chunks is not None:
            counts = counted(collection.total_pages, "page"), counted(collection.total_chunks, "chunk")
            rows.append(("holds", ", ".join(counts)))
        if collection.stale and collection.docs_root:
            rows.append(("fresh", _fresh(collection.stale, build + name)))
        if collection.total_pages is not None and collection.model != embedding.model:
            rows.append(("embedding", collection.model or "none: keyword search only"))
        if collection.note:
            rows.append(("note", collection.note))
        for row, text in rows:
            output.say(f"{row:>10}  {text}")


def _fresh(stale: StaleCounts, advice: str) -> str:
    if stale.changed or stale.added or stale.removed:
        return f"no: {stale.changed} changed, {stale.added} added, {stale.removed} removed.{advice}"
    return "yes"


def _model(status: EmbeddingStatus) -> str:
    if status.provider == "none":
        return "none: keyword search only"
    return f"{status.model} ({status.provider}, {status.dimensions} dimensions)"


@click.command("verify", epilog="Example: anvil verify docs/.anvil/index.db")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@options.as_json
def verify_command(files: tuple[str, ...], as_json: bool) -> int:
    """Check the contents of index files. Exit code 0: all are sound, 1: one is refused, 2: an error, such as no file.

    With --json and several files, the key files has a list of their results.
    """
    from anvil.index_file import verify
    from anvil.settings import index_url

    code, results = OK, []
    for file in files:
        try:
            with verify.open_foreign(Path(index_url.file(file)), thorough=True) as reader:
                meta, counts = reader.meta(), reader.counts()
        except AnvilError as error:
            is_refused = isinstance(error, (ArtifactRejected, FormatTooNew))
            if not is_refused and len(files) == 1:
                raise
            code = max(code, NO if is_refused else ERROR)
            results.append({"sound": False, "file": file, "reason": str(error)})
            if not as_json:
                output.warn(str(error))
            continue
        results.append({"sound": True, "file": file, "manifest": meta, "counts": counts})
        if not as_json:
            contents = ", ".join(counted(count, name[:-1]) for name, count in counts.items())
            shard = f" It is shard {meta['shard']}." if "shard" in meta else ""
            output.say(f"{file} is sound: {contents}.{shard}\nDigest {meta['digest']}.")
    if as_json:
        output.print_json(results[0] if len(files) == 1 else {"files": results})
    return code
