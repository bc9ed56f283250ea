"""Hooks of MkDocs that call Anvil: after a build, the site carries the index of the pages it was made from.

The index is kept beside ``mkdocs.yml`` between builds, because MkDocs empties the site folder; a build without changes
copies it, no more.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from mkdocs.config import base
from mkdocs.config import config_options as options
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import BasePlugin, get_plugin_logger

import anvil
from anvil.errors import AnvilError

log = get_plugin_logger(__name__)

KEPT = Path(".anvil") / "site.db"
"""Where the index is kept, from the folder of ``mkdocs.yml``."""


class AnvilConfig(base.Config):  # type: ignore[no-untyped-call]
    """The plugin's options in ``mkdocs.yml``."""

    enabled = options.Type(bool, default=True)
    """Whether the index is built at all; `!ENV` works here."""
    index_path = options.Type(str, default="anvil/index.db")
    """Where the index goes in the site folder."""
    provider = options.Choice(("local", "openai", "none"), default="local")
    """Which embedding provider makes the vectors."""


class AnvilPlugin(BasePlugin[AnvilConfig]):  # type: ignore[no-untyped-call]
    """Builds the index of ``docs_dir`` and puts it into the site."""

    def on_post_build(self, *, config: MkDocsConfig) -> None:
        """Build the index, and copy it into the finished site. Raises PluginError when it cannot be built."""
        if not self.config.enabled:
            return
        kept = Path(config.config_file_path or config.docs_dir).parent / KEPT
        target = Path(config.site_dir) / self.config.index_path
        try:
            kept.parent.mkdir(exist_ok=True)
            (kept.parent / ".gitignore").write_text("*\n", encoding="utf-8")
            settings = anvil.Config(docs=config.docs_dir, index=str(kept))
            with anvil.open(provider=self.config.provider, config=settings) as opened:
                report = opened.index()
            target.parent.mkdir(parents=True, exist_ok=True)
            fresh = target.with_name(target.name + ".new")
            shutil.copyfile(kept, fresh)
            os.replace(fresh, target)
        except (AnvilError, OSError) as error:
            raise PluginError(f"The index was not built: {error}") from error
        for sentence in report.reasons:
            log.warning(sentence)
        for left_out in report.skipped:
            log.warning(f"{left_out.path} is not in the index: {left_out.reason}")
        log.info(f"{report.pages} pages, {report.embedded} passages embedded: {target}")
