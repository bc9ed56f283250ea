"""The documentation folder of a repository at one commit: finding it, and fetching its pages.

Only a part of the repository is fetched: the names of all files, then the configuration of the site's generator, the
pages of its folder, and the files that they include from elsewhere in the repository. Configuration that is a program
(``conf.py``, ``docusaurus.config.js``) is read as text and never run.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from anvil.dependencies.remote_repository import RemoteRepository
from anvil.dependencies.values import LockedDocs
from anvil.documents.document_source import Selection
from anvil.documents.folder_advice import named_formats, other_formats
from anvil.documents.git_tree import CommitTree
from anvil.errors import FetchError, NotFound, SourceError
from anvil.formats.version_names import LANGUAGE_NAME
from anvil.git.objects import Entry, start_of
from anvil.git.repository import Repository
from anvil.settings.schema import Slugs, SourceOptions
from anvil.text import includes
from anvil.values import PAGE_ENDINGS, has_page_ending
from anvil.wording import counted

MAX_CONFIG_BYTES = 500_000
"""Bytes of a configuration file that are read."""
MAX_ROUNDS = 4
"""Requests for files that pages include. Each of them can include more files."""


def ensure_tagged(remote: RemoteRepository, entry: LockedDocs) -> None:
    """Raise :class:`FetchError` unless the tag of an entry of ``anvil.lock`` still leads to its commit.

    The commit alone is not enough: hosts such as GitHub also send commits of forks by their ids, so an edited lock
    could name anybody's commit under the address of a known project.
    """
    tagged = remote.tags().get(entry.tag or "")
    if tagged is None:
        raise FetchError(
            f"{remote.shown} does not have the tag {entry.tag} any more, which anvil.lock names. "
            f"To search again, run: anvil deps update {entry.name}"
        )
    if tagged != entry.commit:
        raise remote.moved_tag_error(entry.tag or "", tagged, entry.commit or "")


def read(
    remote: RemoteRepository, commit: str, tag: str | None, folder: str | None = None, directory: str | None = None
) -> tuple[CommitTree, DocsFolder, list[str]]:
    """Fetch the pages of a commit. Returns their source, the documentation folder, and notes, such as on unread files.

    ``folder``: the documentation folder; None means that it is found by the configuration of a generator.
    ``directory``: the package's folder in the repository. Raises :class:`NotFound` if there is no documentation, and
    :class:`FetchError`.
    """
    remote.fetch(commit, tag)
    tree = remote.tree()
    chosen = _choose_folder(remote, tree, folder, directory)
    options = SourceOptions(include=chosen.include, exclude=chosen.exclude)
    pages = _pages(tree, chosen, options)
    if not pages:
        raise NotFound(f"There is no Markdown in {chosen.path} of {remote.shown} at {tag or commit[:12]}.")
    links = (entry for entry in tree.values() if entry.kind == "symlink")  # CommitTree reads where each of them leads
    remote.fetch_blobs(entry.id for entry in (*pages.values(), *links))
    repository = remote.repository()
    missing = _fetch_included(remote, repository, tree, pages, chosen)
    kinds = unread(tree, chosen)
    notes = [*chosen.notes, *([f"Not read in {chosen.path}: {', '.join(kinds)}."] if kinds else [])]
    if missing:
        notes.append(f"{counted(missing, 'included file')} cannot be read.")
    try:
        return CommitTree(remote.folder / chosen.path, commit, options), chosen, notes
    except SourceError as error:
        raise NotFound(str(error)) from None


def _choose_folder(
    remote: RemoteRepository, tree: Mapping[str, Entry], folder: str | None, directory: str | None
) -> DocsFolder:
    named = None
    if folder is not None:  # the user gave it
        named = DocsFolder(posixpath.normpath(folder.strip("/") or "."), "folder", "named")
    configs = configurations(tree, directory)
    files = {path: tree[path] for path in configs if tree[path].kind == "file"}
    remote.fetch_blobs(entry.id for entry in files.values())
    repository = remote.repository()

    def read(path: str) -> str:
        data = repository.read_blob(files[path].id) if path in files else b""
        return data[:MAX_CONFIG_BYTES].decode("utf-8", "replace")

    configured = find_folder(tree, read, directory)
    if named is not None:  # if this is the folder of a generator, that tells how its anchors are made
        return configured if configured is not None and configured.path == named.path else named
    if configured is None:
        others = named_formats(other_formats(tree))
        hint = f" It has {', '.join(others)}, which Anvil does not read." if others else ""
        raise NotFound(f"There is no Markdown documentation in {remote.shown}.{hint}")
    return configured


def _pages(tree: Mapping[str, Entry], folder: DocsFolder, options: SourceOptions) -> dict[str, Entry]:
    """The pages, also symbolic links, by their paths from the repository's root."""
    prefix = start_of(folder.path)
    selection = Selection(options)
    return {
        path: entry
        for path, entry in tree.items()
        if path.startswith(prefix) and entry.kind in ("file", "symlink") and selection.wants(path[len(prefix) :])
    }


