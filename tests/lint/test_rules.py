"""The rules of the linter, and the page that describes them."""

from __future__ import annotations

from pathlib import Path

from anvil.lint.rules import RULES
from anvil.lint.settings import LintLevels

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "lint-rules.md"


def test_each_rule_has_a_section_a_level_and_a_description() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name in RULES:
        level = getattr(LintLevels(), name.replace("-", "_"))
        assert f"| [{name}](#{name}) | {level} | " in page
        section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert "**What." in section and "**Why." in section
