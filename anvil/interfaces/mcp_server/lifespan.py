"""The toolsets at work behind any transport: their tools, changes of pages announced, progress told."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from anvil.interfaces.mcp_server.app import App
from anvil.interfaces.mcp_server.progress import ProgressReporter
from anvil.interfaces.mcp_server.tools.toolset import RunningToolset
from anvil.models.documents import Changes


@asynccontextmanager
async def running_app(
    served: Sequence[RunningToolset], reporter: ProgressReporter, standing: bool = True
) -> AsyncIterator[App]:
    """The application over what is ``served``, in the running event loop. ``standing``: its connections last."""
    app = App(served, reporter, standing)
    loop = asyncio.get_running_loop()

    def tell(changes: Changes) -> None:
        if app.resources is not None:
            paths = (*changes.changed, *changes.added, *changes.removed)
            reporter.start(app.resources.changed(paths, bool(changes.added or changes.removed)))

    def changed(changes: Changes) -> None:  # in the thread that brought the pages up to date
        with contextlib.suppress(RuntimeError):  # the loop ended meanwhile, and nobody is left to tell
            loop.call_soon_threadsafe(tell, changes)

    reporter.attach()
    with contextlib.ExitStack() as listening:
        for each in served:
            if each.toolset.has_pages:
                listening.callback(each.target.on_change(changed))
        try:
            yield app
        finally:
            reporter.detach()
            app.close()
