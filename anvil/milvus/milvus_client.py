"""The client of a Milvus server or a Milvus Lite file: connection, token, timeouts, and messages for errors.

pymilvus also prints its errors to stderr; this client turns that off.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anvil.errors import ConfigError, FetchError, Unreachable
from anvil.settings.index_url import MILVUS_TOKEN, MilvusAddress
from anvil.system import installation

if TYPE_CHECKING:
    from pymilvus import MilvusClient

CONNECT_TIMEOUT_S = 5.0
"""For connecting."""
QUERY_TIMEOUT_S = 10.0
"""For a query."""
READ_TIMEOUT_S = 120.0
"""For the first query after a collection was loaded, and for all queries to Milvus Lite."""
WRITE_TIMEOUT_S = 300.0
"""For a step of an export."""
INDEX_TIMEOUT_S = 4 * 3600.0
"""For building or loading an index of millions of vectors."""
QUIET = {"grpc.keepalive_time_ms": 300_000, "grpc.keepalive_permit_without_calls": False}
"""Options of gRPC. Some servers close a connection with frequent keepalive pings, which are not needed: each request
has a timeout."""
_GONE = re.compile(r"(collection|alias)\b.*\b(not exist|not found|can't find)", re.IGNORECASE | re.DOTALL)
_GONE_CODES = (100, 1600)
_RELEASED = 101
_AWAY = re.compile(
    r"UNAVAILABLE|DEADLINE_EXCEEDED|Fail connecting|Fail to connect|failed to connect|timeout|Connection refused",
    re.IGNORECASE,
)
_REFUSED = re.compile(r"UNAUTHENTICATED|auth check failure|PermissionDenied|permission deny", re.IGNORECASE)


class Gone(FetchError):
    """A collection or an alias does not exist."""


class Released(FetchError):
    """A collection is not loaded, for example because the server was restarted."""


class Client:
    """A client for one server. It connects at the first request. Thread-safe."""

    def __init__(self, address: MilvusAddress, folder: Path) -> None:
        """``folder``: the folder of a relative path of a Milvus Lite file."""
        self.address = address
        self._uri = str(folder / address.uri) if address.lite else address.uri
        self._token = "" if address.lite else os.environ.get(MILVUS_TOKEN, "")
        self._client: MilvusClient | None = None
        self._lock = threading.Lock()

    @property
    def shown(self) -> str:
        return self.address.shown

    def ask(self, name: str, *args: Any, timeout: float = QUERY_TIMEOUT_S, **more: Any) -> Any:
        """Call a method of pymilvus' client. Raises :class:`Gone`, :class:`Unreachable` or :class:`FetchError`."""
        client = self._get_client()
        timeout_s = max(timeout, READ_TIMEOUT_S) if self.address.lite else timeout
        try:
            return getattr(client, name)(*args, timeout=timeout_s, **more)
        except Exception as error:  # the errors of pymilvus and gRPC have no other common base class
            raise self._translate(error) from error

    def close(self) -> None:
        """Close the connection. The next request opens it again."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    # --- connecting ------------------------------------------------------------------------------------------

    def _get_client(self) -> MilvusClient:
        with self._lock:
            if self._client is None:
                self._client = self._connect()
            return self._client

    def _connect(self) -> MilvusClient:
        client_class = _library()
        if self.address.lite:
            if not Path(self._uri).parent.is_dir():
                raise ConfigError(f"There is no folder for {self._uri}. Make it, or name another file.")
            if find_spec("milvus_lite") is None:
                raise ConfigError(f"{self.shown} needs Milvus Lite. Install it with: pip install milvus-lite")
        try:
            client: MilvusClient = client_class(
                uri=self._uri,
                token=self._token,
                db_name=self.address.database,
                timeout=CONNECT_TIMEOUT_S,
                grpc_options=QUIET,
            )
        except Exception as error:
            if self.address.lite:
                raise Unreachable(
                    f"The Milvus Lite file {self._uri} cannot be opened. Only one process can open it at a time: end "
                    "the other one, or serve the file with 'milvus-lite server'."
                ) from error
            raise self._translate(error) from error
        return client

    def _translate(self, error: Exception) -> FetchError:
        message = " ".join(str(getattr(error, "message", None) or error).split())
        if self._token:
            message = message.replace(self._token, "...")
        if getattr(error, "code", None) == _RELEASED:
            return Released(f"{self.shown} is not loaded ({message[:120]}).")
        if getattr(error, "code", None) in _GONE_CODES or _GONE.search(message):
            return Gone(f"{self.shown} does not exist ({message[:120]}).")
        if _REFUSED.search(message):
            return FetchError(f"Milvus refuses access to {self.shown}. Set {MILVUS_TOKEN} to USER:PASSWORD or a key.")
        if _AWAY.search(message) or type(error).__module__.startswith("grpc"):
            return Unreachable(
                f"Milvus does not respond for {self.shown} ({message[:120]}). Start it, or correct the address. "
                "The next query tries again."
            )
        return FetchError(f"Milvus failed for {self.shown}: {message[:300]}")


def _library() -> type[MilvusClient]:
    """pymilvus' client class, with its loggers turned off."""
    try:
        from pymilvus import MilvusClient as client_class
    except ImportError as error:
        raise ConfigError(
            f"An index in Milvus needs pymilvus. Install it with: {installation.install_extras('milvus')}"
        ) from error
    for name in ("pymilvus", "pymilvus.milvus_client", "milvus_lite", "grpc"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(logging.CRITICAL)
    library: type[MilvusClient] = client_class
    return library
