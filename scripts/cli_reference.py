"""docs/reference/cli.md, from the commands themselves.

The page is made from the commands' parameters rather than their help output, whose layout differs between versions of
click.
"""

from __future__ import annotations

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


def reference() -> str:
    """The page, whole."""
    context = click.Context(group, info_name="anvil")
    parts = [OPENING]
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        aliases = [other for other, entry in COMMANDS.items() if entry.place == COMMANDS[name].place and other != name]
        parts.append(described(name, command, aliases))
        if isinstance(command, click.Group):
            inner = {each: own for each, own in command.commands.items() if not own.hidden}
            parts += [described(f"{name} {each}", own, [], "###") for each, own in inner.items()]
    return "\n".join(parts)


def described(name: str, command: click.Command, aliases: list[str], level: str = "##") -> str:
    """One command: usage, what it does, options, example."""
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    options = [each for each in command.params if isinstance(each, click.Option)]
    takes = [each.metavar or (each.name or "").upper() for each in arguments]
    takes = ["COMMAND"] if isinstance(command, click.Group) else ["[OPTIONS]", *takes]
    usage = " ".join(["anvil", name, *takes])
    lines = [f"{level} anvil {name}", "", "```text", usage, "```", "", " ".join((command.help or "").split()), ""]
    if aliases:
        lines += [f"Also called `anvil {aliases[0]}`.", ""]
    if options:
        lines += ["| option | meaning |", "|---|---|"]
        lines += [f"| {spelled(option)} | {explained(option)} |" for option in options]
        lines.append("")
    if command.epilog:
        lines += ["```bash", command.epilog.removeprefix("Example: "), "```", ""]
    return "\n".join(lines)


def spelled(option: click.Option) -> str:
    """All spellings of an option, with what it takes."""
    names = sorted([*option.opts, *option.secondary_opts], key=lambda name: (name not in option.opts, -len(name)))
    if option.is_flag:
        takes = ""
    elif isinstance(option.type, click.Choice):
        takes = " " + "\\|".join(str(choice) for choice in option.type.choices)
    else:
        takes = f" {option.metavar or option.type.name.upper()}"
    return ", ".join(f"`{name}{takes}`" for name in names)


def explained(option: click.Option) -> str:
    """What an option means, and its default where the help shows one."""
    text = " ".join((option.help or "").split()).replace("|", "\\|")
    return f"{text} Default: `{option.default}`.".strip() if option.show_default else text
