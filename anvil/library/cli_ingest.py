"""``anvil ingest``."""

from __future__ import annotations

import os

import click

from anvil.cli import options, output
from anvil.cli.exit_codes import NO, OK
from anvil.library.values import FolderReport, Imported, Ingested
from anvil.wording import counted


@click.command("ingest", epilog="Example: anvil ingest ~/Documents --library papers")
@click.argument("folder", required=False)
@click.option(
    "--library", metavar="NAME", default="default", show_default=True, help="The library that gets the documents."
)
@click.option("--no-recursive", is_flag=True, help="Leave out subfolders.")
@click.option(
    "--max-concurrency", metavar="N", type=click.IntRange(min=1), default=4, show_default=True, help="Files at once."
)
@click.option("--reembed", is_flag=True, help="Embed all documents of the file again, with the current model.")
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
    """Add the documents of a FOLDER, or one file, to the library. Unchanged documents are skipped.

    Exit code 0: done, 1: a file could not be read and the others were added, 2: an error.
    """
    import anvil
    from anvil.library.library import COMMAND_LINE

    if folder is None and not reembed:
        raise click.UsageError("Name the folder or file to take in.")
    with anvil.open_library(index, provider, config, transport=COMMAND_LINE) as opened:
        if reembed:
            with output.progress(quiet) as progress:
                count = opened.reembed(progress)
            if not quiet:
                output.say(f"Embedded {counted(count, 'passage')} again.", err=as_json)
            if folder is None:
                return OK
        with output.progress(quiet) as progress:
            if os.path.isfile(str(folder)):
                report = _report_of_one(opened.ingest_file(str(folder), library))
            else:
                report = opened.ingest_folder(str(folder), library, None, not no_recursive, max_concurrency, progress)
        path = opened.path
    if as_json:
        output.print_json(report)
    warn_of_problems(report)
    if not as_json and not quiet:
        output.say(summary(report))
        output.say(f"The library is {path}.")
    return NO if report.failed else OK


def warn_of_problems(report: FolderReport | Imported) -> None:
    """Print the failures of an ingestion, and the notes on documents."""
    for failure in report.errors:
        output.warn(f"{failure.file}: {failure.error}")
    for ingested in report.results:
        for note in ingested.notes:
            output.warn(f"{ingested.source}: {note}")


def _report_of_one(ingested: Ingested) -> FolderReport:
    """The report on a single file."""
    indexed, replaced, skipped = (int(ingested.status == status) for status in ("indexed", "replaced", "skipped"))
    return FolderReport(ingested.source, ingested.library, 1, indexed, replaced, skipped, 0, (ingested,), ())


def summary(report: FolderReport) -> str:
    """The report as one line."""
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
    counts_text = ", ".join(f"{count} {word}" for count, word in counts if count)
    return (
        f"{counted(report.total_files, 'document')} of {report.folder} for library {report.library!r}: {counts_text}."
    )
