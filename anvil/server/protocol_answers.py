"""The answers of the server, as JSON values in the form of the newest revision of the protocol, without the SDK.

Over stdio :mod:`anvil.server.stdio` sends them, over HTTP and SSE the SDK (:mod:`anvil.server.mcp_app`). Both leave out
what an older revision does not have.

Pages are resources. The URI of a page is ``anvil://page/{path}``. Where there are several collections, it is
``anvil://collection/{collection}/{path}``.
"""

from __future__ import annotations

import base64
import bisect
import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from anvil._version import __version__
from anvil.errors import AnvilError
from anvil.formats.data_formats import compact, plain
from anvil.server.logs import log, timed
from anvil.server.result_schema import ARRAY_KEY, output_schema
from anvil.server.toolset import InvalidArguments, RunningToolset, Tool, Toolset
from anvil.values import Changes, address, labelled
from anvil.wording import full_heading

if TYPE_CHECKING:
    from anvil.agents.skill import Skill
    from anvil.results import Page, PageList, PageSummary

NAME = "anvil"
WEBSITE_URL = "https://anvil-docs.github.io/anvil/"
DESCRIPTION = "Search and read documentation, compared with its files before each answer."
_ICON = (Path(__file__).parent / "ui" / "anvil.svg").read_bytes()
ICONS = [
    {
        "src": f"data:image/svg+xml;base64,{base64.b64encode(_ICON).decode()}",
        "mimeType": "image/svg+xml",
        "sizes": ["any"],
    }
]
"""The icon, whole, because a server may have no network."""
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Protocol revisions that begin with ``initialize``. Any other revision is answered with the newest of these."""
MODERN_VERSION = "2026-07-28"
"""The revision without a handshake: each request names its revision."""
TOOL_LIST_TTL_MS = 3_600_000
"""Time for which a client may cache the tool list. A running server does not change it."""
DISCOVER_TTL_MS = 60_000
"""Time for which a client may keep the server's description: its instructions name pages."""
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
"""Error codes of JSON-RPC."""
NOT_INITIALIZED = "This connection is not initialized. Send initialize first."
TOO_MANY_STREAMS = "There are as many streams of changes as there can be. Cancel one before you ask for another."
MAX_SHOWN_METHOD_CHARS = 60
_KINDS: dict[type, str] = {str: "a string", dict: "an object", list: "an array"}


class ProtocolError(AnvilError):
    """A request that has no result: the code, message and data of the error that answers it."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


def not_json(where: str) -> ProtocolError:
    """The error for what is sent and is no JSON. ``where``: such as "line"."""
    return ProtocolError(
        PARSE_ERROR, f"Parse error: the {where} is not JSON. Send one JSON-RPC 2.0 message per {where}."
    )


def no_message(where: str, request: str | int | None = None) -> ProtocolError:
    """The error for JSON that is no message; its data is the id of the request, where it has one."""
    problem = f"Invalid request: send one JSON-RPC 2.0 object per {where}, with id, method and params."
    return ProtocolError(INVALID_REQUEST, problem, request)


def unexpected(name: str, error: Exception) -> ProtocolError:
    """The error for what a method or a tool raised and should not have. It goes to the log."""
    if isinstance(error, AnvilError) and str(error):
        return ProtocolError(INTERNAL_ERROR, str(error))
    log.error("%s failed", name, exc_info=error)
    kind = type(error).__name__
    return ProtocolError(INTERNAL_ERROR, f"{name} failed inside the server ({kind}). The server's log has the details.")


def member(params: Mapping[str, Any], name: str, kind: type, *, optional: bool = False) -> Any:
    """A member of a request's parameters; None where it is optional and missing. Raises :class:`ProtocolError`."""
    value = params.get(name)
    if not isinstance(value, kind) and not (optional and value is None):
        raise ProtocolError(INVALID_PARAMS, f"Invalid request parameters: {name} must be {_KINDS[kind]}.")
    return value


