"""Pages and skills as resources of the protocol: URIs, lists, texts, completions, and notifications of changes.

The URI of a page is ``anvil://page/{path}``. If there are several collections, it is
``anvil://collection/{collection}/{path}``.
"""

from __future__ import annotations

import bisect
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from anvil.errors import AnvilError, ConfigError, NotFound
from anvil.server.logs import Send
from anvil.server.protocol import INVALID_PARAMS, INVALID_REQUEST, Method, ProtocolError, member
from anvil.server.toolset import RunningToolset
from anvil.values import Changes, address, labelled
from anvil.wording import full_heading

if TYPE_CHECKING:
    from anvil.agents.skill import Skill
    from anvil.results import Page, PageList, PageSummary

PREFIX, COLLECTION_PREFIX = "anvil://page/", "anvil://collection/"
LIST_PAGE_SIZE, MAX_COMPLETIONS = 500, 100
"""Resources in one answer of ``resources/list``, and completions in one answer (a limit of the protocol)."""
TEMPLATES_TTL_MS = 3_600_000
"""Time for which a client may cache the URI templates. A running server does not change them."""
SKILL_PREFIX = "skill://"
SKILL_TTL_MS = 60_000
"""Time for which a client may keep the entry of a skill. It may change when a page changes."""


def uri_of(path: str, collection: str | None = None) -> str:
    """The URI of a page. ``collection``: the label of its collection, if there are several."""
    prefix = PREFIX if collection is None else f"{COLLECTION_PREFIX}{quote(collection, safe='@')}/"
    return prefix + quote(path, safe="/~@:+,=&$!'()*;")


def _address(page: PageSummary) -> str:
    return address(page.file_path, page.collection, page.version)


def skill_uri(skill: Skill) -> str:
    return f"{SKILL_PREFIX}{skill.name}/SKILL.md"


class Resources:
    """The pages of one index, or of several collections (``target``), as resources."""

    def __init__(self, target: Any) -> None:
        self._target = target
        self.methods: Mapping[str, Method] = {
            "resources/list": self._list,
            "resources/templates/list": self._templates,
            "resources/read": self._read,
            "completion/complete": self._complete,
            "skills/list": self._list_skills,
            "skills/get": self._get_skill,
        }

    @classmethod
    def of(cls, running: Sequence[RunningToolset]) -> Resources | None:
        """The resources of the toolset that has pages; None if none has."""
        return next((cls(served.target) for served in running if served.toolset.has_pages), None)

    @property
    def _is_several(self) -> bool:
        return bool(self._target.is_several)

    def _list(self, params: dict[str, Any]) -> dict[str, Any]:
        cursor = member(params, "cursor", str, optional=True)
        pages = sorted(self._target.list_pages().pages, key=_address)
        # The cursor is the last page, not its number, because pages may be added and removed between two requests.
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
        member(params, "cursor", str, optional=True)
        prefix = f"{COLLECTION_PREFIX}{{collection}}/" if self._is_several else PREFIX
        listed = [
            {"name": name, "uriTemplate": prefix + uri, "description": text, "mimeType": "text/markdown"}
            for name, uri, text in (
                ("page", "{path}", "A page, by its path in the docs folder."),
                ("section", "{file_path}{#heading_path}", "A section, by page and breadcrumb."),
            )
        ]
        return _cacheable(resourceTemplates=listed) | {"ttlMs": TEMPLATES_TTL_MS, "cacheScope": "public"}

    def _read(self, params: dict[str, Any]) -> dict[str, Any]:
        """The Markdown of a page, of a section if the URI has a fragment, or of a skill."""
        uri = member(params, "uri", str)
        if uri.startswith(SKILL_PREFIX):
            content = self._skill(uri).text
        else:
            path, collection = self.path_of(uri)
            heading = unquote(uri.partition("#")[2], errors="replace")
            try:
                if heading:
                    content = self._target.get_section(path, heading, **collection).content
                else:
                    content = "".join(chunk.content for chunk in self._target.get_page(path, **collection).chunks)
            except (NotFound, ConfigError) as error:
                # Revisions before 2026-07-28 had an error code of its own for this, see SEP-2164.
                raise ProtocolError(INVALID_PARAMS, str(error), {"uri": uri}) from None
        return _cacheable(contents=[{"uri": uri, "mimeType": "text/markdown", "text": content}])

    def _complete(self, params: dict[str, Any]) -> dict[str, Any]:
        """Complete paths of pages, names of collections, or breadcrumbs of the page in the context. Values that begin
        with the typed text come first, then those that contain it."""
        reference, argument = member(params, "ref", dict), member(params, "argument", dict)
        member(
            reference, {"ref/resource": "uri", "ref/prompt": "name"}.get(str(reference.get("type")), "type of ref"), str
        )
        name, typed = member(argument, "name", str), member(argument, "value", str)
        context = member(params, "context", dict, optional=True) or {}
        others = member(context, "arguments", dict, optional=True) or {}  # arguments that are typed already
        for other_name in others:
            member(others, other_name, str)
        candidates: Iterable[str] = ()
        chosen = {"collection": others["collection"]} if self._is_several and others.get("collection") else {}
        if name in ("path", "file_path"):
            pages: PageList = self._target.list_pages(**chosen)
            candidates = [page.file_path for page in pages.pages]
        elif name == "collection" and self._is_several:
            candidates = [collection.label for collection in self._target.members]
        elif name == "heading_path" and (path := others.get("file_path") or others.get("path")):
            with contextlib.suppress(AnvilError):  # the name of the page may not be complete yet
                page: Page = self._target.get_page(path, **chosen)
                candidates = [full_heading(page.title, section.heading_path) for section in page.sections]
        folded = typed.casefold()
        fitting = [value for value in candidates if folded in value.casefold()]
        # sorted() keeps the order of candidates with the same key
        values = sorted(fitting, key=lambda value: not value.casefold().startswith(folded))
        completion = {
            "values": values[:MAX_COMPLETIONS],
            "total": len(values),
            "hasMore": len(values) > MAX_COMPLETIONS,
        }
        return {"completion": completion, "resultType": "complete"}

    def path_of(self, uri: str) -> tuple[str, dict[str, str]]:
        """The path of the page of a URI, and the argument for its collection, if it names one.

        Raises :class:`ProtocolError` for another kind of URI, and for a collection if there is only one index.
        """
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
        return _cacheable(skills=[_entry(skill) for skill in self._target.skills()]) | {"ttlMs": SKILL_TTL_MS}

    def _get_skill(self, params: dict[str, Any]) -> dict[str, Any]:
        return _cacheable(skill=_entry(self._skill(member(params, "uri", str)))) | {"ttlMs": SKILL_TTL_MS}

    def _skill(self, uri: str) -> Skill:
        skills: Iterable[Skill] = self._target.skills()
        for skill in skills:
            if skill_uri(skill) == uri:
                return skill
        message = f"There is no skill at {uri[:200]}. skills/list names them."
        raise ProtocolError(INVALID_PARAMS, message, {"uri": uri})