def _fetch_included(
    remote: RemoteRepository,
    repository: Repository,
    tree: Mapping[str, Entry],
    pages: Mapping[str, Entry],
    folder: DocsFolder,
) -> int:
    """Fetch files that pages include, and targets of symbolic links. Returns the number of missing included files."""
    for _ in range(MAX_ROUNDS):
        wanted: set[str] = set()
        missing = 0

        # Defaults bind the values of this round: the loop assigns both names again.
        def file(path: str, wanted: set[str] = wanted, repository: Repository = repository) -> includes.IncludedFile:
            entry = tree.get(path)
            if entry is None or entry.kind != "file" or includes.is_private(path):
                return includes.IncludedFile("", None)
            if not remote.has(entry.id):
                wanted.add(entry.id)
                return includes.IncludedFile(entry.id, None)
            data = repository.read_blob(entry.id)
            return includes.IncludedFile(entry.id, data.decode("utf-8", "replace"))

        prefix, look = start_of(folder.path), includes.Look(folder.path, file)
        for path, page in sorted(pages.items()):
            text = repository.read_blob(page.id).decode("utf-8", "replace")
            if tree[path].kind == "symlink":
                target = posixpath.join(posixpath.dirname(path), text)
                entry = tree.get(posixpath.normpath(target))
                if entry is not None and entry.kind == "file" and not remote.has(entry.id):
                    wanted.add(entry.id)
            elif includes.may_include(text):
                expanded = includes.expand(text, path[len(prefix) :], look)
                missing += len(expanded.missing)
        if not wanted:
            return missing
        remote.fetch_blobs(wanted)
        repository = remote.repository()
    return missing


# --- which folder has the documentation ------------------------------------------------------------------------

Generator = Literal["mkdocs", "sphinx", "docusaurus", "vitepress", "astro", "mdbook", "folder", "readme"]
MAX_DEPTH = 4
"""Folders above a configuration file."""
MAX_CONFIGS = 40
PLAIN_FOLDERS = ("docs", "doc", "documentation", "website/docs", "site/docs", "docs/docs", "www/docs", "content/docs")
_CONFIGS = re.compile(
    r"(?:mkdocs|zensical)[\w.-]*\.(?:ya?ml|toml)|book\.toml|conf\.py|docusaurus\.config\.[cm]?[jt]s|astro\.config\.[cm]?[jt]s"
    r"|(?:.*/)?\.vitepress/config(?:/index)?\.[cm]?[jt]s"
)
# If a repository has configurations of several generators, the first of these is taken.
_ORDER: tuple[Generator, ...] = ("mkdocs", "docusaurus", "vitepress", "astro", "mdbook", "sphinx")
# Folders with configurations of samples, tests and other projects
_UNWANTED = re.compile(r"(^|/)(node_modules|tests?|fixtures?|examples?|templates?|vendor|third_party|__\w+__|e2e)(/|$)")
_DOCS_DIR = re.compile(r"^docs_dir\s*[:=]\s*['\"]?([^'\"\n#]+)", re.MULTILINE)
_BOOK_SRC = re.compile(r"^src\s*=\s*['\"]([^'\"\n]+)", re.MULTILINE)
_SRC_DIR = re.compile(r"\bsrcDir\s*:\s*['\"]([^'\"\n]+)['\"]")
_DOCUSAURUS_PATH = re.compile(r"\bpath\s*:\s*['\"]([^'\"\n]+)['\"]")
# Extensions with which Sphinx reads Markdown
_MYST = re.compile(r"myst_parser|myst_nb|recommonmark|m2r2?")


