"""``anvil ingest``."""

from __future__ import annotations

import os

import click

from anvil.core.pluralize import counted
from anvil.interfaces.cli import options, output
from anvil.interfaces.cli.exit_codes import NO, OK
from anvil.models.library import FolderReport, Ingested


@click.command("ingest", epilog="Example: anvil ingest ~/Documents --library papers")
@click.argument("folder", required=False)
@click.option("--library", metavar="NAME", default="default", show_default=True, help="The library it goes into.")
@click.option("--no-recursive", is_flag=True, help="Not the folders in it.")
@click.option(
    "--max-concurrency", metavar="N", type=click.IntRange(min=1), default=4, show_default=True, help="Files at once."
)
@click.option("--reembed", is_flag=True, help="Make the vectors of all that is there anew, with the model at hand.")
@click.option("--index", metavar="FILE", help="The library's file (default: in the user's data folder).")
@options.config
@options.provider
@options.as_json
@options.quiet
def command(
    folder: str | None,
    library: str,
    no_recursive: bool,
    max_concurrency: int,
    reembed: bool,
    index: str | None,
    config: str | None,
    provider: str | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Take the documents of a FOLDER, or one file, into the library. What is there already is skipped.

    Exits with 1 when a file could not be taken in; the others are.
    """
    import anvil
    from anvil.services.library.library import COMMAND_LINE

    if folder is None and not reembed:
        raise click.UsageError("Name the folder to take in.")
    with anvil.open_library(index, provider, config, transport=COMMAND_LINE) as opened:
        if reembed:
            with output.progress(quiet) as progress:
                count = opened.reembed(progress)
            if not quiet:
                output.say(f"Made the vectors of {counted(count, 'passage')} anew.", err=as_json)
            if folder is None:
                return OK
        with output.progress(quiet) as progress:
            if os.path.isfile(str(folder)):
                report = _alone(opened.ingest_file(str(folder), library))
            else:
                report = opened.ingest_folder(str(folder), library, None, not no_recursive, max_concurrency, progress)
        path = opened.path
    if as_json:
        output.print_json(report)
    for failure in report.errors:
        output.warn(f"{failure.file}: {failure.error}")
    for taken in report.results:
        for note in taken.notes:
            output.warn(f"{taken.source}: {note}")
    if not as_json and not quiet:
        output.say(summary(report))
        output.say(f"The library is {path}.")
    return NO if report.failed else OK


def _alone(taken: Ingested) -> FolderReport:
    """The report on one file."""
    indexed, replaced, skipped = (int(taken.status == each) for each in ("indexed", "replaced", "skipped"))
    return FolderReport(taken.source, taken.library, 1, indexed, replaced, skipped, 0, (taken,), ())


def summary(report: FolderReport) -> str:
    """What was done, in a line."""
    if report.results and report.folder == report.results[0].source:
        return f"{report.folder} for library {report.library!r}: {report.results[0].status}."
    if not report.total_files:
        return f"No documents found in {report.folder}."
    counts = [
        (report.indexed, "new"),
        (report.replaced, "replaced"),
        (report.skipped, "unchanged"),
        (report.failed, "failed"),
    ]
    told = ", ".join(f"{count} {word}" for count, word in counts if count)
    return f"{counted(report.total_files, 'document')} of {report.folder} for library {report.library!r}: {told}."
