"""Sites built by the real MkDocs, with what a test asks of them: their index, and its sections by page."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from anvil.models import Section
from anvil.store import checking
from anvil.store.reading import StoredDocument
from tests.surfaces.programs import ROOT, environment, printed

SOURCES = Path(__file__).parents[1] / "sites"
OWN = f"""\
INHERIT: {(ROOT / "mkdocs.yml").as_posix()}
docs_dir: {(ROOT / "docs").as_posix()}
plugins: [search, anvil: {{embedding: {{provider: none}}}}]
"""
"""The project's own site, without vectors: quick, and the rest is the same."""


BUILD = ("-m", "mkdocs", "build", "--strict")


def mkdocs(folder: Path, *arguments: str, code: int = 0, program: tuple[str, ...] = BUILD) -> str:
    """Run MkDocs, or a program that runs it, in a folder with a home of its own; what it said on stderr."""
    home = str(folder / "home")
    quiet = {"PYTHONWARNINGS": "ignore", "NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # mike looks for MkDocs there
    done = subprocess.run(
        [sys.executable, *program, *arguments], cwd=folder,
        env=environment(**quiet, HOME=home, XDG_CACHE_HOME=home, PATH=path, PYTHONUTF8="1"),
        capture_output=True, text=True, encoding="utf-8", timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr


@dataclass(frozen=True, slots=True)
class Site:
    """A built site. ``address`` is the ``site_url`` that its index gives its pages, with a slash at the end."""

    folder: Path
    built: Path
    address: str

    @property
    def index(self) -> Path:
        """The index that the plugin left in the site."""
        return self.built / "anvil" / "index.db"

    def documents(self) -> dict[str, StoredDocument]:
        """Path -> document."""
        with checking.open_checked(self.index) as reader:
            return {each.file_path: each for each in reader.documents()}

    def sections(self) -> Iterator[tuple[StoredDocument, tuple[Section, ...]]]:
        """Each page with all its sections that have a heading."""
        with checking.open_checked(self.index) as reader:
            for each in reader.documents():
                yield each, tuple(section for section in reader.sections(each.id) if section.heading_level)

    def text(self) -> str:
        """All that the index says."""
        with checking.open_checked(self.index) as reader:
            return "".join(chunk.content for each in reader.documents() for chunk in reader.page_chunks(each.id))

    def urls(self) -> dict[str, str]:
        """Path -> address within the site; all begin with ``address``."""
        found = {path: each.url or "" for path, each in self.documents().items()}
        assert all(url.startswith(self.address) for url in found.values()), found
        return {path: url.removeprefix(self.address) for path, url in found.items()}

    def hit(self, question: str, *options: str) -> dict[str, Any]:
        """The place of the best answer of ``anvil search --index`` to a question; asked where no documents are."""
        found = printed("search", "--index", self.index, "--mode", "keyword", *options, question, cwd=self.built)
        place: dict[str, Any] = found["results"][0]["metadata"]
        return place


def build(name: str, folder: Path, *, folders: bool = False, files: bool = False) -> Site:
    """Build a site of ``tests/sites``, or ``own``, in an empty folder.

    ``folders``: a folder for each language instead of a suffix; ``files``: pages are files instead of folders.
    """
    if name == "own":
        (folder / "mkdocs.yml").write_text(OWN, encoding="utf-8")
        mkdocs(folder)
        return Site(folder, folder / "site", "https://anvil-docs.github.io/anvil/")
    shutil.copytree(SOURCES / name, folder, dirs_exist_ok=True)
    text = (folder / "mkdocs.yml").read_text(encoding="utf-8")
    if folders:
        text = text.replace("docs_structure: suffix", "docs_structure: folder")
        _by_folder(folder / "docs", ("en", "de"))
    if files:
        text += "use_directory_urls: false\n"
    (folder / "mkdocs.yml").write_text(text, encoding="utf-8")
    mkdocs(folder)
    return Site(folder, folder / "site", yaml.load(text, _Loader)["site_url"])


def _by_folder(docs: Path, languages: tuple[str, str]) -> None:
    """``page.md`` and ``page.de.md`` become ``en/page.md`` and ``de/page.md``."""
    for path in sorted(docs.rglob("*.md")):
        suffixed = f".{languages[1]}.md"
        language = languages[1] if path.name.endswith(suffixed) else languages[0]
        target = docs / language / path.relative_to(docs)
        target = target.with_name(target.name.replace(suffixed, ".md"))
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)


class _Loader(yaml.SafeLoader):
    """YAML whose Python tags say nothing."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)
Built = Callable[[str], Site]
