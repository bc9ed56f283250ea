"""The playground: a web page over the ``docs`` toolset, and its JSON API.

The page consists of the files in :data:`FILES`. They are read when the routes are made, so the path of a request is not
used as a path of a file. They contain no documents, so they need no token. Requests of the API need it.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Awaitable, Callable, Mapping
from importlib import resources
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from anvil.api import Anvil
from anvil.errors import AnvilError, ConfigError, NotFound
from anvil.formats.data_formats import compact, plain
from anvil.search import excerpts, highlighting
from anvil.server.docs_toolset import TOOLS
from anvil.server.logs import event
from anvil.server.tool_calls import ThreadBridge
from anvil.server.toolset import Parameter, RunningToolset, validated

HOME = "/ui/"
_KINDS = {"html": "text/html", "css": "text/css", "svg": "image/svg+xml", "js": "text/javascript"}
_NAMES = sorted(file.name for file in (resources.files("anvil.server") / "ui").iterdir())
FILES = {
    name.removeprefix("index.html"): (name, _KINDS[end])
    for name in _NAMES
    if (end := name.rpartition(".")[2]) in _KINDS
}
"""Path below :data:`HOME` -> the name of the file in ``ui/``, and its media type."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of each response. They keep scripts in documents from running, and other sites from reading the answers."""
MAX_QUERY_CHARS = 1000
"""Characters of a query. The page sends one with each key that is pressed."""

_TOOL_PARAMETERS = {tool.name: tool.parameters for tool in TOOLS}


def with_playground(served: RunningToolset) -> RunningToolset:
    """The docs toolset with the routes of the playground. Another toolset is returned as it is."""
    if served.toolset.name != "docs":
        return served
    public_paths = ("/", HOME.rstrip("/"), *(f"{HOME}{name}" for name in FILES))
    return RunningToolset(dataclasses.replace(served.toolset, routes=routes, public_paths=public_paths), served.target)


def log_address(base: str) -> None:
    event(logging.INFO, f"The playground is at {base}{HOME}")


def routes(bridge: ThreadBridge) -> list[Route]:
    """The routes of the page and of its API. All of them only read."""
    page_routes = [Route(path, _home, methods=["GET"]) for path in ("/", HOME.rstrip("/"))]
    page_routes += [Route(f"{HOME}{name}", _file(*FILES[name]), methods=["GET"]) for name in FILES]
    for name, (parameters, endpoint) in ENDPOINTS.items():
        page_routes.append(Route(f"{HOME}api/{name}", _answer(bridge, name, parameters, endpoint), methods=["GET"]))
    return page_routes


# --- endpoints -------------------------------------------------------------------------------------------------


def search(opened: Anvil, arguments: dict[str, Any]) -> dict[str, Any]:
    """A search in all collections, or in the given one.

    ``text``: the JSON text that an agent gets from search_docs. ``parts``: the parts of each score. ``words``: the
    words of the results that match the query.
    """
    if len(arguments["query"]) > MAX_QUERY_CHARS:
        raise ConfigError(f"The question has more than {MAX_QUERY_CHARS:,} characters. Ask a shorter one.")
    explained = opened.explain(**arguments)
    hits = explained.result.results
    stems = excerpts.query_stems(arguments["query"])
    words = highlighting.matched_words("\n".join(hit.content for hit in hits), stems)
    words |= highlighting.matched_words("\n".join(hit.metadata.heading_path for hit in hits), stems)
    return {"text": compact(plain(explained.result)), "parts": explained.parts, "words": sorted(words)}


def health(opened: Anvil, arguments: dict[str, Any]) -> dict[str, Any]:
    """The health of the contents, the status of the index, and in ``stale`` its differences from the documents. If they
    could not be compared, ``not_compared`` is the reason."""
    report = {"health": opened.health(), "status": opened.get_status()}
    try:
        return {**report, "stale": opened.check(), "not_compared": None}
    except AnvilError as error:
        return {**report, "stale": None, "not_compared": str(error)}


def collections(opened: Anvil) -> list[dict[str, str | None]]:
    """The collections that can be chosen. A single index has none."""
    return [
        {"label": member.label, "name": member.collection_name, "version": member.version}
        for member in opened.members
        if opened.is_several
    ]


def _index_of(opened: Anvil, collection: str | None) -> Anvil:
    """The index of a collection, by default of the first."""
    return opened.alone(opened.members[0] if collection is None else opened.selected(collection)[0])


def _status(opened: Anvil, arguments: dict[str, Any]) -> Any:
    collection = arguments.get("collection")
    return (opened if collection is None else _index_of(opened, collection)).get_status()


def _for_one_index(call: Callable[[Anvil, dict[str, Any]], Any]) -> Endpoint:
    """An endpoint that calls the index of one collection."""
    return lambda opened, arguments: call(_index_of(opened, arguments.pop("collection", None)), arguments)


def _method_endpoint(tool: str, method: str) -> tuple[tuple[Parameter, ...], Endpoint]:
    """The parameters of a tool and the collection, and an endpoint that calls a method of one index."""
    endpoint = _for_one_index(lambda index, arguments: getattr(index, method)(**arguments))
    return (*_TOOL_PARAMETERS[tool], _COLLECTION), endpoint


Endpoint = Callable[[Anvil, dict[str, Any]], Any]
_COLLECTION = Parameter("collection", "A label that collections names.")
ENDPOINTS: Mapping[str, tuple[tuple[Parameter, ...], Endpoint]] = {
    "collections": ((), lambda opened, arguments: collections(opened)),
    "search": ((*_TOOL_PARAMETERS["search_docs"], _COLLECTION), search),
    "pages": _method_endpoint("list_pages", "list_pages"),
    "page": _method_endpoint("get_page", "outline"),
    "section": _method_endpoint("get_section", "get_section"),
    "status": ((_COLLECTION,), _status),
    "health": ((_COLLECTION,), _for_one_index(health)),
}
"""Name below ``api/`` -> the parameters, and the function that answers."""


# --- HTTP ------------------------------------------------------------------------------------------------------


async def _home(_: Request) -> Response:
    return RedirectResponse(HOME, 307, HEADERS)


def _file(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
    body = (resources.files("anvil.server") / "ui" / name).read_bytes()

    async def answer(_: Request) -> Response:
        return Response(body, media_type=kind, headers=HEADERS)

    return answer


def _answer(
    bridge: ThreadBridge, name: str, parameters: tuple[Parameter, ...], endpoint: Endpoint
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            # an empty value counts as not given
            query = {name: value or None for name, value in request.query_params.items()}
            arguments = validated(name, parameters, query)
            value = await bridge.call(f"ui {name}", lambda opened: plain(endpoint(opened, arguments)))
        except ConfigError as error:
            return JSONResponse({"error": str(error)}, 400, HEADERS)
        except NotFound as error:
            return JSONResponse({"error": str(error)}, 404, HEADERS)
        except AnvilError as error:
            return JSONResponse({"error": str(error)}, 503, HEADERS)
        return JSONResponse(value, headers=HEADERS)

    return answer
