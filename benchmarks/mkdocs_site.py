"""What the MkDocs plugin adds to a build of a site, and to a rebuild of ``mkdocs serve`` after an edit.

    python benchmarks/mkdocs_site.py [--docs FOLDER] [--pages 300] [--rounds 5] [--theme material] [--provider local]

Two sites of the same pages, one with the plugin and one without, take turns. Whole builds are processes of their own;
rebuilds are what ``mkdocs serve`` does in its own process: the configuration is loaded again, all pages are rendered.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import corpus
import measuring

WITH, WITHOUT = "with", "without"
URL = "http://127.0.0.1:8000/"


def sites(folder: Path, pages: dict[str, str], count: int, theme: str, provider: str) -> dict[str, Path]:
    """The two sites, written."""
    found = {}
    for name in (WITH, WITHOUT):
        site = found[name] = folder / name
        corpus.write(site / "docs", pages, count)
        for page in (site / "docs").rglob("*.mdx"):
            page.rename(page.with_suffix(".md"))  # MkDocs reads no others
        plugin = f"\n  - anvil: {{embedding: {{provider: {provider}}}}}" if name == WITH else ""
        (site / "mkdocs.yml").write_text(
            f"site_name: Pages\nsite_url: https://docs.example.com/\ntheme: {theme}\nplugins:\n  - search{plugin}\n",
            encoding="utf-8",
        )
    return found


def whole(site: Path, kept: bool) -> float:
    """Seconds of ``mkdocs build``, with what earlier ones left behind or without."""
    if not kept:
        shutil.rmtree(site / ".anvil", ignore_errors=True)
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet"]
    return measuring.run(command, {"NO_MKDOCS_2_WARNING": "1"}, site).seconds


class Server:
    """The builds of one ``mkdocs serve``."""

    def __init__(self, site: Path) -> None:
        self.site = site
        self.page = sorted((site / "docs").rglob("*.md"))[len(list((site / "docs").rglob("*.md"))) // 2]
        self._started = False

    def rebuild(self, edit: str | None = None) -> float:
        """Seconds of a rebuild, after an edit of one page or for nothing."""
        from mkdocs.commands.build import build
        from mkdocs.config import load_config

        if edit:
            self.page.write_text(self.page.read_text(encoding="utf-8") + f"\n\n{edit}\n", encoding="utf-8")
        began = time.perf_counter()
        config = load_config(str(self.site / "mkdocs.yml"), site_dir=str(self.site / "served"))
        if not self._started:
            config.plugins.on_startup(command="serve", dirty=False)
            self._started = True
        config.site_url = URL
        build(config, serve_url=URL)
        return time.perf_counter() - began


def line(name: str, times: dict[str, list[float]]) -> tuple[str, str, str, str]:
    """A row of the table."""
    share = (measuring.ratio(times[WITH], times[WITHOUT]) - 1) * 100
    without, with_plugin = (f"{statistics.median(times[each]):.2f} s" for each in (WITHOUT, WITH))
    return name, without, with_plugin, f"{share:+.1f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--docs", type=Path, help="pages to multiply (default: those of the npm package next)")
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--theme", default="material")
    parser.add_argument("--provider", default="local")
    given = parser.parse_args()
    pages = corpus.chosen(given.docs)
    logging.getLogger("mkdocs").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        made = sites(Path(folder), pages, given.pages, given.theme, given.provider)
        rows = []
        for name, kept, rounds in (("first build", False, 1), ("build without changes", True, given.rounds)):
            tasks = {each: lambda _, site=site, kept=kept: whole(site, kept) for each, site in made.items()}
            rows.append(line(name, measuring.in_turn(rounds, tasks)))
        servers = {each: Server(site) for each, site in made.items()}
        for server in servers.values():
            server.rebuild()
        for name, edited in (("rebuild without changes", False), ("rebuild with one edited page", True)):
            if edited:  # the model is loaded with the first edit, once
                for server in servers.values():
                    server.rebuild("The first edit of all.")
            tasks = {
                each: lambda number, server=server, edited=edited: server.rebuild(f"Edit {number}." * edited or None)
                for each, server in servers.items()
            }
            rows.append(line(name, measuring.in_turn(given.rounds, tasks)))
    print(measuring.heading(given.rounds))
    print(measuring.table(("", "MkDocs alone", "with the plugin", "added"), rows))


if __name__ == "__main__":
    main()
