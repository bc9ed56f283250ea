"""The rules of the house that import-linter does not know: one library, one door; SQL in two folders; pure modules."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anvil
from anvil import registry
from anvil.formats.data_formats import read_toml

PACKAGE = Path(anvil.__file__).parent
ROOT = PACKAGE.parent
MODULES = {
    ".".join(("anvil", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
PURE_NAMES = (
    "anvil.agents.marked_block",
    "anvil.agents.pointer_text",
    "anvil.bundle.agents_md",
    "anvil.clients.file_editing",
    "anvil.clients.known_clients",
    "anvil.dependencies.package_names",
    "anvil.dependencies.project_urls",
    "anvil.dependencies.values",
    "anvil.doc_tests.values",
    "anvil.documents.document_source",
    "anvil.errors",
    "anvil.formats",
    "anvil.git.objects",
    "anvil.impact.co_change",
    "anvil.impact.evidence",
    "anvil.impact.names",
    "anvil.impact.ranking",
    "anvil.library.document_chunker",
    "anvil.library.values",
    "anvil.lint.built_site",
    "anvil.lint.generator_settings",
    "anvil.lint.link_targets",
    "anvil.lint.linted_page",
    "anvil.lint.rules",
    "anvil.results",
    "anvil.search.confidence",
    "anvil.search.excerpts",
    "anvil.search.highlighting",
    "anvil.library.metadata_filter",
    "anvil.search.page_weights",
    "anvil.search.ranking",
    "anvil.search.result_texts",
    "anvil.settings.index_url",
    "anvil.settings.schema",
    "anvil.site_markdown.llms",
    "anvil.site_markdown.page_file",
    "anvil.site_markdown.paths_and_links",
    "anvil.sites.generators",
    "anvil.sites.html_elements",
    "anvil.sites.html_page",
    "anvil.sites.markdown_tables",
    "anvil.sites.html_to_markdown",
    "anvil.sites.html_tree",
    "anvil.sites.markdown_writer",
    "anvil.sites.page_addresses",
    "anvil.sites.site_pages",
    "anvil.sites.page_content",
    "anvil.sites.source_files",
    "anvil.text",
    "anvil.values",
    "anvil.wording",
)
PURE = tuple(
    name for name in MODULES if name.startswith(tuple(f"{pure}." for pure in PURE_NAMES)) or name in PURE_NAMES
)
SERVER = ("anvil.server", "anvil.asgi", "anvil.context.tools", "anvil.library.tools", "anvil.library.upload")
SQL_FOLDERS = ("anvil.index_file", "anvil.library")
COMMANDS = tuple(sorted({entry.place.partition(":")[0] for entry in registry.COMMANDS.values()}))
DOORS = {
    "apsw": (
        "anvil.index_file",
        "anvil.library.library_file",
        "anvil.library.stored_documents",
    ),
    "sqlite_vec": ("anvil.index_file",),
    "pygit2": ("anvil.git.libgit2", "anvil.git.repository"),
    "selectolax": ("anvil.sites.html_tree",),
    "sphinx": ("anvil.sphinx",),
    "mistletoe": ("anvil.text.markdown_blocks",),
    "onnxruntime": ("anvil.embedding.local",),
    "tokenizers": ("anvil.embedding.local",),
    "huggingface_hub": ("anvil.embedding",),
    "ray": ("anvil.ray.ray_process",),
    "pydantic": ("anvil.server.mcp_app",),  # whose errors the SDK raises; mcp brings it
    "openai": ("anvil.embedding.openai",),
    "yaml": ("anvil.formats.data_formats", "anvil.clients.file_editing"),
    "click": ("anvil.cli", *COMMANDS),
    "numpy": (
        "anvil.search",
        "anvil.embedding",
        "anvil.index_file",
        "anvil.milvus",
        "anvil.library.library_search",
        "anvil.library.stored_documents",
        "anvil.ray.executor",
        "anvil.doc_tests.question_log",
    ),
    "jwt": ("anvil.server.oauth",),
    "packaging": (
        "anvil.dependencies.package_names",
        "anvil.dependencies.python_ecosystem",
    ),
    "re2": ("anvil.search.grep",),
    "sigstore": ("anvil.fetch.attestation",),
    "cramjam": ("anvil.fetch.github",),
    "lancedb": ("anvil.library.lancedb_import",),
    "mammoth": ("anvil.library",),
    "markitdown": ("anvil.library",),
    "openpyxl": ("anvil.library",),
    "pptx": ("anvil.library.document_formats",),
    "charset_normalizer": ("anvil.library",),
    "pdfminer": ("anvil.library",),
    "pypdfium2": ("anvil.library",),
    "pymilvus": ("anvil.milvus",),
    "milvus_lite": ("anvil.milvus.milvus_client",),
    "platformdirs": ("anvil.system.safe_files",),
    "httpx2": ("anvil.http.client",),
    "watchfiles": ("anvil.documents.file_watcher",),
    "mcp": SERVER,
    "starlette": SERVER,
    "uvicorn": SERVER,
    "h11": SERVER,
    "anyio": SERVER,
    "pydantic_core": SERVER,
    "mkdocs": (),
}
"""Library -> the modules or folders that may import it."""
ANYWHERE = set(sys.stdlib_module_names) | {"anvil", "tomli", "tomllib", "typing_extensions"}
OUTSIDE_WORLD = {"io", "pathlib", "shutil", "subprocess", "tempfile", "time", "socket", "urllib", "glob"}
"""Standard modules that reach files, processes, the clock or the network."""
ENGINE = set(
    "build cli documents embedding formats git http index_file live search settings system text".split()  # noqa: SIM905
)
MAY_IMPORT = {
    "agents": {"bundle"},  # the name of the project
    "bundle": {"lint", "site_markdown", "sites"},  # links as lint and a site resolve them; pages as files of Markdown
    "ci": {
        "agents",
        "dependencies",
        "doc_tests",
        "fetch",
        "git_drivers",
        "impact",
        "lint",
        "sites",
    },  # a job runs and reports them
    "context": {"server"},  # its tools
    "dependencies": {"fetch", "sites"},  # documentation is fetched, and found in pages of HTML
    "doctor": {"clients", "context", "fetch", "git_drivers", "library"},  # what it examines
    "git_drivers": {"agents"},  # merges the pointer for agents, too
    "library": {"server", "sites"},  # its tools, and uploads; web pages are read as those of a site
    "lint": {"sites"},  # a built site
    "site_markdown": {"sites"},  # its pages, and what it knows of the files that were written into it
    "server": {"agents", "doc_tests"},  # the skill as a resource; the log of questions
}
"""Capability -> the capabilities that it may import. There is no circle."""
SQL = ("SELECT ", "INSERT ", "UPDATE ", "DELETE FROM", "PRAGMA ")
NAMELESS = {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc"}


@functools.cache
def imports(path: Path) -> tuple[tuple[str, int], ...]:
    """(module imported, line), wherever in the file; ``from anvil.formats import globs`` imports
    ``anvil.formats.patterns``."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[tuple[str, int]]:
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


