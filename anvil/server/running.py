"""The index at work behind any transport: its tools, its changes announced, its progress told."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anvil.api import Anvil
from anvil.models import Changes
from anvil.server.announcing import Announcer
from anvil.server.app import App
from anvil.server.crossing import Crossing


@asynccontextmanager
async def running(anvil: Anvil, announcer: Announcer) -> AsyncIterator[App]:
    """The application over ``anvil``, in the running event loop."""
    app = App(Crossing(anvil), announcer)
    loop = asyncio.get_running_loop()

    def tell(changes: Changes) -> None:
        paths = (*changes.changed, *changes.added, *changes.removed)
        announcer.start(app.resources.changed(paths, bool(changes.added or changes.removed)))

    def changed(changes: Changes) -> None:  # in the thread that brought the pages up to date
        with contextlib.suppress(RuntimeError):  # the loop ended meanwhile, and nobody is left to tell
            loop.call_soon_threadsafe(tell, changes)

    announcer.attach()
    forget = anvil.on_change(changed)
    try:
        yield app
    finally:
        forget()
        announcer.detach()
        app.resources.close()
