"""Earlier indexes: those whose vectors a build reuses, and the one that it is compared with."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from anvil.ci.hosts import Host
from anvil.errors import AnvilError, ArtifactError

if TYPE_CHECKING:
    from anvil.api import Anvil
    from anvil.index_file.reader import Reader


def named(previous: tuple[str, ...], opened: Anvil, host: Host) -> Iterator[Path]:
    """The indexes of ``previous``: paths, glob patterns and addresses, one per line.

    A missing one is a warning, since the first run has none.
    """
    from anvil.settings import index_url

    for name in (line.strip() for value in previous for line in value.splitlines()):
        if index_url.is_remote(name):
            yield from _fetched(name, opened, host)
        elif name:
            files = [name] if os.path.exists(name) else sorted(glob.glob(name, recursive=True))
            if not files:
                host.annotate("warning", f"There is no previous index at {name}: its vectors cannot be reused.")
            yield from map(Path, files)


def _fetched(name: str, opened: Anvil, host: Host) -> Iterator[Path]:
    from anvil.fetch.attestation_lookup import rule_of
    from anvil.fetch.fetch_index import fetch
    from anvil.http.client import Limits

    attested = rule_of(opened.config.fetch, opened.base)
    try:
        fetched = fetch(
            name,
            head=opened.folder,
            limits=Limits(size=opened.config.fetch.max_bytes),
            attested=attested if attested.required else None,
        )
    except AnvilError as error:
        host.annotate("warning", f"The previous index cannot be fetched: {error}")
        return
    host.line(f"The previous index is from {fetched.origin}, built from commit {(fetched.commit or 'unknown')[:12]}.")
    yield fetched.path


def first_sound(candidates: list[Path], shard: str | None, copy: Path) -> Reader | None:
    """The first index that is sound and of the same shard, copied to ``copy`` and opened there."""
    from anvil.index_file import publish, verify

    for path in candidates:
        try:
            with verify.open_checked(path) as reader:
                same_shard = reader.meta().get("shard") == shard
        except ArtifactError:
            continue  # the build gets the same indexes, and reports the reason
        if same_shard:
            publish.place(path, copy)
            return verify.open_checked(copy)
    return None