class Answers:
    """The answers to the requests of any client of some toolsets. They may be asked for from any thread."""

    def __init__(self, running: Sequence[RunningToolset]) -> None:
        toolsets = [served.toolset for served in running]
        self.title = toolsets[0].title if len(toolsets) == 1 else "Anvil"
        self.instructions = "\n\n".join(toolset.instructions for toolset in toolsets)
        self._running = running
        self._tools = {tool.name: (tool, served) for served in running for tool in served.toolset.tools}
        assert len(self._tools) == sum(len(toolset.tools) for toolset in toolsets)  # no two have a tool of one name
        pages = [served.target for served in running if served.toolset.has_pages]
        self.resources = Resources(pages[0]) if pages else None
        self._methods: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            **(self.resources.methods if self.resources else {}),
        }

    @property
    def methods(self) -> frozenset[str]:
        """The methods that :meth:`answer` has in all revisions of the protocol."""
        return frozenset(self._methods)

    def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of a request. Raises :class:`ProtocolError`."""
        if method not in self._methods:
            raise self.unknown(method)
        if method == "tools/call":  # it logs its time itself
            return self._call_tool(params)
        with timed(method):
            return self._methods[method](params)

    def unknown(self, method: str) -> ProtocolError:
        """The error for a method that there is not."""
        shown = method if len(method) <= MAX_SHOWN_METHOD_CHARS else f"{method[:MAX_SHOWN_METHOD_CHARS]}..."
        message = f"Method not found: {shown!r}. This server answers {', '.join(self._methods)}."
        return ProtocolError(METHOD_NOT_FOUND, message, shown)

    def describe(self) -> None:
        """Let the instructions begin with what the documents are about. It waits until they can be read."""
        described = []
        for served in self._running:
            toolset = served.toolset
            if toolset.topics is not None:
                with contextlib.suppress(AnvilError):  # each question says it
                    toolset = toolset.about(toolset.topics(served.target))
            described.append(toolset.instructions)
        self.instructions = "\n\n".join(described)

    def server_info(self) -> dict[str, Any]:
        """The server's name and icon."""
        return {
            "name": NAME,
            "title": self.title,
            "version": __version__,
            "description": DESCRIPTION,
            "websiteUrl": WEBSITE_URL,
            "icons": ICONS,
        }

    def initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        """The answer to ``initialize`` on a connection that stays open."""
        version = member(params, "protocolVersion", str)
        client = member(params, "clientInfo", dict)
        member(client, "name", str), member(client, "version", str), member(params, "capabilities", dict)
        return {
            "protocolVersion": version if version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
            "capabilities": self._capabilities(tools_change=False),
            "serverInfo": self.server_info(),
            "instructions": self.instructions,
        }

    def _capabilities(self, tools_change: bool) -> dict[str, Any]:
        pages = {"completions": {}, "resources": {"listChanged": True, "subscribe": True}} if self.resources else {}
        return {**pages, "logging": {}, "tools": {"listChanged": tools_change}}

    def discover(self) -> dict[str, Any]:
        """The answer to ``server/discover`` on a connection that stays open."""
        has_pages = self.resources is not None
        extensions: dict[str, Any] = {"extensions": {SKILLS_EXTENSION: {}}} if has_pages else {}
        return {
            "supportedVersions": [MODERN_VERSION],
            "capabilities": self._capabilities(tools_change=has_pages) | extensions,
            "instructions": self.instructions,
            "resultType": "complete",
            "ttlMs": DISCOVER_TTL_MS,
            "cacheScope": "private",
        }

    def _list_tools(self, params: dict[str, Any]) -> dict[str, Any]:
        member(params, "cursor", str, optional=True)
        tools = [described(tool, served.toolset) for tool, served in self._tools.values()]
        return {"tools": tools, "resultType": "complete", "ttlMs": TOOL_LIST_TTL_MS, "cacheScope": "public"}

    def _call_tool(self, params: dict[str, Any]) -> dict[str, Any]:
        """Run a tool. Errors, also for wrong arguments, are results. Only a malformed request is a protocol error."""
        name = member(params, "name", str)
        arguments = member(params, "arguments", dict, optional=True)
        if name not in self._tools:
            return refusal(f"There is no tool {name[:60]!r}. Use one of {', '.join(self._tools)}.")
        tool, served = self._tools[name]
        try:
            call = tool.bind(arguments or {})
            with timed(name):
                return called(call(served.target), served.toolset.render)
        except Exception as error:
            return failure(error, tool, served.toolset)


def described(tool: Tool, toolset: Toolset) -> dict[str, Any]:
    """A tool as clients see it; without the schema of a structured result where results are text alone."""
    output = {"outputSchema": output_schema(tool.result_type)} if toolset.render is None else {}
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema(),
        **output,
        "annotations": hints(tool),
    }


