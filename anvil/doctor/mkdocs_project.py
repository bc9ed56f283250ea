"""The MkDocs plugin, where a project uses it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from anvil.doctor import yaml_file, zensical_project
from anvil.doctor.examined_project import Place
from anvil.doctor.values import Finding
from anvil.errors import ConfigError
from anvil.system import installation


def examine(place: Place) -> Iterator[Finding]:
    """The plugin, where ``mkdocs.yml`` names it."""
    file = place.project / "mkdocs.yml"
    if not file.is_file():
        return
    try:
        written = yaml_file.read(file)
    except ConfigError as error:
        yield Finding("mkdocs", "wrong", f"{place.shown(file)} {error}")
        return
    if not zensical_project.has_plugin(written):
        return
    unrun = zensical_project.find(place.folder)
    if unrun is not None:
        yield Finding("mkdocs", "wrong", unrun.text, place.at(unrun.config.parent, unrun.command))
        return
    missing = find_spec("mkdocs") is None
    if missing:
        text = f"{place.shown(file)} names the plugin, but mkdocs is not installed here."
        yield Finding("mkdocs", "note", text, installation.install_extras("mkdocs"))
    folder = file.parent / str(written.get("docs_dir") or "docs")
    if folder.resolve() != place.folder.resolve():
        text = f"The site is built from {place.shown(folder)}, but the configuration names {place.shown(place.folder)}."
        yield Finding("mkdocs", "note", f"{text} Set both to the same folder.")
    elif not missing:
        yield Finding("mkdocs", "ok", f"{place.shown(file)} names the plugin, and it can run.")
