"""Writing a generation of collections. The alias is changed after it is complete.

An incomplete generation has no alias, so no reader uses it. The next export removes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anvil.errors import ArtifactRejected, FetchError
from anvil.milvus import schema
from anvil.milvus.milvus_client import INDEX_TIMEOUT_S, WRITE_TIMEOUT_S, Client, Gone

MAX_INSERT_ROWS = 500
"""Rows of one insert."""
MAX_INSERT_BYTES = 8_000_000
"""Bytes of the texts of one insert. The default limit of a server is 64 MB."""


def pointed(client: Client) -> str | None:
    """The generation that the alias points at; None without an alias.

    Raises :class:`ArtifactRejected` for a collection or an alias that Anvil did not create.
    """
    alias = client.address.collection
    try:
        target = client.ask("describe_alias", alias)["collection_name"]
    except Gone:
        if client.ask("has_collection", alias):
            raise ArtifactRejected(
                f"{client.shown} is a collection that Anvil did not create. Choose another name."
            ) from None
        return None
    generation = schema.generation_of(target, alias)
    if generation is None or not target.endswith("_chunks"):
        raise ArtifactRejected(f"{client.shown} is an alias that Anvil did not create. Choose another name.")
    return generation


def generations(client: Client) -> set[str]:
    """All generations with at least one collection, also incomplete ones."""
    names = (schema.generation_of(name, client.address.collection) for name in client.ask("list_collections"))
    return {name for name in names if name}


def drop(client: Client, generation: str) -> None:
    """Remove a generation, first its ``chunks``. The server refuses that when an alias points at it, so a generation
    that another export just selected stays complete."""
    existing = set(client.ask("list_collections"))
    for kind in schema.KINDS:
        if f"{generation}_{kind}" in existing:
            client.ask("drop_collection", f"{generation}_{kind}", timeout=WRITE_TIMEOUT_S)


class Generation:
    """A generation that is being written."""

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
        """Add a row. It is written before :meth:`finish` returns. Raises :class:`FetchError` for too long texts."""
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
        """Add a text of any length."""
        for row, piece in schema.pieces(kind, number, text):
            self.put("parts", {"id": row, "text": piece, "vector": [0.0, 0.0]})

    def rows(self) -> dict[str, int]:
        """Number of rows of each kind so far."""
        return {kind: self.written[kind] + len(self._rows[kind]) for kind in schema.KINDS}

    def _send(self, kind: str) -> None:
        rows = self._rows[kind]
        if rows:
            self.client.ask("insert", f"{self.name}_{kind}", rows, timeout=WRITE_TIMEOUT_S)
            self.written[kind] += len(rows)
            self._rows[kind], self._bytes[kind] = [], 0

    def finish(self) -> None:
        """Write the rest, build the indexes, and compare the row counts. Raises :class:`FetchError` for missing
        rows."""
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
            row_count = int(counted[0]["count(*)"])
            if row_count != self.written[kind]:
                raise FetchError(
                    f"Milvus has {row_count:,} rows of {name}, but {self.written[kind]:,} were written. Export again."
                )


def point(client: Client, generation: str) -> str | None:
    """Point the alias at a generation, so that readers use it; the generation that it pointed at before."""
    before = pointed(client)
    step = "create_alias" if before is None else "alter_alias"
    client.ask(step, f"{generation}_chunks", client.address.collection, timeout=WRITE_TIMEOUT_S)
    return before


def unpoint(client: Client) -> None:
    """Remove the alias. Then there is no index."""
    client.ask("drop_alias", client.address.collection, timeout=WRITE_TIMEOUT_S)


def without_others(client: Client, current: str | None) -> None:
    """Remove all generations except ``current`` and the one that is used now, which another export can have changed."""
    for generation in sorted(generations(client) - {current}):
        if generation != pointed(client):
            drop(client, generation)
