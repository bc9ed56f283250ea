"""``anvil bundle``: writing the documentation as Markdown into a package's folder."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from anvil.cli import options, output
from anvil.cli.output import NO, OK
from anvil.requests import OpenRequest
from anvil.wording import counted, size

MAX_SHOWN = 10
"""Files that get a line each."""


@click.command("bundle", epilog="Example: anvil bundle src/acme --site site")
@options.given(options.docs, options.config, options.provider, options.site, options.site_url)
@click.option("--name", metavar="NAME", help="The project's name (default: that of its package).")
@click.option("--docs-version", metavar="VERSION", help="The version that the pages describe (default: the package's).")
@click.option("--index", "with_index", is_flag=True, help="Also write an index of the pages, docs.anvil.db.")
@click.option("--exclude", metavar="GLOB", multiple=True, help="Leave these pages out (repeatable).")
@click.option(
    "--max-size",
    metavar="SIZE",
    callback=options.size,
    help="Write nothing over this size, such as 2MB; name what is large.",
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
        too_large = () if max_size is None else bundled_pages.largest(bundle, max_size)
        written = folder.Written() if too_large else folder.write(out, bundle, progress)
    index_size = len(bundle.files.get(INDEX, b""))
    if as_json:
        sizes = {"pages": bundle.pages, "size": bundle.size, "index_size": index_size}
        about = {"out": str(out), "name": project.name, "version": project.version, **sizes}
        output.print_json({**about, **asdict(written), "notes": bundle.notes, "too_large": too_large})
        return NO if too_large or written.kept else OK
    what = f"{counted(bundle.pages, 'page')}, {size(bundle.size)}"
    if index_size:
        what += f", {size(index_size)} of it the index"
    for note in () if quiet else bundle.notes:
        output.warn(note)
    if project.version is None and not quiet:
        output.warn("No package metadata says which version this is. Say it with --docs-version.")
    if too_large:
        output.warn(f"Nothing was written: {what}, which is more than {size(max_size or 0)}. Largest are:")
        for line in too_large:
            output.say(f"  {line}", err=True)
        return NO
    for path, reason in list(written.kept.items())[:MAX_SHOWN]:
        output.warn(f"{output.relative(out / path)} is kept as it is: {reason}.")
    if len(written.kept) > MAX_SHOWN:
        output.warn(f"{len(written.kept) - MAX_SHOWN:,} more files are kept as they are.")
    if not quiet:
        changes = f"{counted(len(written.written), 'file')} written, {written.unchanged:,} unchanged"
        changes += f", {len(written.removed):,} removed" if written.removed else ""
        shown = f"{project.name} {project.version}" if project.version else project.name
        output.say(f"{output.relative(str(out))} has the documentation of {shown}: {what} ({changes}).")
    return NO if written.kept else OK
