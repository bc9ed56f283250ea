"""Agent Skills of a repository, of an MCP server for its clients, and of a published site.

The format is https://agentskills.io/specification, as of November 2026.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from anvil.agents.pointer_text import SiteAccess, is_index, published_pointer, served_pointer
from anvil.errors import ConfigError
from anvil.index_file import verify
from anvil.index_file.reader import IndexReader
from anvil.system import safe_files

MAX_NAME_CHARS = 64
SUFFIX = "-docs"
FOLDER = ".well-known/agent-skills"
INDEX = f"{FOLDER}/index.json"
SCHEMA = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
MAX_INDEX_BYTES = 1_000_000
"""A larger index of skills in the site counts as one in another form."""


class Skill(NamedTuple):
    """An Agent Skill of one file. ``text``: its ``SKILL.md``, whose front matter has ``name`` and ``description``."""

    name: str
    description: str
    text: str

    @property
    def data(self) -> bytes:
        return self.text.encode()

    @property
    def digest(self) -> str:
        """The digest of the file, in the form of the protocols for skills over MCP and on sites."""
        return f"sha256:{hashlib.sha256(self.data).hexdigest()}"


def skill_name(project: str) -> str:
    """The name of a project's skill. It has lower-case letters, digits and single hyphens, as the format requires."""
    plain = unicodedata.normalize("NFKD", project).encode("ascii", "ignore").decode().lower()
    words = re.sub(r"[^a-z0-9]+", "-", plain).strip("-") or "project"
    base = words.removesuffix(SUFFIX)[: MAX_NAME_CHARS - len(SUFFIX)].strip("-") or "project"
    return base + SUFFIX


def front_matter(name: str, docs: str) -> str:
    """The front matter of a repository's skill. ``docs``: the path of the documentation folder, ``.`` for the root."""
    return _front_matter(name, _description("this repository" if docs == "." else f"the folder {docs[:200]}"))


def skill(name: str, location: str, body: str) -> Skill:
    """A skill of one file. ``location``: where the documentation is, for the description."""
    description = _description(location[:200])
    return Skill(name, description, f"{_front_matter(name, description)}{body}\n")


def _description(location: str) -> str:
    return (
        f"Answers questions about this project from its documentation in {location}: search, sections and pages. "
        "Use it before you answer from memory, and before you use or change what the documentation describes."
    )


def _front_matter(name: str, description: str) -> str:
    return f"---\nname: {name}\ndescription: {json.dumps(description)}\n---\n\n"  # a JSON string is valid YAML


def rule_front_matter(docs: str) -> str:
    """The front matter of a rule for Cursor. Its agent reads the rule when the description fits the task."""
    location = "this repository" if docs == "." else f"the folder {docs[:200]}"
    description = f"Where the project's documentation is, {location}, and how to search it."
    return f"---\ndescription: {json.dumps(description)}\nalwaysApply: false\n---\n\n"


def served(reader: IndexReader, project: str, collection: str | None = None) -> Skill | None:
    """The skill of a server for an index; None without pages. ``collection``: its name, if there are several."""
    paths = [document.file_path for document in reader.documents()]
    pointer = served_pointer(paths, collection, reader.meta().get("version"))
    return skill(skill_name(project), "its MCP server", pointer.text) if paths else None


def published(index: Path, project: str, access: SiteAccess) -> Skill:
    """The skill of a site, from its index. If ``access`` has no address, that of the start page is used. Raises
    :class:`ArtifactError`."""
    with verify.open_checked(index) as reader:
        pages = [(document.file_path, document.url) for document in reader.documents()]
        version = reader.meta().get("version")
    roots = [url for path, url in pages if url is not None and url.endswith("/") and "/" not in path and is_index(path)]
    if not access.url and len(roots) == 1:
        access = access._replace(url=roots[0])
    site = access.url
    paths = [url[len(site) :] if url and site and url.startswith(site) else path for path, url in pages]
    pointer = published_pointer(paths, access, version)
    return skill(skill_name(project), access.url or "its site", pointer.text)


def publish(index: Path, site: Path, project: str, access: SiteAccess) -> tuple[str, ...]:
    """Write the skill of a site into its folder, and return the paths of the files. Other skills in the site's index of
    skills stay. Raises :class:`ConfigError` and :class:`BuildError`, and :class:`ArtifactError` for the index."""
    skill = published(index, project, access)
    skill_index = site / INDEX
    with safe_files.writing(site):
        before = None
        if (state := safe_files.regular_file(skill_index)) is not None:
            before = safe_files.text(skill_index, errors="replace") if state.st_size <= MAX_INDEX_BYTES else ""
        files = skill_files(skill, before)
        for path, data in files.items():
            file = site / path
            safe_files.ensure_inside_parent(file.parent, site)
            file.parent.mkdir(parents=True, exist_ok=True)
            safe_files.update_file(file, data, flush=False)
    return tuple(files)


def skill_files(skill: Skill, before: str | None = None) -> Mapping[str, bytes]:
    """Path in the site -> content, of the skill and of the index of skills.

    ``before``: the index of skills that the site has. Its other skills stay. Addresses in it are relative, so that a
    site may be in a folder of its host. Raises :class:`ConfigError` for an index in another form.
    """
    path = f"{skill.name}/SKILL.md"
    entry = {
        "name": skill.name,
        "type": "skill-md",
        "description": skill.description,
        "url": path,
        "digest": skill.digest,
    }
    skills = sorted([*_other_skills(before, skill.name), entry], key=lambda entry: str(entry["name"]))
    index = json.dumps({"$schema": SCHEMA, "skills": skills}, indent=2, ensure_ascii=False)
    return {f"{FOLDER}/{path}": skill.data, INDEX: f"{index}\n".encode(errors="replace")}


def _other_skills(before: str | None, name: str) -> list[dict[str, Any]]:
    """The entries of an index of skills, without the skill ``name``. Raises :class:`ConfigError`."""
    if before is None:
        return []
    try:
        index = json.loads(before)
        skills = index["skills"] if index["$schema"] == SCHEMA else None
        if isinstance(skills, list) and all(isinstance(skill["name"], str) for skill in skills):
            return [skill for skill in skills if skill["name"] != name]
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise ConfigError(
        f"The site has another {INDEX}, which is not in the form of {SCHEMA}. Remove it, or publish no skill."
    )
