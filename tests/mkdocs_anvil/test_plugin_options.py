"""Every option of the plugin is documented with its default, and no other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mkdocs")
from mkdocs.config.config_options import SubConfig

from anvil.errors import ConfigError
from mkdocs_anvil.plugin import AnvilConfig, configuration

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "mkdocs.md"


def leaves(kind: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted option, default), in the order of the class."""
    for name, option in kind._schema:
        if isinstance(option, SubConfig):
            yield from leaves(option.config_class, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", option.default


def shown(default: Any) -> str:
    return "not set" if default is None else f"`{json.dumps(default)}`"


def test_options_are_documented_with_their_defaults() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \| .*? \| (.*?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [(name, shown(default)) for name, default in leaves(AnvilConfig)]


def test_the_site_says_who_is_sent_the_key_and_a_file_beside_it_does_not(tmp_path: Path) -> None:
    """``mkdocs.yml`` can run code anyway."""
    (tmp_path / "docs").mkdir()
    url = "https://models.example.org/v1"
    (tmp_path / "anvil.toml").write_text(f'[embedding]\nbase_url = "{url}"\n')
    for embedding, refused in (({"provider": "openai"}, True), ({"provider": "openai", "base_url": url}, False)):
        told = AnvilConfig()
        told.load_dict({"embedding": embedding})
        told.validate()
        if refused:
            with pytest.raises(ConfigError, match="OPENAI_API_KEY and the text would be sent there"):
                configuration(told, tmp_path, tmp_path / "docs", "site")
        else:
            assert configuration(told, tmp_path, tmp_path / "docs", "site").embedding.base_url == url
