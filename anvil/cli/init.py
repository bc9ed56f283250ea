"""``anvil init``."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

from anvil import addresses, ownfiles
from anvil.cli import options, output
from anvil.clients import CLIENTS, SERVER, Client, difference, entry, merged, path_of
from anvil.config import INDEX_FOLDER, Config
from anvil.configfile import CONFIG_NAME, index_file, load_config, nearest_config
from anvil.configuring import configure
from anvil.errors import ConfigError

TEMPLATE = """\
# Anvil: the documentation index. All keys, with their defaults where commented out.
docs = {docs}
# index = {index}

[source]
# include = ["**/*.md", "**/*.mdx", "**/*.markdown"]
# exclude = []
# max_file_bytes = 5000000

[chunking]
# max_chunk_size = 6000
# min_chunk_size = 200
# merge_short_sections = true
# slugs = "github"        # or "mkdocs": how anchors are made from headings

[embedding]
# provider = "local"      # or "openai", "none"
# model = ""              # a folder, or a Hugging Face id, in place of the bundled model

[search]
# threshold = 0.0
"""


@click.command("init", epilog="Example: anvil init --docs docs --no-commit-index")
@options.docs
@click.option("--commit-index/--no-commit-index", default=None, help="Does the index go into git? Asked if not said.")
@click.option(
    "--client", type=click.Choice(list(CLIENTS)), help="Instead: tell this program of the MCP server, in its own file."
)
@click.option("--print", "only_print", is_flag=True, help="With --client: show the change, write nothing.")
def command(docs: str | None, commit_index: bool | None, client: str | None, only_print: bool) -> None:
    """Write anvil.toml, and the line that keeps the index in or out of git. Or set up an MCP client."""
    if client is not None:
        _set_up(CLIENTS[client], docs, only_print)
        return
    if only_print:
        raise ConfigError("--print goes with --client. Name a client, such as --client cursor.")
    config, base, found = _project(docs)
    folder = base / config.docs
    if not folder.is_dir():
        raise ConfigError(f"There is no folder {docs or config.docs}. Name the documentation folder with --docs.")
    if addresses.is_remote(config.index or ""):
        raise ConfigError("The index is published elsewhere, so git has nothing to do with it. Leave 'index' as it is.")
    if commit_index is None:
        commit_index = _asked()
    index = Path(os.path.abspath(index_file(config, base)))
    home = base if index.is_relative_to(base) else index.parent
    name = index.relative_to(home).as_posix()
    if found is None and os.path.lexists(CONFIG_NAME):
        found = Path(CONFIG_NAME)  # a link that leads nowhere
    if found is not None:
        click.echo(f"{output.relative(found)} stands already and is left as it is.")
    else:
        written = TEMPLATE.format(docs=_quoted(Path(docs or config.docs).as_posix()), index=_quoted(name))
        _write(Path(CONFIG_NAME), written)
        click.echo(f"Wrote {CONFIG_NAME}.")
    own = index.parent / ".gitignore" if index.parent.name == INDEX_FOLDER else None  # a folder of nothing but ours
    ignored = f"{Path(name).parent.as_posix()}/" if own else name
    if own:
        ownfiles.check_folder(own.parent)
        own.parent.mkdir(exist_ok=True)
        kept = f"*\n!.gitignore\n!{index.name}\n" if commit_index else "*\n"  # scratch files stay out
        _write(own, kept)
    if commit_index:
        _add_line(home / ".gitattributes", f"{name} binary")
        _drop_line(home / ".gitignore", ignored)
        added = output.relative(index.parent if own else index)
        click.echo(f"Next: anvil build, then git add {added}, then anvil git install.")
    else:
        _add_line(home / ".gitignore", ignored)
        _drop_line(home / ".gitattributes", f"{name} binary")
        click.echo("Next: anvil build, then anvil search.")


def _asked() -> bool:
    try:
        return click.confirm("Commit the index to git? (no: each machine or CI builds its own)", default=False)
    except click.Abort:
        if sys.stdin is not None and sys.stdin.isatty():
            raise
    click.echo()
    raise ConfigError("Nobody is there to be asked. Give --commit-index or --no-commit-index.")


def _project(docs: str | None) -> tuple[Config, Path, Path | None]:
    """The configuration that holds here, the folder its paths start from, and its file, if there is one.

    ``docs`` named on the command line starts a project of its own below another one's configuration.
    """
    here = Path.cwd()
    found = nearest_config(here)
    if found is not None and docs is not None and found.parent != here:
        around, base = load_config(found)
        if (base / around.docs).resolve() != Path(docs).resolve():
            return configure({}, os.environ, {"docs": docs}), here, None
    return *load_config(found, {"docs": docs}), found


def _set_up(client: Client, docs: str | None, only_print: bool) -> None:
    """Put ``anvil serve`` into the client's file, next to what stands there."""
    config = nearest_config(Path.cwd()) if docs is None else None
    project = config.parent if config else Path.cwd()
    if config:
        server = entry(client, project, "--config", project)  # the folder: the file is not thereby trusted
    else:
        folder = Path(os.path.abspath(docs or "docs"))
        if not folder.is_dir():
            raise ConfigError(f"There is no folder {docs or 'docs'}. Name the documentation folder with --docs.")
        server = entry(client, project, "--docs", folder)
    file = path_of(client, project)
    if file.is_relative_to(project) and not Path(os.path.realpath(file)).is_relative_to(os.path.realpath(project)):
        raise ConfigError(f"{file} is a link that leads out of the project. Remove it, and try again.")
    shown = os.path.relpath(file) if file.is_relative_to(project) else str(file)
    try:
        old = file.read_bytes().decode("utf-8") if file.exists() else None
        new = merged(old, client, SERVER, server)
        if new == old:
            click.echo(f"{client.title} knows of the server already: {shown} is left as it is.")
            return
        click.echo(difference(old, new, Path(shown).as_posix()), nl=False)
        if only_print:
            return
        _replace(file, new)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{shown} is not UTF-8 text. Save it as UTF-8, and try again.") from error
    except OSError as error:
        raise ConfigError(f"{shown} cannot be written ({error.strerror}). Paste what --print shows.") from error
    except ConfigError as error:
        raise ConfigError(f"{shown}: {error}") from error
    click.echo(f"Wrote {shown}. Restart {client.title}, or let it reload its MCP servers.")


def _replace(file: Path, text: str) -> None:
    """Write a file whole or not at all; a link to it stays a link."""
    target = Path(os.path.realpath(file))
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(target.name + ".anvil-new")
    try:
        ownfiles.clear(fresh)
        with open(fresh, "xb", opener=ownfiles.opener) as opened:
            opened.write(text.encode("utf-8"))
        if target.exists():
            shutil.copymode(target, fresh)
        os.replace(fresh, target)
    finally:
        fresh.unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    with open(path, "w", encoding="utf-8", opener=ownfiles.opener) as file:
        file.write(text)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _add_line(path: Path, line: str) -> None:
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if line in text.splitlines():
        return
    _write(path, text + ("\n" if text and not text.endswith("\n") else "") + line + "\n")
    click.echo(f"Added '{line}' to {output.relative(path)}.")


def _drop_line(path: Path, line: str) -> None:
    if path.is_file() and line in (lines := path.read_text(encoding="utf-8").splitlines()):
        _write(path, "".join(f"{each}\n" for each in lines if each != line))
        click.echo(f"Took '{line}' out of {output.relative(path)}.")