def hints(tool: Tool) -> dict[str, bool]:
    """The annotations of a tool: whether it only reads, may delete, may be repeated, reaches the network."""
    if not tool.writes:
        return {"readOnlyHint": True}
    return {
        "readOnlyHint": False,
        "destructiveHint": tool.destructive,
        "idempotentHint": tool.idempotent,
        "openWorldHint": tool.open_world,
    }


def called(result: Any, render: Callable[[Any], str] | None = None) -> dict[str, Any]:
    """A result as structured content, and the same JSON as text. In the text, an array is not wrapped in an object.
    ``render``: its text, which is then all that is sent."""
    if render is not None:
        return _said(render(result))
    value = plain(result, lean=True)
    structured = {ARRAY_KEY: value} if isinstance(value, list) else value
    return {**_said(compact(value)), "structuredContent": structured}


def _said(message: str, is_error: bool = False) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": message}], "isError": is_error, "resultType": "complete"}


def refusal(message: str, toolset: Toolset | None = None) -> dict[str, Any]:
    """An error as a result of the call, which the model reads (SEP-1303)."""
    if toolset is None or not toolset.errors_as_values:
        return _said(message, is_error=True)
    return {**called({"status": "error", "error": message}, toolset.render), "isError": True}


def failure(error: Exception, tool: Tool, toolset: Toolset) -> dict[str, Any]:
    """What a tool raised, as a result of the call: the reason, or where an unexpected error is described."""
    if isinstance(error, (InvalidArguments, AnvilError)):
        return refusal(str(error), toolset)
    return refusal(str(unexpected(tool.name, error)), toolset)


# --- pages as resources --------------------------------------------------------------------------------------

PREFIX, COLLECTION_PREFIX = "anvil://page/", "anvil://collection/"
NOT_FOUND = -32002
"""The protocol's error code for a resource that does not exist, up to revision 2025-11-25."""
LIST_PAGE_SIZE, MAX_COMPLETIONS = 500, 100
"""Resources in one answer of the list, and completions in one answer (the protocol's limit)."""
TEMPLATES_TTL_MS = 3_600_000
"""Time for which a client may cache the URI templates. A running server does not change them."""
SKILLS_EXTENSION = "io.modelcontextprotocol/skills"
"""Clients see it from revision 2026-07-28 of the protocol on; ``initialize`` of older ones has no extensions."""
SKILL_PREFIX = "skill://"
SKILL_TTL_MS = 60_000
"""Time for which a client may keep an entry. A page that changes may change the skill."""


def uri_of(path: str, collection: str | None = None) -> str:
    """The URI of a page. ``collection``: the label of its collection, where there are several."""
    prefix = PREFIX if collection is None else f"{COLLECTION_PREFIX}{quote(collection, safe='@')}/"
    return prefix + quote(path, safe="/~@:+,=&$!'()*;")


def _address(page: PageSummary) -> str:
    return address(page.file_path, page.collection, page.version)


def skill_uri(skill: Skill) -> str:
    """The URI of a skill's ``SKILL.md``."""
    return f"{SKILL_PREFIX}{skill.name}/SKILL.md"


