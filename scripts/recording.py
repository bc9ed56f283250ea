"""Make docs/assets/session.svg, the recording in the README: real commands on a real terminal, drawn as they came.

    pip install '.[test]' && python scripts/recording.py            write it
    python scripts/recording.py --check                             exit with 1 when the session says something else

The folder that is asked about is written by this script, so the picture changes when the program does and not when the
documentation does. Scores can differ in the last digit from one processor to another; ``--check`` leaves them aside.
Needs a pseudo-terminal, which Windows does not have.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "assets" / "session.svg"
PAGES = {
    "deploy.md": """\
# Deploy

Push to `main`. The release is built and tested, and takes the place of the one before without a pause.

## Roll back

`ship rollback` starts the release before, within a minute. The data stays as it is.
Old releases are kept for 30 days.

## Secrets

`ship secret set NAME` asks for a value and stores it encrypted. The next release gets it.
""",
    "install.md": """\
# Install

Download the package, start it, and open port 7070 in a browser. The first page asks for the
servers to deploy to, and for an address that messages are sent to.
""",
}
ASK = 'anvil search --docs docs --top-k 1 "can I roll back to an old release?"'
COMMANDS = (ASK, "sed -i 's/30 days/90 days/' docs/deploy.md", "anvil check --docs docs", ASK)
COLUMNS = 100
ADVANCE, LINE, GAP, MARGIN, BAR = 8.4, 20, 10, 18, 40
TYPING, READING = 0.035, 1.6
"""Seconds: for a character that is typed, and after a command's answer."""
STYLE = """\
svg { --paper: #ffffff; --edge: #d0d7de; --ink: #1f2328; --faint: #59636e; --place: #0b7285; --mark: #b93a08; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #0d1117; --edge: #3d444d; --ink: #e6edf3; --faint: #9198a1; --place: #56d4dd; --mark: #ff9e64; }
}
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", "DejaVu Sans Mono", monospace;
  white-space: pre; fill: var(--ink); }
.window { fill: var(--paper); stroke: var(--edge); } .dots { fill: var(--edge); }
.prompt { fill: var(--faint); } .typed { font-weight: 600; }
.cyan { fill: var(--place); } .yellow { fill: var(--mark); } .bold { font-weight: 700; }
@keyframes come { from { visibility: hidden; } to { visibility: visible; } }
.later { animation: come 0.01s step-end var(--at) backwards; }
@media (prefers-reduced-motion: reduce) { .later { animation: none; } }
"""
_ESCAPE = re.compile(r"\x1b\[([0-9;]*)m")
_BAR = re.compile(rb"\r\x1b\[\?25l.*?\x1b\[K\x1b\[\?25h", re.DOTALL)
"""A progress bar, from a hidden cursor to a shown one: a machine that is busy draws it."""
_CODES = {"1": "bold", "33": "yellow", "36": "cyan"}
_SCORE = re.compile(r"(?<=  )[01]\.\d{3}(?:  confidence [01]\.\d\d)?(?=</text>)")


@dataclass(frozen=True)
class Step:
    """A command and the lines that it printed, with the terminal's colours."""

    command: str
    lines: tuple[str, ...]


def session() -> list[Step]:
    """Run the commands, one after the other, in a folder made for them."""
    with tempfile.TemporaryDirectory() as folder:
        docs = Path(folder) / "docs"
        docs.mkdir()
        for name, text in PAGES.items():
            (docs / name).write_text(text, encoding="utf-8", newline="\n")
        return [Step(command, tuple(printed(command, folder))) for command in COMMANDS]


def printed(command: str, folder: str) -> list[str]:
    """What a command prints on a terminal without progress bars; SystemExit when it could not do its work."""
    import pty

    program = f"{shlex.quote(sys.executable)} -m anvil"
    line = re.sub(r"^anvil\b", lambda _: program, command)
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
        own = {"HOME": folder, "COLUMNS": str(COLUMNS), "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"}
        os.execve("/bin/sh", ["sh", "-c", line], {**kept, **own, "TERM": "xterm"})
    output = b""
    while block := _read(terminal):
        output += block
    os.close(terminal)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if code not in (0, 1):
        sys.exit(f"{command}: exit code {code}\n{output.decode()}")
    output = _BAR.sub(b"", output)
    said = output.decode().replace("\r", "").strip("\n")
    return said.split("\n") if said else []


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that the other side is gone
        return b""


