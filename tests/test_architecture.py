"""The house: what may import what, which library has which door, and how large a room may be."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import anvil

PACKAGE = Path(anvil.__file__).parent
MODULES = {
    ".".join(("anvil", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
FLOORS = (
    {"errors", "models", "status", "holdings", "findings", "wording"},
    {"markdown", "blocks", "cutting", "headings", "frontmatter", "chunking", "globs", "lexicon", "ranking", "vectors",
     "passages", "manifest", "addresses", "sharding", "config", "configuring", "freshness", "history", "trees",
     "selecting", "attributes", "anchors", "filters", "pieces", "charsets", "httpheaders"},
    {"git", "libgit2", "tracked", "sources", "working_tree", "footprint", "configfile", "clients", "watching",
     "embedding", "executing", "store", "fetching", "converting", "webdocuments", "milvus",
     "program", "userfolders", "ownfiles"},
    {"indexing", "building", "workingcopy", "answering", "backlog", "firstbuild", "reporting", "searching", "pages",
     "comparing", "health", "merging", "following", "pulling", "api", "opening", "outline", "published", "context",
     "ingesting", "librarysearch", "folders", "surroundings", "library", "doctor", "exporting",
     "overlaid", "remotecopy", "remotesearch"},
    {"cli", "ci", "server", "__main__"},
)  # fmt: skip
"""Ground to roof: a module imports from its own floor and those below."""
DOORS = {
    "apsw": ("anvil.store",),
    "sqlite_vec": ("anvil.store",),
    "pygit2": ("anvil.git", "anvil.libgit2"),
    "mistletoe": ("anvil.markdown", "anvil.blocks"),
    "onnxruntime": ("anvil.embedding.local",),
    "tokenizers": ("anvil.embedding.local",),
    "huggingface_hub": ("anvil.embedding",),
    "ray": ("anvil.executing.driver",),
    "openai": ("anvil.embedding.openai",),
    "yaml": ("anvil.frontmatter", "anvil.doctor.setups"),
    "click": ("anvil.cli",),
    "rich": ("anvil.cli",),
    "numpy": (
        "anvil.embedding", "anvil.store", "anvil.ranking", "anvil.vectors", "anvil.searching", "anvil.librarysearch",
        "anvil.health", "anvil.executing.cluster",
        "anvil.milvus", "anvil.exporting", "anvil.remotesearch",
    ),
    "markitdown": ("anvil.converting",),
    "pymilvus": ("anvil.milvus",),
    "milvus_lite": ("anvil.milvus.client",),
    "pypdfium2": ("anvil.converting",),
    "platformdirs": ("anvil.userfolders",),
    "httpx2": ("anvil.fetching.http", "anvil.webdocuments"),
    "mcp": ("anvil.server",),
    "starlette": ("anvil.server",),
    "uvicorn": ("anvil.server",),
    "anyio": ("anvil.server",),
    "pydantic_core": ("anvil.server",),
    "watchfiles": ("anvil.watching",),
    "mkdocs": (),
}
ANYWHERE = set(sys.stdlib_module_names) | {"anvil", "tomli", "tomllib", "typing_extensions"}


def imports(module: str, path: Path) -> Iterator[tuple[str, int]]:
    """(module imported, line), wherever in the file; ``from anvil import pages`` is an import of ``anvil.pages``."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, f"{path}:{node.lineno}: imports are absolute"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield (full if full in MODULES else node.module), node.lineno


def floor(module: str) -> int:
    room = module.split(".")[1]
    return next(level for level, rooms in enumerate(FLOORS) if room in rooms)


def test_every_module_has_its_floor() -> None:
    rooms = {name.split(".")[1] for name in MODULES if "." in name}
    assert rooms == set().union(*FLOORS)


@pytest.mark.parametrize("module", [name for name in MODULES if name != "anvil"])
def test_no_arrow_points_up(module: str) -> None:
    wrong = [
        f"{MODULES[module]}:{line} imports {name}"
        for name, line in imports(module, MODULES[module])
        if name.startswith("anvil.") and floor(name) > floor(module)
    ]
    assert wrong == []


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


def test_ground_and_first_floor_know_the_standard_library_only() -> None:
    for module, path in MODULES.items():
        if "." in module and floor(module) == 0:
            for name, line in imports(module, path):
                assert name.split(".")[0] in ANYWHERE, f"{path}:{line} imports {name}"


def test_the_first_floor_touches_no_files_and_no_clock() -> None:
    outside = {"os", "io", "pathlib", "shutil", "subprocess", "tempfile", "time", "socket", "urllib", "glob"}
    for module, path in MODULES.items():
        if "." in module and floor(module) == 1:
            for name, line in imports(module, path):
                assert name == "urllib.parse" or name.split(".")[0] not in outside, f"{path}:{line} imports {name}"


@pytest.mark.parametrize("module", MODULES)
def test_no_room_is_too_large_or_named_for_nothing(module: str) -> None:
    lines = len(MODULES[module].read_text(encoding="utf-8").splitlines())
    assert lines <= 400, f"{MODULES[module]} has {lines} lines"
    parts = set(module.replace("_", ".").split("."))
    assert not parts & {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc"}


def test_sql_stands_in_the_store_only() -> None:
    for module, path in MODULES.items():
        if not module.startswith("anvil.store"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
                assert not text.lstrip().startswith(("SELECT ", "INSERT ", "UPDATE ", "DELETE FROM", "PRAGMA ")), path
