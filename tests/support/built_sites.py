"""The project's own site and those of ``tests/data/sites``, built, with queries of their index for tests."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

import anvil
from anvil.index_file import verify
from anvil.index_file.table_rows import StoredDocument
from anvil.settings.schema import Config
from anvil.values import ChunkMetadata, Section
from tests.support import mkdocs_sites
from tests.support.programs import ROOT

SOURCES = Path(__file__).parents[1] / "data" / "sites"
OWN = f"""\
INHERIT: {(ROOT / "mkdocs.yml").as_posix()}
docs_dir: {(ROOT / "docs").as_posix()}
plugins: [search, anvil: {{embedding: {{provider: none}}}}]
"""
"""The project's own site, without vectors, which would take long."""


@dataclass(frozen=True, slots=True)
class Site:
    """A built site. ``address`` is the ``site_url`` that its index gives its pages, with a slash at the end."""

    folder: Path
    built: Path
    address: str

    @property
    def index(self) -> Path:
        """The index that the plugin wrote into the site."""
        return self.built / "anvil" / "index.db"

    def documents(self) -> dict[str, StoredDocument]:
        """Path -> document."""
        with verify.open_checked(self.index) as reader:
            return {each.file_path: each for each in reader.documents()}

    def sections(self) -> Iterator[tuple[StoredDocument, tuple[Section, ...]]]:
        """Each page with all its sections that have a heading."""
        with verify.open_checked(self.index) as reader:
            for each in reader.documents():
                yield each, tuple(section for section in reader.sections(each.id) if section.heading_level)

    def text(self) -> str:
        """All that the index says."""
        with verify.open_checked(self.index) as reader:
            return "".join(chunk.content for each in reader.documents() for chunk in reader.page_chunks(each.id))

    def urls(self) -> dict[str, str]:
        """Path -> address within the site; all begin with ``address``."""
        found = {path: each.url or "" for path, each in self.documents().items()}
        assert all(url.startswith(self.address) for url in found.values()), found
        return {path: url.removeprefix(self.address) for path, url in found.items()}

    def hit(self, question: str, file_filter: str | None = None) -> ChunkMetadata:
        """The place of the best answer that the index alone has to a question."""
        alone = Config(docs=str(self.folder / "no documents"))
        with anvil.open(index=self.index, provider="none", config=alone) as opened:
            return opened.search(question, 1, file_filter, mode="keyword").results[0].metadata


def build(name: str, folder: Path, *, folders: bool = False, files: bool = False) -> Site:
    """Build a site of ``tests/data/sites``, or ``own``, in an empty folder.

    ``folders``: a folder for each language instead of a suffix; ``files``: pages are files instead of folders.
    """
    if name == "own":
        (folder / "mkdocs.yml").write_text(OWN, encoding="utf-8")
        mkdocs_sites.build(folder)
        return Site(folder, folder / "site", "https://anvil-docs.github.io/anvil/")
    shutil.copytree(SOURCES / name, folder, dirs_exist_ok=True)
    text = (folder / "mkdocs.yml").read_text(encoding="utf-8")
    if folders:
        text = text.replace("docs_structure: suffix", "docs_structure: folder")
        _by_folder(folder / "docs", ("en", "de"))
    if files:
        text += "use_directory_urls: false\n"
    (folder / "mkdocs.yml").write_text(text, encoding="utf-8")
    mkdocs_sites.build(folder, "--strict")
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
