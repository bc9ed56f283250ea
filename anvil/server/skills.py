"""The Agent Skill of the documentation, served as the extension "Skills over MCP" (SEP-2640) has it.

Its text, specification/stable/skills.mdx, was read in November 2026 at
https://github.com/modelcontextprotocol/ext-skills. A skill is one file; there are no directories to read.
"""

from __future__ import annotations

from typing import Any

import mcp.types as types
from mcp.shared.exceptions import MCPError

from anvil.agents.values import Skill
from anvil.errors import AnvilError
from anvil.server.subscriptions import RequestContext
from anvil.server.threads import ThreadBridge

SKILLS_EXTENSION = "io.modelcontextprotocol/skills"
"""Clients see it from revision 2026-07-28 of the protocol on; ``initialize`` of older ones has no extensions."""
PREFIX = "skill://"
TTL_MS = 60_000
"""Time for which a client may keep an entry. A page that changes may change the skill."""


class GetSkillParams(types.RequestParams):
    """The parameters of ``skills/get``."""

    uri: str


def uri_of(skill: Skill) -> str:
    """The URI of a skill's ``SKILL.md``."""
    return f"{PREFIX}{skill.name}/SKILL.md"


class Skills:
    """The skills of the documents behind ``bridge``."""

    def __init__(self, bridge: ThreadBridge) -> None:
        self._bridge = bridge

    def serve(self, server: Any) -> None:
        """Let a server of the SDK have the extension."""
        server.extensions[SKILLS_EXTENSION] = {}
        server.add_request_handler("skills/list", types.PaginatedRequestParams, self.list)
        server.add_request_handler("skills/get", GetSkillParams, self.get)

    async def list(self, _: RequestContext, params: types.PaginatedRequestParams | None) -> dict[str, Any]:
        """All skills, on one page."""
        return _complete(skills=[_entry(skill) for skill in await self._all("skills/list")])

    async def get(self, _: RequestContext, params: GetSkillParams) -> dict[str, Any]:
        """The entry of one skill. Raises :class:`MCPError` for another URI."""
        return _complete(skill=_entry(await self._of(params.uri, "skills/get")))

    async def read(self, uri: str) -> types.ReadResourceResult:
        """The text of a ``SKILL.md``. Raises :class:`MCPError` for another URI."""
        skill = await self._of(uri, "resources/read")
        content = types.TextResourceContents(uri=uri, mime_type="text/markdown", text=skill.text)
        return types.ReadResourceResult(contents=[content])

    async def _of(self, uri: str, method: str) -> Skill:
        for skill in await self._all(method):
            if uri_of(skill) == uri:
                return skill
        raise MCPError(types.INVALID_PARAMS, f"There is no skill at {uri[:200]}. skills/list names them.", {"uri": uri})

    async def _all(self, method: str) -> tuple[Skill, ...]:
        try:
            skills: tuple[Skill, ...] = await self._bridge.call(method, lambda documents: documents.skills())
        except AnvilError as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from None
        return skills


def _entry(skill: Skill) -> dict[str, Any]:
    uri = uri_of(skill)
    return {
        "uri": uri,
        "frontmatter": {"name": skill.name, "description": skill.description},
        "resources": [{"uri": uri, "digest": skill.digest, "size": len(skill.data)}],
    }


def _complete(**members: Any) -> dict[str, Any]:
    return {"resultType": "complete", **members, "ttlMs": TTL_MS, "cacheScope": "private"}
