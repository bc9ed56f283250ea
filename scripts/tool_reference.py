"""docs/reference/tools.md, from the server's own tool list."""

from __future__ import annotations

import importlib
import typing
from collections.abc import Sequence
from typing import Any

from anvil.registry import TOOLSETS
from anvil.server.docs_toolset import COLLECTION_PARAMETERS
from anvil.server.toolset import ARRAY_KEY, Parameter, Tool, Toolset, output_schema

OPENING = """\
# MCP tools

The tools that `anvil serve` offers to MCP clients: those of one surface, or of several (`--surface`). A tool returns
structured content, and the same JSON as text; an error is one or two sentences that say what to do. Structured content
must be an object, so an array is in it under the key `result`. In the tables of results `[]` means an array. With
`--text markdown` an answer is one text, and `get_page`, `get_section` and `get_document` also take `offset`, the
`next_offset` of the part before. How to run the server: [Serve](../guides/serve.md).
"""

RESOURCES = """\
### Resources

Every page is also a resource, `anvil://page/{path}`, and every section `anvil://page/{file_path}{#heading_path}`. They
can be listed and read, and subscribed to over stdio and SSE; `path`, `file_path` and `heading_path` can be completed.
Pages are listed 500 at a time. With several collections the addresses are `anvil://collection/{collection}/{path}` and
`anvil://collection/{collection}/{file_path}{#heading_path}`.
"""

COLLECTIONS = """\
### Several collections

With [several collections](../guides/collections.md), each tool with parameters has two more. The result fields
`collection`, `version` and `collections` exist only then.
"""


def reference() -> str:
    """The page, whole."""
    surfaces = [importlib.import_module(module).TOOLSET for module in TOOLSETS.values()]
    return "\n".join([OPENING, *(chapter(surface) for surface in surfaces)])


def chapter(surface: Toolset) -> str:
    """One surface: how it introduces itself, and its tools."""
    opening = [f"## Surface `{surface.name}`", "", "It introduces itself to the model with these words:", ""]
    parts = ["\n".join([*opening, f"> {surface.instructions}", ""]), *(described(tool) for tool in surface.tools)]
    if surface.optional:
        parts += ["\n".join(["These tools are off until the configuration switches them on, under `[serve]`:", ""])]
        parts += [described(tool) for tool in surface.optional]
    return "\n".join(
        [*parts, *([RESOURCES, COLLECTIONS, parameters(COLLECTION_PARAMETERS)] if surface.has_pages else [])]
    )


def parameters(given: Sequence[Parameter]) -> str:
    """A table of parameters."""
    lines = ["| parameter | type | default | meaning |", "|---|---|---|---|"]
    lines += [f"| `{each.name}` | {each.kind} | {default(each)} | {meaning(each)} |" for each in given]
    return "\n".join([*lines, ""])


def described(tool: Tool) -> str:
    """One tool: what it does, what it takes, what it returns."""
    lines = [f"### {tool.name}", "", tool.description, effects(tool), ""]
    if tool.parameters:
        lines.append(parameters(tool.parameters).rstrip())
    else:
        lines.append("It takes no parameters.")
    schema = output_schema(tool.result_type, whole=True)
    array = schema["properties"].get(ARRAY_KEY, {}) if list(schema["properties"]) == [ARRAY_KEY] else {}
    rows = objects(array["items"], "[]") if array.get("type") == "array" else objects(schema, "")
    lines += ["", "| result | fields |", "|---|---|"]
    lines += [f"| {f'`{path}`' if path else 'the result'} | {', '.join(named)} |" for path, named in rows]
    return "\n".join([*lines, ""])


def effects(tool: Tool) -> str:
    """Whether a tool only reads, as clients are told."""
    if not tool.writes:
        return "It only reads."
    more = [
        ("may take away what was there", tool.destructive),
        ("is safe to repeat", tool.idempotent),
        ("reaches beyond this machine", tool.open_world),
    ]
    return ", ".join(["It writes", *(told for told, so in more if so)]) + "."


def default(parameter: Parameter) -> str:
    """What a parameter is when it is not given."""
    if parameter.required:
        return "required"
    value = parameter.schema().get("default")
    return "none" if value is None else f"`{str(value).lower()}`"


def meaning(parameter: Parameter) -> str:
    """The description that models read, and the values that are allowed."""
    choices = " or ".join(f"`{each}`" for each in parameter.choices)
    return " ".join(filter(None, [parameter.description, choices])).replace("|", "\\|")


def objects(schema: dict[str, Any], path: str) -> typing.Iterator[tuple[str, list[str]]]:
    """(dotted path, its fields with their types) of a result and of every object in it; ``[]`` means the items of an
    array."""
    named, inner = [], []
    for name, each in schema["properties"].items():
        value, *null = each.get("anyOf", [each])
        items = value.get("type") == "array"
        found = value["items"] if items else value
        kind = " or ".join([found.get("type", "any"), *(other["type"] for other in null)])
        named.append(
            f"`{name}{'[]' if items else ''}`" + ("" if "properties" in found and kind == "object" else f" {kind}")
        )
        if "properties" in found:
            inner.append((found, f"{path}{'.' if path else ''}{name}{'[]' if items else ''}"))
    yield path, named
    for found, below in inner:
        yield from objects(found, below)
