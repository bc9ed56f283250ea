"""The index of our own documentation, which the wheel of a release carries for ``anvil docs`` and ``anvil deps``.

    python scripts/docs_index.py       writes anvil/index.db

The same pages give the same text and digest. On one machine they give the same bytes.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import anvil
from scripts.project import ROOT, URLS, version

INDEX = ROOT / "anvil" / "index.db"
SITE = {"url": URLS["Homepage"], "rule": "directory"}


def write(target: Path = INDEX, provider: str | None = None) -> Path:
    """Build the index in a temporary folder, with the addresses of the site, and move it to ``target``; its path."""
    from anvil.settings.configuration import configure

    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder, "index.db")
        config = configure(
            {"docs": str(ROOT / "docs"), "index": str(index), "site": SITE, "chunking": {"slugs": "mkdocs"}}
        )
        with anvil.open(config=config, provider=provider) as docs:
            report = docs.index(version=version())
        shutil.move(index, target)
    print(f"{target}: {report.pages} pages, {report.size_bytes:,} bytes")
    return target


if __name__ == "__main__":
    write()
