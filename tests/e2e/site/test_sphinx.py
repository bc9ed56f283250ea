"""The Sphinx extension, in builds by the real Sphinx."""

from __future__ import annotations

import io
import os
import warnings
from pathlib import Path
from typing import Any

import pytest
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import docutils_namespace, patch_docutils

import anvil
from anvil.index_file.verify import open_checked
from tests.conftest import write
from tests.support import generators

CONF = """\
project = "Handbook"
html_baseurl = "https://docs.example.com/"
extensions = ["anvil.sphinx"]
anvil_provider = "none"
"""
PAGES = {
    "conf.py": CONF,
    "index.rst": "Handbook\n========\n\n.. toctree::\n\n   lamp\n",
    "lamp.rst": "Lamp\n====\n\nLight it at dusk.\n\nWick\n----\n\nTrim it.\n",
}


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    write(tmp_path / "docs", PAGES)
    return tmp_path / "docs"


def build(
    docs: Path, builder: str = "html", *, parallel: int = 1, strict: bool = False, **values: object
) -> tuple[int, str]:
    """Build a site next to its sources; (exit code, what was printed)."""
    status, problems = io.StringIO(), io.StringIO()
    with warnings.catch_warnings(), patch_docutils(docs), docutils_namespace():
        warnings.simplefilter("ignore")  # those of Sphinx itself
        app = Sphinx(
            docs,
            docs,
            docs.parent / builder,
            docs.parent / f"doctrees-{builder}",
            builder,
            values,
            status,
            problems,
            warningiserror=strict,
            parallel=parallel,
        )
        app.build()
    return app.statuscode, status.getvalue() + problems.getvalue()


def index_of(docs: Path, builder: str = "html") -> Path:
    return docs.parent / builder / "anvil" / "index.db"


@pytest.mark.parametrize(("builder", "page"), [("html", "lamp.html"), ("dirhtml", "lamp/")])
def test_the_site_has_an_index(docs: Path, builder: str, page: str) -> None:
    code, output = build(docs, builder, strict=True)
    assert code == 0 and "anvil: 2 pages" in output
    assert (index_of(docs, builder).with_suffix(".json")).is_file()
    with open_checked(index_of(docs, builder)) as reader:
        urls = {document.file_path: document.url for document in reader.documents()}
    assert urls["lamp.rst"] == f"https://docs.example.com/{page}"
    with anvil.open(index=index_of(docs, builder), provider="none") as opened:
        best = opened.search("trim the wick").results[0].metadata
    assert best.url == f"https://docs.example.com/{page}#wick"


def test_it_is_the_index_of_anvil_build_site(docs: Path) -> None:
    """The same bytes: there is one way to read a site."""
    build(docs)
    from_sphinx = index_of(docs).read_bytes()
    index_of(docs).unlink()
    with anvil.open(docs, site=docs.parent / "html", site_url="https://docs.example.com/", provider="none") as opened:
        opened.index()
    assert index_of(docs).read_bytes() == from_sphinx


def test_incremental_builds(docs: Path) -> None:
    build(docs)
    before = index_of(docs).read_bytes()
    assert "unchanged" in build(docs)[1]
    assert index_of(docs).read_bytes() == before
    (docs / "lamp.rst").write_text(PAGES["lamp.rst"].replace("Trim it.", "Trim it daily."), encoding="utf-8")
    os.utime(docs / "lamp.rst", (2_000_000_000, 2_000_000_000))
    build(docs)
    with anvil.open(index=index_of(docs), provider="none") as opened:
        assert opened.search("daily").results


def test_a_parallel_build(docs: Path) -> None:
    """Sphinx reads in parallel only where each extension says that it is safe."""
    write(
        docs, {f"page{number}.rst": f":orphan:\n\nPage {number}\n=======\n\nText {number}.\n" for number in range(12)}
    )
    code, output = build(docs, parallel=2, strict=True)
    assert code == 0 and "anvil: 14 pages" in output


@pytest.mark.parametrize("builder", ["text", "singlehtml", "dummy"])
def test_other_builders_get_no_index(docs: Path, builder: str) -> None:
    assert "anvil:" not in build(docs, builder)[1]
    assert not index_of(docs, builder).exists()


def test_it_can_be_switched_off(docs: Path) -> None:
    assert "anvil:" not in build(docs, anvil_enabled=False)[1]
    assert not index_of(docs).exists()


def test_an_index_that_cannot_be_built_is_a_warning(docs: Path) -> None:
    """``-W`` makes it a failure, ``suppress_warnings`` hides it, and ``anvil_on_error`` ends the build."""
    values: dict[str, Any] = {"anvil_provider": "no-such-provider"}
    code, output = build(docs, **values)
    assert code == 0 and "anvil: The site has no index" in output and "no-such-provider" in output
    assert (docs.parent / "html/lamp.html").is_file()
    assert build(docs, strict=True, **values)[0] == 1
    assert build(docs, strict=True, suppress_warnings=["anvil"], **values)[0] == 0
    with pytest.raises(ExtensionError, match="no-such-provider"):
        build(docs, anvil_on_error="fail", **values)


def test_options_that_are_not_known(docs: Path) -> None:
    with pytest.raises(ExtensionError, match="Write 'warn' or 'fail'"):
        build(docs, anvil_on_error="stop")


def test_a_failed_build_gets_no_index(docs: Path) -> None:
    (docs / "conf.py").write_text(f"{CONF}def setup(app):\n    app.connect('html-page-context', lambda *a: 1 / 0)\n")
    with pytest.raises(ExtensionError):
        build(docs)
    assert not index_of(docs).exists()


def test_names_of_an_api_find_their_section_first(tmp_path: Path) -> None:
    """Each name in objects.inv finds the section that it leads to."""
    root = generators.copied(tmp_path, "sphinx")
    conf = root / "docs" / "conf.py"
    conf.write_text(f"{conf.read_text('utf-8')}extensions.append('anvil.sphinx')\nanvil_provider = 'none'\n", "utf-8")
    build(root / "docs")
    with anvil.open(index=index_of(root / "docs"), provider="none") as opened:
        for name in ("beacon.Lamp", "beacon.Lamp.on", "beacon.Lamp.colour", "beacon.flash"):
            assert (opened.search(name).results[0].metadata.url or "").endswith(f"api.html#{name}"), name


def test_second_names_of_an_api_find_their_section_first(docs: Path) -> None:
    """Those in objects.inv, such as the module in which a class is defined."""
    described = "".join(
        f".. py:class:: beacon.{name}\n   :canonical: beacon._lamps.{name}\n\n   {text}\n\n"
        for name, text in (("Wick", "Burns the beacon._lamps way."), ("Lamp", "Shines."), ("Lens", "Bundles."))
    )
    write(docs, {"api.rst": f":orphan:\n\nAPI\n===\n\n{described}"})
    build(docs)
    with anvil.open(index=index_of(docs), provider="none") as opened:
        for name in ("Wick", "Lamp", "Lens"):
            for asked in (f"beacon.{name}", f"beacon._lamps.{name}", f"`beacon._lamps.{name}()`"):
                hit = opened.search(asked).results[0]
                assert (hit.metadata.url or "").endswith(f"api.html#beacon.{name}"), asked
        assert opened.search("beacon._lamps.Candle").results


def test_the_site_publishes_a_skill(docs: Path) -> None:
    code, said = build(docs, anvil_skill=True)
    assert not code, said
    text = (docs.parent / "html/.well-known/agent-skills/handbook-docs/SKILL.md").read_text(encoding="utf-8")
    assert " pages of documentation" in text and "<https://docs.example.com/>" in text
