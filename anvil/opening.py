"""``anvil.open``: from what a caller names, and what is configured, to the object that answers."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from anvil import addresses
from anvil.api import Anvil
from anvil.config import Config
from anvil.configfile import load_config
from anvil.models import Progress, silent


def open(
    docs: str | os.PathLike[str] | None = None,
    index: str | os.PathLike[str] | None = None,
    provider: str | None = None,
    config: str | os.PathLike[str] | Config | None = None,
    *,
    progress: Progress = silent,
    background: bool = False,
    watch: bool = False,
) -> Anvil:
    """Open a folder of documents, an index, or both.

    ``docs``: the folder; ``index``: the index file (default ``<docs>/.anvil/index.db``), or where it is published:
    ``https://...``, ``github:OWNER/REPO#artifact:NAME``; ``provider``: ``local``, ``openai`` or ``none``; ``config``: a
    file or a :class:`Config`. What is not given comes from the configuration. With an index alone, answers come from
    it as it is, unless the configured folder holds at least half of its pages, by their paths: then the index is of
    that folder, and is compared with it.

    ``background``, for servers: no answer waits for the first build or for the vectors of a large change; see
    :meth:`Anvil.start`. ``watch``, with it: changes are also read when the file system tells of them, ahead of the
    next question; that is for speed and for :meth:`Anvil.on_change` only. Raises :class:`AnvilError`.
    """
    flags = {
        "docs": os.fspath(docs) if docs is not None else None,
        "index": os.fspath(index) if index is not None else None,
        "embedding.provider": provider,
    }
    if isinstance(config, Config):
        given = {key: value for key, value in flags.items() if value is not None}
        embedding = replace(config.embedding, provider=provider) if provider else config.embedding
        paths: dict[str, Any] = {key: given[key] for key in ("docs", "index") if key in given}
        settled, base = replace(config, embedding=embedding, **paths), Path.cwd()
    else:
        settled, base = load_config(config, flags)
    alone = docs is None and (index is not None or addresses.is_remote(settled.index or ""))
    return Anvil(settled, base, index_only=alone, progress=progress, background=background, watch=watch)
