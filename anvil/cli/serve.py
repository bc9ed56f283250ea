"""``anvil serve``."""

from __future__ import annotations

import os
import sys

import click

from anvil.cli import options


@click.command("serve", epilog="Example: anvil serve --docs docs")
@options.common
@click.option(
    "--transport", type=click.Choice(["stdio", "http", "sse"]), default="stdio", show_default=True,
    help="How clients reach the server: their own pipe, streamable HTTP, or SSE for older clients.",
)  # fmt: skip
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0: any that is free.")
@click.option("--token", metavar="TEXT", help="Bearer token that clients must send (better: ANVIL_TOKEN).")
@click.option("--insecure", is_flag=True, help="Allow another host than loopback without a token.")
@click.option("--allowed-host", metavar="NAME", multiple=True, help="Host name that clients may use (repeatable).")
@click.option("--no-watch", is_flag=True, help="No file events; each answer looks for itself, as ever.")
@click.option(
    "--log-level", type=click.Choice(["silent", "error", "warn", "info", "debug"]), default="info", show_default=True,
    help="What is written on stderr; debug has timings for each tool.",
)  # fmt: skip
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--surface", type=click.Choice(["docs"]), default="docs", show_default=True, help="The tools offered.")
def command(
    docs: str | None,
    index: str | None,
    config: str | None,
    provider: str | None,
    transport: str,
    host: str,
    port: int,
    token: str | None,
    insecure: bool,
    allowed_host: tuple[str, ...],
    no_watch: bool,
    log_level: str,
    log_format: str,
    surface: str,
) -> None:
    """Serve the documents to MCP clients. The index is built first if there is none, while questions are answered."""
    import anvil
    from anvil.server import logs
    from anvil.server.announcing import Announcer
    from anvil.server.guard import Access
    from anvil.server.stopping import exit_by_signal

    logs.configure(log_level, log_format)
    access = Access(host, port, token or os.environ.get("ANVIL_TOKEN") or None, insecure, allowed_host)
    announcer = Announcer()
    with exit_by_signal():
        opened = anvil.open(docs, index, provider, config, progress=announcer, background=True, watch=not no_watch)
        with opened:
            if transport == "stdio":
                from anvil.server import stdio
                from anvil.server.wire import Wire

                if sys.stdin.isatty():
                    click.echo("anvil: waiting for an MCP client on stdin; 'anvil --help' is for people.", err=True)
                wire = Wire.claimed()
                opened.start(announcer)
                stdio.serve(opened, announcer, wire)
            else:
                from anvil.server import http

                opened.start(announcer)
                http.serve(opened, announcer, access, sse=transport == "sse")