@dataclass(frozen=True, slots=True)
class DocsFolder:
    """A documentation folder. ``path``: from the repository's root, which is ``.``. ``evidence``: the configuration
    file or the folder that shows it. ``include`` and ``exclude``: globs of its pages. ``notes``: for people."""

    path: str
    generator: Generator
    evidence: str
    slugs: Slugs = "github"
    include: tuple[str, ...] = tuple(f"**/*{ending}" for ending in PAGE_ENDINGS)
    exclude: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())


def configurations(paths: Collection[str], directory: str | None = None) -> list[str]:
    """The configuration files of generators in a repository, nearest to the root first. ``directory``: the package's
    folder, whose files come first."""

    def order(path: str) -> tuple[object, ...]:
        is_variant = posixpath.basename(path).startswith("mkdocs.") and path.count(".") > 1  # mkdocs.insiders.yml
        return not _is_below(path, directory), path.count("/"), is_variant, path

    configs = []
    for path in paths:
        match = _CONFIGS.fullmatch(posixpath.basename(path)) or _CONFIGS.fullmatch(path)
        if match and path.count("/") <= MAX_DEPTH and not _UNWANTED.search(posixpath.dirname(path)):
            configs.append(path)
    return sorted(configs, key=order)[:MAX_CONFIGS]


def find_folder(paths: Collection[str], read: Callable[[str], str], directory: str | None = None) -> DocsFolder | None:
    """The documentation folder of a repository: of the first generator in ``_ORDER`` the one with most pages, else a
    folder such as ``docs``, else the one with the README. None if there is no documentation.

    ``paths``: all files of the commit. ``read``: gives the text of a file of :func:`configurations`. ``directory``: the
    package's folder, in a repository with several.
    """
    pages = [path for path in paths if has_page_ending(path)]
    folders = (_configured_folder(path, read(path), pages) for path in configurations(paths, directory))
    candidates = [folder for folder in folders if folder is not None and _count(pages, folder.path)]
    own = [folder for folder in candidates if directory and _is_below(folder.path, directory)]
    if own or candidates:
        chosen = max(own or candidates, key=lambda docs: (-_ORDER.index(docs.generator), _count(pages, docs.path)))
        return _one_language(chosen, pages, candidates)
    prefixes = [f"{directory}/", ""] if directory else [""]
    spellings = {folder.lower(): folder for page in sorted(pages, reverse=True) for folder in _above(page)}
    for prefix in prefixes:
        for name in PLAIN_FOLDERS:
            if (actual := spellings.get(prefix.lower() + name)) is not None:
                return _one_language(DocsFolder(actual, "folder", f"the folder {actual}"), pages, [])
    for prefix in prefixes:
        names = (f"{prefix}readme.md".lower(), f"{prefix}readme.markdown".lower())
        readme = next((page for page in sorted(pages) if page.lower() in names), None)
        if readme is not None:
            name = posixpath.basename(readme)
            note = "It has no documentation folder: only its README is indexed."
            return DocsFolder(posixpath.dirname(readme) or ".", "readme", readme, include=(name,), notes=(note,))
    return None


