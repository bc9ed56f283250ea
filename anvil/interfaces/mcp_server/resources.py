"""Pages as MCP resources ``anvil://page/{path}``: list, read, completion, and notifications of changes."""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, unquote

import mcp.types as types
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPError

from anvil.api import Anvil
from anvil.core.pluralize import full_heading
from anvil.errors import AnvilError
from anvil.interfaces.mcp_server.subscriptions import Connections, RequestContext
from anvil.interfaces.mcp_server.threads import ThreadBridge
from anvil.models.documents import Page, PageList

PREFIX = "anvil://page/"
NOT_FOUND = -32002
"""The protocol's error code for a resource that does not exist, up to revision 2025-11-25."""
LIST_PAGE_SIZE, MAX_COMPLETIONS = 500, 100
"""Resources in one answer of the list, and completions in one answer (the protocol's limit)."""


def _full_headings(page: Page) -> list[str]:
    """The sections of a page with the page's title in front. ``get_section`` accepts these."""
    return [full_heading(page.title, section.heading_path) for section in page.sections]


def uri_of(path: str) -> str:
    """The URI of a page."""
    return PREFIX + quote(path, safe="/~@:+,=&$!'()*;")


def path_of(uri: str) -> str:
    """The page of a URI. Raises :class:`MCPError` for another kind of URI."""
    if not uri.startswith(PREFIX):
        raise MCPError(types.INVALID_PARAMS, f"{uri[:200]} is not a page. The URI of a page is {PREFIX}" + "{path}.")
    return unquote(uri.removeprefix(PREFIX).partition("#")[0], errors="replace")


class Resources:
    """The pages of one index as resources, and the subscriptions to them."""

    def __init__(self, bridge: ThreadBridge, connections: Connections) -> None:
        self._bridge = bridge
        self._connections = connections
        self._bus = InMemorySubscriptionBus()
        self._listening = ListenHandler(self._bus, max_subscriptions=64)

    def handlers(self, standing: bool) -> dict[str, Any]:
        """The handlers, by the names of the arguments of the SDK's server. Only a ``standing`` connection can
        subscribe; the newest revision of the protocol has a stream (:meth:`listen`) instead."""
        handlers: dict[str, Any] = {
            "on_list_resources": self.list,
            "on_list_resource_templates": self.templates,
            "on_read_resource": self.read,
            "on_subscriptions_listen": self.listen,
            "on_completion": self.complete,
        }
        if standing:
            handlers |= {"on_subscribe_resource": self.subscribe, "on_unsubscribe_resource": self.unsubscribe}
        return handlers

    # --- requests --------------------------------------------------------------------------------------------

    async def list(self, _: RequestContext, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        """The pages after the one in the cursor."""
        pages = (await self._call("resources/list", lambda anvil: anvil.list_pages())).pages
        cursor = params.cursor if params else None
        start = bisect.bisect_right([page.file_path for page in pages], cursor) if cursor else 0
        shown = pages[start : start + LIST_PAGE_SIZE]
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    name=page.file_path, title=page.title, uri=uri_of(page.file_path), mime_type="text/markdown"
                )
                for page in shown
            ],
            next_cursor=shown[-1].file_path if start + LIST_PAGE_SIZE < len(pages) else None,
        )

    async def templates(
        self, _: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """The URI templates of a page and of a section."""
        templates = [
            ("page", PREFIX + "{path}", "A page, by its path in the docs folder."),
            ("section", PREFIX + "{file_path}{#heading_path}", "A section, by page and breadcrumb."),
        ]
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(name=name, uri_template=uri, description=text, mime_type="text/markdown")
                for name, uri, text in templates
            ]
        )

    async def read(self, _: RequestContext, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        """The Markdown of a page, or of a section when the URI has a fragment."""
        uri = str(params.uri)
        path, heading = path_of(uri), unquote(uri.partition("#")[2], errors="replace")

        def text(anvil: Anvil) -> str:
            if heading:
                return anvil.get_section(path, heading).content
            return "".join(chunk.content for chunk in anvil.get_page(path).chunks)

        content = await self._call("resources/read", text)
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=uri, mime_type="text/markdown", text=content)]
        )

    async def complete(self, _: RequestContext, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Paths of pages, or breadcrumbs of the page in the context. First those that begin with the typed text, then
        those that contain it."""
        name, typed = params.argument.name, params.argument.value
        known = (params.context.arguments if params.context else None) or {}
        candidates: Iterable[str] = ()
        if name in ("path", "file_path"):
            pages: PageList = await self._call("completion", lambda anvil: anvil.list_pages())
            candidates = [page.file_path for page in pages.pages]
        elif name == "heading_path" and (path := known.get("file_path") or known.get("path")):
            try:
                candidates = await self._bridge.call("completion", lambda anvil: _full_headings(anvil.get_page(path)))
            except AnvilError:
                candidates = ()  # nothing to offer while the page's name is still being typed
        folded = typed.casefold()
        beginnings = [value for value in candidates if value.casefold().startswith(folded)]
        listed = set(beginnings)
        values = beginnings + [value for value in candidates if folded in value.casefold() and value not in listed]
        return types.CompleteResult(
            completion=types.Completion(
                values=values[:MAX_COMPLETIONS], total=len(values), has_more=len(values) > MAX_COMPLETIONS
            )
        )

    async def _call(self, name: str, call: Any) -> Any:
        try:
            return await self._bridge.call(name, call)
        except AnvilError as error:
            raise MCPError(NOT_FOUND, str(error)) from None

    # --- subscriptions ---------------------------------------------------------------------------------------

    async def subscribe(self, ctx: RequestContext, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """Notify this connection when the page changes. The page need not exist yet."""
        path_of(str(params.uri))
        if len(ctx.lifespan_context.uris) >= 10_000:
            raise MCPError(types.INVALID_REQUEST, "Too many subscriptions on one connection. Unsubscribe from some.")
        if ctx.session.can_send_request:
            ctx.lifespan_context.session = ctx.session
            ctx.lifespan_context.uris.add(str(params.uri))
        return types.EmptyResult()

    async def unsubscribe(self, ctx: RequestContext, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        """Stop the notifications of :meth:`subscribe`."""
        ctx.lifespan_context.uris.discard(str(params.uri))
        return types.EmptyResult()

    async def listen(
        self, ctx: RequestContext, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """The stream of changes of revision 2026-07-28."""
        return await self._listening(ctx, params)

    async def changed(self, paths: Iterable[str], listed: bool) -> None:
        """Notify the subscribers of changed pages. ``listed``: pages were added or removed, so the list changed too."""
        uris = [uri_of(path) for path in paths]
        for uri in uris:
            await self._bus.publish(ResourceUpdated(uri))
        if listed:
            await self._bus.publish(ResourcesListChanged())
        for listener in list(self._connections.listeners):
            session = listener.session
            if session is None:
                continue
            for uri in uris:
                if uri in listener.uris:
                    await session.send_resource_updated(uri)
            if listed:
                await session.send_notification(types.ResourceListChangedNotification())

    def close(self) -> None:
        """End the streams of changes."""
        self._listening.close()
