"""Options that several commands share, and what they mean."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from anvil import registry
from anvil.cli import output
from anvil.errors import AnvilError, ConfigError
from anvil.requests import MAX_RESULTS, OpenRequest
from anvil.settings.schema import PROVIDERS_HELP, SITE_INDEX
from anvil.values import Progress, silent
from anvil.wording import bytes_of

if TYPE_CHECKING:
    from anvil.api import Anvil
    from anvil.documents.document_source import DocumentSource
    from anvil.git.tracked_file import TrackedIndex

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


@contextmanager
def opened(request: OpenRequest, *, build_first: bool = True) -> Iterator[Anvil]:
    """The index, or the collections, opened with progress on stderr. ``build_first``: see :func:`anvil.open`. At the
    end a warning says why an answer did not use the index file."""
    from anvil.api import open_project

    with (
        output.progress() as progress,
        open_project(replace(request, progress=progress, build_first=build_first)) as project,
    ):
        yield project
        for reason in project.refused:
            output.warn(reason)


def open_index(request: OpenRequest, progress: Progress = silent) -> Anvil:
    """The index of a command for one folder. A warning names the folders of other collections."""
    from anvil import api

    opened = api.open_index(replace(request, collections=None, progress=progress))
    if opened.other_folders:
        others = ", ".join(opened.other_folders)
        output.warn(f"This is for {output.relative(str(opened.folder))} alone. For another, add --docs: {others}.")
    return opened


def build_command(request: OpenRequest, *words: str, **more: str | None) -> str:
    """The command that updates the index, with the options of ``request`` and ``more``."""
    from anvil.system import installation

    named = option_words(request, "docs", "index", "config", "provider", **more)
    return installation.line([*installation.user_command(), "build", *words, *named])


def option_words(request: Any, *names: str, **more: str | None) -> list[str]:
    """The options ``names`` of ``request`` and ``more``, those that were given, as words of a command line."""
    values = {name: getattr(request, name) for name in names} | more
    return [word for name, value in values.items() if value is not None for word in (f"--{name}", value)]


def once(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> str | None:
    """The value of an option that may be given once. (click would silently take the last of several.)"""
    if len(values) > 1:
        raise click.BadParameter(f"It was given {len(values)} times. Give it once.")
    return values[0] if values else None


def size(ctx: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    """The bytes of a size such as 2MB."""
    count = None if text is None else bytes_of(text)
    if text is None or count is not None:
        return count
    raise click.BadParameter(f"{text[:100]!r} is not a size. Write 500kB or 2MB.")


def _given_once(*names: str, metavar: str, help: str) -> Callable[[F], F]:
    return click.option(*names, metavar=metavar, multiple=True, callback=once, help=help)


docs = _given_once("--docs", "-d", metavar="FOLDER", help="The documentation folder (default: docs).")
index = _given_once(
    "--index",
    "--db",
    "index",
    metavar="FILE",
    help="The index file (default: FOLDER/.anvil/index.db), or the address of a published one.",
)
config = _given_once("--config", "-c", metavar="FILE", help="Configuration (default: anvil.toml or pyproject.toml).")
provider = _given_once("--provider", metavar="NAME", help=f"Embedding provider: {PROVIDERS_HELP}.")
collections = click.option(
    "--collection",
    "collections",
    metavar="NAME",
    multiple=True,
    help="Only this collection of the configuration, or NAME@VERSION (repeatable; default: all).",
)


def top_k(default: int) -> Callable[[F], F]:
    return click.option(
        "--top-k",
        "-k",
        type=click.IntRange(1, MAX_RESULTS),
        default=default,
        show_default=True,
        help=f"Results, 1 to {MAX_RESULTS}.",
    )


OTHER_WAYS = {
    "folder": ("docs", "The documentation folder was given twice. Give FOLDER or --docs."),
    "site_index": ("index", "--site and --index name two indexes. Give one of them."),
}
"""Another parameter of a command -> the field that it gives, and the error for both."""


def given(*chosen: Callable[[Any], Any], kind: type[Any] = OpenRequest) -> Callable[[F], F]:
    """Options that reach the command as one dataclass of this ``kind``, its argument ``given``."""

    def decorated(function: F) -> F:
        command = collected(kind, "given")(function)
        for option in reversed(chosen):  # click shows the option of the outermost decorator first
            command = option(command)
        return command

    return decorated


def collected(kind: type[Any], argument: str) -> Callable[[F], F]:
    """The options that have the names of fields of a dataclass reach the command as one value of it."""
    names = [field.name for field in fields(kind)]

    def decorated(function: F) -> F:
        @functools.wraps(function)
        def command(**arguments: Any) -> Any:
            own = {name: arguments.pop(name) for name in names if name in arguments}
            for parameter, (name, refusal) in OTHER_WAYS.items():
                # "anvil ingest" has a folder of its own, and no documentation
                if name in own and (value := arguments.pop(parameter, None)) is not None:
                    if own[name] is not None:
                        raise click.UsageError(refusal)
                    own[name] = value
            return function(**arguments, **{argument: kind(**own)})

        return command  # type: ignore[return-value]

    return decorated


COMMON = (docs, index, config, provider)
PROJECT = (*COMMON, collections)
common, project = given(*COMMON), given(*PROJECT)


def _site_index(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> str | None:
    """The index in the folder that ``--site`` names."""
    folder = once(ctx, parameter, values)
    return None if folder is None else str(Path(folder, SITE_INDEX))


in_site = click.option(
    "--site",
    "site_index",
    metavar="FOLDER",
    multiple=True,
    callback=_site_index,
    help="The folder of a built site, whose index is read: FOLDER/anvil/index.db.",
)
"""``--site`` of a command that reads an index: the one in the folder of a site."""
folder = click.argument("folder", required=False)
"""The documentation folder as an argument, ``anvil build docs``, in place of ``--docs``."""
site = _given_once(
    "--site", metavar="FOLDER", help="The folder of a built site: its HTML is indexed, whatever generator wrote it."
)
site_url = _given_once("--site-url", metavar="URL", help="Where the site is published; overrides what its pages say.")
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
quiet = click.option("--quiet", "-q", is_flag=True, help="Print errors only.")

BUILT_WITH_SITE = (
    "This index is built with its site: build both again where that is done, with 'mkdocs build' or, after another "
    "generator, 'anvil build --site', and take the index from there."
)
"""The advice for a stale index that ``anvil build`` cannot update."""


def question(function: F) -> F:
    """A query: one argument, or several words without quotes."""
    return click.argument(
        "query", nargs=-1, required=True, metavar="QUESTION", callback=lambda ctx, parameter, words: " ".join(words)
    )(function)


def tree(function: F) -> F:
    """The options ``--staged`` and ``--ref``; :func:`documents` reads them."""
    staged = click.option("--staged", is_flag=True, help="Read the documents as staged for the next commit.")
    ref = click.option("--ref", metavar="REV", help="Read the documents of a commit.")
    return staged(ref(function))


def documents(opened: Anvil, staged: bool, ref: str | None) -> DocumentSource | None:
    """The documents that ``--staged`` or ``--ref`` select, else those in the folder; None without a folder, and for the
    pages of a site. With ``docs_in_git``, the folder may be missing in the work tree, as in a sparse checkout."""
    from anvil.documents.git_tree import CommitTree, StagedTree

    if staged and ref is not None:
        raise click.UsageError("--staged and --ref cannot be combined. Give one of them.")
    folder = opened.folder
    if folder is None and opened.only.request.docs_in_git:
        folder = opened.base / opened.config.docs
    if folder is None or (opened.config.site.folder is not None and ref is None and not staged):
        return None
    if ref is not None:
        return CommitTree(folder, ref, opened.config.source)
    return StagedTree(folder, opened.config.source) if staged else opened.tree


def in_git(opened: Anvil, tree: bool) -> TrackedIndex:
    """The index in git, for ``--tracked``. ``tree``: whether an option selects documents in git, which it needs."""
    if not tree:
        raise click.UsageError("--tracked needs --staged. Give both.")
    return tracked_index(opened)


def tracked_index(opened: Anvil) -> TrackedIndex:
    """The index in git. Raises :class:`SourceError` when it is in no repository, or is published."""
    from anvil.errors import SourceError
    from anvil.git.tracked_file import TrackedIndex

    if opened.origin:
        raise SourceError(f"The index is published at {opened.origin}, not in a commit. Name a file with --index.")
    return TrackedIndex(opened.index_path, opened.folder or opened.index_path.parent)


def warn_of_unrun_plugin(opened: Anvil) -> None:
    """Print a warning where the project's MkDocs plugin does not run, because Zensical builds the site."""
    unrun = registry.part("unrun plugin")(opened.folder) if opened.folder is not None else None
    if unrun is not None:
        output.warn(f"{unrun.text} Run: {unrun.command}")


