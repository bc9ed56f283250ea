"""Pages as MCP resources: list, read, completion, and notifications of changes.

The URI of a page is ``anvil://page/{path}``. Where there are several collections, it is
``anvil://collection/{collection}/{path}``.
"""

from __future__ import annotations

import bisect
import contextlib
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

import mcp.types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPError

from anvil.agents.values import Skill
from anvil.errors import AnvilError
from anvil.results import Page, PageList, PageSummary
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
        self.skills = Skills(bridge)
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
        if uri.startswith(SKILL_PREFIX):
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


LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

RequestContext = ServerRequestContext["Listener", Any]


@dataclass(eq=False)
class Listener:
    """One connection: the URIs that it subscribed to, and its lowest level of log messages."""

    session: ServerSession | None = None
    uris: set[str] = field(default_factory=set)
    level: str = "info"


class Connections:
    """The open connections. Nothing can be sent to a listener without a session."""

    def __init__(self) -> None:
        self.listeners: set[Listener] = set()

    @asynccontextmanager
    async def connection(self, _: Server[Listener]) -> AsyncIterator[Listener]:
        """A context for the life of a connection. Stateless connections share one."""
        listener = Listener()
        self.listeners.add(listener)
        try:
            yield listener
        finally:
            self.listeners.discard(listener)

    async def initialized(self, ctx: RequestContext, _: types.NotificationParams) -> None:
        """A client is ready. From now on it gets notifications, if its connection stays open."""
        if ctx.session.can_send_request:
            ctx.lifespan_context.session = ctx.session

    async def set_level(self, ctx: RequestContext, params: types.SetLevelRequestParams) -> types.EmptyResult:
        """Set the lowest level of log messages for this connection."""
        ctx.lifespan_context.level = params.level
        return types.EmptyResult()

    async def log_to_clients(self, message: str) -> None:
        """Send a log message of level info to the connections that ask for this level."""
        for listener in list(self.listeners):
            if listener.session is not None and LEVELS.index(listener.level) <= LEVELS.index("info"):
                params = types.LoggingMessageNotificationParams(level="info", logger="anvil", data=message)
                await listener.session.send_notification(types.LoggingMessageNotification(params=params))


SKILLS_EXTENSION = "io.modelcontextprotocol/skills"
"""Clients see it from revision 2026-07-28 of the protocol on; ``initialize`` of older ones has no extensions."""
SKILL_PREFIX = "skill://"
TTL_MS = 60_000
"""Time for which a client may keep an entry. A page that changes may change the skill."""


class GetSkillParams(types.RequestParams):
    """The parameters of ``skills/get``."""

    uri: str


def skill_uri(skill: Skill) -> str:
    """The URI of a skill's ``SKILL.md``."""
    return f"{SKILL_PREFIX}{skill.name}/SKILL.md"


class Skills:
    """The skills of the documents behind ``bridge``."""

    def __init__(self, bridge: ThreadBridge) -> None:
        self._bridge = bridge

    def serve(self, server: Any) -> None:
        """Let a server of the SDK have the extension."""
        server.extensions[SKILLS_EXTENSION] = {}
        server.add_request_handler("skills/list", types.PaginatedRequestParams, self.list)
        server.add_request_handler("skills/get", GetSkillParams, self.get)

    async def list(self, _: RequestContext, params: types.PaginatedRequestParams | None) -> dict[str, Any]:
        """All skills, on one page."""
        return _complete(skills=[_entry(skill) for skill in await self._all("skills/list")])

    async def get(self, _: RequestContext, params: GetSkillParams) -> dict[str, Any]:
        """The entry of one skill. Raises :class:`MCPError` for another URI."""
        return _complete(skill=_entry(await self._of(params.uri, "skills/get")))

    async def read(self, uri: str) -> types.ReadResourceResult:
        """The text of a ``SKILL.md``. Raises :class:`MCPError` for another URI."""
        skill = await self._of(uri, "resources/read")
        content = types.TextResourceContents(uri=uri, mime_type="text/markdown", text=skill.text)
        return types.ReadResourceResult(contents=[content])

    async def _of(self, uri: str, method: str) -> Skill:
        for skill in await self._all(method):
            if skill_uri(skill) == uri:
                return skill
        raise MCPError(types.INVALID_PARAMS, f"There is no skill at {uri[:200]}. skills/list names them.", {"uri": uri})

    async def _all(self, method: str) -> tuple[Skill, ...]:
        try:
            skills: tuple[Skill, ...] = await self._bridge.call(method, lambda documents: documents.skills())
        except AnvilError as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from None
        return skills


def _entry(skill: Skill) -> dict[str, Any]:
    uri = skill_uri(skill)
    return {
        "uri": uri,
        "frontmatter": {"name": skill.name, "description": skill.description},
        "resources": [{"uri": uri, "digest": skill.digest, "size": len(skill.data)}],
    }


def _complete(**members: Any) -> dict[str, Any]:
    return {"resultType": "complete", **members, "ttlMs": TTL_MS, "cacheScope": "private"}
