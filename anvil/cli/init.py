"""``anvil init``: writes the configuration of a project, and the lines that keep its index in or out of git."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import click

from anvil import registry
from anvil.cli import options, output
from anvil.cli.program import DEFAULT_DOCS, OLDER_CONFIG, older_config_file
from anvil.errors import ConfigError
from anvil.formats.data_formats import toml_string
from anvil.git.ignore_rules import literal
from anvil.settings import index_url
from anvil.settings.configuration import CONFIG_NAME, configure, index_file, load_config, nearest_config
from anvil.settings.schema import INDEX_FOLDER, INDEX_NAME, Config, SourceOptions
from anvil.system import installation, safe_files

clients = registry.part("MCP clients")

TEMPLATE = f"""\
# Anvil: the documentation index. The most used keys, with their defaults where commented out.
# All keys: https://anvil-docs.github.io/anvil/reference/configuration/
docs = {{docs}}
# index = {{index}}

[source]
# include = {json.dumps(SourceOptions().include)}
# exclude = []
# max_file_bytes = 5000000

[chunking]
# max_chunk_size = 6000
# min_chunk_size = 200
# merge_short_sections = true
# slugs = "github"        # or "mkdocs": how anchors are made from headings

[embedding]
# provider = "local"      # "none": keywords only
# model = ""              # a folder, or a Hugging Face id, in place of the bundled model

