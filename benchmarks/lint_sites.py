"""How many errors and warnings of ``anvil lint`` are false, by the built sites of real projects.

    python benchmarks/lint_sites.py uvicorn=trees/uvicorn/docs:sites/uvicorn click=trees/click/docs:sites/click ...

Each argument is NAME=DOCS:SITE: a documentation folder in its repository, and the site that its generator made of it.
Each tree is examined twice, from the source alone and with ``--site``. A finding about links, anchors, labels or
orphans that the site does not confirm is false. ``--show`` prints all findings, to be read: ``x`` marks false ones,
``+`` what only the site shows. Where the site lacks a page or does not show a link, the source alone tells.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path

from measuring import table

import anvil
from anvil.lint.linter import LintFinding, LintReport
from anvil.settings.schema import Config

SITE_RULES = frozenset({"broken-link", "broken-anchor", "undefined-reference", "orphan-page"})
"""The rules of which a site can tell whether a finding is true."""


def main() -> None:
    """Examine each tree, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="+", metavar="NAME=DOCS:SITE")
    parser.add_argument("--show", action="store_true", help="print each finding")
    given = parser.parse_args()
    rows: list[tuple[str | int, ...]] = []
    totals: Counter[str] = Counter()
    for each in given.trees:
        name, _, folders = each.partition("=")
        docs, _, site = folders.rpartition(":")
        alone, built = _reports(Path(docs), Path(site))
        confirmed = {_place(finding) for finding in built.findings}
        found = alone.at_least("warning")
        false = [each for each in found if each.rule in SITE_RULES and _place(each) not in confirmed]
        known = {_place(finding) for finding in found}
        more = [each for each in built.at_least("warning") if _place(each) not in known]
        if given.show:
            for finding in found:
                print(f"{'x' if finding in false else ' '} {name} {finding.path}:{finding.line} {finding.message}")
            for finding in more:
                print(f"+ {name} {finding.path}:{finding.line} {finding.message}")
        about_links = sum(finding.rule in SITE_RULES for finding in found)
        rows.append((name, alone.generator, alone.pages, len(found), about_links, len(false), len(more)))
        totals.update(found=len(found), links=about_links, false=len(false), more=len(more))
    rows.append(("all", "", "", totals["found"], totals["links"], totals["false"], totals["more"]))
    head = ("project", "generator", "pages", "errors, warnings", "of them about links", "false", "more with `--site`")
    print(table(head, [tuple(f"{value:,}" if isinstance(value, int) else value for value in row) for row in rows]))
    print(f"\n{totals['false']} of {totals['links']} about links are false; the site does not judge the others.")


def _reports(docs: Path, site: Path) -> tuple[LintReport, LintReport]:
    with (
        tempfile.TemporaryDirectory() as folder,
        anvil.open(docs, index=Path(folder, "none.db"), provider="none", config=Config()) as opened,
    ):
        return opened.lint(), opened.lint(site=site)


def _place(finding: LintFinding) -> tuple[str, int, str]:
    return finding.path, finding.line, finding.rule


if __name__ == "__main__":
    main()
