"""A project with several collections: folders of its own, and indexes whose pages are elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import anvil
from tests.conftest import PAGES, write

BREAD = "# Bread\n\n## Sourdough\n\nFeed the sourdough at night.\n"
KITCHEN = {"bread.md": BREAD, "index.md": "# Kitchen\n\nKnives.\n"}


def project_with(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    indexes: Mapping[str, dict[str, str]],
    config: str = "",
    kitchen: dict[str, str] | None = None,
) -> Path:
    """A project in ``folder``, which becomes the working folder: its own ``docs``, those of ``kitchen``, the indexes
    (name of the file -> pages), and ``anvil.toml`` with ``config``."""
    write(folder / "docs", PAGES)
    write(folder / "kitchen", kitchen or {})
    for name, pages in indexes.items():
        with anvil.open(write(folder / "elsewhere" / name, pages), folder / name, "none") as opened:
            opened.index()
    if config:
        (folder / "anvil.toml").write_text(config, encoding="utf-8")
    monkeypatch.chdir(folder)
    return folder
