"""Messages of the protocol as clients send them, and the errors for those that cannot be answered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from anvil.errors import AnvilError
from anvil.formats.characters import is_unicode
from anvil.formats.data_formats import no_constant
from anvil.server.logs import log

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
"""Error codes of JSON-RPC."""
KINDS: dict[type, str] = {
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    list: "an array",
    dict: "an object",
}
"""Kinds of JSON values, for messages."""


class ProtocolError(AnvilError):
    """A request that has no result: the code, message and data of the error that answers it. ``request``: its id, where
    it is known from a message that could not be read."""

    def __init__(self, code: int, message: str, data: Any = None, request: int | str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data, self.request = code, message, data, request

    def answer(self, request: int | str | None) -> dict[str, Any]:
        """The answer to a request."""
        data = {} if self.data is None else {"data": self.data}
        return {"jsonrpc": "2.0", "id": request, "error": {"code": self.code, "message": self.message, **data}}


def parsed_message(text: bytes, where: str) -> dict[str, Any]:
    """A request, a notification or an answer. ``where`` it is: such as "line". Raises :class:`ProtocolError`."""
    try:
        message = json.loads(text.decode("utf-8-sig"), parse_constant=no_constant)
        request = message.get("id") if isinstance(message, dict) else None
        request = request if type(request) is int or (type(request) is str and is_unicode(request)) else None
        json.dumps(message, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # such as of a text that a client has cut inside an emoji
        problem = f"Parse error: a text of the {where} has half of a surrogate pair, which is no character."
        raise ProtocolError(PARSE_ERROR, problem, request=request) from None
    except (ValueError, RecursionError):
        more = ", without headers" if where == "line" else ""
        problem = f"Parse error: the {where} is not JSON. Send one JSON-RPC 2.0 message per {where}{more}."
        raise ProtocolError(PARSE_ERROR, problem) from None
    if not isinstance(message, dict) or not _is_message(message):
        problem = (
            f'Invalid request: send one JSON-RPC 2.0 object per {where}, with "jsonrpc": "2.0", method, params (an '
            "object) and id (a string or an integer)."
        )
        raise ProtocolError(INVALID_REQUEST, problem, request=request)
    return message


def _is_message(message: dict[str, Any]) -> bool:
    if message.get("jsonrpc") != "2.0":
        return False
    if "method" not in message:
        return "id" in message and isinstance(message.get("result", message.get("error")), dict)
    return (
        isinstance(message["method"], str)
        and isinstance(message.get("params", {}), dict | None)
        and ("id" not in message or type(message["id"]) in (int, str))
    )


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
        raise ProtocolError(INVALID_PARAMS, f"Invalid request parameters: {name} must be {KINDS[kind]}.")
    return value
