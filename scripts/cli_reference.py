"""docs/reference/cli.md, from the commands themselves.

The page is made from the commands' parameters rather than their help output, whose layout differs between versions of
click.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence, Set

import click

from anvil.cli.program import group
from anvil.registry import COMMANDS

OPENING = """\
# Command line

Every command takes `--help`. `python -m anvil` is the same as `anvil`.

All commands have the same exit codes: 0 done, 1 "no" (stale, refused, different), 2 an error, also for wrong arguments.
An error is one or two sentences on stderr; `--debug`, anywhere on the line, adds the traceback. Results go to stdout,
progress and warnings to stderr. Values without an option come from the [configuration](../guides/configuration.md).

`anvil` alone prints the help on a terminal. If its stdin is a pipe, it is `anvil serve`. `--docs`, `--index` and
`--config` may come before the command. On a terminal results are coloured, unless `NO_COLOR` is set or `TERM` is
`dumb`, and control characters of documents are replaced; a pipe gets the unchanged text. bash, zsh and fish can
[complete](../quickstart.md#complete-in-the-shell) commands and options.
"""


Row = tuple[str, str]
"""An option as it is spelled, and its meaning."""


def reference() -> str:
    """The page, whole: first the options that five commands or more share, then each command with its own."""
    context = click.Context(group, info_name="anvil")
    commands = {name: command for name in group.list_commands(context) if (command := group.get_command(context, name))}
    within = {name: inner(command) for name, command in commands.items()}
    shared = common([{row for each in within[name] for row in rows(each)} for name in commands], 5)
    listed = [row for row in dict.fromkeys(row for name in commands for row in rows(commands[name])) if row in shared]
    parts = [OPENING, "\n".join(["## Options that commands share", "", *table(listed)])]
    for name, command in commands.items():
        aliases = [other for other, entry in COMMANDS.items() if entry.place == COMMANDS[name].place and other != name]
        parts.append(described(name, command, aliases, shared))
        if isinstance(command, click.Group):
            own = common([set(rows(each)) for each in within[name]], 4) - shared
            if own:
                listed = [
                    row for row in dict.fromkeys(row for each in within[name] for row in rows(each)) if row in own
                ]
                parts.append("\n".join(["Most of these commands take:", "", *table(listed)]))
            parts += [
                described(f"{name} {each.name}", each, [], shared | own, "###")
                for each in within[name]
                if each is not command
            ]
    return "\n".join(parts)


def inner(command: click.Command) -> list[click.Command]:
    """A command, and those within it."""
    return [command, *(each for each in getattr(command, "commands", {}).values() if not each.hidden)]


def common(commands: Sequence[Set[Row]], least: int) -> set[Row]:
    """The options that at least so many of the commands have, with one meaning."""
    return {row for row, number in Counter(row for each in commands for row in each).items() if number >= least}


def rows(command: click.Command) -> list[Row]:
    """The options of a command."""
    return [(spelled(each), explained(each)) for each in command.params if isinstance(each, click.Option)]


def table(options: Sequence[Row]) -> list[str]:
    """The lines of a table of options, and an empty one."""
    return ["| option | meaning |", "|---|---|", *(f"| {name} | {meaning} |" for name, meaning in options), ""]


def described(name: str, command: click.Command, aliases: list[str], shared: Set[Row], level: str = "##") -> str:
    """One command: usage, what it does, its own options, the names of those that it shares, example."""
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    names = [(each.name or "").upper() for each in arguments]
    takes = [
        each.metavar or (name if each.required else f"[{name}]") for each, name in zip(arguments, names, strict=True)
    ]
    takes = ["COMMAND"] if isinstance(command, click.Group) else ["[OPTIONS]", *takes]
    usage = " ".join(["anvil", name, *takes])
    lines = [f"{level} anvil {name}", "", "```text", usage, "```", "", " ".join((command.help or "").split()), ""]
    if aliases:
        lines += [f"Also called `anvil {aliases[0]}`.", ""]
    options = rows(command)
    own = [row for row in options if row not in shared]
    if own:
        lines += table(own)
    if len(own) < len(options):
        known = [f"`{re.split('[ `]', row[0])[1]}`" for row in options if row in shared]
        lines += [f"{'Also' if own else 'Options'}: {', '.join(known)}.", ""]
    if command.epilog:
        lines += ["```bash", command.epilog.removeprefix("Example: "), "```", ""]
    return "\n".join(lines)


def spelled(option: click.Option) -> str:
    """All spellings of an option, with what it takes."""
    names = sorted([*option.opts, *option.secondary_opts], key=lambda name: (name not in option.opts, -len(name)))
    if option.is_flag:
        takes = ""
    elif isinstance(option.type, click.Choice) and len(option.type.choices) <= 5:
        takes = " " + "|".join(str(choice) for choice in option.type.choices if choice)
    elif isinstance(option.type, click.Choice | click.types.IntParamType):  # the meaning has the choices or the range
        takes = f" {option.metavar or ('NAME' if isinstance(option.type, click.Choice) else 'N')}"
    else:
        takes = f" {option.metavar or option.type.name.removesuffix(' range').upper()}"
    return ", ".join(f"`{name}{takes}`" for name in names).replace("|", "\\|")


def explained(option: click.Option) -> str:
    """What an option means, and its default where the help shows one."""
    text = " ".join((option.help or "").split()).replace("|", "\\|")
    return f"{text} Default: `{option.default}`.".strip() if option.show_default else text
