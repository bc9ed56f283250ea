"""The pages of the reference that are made from the code: nothing is left out, and what lacks a text is named."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from scripts import action_reference, config_reference, hook_reference
from scripts.tables import meanings, table

ACTION = """\
name: Lighthouse
description: Looks after your servers
inputs:
  folder:
    description: >
      The folder | with the
      settings.
    required: true
  retries: { description: How often., default: 3 }
  quiet: { description: Whether it says nothing., default: false }
  note: { description: What to say. }
outputs:
  up: { description: Whether all are up., value: "${{ steps.x.outputs.up }}" }
"""
HOOKS = """\
- id: lighthouse-check
  name: check
  description: Refuses what is down.
  entry: lighthouse check
  args: [--strict]
  language: python
  files: ^servers/
  types_or: [yaml, toml]
  pass_filenames: false
"""


@dataclass
class Options:
    """Of a test."""

    first: int = 1
    """The ``first``,
    in two lines."""
    second: str = "2"
    third = 3
    "Plain."


def test_texts_under_fields_are_their_meanings() -> None:
    assert meanings(Options) == {"first": "The `first`, in two lines.", "third": "Plain."}


def test_a_key_without_a_text_is_an_error() -> None:
    with pytest.raises(KeyError, match="second has no text under it"):
        list(config_reference.tables(Options()))


def test_cells_stay_cells() -> None:
    assert table(("a", "b"), [("x|y", "two\nlines")]) == "| a | b |\n|---|---|\n| x\\|y | two lines |\n"


def test_inputs_and_outputs_of_an_action(tmp_path: Path) -> None:
    (tmp_path / "action.yml").write_text(ACTION, encoding="utf-8")
    page = action_reference.reference(tmp_path / "action.yml", "sea/lighthouse@v1")
    assert "`sea/lighthouse@v1`" in page and "\nLooks after your servers.\n" in page
    assert "| `folder` | required | The folder \\| with the settings. |\n| `retries` | `3` | How often. |\n" in page
    assert "| `quiet` | `false` | Whether it says nothing. |\n| `note` | empty | What to say. |\n" in page
    assert page.endswith("## Outputs\n\n| output | meaning |\n|---|---|\n| `up` | Whether all are up. |\n")


def test_an_action_that_takes_and_returns_nothing(tmp_path: Path) -> None:
    (tmp_path / "action.yml").write_text("name: x\ndescription: Does it.\n", encoding="utf-8")
    page = action_reference.reference(tmp_path / "action.yml")
    assert page.endswith("It takes none.\n\n## Outputs\n\nIt has none.\n")


@pytest.mark.parametrize("text", ["inputs: {silent: {default: 1}}", "outputs: {silent: }"])
def test_an_input_or_output_without_a_text_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "action.yml").write_text(f"description: x\n{text}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="silent has no description"):
        action_reference.reference(tmp_path / "action.yml")


def test_hooks_with_what_differs_from_the_usual(tmp_path: Path) -> None:
    (tmp_path / "hooks.yaml").write_text(HOOKS, encoding="utf-8")
    assert hook_reference.reference(tmp_path / "hooks.yaml").endswith("""\
## lighthouse-check

Refuses what is down.

| setting | value |
|---|---|
| runs | `lighthouse check --strict` |
| files | `^servers/` |
| types_or | `yaml`, `toml` |
| pass_filenames | `false` |
""")


def test_a_hook_without_a_text_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "hooks.yaml").write_text("- {id: silent, entry: x}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="silent has no description"):
        hook_reference.reference(tmp_path / "hooks.yaml")
