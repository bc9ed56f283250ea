"""The index at work behind any transport: opened in the background, its changes announced, closed at the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from anvil.api import Anvil
from anvil.server.announcing import Announcer
from anvil.server.app import App
from anvil.server.crossing import Crossing


@asynccontextmanager
async def running(anvil: Anvil, announcer: Announcer) -> AsyncIterator[App]:
    """The application over ``anvil``, in the running event loop."""
    app = App(Crossing(anvil), announcer)
    loop = asyncio.get_running_loop()

    def changed(paths: Sequence[str]) -> None:  # in the thread that brought the pages up to date
        if not loop.is_closed():
            loop.call_soon_threadsafe(lambda: announcer.start(app.resources.changed(paths, True)))

    announcer.attach()
    forget = getattr(anvil, 'on_change', lambda _: (lambda: None))(changed)
    try:
        yield app
    finally:
        forget()
        announcer.detach()
        app.resources.close()