CAPABILITIES = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()} - ENGINE


def test_the_contract_and_the_design_name_each_capability() -> None:
    """A capability that the contract does not name could be imported by the engine."""
    tables = read_toml((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    (named,) = [table["forbidden_modules"] for table in tables if "forbidden_modules" in table]
    assert set(named) == {f"anvil.{name}" for name in CAPABILITIES}
    row = (ROOT / "docs/design.md").read_text(encoding="utf-8").partition("| capabilities | ")[2].partition(" |")[0]
    assert set(row.replace("`", "").split()) == CAPABILITIES


def test_a_capability_imports_only_those_that_it_may() -> None:
    wrong = [
        f"{path}:{line} imports {name}"
        for module, path in MODULES.items()
        for name, line in imports(path)
        if len(own := module.split(".")) > 2
        and len(other := name.split(".")) > 1
        and own[1] in CAPABILITIES
        and other[0] == "anvil"
        and other[1] in CAPABILITIES - {own[1], *MAY_IMPORT.get(own[1], ())}
    ]
    assert not wrong, "\n".join(wrong)


def test_every_library_has_one_door() -> None:
    """A library without a door in the table may be imported nowhere."""
    wrong = [
        f"{path}:{line} imports {library}; its door is {' or '.join(DOORS.get(library, ())) or 'nowhere'}"
        for module, path in MODULES.items()
        for name, line in imports(path)
        if (library := name.split(".")[0]) not in ANYWHERE
        and not any(module == door or module.startswith(door + ".") for door in DOORS.get(library, ()))
    ]
    assert not wrong, "\n".join(wrong)


def test_pure_modules_touch_no_files_no_clock_and_no_network() -> None:
    wrong = [
        f"{MODULES[module]}:{line} imports {name}"
        for module in PURE
        for name, line in imports(MODULES[module])
        if name != "urllib.parse" and name.split(".")[0] in OUTSIDE_WORLD
    ]
    assert not wrong, "\n".join(wrong)
    assert all(any(name == pure or name.startswith(f"{pure}.") for name in MODULES) for pure in PURE_NAMES)


def test_no_module_is_named_after_nothing() -> None:
    assert [module for module in MODULES if set(module.replace("_", ".").split(".")) & NAMELESS] == []


def test_a_test_is_named_after_the_module_that_it_tests() -> None:
    """``tests/lint/test_rules.py``, or ``test_rules_of_links.py``, tests ``anvil/lint/rules.py``. Stories of whole
    programs, and tests of the repository itself, have folders of their own."""
    wrong = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        folder = path.parent.relative_to(ROOT / "tests").as_posix()
        if folder.split("/")[0] in ("e2e", "project", "dogfood", "data"):
            continue
        code = ROOT / folder if folder == "mkdocs_anvil" else PACKAGE / folder
        words = path.stem.split("_")[1:]
        names = {"_".join(words[:number]) for number in range(1, len(words) + 1)}
        if not any((code / f"{name}.py").is_file() for name in names):
            wrong.append(path.relative_to(ROOT).as_posix())
    assert wrong == []


def test_sql_is_in_two_folders_only() -> None:
    for module, path in MODULES.items():
        code = path.read_text(encoding="utf-8")
        if not module.startswith(SQL_FOLDERS) and any(word in code for word in SQL):
            for node in ast.walk(ast.parse(code)):
                text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
                assert not text.lstrip().startswith(SQL), path


def test_ruff_formats_all_files() -> None:
    switch = "# fmt" + ": "
    folders = ("anvil", "mkdocs_anvil", "tests", "benchmarks", "scripts")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    assert files and [str(path) for path in files if switch in path.read_text(encoding="utf-8")] == []
