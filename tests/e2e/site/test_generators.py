"""The handbook, built by the real generators that are Python packages, and indexed from its HTML."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import anvil
from anvil.index_file.table_rows import StoredDocument
from anvil.index_file.verify import open_checked
from anvil.sites import html_tree
from anvil.sites.html_page import read_page
from anvil.values import Section
from tests.support import generators
from tests.support.html_words import lost_and_invented

SPHINX = [name for name in generators.GENERATORS if name.startswith("sphinx")]


@dataclass(frozen=True)
class Built:
    """A built site, its sources, and its index."""

    site: Path
    docs: Path
    documents: dict[str, StoredDocument]
    sections: dict[str, tuple[Section, ...]]
    texts: dict[str, str]

    def html(self, path: str) -> bytes:
        """The HTML of a page."""
        address = (self.documents[path].url or "").removeprefix("https://lighthouse.example/handbook/")
        file = self.site / address
        return (file / "index.html" if file.is_dir() else file).read_bytes()


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Built]:
    """Name of a generator -> what it built, once."""
    done: dict[str, Built] = {}
    shared = tmp_path_factory.mktemp("sphinx")

    def build(name: str) -> Built:
        if name not in done:
            folder = shared if name in SPHINX else tmp_path_factory.mktemp(name)
            site, docs = generators.GENERATORS[name](folder)
            with anvil.open(docs, site=site, provider="none") as opened:
                opened.index()
            with open_checked(site / "anvil" / "index.db") as reader:
                documents = {document.file_path: document for document in reader.documents()}
                sections = {path: tuple(reader.sections(document.id)) for path, document in documents.items()}
                texts = {
                    path: "".join(chunk.content for chunk in reader.page_chunks(document.id))
                    for path, document in documents.items()
                }
            done[name] = Built(site, docs, documents, sections, texts)
        return done[name]

    return build


@pytest.mark.parametrize("name", generators.GENERATORS)
def test_the_pages_are_the_sources(name: str, builds: Callable[[str], Built]) -> None:
    built = builds(name)
    endings = {".md", ".rst"}
    sources = {path.relative_to(built.docs).as_posix() for path in built.docs.rglob("*") if path.suffix in endings}
    assert set(built.documents) == sources


@pytest.mark.parametrize("name", generators.GENERATORS)
def test_each_section_is_a_heading_of_its_page(name: str, builds: Callable[[str], Built]) -> None:
    built = builds(name)
    for path in built.documents:
        html = built.html(path)
        ids = {element.attributes.get("id") for element in html_tree.select(html_tree.parse(html), "[id]")}
        sections = [section for section in built.sections[path] if section.heading_level]
        headings = read_page(html).headings
        assert [section.anchor for section in sections] == [heading.id for heading in headings], path
        assert {section.anchor for section in sections if section.anchor} <= ids, path


@pytest.mark.parametrize("name", generators.GENERATORS)
def test_no_word_is_lost_or_invented(name: str, builds: Callable[[str], Built]) -> None:
    built = builds(name)
    for path in built.documents:
        assert not any(lost_and_invented(built.html(path))), path


@pytest.mark.parametrize("name", generators.GENERATORS)
def test_each_construct_has_its_form(name: str, builds: Callable[[str], Built]) -> None:
    """Admonitions, tabs, code, footnotes, tables, definitions and formulas are the same Markdown from all of them."""
    built = builds(name)
    lamp = next(text for path, text in built.texts.items() if path.endswith(("lamp.md", "lamp.rst")))
    charts = built.texts["charts.md"]
    for form in (
        "> [!WARNING] ",
        "> Do not moor at the *north* quay.",
        "**Linux**",
        "$ apt install beacon\n```",
        "**Windows**",
        "choco install beacon\n```\n\nThen restart.",
        'if 1 < 2 and 3 > 2:\n    Lamp().on()  # "bright" & warm\n```',
        "...     | a pipe and ``` no fence",
        "[^1]: Dusk is forty minutes after sunset.",
        "The tide turns at noon.",
    ):
        assert form in lamp, form
    for form in (
        "| Channel | Depth | Note |",
        "7 m | **shallow** |",
        "- **Fairway**\n  The deep channel.",
        "1. Read the chart.\n\n   ```",
        "\n   depth = 12\n",
        "   - slowly\n",
        "A chart of the bay",
        "$E = mc^2$",
        r"$$\int_0^1 x\,dx = \frac{1}{2}$$",
        "> A quotation of the harbour master.",
    ):
        assert form in charts, form
    for chrome in ("¶", "Edit", "Previous", "Next", "Copy", "Created using", "Built with"):
        assert chrome not in lamp, chrome


@pytest.mark.parametrize("name", [name for name in generators.GENERATORS if name != "sphinx-dirhtml"])
def test_the_documentation_of_an_api(name: str, builds: Callable[[str], Built]) -> None:
    """Its members are sections below each other, and their anchors are their full names."""
    built = builds(name)
    path = next(path for path in built.documents if path.startswith("api."))
    anchors = [section.anchor for section in built.sections[path]]
    for member in ("beacon.Lamp", "beacon.Lamp.colour", "beacon.Lamp.on", "beacon.flash"):
        assert member in anchors
    levels = {section.anchor: section.heading_level for section in built.sections[path]}
    assert levels["beacon.Lamp.on"] == levels["beacon.Lamp"] + 1
    assert "How long it warms up." in built.texts[path]


def test_properdocs_runs_the_plugin(tmp_path: Path) -> None:
    root = generators.copied(tmp_path, "mkdocs")
    with (root / "mkdocs.yml").open("a", encoding="utf-8") as config:
        config.write("  - anvil:\n      embedding: {provider: none}\n")
    generators.run([generators.program("properdocs"), "build", "--strict", "-f", "mkdocs.yml"], root)
    with open_checked(root / "site/anvil/index.db") as reader:
        assert len(list(reader.documents())) == 5


def test_zensical_does_not_run_the_plugin_and_anvil_says_it(tmp_path: Path) -> None:
    """What ``anvil build`` says is true, and the line that it prints does both builds."""
    from anvil.doctor import integrations
    from tests.support.in_process import program

    root = generators.copied(tmp_path, "mkdocs")
    config = (root / "mkdocs.yml").read_text("utf-8").replace("name: mkdocs", "name: material")
    (root / "mkdocs.yml").write_text(config, "utf-8")
    (root / "Makefile").write_text("site:\n\tzensical build\n", encoding="utf-8")
    with (root / "mkdocs.yml").open("a", encoding="utf-8") as file:
        file.write("  - anvil:\n      embedding: {provider: none}\n")
    unrun = integrations.unrun_plugin(root / "docs")
    assert unrun is not None
    site_build, _, index_build = unrun.command.partition(" && ")
    output = generators.run([generators.program("zensical"), *site_build.split()[1:]], root)
    assert "anvil" not in output and not (root / "site/anvil").exists()
    (root / "anvil.toml").write_text('[embedding]\nprovider = "none"\n', encoding="utf-8")
    program(*index_build.split()[1:], cwd=root)
    with open_checked(root / "site/anvil/index.db") as reader:
        assert len(list(reader.documents())) == 5
