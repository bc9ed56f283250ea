"""``anvil doctor``."""

from __future__ import annotations

import shutil
import textwrap

import click

from anvil.cli import ERROR, NO, OK, options, output
from anvil.findings import Finding, Verdict, worst
from anvil.wording import counted

COLOURS: dict[Verdict, str] = {"ok": "green", "note": "yellow", "wrong": "red", "unseen": "magenta"}
CODES: dict[Verdict, int] = {"ok": OK, "note": OK, "wrong": NO, "unseen": ERROR}
WIDTH = 100


@click.command("doctor", epilog="Example: anvil doctor --docs docs")
@options.common
@options.as_json
def command(docs: str | None, index: str | None, config: str | None, provider: str | None, as_json: bool) -> int:
    """Look at everything that can be wrong, and print the command that mends it. Changes nothing.

    Exit code 0: nothing is wrong, 1: something is, 2: something could not be looked at.
    """
    from anvil import doctor
    from anvil.doctor import place

    found: list[Finding] = []
    indent = max(map(len, doctor.EXAMINATIONS)) + 10
    for finding in doctor.examine(place.find(docs, index, config, provider)):
        found.append(finding)
        if not as_json:
            click.echo(_told(finding, indent))
    verdict = worst(found)
    if as_json:
        output.print_json({"verdict": verdict, "findings": found})
    else:
        click.echo(f"\n{_summary(found)}")
    return CODES[verdict]


def _told(finding: Finding, indent: int) -> str:
    """A finding as lines: verdict, subject, text; and its command, never broken, on a line of its own."""
    wide = min(shutil.get_terminal_size((WIDTH, 0)).columns, WIDTH)
    lines = textwrap.wrap(finding.text, max(wide - indent, 30), break_long_words=False, break_on_hyphens=False)
    space = " " * indent
    text = f"\n{space}".join(lines)
    mark = click.style(f"{finding.verdict:>6}", fg=COLOURS[finding.verdict], bold=finding.verdict != "ok")
    command = "" if finding.mend is None else f"\n{space}{click.style(f'$ {finding.mend}', bold=True)}"
    return f"{mark}  {finding.subject:<{indent - 8}}{text}{command}"


def _summary(found: list[Finding]) -> str:
    counts = {verdict: sum(each.verdict == verdict for each in found) for verdict in CODES}
    told = []
    if counts["wrong"]:
        told.append(f"{counted(counts['wrong'], 'thing', 'are')} wrong")
    if counts["unseen"]:
        told.append(f"{counts['unseen']} could not be looked at")
    if counts["note"]:
        told.append(counted(counts["note"], "note"))
    return f"{', '.join(told) or 'Nothing is wrong'}."
