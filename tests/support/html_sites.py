"""Small sites of HTML in a folder, as a generator would write them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

BASE = "https://example.org/docs/"


def page(title: str, body: str, *, address: str | None = None, head: str = "", lang: str = "en") -> str:
    """A page with navigation, header and footer around its content. ``address`` is its canonical one in the site."""
    canonical = f'<link rel="canonical" href="{BASE}{address}">' if address is not None else ""
    return f"""<!doctype html><html lang="{lang}"><head><meta charset="utf-8"><title>{title} - Project</title>
{canonical}{head}<link rel="stylesheet" href="/assets/main.0123abcd.css"></head><body>
<header>Project <nav><a href="/">Home</a> navigation words</nav></header>
<main><h1 id="{title.lower().replace(" ", "-")}">{title}</h1>{body}</main>
<footer>Built on 2026-01-31 10:00</footer><script src="/assets/app.0123abcd.js"></script></body></html>"""


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files, and return their folder."""
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return folder


def site(folder: Path) -> Path:
    """A site of three pages, one of them without a source in :func:`docs`."""
    return write(
        folder,
        {
            "index.html": page("Start", "<p>The first page of the harbour.</p>", address=""),
            "guide/install/index.html": page(
                "Install",
                '<p>Run <code>pip install harbour</code>.</p><h2 id="on-windows">On Windows</h2><p>Use the crane.</p>',
                address="guide/install/",
            ),
            "api/index.html": page("API", '<h2 id="dock">dock</h2><p>Moors a ship.</p>', address="api/"),
            "404.html": page("Not found", "<p>Nothing here.</p>"),
        },
    )


def docs(folder: Path) -> Path:
    """The sources of two of its pages."""
    return write(
        folder,
        {
            "index.md": "# Start\n\nThe first page of the harbour.\n",
            "guide/install.md": "# Install\n\nRun `pip install harbour`.\n\n## On Windows\n\nUse the crane.\n",
        },
    )
