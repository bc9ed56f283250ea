"""The connection to a Milvus server, or to a Milvus Lite file: every call is bounded in time, every failure a sentence.

pymilvus writes its failures to stderr beside raising them; here they are raised only.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anvil.core.config.schema import MILVUS_TOKEN
from anvil.core.index_url import MilvusAddress
from anvil.errors import ConfigError, FetchError, Unreachable

if TYPE_CHECKING:
    from pymilvus import MilvusClient

CONNECT_TIMEOUT_S = 5.0
"""Seconds that a first connection may take."""
QUERY_TIMEOUT_S = 10.0
"""Seconds that a question may take."""
READ_TIMEOUT_S = 120.0
"""Seconds that the first question to a collection may take whose server was started anew, or is this process."""
WRITE_TIMEOUT_S = 300.0
"""Seconds that a step of an export may take,"""
INDEX_TIMEOUT_S = 4 * 3600.0
"""and the making of an index, or its loading, which take long for millions of vectors."""
QUIET = {"grpc.keepalive_time_ms": 300_000, "grpc.keepalive_permit_without_calls": False}
"""Of the channel. Some servers hang up on who asks more often whether they are there; questions have limits anyway."""
_GONE = re.compile(r"(collection|alias)\b.*\b(not exist|not found|can't find)", re.IGNORECASE | re.DOTALL)
_GONE_CODES = (100, 1600)
_RELEASED = 101
_AWAY = re.compile(
    r"UNAVAILABLE|DEADLINE_EXCEEDED|Fail connecting|Fail to connect|failed to connect|timeout|Connection refused",
    re.IGNORECASE,
)
_REFUSED = re.compile(r"UNAUTHENTICATED|auth check failure|PermissionDenied|permission deny", re.IGNORECASE)

_lite: dict[str, int] = {}
"""Milvus Lite files that are open in this process: by how many clients."""
_lite_lock = threading.Lock()


class Gone(FetchError):
    """A collection or an alias that was asked for is not there."""


class Released(FetchError):
    """A collection is not in the server's memory: it was started anew."""


class Client:
    """One server, asked with :meth:`ask`. It connects when first asked; usable from any thread."""

    def __init__(self, address: MilvusAddress, folder: Path) -> None:
        """``folder``: where the path of a Milvus Lite file starts."""
        self.address = address
        self._uri = str(folder / address.uri) if address.lite else address.uri
        self._token = "" if address.lite else os.environ.get(MILVUS_TOKEN, "")
        self._client: MilvusClient | None = None
        self._lock = threading.Lock()

    @property
    def shown(self) -> str:
        """The address as it may be printed."""
        return self.address.shown

    def ask(self, name: str, *args: Any, timeout: float = QUERY_TIMEOUT_S, **more: Any) -> Any:
        """Call a method of pymilvus' client.

        Raises :class:`Gone`, :class:`Unreachable`, or :class:`FetchError` for whatever else the server says.
        """
        client = self._connected()
        timeout_s = max(timeout, READ_TIMEOUT_S) if self.address.lite else timeout
        try:
            return getattr(client, name)(*args, timeout=timeout_s, **more)
        except Exception as error:  # pymilvus and gRPC have no common ancestor but this
            raise self._translated(error) from error

    def close(self) -> None:
        """Let go of the connection, and of a Milvus Lite file; the next question opens both again."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()
            if self.address.lite:
                _release(self._uri)

    # --- connecting ------------------------------------------------------------------------------------------

    def _connected(self) -> MilvusClient:
        with self._lock:
            if self._client is None:
                self._client = self._connect()
            return self._client

    def _connect(self) -> MilvusClient:
        made = _library()
        if self.address.lite:
            if not Path(self._uri).parent.is_dir():
                raise ConfigError(f"There is no folder for {self._uri}. Make it, or name another file.")
            _acquire(self._uri, self.shown)
        try:
            client: MilvusClient = made(
                uri=self._uri,
                token=self._token,
                db_name=self.address.database,
                timeout=CONNECT_TIMEOUT_S,
                grpc_options=QUIET,
            )
        except Exception as error:
            if self.address.lite:
                _release(self._uri)
                raise Unreachable(
                    f"The Milvus Lite file {self._uri} cannot be opened: another process may hold it, for it is open "
                    "to one at a time. End that one, or serve the file with 'milvus-lite server'."
                ) from error
            raise self._translated(error) from error
        return client

    def _translated(self, error: Exception) -> FetchError:
        said = " ".join(str(getattr(error, "message", None) or error).split())
        if self._token:
            said = said.replace(self._token, "...")
        if getattr(error, "code", None) == _RELEASED:
            return Released(f"{self.shown} is not loaded ({said[:120]}).")
        if getattr(error, "code", None) in _GONE_CODES or _GONE.search(said):
            return Gone(f"{self.shown} is not there any more, or not yet ({said[:120]}).")
        if _REFUSED.search(said):
            return FetchError(
                f"Milvus refuses who asks for {self.shown}. Set {MILVUS_TOKEN} to USER:PASSWORD or a key."
            )
        if _AWAY.search(said) or type(error).__module__.startswith("grpc"):
            return Unreachable(
                f"Milvus does not answer for {self.shown} ({said[:120]}). Start it, or mend the address; "
                "it is asked anew by the next question."
            )
        return FetchError(f"Milvus did not do what {self.shown} was asked for: {said[:300]}")


def _library() -> type[MilvusClient]:
    """pymilvus' client, quiet."""
    try:
        from pymilvus import MilvusClient as made
    except ImportError as error:
        raise ConfigError(
            "An index in Milvus needs pymilvus. Install it with: pip install 'anvil-docs[milvus]'"
        ) from error
    for name in ("pymilvus", "pymilvus.milvus_client", "milvus_lite", "grpc"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(logging.CRITICAL)
    library: type[MilvusClient] = made
    return library


def _acquire(file: str, shown: str) -> None:
    try:
        import milvus_lite  # noqa: F401 - whether it is there
    except ImportError as error:
        raise ConfigError(f"{shown} needs Milvus Lite. Install it with: pip install milvus-lite") from error
    with _lite_lock:
        _lite[file] = _lite.get(file, 0) + 1


def _release(file: str) -> None:
    """pymilvus leaves the server of a Milvus Lite file running, and the file locked, until the process ends."""
    from milvus_lite.server_manager import server_manager_instance

    with _lite_lock:
        _lite[file] -= 1
        if not _lite[file]:
            del _lite[file]
            server_manager_instance.release_server(file)
