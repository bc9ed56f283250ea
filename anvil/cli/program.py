"""The ``anvil`` program: it finds the command, runs it, and turns an exception into a message and an exit code.

The module of a command is imported when the command is called.
"""

from __future__ import annotations

import codecs
import gc
import io
import os
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, TypeGuard

import click

from anvil._version import __version__
from anvil.cli import output
from anvil.cli.output import ERROR, OK
from anvil.errors import AnvilError
from anvil.registry import COMMANDS, GROUPS, load
from anvil.wording import closest_names

DEFAULT_DOCS = "docs"
OLDER_CONFIG = "anvil.config.json"
"""The configuration of older versions of Anvil. Only 'anvil init' reads it, to convert it to ``anvil.toml``."""


class SuggestingGroup(click.Group):
    """A group of commands that suggests the closest names for a command that does not exist.

    Its help has the whole first sentence of each command, which click would cut after 45 characters.
    """

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            shown = {name: command for name, command in self.commands.items() if not command.hidden}
            summaries = {name: command.get_short_help_str(MAX_SUMMARY_CHARS) for name, command in shown.items()}
            formatter.write_dl([*summaries.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name.startswith("-") or self.get_command(ctx, name) is not None:
            return super().resolve_command(ctx, args)
        close_names = closest_names(name, self.list_commands(ctx), limit=2)
        hint = f" Did you mean {' or '.join(repr(close) for close in close_names)}?" if close_names else ""
        if not close_names and " " in name:
            hint = " To ask a question, use 'anvil search'."
        raise click.UsageError(f"There is no command {name!r}.{hint}", ctx)


MAX_SUMMARY_CHARS = 150
"""Characters of a command's summary in the help of its group."""
COMPLETION = "_ANVIL_COMPLETE"
"""The environment variable with which a shell asks for completions."""
PATHS = ("FOLDER", "FILE", "FOLDER|FILE|URL", "[FILE]", "PATH", "SOURCE", "DOCUMENT", "A", "B")
"""The names in the help of parameters that are paths."""
UNEXPECTED_ADVICE = "Use --debug to see where, or 'anvil doctor' to see what is wrong."

OLDER_OPTIONS = {
    **dict.fromkeys(("--docs", "-d", "--db", "--index", "--config", "-c", "--log-level"), 1),
    "--no-watch": 0,
}
"""Option that may come before a command or without one (``anvil --docs docs``) -> the number of words of its value."""


class LazyGroup(SuggestingGroup):
    """A group that imports a command when it is called, so that a start imports only what this command needs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, entry in COMMANDS.items() if entry.group]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = load(COMMANDS[cmd_name].place)
        assert isinstance(command, click.Command)
        if COMPLETION in os.environ:
            _complete_paths(command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands in their groups, from the registry: no command is imported for the help."""
        width = max(map(len, COMMANDS))
        for group in GROUPS:
            with formatter.section(group):
                rows = [(f"{name:{width}}", entry.summary) for name, entry in COMMANDS.items() if entry.group == group]
                formatter.write_dl(rows)


def _complete_paths(command: click.Command) -> None:
    """Let the shell complete files and folders for parameters that are paths."""
    for subcommand in command.commands.values() if isinstance(command, click.Group) else ():
        _complete_paths(subcommand)
    for parameter in command.params:
        if (parameter.metavar or (parameter.name or "").upper()) in PATHS:
            parameter.type = click.Path()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog='Example: anvil search --docs docs "how do I keep the index fresh?"',
)
@click.version_option(__version__, "--version", "-v", prog_name="anvil")
def group() -> None:
    """Make one searchable file of Markdown or a built site, and ask it questions."""


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the program and exit. ``arguments``: those of the process if None."""
    for name in ("stdout", "stderr"):  # None if it was closed, and without a console on Windows
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_WRONLY)
            setattr(sys, name, open(null, "w", encoding="utf-8", closefd=False))  # noqa: SIM115 - it stays open
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            _configure_encoding(stream)
    _end_at_signals()
    code = run(sys.argv[1:] if arguments is None else arguments)
    gc.freeze()  # At its end the interpreter looks for garbage in all objects, which takes a tenth of a short build.
    sys.exit(code)


INTERRUPTED = 130
"""Exit code after Ctrl-C, which is 128 + SIGINT as in shells."""
CLEANUP_S = 1.0
"""Seconds after a Ctrl-C in which another one is ignored."""


def _end_at_signals() -> None:
    """Raise :class:`KeyboardInterrupt` at the first Ctrl-C, and :class:`SystemExit` at SIGTERM, as a CI job gets when
    it is cancelled. So locks and scratch files are removed.

    A second signal would interrupt this cleanup, with tracebacks and threads that abort the process. It is ignored for
    :data:`CLEANUP_S`, since ``timeout`` signals twice. After that it ends the process at once.
    """
    signal_times: list[float] = []

    def on_signal(number: int, frame: object) -> None:
        signal_times.append(time.monotonic())
        if len(signal_times) == 1:
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)
        if signal_times[-1] - signal_times[0] > CLEANUP_S:
            os._exit(INTERRUPTED)

    # A signal with another handler is left alone, such as one that a shell lets its background jobs ignore.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, on_signal)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, on_signal)


def _configure_encoding(stream: io.TextIOWrapper) -> None:
    """Write UTF-8 to files and pipes, unless PYTHONIOENCODING names another encoding. On Windows the default is a code
    page that lacks many characters of documents. A character that the encoding lacks is written as ``?``.
    """
    encoding = os.environ.get("PYTHONIOENCODING", "").partition(":")[0]
    if not encoding and not stream.isatty():
        stream.reconfigure(encoding="utf-8", errors=stream.errors)
    keeps_bytes = stream.errors == "surrogateescape" and codecs.lookup(stream.encoding).name == "utf-8"
    if stream.errors in ("strict", "surrogateescape") and not keeps_bytes:
        stream.reconfigure(errors="replace")


def run(arguments: list[str]) -> int:
    """Run the command line and return the exit code. An error is a message on stderr. ``--debug`` adds the traceback.

    Without arguments it prints the help on a terminal. Elsewhere it runs ``serve``, so that the command in a client's
    configuration may be just ``anvil``.
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)  # words after "--" are no options
    output.project_options.clear()
    debug = "--debug" in arguments[:end]
    words = [word for word in arguments[:end] if word != "--debug"] + arguments[end:]
    try:
        _warn_of_older_config(words)
        result: Any = group.main(_with_command(words), "anvil", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        output.warn("interrupted")
        return INTERRUPTED
    except click.ClickException as error:
        message = io.StringIO()
        error.show(message)
        output.say(message.getvalue(), err=True, nl=False)
        if isinstance(error, click.NoSuchOption) and not error.possibilities and _takes_text(error.ctx):
            output.say(f"To search for it, write: {error.ctx.command_path} -- {error.option_name}", err=True)
        return ERROR
    except BrokenPipeError:
        output.discard(sys.stdout)  # else Python fails at exit, when it writes what is left in the buffer
        return OK
    except Exception as error:
        if debug:
            import traceback

            output.say(traceback.format_exc(), err=True, nl=False)
        if isinstance(error, FileNotFoundError) and error.filename is None:  # raised by os.getcwd()
            output.warn("The working folder was removed. Go to another folder, and try again.")
            return ERROR
        if isinstance(error, PermissionError) and error.filename is not None:
            output.warn(f"{error.filename}: {error.strerror}. Give yourself the right to use it, or name another path.")
            return ERROR
        details = "" if isinstance(error, AnvilError) else f" ({type(error).__name__}). {UNEXPECTED_ADVICE}"
        output.warn(f"{error}{details}")
        return ERROR
    return result if isinstance(result, int) else OK


def _takes_text(context: click.Context | None) -> TypeGuard[click.Context]:
    """Whether a command searches for a text, which may be the name of an option."""
    names = {parameter.name for parameter in context.command.params} if context is not None else set()
    return not names.isdisjoint({"query", "pattern"})


def _warn_of_older_config(words: Sequence[str]) -> None:
    """Warn that an older configuration is not read, unless there is a current one, too. It is searched in the folders
    that the command names."""
    if not words or words[0] in ("init", "--help", "-h", "--version", "-v"):
        return
    file = older_config_file([*(word.partition("=")[2] or word for word in words), DEFAULT_DOCS])
    if file is None:
        return
    from pathlib import Path

    from anvil.settings.configuration import nearest_config

    if nearest_config(Path.cwd()) is None:
        output.warn(f"{file} is from an older Anvil and is not read. Run 'anvil init' to convert it to anvil.toml.")


def older_config_file(folders: Iterable[str]) -> str | None:
    """The older configuration in the working folder, or in the first of ``folders`` that has one, else None."""
    names = (OLDER_CONFIG, *(os.path.join(folder, OLDER_CONFIG) for folder in folders))
    return next(filter(os.path.isfile, names), None)


def _with_command(words: list[str]) -> list[str]:
    """The arguments with the command first. Options before it move behind it. Without a command, it is ``serve``."""
    if not words:
        return ["--help" if sys.stdin is None or sys.stdin.isatty() else "serve"]
    end = 0
    while end < len(words) and (option := words[end].partition("=")[0]) in OLDER_OPTIONS:
        end += 1 + (OLDER_OPTIONS[option] if option == words[end] else 0)
    if not end:
        return words
    if end == len(words) or words[end] not in COMMANDS:
        return ["serve", *words]
    return [words[end], *words[:end], *words[end + 1 :]]
