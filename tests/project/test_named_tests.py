"""Each test that a script, a workflow or a page names exists: a file that moved is found here, and not by CI."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMING = [
    ROOT / ".ci/run",
    *sorted((ROOT / "scripts").iterdir()),
    *sorted((ROOT / ".github").rglob("*.yml")),
    *(
        ROOT / name
        for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md", "pyproject.toml")
    ),
    *sorted((ROOT / "docs").rglob("*.md")),
]
_PATH = re.compile(r"(?<![\w./-])tests/[\w./{},*-]*[\w}*/](?:::\w[\w{},]*)?")
_BRACES = re.compile(r"\{([^{}]*)\}")


def expanded(text: str) -> Iterator[str]:
    """What a shell makes of ``a_{b,c}``."""
    braces = _BRACES.search(text)
    if braces is None:
        yield text
        return
    for word in braces[1].split(","):
        yield from expanded(text[: braces.start()] + word + text[braces.end() :])


def exists(name: str) -> bool:
    """Whether ``tests/folder/test_file.py::test_name``, or less of it, or a glob, names something."""
    path, _, function = name.partition("::")
    files = list(ROOT.glob(path.rstrip("/")))
    if not function:
        return bool(files)
    if not files:
        return False
    (file,) = files
    return any(
        isinstance(node, ast.FunctionDef) and node.name == function
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    )


def test_each_test_that_is_named_exists() -> None:
    names = {
        (file.relative_to(ROOT).as_posix(), name)
        for file in NAMING
        if file.is_file()
        for found in _PATH.findall(file.read_text(encoding="utf-8"))
        for name in expanded(found)
    }
    assert len(names) > 30 and [(file, name) for file, name in sorted(names) if not exists(name)] == []


def test_names_are_found() -> None:
    script = (ROOT / "scripts/try_lowest.sh").read_text(encoding="utf-8")
    names = {name for found in _PATH.findall(script) for name in expanded(found)}
    assert {"tests/embedding/test_openai.py", "tests/e2e/mcp/test_tools.py"} <= names
    assert any("::" in name for name in names)
    assert not exists("tests/text/test_gone.py") and not exists("tests/e2e/mcp/test_tools.py::test_gone")
