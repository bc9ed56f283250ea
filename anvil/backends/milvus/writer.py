"""A generation of collections, written whole before anybody is pointed at it.

What is half-written has no alias, so no reader sees it; the next export takes it away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anvil.backends.milvus import schema
from anvil.backends.milvus.client import INDEX_TIMEOUT_S, WRITE_TIMEOUT_S, Client, Gone
from anvil.errors import ArtifactRejected, FetchError

MAX_INSERT_ROWS = 500
"""Rows of one insert at most."""
MAX_INSERT_BYTES = 8_000_000
"""And, of texts, bytes: a server takes 64 MB by default."""


def pointed(client: Client) -> str | None:
    """The generation that the alias points at; None where there is no alias.

    Raises :class:`ArtifactRejected` when the name is not ours.
    """
    alias = client.address.collection
    try:
        target = client.ask("describe_alias", alias)["collection_name"]
    except Gone:
        if client.ask("has_collection", alias):
            raise ArtifactRejected(
                f"{client.shown} is a collection that Anvil did not make. Choose another name."
            ) from None
        return None
    found = schema.generation_of(target, alias)
    if found is None or not target.endswith("_chunks"):
        raise ArtifactRejected(f"{client.shown} is an alias that Anvil did not make. Choose another name.")
    return found


def generations(client: Client) -> set[str]:
    """The generations of which there is at least one collection, whole or not."""
    found = (schema.generation_of(name, client.address.collection) for name in client.ask("list_collections"))
    return {name for name in found if name}


def drop(client: Client, generation: str) -> None:
    """Take a generation away. First the collection that the alias would point at: a server refuses to drop it then, and
    whoever pointed the alias there a moment ago has lost nothing."""
    standing = set(client.ask("list_collections"))
    for kind in schema.KINDS:
        if f"{generation}_{kind}" in standing:
            client.ask("drop_collection", f"{generation}_{kind}", timeout=WRITE_TIMEOUT_S)


class Generation:
    """One generation in the making."""

    def __init__(self, client: Client, name: str, dimensions: int) -> None:
        self.client, self.name = client, name
        self._rows: dict[str, list[Mapping[str, Any]]] = {kind: [] for kind in schema.KINDS}
        self._bytes = dict.fromkeys(schema.KINDS, 0)
        self.written = dict.fromkeys(schema.KINDS, 0)
        for kind in schema.KINDS:
            client.ask(
                "create_collection", f"{name}_{kind}", schema=schema.schema(kind, dimensions), timeout=WRITE_TIMEOUT_S
            )

    def put(self, kind: str, row: Mapping[str, Any]) -> None:
        """Write a row, some time before :meth:`finish` returns. Texts longer than a field raise."""
        for field, value in row.items():
            if isinstance(value, str):
                size = len(value) if value.isascii() else len(value.encode("utf-8", "replace"))
                if size > schema.MAX_TEXT_BYTES:
                    raise FetchError(
                        f"A {field} of {row.get('path', 'the index')} has {size:,} bytes; a field of Milvus holds "
                        f"{schema.MAX_TEXT_BYTES:,}. Shorten it."
                    )
                self._bytes[kind] += size
        self._rows[kind].append(row)
        if len(self._rows[kind]) >= MAX_INSERT_ROWS or self._bytes[kind] >= MAX_INSERT_BYTES:
            self._send(kind)

    def put_text(self, kind: int, number: int, text: str) -> None:
        """Write a text of any length."""
        for row, piece in schema.pieces(kind, number, text):
            self.put("parts", {"id": row, "text": piece, "vector": [0.0, 0.0]})

    def rows(self) -> dict[str, int]:
        """How many rows of each kind there are so far."""
        return {kind: self.written[kind] + len(self._rows[kind]) for kind in schema.KINDS}

    def _send(self, kind: str) -> None:
        rows = self._rows[kind]
        if rows:
            self.client.ask("insert", f"{self.name}_{kind}", rows, timeout=WRITE_TIMEOUT_S)
            self.written[kind] += len(rows)
            self._rows[kind], self._bytes[kind] = [], 0

    def finish(self) -> None:
        """Write what is left, have Milvus index it, and count it. Raises :class:`FetchError` when rows lack."""
        for kind in schema.KINDS:
            self._send(kind)
            name = f"{self.name}_{kind}"
            self.client.ask("flush", name, timeout=WRITE_TIMEOUT_S)
            self.client.ask("create_index", name, schema.indexes(kind), timeout=INDEX_TIMEOUT_S)
            self.client.ask("load_collection", name, timeout=INDEX_TIMEOUT_S)
            counted = self.client.ask(
                "query",
                name,
                filter="",
                output_fields=["count(*)"],
                consistency_level="Strong",
                timeout=WRITE_TIMEOUT_S,
            )
            found = int(counted[0]["count(*)"])
            if found != self.written[kind]:
                raise FetchError(
                    f"Milvus holds {found:,} rows of {name}, written were {self.written[kind]:,}. Export again."
                )


def point(client: Client, generation: str) -> str | None:
    """Point the alias at a generation: from now on readers ask it. Returns the one that it pointed at before."""
    before = pointed(client)
    step = "create_alias" if before is None else "alter_alias"
    client.ask(step, f"{generation}_chunks", client.address.collection, timeout=WRITE_TIMEOUT_S)
    return before


def unpoint(client: Client) -> None:
    """Take the alias away: from now on there is no index."""
    client.ask("drop_alias", client.address.collection, timeout=WRITE_TIMEOUT_S)


def without_others(client: Client, kept: str | None) -> None:
    """Take away all generations but this one and the one that readers ask, which another export may have changed."""
    for each in sorted(generations(client) - {kept}):
        if each != pointed(client):
            drop(client, each)
