"""Pages as MCP resources: list, read, completion, and notifications of changes.

The URI of a page is ``anvil://page/{path}``. Where there are several collections, it is
``anvil://collection/{collection}/{path}``.
"""

from __future__ import annotations

import bisect
import contextlib
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, unquote

import mcp.types as types
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPError

from anvil.errors import AnvilError
from anvil.results import Page, PageList, PageSummary
from anvil.server import skills
from anvil.server.subscriptions import Connections, RequestContext
from anvil.server.threads import ThreadBridge
from anvil.values import address, labelled
from anvil.wording import full_heading

PREFIX, COLLECTION_PREFIX = "anvil://page/", "anvil://collection/"
NOT_FOUND = -32002
"""The protocol's error code for a resource that does not exist, up to revision 2025-11-25."""
LIST_PAGE_SIZE, MAX_COMPLETIONS = 500, 100
"""Resources in one answer of the list, and completions in one answer (the protocol's limit)."""


def uri_of(path: str, collection: str | None = None) -> str:
    """The URI of a page. ``collection``: the label of its collection, where there are several."""
    prefix = PREFIX if collection is None else f"{COLLECTION_PREFIX}{quote(collection, safe='@')}/"
    return prefix + quote(path, safe="/~@:+,=&$!'()*;")


def path_of(uri: str) -> tuple[str, dict[str, str]]:
    """The page of a URI, and the argument for its collection, if it names one. Raises :class:`MCPError` for another
    kind of URI."""
    page = uri.partition("#")[0]
    if page.startswith(COLLECTION_PREFIX):
        collection, _, path = page.removeprefix(COLLECTION_PREFIX).partition("/")
        return unquote(path, errors="replace"), {"collection": unquote(collection, errors="replace")}
    if not page.startswith(PREFIX):
        raise MCPError(
            types.INVALID_PARAMS, f"{uri[:200]} is not a page. The URI of a page is {PREFIX}" + "{path}.", {"uri": uri}
        )
    return unquote(page.removeprefix(PREFIX), errors="replace"), {}


def _address(page: PageSummary) -> str:
    return address(page.file_path, page.collection, page.version)


