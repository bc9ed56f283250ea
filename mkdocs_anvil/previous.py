"""Earlier indexes whose vectors a build may reuse: fetched by path or URL, checked, and of the same model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from anvil.errors import AnvilError
from anvil.fetch.fetch_index import fetch, fetch_as_configured
from anvil.settings import index_url
from anvil.settings.index_url import LocalPath
from anvil.settings.schema import Config


def usable(sources: Sequence[str], folder: Path, model_digest: str, config: Config) -> tuple[list[Path], list[str]]:
    """The indexes at ``sources`` as local files, and a warning for each one that cannot be used.

    Relative paths start at ``folder``, which has ``mkdocs.yml``. ``config``: whether a published index must have an
    attestation, as for ``anvil pull``; a file of this machine needs none.
    """
    files: list[Path] = []
    warnings: list[str] = []
    for source in sources:
        try:
            address = index_url.parse(source)
            if isinstance(address, LocalPath):
                fetched = fetch(folder / address.path)
            else:
                fetched = fetch_as_configured(source, config, folder, head=folder)
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
