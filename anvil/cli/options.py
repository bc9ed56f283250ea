"""Options that several commands share, what these open, and advice that repeats them."""

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
from anvil.settings import index_url
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
def opened(request: OpenRequest) -> Iterator[Anvil]:
    """A context with the open index, or the open collections, and progress on stderr. At the end a warning says why an
    answer did not use the index file."""
    from anvil.api import open_project

    with output.progress() as progress, open_project(_for_answers(request, progress)) as project:
        yield project
        for reason in project.refused:
            output.warn(reason)


def open_index(request: OpenRequest, progress: Progress = silent) -> Anvil:
    """The open index of a command for one folder. A warning names the folders of other collections."""
    from anvil import api

    opened = api.open_index(replace(_for_answers(request, progress), collections=None))
    if opened.other_folders:
        others = ", ".join(opened.other_folders)
        output.warn(f"This is for {output.relative(str(opened.folder))} alone. For another, add --docs: {others}.")
    return opened


def _for_answers(request: OpenRequest, progress: Progress) -> OpenRequest:
    """With ``--provider none`` an answer builds no index, because later commands would find it without vectors."""
    return replace(request, progress=progress, build_first=request.build_first and request.provider != "none")


def build_command(request: OpenRequest, *words: str, **more: str | None) -> str:
    """The command that updates the index, with ``words``, the options of ``request``, and those in ``more``."""
    from anvil.system import installation

    request_words = option_words(request, "docs", "index", "config", "provider", **more)
    return installation.line([*installation.user_command(), "build", *words, *request_words])


def option_words(request: Any, *names: str, **more: str | None) -> list[str]:
    """The options with these ``names`` of ``request``, and those in ``more``, as words of a command line. Options that
    were not given are left out."""
    values = option_values(request, *names) | more
    return [word for name, value in values.items() if value is not None for word in (f"--{name}", value)]


def option_values(request: Any, *names: str) -> dict[str, str]:
    """Name -> value of the given options. Commands are printed with them, so an address gets no password, and one of an
    unknown kind is left out."""
    given = ((name, getattr(request, name)) for name in names)
    values = {name: value for name, value in given if value is not None and not index_url.is_unknown(value)}
    if "://" in values.get("index", ""):
        values["index"] = index_url.spelled_without_secrets(values["index"])
    return values


def repeat_in_messages(request: OpenRequest) -> None:
    """Give the commands in messages the options of this call that name its documents and its index."""
    output.project_options |= option_values(request, "docs", "index", "config", "provider", "site")