class Resources:
    """The pages of one index, or of several collections (``target``), as resources."""

    def __init__(self, target: Any) -> None:
        self._target = target
        self.methods: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "resources/list": self._list,
            "resources/templates/list": self._templates,
            "resources/read": self._read,
            "completion/complete": self._complete,
            "skills/list": self._list_skills,
            "skills/get": self._get_skill,
        }
        """The answers: functions of a request's parameters. They raise :class:`ProtocolError`."""

    @property
    def _is_several(self) -> bool:
        return bool(self._target.is_several)

    def _list(self, params: dict[str, Any]) -> dict[str, Any]:
        """The pages after the one in the cursor."""
        cursor = member(params, "cursor", str, optional=True)
        with _refusals(NOT_FOUND):
            pages = sorted(self._target.list_pages().pages, key=_address)
        # The cursor is the last page and not a number: pages may be added and removed between two requests.
        start = bisect.bisect_right(pages, cursor, key=_address) if cursor else 0
        shown = pages[start : start + LIST_PAGE_SIZE]
        resources = [
            {
                "name": _address(page),
                "title": page.title,
                "uri": uri_of(page.file_path, page.collection and labelled(page.collection, page.version)),
                "mimeType": "text/markdown",
            }
            for page in shown
        ]
        more = {"nextCursor": _address(shown[-1])} if start + LIST_PAGE_SIZE < len(pages) else {}
        return _cacheable(resources=resources, **more)

    def _templates(self, params: dict[str, Any]) -> dict[str, Any]:
        """The URI templates of a page and of a section."""
        member(params, "cursor", str, optional=True)
        prefix = f"{COLLECTION_PREFIX}{{collection}}/" if self._is_several else PREFIX
        templates = [
            ("page", prefix + "{path}", "A page, by its path in the docs folder."),
            ("section", prefix + "{file_path}{#heading_path}", "A section, by page and breadcrumb."),
        ]
        listed = [
            {"name": name, "uriTemplate": uri, "description": text, "mimeType": "text/markdown"}
            for name, uri, text in templates
        ]
        return _cacheable(resourceTemplates=listed) | {"ttlMs": TEMPLATES_TTL_MS, "cacheScope": "public"}

    def _read(self, params: dict[str, Any]) -> dict[str, Any]:
        """The Markdown of a page, or of a section when the URI has a fragment; or a skill."""
        uri = member(params, "uri", str)
        if uri.startswith(SKILL_PREFIX):
            content = self._skill(uri).text
        else:
            path, collection = self.path_of(uri)
            heading = unquote(uri.partition("#")[2], errors="replace")
            with _refusals(NOT_FOUND, {"uri": uri}):
                if heading:
                    content = self._target.get_section(path, heading, **collection).content
                else:
                    content = "".join(chunk.content for chunk in self._target.get_page(path, **collection).chunks)
        return _cacheable(contents=[{"uri": uri, "mimeType": "text/markdown", "text": content}])

    def _complete(self, params: dict[str, Any]) -> dict[str, Any]:
        """Paths of pages, or breadcrumbs of the page in the context. First those that begin with the typed text, then
        those that contain it."""
        reference, argument = member(params, "ref", dict), member(params, "argument", dict)
        member(
            reference, {"ref/resource": "uri", "ref/prompt": "name"}.get(str(reference.get("type")), "type of ref"), str
        )
        name, typed = member(argument, "name", str), member(argument, "value", str)
        context = member(params, "context", dict, optional=True) or {}
        others = member(context, "arguments", dict, optional=True) or {}  # what is typed already
        for each in others:
            member(others, each, str)
        candidates: Iterable[str] = ()
        chosen = {"collection": others["collection"]} if self._is_several and others.get("collection") else {}
        if name in ("path", "file_path"):
            with _refusals(NOT_FOUND):
                pages: PageList = self._target.list_pages(**chosen)
            candidates = [page.file_path for page in pages.pages]
        elif name == "collection" and self._is_several:
            candidates = [each.label for each in self._target.members]
        elif name == "heading_path" and (path := others.get("file_path") or others.get("path")):
            with contextlib.suppress(AnvilError):  # nothing to offer while the page's name is still being typed
                page: Page = self._target.get_page(path, **chosen)
                candidates = [full_heading(page.title, section.heading_path) for section in page.sections]
        folded = typed.casefold()
        beginnings = [value for value in candidates if value.casefold().startswith(folded)]
        listed = set(beginnings)
        values = beginnings + [value for value in candidates if folded in value.casefold() and value not in listed]
        completion = {
            "values": values[:MAX_COMPLETIONS],
            "total": len(values),
            "hasMore": len(values) > MAX_COMPLETIONS,
        }
        return {"completion": completion, "resultType": "complete"}

    def path_of(self, uri: str) -> tuple[str, dict[str, str]]:
        """The page of a URI, and the argument for its collection, if it names one. Raises :class:`ProtocolError` for
        another kind of URI; a URI with a collection is none of a single index."""
        page = uri.partition("#")[0]
        if page.startswith(COLLECTION_PREFIX):
            if not self._is_several:
                raise ProtocolError(
                    INVALID_PARAMS, f"{uri[:200]} names a collection, and there is only one index here."
                )
            collection, _, path = page.removeprefix(COLLECTION_PREFIX).partition("/")
            return unquote(path, errors="replace"), {"collection": unquote(collection, errors="replace")}
        if not page.startswith(PREFIX):
            message = f"{uri[:200]} is not a page. The URI of a page is {PREFIX}" + "{path}."
            raise ProtocolError(INVALID_PARAMS, message, {"uri": uri})
        return unquote(page.removeprefix(PREFIX), errors="replace"), {}

    def changed_uris(self, changes: Changes) -> list[str]:
        """The URIs of pages that changed, were added or removed."""
        paths = (*changes.changed, *changes.added, *changes.removed)
        if not self._is_several:
            return [uri_of(path) for path in paths]
        labelled_paths = [path.partition(":") for path in paths]
        return [uri_of(path, collection) for collection, _, path in labelled_paths]

    # --- skills ----------------------------------------------------------------------------------------------

    def _list_skills(self, params: dict[str, Any]) -> dict[str, Any]:
        """All skills, on one page."""
        return _cacheable(skills=[_entry(skill) for skill in self._skills()]) | {"ttlMs": SKILL_TTL_MS}

    def _get_skill(self, params: dict[str, Any]) -> dict[str, Any]:
        """The entry of one skill."""
        return _cacheable(skill=_entry(self._skill(member(params, "uri", str)))) | {"ttlMs": SKILL_TTL_MS}

    def _skill(self, uri: str) -> Skill:
        for skill in self._skills():
            if skill_uri(skill) == uri:
                return skill
        message = f"There is no skill at {uri[:200]}. skills/list names them."
        raise ProtocolError(INVALID_PARAMS, message, {"uri": uri})

    def _skills(self) -> tuple[Skill, ...]:
        with _refusals(INTERNAL_ERROR):
            skills: tuple[Skill, ...] = self._target.skills()
        return skills


