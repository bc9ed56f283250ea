"""``anvil serve``, the MCP server, and ``anvil ui``, the playground: their options and their start."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from anvil.cli import options, output
from anvil.registry import TOOLSETS
from anvil.server.http_options import HttpOptions
from anvil.server.toolset import RunningToolset, ServeRequest

if TYPE_CHECKING:
    from anvil.server.logs import ProgressReporter
    from anvil.server.signals import ShutdownDeadline


def surface_names(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
    """The names in the value of ``--surface``, without repetitions."""
    surfaces = tuple(dict.fromkeys(name.strip() for name in value.split(",")))
    for name in surfaces:
        if name not in TOOLSETS:
            raise click.BadParameter(f"There is no surface {name!r}. Choose from {', '.join(TOOLSETS)}.")
    return surfaces


def _http_options(function: options.F) -> options.F:
    """Add an option for each field of :class:`HttpOptions` that has a help. The command gets them as one value, its
    argument ``http``."""
    function = options.collected(HttpOptions, "http")(function)
    for option in reversed([option for option in fields(HttpOptions) if option.metadata.get("help")]):
        variable, is_repeatable = option.metadata["variable"], option.default == ()
        function = click.option(
            f"--{option.name.replace('_', '-')}",
            type=click.IntRange(*option.metadata["range"]) if "range" in option.metadata else None,
            default=option.default,
            show_default=bool(option.default),
            is_flag=option.default is False,
            multiple=is_repeatable,
            envvar=variable,
            metavar=option.metadata["metavar"],
            help=option.metadata["help"] + f" (repeatable; in {variable}, separated by spaces)." * is_repeatable,
        )(function)
    return function


@click.command("serve", epilog="Example: anvil serve --docs docs")
@options.given(*options.PROJECT, kind=ServeRequest)
@options.in_site
@click.option(
    "--transport",
    type=click.Choice(["stdio", "http", "sse"]),
    default="stdio",
    show_default=True,
    help="How clients connect: standard input and output, streamable HTTP, or SSE for older clients.",
)
@_http_options
@click.option("--no-watch", is_flag=True, help="Do not watch files. Each query still checks them for changes.")
@click.option(
    "--log-level",
    type=click.Choice(["silent", "error", "warn", "info", "debug"]),
    default="info",
    show_default=True,
    help="What is written to stderr. With debug, the time of each tool call too.",
)
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--surface",
    callback=surface_names,
    metavar="NAME[,NAME]",
    default="docs",
    show_default=True,
    help=f"The sets of tools to offer: {', '.join(TOOLSETS)}.",
)
@click.option(
    "--text",
    "text_format",
    type=click.Choice(["json", "markdown"]),
    default="json",
    show_default=True,
    help="The form of answers. Markdown has fewer characters; it is sent alone, without structured content.",
)
@click.option("--root", metavar="FOLDER", help="With context: the repository (default: the configuration's folder).")
@click.option("--library-index", metavar="FILE", help="With library: its file (default: in the user's data folder).")
@click.option(
    "--allow-private-urls", is_flag=True, help="With library: let ingest_url fetch from this machine and its network."
)
@click.option("--ui", is_flag=True, help="Over HTTP: also serve the playground at /ui/ (see anvil ui).")
@options.folder
def command(
    given: ServeRequest,
    http: HttpOptions,
    no_watch: bool,
    log_level: str,
    log_format: str,
    surface: tuple[str, ...],
    text_format: str,
    ui: bool,
) -> None:
    """Serve the documents to MCP clients. If there is no index, the server builds it while it already answers."""
    if ui and given.transport == "stdio":
        raise click.UsageError("--ui needs HTTP. Add --transport http, or run 'anvil ui'.")
    if ui and "docs" not in surface:
        raise click.UsageError("--ui needs the docs surface. Add it: --surface docs,...")

    request = replace(given, watch=not no_watch)
    with _open_toolsets(surface, request, log_level, log_format) as (running, reporter, shutdown):
        if text_format == "markdown":
            from anvil.server.markdown_results import in_markdown

            running = [replace(served, toolset=in_markdown(served.toolset)) for served in running]
        if given.transport == "stdio":
            from anvil.server import stdio

            if sys.stdin.isatty():
                output.say("anvil: waiting for an MCP client on stdin. For help, run: anvil --help", err=True)
            pipe = stdio.StdioPipe.take_over_stdio()
            stdio.serve(running, reporter, pipe, shutdown)
        else:
            _serve_http(running, reporter, http, given.transport == "sse", ui)


@contextlib.contextmanager
def _open_toolsets(
    surfaces: Sequence[str], request: ServeRequest, log_level: str, log_format: str = "text"
) -> Iterator[tuple[list[RunningToolset], ProgressReporter, ShutdownDeadline]]:
    """A context with the open toolsets of a server. It ends with the server, or by a signal."""
    from anvil.server import logs
    from anvil.server.signals import ShutdownDeadline, exit_on_signal
    from anvil.server.toolset import open_toolset

    logs.configure(log_level, log_format)
    reporter = logs.ProgressReporter()
    with exit_on_signal(), ShutdownDeadline() as shutdown, contextlib.ExitStack() as stack:
        running = [stack.enter_context(open_toolset(name, request, reporter)) for name in surfaces]
        stack.callback(shutdown.begin)  # entered last, so called first: closing the toolsets is a part of the shutdown
        yield running, reporter, shutdown


def _serve_http(
    running: list[RunningToolset],
    reporter: ProgressReporter,
    http: HttpOptions,
    sse: bool,
    ui: bool,
    ready: Callable[[str], None] | None = None,
) -> None:
    for toolset in running:
        # In the background, during the import, which takes longer than to load index and model.
        toolset.target.start(reporter)
    # The import of the SDK makes a million objects and no garbage. Looking for garbage takes a tenth of its time.
    gc.disable()
    try:
        from anvil.server import http_transport
    finally:
        gc.enable()
    import asyncio

    if ui:
        from anvil.server import playground

        running = [playground.with_playground(toolset) for toolset in running]
        ready = ready or playground.log_address
    asyncio.run(http_transport.serve(running, reporter, http, sse, ready))


@click.command("ui", epilog="Example: anvil ui --docs docs")
@options.given(*options.PROJECT, kind=ServeRequest)
@options.in_site
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="0: any free port.")
@click.option("--no-browser", is_flag=True, help="Print the address, and do not open a browser.")
@options.folder
def ui_command(given: ServeRequest, port: int, no_browser: bool) -> None:
    """Search, read and check the index in your browser, until Ctrl+C. Only this machine can open the page."""
    output.say("Starting the playground.", err=True)  # the imports take some seconds

    http = HttpOptions(port=port, token=os.environ.get("ANVIL_TOKEN") or None)

    def ready(base: str) -> None:
        import webbrowser

        from anvil.server.playground import HOME

        home = f"{base}{HOME}"
        # Browsers do not send the part after # to a server. The command that opens the browser must not contain the
        # token, because other users of the machine can read command lines. The page then asks for the token.
        output.say(f"{home}#token={quote(http.token, safe='')}" if http.token else home)
        if not no_browser:
            threading.Thread(target=webbrowser.open, args=(home,), daemon=True).start()

    with _open_toolsets(["docs"], given, "warn") as (running, reporter, _):
        _serve_http(running, reporter, http, sse=False, ui=True, ready=ready)