def text(steps: list[Step]) -> str:
    """The session as plain text."""
    lines = (line for step in steps for line in (f"$ {step.command}", *step.lines))
    return "".join(f"{_ESCAPE.sub('', line)}\n" for line in lines)


def same(one: str, other: str) -> bool:
    """Whether two pictures show the same but for the digits of scores and confidences, which onnxruntime decides."""
    return _SCORE.sub("0.000", one) == _SCORE.sub("0.000", other)


def drawn(steps: list[Step]) -> str:
    """The session as an SVG that shows itself line by line, and whole where nothing moves."""
    rows, clock = [], 0.6
    number = 0
    for index, step in enumerate(steps):
        y = BAR + MARGIN + number * LINE + index * GAP
        rows.append(f'<text class="prompt later" style="--at:{clock - 0.4:.2f}s" x="{MARGIN}" y="{y}">$ </text>')
        for at, word in _typed(step.command):
            x = MARGIN + (2 + at) * ADVANCE
            came = clock + (at + len(word)) * TYPING
            rows.append(f'<text class="typed later" style="--at:{came:.2f}s" x="{x:.1f}" y="{y}">{escape(word)}</text>')
        clock += len(step.command) * TYPING + 0.5
        for line in step.lines:
            number += 1
            y = BAR + MARGIN + number * LINE + index * GAP
            rows.append(f'<text class="later" style="--at:{clock:.2f}s" x="{MARGIN}" y="{y}">{_spans(line)}</text>')
        clock += READING
        number += 1
    width, height = round(COLUMNS * ADVANCE + 2 * MARGIN), BAR + number * LINE + len(steps) * GAP + MARGIN - 10
    dots = "".join(f'<circle cx="{MARGIN + 5 + 18 * each}" cy="17" r="5"/>' for each in range(3))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">\n'
        "<title>A search finds 30 days, the page is edited, and the same search finds 90 days</title>\n"
        f"<style>\n{STYLE}</style>\n"
        f'<rect class="window" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8"/>\n'
        f'<g class="dots">{dots}</g>\n' + "\n".join(rows) + "\n</svg>\n"
    )


def _typed(command: str) -> Iterator[tuple[int, str]]:
    """(column, text) of what appears together while a command is typed: a word and the blank after it."""
    for found in re.finditer(r"\S+\s*", command):
        yield found.start(), found[0]


def _spans(line: str) -> str:
    """A line with the terminal's colours as classes."""
    made, classes, end = [], [""], 0
    for found in [*_ESCAPE.finditer(line), None]:
        part = escape(line[end : found.start() if found else len(line)])
        names = " ".join(filter(None, classes))
        made.append(f'<tspan class="{names}">{part}</tspan>' if names and part else part)
        if found:
            codes = found[1].split(";")
            classes = [] if codes in (["0"], [""]) else [*classes, *(_CODES[code] for code in codes)]
            end = found.end()
    return "".join(made)


def main() -> None:
    """Write the picture, or compare it with the session."""
    steps = session()
    wide = [line for line in text(steps).splitlines() if len(line) > COLUMNS]
    if wide:
        sys.exit(f"Wider than {COLUMNS} columns: {wide}")
    if "--check" in sys.argv[1:]:
        if not same(PICTURE.read_text(encoding="utf-8"), drawn(steps)):
            sys.exit(f"{PICTURE.name} shows another session. Run 'python scripts/recording.py'.")
    else:
        PICTURE.write_text(drawn(steps), encoding="utf-8", newline="\n")
    print(text(steps), end="")


if __name__ == "__main__":
    main()
