"""The surfaces at work behind any transport: their tools, changes of pages announced, progress told."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from anvil.models import Changes
from anvil.server.announcing import Announcer
from anvil.server.app import App
from anvil.server.surface import Served


@asynccontextmanager
async def running(served: Sequence[Served], announcer: Announcer) -> AsyncIterator[App]:
    """The application over what is ``served``, in the running event loop."""
    app = App(served, announcer)
    loop = asyncio.get_running_loop()

    def tell(changes: Changes) -> None:
        if app.resources is not None:
            paths = (*changes.changed, *changes.added, *changes.removed)
            announcer.start(app.resources.changed(paths, bool(changes.added or changes.removed)))

    def changed(changes: Changes) -> None:  # in the thread that brought the pages up to date
        with contextlib.suppress(RuntimeError):  # the loop ended meanwhile, and nobody is left to tell
            loop.call_soon_threadsafe(tell, changes)

    announcer.attach()
    with contextlib.ExitStack() as listening:
        for each in served:
            if each.surface.pages:
                listening.callback(each.subject.on_change(changed))
        try:
            yield app
        finally:
            announcer.detach()
            app.close()
