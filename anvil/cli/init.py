"""``anvil init``."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import click

from anvil import ownfiles
from anvil.cli import options
from anvil.clients import CLIENTS, SERVER, Client, difference, entry, merged, path_of
from anvil.config import INDEX_FOLDER, INDEX_NAME
from anvil.configfile import CONFIG_NAME
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
    docs = docs or "docs"
    folder = Path(docs)
    if not folder.is_dir():
        raise ConfigError(f"There is no folder {docs}. Name the documentation folder with --docs.")
    index = (folder / INDEX_FOLDER / INDEX_NAME).as_posix()
    if commit_index is None:
        commit_index = click.confirm("Commit the index to git? (no: each machine or CI builds its own)", default=False)
    config = Path(CONFIG_NAME)
    if os.path.lexists(config):
        click.echo(f"{config} stands already and is left as it is.")
    else:
        _write(config, TEMPLATE.format(docs=_quoted(folder.as_posix()), index=_quoted(index)))
        click.echo(f"Wrote {config}.")
    own = folder / INDEX_FOLDER / ".gitignore"
    ignored = f"{own.parent.as_posix()}/"
    ownfiles.check_folder(own.parent)
    own.parent.mkdir(exist_ok=True)
    if commit_index:
        _write(own, f"*\n!.gitignore\n!{INDEX_NAME}\n")  # scratch files stay out
        _add_line(Path(".gitattributes"), f"{index} binary")
        _drop_line(Path(".gitignore"), ignored)
    else:
        _write(own, "*\n")
        _add_line(Path(".gitignore"), ignored)
        _drop_line(Path(".gitattributes"), f"{index} binary")
    if commit_index:
        click.echo(f"Next: anvil build, then git add {own.parent.as_posix()}, then anvil git install.")
    else:
        click.echo("Next: anvil build, then anvil search.")


def _set_up(client: Client, docs: str | None, only_print: bool) -> None:
    """Put ``anvil serve`` into the client's file, next to what stands there."""
    project = Path.cwd()
    if docs is None and Path(CONFIG_NAME).is_file():
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
    click.echo(f"Added '{line}' to {path}.")


def _drop_line(path: Path, line: str) -> None:
    if path.is_file() and line in (lines := path.read_text(encoding="utf-8").splitlines()):
        _write(path, "".join(f"{each}\n" for each in lines if each != line))
        click.echo(f"Took '{line}' out of {path}.")
