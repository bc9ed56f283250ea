"""The handbook, built by the generators that are no Python packages, each with the line of its guide.

They take a minute or two, so they run only where ``ANVIL_GENERATORS`` names the folder of
``scripts/install_generators.sh``, as in ``.ci/run``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from anvil.index_file.verify import open_checked
from anvil.sites import html_tree
from anvil.sites.html_page import read_page
from tests.support import generators
from tests.support.html_words import lost_and_invented
from tests.support.programs import ROOT, environment

FOLDER = os.environ.get("ANVIL_GENERATORS")
BASE = "https://lighthouse.example/handbook/"


@dataclass(frozen=True)
class Kind:
    """A generator: its command, its site and its sources, and the pages of its index."""

    command: str
    site: str
    pages: frozenset[str]


HANDBOOK = frozenset({"index.md", "charts.md"})
KINDS = {
    "vitepress": Kind(
        "vitepress build docs && anvil build --site docs/.vitepress/dist --docs docs",
        "docs/.vitepress/dist",
        HANDBOOK | {"guide/lamp.md", "de/index.md"},
    ),
    "docusaurus": Kind(
        "docusaurus build && anvil build --site build --docs docs",
        "build",
        HANDBOOK
        # the front page of the blog shows the whole post
        | {"guide/lamp.mdx", "1.0/index.html", "blog/index.html", "blog/2026/01/02/electric/index.html"},
    ),
    "starlight": Kind(
        "astro build && anvil build --site dist --docs src/content/docs",
        "dist",
        HANDBOOK | {"guide/lamp.mdx", "de/index.md"},  # of two pages there is no translation
    ),
    "hugo": Kind(
        "hugo && anvil build --site public --docs content",
        "public",
        frozenset({"en/_index.md", "en/charts.md", "en/guide/lamp.md", "de/_index.md", "guide/index.html"}),
    ),
}


@pytest.mark.parametrize("name", KINDS)
def test_the_guide_has_the_line(name: str) -> None:
    """The line that the test runs is the one that the guide shows."""
    guide = (ROOT / "docs" / "guides" / "sites.md").read_text("utf-8")
    assert f"`{KINDS[name].command}`" in guide or KINDS[name].command in guide
    package = generators.LIGHTHOUSE / name / "package.json"
    if package.exists():
        assert json.loads(package.read_text("utf-8"))["scripts"]["build"] == KINDS[name].command


@pytest.fixture(scope="module")
def installed() -> Path:
    if FOLDER is None:
        pytest.skip("ANVIL_GENERATORS is not set: the generators from npm run in .ci/run only")
    return Path(FOLDER)


@pytest.mark.parametrize("name", KINDS)
def test_a_site_is_indexed_after_its_build(name: str, installed: Path, tmp_path: Path) -> None:
    kind = KINDS[name]
    # in the folder of the installation, where Node looks for packages; a link to them breaks Astro's compiler
    packages = installed / name
    with tempfile.TemporaryDirectory(dir=packages if (packages / "node_modules").is_dir() else tmp_path) as folder:
        _build_and_compare(kind, generators.copied(Path(folder), name), packages)


def _build_and_compare(kind: Kind, root: Path, packages: Path) -> None:
    (root / "anvil.toml").write_text('[embedding]\nprovider = "none"\n', encoding="utf-8")
    paths = [str(Path(sys.executable).parent), os.environ["PATH"]]
    if (root / "package.json").exists():
        shutil.rmtree(packages / "node_modules" / ".cache", ignore_errors=True)
        command = ["npm", "run", "build"]
    else:
        paths.insert(0, str(packages / "bin"))
        command = ["bash", "-c", kind.command]
    done = subprocess.run(
        command,
        cwd=root,
        env=environment(PATH=os.pathsep.join(paths), CI="1", ASTRO_TELEMETRY_DISABLED="1", DOCUSAURUS_TELEMETRY="0"),
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    site = root / kind.site
    with open_checked(site / "anvil" / "index.db") as reader:
        documents = {document.file_path: document for document in reader.documents()}
        sections = {path: list(reader.sections(document.id)) for path, document in documents.items()}
    assert set(documents) == kind.pages
    for path, document in documents.items():
        html = _html(site, document.url or "").read_bytes()
        assert not any(lost_and_invented(html)), path
        ids = {element.attributes.get("id") for element in html_tree.select(html_tree.parse(html), "[id]")}
        named = [section for section in sections[path] if section.heading_level]
        assert [section.anchor for section in named] == [heading.id for heading in read_page(html).headings]
        assert {section.anchor for section in named if section.anchor} <= ids
    lamp = next(path for path in documents if "lamp" in path)
    assert re.search("^# The lamp", _text(site, lamp), re.M)


def _html(site: Path, url: str) -> Path:
    address = site / url.removeprefix(BASE)
    named = address.with_name(f"{address.name}.html")
    return next(path for path in (address, named, address / "index.html") if path.is_file())


def _text(site: Path, path: str) -> str:
    with open_checked(site / "anvil" / "index.db") as reader:
        document = next(document for document in reader.documents() if document.file_path == path)
        return "".join(chunk.content for chunk in reader.page_chunks(document.id))
