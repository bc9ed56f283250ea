"""Write the pages of docs/ that are generated from the code: most of docs/reference/, and the map in docs/design.md.

    python scripts/reference.py            write them
    python scripts/reference.py --check    exit with 1 when a page differs from what the code says

Pages about files that this repository does not have are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts import (  # noqa: E402
    action_reference,
    cli_reference,
    client_reference,
    code_map,
    config_reference,
    hook_reference,
    plugin_reference,
    sphinx_reference,
    tool_reference,
)

DOCS = ROOT / "docs"
ACTION = ROOT / "action.yml"
HOOKS = ROOT / ".pre-commit-hooks.yaml"


def pages() -> dict[str, Callable[[], str]]:
    """Path of a page below docs/ -> the function that returns its text."""
    generators: dict[str, Callable[[], str]] = {
        "design.md": code_map.design_page,
        "guides/sphinx.md": sphinx_reference.page,
        "reference/cli.md": cli_reference.reference,
        "reference/clients.md": client_reference.reference,
        "reference/configuration.md": config_reference.reference,
        "reference/mkdocs.md": plugin_reference.reference,
        "reference/tools.md": tool_reference.reference,
    }
    if ACTION.exists():
        generators["reference/action.md"] = lambda: action_reference.reference(ACTION)
    if HOOKS.exists():
        generators["reference/hooks.md"] = lambda: hook_reference.reference(HOOKS)
    return generators


def main() -> None:
    """Write the pages that differ from the code, or name them."""
    outdated = []
    for name, generate in pages().items():
        page = DOCS / name
        text = generate()
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            outdated.append(f"docs/{name}")
            if "--check" not in sys.argv[1:]:
                page.write_text(text, encoding="utf-8", newline="\n")
    if outdated and "--check" in sys.argv[1:]:
        sys.exit(f"These pages differ from the code: {', '.join(outdated)}. Run 'python scripts/reference.py'.")
    print("\n".join(["Written:", *outdated]) if outdated else "All generated pages match the code.")


if __name__ == "__main__":
    main()
