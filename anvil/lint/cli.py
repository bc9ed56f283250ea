"""The command ``anvil lint``, and its output as text, JSON, annotations of CI systems and SARIF."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import posixpath
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import click

from anvil import registry
from anvil._version import __version__
from anvil.cli import options, output
from anvil.cli.output import ERROR, NO, OK
from anvil.formats import data_formats
from anvil.lint.settings import LEVELS, Level, LintOptions
from anvil.requests import OpenRequest
from anvil.values import Progress
from anvil.wording import counted, listed

if TYPE_CHECKING:
    from anvil.api import Anvil
    from anvil.errors import AnvilError
    from anvil.lint.linter import LintFinding, LintReport

_COLOURS = {"error": "red", "warning": "yellow", "note": "magenta"}
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_HOME = "https://anvil-docs.github.io/anvil/"


@click.command("lint", epilog="Example: anvil lint --level warning --sarif anvil.sarif")
@options.given(options.docs, options.index, options.config, options.collections)
@click.option(
    "--site",
    "built_site",  # not the site whose index is opened
    metavar="FOLDER",
    multiple=True,
    callback=options.once,
    help="The folder of the built site: links, anchors and orphans are looked up in it.",
)
@options.tree
@click.option("--rule", "names", metavar="NAME", multiple=True, help="Only this rule (repeatable).")
@click.option(
    "--level",
    type=click.Choice(LEVELS),
    help="Show findings of this level and above (default: warning; with --rule or for a report: all).",
)
@click.option(
    "--fail-level",
    type=click.Choice(LEVELS),
    help="Exit with 1 for findings of this level and above (default: lint.fail_level, else error).",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "github", "gitlab"]),
    default="text",
    help="github: annotations, as GitHub Actions reads them; gitlab: a report for its Code Quality (default: text).",
)
@click.option("--sarif", metavar="FILE", help="Write SARIF 2.1.0 to this file; '-' prints it instead of text.")
@options.as_json
@options.quiet
@options.folder
def command(
    given: OpenRequest,
    built_site: str | None,
    staged: bool,
    ref: str | None,
    names: tuple[str, ...],
    level: Level | None,
    fail_level: Level | None,
    form: str,
    sarif: str | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Find broken links and anchors, orphans, repeated text and more, without a model.

    Links are resolved as the site's generator does it. Exit code 0: nothing at or above the fail level, 1: something,
    2: an error.
    """
    if as_json + (sarif == "-") + (form != "text") > 1:
        raise click.UsageError(
            "--json, --format and --sarif - all print to standard output. Give one of them, or name a file for --sarif."
        )
    lowest = level or ("note" if names or as_json or sarif or form == "gitlab" else "warning")

    def examine(opened: Anvil) -> Examined:
        source = options.documents(opened, staged, ref) if staged or ref is not None else None
        report = opened.lint(source, names or None, built_site)
        failing = report.at_least(fail_level or opened.config.table(LintOptions).fail_level)
        shown = report.at_least(lowest)
        notes = tuple(registry.part("notes of a CI job")(shown, opened)) if form != "text" else None
        return Examined(report, shown, bool(failing), output.relative(os.path.abspath(opened.folder or ".")), notes)

    with output.progress(quiet) as progress:
        outcomes = _examined(examine, given, built_site, progress)
    if len(outcomes) == 1:
        outcomes = [(None, outcomes[0][1])]
    examined = [(label, each) for label, each in outcomes if isinstance(each, Examined)]
    if sarif is not None:
        log = sarif_log([(each.shown, each.report.folder) for _, each in examined])
        text = json.dumps(log, indent=2, ensure_ascii=False) + "\n"
        if sarif == "-":
            output.say(text, nl=False)
        else:
            output.write_file(sarif, text, "--sarif")
    if as_json:
        options.print_each(outcomes, Examined.as_json)
    elif form == "gitlab":
        notes = (note for _, each in examined for note in each.notes or ())
        output.say(registry.part("code quality of a CI job")(notes, "anvil lint"))
    elif sarif != "-":
        for label, each in examined:
            _print(each, label, quiet)
    return max(each.code if isinstance(each, Examined) else ERROR for _, each in outcomes)


