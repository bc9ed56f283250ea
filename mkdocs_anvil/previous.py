"""Earlier indexes whose vectors a build may reuse: fetched by path or URL, checked, and of the same model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from anvil.errors import AnvilError
from anvil.fetch.attestation_lookup import rule_of
from anvil.fetch.fetch_index import fetch
from anvil.http.client import Limits
from anvil.settings import index_url
from anvil.settings.index_url import LocalPath
from anvil.settings.schema import FetchOptions


def usable(
    sources: Sequence[str], folder: Path, model_digest: str, options: FetchOptions
) -> tuple[list[Path], list[str]]:
    """The indexes at ``sources`` as local files, and a warning for each one that cannot be used.

    Relative paths start at ``folder``, which has ``mkdocs.yml``. ``options``: whether a published index must have an
    attestation, as for ``anvil pull``; a file of this machine needs none.
    """
    limits, attested = Limits(size=options.max_bytes), rule_of(options, folder)
    files: list[Path] = []
    warnings: list[str] = []
    for source in sources:
        try:
            address = index_url.parse(source)
            if isinstance(address, LocalPath):
                fetched = fetch(folder / address.path)
            else:
                rule = attested if attested.required else None
                fetched = fetch(source, head=folder, limits=limits, attested=rule)
        except AnvilError as error:
            warnings.append(f"The previous index is not used: {error}")
            continue
        if fetched.manifest.model.digest == model_digest:
            files.append(fetched.path)
        else:
            warnings.append(
                f"The previous index {fetched.origin} is not used: its vectors are of another model, "
                f"{fetched.manifest.model.name}."
            )
    return files, warnings
