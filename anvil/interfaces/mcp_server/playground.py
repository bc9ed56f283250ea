"""The playground: one page for people over the ``docs`` toolset, and the answers that it asks for.

The page and its parts are files of this package, a fixed few; no path of a request reaches the file system. They need
no token, for they hold nothing; every answer does.
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
from anvil.core.search import snippets
from anvil.errors import AnvilError, ConfigError, NotFound
from anvil.interfaces.mcp_server.arguments import InvalidArguments, Parameter, validated
from anvil.interfaces.mcp_server.logs import event
from anvil.interfaces.mcp_server.schemas import plain, text
from anvil.interfaces.mcp_server.threads import ThreadBridge
from anvil.interfaces.mcp_server.tools.docs import TOOLS
from anvil.interfaces.mcp_server.tools.toolset import RunningToolset

HOME = "/ui/"
FILES = {
    "": ("index.html", "text/html"),
    "style.css": ("style.css", "text/css"),
    "app.js": ("app.js", "text/javascript"),
    "dom.js": ("dom.js", "text/javascript"),
    "search.js": ("search.js", "text/javascript"),
    "pages.js": ("pages.js", "text/javascript"),
    "health.js": ("health.js", "text/javascript"),
    "markdown.js": ("markdown.js", "text/javascript"),
    "anvil.svg": ("anvil.svg", "image/svg+xml"),
}
"""Below ``HOME``: what is asked for -> the file in ``ui/``, and its type."""
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
"""On each answer: documents are untrusted, and so is whoever else would like to read them."""
MIN_COSINE = 0.3
"""The cosine under which a question that shares no word with its results is called one that nothing answers. Of this
project's own pages, made-up words reach .15 to .25, questions in other words .34 and more."""
MAX_QUERY_CHARS = 1000
"""Characters of a question that are answered; the page asks with every letter."""

_OF_TOOL = {tool.name: tool.parameters for tool in TOOLS}


def with_playground(served: RunningToolset) -> RunningToolset:
    """The docs toolset with its playground; others as they are."""
    if served.toolset.name != "docs":
        return served
    public_paths = ("/", HOME.rstrip("/"), *(f"{HOME}{name}" for name in FILES))
    return RunningToolset(dataclasses.replace(served.toolset, routes=routes, public_paths=public_paths), served.target)


def log_address(base: str) -> None:
    """Log where the page is."""
    event(logging.INFO, f"The playground is at {base}{HOME}")


def routes(bridge: ThreadBridge) -> list[Route]:
    """The page's parts, and ``api/`` below it. All of them only read."""
    found = [Route("/", _home, methods=["GET"])]
    found += [Route(f"{HOME}{name}", _file(*FILES[name]), methods=["GET"]) for name in FILES]
    for name, (parameters, look) in ENDPOINTS.items():
        found.append(Route(f"{HOME}api/{name}", _answer(bridge, name, parameters, look), methods=["GET"]))
    return found


# --- what is answered ------------------------------------------------------------------------------------------


def search(opened: Anvil, given: dict[str, Any]) -> dict[str, Any]:
    """``text``: the very JSON that an agent gets from search_docs. Besides it the parts of each score, and the words
    of the results, as spelled there, that the question asks for."""
    if len(given["query"]) > MAX_QUERY_CHARS:
        raise ConfigError(f"The question has more than {MAX_QUERY_CHARS:,} characters. Ask a shorter one.")
    found = opened.explain(**given)
    wanted = snippets.query_stems(given["query"])
    words = snippets.matched_words("\n".join(hit.content for hit in found.result.results), wanted)
    titles = snippets.matched_words("\n".join(hit.metadata.heading_path for hit in found.result.results), wanted)
    told = {"text": text(plain(found.result)), "parts": plain(found.parts), "words": sorted(words | titles)}
    unlikely = None if words or titles or not found.result.results else _far(opened, given)
    return {**told, "unlikely": unlikely}


def _far(opened: Anvil, given: dict[str, Any]) -> dict[str, float] | None:
    """The best cosine of a question and :data:`MIN_COSINE`; None when it is not below that, or when there is none."""
    nearest = opened.explain(**{**given, "mode": "semantic", "top_k": 1}).result
    cosine = max((hit.score for hit in nearest.results), default=None)
    notes = " ".join(nearest.freshness.notes)
    return None if cosine is None or notes or cosine >= MIN_COSINE else {"cosine": cosine, "line": MIN_COSINE}


def health(opened: Anvil, given: dict[str, Any]) -> dict[str, Any]:
    """What is worth mending, what the index is, and how its file differs from the documents: ``stale``, or
    ``not_compared``, a sentence on why they were not."""
    found = {"health": plain(opened.health()), "status": plain(opened.get_status())}
    try:
        return {**found, "stale": plain(opened.check()), "not_compared": None}
    except AnvilError as error:
        return {**found, "stale": None, "not_compared": str(error)}


Endpoint = Callable[[Anvil, dict[str, Any]], Any]
ENDPOINTS: Mapping[str, tuple[tuple[Parameter, ...], Endpoint]] = {
    "search": (_OF_TOOL["search_docs"], search),
    "pages": (_OF_TOOL["list_pages"], lambda opened, given: plain(opened.list_pages(**given))),
    "page": (_OF_TOOL["get_page"], lambda opened, given: plain(opened.outline(**given))),
    "section": (_OF_TOOL["get_section"], lambda opened, given: plain(opened.get_section(**given))),
    "status": ((), lambda opened, given: plain(opened.get_status())),
    "health": ((), health),
}
"""Name below ``api/`` -> its parameters, those of the tool it shows, and what answers."""


# --- HTTP ------------------------------------------------------------------------------------------------------


async def _home(_: Request) -> Response:
    """The address without a path leads to the page."""
    return RedirectResponse(HOME, 307, HEADERS)


def _file(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
    body = (resources.files("anvil.interfaces.mcp_server") / "ui" / name).read_bytes()

    async def answer(_: Request) -> Response:
        return Response(body, media_type=kind, headers=HEADERS)

    return answer


def _answer(
    bridge: ThreadBridge, name: str, parameters: tuple[Parameter, ...], look: Endpoint
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            given = validated(name, parameters, _typed(parameters, request.query_params))
            value = await bridge.call(f"ui {name}", lambda opened: look(opened, given))
        except (InvalidArguments, ConfigError) as error:
            return JSONResponse({"error": str(error)}, 400, HEADERS)
        except NotFound as error:
            return JSONResponse({"error": str(error)}, 404, HEADERS)
        except AnvilError as error:
            return JSONResponse({"error": str(error)}, 503, HEADERS)
        return JSONResponse(value, headers=HEADERS)

    return answer


def _typed(parameters: tuple[Parameter, ...], query: Mapping[str, str]) -> dict[str, Any]:
    """The words of a query string as the types that the parameters want; what fits none stays a word, and is refused.

    An empty one counts as not given.
    """
    kinds = {each.name: each.kind for each in parameters}
    found: dict[str, Any] = {}
    for name, value in query.items():
        kind = kinds.get(name)
        if kind == "boolean" and value in ("true", "false"):
            found[name] = value == "true"
        elif kind == "integer" and value.isascii() and value.removeprefix("-").isdigit() and len(value) < 12:
            found[name] = int(value)
        else:
            found[name] = value or None
    return found
