"""Make docs/assets/pull-request.svg, the summary of a pull request in the README: from a real run of ``anvil ci test``.

    python scripts/summary_picture.py            write it
    python scripts/summary_picture.py --check    exit with 1 when the run says something else

The pages, the questions and the edit are written by this script, into a repository in a temporary folder. The Markdown
of the summary is drawn as GitHub shows it: headings, paragraphs, code and tables.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "assets" / "pull-request.svg"
PAGES = {
    "alerts.md": """\
# Alerts

A message is sent when a check fails three times in a row. It names the server and the check.

## Silence at night

A quiet window holds back alerts between two hours, such as 22:00 and 06:00. Urgent checks ignore it.

## On call

An alert that nobody acknowledges within ten minutes goes to the next person on the list.
""",
    "install.md": """\
# Install

Packages are published with every release, and all are signed with the same key.

## Windows

Run the installer. It registers a service that starts with the machine, and writes to the event log.

## Behind a proxy

Set HTTPS_PROXY before the first start. The address is stored with the settings.

## Upgrade

Stop the service, install the new package over the old one, and start it again. Settings are kept.
""",
    "checks.md": """\
# Checks

A check asks a server a question again and again, and compares the answer.

## Certificates

A warning is sent two weeks before a TLS certificate expires.
""",
}
SUITE = """\
[defaults]
within = 3

[[question]]
ask = "how do I install it on a Windows server?"
expect = "install.md#windows"

[[question]]
ask = "which environment variable does it need behind a company proxy?"
expect = "install.md#behind-a-proxy"

[[question]]
ask = "will an upgrade delete my settings?"
expect = "install.md#upgrade"

[[question]]
ask = "no alerts while I sleep at night"
expect = "alerts.md#silence-at-night"

[[question]]
ask = "how long before a certificate expires am I warned?"
expect = "checks.md#certificates"
"""
EDITED = {
    "install.md": """\
# Install

Packages are published with every release, and all are signed with the same key. Use the package manager of your system.
""",
    "alerts.md": PAGES["alerts.md"].replace("goes to the next person", "goes at once to the next person"),
}
WIDTH, MARGIN, LINE, PAD = 900, 24, 22, 8
STYLE = """\
svg { --paper: #ffffff; --edge: #d1d9e0; --ink: #1f2328; --code: #eff1f3; --head: #f6f8fa; --link: #0969da; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #0d1117; --edge: #3d444d; --ink: #e6edf3; --code: #262c36; --head: #151b23; --link: #4493f8; }
}
text { font: 14px -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; fill: var(--ink); }
.paper { fill: var(--paper); stroke: var(--edge); } .line { stroke: var(--edge); } .head { fill: var(--head); }
.h2 { font-size: 20px; font-weight: 600; } .h3 { font-size: 16px; font-weight: 600; } .bold { font-weight: 600; }
.code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 12px; }
.link { fill: var(--link); }
"""
_PART = re.compile(r"\*\*(?P<bold>.+?)\*\*|\[`(?P<link>[^`]+)`\]\([^)]*\)|`(?P<code>[^`]+)`|\\(?P<char>.)")


def summary() -> str:
    """The Markdown that ``anvil ci test`` writes for a pull request."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "anvil-tests.toml").write_text(SUITE, encoding="utf-8", newline="\n")
        _write(root / "docs", PAGES)
        _git(root, "init", "-q", "-b", "main")
        _git(root, "add", ".")
        _git(root, "commit", "-q", "-m", "main")
        _git(root, "update-ref", "refs/remotes/origin/main", "HEAD")
        _write(root / "docs", EDITED)
        pull = {"GITHUB_ACTIONS": "true", "GITHUB_BASE_REF": "main", "GITHUB_WORKSPACE": folder, "HOME": folder}
        command = [sys.executable, "-m", "anvil", "ci", "test", "--tests", "true", "--summary", str(root / "out.md")]
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "ANVIL_", "GIT_"))}
        done = subprocess.run(
            command,
            cwd=root,
            env={**kept, **pull, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 1:
            sys.exit(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return (root / "out.md").read_text(encoding="utf-8")


def _write(folder: Path, pages: dict[str, str]) -> None:
    folder.mkdir(exist_ok=True)
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")


def _git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@example.com", *arguments], cwd=root, check=True)


def drawn(markdown: str) -> str:
    """The summary as an SVG."""
    shapes: list[str] = []
    y = MARGIN
    for block in markdown.strip().split("\n\n"):
        if block.startswith("|"):
            y = _table(block.splitlines(), y, shapes)
        else:
            level = len(block) - len(block.lstrip("#"))
            kind = f"h{level}" if level else ""
            y += LINE
            shapes.append(f'<text class="{kind}" x="{MARGIN}" y="{y}">{_spans(block.lstrip("# "))}</text>')
            y += 14
    height = y + MARGIN - 8
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">\n'
        "<title>The summary of a pull request: questions that got worse, and the page because of which</title>\n"
        f"<style>\n{STYLE}</style>\n"
        f'<rect class="paper" x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="6"/>\n'
        + "\n".join(shapes)
        + "\n</svg>\n"
    )


def _table(lines: list[str], y: int, shapes: list[str]) -> int:
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.strip("|-: ")]
    widths = [max(_width(row[column]) for row in rows) + 2 * PAD + 6 for column in range(len(rows[0]))]
    for number, row in enumerate(rows):
        top, x = y + number * (LINE + PAD), MARGIN
        if not number:
            shapes.append(f'<rect class="head" x="{x}" y="{top}" width="{sum(widths)}" height="{LINE + PAD}"/>')
        shapes.append(f'<path class="line" d="M{x} {top}h{sum(widths)}"/>')
        for cell, width in zip(row, widths, strict=True):
            kind = "bold" if not number else ""
            shapes.append(f'<text class="{kind}" x="{x + PAD}" y="{top + LINE - 2}">{_spans(cell)}</text>')
            x += width
    end = y + len(rows) * (LINE + PAD)
    shapes.append(f'<path class="line" d="M{MARGIN} {end}h{sum(widths)}"/>')
    return end + 14


def _width(markdown: str) -> int:
    """About how wide a text is, in pixels: code is set smaller, in letters of one width."""
    advance = {"": 6.7, "bold": 7.6}
    return round(sum(len(text) * advance.get(kind, 7.3) for kind, text in _parts(markdown)))


def _spans(markdown: str) -> str:
    return "".join(
        f'<tspan class="{kind}">{escape(text)}</tspan>' if kind else escape(text) for kind, text in _parts(markdown)
    )


def _parts(markdown: str) -> Iterator[tuple[str, str]]:
    """(class, text) of the parts of a line of Markdown."""
    end = 0
    for match in _PART.finditer(markdown):
        if match.start() > end:
            yield "", markdown[end : match.start()]
        if match["link"]:
            yield "code link", match["link"]
        elif match["char"]:
            yield "", match["char"]
        else:
            yield ("bold", match["bold"]) if match["bold"] else ("code", match["code"])
        end = match.end()
    if end < len(markdown):
        yield "", markdown[end:]


def main() -> None:
    """Write the picture, or compare it with the run."""
    picture = drawn(summary())
    if "--check" in sys.argv[1:]:
        if PICTURE.read_text(encoding="utf-8") != picture:
            sys.exit(f"{PICTURE.name} shows another summary. Run 'python scripts/summary_picture.py'.")
    else:
        PICTURE.write_text(picture, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
