"""Errors of the protocol: their codes, and the messages for requests that cannot be answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anvil.errors import AnvilError
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
    """A request that has no result: the code, message and data of the error that answers it."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


def not_json(where: str) -> ProtocolError:
    """The error for what is sent and is no JSON. ``where``: such as "line"."""
    problem = f"Parse error: the {where} is not JSON. Send one JSON-RPC 2.0 message per {where}, without headers."
    return ProtocolError(PARSE_ERROR, problem)


def no_message(where: str, request: str | int | None = None) -> ProtocolError:
    """The error for JSON that is no message; its data is the id of the request, where it has one."""
    problem = (
        f'Invalid request: send one JSON-RPC 2.0 object per {where}, with "jsonrpc": "2.0", method, id (a string or an '
        "integer) and params (an object)."
    )
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
        raise ProtocolError(INVALID_PARAMS, f"Invalid request parameters: {name} must be {KINDS[kind]}.")
    return value
