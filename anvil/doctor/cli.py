"""``anvil doctor``: the order of the examinations, and their report.

If an examination raises an exception, that is a finding, too, and the others go on. Examinations do not use the
network, and write nothing but a temporary file.
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator

import click

from anvil.cli import options, output
from anvil.cli.output import ERROR, NO, OK
from anvil.doctor import installed_parts, integrations, project_parts
from anvil.doctor.examination import Examination, ExaminedProject, Finding, Verdict, examined_project
from anvil.errors import AnvilError
from anvil.requests import OpenRequest
from anvil.wording import counted

COLOURS: dict[Verdict, str] = {"ok": "green", "note": "yellow", "wrong": "red", "unseen": "magenta"}
EXIT_CODES: dict[Verdict, int] = {"ok": OK, "note": OK, "unseen": ERROR, "wrong": NO}
MAX_WIDTH = 100

EXAMINATIONS: dict[str, Examination] = {
    **installed_parts.EXAMINATIONS,
    **project_parts.EXAMINATIONS,
    **integrations.EXAMINATIONS,
}
"""Subject -> examination, in the order of the report. An examination comes after those that it depends on."""


def examine(project: ExaminedProject) -> Iterator[Finding]:
    """The findings, as they are made. An exception of an examination becomes a finding."""
    for subject, examination in EXAMINATIONS.items():
        try:
            for finding in examination(project):
                yield finding._replace(subject=subject)
        except AnvilError as error:
            yield Finding("wrong", str(error), subject=subject)
        except Exception as error:  # the next examinations may find the cause
            text = f"This could not be examined ({type(error).__name__}: {error})."
            yield Finding("unseen", text, subject=subject)


@click.command("doctor", epilog="Example: anvil doctor --docs docs")
@options.common
@options.as_json
@options.folder
def command(given: OpenRequest, as_json: bool) -> int:
    """Examine the installation, the configuration and the index, and print the commands that repair them.

    It changes nothing. Exit code 0: nothing is wrong, 1: something is wrong, 2: something could not be examined.
    """
    findings: list[Finding] = []
    indent = max(map(len, EXAMINATIONS)) + 10
    for finding in examine(examined_project(given)):
        findings.append(finding)
        if not as_json:
            output.say(_render(finding, indent))
    verdict = max((finding.verdict for finding in findings), key=[*EXIT_CODES].index)
    if as_json:
        as_dicts = [{"subject": finding.subject, **finding._asdict()} for finding in findings]  # the subject first
        output.print_json({"verdict": verdict, "findings": as_dicts})
    else:
        output.say(f"\n{summary(findings)}")
    return EXIT_CODES[verdict]


def _render(finding: Finding, indent: int) -> str:
    """A finding as lines: verdict, subject and wrapped text, then its command on a line of its own."""
    width = min(shutil.get_terminal_size((MAX_WIDTH, 0)).columns, MAX_WIDTH)
    lines = textwrap.wrap(finding.text, max(width - indent, 30), break_long_words=False, break_on_hyphens=False)
    space = " " * indent
    text = f"\n{space}".join(lines)
    weight = ["bold"] if finding.verdict != "ok" else []
    mark = output.style(f"{finding.verdict:>6}", COLOURS[finding.verdict], *weight)
    command = "" if finding.fix is None else f"\n{space}{output.style(f'$ {finding.fix}', 'bold')}"
    return f"{mark}  {finding.subject:<{indent - 8}}{text}{command}"


def summary(findings: list[Finding]) -> str:
    count = {verdict: sum(finding.verdict == verdict for finding in findings) for verdict in EXIT_CODES}
    parts: dict[Verdict, str] = {
        "wrong": f"{counted(count['wrong'], 'thing', 'are')} wrong",
        "unseen": f"{count['unseen']} could not be examined",
        "note": counted(count["note"], "note"),
    }
    return f"{', '.join(part for verdict, part in parts.items() if count[verdict]) or 'Nothing is wrong'}."
