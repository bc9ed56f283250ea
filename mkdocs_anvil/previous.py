"""Earlier indexes whose vectors a build may take over: by path or URL, fetched, checked, and of the same model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from anvil.backends.fetch.fetch_index import fetch
from anvil.core import index_url
from anvil.core.index_url import LocalPath
from anvil.errors import AnvilError


def usable(sources: Sequence[str], folder: Path, model_digest: str) -> tuple[list[Path], list[str]]:
    """The indexes at ``sources`` as files on this machine, and sentences about those that are of no use.

    Paths start from ``folder``, the one of ``mkdocs.yml``.
    """
    found: list[Path] = []
    complaints: list[str] = []
    for source in sources:
        try:
            address = index_url.parse(source)
            fetched = fetch(folder / address.path if isinstance(address, LocalPath) else source, head=folder)
        except AnvilError as error:
            complaints.append(f"The previous index is not used: {error}")
            continue
        if fetched.manifest.model.digest == model_digest:
            found.append(fetched.path)
        else:
            complaints.append(
                f"The previous index {fetched.origin} is not used: its vectors are of another model, "
                f"{fetched.manifest.model.name}."
            )
    return found, complaints