[search]
# threshold = 0.0
"""


OLDER_KEYS = {
    "chunking.maxChunkSize": "max_chunk_size",
    "chunking.minChunkSize": "min_chunk_size",
    "chunking.mergeShort": "merge_short_sections",
    "embedding.provider": "provider",
}
"""Key of ``anvil.config.json`` -> key of ``anvil.toml``."""


@click.command("init", epilog="Example: anvil init --docs docs --no-commit-index")
@options.docs
@click.option(
    "--commit-index/--no-commit-index", default=None, help="Whether the index goes into git. Without it, init asks."
)
@click.option("--yes", "-y", is_flag=True, help="Ask nothing: without --commit-index, the index stays out of git.")
@click.option(
    "--client",
    type=click.Choice([*clients.CLIENTS, clients.ALL]),
    multiple=True,
    metavar="NAME",
    help=f"Instead: add the MCP server to the configuration file of a program: {', '.join(clients.CLIENTS)}; "
    f"{clients.ALL}: each that this project or this user has (repeatable).",
)
@click.option(
    "--scope",
    type=click.Choice(["project", "user"]),
    help="With --client: the project's file, or the user's file for all projects (default: the project's, if the "
    "client has one).",
)
@click.option("--print", "only_print", is_flag=True, help="With --client: show the change, write nothing.")
@click.option(
    "--name",
    help="With --client: the server's name in that file (default: docs; in a file of the user, the project's name).",
)
@click.option("--index", metavar="FILE", help="With --client and --links: the index to serve, a file or an address.")
@click.option(
    "--command",
    metavar="WORDS",
    help="With --client and --links: the command that starts anvil, such as 'uvx anvil-docs'.",
)
@click.option(
    "--links",
    is_flag=True,
    help="Instead: print links for a web page, 'Add to VS Code' and others, that add the server of a published index.",
)
@options.collected(clients.Setup, "setup")
def command(setup: Any, commit_index: bool | None, yes: bool, client: tuple[str, ...], links: bool) -> None:
    """Write anvil.toml, and the line that keeps the index in or out of git. Or set up an MCP client."""
    if client:
        setup.write(client)
        return
    if links:
        setup.print_links()
        return
    for name, value in asdict(setup).items():
        if value and name != "docs":
            option = "print" if name == "only_print" else name
            raise ConfigError(f"--{option} goes with --client. Name a client, such as --client cursor.")
    older = _older_config(setup.docs) if nearest_config(Path.cwd()) is None else None
    docs = setup.docs or (older.docs if older else None)
    config, base, config_file = _project(docs)
    folder = base / config.docs
    from anvil.documents.folder_advice import no_folder

    if not folder.is_dir():
        option = "the key docs" if docs is None and config_file is not None else "--docs"
        raise ConfigError(no_folder(folder, docs or config.docs, option))
    if index_url.is_remote(config.index or ""):
        raise ConfigError("'index' names a published index, which does not go into git. There is nothing to set up.")
    if commit_index is None:
        commit_index = False if yes else _ask_to_commit()
    index = index_file(config, base)
    if index.parent.name == INDEX_FOLDER:
        safe_files.ensure_inside_parent(index.parent)
    index = Path(os.path.realpath(index.parent), index.name)  # git adds no file whose path leads through a link
    root = base.resolve() if index.is_relative_to(base.resolve()) else index.parent
    if config_file is None and os.path.lexists(CONFIG_NAME):
        config_file = Path(CONFIG_NAME)  # a broken link
    if config_file is not None:
        output.say(f"{output.relative(config_file)} exists already and is not changed.")
    else:
        _write_config(Path(docs or config.docs).as_posix(), older)
    _put_into_git(index, root, commit_index)


def _write_config(docs: str, older: OlderConfig | None) -> None:
    """Write ``anvil.toml``, with the values of an older configuration if there is one."""
    text = TEMPLATE.format(docs=toml_string(docs), index=toml_string(f"{docs}/{INDEX_FOLDER}/{INDEX_NAME}"))
    for key, value in older.values.items() if older else ():
        text = re.sub(rf"^# {key} = [^ \n]+", f"{key} = {json.dumps(value)}", text, flags=re.MULTILINE)
    safe_files.put_file(Path(CONFIG_NAME), text)
    output.say(f"Wrote {CONFIG_NAME}{f' from {older.file}' if older else ''}.")
    if older and older.unused_keys:
        output.say(
            f"Not taken from {older.file}: {', '.join(older.unused_keys)}. The guide 'Moving to Anvil' says why."
        )


def _put_into_git(index: Path, root: Path, is_committed: bool) -> None:
    """Keep the index in git or out of it, by the files of git in ``root``, and print the next step."""
    name = literal(index.relative_to(root).as_posix())
    # Only Anvil writes into the usual folder of an index, so that folder can have an ignore file of its own.
    ignore_file = index.parent / ".gitignore" if index.parent.name == INDEX_FOLDER else None
    ignored = f"{name.rpartition('/')[0]}/" if ignore_file else name
    if ignore_file:
        # if the index is committed, other files in its folder, such as scratch files, are still ignored
        safe_files.put_file(ignore_file, f"*\n!.gitignore\n!{index.name}\n" if is_committed else "*\n")
    build = "" if index.is_file() else "anvil build, then "
    _set_line(root / ".gitattributes", f"{name.replace(' ', '[[:space:]]')} binary", present=is_committed)
    _set_line(root / ".gitignore", ignored, present=not is_committed)
    if is_committed:
        add = installation.line(["git", "add", output.relative(index.parent if ignore_file else index)])
        output.say(f"Next: {build}{add}, then anvil git install.")
    else:
        output.say(f"Next: {build}anvil search 'YOUR QUESTION'.")


def _ask_to_commit() -> bool:
    try:
        return click.confirm("Commit the index to git? (no: each machine or CI builds its own)", default=False)
    except click.Abort:
        if sys.stdin is not None and sys.stdin.isatty():
            raise
    output.say()
    raise ConfigError("There is no terminal to ask on. Give --commit-index or --no-commit-index.")


def _project(docs: str | None) -> tuple[Config, Path, Path | None]:
    """The configuration for the working folder, the folder that its paths are relative to, and its file or None.

    If ``docs`` is given and a configuration in a parent folder has another documentation folder, the working folder is
    a project of its own.
    """
    working_folder = Path.cwd()
    config_file = nearest_config(working_folder)
    if config_file is not None and docs is not None and config_file.parent != working_folder:
        parent_config, base = load_config(config_file)
        if (base / parent_config.docs).resolve() != Path(docs).resolve():
            return configure({}, os.environ, {"docs": docs}), working_folder, None
    return *load_config(config_file, {"docs": docs}), config_file


def _set_line(path: Path, line: str, *, present: bool) -> None:
    """Add a line to a file, or remove it, and print that if the file changed."""
    if safe_files.set_line(path, line, present=present):
        done = f"Added '{line}' to" if present else f"Removed '{line}' from"
        output.say(f"{done} {output.relative(path)}.")


class OlderConfig(NamedTuple):
    """An ``anvil.config.json``: its path, its documentation folder, its values by the keys of ``anvil.toml``, and its
    keys that ``anvil.toml`` does not have."""

    file: str
    docs: str | None
    values: Mapping[str, str | int | bool]
    unused_keys: Sequence[str]


def _older_config(docs: str | None) -> OlderConfig | None:
    """The older configuration of the working folder, or else of the documentation folder; None without one. Raises
    :class:`ConfigError` for values that are not valid."""
    from anvil.embedding.provider import create_provider

    file = older_config_file([docs or DEFAULT_DOCS])
    if file is None:
        return None
    try:
        table = json.loads(safe_files.text(Path(file)))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{file} cannot be read: {error}. Correct it, or remove it.") from None
    if not isinstance(table, dict):
        raise ConfigError(f"{file} must hold a JSON object. Correct it, or remove it.")
    flat: dict[str, Any] = {}  # with dotted keys, such as chunking.mergeShort
    for key, value in table.items():
        flat |= {f"{key}.{inner}": item for inner, item in value.items()} if isinstance(value, dict) else {key: value}
    values = {key: flat[older_key] for older_key, key in OLDER_KEYS.items() if older_key in flat}
    chunking = {key: value for key, value in values.items() if key != "provider"}
    embedding = {"provider": values["provider"]} if "provider" in values else {}
    folder = {"docs": flat["docs"]} if "docs" in flat and file == OLDER_CONFIG else {}
    config = configure({**folder, "chunking": chunking, "embedding": embedding}, origin=file)
    try:
        create_provider(config.embedding.provider, config.embedding)
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from None
    unused_keys = sorted(key for key in flat if key not in OLDER_KEYS and key != "docs")
    return OlderConfig(file=file, docs=folder.get("docs"), values=values, unused_keys=unused_keys)
