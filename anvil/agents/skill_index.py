"""The skills of a site, where agents and installers look for them.

The form is version 0.2.0 of "Agent Skills Discovery via Well-Known URIs", as of March 2026 (read in November 2026 at
https://github.com/cloudflare/agent-skills-discovery-rfc): an index, and a ``SKILL.md`` for each skill.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from anvil.agents.values import Skill
from anvil.errors import ConfigError

FOLDER = ".well-known/agent-skills"
INDEX = f"{FOLDER}/index.json"
SCHEMA = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"


def files(skill: Skill, before: str | None = None) -> Mapping[str, bytes]:
    """Path in the site -> content. ``before``: the index that the site has; its other skills stay.

    The address in the index is relative, so that a site may be below a folder. Raises :class:`ConfigError` for an index
    in another form.
    """
    path = f"{skill.name}/SKILL.md"
    entry = {
        "name": skill.name,
        "type": "skill-md",
        "description": skill.description,
        "url": path,
        "digest": skill.digest,
    }
    skills = sorted([*_others(before, skill.name), entry], key=lambda each: str(each["name"]))
    index = json.dumps({"$schema": SCHEMA, "skills": skills}, indent=2, ensure_ascii=False)
    return {f"{FOLDER}/{path}": skill.data, INDEX: f"{index}\n".encode(errors="replace")}


def _others(before: str | None, name: str) -> list[dict[str, Any]]:
    """The other skills of an index."""
    if before is None:
        return []
    try:
        index = json.loads(before)
        listed = index["skills"] if index["$schema"] == SCHEMA else None
        if isinstance(listed, list) and all(isinstance(skill["name"], str) for skill in listed):
            return [skill for skill in listed if skill["name"] != name]
    except (ValueError, KeyError, TypeError, RecursionError):
        listed = None
    raise ConfigError(
        f"The site has another {INDEX}, which is not in the form of {SCHEMA}. Remove it, or publish no skill."
    )