def each_own(request: OpenRequest, progress: Progress = silent) -> Iterator[tuple[str | None, Anvil]]:
    """(name, index) of each chosen collection that is built here, one after the other; the name is None where there
    are not several. Raises :class:`ConfigError` when none is built here."""
    from anvil.api import open_project

    with open_project(replace(request, progress=progress)) as project:
        if not project.is_several:
            yield None, project
            return
        own = [member for member in project.members if member.is_own]
        if not own:
            raise ConfigError("None of these collections has a folder here. They are built where they are published.")
        for member in own:
            yield member.label, project.alone(member)


def for_each_own(
    call: Callable[[Anvil], T], request: OpenRequest, progress: Progress = silent
) -> Iterator[tuple[str | None, T | AnvilError]]:
    """(name, what ``call`` returns) of each index of :func:`each_own`. Where there are several, an error of one is
    printed, stands in place of its result, and the others follow."""
    for label, own in each_own(request, progress):
        if label is None:
            yield None, call(own)
            continue
        try:
            yield label, call(own)
        except AnvilError as error:
            output.warn(f"{label}: {error}")
            yield label, error


def print_each(outcomes: Sequence[tuple[str | None, T | AnvilError]], value: Callable[[T], Any]) -> None:
    """Print outcomes of :func:`for_each_own` as JSON: the value; of several, a list with the name of each, and with the
    error of one that failed."""
    from anvil.formats.data_formats import plain

    values = [
        (label, {"error": str(each)} if isinstance(each, AnvilError) else plain(value(each)))
        for label, each in outcomes
    ]
    several = {"collections": [{"collection": label, **each} for label, each in values]}
    output.print_json(values[0][1] if values[0][0] is None else several)


def update_advice(index: Path, build: str, before: str = "Run: ") -> str:
    """How to update the index file: ``before`` and the command ``build``, or :data:`BUILT_WITH_SITE`."""
    from anvil.index_file import connection

    return BUILT_WITH_SITE if connection.is_marked_as_site(index) else f"{before}{build}"
