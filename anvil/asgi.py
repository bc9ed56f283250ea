"""``anvil.asgi:app``: an index as an ASGI application, for ``uvicorn anvil.asgi:app`` and for functions."""

from __future__ import annotations

from anvil.server.asgi_app import AnvilApplication

app = AnvilApplication()
