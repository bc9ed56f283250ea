"""``anvil ui``."""

from __future__ import annotations

import os
import threading
from urllib.parse import quote

import click

from anvil.cli import options, output
from anvil.requests import OpenRequest


@click.command("ui", epilog="Example: anvil ui --docs docs")
@options.project
@options.in_site
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="0: any free port.")
@click.option("--no-browser", is_flag=True, help="Print the address, and do not open a browser.")
@options.folder
def command(given: OpenRequest, port: int, no_browser: bool) -> None:
    """Search, read and check the index in your browser, until Ctrl+C. Only this machine can open the page."""
    import webbrowser

    output.say("Starting the playground.", err=True)  # what it needs takes some seconds to load

    from anvil.server import http_transport, logs, playground
    from anvil.server.progress import ProgressReporter
    from anvil.server.security import Access
    from anvil.server.signals import ShutdownDeadline, exit_on_signal
    from anvil.server.toolset import ServeRequest, open_toolset

    logs.configure("warn")
    access = Access(port=port, token=os.environ.get("ANVIL_TOKEN") or None)
    reporter = ProgressReporter()

    def ready(base: str) -> None:
        home = f"{base}{playground.HOME}"
        # Browsers do not send the part after #. The browser's command line must not contain the token, because other
        # users of the machine can read it. There the page asks for the token.
        output.say(f"{home}#token={quote(access.token, safe='')}" if access.token else home)
        if not no_browser:
            threading.Thread(target=webbrowser.open, args=(home,), daemon=True).start()

    serve_options = ServeRequest(
        docs=given.docs,
        index=given.index,
        config=given.config,
        provider=given.provider,
        collections=given.collections,
    )
    with exit_on_signal(), ShutdownDeadline() as shutdown, open_toolset("docs", serve_options, reporter) as running:
        served = playground.with_playground(running)
        running.target.start(reporter)
        http_transport.serve([served], reporter, access, ready=ready)
        shutdown.begin()
