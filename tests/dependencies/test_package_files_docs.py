"""Documentation that a package carries."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from anvil.dependencies import package_files

NOTHING = package_files.Carried(None, (), None)


def test_what_counts() -> None:
    found = package_files.carried_docs(
        ["lib/anvil/index.db", "lib/deep/er/x.anvil.db", "docs/a.md", "lib/llms-full.txt"]
    )
    assert (found.index, found.pages, found.llms) == ("lib/anvil/index.db", ("docs/a.md",), "lib/llms-full.txt")
    assert (
        package_files.carried_docs(
            [
                "README.md",
                "lib-1.0.dist-info/docs/a.md",
                "lib/tests/docs/a.md",
                "node_modules/x/docs/a.md",
                "lib/index.db",
            ]
        )
        == NOTHING
    )


def test_what_other_publishers_carry() -> None:
    next_js = ["AGENTS.md", "dist/docs/01-app/index.md", "dist/docs/02-pages/01-guides/forms.md", "dist/README.md"]
    assert package_files.carried_docs(next_js).pages == (next_js[1], next_js[2])
    leadtype = ["AGENTS.md", "README.md", "docs/guides/testing.md", "src/docs/notes.md", "docs/readability.json"]
    assert package_files.carried_docs(leadtype).pages == ("docs/guides/testing.md",)
    modern_js = ["docs/tutorials/examples/csr.md", "docs/templates/a.md", "docs/llms.txt"]
    assert package_files.carried_docs(modern_js).pages == (modern_js[1], modern_js[0])


def test_pages_beside_an_agents_md_count_alone_and_anywhere() -> None:
    deep = ["a/b/c/d/e/AGENTS.md", "a/b/c/d/e/docs/x.md", "docs/internal.md"]
    assert package_files.carried_docs(deep).pages == ("a/b/c/d/e/docs/x.md",)
    assert package_files.carried_docs(deep[1:]).pages == ("docs/internal.md",)
    metadata = ["lib-1.0.dist-info/extra_metadata/docs/a.md", "lib-1.0.dist-info/extra_metadata/docs.anvil.db"]
    assert package_files.carried_docs(metadata) == NOTHING
    found = package_files.carried_docs([*metadata, "lib-1.0.dist-info/extra_metadata/AGENTS.md"])
    assert (found.index, found.pages) == (metadata[1], (metadata[0],))
    assert package_files.carried_docs(["lib/templates/new/AGENTS.md", "lib/templates/new/docs/index.md"]) == NOTHING


def test_a_llms_full_txt_is_cut_into_pages() -> None:
    text = "Preface\n\n# Install\n\n```bash\n# a comment\n```\n\n## Linux\n\n# Use\n\nx\n\n# Install\n\ny\n"
    assert dict(package_files.llms_pages(text)) == {
        "page.md": "Preface\n\n",
        "install.md": "# Install\n\n```bash\n# a comment\n```\n\n## Linux\n\n",
        "use.md": "# Use\n\nx\n\n",
        "install-2.md": "# Install\n\ny\n",
    }


@given(st.lists(st.sampled_from(["# A\n", "# A b\n", "text\n", "```\n", "~~~~\n", "## C\n", "\n"])))
def test_no_line_is_lost(lines: list[str]) -> None:
    pages = package_files.llms_pages("".join(lines))
    assert sum(text.count("text\n") for _, text in pages) == lines.count("text\n")
    assert len({name for name, _ in pages}) == len(pages)
