"""The app's life behind any transport: it starts and stops notifications of changed pages and of progress."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from anvil.server.mcp_app import App
from anvil.server.progress import ProgressReporter
from anvil.server.toolset import RunningToolset
from anvil.values import Changes


@asynccontextmanager
async def running_app(
    served: Sequence[RunningToolset], reporter: ProgressReporter, standing: bool = True
) -> AsyncIterator[App]:
    """The app for the toolsets ``served``, in the running event loop. ``standing``: its connections stay open."""
    app = App(served, reporter, standing)
    loop = asyncio.get_running_loop()

    def notify(changes: Changes) -> None:
        if app.resources is not None:
            paths = (*changes.changed, *changes.added, *changes.removed)
            reporter.start(app.resources.changed(paths, bool(changes.added or changes.removed)))

    def changed(changes: Changes) -> None:  # called in the thread that updated the pages
        with contextlib.suppress(RuntimeError):  # the loop ended meanwhile, and with it all connections
            loop.call_soon_threadsafe(notify, changes)

    reporter.attach()
    describing = asyncio.ensure_future(app.describe())
    with contextlib.ExitStack() as listening:
        for running in served:
            if running.toolset.has_pages:
                listening.callback(running.target.on_change(changed))
        try:
            yield app
        finally:
            describing.cancel()
            reporter.detach()
            app.close()