def once(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> str | None:
    """The value of an option that may be given once. click itself takes the last of several values."""
    if len(values) > 1:
        raise click.BadParameter(f"It was given {len(values)} times. Give it once.")
    return values[0] if values else None


def size(ctx: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    """The number of bytes of a size such as 2MB."""
    count = None if text is None else bytes_of(text)
    if text is None or count is not None:
        return count
    raise click.BadParameter(f"{text[:100]!r} is not a size. Write 500kB or 2MB.")


def _option(*names: str, metavar: str, help: str) -> Callable[[F], F]:
    """An option that may be given once."""
    return click.option(*names, metavar=metavar, multiple=True, callback=once, help=help)


docs = _option("--docs", "-d", metavar="FOLDER", help="The documentation folder (default: docs).")
index = _option(
    "--index",
    "--db",
    "index",
    metavar="FILE",
    help="The index file (default: FOLDER/.anvil/index.db), or the address of a published one.",
)
config = _option("--config", "-c", metavar="FILE", help="Configuration (default: anvil.toml or pyproject.toml).")
provider = _option("--provider", metavar="NAME", help=f"Embedding provider: {PROVIDERS_HELP}.")
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


ALTERNATIVES = {
    "folder": ("docs", "The documentation folder was given twice. Give FOLDER or --docs."),
    "site_index": ("index", "--site and --index name two indexes. Give one of them."),
}
"""Parameter of a command -> the field that it sets in place of the option, and the error if both are given."""


def given(*chosen: Callable[[Any], Any], kind: type[Any] = OpenRequest) -> Callable[[F], F]:
    """Add these options to a command. It gets their values as a dataclass of this ``kind``, its argument ``given``."""

    def decorate(function: F) -> F:
        command = collected(kind, "given")(function)
        for option in reversed(chosen):  # click shows the option of the outermost decorator first
            command = option(command)
        return command

    return decorate


def collected(kind: type[Any], argument: str) -> Callable[[F], F]:
    """Collect the options that are named as fields of a dataclass. The command gets it as this ``argument``."""
    names = [field.name for field in fields(kind)]

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def command(**arguments: Any) -> Any:
            values = {name: arguments.pop(name) for name in names if name in arguments}
            for parameter, (name, problem) in ALTERNATIVES.items():
                # not for "anvil ingest", whose folder is not that of the documentation
                if name in values and (value := arguments.pop(parameter, None)) is not None:
                    if values[name] is not None:
                        raise click.UsageError(problem)
                    values[name] = value
            request = kind(**values)
            if isinstance(request, OpenRequest) and "docs" in values:  # the index of a library is no project's
                repeat_in_messages(request)
            return function(**arguments, **{argument: request})

        return command  # type: ignore[return-value]

    return decorate


COMMON = (docs, index, config, provider)
PROJECT = (*COMMON, collections)
common, project = given(*COMMON), given(*PROJECT)


def _site_index(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> str | None:
    """The path of the index in the folder that ``--site`` names."""
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
"""``--site`` of a command that reads an index: that in the folder of a built site."""
folder = click.argument("folder", required=False)
"""The documentation folder as an argument, ``anvil build docs``, in place of ``--docs``."""
site = _option(
    "--site", metavar="FOLDER", help="The folder of a built site: its HTML is indexed, whatever generator wrote it."
)
site_url = _option("--site-url", metavar="URL", help="Where the site is published; overrides what its pages say.")
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
quiet = click.option("--quiet", "-q", is_flag=True, help="Print errors only.")

BUILT_WITH_SITE = (
    "It is built with its site: build both again, with 'mkdocs build', or after another generator with "
    "'anvil build --site FOLDER'."
)
"""The advice for a stale index that ``anvil build`` cannot update."""


def question(function: F) -> F:
    """Add the query as an argument, which may be several words without quotes."""
    return click.argument(
        "query", nargs=-1, required=True, metavar="QUESTION", callback=lambda ctx, parameter, words: " ".join(words)
    )(function)


def tree(function: F) -> F:
    """Add the options ``--staged`` and ``--ref``, which :func:`documents` reads."""
    staged = click.option("--staged", is_flag=True, help="Read the documents as staged for the next commit.")
    ref = click.option("--ref", metavar="REV", help="Read the documents of a commit.")
    return staged(ref(function))


def documents(opened: Anvil, staged: bool, ref: str | None) -> DocumentSource | None:
    """The documents that ``--staged`` or ``--ref`` select, else those in the folder.

    None without a folder, and for the pages of a site. With ``docs_in_git`` in the request, the folder may be missing
    in the work tree, as in a sparse checkout.
    """
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
    """The index in git, for ``--tracked``. ``tree``: whether an option selects documents in git, as is needed."""
    if not tree:
        raise click.UsageError("--tracked needs --staged. Give both.")
    return tracked_index(opened)


def tracked_index(opened: Anvil) -> TrackedIndex:
    """The index in git. Raises :class:`SourceError` if it is not in a repository, or is published."""
    from anvil.errors import SourceError
    from anvil.git.tracked_file import TrackedIndex

    if opened.origin:
        raise SourceError(f"The index is published at {opened.origin}, not in a commit. Name a file with --index.")
    return TrackedIndex(opened.index_path, opened.folder or opened.index_path.parent)


def warn_of_unrun_plugin(opened: Anvil) -> None:
    """Print a warning if the project's MkDocs plugin does not run, because Zensical builds the site."""
    unrun = registry.part("unrun plugin")(opened.folder) if opened.folder is not None else None
    if unrun is not None:
        output.warn(f"{unrun.text} Run: {unrun.command}")


def each_own(request: OpenRequest, progress: Progress = silent) -> Iterator[tuple[str | None, Anvil]]:
    """(name, open index) for each chosen collection that is built here, one after the other.

    The name is None if there are not several. Raises :class:`ConfigError` if none is built here.
    """
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
    """(name, result of ``call``) for each index of :func:`each_own`.

    If there are several and one fails, its error is printed and takes the place of its result. The others follow.
    """
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
    """Print outcomes of :func:`for_each_own` as JSON: the ``value`` of one result, or a list of several, each with its
    collection. An outcome that is an error has its message."""
    from anvil.formats.data_formats import plain

    values = [
        (label, {"error": str(outcome)} if isinstance(outcome, AnvilError) else plain(value(outcome)))
        for label, outcome in outcomes
    ]
    several = {"collections": [{"collection": label, **fields} for label, fields in values]}
    output.print_json(values[0][1] if values[0][0] is None else several)


def update_advice(index: Path, build: str, before: str = "Run: ") -> str:
    """Advice on how to update the index file: ``before`` and the command ``build``, or :data:`BUILT_WITH_SITE`."""
    from anvil.index_file import connection

    return BUILT_WITH_SITE if connection.is_marked_as_site(index) else f"{before}{build}"
