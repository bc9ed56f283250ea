"""Documentation that a package carries."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from anvil.dependencies import docs_in_package


def test_what_counts() -> None:
    found = docs_in_package.find(["lib/anvil/index.db", "lib/deep/er/x.anvil.db", "docs/a.md", "lib/llms-full.txt"])
    assert (found.index, found.pages, found.llms) == ("lib/anvil/index.db", ("docs/a.md",), "lib/llms-full.txt")
    assert not docs_in_package.find(
        ["README.md", "lib-1.0.dist-info/docs/a.md", "lib/tests/docs/a.md", "node_modules/x/docs/a.md", "lib/index.db"]
    )


def test_a_llms_full_txt_is_cut_into_pages() -> None:
    text = "Preface\n\n# Install\n\n```bash\n# a comment\n```\n\n## Linux\n\n# Use\n\nx\n\n# Install\n\ny\n"
    assert dict(docs_in_package.sections(text)) == {
        "page.md": "Preface\n\n",
        "install.md": "# Install\n\n```bash\n# a comment\n```\n\n## Linux\n\n",
        "use.md": "# Use\n\nx\n\n",
        "install-2.md": "# Install\n\ny\n",
    }


@given(st.lists(st.sampled_from(["# A\n", "# A b\n", "text\n", "```\n", "~~~~\n", "## C\n", "\n"])))
def test_no_line_is_lost(lines: list[str]) -> None:
    pages = docs_in_package.sections("".join(lines))
    assert sum(text.count("text\n") for _, text in pages) == lines.count("text\n")
    assert len({name for name, _ in pages}) == len(pages)
