"""``anvil build``: its options, the files that it writes besides the index, and its output; and ``anvil merge``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from anvil import registry
from anvil.cli import options, output
from anvil.cli.output import ERROR, NO, OK
from anvil.errors import ConfigError
from anvil.requests import BuildRequest, OpenRequest
from anvil.wording import counted

if TYPE_CHECKING:
    from anvil.api import Anvil
    from anvil.build.report import BuildReport
    from anvil.settings.schema import SiteOptions

MAX_FAILURES_SHOWN = 10
"""Passages without a vector that are named, one in a line. The others are counted."""


@click.command("build", epilog="Example: anvil build --docs docs --index docs.anvil.db")
@options.project
@options.site
@options.site_url
@click.option(
    "--skill", is_flag=True, help="With --site: also publish an Agent Skill of the site in its .well-known folder."
)
@click.option(
    "--markdown",
    is_flag=True,
    help="With --site: also write each page as Markdown beside its HTML, and llms.txt and llms-full.txt.",
)
@click.option(
    "--link-markdown", is_flag=True, help="With --site: --markdown, and a link to it in the head of each HTML page."
)
@click.option(
    "--search-page",
    is_flag=True,
    help="With --site: also write a page that searches the index in the browser, and the script of a search box.",
)
@options.tree
@click.option(
    "--shard", metavar="N/COUNT", help="With --index: only this share of the pages, such as 3/8; see 'anvil merge'."
)
@click.option(
    "--executor", metavar="ADDRESS", help="A Ray cluster that embeds: ray://HOST:10001, ray://auto or ray://local."
)
@click.option("--tracked", is_flag=True, help="With --staged: exit with 1 until the new index is staged.")
@click.option(
    "--force", is_flag=True, help="Read and embed all pages again. Where the provider fails, the old vector stays."
)
@click.option(
    "--docs-version", "version", metavar="VERSION", help="The version that the pages describe; 'anvil deps' reads it."
)
@click.option("--manifest", is_flag=True, help="Also write the manifest: index.json next to index.db, for publishing.")
@click.option(
    "--previous", metavar="FILE", type=Path, multiple=True, help="An index whose vectors may be reused (repeatable)."
)
@click.option("--verbose", "-v", is_flag=True, help="Name each page of the site that is left out.")
@options.as_json
@options.quiet
@options.folder
@options.collected(BuildRequest, "request")
def command(
    given: OpenRequest,
    request: BuildRequest,
    skill: bool,
    markdown: bool,
    link_markdown: bool,
    search_page: bool,
    staged: bool,
    ref: str | None,
    tracked: bool,
    manifest: bool,
    verbose: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Build the index, or bring it up to date. Nothing is written when nothing changed.

    Exit code 0: done, 1: the index is not staged yet (with --tracked), 2: an error, or no vector could be made.
    """
    from anvil.api import build as build_index
    from anvil.api import publish_site_files

    agents = registry.part("agent files")

    def build(opened: Anvil) -> Built:
        source = options.documents(opened, staged, ref)
        in_git = options.in_git(opened, staged) if tracked else None
        has_pages = source is not None and opened.folder is not None
        # before the build, since a file with the pointer may be a page
        updated = agents.update(opened, source) if has_pages and ref is None and request.shard is None else ()
        options.warn_of_unrun_plugin(opened)
        is_site = source is None and opened.config.site.folder is not None
        _ensure_whole_site(opened.config.site, request, is_site=is_site, is_option=bool(given.keys))
        report = build_index(opened, replace(request, source=source))
        if manifest:
            from anvil.index_file.publish import write_manifest

            write_manifest(opened.index_path)
        steps = []
        if in_git is not None and not in_git.is_staged():
            steps.append(f"It is not in the commit yet. {in_git.adding()}")
        if in_git is not None and opened.folder is not None and (add := agents.unstaged(opened)) is not None:
            steps.append(f"The pointer for agents is not in the commit yet. Run: {add}")
        skipped = [f"skipped {item.path}: {item.reason}" for item in report.skipped]
        if is_site and not verbose:
            skipped = registry.part("pages left out of a site")(report.skipped)
        skill_lines = [f"The skill for agents is in {_publish_skill(opened)}."] if skill else []
        left_out = () if is_site and quiet else tuple(skipped)
        notes, site_lines = publish_site_files(opened) if is_site else ((), [])
        pointer_lines = [f"The pointer for agents was updated in {', '.join(updated)}."] if updated else []
        return Built(report, (*left_out, *notes), (*pointer_lines, *skill_lines, *site_lines), steps)

    flags = {"site.markdown": markdown, "site.link_markdown": link_markdown, "site.search_page": search_page}
    keys = {key: True for key, is_set in flags.items() if is_set}
    given = replace(given, docs_in_git=staged or ref is not None, keys=keys)
    with output.progress(quiet) as progress:
        outcomes = list(options.for_each_own(build, given, progress))
    if as_json:
        options.print_each(outcomes, lambda built: built.report)
    for label, built in outcomes:
        if isinstance(built, Built) and not as_json:
            _print(built, f"{label}: " if label else "", quiet)
    return max(built.code if isinstance(built, Built) else ERROR for _, built in outcomes)


