"""The parts of capabilities that the engine uses, by name: commands, tools, settings. Each is imported at its use.

The engine imports no capability. The tables here have the places of its parts, as ``module`` or ``module:name``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

GROUPS = ("Find", "Build", "Share", "Check")
"""The groups of commands in the help of ``anvil``."""


class CommandEntry(NamedTuple):
    """A command of ``anvil``: its group and its line in the help, and the place of its function."""

    group: str
    summary: str
    place: str


COMMANDS = {
    "build": CommandEntry("Build", "Build the index, or bring it up to date.", "anvil.cli.build:command"),
    "check": CommandEntry("Check", "Compare the index with the documents.", "anvil.cli.check:command"),
    "search": CommandEntry("Find", "Search the documents.", "anvil.cli.search:command"),
    "docs": CommandEntry("Find", "Ask Anvil's own documentation.", "anvil.cli.search:docs_command"),
    "grep": CommandEntry("Find", "Print the lines that contain a pattern.", "anvil.cli.grep:command"),
    "show": CommandEntry("Find", "Print a page, or one section of it.", "anvil.cli.pages:show_command"),
    "list": CommandEntry("Find", "List the pages.", "anvil.cli.pages:list_command"),
    "status": CommandEntry("Check", "Show the contents and origin of the index.", "anvil.cli.check:status_command"),
    "doctor": CommandEntry("Check", "Examine the installation and the project.", "anvil.doctor.cli:command"),
    "verify": CommandEntry("Check", "Check the contents of an index file.", "anvil.cli.check:verify_command"),
    "test": CommandEntry("Check", "Ask the questions of a suite.", "anvil.doc_tests.cli:command"),
    "lint": CommandEntry("Check", "Find broken links and more in the pages.", "anvil.lint.cli:command"),
    "impact": CommandEntry("Check", "Find sections that a change of code makes wrong.", "anvil.impact.cli:command"),
    "questions": CommandEntry(
        "Check", "Print logged questions without answer.", "anvil.doc_tests.cli:questions_command"
    ),
    "diff": CommandEntry("Check", "List the differences of two indexes.", "anvil.git_drivers.cli:diff_command"),
    "merge": CommandEntry("Build", "Join the shards of a build.", "anvil.cli.build:merge_command"),
    "pull": CommandEntry("Share", "Fetch a published index.", "anvil.fetch.cli:command"),
    "deps": CommandEntry("Find", "Documentation of the project's dependencies.", "anvil.dependencies.cli:command"),
    "bundle": CommandEntry("Share", "Write the documentation for a package.", "anvil.bundle.cli:command"),
    "export": CommandEntry("Share", "Export an index to Milvus.", "anvil.milvus.cli:command"),
    "git": CommandEntry("Share", "Let git show and merge an index.", "anvil.git_drivers.cli:command"),
    "init": CommandEntry("Build", "Set up a project, or MCP clients.", "anvil.cli.init:command"),
    "agents": CommandEntry("Build", "A pointer to the pages in the files of agents.", "anvil.agents.cli:command"),
    "ci": CommandEntry("Share", "Build and check in a CI job.", "anvil.ci.cli:command"),
    "serve": CommandEntry("Find", "Answer agents: the MCP server.", "anvil.server.cli:command"),
    "ui": CommandEntry("Find", "Search, read and check in the browser.", "anvil.server.cli:ui_command"),
    "context": CommandEntry("Find", "A repository's specs, plans and tasks.", "anvil.context.cli:command"),
    "ingest": CommandEntry("Find", "Add files and web pages to the library.", "anvil.library.cli:ingest_command"),
    "library": CommandEntry("Find", "Search and change the document library.", "anvil.library.cli:command"),
    "index": CommandEntry("", "Another name for 'build'.", "anvil.cli.build:command"),
}
"""Name on the command line -> command. An entry without a group is another name, and is not in the help."""

TOOLSETS = {"docs": "anvil.server.docs_toolset", "library": "anvil.library.tools", "context": "anvil.context.tools"}
"""Name of a set of MCP tools -> its module. The first is the default."""

SETTINGS = {
    "fetch": "anvil.fetch.settings:FetchOptions",
    "serve": "anvil.server.settings:ServeOptions",
    "library": "anvil.library.settings:LibraryOptions",
    "context": "anvil.context.settings:ContextOptions",
    "lint": "anvil.lint.settings:LintOptions",
    "impact": "anvil.impact.settings:ImpactOptions",
    "deps": "anvil.dependencies.settings:DepsOptions",
}
"""Name of a table of the configuration -> the class with its keys and defaults."""

PARTS = {
    # further work of build, check, status and init
    "agent files": "anvil.agents.cli",
    "MCP clients": "anvil.clients.server_entries",
    "unrun plugin": "anvil.doctor.integrations:unrun_plugin",
    # what one capability uses of another that uses it
    "notes of a CI job": "anvil.ci.runners:lint_notes",
    "impact notes of a CI job": "anvil.ci.runners:impact_notes",
    "runner of a CI job": "anvil.ci.runners:GitHub",
    "code quality of a CI job": "anvil.ci.runners:code_quality",
    "indexes that hooks name": "anvil.doctor.integrations:named_indexes",
    # where pages and indexes come from
    "site": "anvil.sites.site_folder:SiteFolder",
    "site cache": "anvil.sites.site_listing:cache_folder",
    "pages left out of a site": "anvil.sites.site_pages:left_out",
    "index in Milvus": "anvil.milvus.milvus_index:MilvusCollection",
    "published index": "anvil.fetch.auto_update:configured_updater",
    "fetch": "anvil.fetch.fetch_index:fetch_as_configured",
    "locked collections": "anvil.dependencies.docs_cache:locked_collections",
    "cluster": "anvil.ray.executor:executor",
    # methods of anvil.Anvil
    "linter": "anvil.lint.linter:lint",
    "agents of a project": "anvil.agents.agent_files",
    "agent skills": "anvil.agents.skill",
    "markdown of a site": "anvil.site_markdown.site_files:publish",
    "search page of a site": "anvil.search_page.publishing:publish",
    "topics": "anvil.agents.pointer_text:topics",
    "suite": "anvil.doc_tests.suite:load",
    "suite run": "anvil.doc_tests.testing:run",
    "suite suggestions": "anvil.doc_tests.suite:suggestions",
    "question log": "anvil.doc_tests.question_log:QuestionLog",
    "question groups": "anvil.doc_tests.question_log:question_groups",
}
"""Name of a part of a capability -> its place."""


def load(place: str) -> Any:
    """The module at ``module``, or the object at ``module:name``."""
    module, _, name = place.partition(":")
    loaded = import_module(module)
    return getattr(loaded, name) if name else loaded


def part(name: str) -> Any:
    """The part of a capability with this name in :data:`PARTS`."""
    return load(PARTS[name])
