"""Write the pages of docs/reference/ that are made from the code.

    python scripts/reference.py            write them
    python scripts/reference.py --check    exit with 1 when one is not what the code says

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
    config_reference,
    hook_reference,
    plugin_reference,
    tool_reference,
)

FOLDER = ROOT / "docs" / "reference"
ACTION = ROOT / "action.yml"
HOOKS = ROOT / ".pre-commit-hooks.yaml"


def pages() -> dict[str, Callable[[], str]]:
    """Name of a page in docs/reference/ -> what makes it."""
    made: dict[str, Callable[[], str]] = {
        "cli.md": cli_reference.reference,
        "configuration.md": config_reference.reference,
        "mkdocs.md": plugin_reference.reference,
        "tools.md": tool_reference.reference,
    }
    if ACTION.exists():
        made["action.md"] = lambda: action_reference.reference(ACTION)
    if HOOKS.exists():
        made["hooks.md"] = lambda: hook_reference.reference(HOOKS)
    return made


def main() -> None:
    """Write the pages, or name those that are not what the code says."""
    wrong = []
    for name, make in pages().items():
        page = FOLDER / name
        if not page.exists() or page.read_text(encoding="utf-8") != make():
            wrong.append(f"docs/reference/{name}")
            if "--check" not in sys.argv[1:]:
                page.write_text(make(), encoding="utf-8", newline="\n")
    if wrong and "--check" in sys.argv[1:]:
        sys.exit(f"Not what the code says: {', '.join(wrong)}. Run 'python scripts/reference.py'.")
    print("\n".join(["Written:", *wrong]) if wrong else "All is as the code says.")


if __name__ == "__main__":
    main()
