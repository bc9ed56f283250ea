"""``anvil bundle``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from anvil.cli import options, output
from anvil.cli.output import NO, OK
from anvil.requests import OpenRequest
from anvil.wording import counted, size

MAX_SHOWN = 10
"""Files that get a line each."""
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kMG]?)B?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000}


@dataclass(frozen=True, slots=True)
class BundleReport:
    """A bundle. ``size``: bytes of all files; ``too_large``: what could be left out, where it is over the limit and
    nothing was written."""

    out: str
    name: str
    version: str | None
    pages: int
    size: int
    index_size: int
    written: tuple[str, ...]
    unchanged: int
    removed: tuple[str, ...]
    kept: Mapping[str, str]
    notes: tuple[str, ...]
    too_large: tuple[str, ...] = ()


def _bytes(ctx: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    match = _SIZE.fullmatch(text.strip()) if text is not None else None
    if text is not None and match is None:
        raise click.BadParameter(f"{text[:100]!r} is not a size. Write 500kB or 2MB.")
    return None if match is None else int(float(match[1]) * _UNITS[match[2].lower()])


@click.command("bundle", epilog="Example: anvil bundle src/acme --site site")
@options.given(options.docs, options.config, options.provider, options.site, options.site_url)
@click.option("--name", metavar="NAME", help="The project's name (default: that of its package).")
@click.option("--docs-version", metavar="VERSION", help="The version that the pages describe (default: the package's).")
@click.option("--index", "with_index", is_flag=True, help="Also write an index of the pages, docs.anvil.db.")
@click.option("--exclude", metavar="GLOB", multiple=True, help="Leave these pages out (repeatable).")
@click.option(
    "--max-size", metavar="SIZE", callback=_bytes, help="Write nothing over this size, such as 2MB; name what is large."
)
@options.as_json
@options.quiet
@click.argument("out", type=click.Path(path_type=Path))
def command(
    given: OpenRequest,
    name: str | None,
    docs_version: str | None,
    with_index: bool,
    exclude: tuple[str, ...],
    max_size: int | None,
    as_json: bool,
    quiet: bool,
    out: Path,
) -> int:
    """Write the documentation as Markdown into OUT, to ship it in a package: AGENTS.md and docs/.

    Only changed files are written, and nothing of somebody else is overwritten or removed. Exit code 0: done, 1: it is
    larger than --max-size, so nothing was written, or a file in OUT was kept, 2: an error.
    """
    from anvil.bundle import bundled_pages, folder
    from anvil.bundle.agents_md import INDEX
    from anvil.bundle.project_metadata import find_project

    with output.progress(quiet) as progress, options.open_index(given, progress) as opened:
        member = opened.only
        bundled_pages.ensure_apart(out, member)
        described = find_project(out, opened.base)
        project = described._replace(name=name or described.name, version=docs_version or described.version)
        bundle = bundled_pages.collect(member, project, exclude, with_index, progress)
        is_large = max_size is not None and bundle.size > max_size
        written = folder.Written() if is_large else folder.write(out, bundle, progress)
    report = BundleReport(
        str(out),
        project.name,
        project.version,
        bundle.pages,
        bundle.size,
        len(bundle.files.get(INDEX, b"")),
        written.written,
        written.unchanged,
        written.removed,
        written.kept,
        bundle.notes,
        bundled_pages.largest(bundle, max_size) if is_large and max_size is not None else (),
    )
    if as_json:
        output.print_json(report)
    else:
        _print(report, max_size, quiet)
    return NO if report.too_large or report.kept else OK


def _print(report: BundleReport, max_size: int | None, quiet: bool) -> None:
    what = f"{counted(report.pages, 'page')}, {size(report.size)}"
    if report.index_size:
        what += f", {size(report.index_size)} of it the index"
    for note in () if quiet else report.notes:
        output.warn(note)
    if report.version is None and not quiet:
        output.warn("No package metadata says which version this is. Say it with --docs-version.")
    if report.too_large:
        output.warn(f"Nothing was written: {what}, which is more than {size(max_size or 0)}. Largest are:")
        for line in report.too_large:
            output.say(f"  {line}", err=True)
        return
    for path, reason in list(report.kept.items())[:MAX_SHOWN]:
        output.warn(f"{output.relative(Path(report.out, path))} is kept as it is: {reason}.")
    if len(report.kept) > MAX_SHOWN:
        output.warn(f"{len(report.kept) - MAX_SHOWN:,} more files are kept as they are.")
    if not quiet:
        changes = f"{counted(len(report.written), 'file')} written, {report.unchanged:,} unchanged"
        changes += f", {len(report.removed):,} removed" if report.removed else ""
        shown = f"{report.name} {report.version}" if report.version else report.name
        output.say(f"{output.relative(report.out)} has the documentation of {shown}: {what} ({changes}).")
