"""Make the pictures of the playground in docs/assets/, of this project's own documentation.

    pip install '.[test]' && python scripts/screenshots.py

It needs Chromium and its driver (``apt-get install chromium chromium-driver``), and uses the bundled model.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import anvil  # noqa: E402
from tests.conftest import write  # noqa: E402
from tests.support import mcp_servers  # noqa: E402
from tests.support.browser import BROWSER, DRIVER  # noqa: E402
from tests.support.playground import Visitor  # noqa: E402

ASSETS = ROOT / "docs" / "assets"
QUESTION = "how do I keep the index fresh?"
WORST = {
    "guides/finding.md": "# Finding\n\n"
    + (ROOT / "docs/guides/search.md").read_text(encoding="utf-8").partition("\n")[2].replace("question", "query"),
    "ideas.md": "Some notes that nobody gave a heading.\n",
    "draft.md": "",
}
"""Pages with problems for the health view."""


def main() -> None:
    """Take the pictures."""
    if not BROWSER or not DRIVER:
        sys.exit("There is no Chromium with its driver. Run 'apt-get install chromium chromium-driver'.")
    with tempfile.TemporaryDirectory() as folder:
        docs = Path(folder) / "docs"
        shutil.copytree(ROOT / "docs", docs, ignore=shutil.ignore_patterns("assets", ".anvil"))
        with anvil.open(docs) as opened:
            opened.index()
        visitor = Visitor(Path(folder) / "chromium")
        visitor.driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
        try:
            with mcp_servers.over_http(docs, None, "--ui") as server:
                home = f"{server.base}/ui/"
                search(visitor, home)
                write(docs, WORST)
                health(visitor, home)
        finally:
            visitor.close()
    for file in sorted(ASSETS.glob("playground-*.webp")):
        print(f"{file.relative_to(ROOT)}  {file.stat().st_size:,} bytes")


def search(visitor: Visitor, home: str) -> None:
    """A query and its results, in light colours and, on a phone, in dark ones."""
    visitor.go(home)
    visitor.see(".empty h1")
    visitor.ask(QUESTION)  # loads the model, so that the pictures show the time of a later query
    for name, size, dark in (("search", (1200, 900), False), ("phone", (390, 760), True)):
        visitor.screen(*size, dark=dark, scale=1.5)
        visitor.go(home)
        visitor.see(".empty h1")
        visitor.ask(QUESTION)
        visitor.run("document.activeElement.blur()")
        visitor.picture(ASSETS / f"playground-{name}.webp")


def health(visitor: Visitor, home: str) -> None:
    """The health view, with problems in it."""
    visitor.screen(1200, 1000, dark=True, scale=1.5)
    visitor.go(f"{home}#health")
    visitor.see(".histogram svg")
    row = "[...document.querySelectorAll('.identity div')].find(row => row.textContent.startsWith('Documents'))"
    visitor.run(f"{row}.lastChild.textContent = '~/anvil/docs'")  # not the path of the machine that takes the picture
    visitor.picture(ASSETS / "playground-health.webp")


if __name__ == "__main__":
    main()
