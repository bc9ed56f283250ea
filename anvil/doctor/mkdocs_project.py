"""The MkDocs plugin, where a project uses it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from anvil.doctor import examined_project
from anvil.doctor.examined_project import ExaminedProject, Result
from anvil.errors import ConfigError
from anvil.system import installation, safe_files


def examine(project: ExaminedProject) -> Iterator[Result]:
    """The plugin, where ``mkdocs.yml`` names it."""
    file = project.base / "mkdocs.yml"
    if not file.is_file():
        return
    try:
        written = examined_project.read(file)
    except ConfigError as error:
        yield Result("wrong", f"{project.shown(file)} {error}")
        return
    if not has_plugin(written):
        return
    unrun = find(project.folder)
    if unrun is not None:
        yield Result("wrong", unrun.text, project.at(unrun.config.parent, unrun.command))
        return
    missing = find_spec("mkdocs") is None
    if missing:
        text = f"{project.shown(file)} names the plugin, but mkdocs is not installed here."
        yield Result("note", text, installation.install_extras("mkdocs"))
    folder = file.parent / str(written.get("docs_dir") or "docs")
    if folder.resolve() != project.folder.resolve():
        site, named = project.shown(folder), project.shown(project.folder)
        text = f"The site is built from {site}, but the configuration names {named}. Set both to the same folder."
        yield Result("note", text)
    elif not missing:
        yield Result("ok", f"{project.shown(file)} names the plugin, and it can run.")


MKDOCS = ("mkdocs.yml", "mkdocs.yaml")
CONFIG = "zensical.toml"
MAX_BUILD_FILE_BYTES = 200_000
"""Files of builds that are larger are not read."""
_BUILD_FILES = (
    "requirements*.txt",
    "requirements/*.txt",
    "docs/requirements*.txt",
    "pyproject.toml",
    "tox.ini",
    "noxfile.py",
    "Makefile",
    "justfile",
    "package.json",
    ".readthedocs.yml",
    ".readthedocs.yaml",
    ".gitlab-ci.yml",
    "netlify.toml",
    ".github/workflows/*.yml",
    ".github/workflows/*.yaml",
)
"""Files that say how a site is built."""
_NAMED = re.compile(r"(?<![\w./-])zensical(?![\w/-])")
_RUN = re.compile(r"(?<![\w./-])zensical\s+(?:build|serve)\b")
_MKDOCS_RUN = re.compile(r"(?<![\w./-])(?:mkdocs\s+(?:build|gh-deploy)|mike\s+deploy)\b")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_SITE_BUILD = re.compile(r"\banvil(?:-docs)?\b.*\s--site\b|anvil-docs/anvil@[\s\S]*?\n\s+site:")


class UnrunPlugin(NamedTuple):
    """A plugin that does not run: the configuration that names it, what shows that Zensical builds the site, and the
    command that does both builds."""

    config: Path
    evidence: str
    command: str

    @property
    def text(self) -> str:
        """What is wrong, and what to do."""
        return (
            f"{self.config.name} has the plugin 'anvil', but Zensical builds this site ({self.evidence}) and does not "
            "run the plugin: the site has no index. Remove the plugin, and build the index after the site."
        )


def find(docs: Path) -> UnrunPlugin | None:
    """The plugin that does not run, of the project that a documentation folder belongs to.

    None where there is no such plugin, where nothing shows that Zensical builds the site, where MkDocs still does, and
    where a build of the index after the site is configured.
    """
    folder = _project(docs)
    if folder is None:
        return None
    config = next(folder / name for name in MKDOCS if (folder / name).is_file())
    try:
        written = examined_project.read(config)
    except ConfigError:  # `anvil doctor` reports it
        return None
    if not has_plugin(written):
        return None
    texts = dict(_build_files(folder))
    if any(_SITE_BUILD.search(text) for text in texts.values()):
        return None
    evidence = _evidence(folder, texts)
    if evidence is None:
        return None
    site = str(written.get("site_dir") or "site")
    sources = os.path.relpath(docs, folder).replace(os.sep, "/")
    command = f"zensical build && anvil build --site {site} --docs {sources}"
    return UnrunPlugin(config, evidence, command)


def has_plugin(written: Any) -> bool:
    """Whether a configuration of MkDocs names Anvil's plugin."""
    plugins = written.get("plugins") if isinstance(written, dict) else None
    names = [name for plugin in plugins or () for name in (plugin if isinstance(plugin, dict) else [plugin])]
    return "anvil" in names


def _project(docs: Path) -> Path | None:
    """The nearest folder with a configuration of MkDocs, not above the repository's root."""
    start = Path(os.path.abspath(docs))
    for folder in (start, *start.parents):
        if any((folder / name).is_file() for name in MKDOCS):
            return folder
        if (folder / ".git").exists():
            return None
    return None


def _build_files(folder: Path) -> Iterator[tuple[str, str]]:
    """(path, text without comments) of the files that say how a site is built: in its folder, and at the root of the
    repository."""
    root = next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)
    for base in dict.fromkeys((folder, root)):
        for pattern in _BUILD_FILES:
            for file in sorted(base.glob(pattern)):
                try:
                    text = safe_files.text(file, MAX_BUILD_FILE_BYTES, "replace")
                except OSError:  # such as a broken link: it shows nothing
                    continue
                lines = (_COMMENT.sub("", line) for line in text.splitlines())
                yield file.relative_to(base).as_posix(), "\n".join(lines)


def _evidence(folder: Path, texts: Mapping[str, str]) -> str | None:
    """What shows that Zensical builds the site of a folder."""
    if (folder / CONFIG).is_file():
        return f"there is {CONFIG}"
    if any(map(_MKDOCS_RUN.search, texts.values())) and not any(map(_RUN.search, texts.values())):
        return None  # the package is there to be tried, or for tests
    named = next((path for path, text in texts.items() if _NAMED.search(text)), None)
    if named is not None:
        return f"{named} names it"
    if find_spec("zensical") is not None and find_spec("mkdocs") is None:
        return "it is installed here, and MkDocs is not"
    return None
