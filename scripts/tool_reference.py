"""docs/reference/tools.md, from the server's own tool list."""

from __future__ import annotations

import typing
from typing import Any

from anvil.server.arguments import Parameter
from anvil.server.docs import INSTRUCTIONS, TOOLS, Tool
from anvil.server.schemas import output_schema

OPENING = f"""\
# MCP tools

What `anvil serve` offers to MCP clients. All tools only read. Each answers with structured content and with the same
JSON as text; an error is one or two sentences that say what to do. How to run the server:
[Serve](../guides/serve.md).

The server introduces itself to the model with these words:

> {INSTRUCTIONS}
"""

CLOSING = """\
## Resources

Every page is also a resource, `anvil://page/{path}`, and every section `anvil://page/{file_path}{#heading_path}`. They
can be listed, read and subscribed to; `path`, `file_path` and `heading_path` are completed. Pages are listed 500 at
a time.
"""


def reference() -> str:
    """The page, whole."""
    return "\n".join([OPENING, *(described(tool) for tool in TOOLS), CLOSING])


def described(tool: Tool) -> str:
    """One tool: what it does, what it takes, what it returns."""
    lines = [f"## {tool.name}", "", tool.description, ""]
    if tool.parameters:
        lines += ["| parameter | type | default | meaning |", "|---|---|---|---|"]
        lines += [f"| `{each.name}` | {each.kind} | {default(each)} | {meaning(each)} |" for each in tool.parameters]
    else:
        lines.append("It takes no parameters.")
    lines += ["", "| result field | type |", "|---|---|"]
    lines += [f"| `{path}` | {kind} |" for path, kind in fields(output_schema(tool.result))]
    return "\n".join([*lines, ""])


def default(parameter: Parameter) -> str:
    """What a parameter is when it is not given."""
    if parameter.required:
        return "required"
    return "none" if parameter.default is None else f"`{str(parameter.default).lower()}`"


def meaning(parameter: Parameter) -> str:
    """The description that models read, and the values that are allowed."""
    choices = " or ".join(f"`{each}`" for each in parameter.choices)
    return " ".join(filter(None, [parameter.description, choices])).replace("|", "\\|")


def fields(schema: dict[str, Any], prefix: str = "") -> typing.Iterator[tuple[str, str]]:
    """(dotted path, type) of every field of a result; ``[]`` stands for the items of an array."""
    for name, each in schema["properties"].items():
        path, found = prefix + name, each
        if each["type"] == "array":
            path, found = f"{path}[]", each["items"]
        kind = found["type"]
        yield path, kind if isinstance(kind, str) else " or ".join(kind)
        if "properties" in found:
            yield from fields(found, f"{path}.")
