"""``anvil ui``."""

from __future__ import annotations

import os
import threading
import webbrowser
from urllib.parse import quote

import click

from anvil.cli import options


@click.command("ui", epilog="Example: anvil ui --docs docs")
@options.common
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="0: any that is free.")
@click.option("--no-browser", is_flag=True, help="Print the address, and leave opening it to you.")
def command(
    docs: str | None, index: str | None, config: str | None, provider: str | None, port: int, no_browser: bool
) -> None:
    """Ask, read and look over the index in your browser, until Ctrl+C. Only this machine can reach the page."""
    from anvil.server import http, logs, playground
    from anvil.server.announcing import Announcer
    from anvil.server.guard import Access
    from anvil.server.stopping import exit_by_signal
    from anvil.server.surface import Asked, opened

    logs.configure("warn")
    access = Access(port=port, token=os.environ.get("ANVIL_TOKEN") or None)
    announcer = Announcer()

    def ready(base: str) -> None:
        home = f"{base}{playground.HOME}"
        # Browsers keep what stands behind # to themselves. The one that is opened is not given it on its command line,
        # which others on the machine can read: it asks for the token.
        click.echo(f"{home}#token={quote(access.token, safe='')}" if access.token else home)
        if not no_browser:
            threading.Thread(target=webbrowser.open, args=(home,), daemon=True).start()

    with exit_by_signal(), opened("docs", Asked(docs, index, config, provider), announcer) as served:
        served.subject.start(announcer)
        http.serve([playground.beside(served)], announcer, access, ready=ready)
