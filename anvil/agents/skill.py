"""Agent Skills, by the format of https://agentskills.io/specification (read in November 2026): of a repository, for the
clients of an MCP server, and for a published site."""

from __future__ import annotations

import hashlib
import json
import os
import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from anvil.agents.pointer_text import SiteAccess, is_index, published_pointer, served_pointer
from anvil.errors import BuildError, ConfigError
from anvil.index_file import verify
from anvil.index_file.reader import IndexReader
from anvil.system import safe_files

MAX_NAME_CHARS = 64
SUFFIX = "-docs"
FOLDER = ".well-known/agent-skills"
INDEX = f"{FOLDER}/index.json"
SCHEMA = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
MAX_INDEX_BYTES = 1_000_000
"""Bytes that are read of a file that the site has already."""


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
        """The digest of the bytes, as the formats for skills over MCP and on sites have it."""
        return f"sha256:{hashlib.sha256(self.data).hexdigest()}"


def skill_name(project: str) -> str:
    """The name of a project's skill: small letters, digits and single hyphens, as the format and its folder need."""
    plain = unicodedata.normalize("NFKD", project).encode("ascii", "ignore").decode().lower()
    words = re.sub(r"[^a-z0-9]+", "-", plain).strip("-") or "project"
    base = words.removesuffix(SUFFIX)[: MAX_NAME_CHARS - len(SUFFIX)].strip("-") or "project"
    return base + SUFFIX


def front_matter(name: str, docs: str) -> str:
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
    docs_place = "this repository" if docs == "." else f"the folder {docs[:200]}"
    description = f"Where the project's documentation is, {docs_place}, and how to search it."
    return f"---\ndescription: {json.dumps(description)}\nalwaysApply: false\n---\n\n"


def served(reader: IndexReader, project: str, collection: str | None = None) -> Skill | None:
    """The skill of what a server answers from; None without pages. ``collection``: its name, if there are several."""
    paths = [document.file_path for document in reader.documents()]
    made = served_pointer(paths, collection, reader.meta().get("version"))
    return skill(skill_name(project), "its MCP server", made.text) if paths else None


def published(index: Path, project: str, access: SiteAccess) -> Skill:
    """The skill of a site, from its index; without an address in ``access``, that of its first page counts. Raises
    :class:`ArtifactError`."""
    with verify.open_checked(index) as reader:
        pages = [(document.file_path, document.url) for document in reader.documents()]
        version = reader.meta().get("version")
    roots = [url for path, url in pages if url is not None and url.endswith("/") and "/" not in path and is_index(path)]
    if not access.url and len(roots) == 1:
        access = access._replace(url=roots[0])
    site = access.url
    paths = [url[len(site) :] if url and site and url.startswith(site) else path for path, url in pages]
    made = published_pointer(paths, access, version)
    return skill(skill_name(project), access.url or "its site", made.text)


def publish(index: Path, site: Path, project: str, access: SiteAccess) -> tuple[str, ...]:
    """Write the skill of a site into its folder, and return the paths of the files. Other skills in the list of the
    site stay. Raises :class:`ConfigError` and :class:`BuildError`, and :class:`ArtifactError` for the index."""
    made = published(index, project, access)
    listed = site / INDEX
    with safe_files.writing(site):
        before = None
        if (state := safe_files.regular_file(listed)) is not None:  # a larger one is in no form that is known
            before = safe_files.text(listed, errors="replace") if state.st_size <= MAX_INDEX_BYTES else ""
        files = skill_files(made, before)
        for path, data in files.items():
            file = site / path
            if not Path(os.path.realpath(file.parent)).is_relative_to(os.path.realpath(site)):
                raise BuildError(f"{file.parent} is a link that leads out of {site}. Remove it, and try again.")
            file.parent.mkdir(parents=True, exist_ok=True)
            safe_files.update_file(file, data, flush=False)
    return tuple(files)


def skill_files(skill: Skill, before: str | None = None) -> Mapping[str, bytes]:
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