def _entry(skill: Skill) -> dict[str, Any]:
    uri = skill_uri(skill)
    return {
        "uri": uri,
        "frontmatter": {"name": skill.name, "description": skill.description},
        "resources": [{"uri": uri, "digest": skill.digest, "size": len(skill.data)}],
    }


def _cacheable(**members: Any) -> dict[str, Any]:
    """A result that a client may keep for itself, for no time."""
    return {"resultType": "complete", **members, "ttlMs": 0, "cacheScope": "private"}


@contextlib.contextmanager
def _refusals(code: int, data: Any = None) -> Iterator[None]:
    """A context in which an error of Anvil becomes one of the protocol."""
    try:
        yield
    except AnvilError as error:
        raise ProtocolError(code, str(error), data) from None


LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
MAX_OPEN_REQUESTS = 256
"""Of one client, without an answer. Over a pipe no further line is read then; elsewhere further ones are refused."""
MAX_SUBSCRIPTIONS, MAX_STREAMS = 10_000, 64
"""Pages that one connection may subscribe to, and streams of changes at once."""


class Connection:
    """One open connection: the pages that it subscribed to, and its lowest level of log messages. ``send`` sends a
    notification from any thread; None until the client is ready for them."""

    def __init__(self) -> None:
        self.send: Callable[[str, dict[str, Any]], object] | None = None
        self._uris: set[str] = set()
        self._level = "info"

    def answer(self, method: str, params: dict[str, Any], resources: Resources | None) -> dict[str, Any]:
        """The answer to one of :data:`CONNECTION_METHODS`. A page that is subscribed to need not exist yet."""
        if method == "logging/setLevel":
            if params.get("level") not in LEVELS:
                raise ProtocolError(INVALID_PARAMS, f"Invalid request parameters: level is one of {', '.join(LEVELS)}.")
            self._level = params["level"]
            return {}
        uri = member(params, "uri", str)
        if method == "resources/unsubscribe":
            self._uris.discard(uri)
            return {}
        assert resources is not None
        resources.path_of(uri)
        if len(self._uris) >= MAX_SUBSCRIPTIONS:
            raise ProtocolError(INVALID_REQUEST, "Too many subscriptions on one connection. Unsubscribe from some.")
        self._uris.add(uri)
        return {}

    def changed(self, uris: Iterable[str], is_listed: bool) -> None:
        """Tell of changed pages. ``is_listed``: pages were added or removed, so the list changed too."""
        if self.send is not None:
            for uri in uris:
                if uri in self._uris:
                    self.send("notifications/resources/updated", {"uri": uri})
            if is_listed:
                self.send("notifications/resources/list_changed", {})

    def log(self, message: str) -> None:
        """Send a log message of level info, if the client asks for this level."""
        if self.send is not None and LEVELS.index(self._level) <= LEVELS.index("info"):
            self.send("notifications/message", {"level": "info", "logger": "anvil", "data": message})


def connection_methods(resources: Resources | None) -> frozenset[str]:
    """The methods of a connection that stays open, up to revision 2025-11-25 of the protocol."""
    subscriptions = {"resources/subscribe", "resources/unsubscribe"} if resources is not None else set()
    return frozenset({"logging/setLevel", *subscriptions})
