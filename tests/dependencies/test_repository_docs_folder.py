"""The documentation folder of a repository."""

from __future__ import annotations

import pytest

from anvil.dependencies import repository_docs


def found(files: dict[str, str], directory: str | None = None) -> tuple[str, str] | None:
    folder = repository_docs.find_folder(files, files.__getitem__, directory)
    return None if folder is None else (folder.path, folder.generator)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"mkdocs.yml": "site_name: x\n", "docs/a.md": "", "README.md": ""}, ("docs", "mkdocs")),
        ({"mkdocs.yml": "docs_dir: 'manual/src' # x\n", "manual/src/a.md": ""}, ("manual/src", "mkdocs")),
        (
            {f"docs/{each}/{file}": "" for each in ("de", "en") for file in ("mkdocs.yml", "docs/a.md")},
            ("docs/en/docs", "mkdocs"),
        ),
        ({"doc/source/conf.py": "extensions = ['myst_parser']", "doc/source/a.md": ""}, ("doc/source", "sphinx")),
        ({"docs/conf.py": "extensions = []", "docs/a.rst": "", "README.md": ""}, (".", "readme")),
        (
            {"website/docusaurus.config.js": "path: '../docs'", "docs/a.md": "", "website/blog/b.md": ""},
            ("docs", "docusaurus"),
        ),
        ({"website/docusaurus.config.ts": "", "website/docs/a.mdx": ""}, ("website/docs", "docusaurus")),
        ({"docs/.vitepress/config.ts": "", "docs/guide/a.md": ""}, ("docs", "vitepress")),
        ({".vitepress/config.mts": "srcDir: 'pages'", "pages/a.md": ""}, ("pages", "vitepress")),
        ({"docs/astro.config.mjs": "", "docs/src/content/docs/a.mdx": ""}, ("docs/src/content/docs", "astro")),
        ({"guide/book.toml": "[book]\ntitle = 'x'\n", "guide/src/a.md": ""}, ("guide/src", "mdbook")),
        ({"book.toml": "[book]\nsrc = 'en'\n", "en/a.md": "", "README.md": ""}, ("en", "mdbook")),
        ({"docs/a.md": "", "README.md": ""}, ("docs", "folder")),
        ({"Doc/a.md": ""}, ("Doc", "folder")),
        ({"README.md": "", "src/x.py": ""}, (".", "readme")),
        ({"src/x.py": "", "docs/a.rst": ""}, None),
        ({"mkdocs.yml": "docs_dir: ../../etc", "etc/a.md": ""}, None),
        ({"examples/site/mkdocs.yml": "", "examples/site/docs/a.md": "", "docs/b.md": ""}, ("docs", "folder")),
    ],
)
def test_how_it_is_found(files: dict[str, str], expected: tuple[str, str] | None) -> None:
    assert found(files) == expected


def test_the_folder_of_a_package_comes_first() -> None:
    files = {"docs/a.md": "", "packages/ui/docs/b.md": "", "packages/db/README.md": ""}
    assert found(files, "packages/ui") == ("packages/ui/docs", "folder")
    assert found(files, "packages/db") == ("docs", "folder")
    assert found({"packages/db/README.md": "", "README.md": ""}, "packages/db") == ("packages/db", "readme")


def test_pages_in_several_languages() -> None:
    pages = {f"docs/{folder}{name}.md": "" for folder in ("", "de/", "zh-CN/") for name in "abc"}
    folder = repository_docs.find_folder({**pages, "docs/io/x.md": "", "docs/it/other.md": ""}, str)
    assert folder is not None and folder.exclude == ("de/**", "zh-CN/**")
    assert folder.notes == ("docs has its pages in 3 languages: only English is indexed.",)
    english = repository_docs.find_folder({f"docs/{each}/a.md": "" for each in ("en", "fr")}, str)
    assert english is not None and english.exclude == ("fr/**",)


def test_what_is_not_read_is_said() -> None:
    folder = repository_docs.DocsFolder("docs", "folder", "named")
    assert repository_docs.unread(["docs/a.rst", "docs/b.rst", "c.rst", "docs/n.ipynb"], folder) == [
        "1 notebook file",
        "2 reStructuredText files",
    ]


def test_forty_configurations_are_read() -> None:
    files = [f"{number:02}/mkdocs.yml" for number in range(45)]
    assert repository_docs.configurations(files) == files[:40]