class Examined(NamedTuple):
    """The findings of one folder. ``shown``: the findings to print. ``is_failed``: one is at the fail level or above.
    ``folder``: its path for people. ``notes``: the shown findings as annotations of a CI job; None to print text."""

    report: LintReport
    shown: tuple[LintFinding, ...]
    is_failed: bool
    folder: str
    notes: tuple[Any, ...] | None

    @property
    def code(self) -> int:
        return NO if self.is_failed else OK

    def as_json(self) -> dict[str, Any]:
        """The report of the shown findings as JSON values."""
        return {"failed": self.is_failed, **data_formats.plain(replace(self.report, findings=self.shown))}


def _examined(
    examine: Callable[[Anvil], Examined], given: OpenRequest, built_site: str | None, progress: Progress
) -> list[tuple[str | None, Examined | AnvilError]]:
    """(name, outcome of ``examine``) for each chosen collection with a folder, see
    :func:`~anvil.cli.options.for_each_own`."""
    from anvil.errors import SourceError

    try:
        if built_site is not None and len(own := [label or "" for label, _ in options.each_own(given)]) > 1:
            raise click.UsageError(
                f"--site is the site of one collection. Choose it with --collection: {listed(own, 'or')}."
            )
        return list(options.for_each_own(examine, given, progress))
    except SourceError as error:
        if built_site is None:
            raise
        raise SourceError(f"{error} --site examines the pages of that folder, as {built_site} shows them.") from None


def _print(examined: Examined, label: str | None, quiet: bool) -> None:
    if examined.notes is not None:
        registry.part("runner of a CI job")(output.say, None, None).show(examined.notes)
    else:
        for path, group in itertools.groupby(examined.shown, lambda finding: finding.path):
            for finding in group:
                location = output.style(f"{os.path.join(examined.folder, path)}:{finding.line}", "bold")
                level = output.style(finding.level, _COLOURS[finding.level])
                output.say(f"{location}: {level}: {finding.message} [{finding.rule}]")
            output.say()
    if not quiet:
        before = f"{label}: " if label else ""
        output.say(before + _summary(examined.report, len(examined.report.findings) - len(examined.shown)))


def _summary(report: LintReport, hidden: int) -> str:
    from anvil.lint.link_targets import GENERATORS

    counts = [(level, sum(finding.level == level for finding in report.findings)) for level in reversed(LEVELS)]
    totals = ", ".join(counted(count, level) for level, count in counts if count) or "nothing found"
    silent = f"; {report.suppressed:,} silenced by comments" if report.suppressed else ""
    lines = [f"{counted(report.pages, 'page')}: {totals}{silent}."]
    if hidden:
        lines.append(f"{counted(hidden, 'finding', 'are')} not shown. To see all, add: --level note")
    elsewhere = "Links were looked up in the built site. Those that it does not show" if report.looked_up else "Links"
    lines.append(f"{elsewhere} were resolved as for {GENERATORS[report.generator]}.")
    return "\n".join([*lines, *map(output.in_commands, report.notes)])


def sarif_log(examined: Sequence[tuple[Sequence[LintFinding], str]]) -> dict[str, Any]:
    """The log of one run as SARIF 2.1.0, a format that code scanning services read.

    ``examined``: (findings, documentation folder relative to the repository's root, POSIX, ``""`` for the root).
    Addresses are relative to the root. A finding keeps its fingerprint when lines move. Source: "Static Analysis
    Results Interchange Format (SARIF) Version 2.1.0", OASIS Standard, 2020.
    """
    from anvil.lint.rules import RULES

    names = list(RULES)
    rules = [
        {
            "id": name,
            "shortDescription": {"text": " ".join((rule.__doc__ or name).split())},
            "helpUri": f"{_HOME}reference/lint-rules/#{name}",
        }
        for name, rule in RULES.items()
    ]
    seen: dict[str, int] = {}
    results = []
    for finding, folder in ((finding, folder) for findings, folder in examined for finding in findings):
        key = "\0".join((finding.rule, finding.path, finding.message))
        seen[key] = seen.get(key, 0) + 1
        fingerprint = hashlib.sha256(f"{key}\0{seen[key]}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
        address = quote(posixpath.join(folder, finding.path), errors="surrogateescape")
        location = {"artifactLocation": {"uri": address}, "region": {"startLine": finding.line}}
        results.append(
            {
                "ruleId": finding.rule,
                "ruleIndex": names.index(finding.rule),
                "level": finding.level,
                "message": {"text": finding.message},
                "locations": [{"physicalLocation": location}],
                "partialFingerprints": {"anvilLint/v1": fingerprint},
            }
        )
    driver = {"name": "anvil lint", "version": __version__, "informationUri": _HOME, "rules": rules}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
