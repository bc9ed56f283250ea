"""The rules of the house that import-linter does not know: one library, one door; SQL in the store; pure floors."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import anvil

PACKAGE = Path(anvil.__file__).parent
ROOT = PACKAGE.parent
MODULES = {
    ".".join(("anvil", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
PURE = tuple(name for name in MODULES if name.startswith(("anvil.core", "anvil.models", "anvil.errors")))
DOORS = {
    "apsw": ("anvil.backends.store",),
    "sqlite_vec": ("anvil.backends.store",),
    "pygit2": ("anvil.backends.git.repository", "anvil.backends.git.libgit2", "anvil.backends.git.staging"),
    "selectolax": ("anvil.core.html.parser",),
    "sphinx": ("anvil.sphinx",),
    "mistletoe": ("anvil.core.markdown.parser", "anvil.core.markdown.blocks"),
    "onnxruntime": ("anvil.backends.embedding.local",),
    "tokenizers": ("anvil.backends.embedding.local",),
    "huggingface_hub": ("anvil.backends.embedding",),
    "ray": ("anvil.backends.embedding.ray_driver",),
    "openai": ("anvil.backends.embedding.openai",),
    "yaml": ("anvil.core.yaml_values", "anvil.core.mcp_clients.yaml_mappings"),
    "click": ("anvil.interfaces.cli",),
    "rich": ("anvil.interfaces.cli",),
    "numpy": (
        "anvil.core.search",
        "anvil.backends.embedding",
        "anvil.backends.store",
        "anvil.backends.milvus",
        "anvil.services.search",
        "anvil.services.library.searcher",
        "anvil.services.milvus",
        "anvil.services.reports.content_health",
        "anvil.services.doc_tests.gaps",
    ),
    "jwt": ("anvil.backends.identity_provider",),
    "re2": ("anvil.core.search.line_matcher",),
    "sigstore": ("anvil.backends.attestation",),
    "lancedb": ("anvil.backends.lancedb_reader",),
    "markitdown": ("anvil.backends.convert",),
    "pypdfium2": ("anvil.backends.convert",),
    "pymilvus": ("anvil.backends.milvus",),
    "milvus_lite": ("anvil.backends.milvus.client",),
    "platformdirs": ("anvil.backends.user_dirs",),
    "httpx2": ("anvil.backends.fetch.http_client",),
    "watchfiles": ("anvil.backends.sources.watcher",),
    "mcp": ("anvil.interfaces.mcp_server",),
    "starlette": ("anvil.interfaces.mcp_server",),
    "uvicorn": ("anvil.interfaces.mcp_server",),
    "h11": ("anvil.interfaces.mcp_server",),
    "anyio": ("anvil.interfaces.mcp_server",),
    "pydantic_core": ("anvil.interfaces.mcp_server",),
    "mkdocs": (),
}
"""Library -> the modules or folders that may import it."""
ANYWHERE = set(sys.stdlib_module_names) | {"anvil", "tomli", "tomllib", "typing_extensions"}
OUTSIDE_WORLD = {"io", "pathlib", "shutil", "subprocess", "tempfile", "time", "socket", "urllib", "glob"}
"""Standard modules that reach files, processes, the clock or the network."""
NAMELESS = {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc"}


def imports(module: str, path: Path) -> Iterator[tuple[str, int]]:
    """(module imported, line), wherever in the file; ``from anvil.core import globs`` imports ``anvil.core.globs``."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, f"{path}:{node.lineno}: imports are absolute"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield (full if full in MODULES else node.module), node.lineno


def test_no_arrow_points_up_and_none_runs_in_a_circle() -> None:
    """The contracts stand in pyproject.toml."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("module", MODULES)
def test_every_library_has_one_door(module: str) -> None:
    for name, line in imports(module, MODULES[module]):
        library = name.split(".")[0]
        if library in ANYWHERE:
            continue
        assert library in DOORS, f"{MODULES[module]}:{line} imports {library}, which has no door yet"
        doors = DOORS[library]
        assert any(module == door or module.startswith(door + ".") for door in doors), (
            f"{MODULES[module]}:{line} imports {library}; its door is {' or '.join(doors) or 'nowhere'}"
        )


@pytest.mark.parametrize("module", PURE)
def test_the_pure_floors_touch_no_files_no_clock_and_no_network(module: str) -> None:
    for name, line in imports(module, MODULES[module]):
        is_pure = name == "urllib.parse" or name.split(".")[0] not in OUTSIDE_WORLD
        assert is_pure, f"{MODULES[module]}:{line} imports {name}"


@pytest.mark.parametrize("module", MODULES)
def test_no_module_is_named_after_nothing(module: str) -> None:
    assert not set(module.replace("_", ".").split(".")) & NAMELESS


def test_sql_is_in_the_store_only() -> None:
    for module, path in MODULES.items():
        if not module.startswith("anvil.backends.store"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
                assert not text.lstrip().startswith(("SELECT ", "INSERT ", "UPDATE ", "DELETE FROM", "PRAGMA ")), path


def test_ruff_formats_all_files() -> None:
    switch = "# fmt" + ": "
    folders = ("anvil", "mkdocs_anvil", "tests", "benchmarks", "scripts")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    assert files and [str(path) for path in files if switch in path.read_text(encoding="utf-8")] == []