class Resources:
    """The pages of one index, or of several collections, as resources, and the subscriptions to them."""

    def __init__(self, bridge: ThreadBridge, connections: Connections) -> None:
        self._bridge = bridge
        self._connections = connections
        self.skills = skills.Skills(bridge)
        self._bus = InMemorySubscriptionBus()
        self._listening = ListenHandler(self._bus, max_subscriptions=64)

    @property
    def _is_several(self) -> bool:
        return bool(self._bridge.target.is_several)

    def handlers(self, standing: bool) -> dict[str, Any]:
        """The handlers, by the names of the arguments of the SDK's server. Only a ``standing`` connection can
        subscribe; revision 2026-07-28 of the protocol has a stream of changes instead."""
        handlers: dict[str, Any] = {
            "on_list_resources": self.list,
            "on_list_resource_templates": self.templates,
            "on_read_resource": self.read,
            "on_subscriptions_listen": self._listening,
            "on_completion": self.complete,
        }
        if standing:
            handlers |= {"on_subscribe_resource": self.subscribe, "on_unsubscribe_resource": self.unsubscribe}
        return handlers

    # --- requests --------------------------------------------------------------------------------------------

    async def list(self, _: RequestContext, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        """The pages after the one in the cursor."""
        listed = await self._call("resources/list", lambda anvil: anvil.list_pages())
        pages = sorted(listed.pages, key=_address)
        start = bisect.bisect_right(pages, cursor, key=_address) if (cursor := params and params.cursor) else 0
        shown = pages[start : start + LIST_PAGE_SIZE]
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    name=_address(page),
                    title=page.title,
                    uri=uri_of(page.file_path, page.collection and labelled(page.collection, page.version)),
                    mime_type="text/markdown",
                )
                for page in shown
            ],
            next_cursor=_address(shown[-1]) if start + LIST_PAGE_SIZE < len(pages) else None,
        )

    async def templates(
        self, _: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """The URI templates of a page and of a section."""
        prefix = f"{COLLECTION_PREFIX}{{collection}}/" if self._is_several else PREFIX
        templates = [
            ("page", prefix + "{path}", "A page, by its path in the docs folder."),
            ("section", prefix + "{file_path}{#heading_path}", "A section, by page and breadcrumb."),
        ]
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(name=name, uri_template=uri, description=text, mime_type="text/markdown")
                for name, uri, text in templates
            ]
        )

    async def read(self, _: RequestContext, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        """The Markdown of a page, or of a section when the URI has a fragment; or a skill."""
        uri = str(params.uri)
        if uri.startswith(skills.PREFIX):
            return await self.skills.read(uri)
        path, collection = self._path_of(uri)
        heading = unquote(uri.partition("#")[2], errors="replace")

        def text(anvil: Any) -> Any:
            if heading:
                return anvil.get_section(path, heading, **collection).content
            return "".join(chunk.content for chunk in anvil.get_page(path, **collection).chunks)

        content = await self._call("resources/read", text, {"uri": uri})
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=uri, mime_type="text/markdown", text=content)]
        )

    async def complete(self, _: RequestContext, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Paths of pages, or breadcrumbs of the page in the context. First those that begin with the typed text, then
        those that contain it."""
        name, typed = params.argument.name, params.argument.value
        known = (params.context.arguments if params.context else None) or {}
        candidates: Iterable[str] = ()
        chosen = {"collection": known["collection"]} if self._is_several and known.get("collection") else {}
        if name in ("path", "file_path"):
            pages: PageList = await self._call("completion", lambda anvil: anvil.list_pages(**chosen))
            candidates = [page.file_path for page in pages.pages]
        elif name == "collection" and self._is_several:
            candidates = [member.label for member in self._bridge.target.members]
        elif name == "heading_path" and (path := known.get("file_path") or known.get("path")):
            with contextlib.suppress(AnvilError):  # nothing to offer while the page's name is still being typed
                page: Page = await self._bridge.call("completion", lambda anvil: anvil.get_page(path, **chosen))
                candidates = [full_heading(page.title, section.heading_path) for section in page.sections]
        folded = typed.casefold()
        beginnings = [value for value in candidates if value.casefold().startswith(folded)]
        listed = set(beginnings)
        values = beginnings + [value for value in candidates if folded in value.casefold() and value not in listed]
        return types.CompleteResult(
            completion=types.Completion(
                values=values[:MAX_COMPLETIONS], total=len(values), has_more=len(values) > MAX_COMPLETIONS
            )
        )

    def _path_of(self, uri: str) -> tuple[str, dict[str, str]]:
        """See :func:`path_of`; a URI with a collection is none of a single index."""
        path, collection = path_of(uri)
        if collection and not self._is_several:
            raise MCPError(types.INVALID_PARAMS, f"{uri[:200]} names a collection, and there is only one index here.")
        return path, collection

    async def _call(self, name: str, call: Any, error_data: dict[str, str] | None = None) -> Any:
        try:
            return await self._bridge.call(name, call)
        except AnvilError as error:
            raise MCPError(NOT_FOUND, str(error), error_data) from None

    # --- subscriptions ---------------------------------------------------------------------------------------

    async def subscribe(self, ctx: RequestContext, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """Notify this connection when the page changes. The page need not exist yet."""
        self._path_of(str(params.uri))
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

    async def changed(self, paths: Iterable[str], listed: bool) -> None:
        """Notify the subscribers of changed pages, each as ``COLLECTION:PATH`` where there are several collections.
        ``listed``: pages were added or removed, so the list changed too."""
        uris = [self._changed_uri(path) for path in paths]
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

    def _changed_uri(self, path: str) -> str:
        if not self._is_several:
            return uri_of(path)
        collection, _, own_path = path.partition(":")
        return uri_of(own_path, collection)

    def close(self) -> None:
        """End the streams of changes."""
        self._listening.close()
