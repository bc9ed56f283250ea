"""An Agent Skill, by the format of https://agentskills.io/specification (read in November 2026)."""

from __future__ import annotations

import json
import re
import unicodedata

from anvil.agents.values import Skill

MAX_NAME_CHARS = 64
SUFFIX = "-docs"


def skill_name(project: str) -> str:
    """The name of a project's skill: small letters, digits and single hyphens, as the format and its folder need."""
    plain = unicodedata.normalize("NFKD", project).encode("ascii", "ignore").decode().lower()
    words = re.sub(r"[^a-z0-9]+", "-", plain).strip("-") or "project"
    base = words.removesuffix(SUFFIX)[: MAX_NAME_CHARS - len(SUFFIX)].strip("-") or "project"
    return base + SUFFIX


def front_matter(name: str, docs: str) -> str:
    """The front matter of the skill of a repository."""
    return _front_matter(name, _description("this repository" if docs == "." else f"the folder {docs[:200]}"))


def skill(name: str, place: str, body: str) -> Skill:
    """A skill of one file. ``place``: where the documentation is, for the description."""
    description = _description(place[:200])
    return Skill(name, description, f"{_front_matter(name, description)}{body}\n")


def _description(place: str) -> str:
    return (
        f"Answers questions about this project from its documentation in {place}: search, sections and pages. "
        "Use it before you answer from memory, and before you use or change what the documentation describes."
    )


def _front_matter(name: str, description: str) -> str:
    """A JSON string is a YAML string, too."""
    return f"---\nname: {name}\ndescription: {json.dumps(description)}\n---\n\n"


def rule_front_matter(docs: str) -> str:
    """The front matter of a rule of Cursor, which its agent reads when the description fits the task."""
    place = "this repository" if docs == "." else f"the folder {docs[:200]}"
    description = f"Where the project's documentation is, {place}, and how to search it."
    return f"---\ndescription: {json.dumps(description)}\nalwaysApply: false\n---\n\n"
