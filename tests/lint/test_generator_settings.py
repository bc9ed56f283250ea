"""The rules for links by what makes the site, as files near the pages and the links in them tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from anvil.formats.data_formats import read_yaml
from tests.lint.test_linter import linted, messages, places
from tests.support.repositories import write

LINKS = ("broken-link", "broken-anchor", "orphan-page")


def test_in_a_vault_of_notes_links_name_notes_paragraphs_and_attachments_in_any_folder(tmp_path: Path) -> None:
    home = (
        "[[Deep note#Part]] [[Deep note#Part#Below]] [[Deep note#^claim]] ![[picture.png#dark]] [x](Deep%20note.md)\n"
        "![x](picture.png) [[Deep note#^gone]] [[Deep note#Gone]] [[Nothing]] [y](Nothing.md)\n"
    )
    notes = {"Start.md": home, "a/b/Deep note.md": "# Part\n\nA claim. ^claim\n\n## Below\n\nText.\n", "Alone.md": "x"}
    write(tmp_path / "docs/.obsidian/app.json", "{}")
    assert messages(linted(tmp_path, notes, *LINKS)) == [
        "Start.md:2 a/b/Deep note.md has no anchor '#Gone'.",
        "Start.md:2 a/b/Deep note.md has no anchor '#^gone'.",
        "Start.md:2 Broken link 'Nothing': no page is named 'Nothing'.",
        "Start.md:2 Broken link 'Nothing.md': there is no file Nothing.md.",
    ]


def test_double_brackets_are_links_where_most_of_them_name_a_page(tmp_path: Path) -> None:
    notes = {"index.md": "[[a]] [[b]] [[c]] [[gone]] [[gone too]]\n", "x/a.md": "A", "x/b.md": "B", "c.md": "C"}
    assert {m.split("'")[1] for m in messages(linted(tmp_path / "notes", notes, *LINKS))} == {"gone", "gone too"}
    code = notes | {"index.md": "[[a]] [[b]] [[1, 2]] [[key]] [[key]] [[table.key]]\n"}
    assert {finding.rule for finding in linted(tmp_path / "code", code, *LINKS).findings} == {"orphan-page"}
    few = notes | {"index.md": "[[a]] [[b]] [[c]] [[gone]]\n"}
    assert {finding.rule for finding in linted(tmp_path / "few", few, *LINKS).findings} == {"orphan-page"}


@pytest.mark.parametrize("file", ["Home.md", "_Sidebar.md"])
def test_a_wiki_of_github_lists_all_its_pages(tmp_path: Path, file: str) -> None:
    pages = {file: "[[Install]] [up](Install) [gone](Gone)\n", "Install.md": "# Install\n", "Alone.md": "x"}
    assert messages(linted(tmp_path, pages, *LINKS)) == [
        f"{file}:1 Broken link 'Gone': there is no page or file Gone.",
    ]


def test_links_of_a_vault_to_many_notes_that_are_not_written_yet_are_notes(tmp_path: Path) -> None:
    notes = {"Home.md": "".join(f"[[Idea {number}]]\n" for number in range(20)) + "[[Home]]\n" * 59}
    report = linted(tmp_path, notes, *LINKS)
    assert {finding.level for finding in report.findings} == {"note"} and len(report.findings) == 20
    assert report.notes[0].startswith("20 of 79 links to pages lead to no file")


def test_anchors_of_mkdocs_with_a_function_for_them_keep_letters_and_have_numbers_of_python_markdown(
    tmp_path: Path,
) -> None:
    own = "markdown_extensions: [toc: {slugify: !!python/name:pymdownx.slugs.uslugify }]\n"
    with pytest.raises(ValueError, match="python/name"):
        read_yaml(own)
    page = "# A\n\n## 例题\n\n## 例题\n\n## Ключ\n\n[1](#例题) [2](#例题_1) [3](#Ключ) [4](#ключ) [5](#例题_2)\n"
    report = linted(tmp_path, {"index.md": page}, "broken-anchor", others={"mkdocs.yml": f"site_name: S\n{own}"})
    assert [message.split("'")[1] for message in messages(report)] == ["#例题_2"]


def test_pages_of_a_navigation_may_be_spelled_with_a_dot_or_two_slashes(tmp_path: Path) -> None:
    pages = {"index.md": "x", "a/b.md": "x", "c.md": "x", "lost.md": "x"}
    nav = "site_name: S\nnav: [index.md, {B: a//b.md}, ./c.md]\n"
    assert places(linted(tmp_path, pages, "orphan-page", others={"mkdocs.yml": nav})) == ["lost.md:1"]


@pytest.mark.parametrize("file", ["docs/writerside.cfg", "project.ihp"])
def test_topics_of_writerside_are_named_in_any_folder_and_listed_in_its_tree(tmp_path: Path, file: str) -> None:
    pages = {
        "topics/a.md": "[b](b.md#part) [c](../c.md) [gone](gone.md)\n",
        "topics/in/b.md": "# Part\n",
        "in/c.md": "",
    }
    report = linted(tmp_path, pages, *LINKS, others={file: ""})
    assert messages(report) == ["topics/a.md:1 Broken link 'gone.md': there is no file topics/gone.md."]


@pytest.mark.parametrize("file", ["myst.yml", "_toc.yml", "conf.py"])
def test_labels_of_myst_are_anchors_as_they_are_and_as_ids(tmp_path: Path, file: str) -> None:
    pages = {
        "a.md": "[1](b.md#deploy:base-url) [2](b.md#deploy-base-url) [3](b.md#listing) [4](#fig:any) [5](b.md#gone)\n",
        "b.md": "(deploy:base-url)=\n## Address\n\n```{code-block} python\n:name: Listing\nx = 1\n```\n",
    }
    report = linted(tmp_path, pages, *LINKS, others={file: ""})
    assert messages(report) == ["a.md:1 b.md has no anchor '#gone'."]


def test_myst_finds_a_label_in_any_page(tmp_path: Path) -> None:
    pages = {"a.md": "[1](b.md#in-a-myst-yml-file) [2](b.md#gone)\n", "b.md": "", "c.md": "# In a `myst.yml` file\n"}
    report = linted(tmp_path, pages, *LINKS, others={"myst.yml": ""})
    assert messages(report) == ["a.md:1 b.md has no anchor '#gone'."]


def test_quarto_and_r_markdown_are_pages(tmp_path: Path) -> None:
    pages = {
        "a.qmd": "[1](b.Rmd#is.na) [2](gone.qmd) [3](b.Rmd#gone) [4](c.qmd#from-code)\n",
        "b.Rmd": "# 1.2 Is.na()\n",
        "c.qmd": "```{r}\nheadings()\n```\n",
        "d.md": "# 4.3.5 File\n\n[](#434-file)\n",  # Pandoc's anchor, "file", is only that of files for Pandoc
        "parts/_part.qmd": "[](b.Rmd) [](beside.qmd)\n",  # its links are those of the page that includes it
    }
    report = linted(tmp_path, pages, *LINKS, others={"_quarto.yml": ""})
    assert messages(report) == [
        "a.qmd:1 b.Rmd has no anchor '#gone'.",
        "a.qmd:1 Broken link 'gone.qmd': there is no file gone.qmd.",
        "d.md:3 This page has no anchor '#434-file'. Did you mean '#435-file'?",
    ]


def test_a_site_of_zola_is_known_by_its_file(tmp_path: Path) -> None:
    pages = {"content/a.md": "[b](@/b.md) [c](../c)\n", "content/b.md": "x"}
    report = linted(tmp_path / "zola", pages, *LINKS, others={"docs/config.toml": 'base_url = "https://x.org"\n'})
    assert report.generator == "unknown" and not report.findings
    other = linted(tmp_path / "other", pages, *LINKS, others={"config.toml": 'baseURL = "https://x.org"\n'})
    assert other.generator == "github"


def test_a_folder_config_is_that_of_hugo_by_its_files_of_the_default_environment(tmp_path: Path) -> None:
    pages = {"a.md": "[b](b.md)\n", "b.md": "x"}

    def generator(folder: str, *files: str) -> str:
        docs = {f"content/{name}": text for name, text in pages.items()}
        return linted(tmp_path / folder, docs, *LINKS, others=dict.fromkeys(files, "")).generator

    assert generator("laravel", "docs/config/app.php") == "github"
    assert generator("hugo", "docs/config/_default/hugo.toml") == "unknown"
