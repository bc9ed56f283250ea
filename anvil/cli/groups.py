"""The class of ``anvil`` itself and of its commands that have subcommands."""

from __future__ import annotations

import click


class SuggestingGroup(click.Group):
    """A group of commands that suggests the closest names for one that does not exist."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """See :meth:`click.Group.resolve_command`."""
        name = args[0]
        if name.startswith("-") or self.get_command(ctx, name) is not None:
            return super().resolve_command(ctx, args)
        import difflib

        close_names = difflib.get_close_matches(name, self.list_commands(ctx), n=2, cutoff=0.6)
        hint = f" Did you mean {' or '.join(repr(close) for close in close_names)}?" if close_names else ""
        if not close_names and " " in name:
            hint = " To ask a question, use 'anvil search'."
        raise click.UsageError(f"There is no command {name!r}.{hint}", ctx)
