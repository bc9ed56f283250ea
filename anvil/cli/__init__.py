"""The ``anvil`` command: a file a subcommand, imported when it is called.

Exit codes are decided here once: 0 done, 1 "no" (stale, refused, different), 2 could not (an error, bad arguments).
"""

from __future__ import annotations

import codecs
import importlib
import io
import os
import sys
from typing import Any, NoReturn

import click

from anvil import __version__
from anvil.errors import AnvilError

OK, NO, ERROR = 0, 1, 2
WAYS_OUT = "Use --debug to see where, or 'anvil doctor' to see what is wrong."

COMMANDS = {
    "build": "build",
    "index": "build",
    "check": "check",
    "search": "search",
    "show": "show",
    "list": "list",
    "status": "status",
    "doctor": "doctor",
    "verify": "verify",
    "diff": "diff",
    "merge": "merge",
    "pull": "pull",
    "export": "export",
    "git": "git",
    "init": "init",
    "ci": "ci",
    "serve": "serve",
    "ui": "ui",
    "context": "context",
    "ingest": "ingest",
}
"""Name on the command line -> module; ``index`` is another name for ``build``."""


class Commands(click.Group):
    """A group whose commands are imported one at a time: starting costs what the command needs, no more."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in COMMANDS if name != "index"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"anvil.cli.{COMMANDS[cmd_name]}").command
        assert isinstance(command, click.Command)
        return command


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog='Example: anvil search --docs docs "how do I keep the index fresh?"',
)
@click.version_option(__version__, prog_name="anvil")
def group() -> None:
    """Turn a folder of Markdown into one searchable file, and ask it questions."""


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            _settle(stream)
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def _settle(stream: io.TextIOWrapper) -> None:
    """What a file or another program reads is UTF-8, unless the user said otherwise: on Windows it would be a code page
    that most pages do not fit in. What does not fit, there or on a terminal, is shown as ``?`` and ends nothing."""
    chosen = os.environ.get("PYTHONIOENCODING", "").partition(":")[0]
    if not chosen and not stream.isatty():
        stream.reconfigure(encoding="utf-8", errors=stream.errors)
    bytes_kept = stream.errors == "surrogateescape" and codecs.lookup(stream.encoding).name == "utf-8"
    if stream.errors in ("strict", "surrogateescape") and not bytes_kept:
        stream.reconfigure(errors="replace")


def run(arguments: list[str]) -> int:
    """Run the command line; the exit code. Errors are two sentences on stderr; ``--debug`` shows the traceback.

    Nothing at all means ``serve``: the shortest line that a client's configuration can hold.
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)  # beyond it nothing is an option
    debug = "--debug" in arguments[:end]
    kept = [each for each in arguments[:end] if each != "--debug"] + arguments[end:]
    try:
        result: Any = group.main(kept or ["serve"], "anvil", standalone_mode=False)
    except click.exceptions.Abort:
        print("anvil: interrupted", file=sys.stderr)
        return 130
    except click.ClickException as error:
        error.show()
        return ERROR
    except BrokenPipeError:
        sys.stderr.close()  # the reader went away, as `| head` does
        return OK
    except Exception as error:
        if debug:
            raise
        more = "" if isinstance(error, AnvilError) else f" ({type(error).__name__}). {WAYS_OUT}"
        print(f"anvil: {error}{more}", file=sys.stderr)
        return ERROR
    return result if isinstance(result, int) else OK