def unread(paths: Collection[str], folder: DocsFolder) -> list[str]:
    """The other formats of documentation in the folder, each with its number of files."""
    inside = (path for path in paths if folder.generator != "readme" and _is_below(path, folder.path))
    return named_formats(other_formats(inside))


def _configured_folder(path: str, text: str, pages: Collection[str]) -> DocsFolder | None:
    folder, name = posixpath.split(path)

    def at(inner: str) -> str:
        joined = posixpath.normpath(posixpath.join(folder, inner.strip()))
        return "" if joined.startswith(("..", "/")) else joined

    docs: str
    generator: Generator
    slugs: Slugs = "github"
    if name.startswith(("mkdocs", "zensical")):
        match = _DOCS_DIR.search(text)
        docs, generator, slugs = at(match[1] if match else "docs"), "mkdocs", "mkdocs"
    elif name == "book.toml":
        match = _BOOK_SRC.search(text)
        docs, generator = at(match[1] if match else "src"), "mdbook"
    elif name == "conf.py":
        docs, generator = at(".") if _MYST.search(text) else "", "sphinx"
    elif name.startswith("docusaurus"):
        named_paths = [at(inner) for inner in _DOCUSAURUS_PATH.findall(text)]
        folders = [path for path in [*named_paths, at("docs"), at("../docs")] if path and _count(pages, path)]
        # the file names a path for each plugin, one of which may be the blog
        docs = max(folders, key=lambda path: ("blog" not in path, _count(pages, path)), default="")
        generator = "docusaurus"
    elif name.startswith("astro"):
        docs, generator = at("src/content/docs"), "astro"
    else:  # .vitepress/config.ts or .vitepress/config/index.ts
        match = _SRC_DIR.search(text)
        above = ".." if posixpath.basename(folder) == ".vitepress" else "../.."
        docs, generator, slugs = at(posixpath.join(above, match[1] if match else ".")), "vitepress", "vitepress"
    return DocsFolder(docs, generator, path, slugs) if docs else None


def _one_language(chosen: DocsFolder, pages: Collection[str], candidates: Collection[DocsFolder]) -> DocsFolder:
    """The folder without translations of its pages.

    Each language may have a configuration of its own, such as those in ``docs/en`` and ``docs/de``. Or one folder has
    all languages: ``en`` and ``de`` are folders in it, or only ``de`` is, beside the pages in English.
    """
    parts = chosen.path.split("/")
    for at, part in enumerate(parts):
        if part != "en" and LANGUAGE_NAME.fullmatch(part):
            english = "/".join([*parts[:at], "en", *parts[at + 1 :]])
            twin = next((each for each in candidates if each.path == english), None)
            if twin is not None:
                return twin
    prefix = start_of(chosen.path)
    own = {page.removeprefix(prefix) for page in pages if page.startswith(prefix)}
    inside: dict[str, set[str]] = {}
    for page in own:
        top, slash, inner_path = page.partition("/")
        if slash and LANGUAGE_NAME.fullmatch(top):
            inside.setdefault(top, set()).add(inner_path)
    original = inside.pop("en", own)
    translations = sorted(top for top, names in inside.items() if len(names & original) * 2 > len(names))
    if not translations:
        return chosen
    note = f"{chosen.path} has its pages in {len(translations) + 1} languages: only English is indexed."
    return replace(chosen, exclude=tuple(f"{top}/**" for top in translations), notes=(*chosen.notes, note))


def _count(pages: Collection[str], folder: str) -> int:
    return sum(_is_below(page, folder) for page in pages)


def _is_below(path: str, folder: str | None) -> bool:
    return folder is not None and (folder == "." or path == folder or path.startswith(f"{folder}/"))


def _above(page: str) -> Iterator[str]:
    while page := posixpath.dirname(page):
        yield page