def _entry(skill: Skill) -> dict[str, Any]:
    uri = skill_uri(skill)
    return {
        "uri": uri,
        "frontmatter": {"name": skill.name, "description": skill.description},
        "resources": [{"uri": uri, "digest": skill.digest, "size": len(skill.data)}],
    }


def _cacheable(**members: Any) -> dict[str, Any]:
    """A result with the members of the protocol for caching: a client must ask again each time, and not share it."""
    return {"resultType": "complete", **members, "ttlMs": 0, "cacheScope": "private"}


# --- notifications of changes ----------------------------------------------------------------------------------------

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
MAX_SUBSCRIPTIONS, MAX_STREAMS = 10_000, 64
"""Pages that one connection may subscribe to, and streams of changes at once."""


class Subscriptions:
    """The pages of whose changes a client gets notifications.

    ``has_list``: it also gets a notification if pages were added or removed. ``meta``: members of each notification.
    """

    def __init__(self, send: Send | None = None, uris: Iterable[str] = (), has_list: bool = True, **meta: Any) -> None:
        self.send, self.uris = send, set(uris)
        self._has_list, self._meta = has_list, meta

    def changed(self, uris: Iterable[str], is_listed: bool) -> None:
        """Send notifications of changed pages. ``is_listed``: whether pages were added or removed, so that the list
        changed too."""
        if self.send is not None:
            for uri in uris:
                if uri in self.uris:
                    self.send("notifications/resources/updated", {"uri": uri, **self._meta})
            if is_listed and self._has_list:
                self.send("notifications/resources/list_changed", self._meta)


class Connection(Subscriptions):
    """One open connection, with the lowest level of log messages that its client gets.

    ``send`` is None until the client is ready.
    """

    def __init__(self) -> None:
        super().__init__()
        self._level = "info"

    def answer(self, method: str, params: dict[str, Any], resources: Resources | None) -> dict[str, Any]:
        """The answer to one of :func:`connection_methods`. A client may subscribe to a page that does not exist yet."""
        if method == "logging/setLevel":
            if params.get("level") not in LEVELS:
                raise ProtocolError(INVALID_PARAMS, f"Invalid request parameters: level is one of {', '.join(LEVELS)}.")
            self._level = params["level"]
            return {}
        uri = member(params, "uri", str)
        if method == "resources/unsubscribe":
            self.uris.discard(uri)
            return {}
        assert resources is not None
        resources.path_of(uri)
        if len(self.uris) >= MAX_SUBSCRIPTIONS:
            raise ProtocolError(INVALID_REQUEST, "Too many subscriptions on one connection. Unsubscribe from some.")
        self.uris.add(uri)
        return {}

    def log(self, message: str) -> None:
        """Send a log message of level info, unless the client asked for higher levels only."""
        if self.send is not None and LEVELS.index(self._level) <= LEVELS.index("info"):
            self.send("notifications/message", {"level": "info", "logger": "anvil", "data": message})


def connection_methods(resources: Resources | None) -> frozenset[str]:
    """The methods of a connection that stays open, up to revision 2025-11-25 of the protocol."""
    subscriptions = {"resources/subscribe", "resources/unsubscribe"} if resources is not None else set()
    return frozenset({"logging/setLevel", *subscriptions})
