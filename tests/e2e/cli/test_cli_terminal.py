"""The real program on a pseudo terminal: colours, and no control characters of documents."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import anvil
from tests.conftest import write
from tests.support import html_sites, in_process
from tests.support.programs import environment, program

pty = pytest.importorskip("pty", reason="there are no pseudo terminals here")
EVIL = "\x1b]0;owned\x07\x1b[31mred\x9b2J\x08\x7f"


def terminal(*arguments: str, cwd: Path, code: int = 0, more: dict[str, str] | None = None) -> str:
    """The output of the program on a terminal, stdout and stderr together."""
    ours, its = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "anvil", *arguments],
        cwd=cwd,
        stdin=its,
        stdout=its,
        stderr=its,
        env={**environment(), "TERM": "xterm", **(more or {})},
    ) as process:
        os.close(its)
        said = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            said += part
        os.close(ours)
    assert process.returncode == code, said
    return said.decode("utf-8", "replace").replace("\r\n", "\n")


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """Documents whose names, titles and text hold control characters."""
    page = f'---\ntitle: "Front"\n---\n\n# Alerts {EVIL}\n\nThe zebra {EVIL} alert.\n'
    write(tmp_path / "docs", {"a.md": page, f"b{chr(27)}[32m.md": "# Zebra\n"})
    write(tmp_path, {"anvil.toml": '[embedding]\nprovider = "none"\n'})
    program("build", cwd=tmp_path)
    return tmp_path


def test_nothing_that_documents_hold_gives_orders_to_a_terminal(evil: Path) -> None:
    allowed = re.compile("\x1b\\[(0|36|33;1|1|32|35;1|31;1|33|35|31)m")
    for words, code in (
        (["build"], 0),
        (["search", "zebra"], 0),
        (["show", "a.md"], 0),
        (["show", f"nope{EVIL}"], 2),
        (["list"], 0),
        (["search", "zebra", "--json"], 0),
        (["status"], 0),
        (["doctor"], 0),
        ([f"com{EVIL}mand"], 2),
        (["list", EVIL], 2),
    ):
        said = terminal(*words, cwd=evil, code=code)
        rest = allowed.sub("", said)
        assert not re.search("[\0-\x08\x0b-\x1f\x7f-\x9f]", rest), (words, rest)
    assert "owned" in terminal("show", "a.md", cwd=evil)
    assert EVIL in program("show", "a.md", cwd=evil).stdout, "a pipe is given the text as it is"


def test_colours_where_they_are_wanted(evil: Path) -> None:
    assert "\x1b[33;1mzebra\x1b[0m" in terminal("search", "zebra", cwd=evil)
    for more in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        said = terminal("search", "zebra", cwd=evil, more=more)
        assert "\x1b" not in said and "**" not in said and "zebra" in said


def test_alone_on_a_terminal_it_helps(evil: Path) -> None:
    assert "Usage: anvil [OPTIONS] COMMAND" in terminal(cwd=evil)


def test_results_print_their_address(tmp_path: Path) -> None:
    site = html_sites.site(tmp_path / "site")
    in_process.program("build", "--site", site, "--provider", "none", cwd=tmp_path)
    said = in_process.program("search", "--index", site / "anvil/index.db", "--provider", "none", "crane").stdout
    assert f"\n   {html_sites.BASE}guide/install/#on-windows\n" in said


def test_all_that_commands_print_goes_through_one_door() -> None:
    folder = Path(anvil.__file__).parent / "cli"
    for path in sorted(folder.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func) in ("print", "click.echo", "click.secho", "click.style")
                assert not called or path.name == "output.py", path
