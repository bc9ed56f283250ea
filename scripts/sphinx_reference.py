"""The table of the settings of ``conf.py`` in docs/guides/sphinx.md, from the Sphinx extension."""

from __future__ import annotations

from pathlib import Path

from anvil.sphinx import OPTIONS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "guides" / "sphinx.md"
BEGIN, END = "<!-- sphinx options -->", "<!-- end of the sphinx options -->"


def page() -> str:
    """The page with the table of today's settings."""
    text = PAGE.read_text(encoding="utf-8")
    rows = [f"| `{name}` | `{option.default!r}` | {option.text} |" for name, option in OPTIONS.items()]
    table = "\n".join(["| setting | default | what it sets |", "|---|---|---|", *rows])
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"