class Built(NamedTuple):
    """The result of a build of one index."""

    report: BuildReport
    notes: Sequence[str]
    """Messages, such as on files that are left out."""
    lines: Sequence[str]
    """Lines on further files that were written."""
    steps: Sequence[str]
    """How to stage the index and the pointers for agents, if ``--tracked`` asks for it and they are not staged."""

    @property
    def code(self) -> int:
        return ERROR if self.report.nothing_embedded else NO if self.steps else OK


def _publish_skill(opened: Anvil) -> str:
    """Publish the skill in the folder of the site, and return its files, separated by commas. Raises
    :class:`ConfigError` without a site."""
    folder = opened.config.site.folder
    if folder is None:
        raise ConfigError("--skill publishes a skill with a site. Name the folder of the built site with --site.")
    site = opened.base / folder
    return ", ".join(output.relative(site / path) for path in opened.publish_skill(site))


def _ensure_whole_site(site: SiteOptions, request: BuildRequest, *, is_site: bool, is_option: bool) -> None:
    """Raises :class:`ConfigError` if files of a site are to be written without a site, or for a part of one.
    ``is_option``: whether an option asks for them, and not only the configuration."""
    option = "--markdown" if site.writes_markdown else "--search-page" if site.search_page else ""
    if option and is_option and not is_site:
        raise ConfigError(f"{option} is about the pages of a built site. Name its folder with --site.")
    if option and is_site and request.shard is not None:
        raise ConfigError(f"{option} is about all pages of a site, and --shard has some. Leave one of them out.")


def _print(built: Built, before: str, quiet: bool) -> None:
    """Print the result of a build. ``before``: begins each message, the name of the collection if there are several."""
    report = built.report
    for note in (*report.reasons, *built.notes):
        output.warn(f"{before}{note}")
    for failure in report.failed[:MAX_FAILURES_SHOWN]:
        output.warn(f"{before}not embedded, found by keyword only: {failure.path}: {failure.reason}")
    if len(report.failed) > MAX_FAILURES_SHOWN:
        more = len(report.failed) - MAX_FAILURES_SHOWN
        output.warn(f"{before}not embedded, found by keyword only: {more:,} more passages")
    if report.nothing_embedded:
        output.warn(f"{before}{report.nothing_embedded_because}")
    if quiet:
        return
    for line in (summary(report), *built.lines, *built.steps):
        output.say(f"{before}{line}")


def summary(report: BuildReport) -> str:
    """The report of a build in one or two lines."""
    size = f"{counted(report.pages, 'page')}, {counted(report.chunks, 'chunk')}, {report.size_bytes / 1e6:.1f} MB"
    if report.outcome == "unchanged":
        return f"{output.relative(report.index_path)} is up to date: {size}."
    changes = report.changes
    counts = [(len(changes.added), "added"), (len(changes.changed), "changed"), (len(changes.removed), "removed")]
    counts_text = ", ".join(f"{count} {word}" for count, word in counts if count) or "no page changed"
    return (
        f"Built {output.relative(report.index_path)}: {size} ({counts_text}) in {report.seconds:.1f} s.\n"
        f"{counted(report.embedded, 'passage')} embedded, {report.reused} reused. Digest {report.digest[:16]}."
    )


@click.command("merge", epilog="Example: anvil merge docs.anvil.db shard-1.db shard-2.db shard-3.db")
@click.argument("out", metavar="OUT")
@click.argument("shards", metavar="SHARD...", nargs=-1, required=True)
@options.as_json
@options.quiet
def merge_command(out: str, shards: tuple[str, ...], as_json: bool, quiet: bool) -> None:
    """Join the shards of 'anvil build --shard' into one index. It has the bytes of a single build."""
    from anvil.build.shards import join
    from anvil.settings import index_url

    target, *parts = (Path(index_url.file(name)) for name in (out, *shards))
    with output.progress(quiet) as progress:
        report = join(parts, target, progress=progress)
    if as_json:
        output.print_json(report)
    elif not quiet:
        output.say(summary(report))
