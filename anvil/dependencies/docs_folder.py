"""The folder of a repository that has its documentation, found by the configuration of site generators.

Configuration that is a program (``conf.py``, ``docusaurus.config.js``) is read as text and never run.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace

from anvil.settings.schema import Rule, Slugs
from anvil.values import PAGE_ENDINGS
from anvil.wording import counted

Generator = str
"""``mkdocs``, ``sphinx``, ``docusaurus``, ``vitepress``, ``astro``, ``folder`` or ``readme``."""
MAX_DEPTH = 4
"""Folders above a configuration file that is read."""
MAX_CONFIGS = 40
PLAIN_FOLDERS = ("docs", "doc", "documentation", "website/docs", "site/docs", "docs/docs", "www/docs", "content/docs")
_CONFIGS = re.compile(
    r"(?:mkdocs|zensical)[\w.-]*\.(?:ya?ml|toml)|conf\.py|docusaurus\.config\.[cm]?[jt]s|astro\.config\.[cm]?[jt]s"
    r"|(?:.*/)?\.vitepress/config(?:/index)?\.[cm]?[jt]s"
)
_ORDER = ("mkdocs", "docusaurus", "vitepress", "astro", "sphinx")
_UNWANTED = re.compile(r"(^|/)(node_modules|tests?|fixtures?|examples?|templates?|vendor|third_party|__\w+__|e2e)(/|$)")
_LANGUAGE = re.compile(
    r"(?:ar|az|bg|bn|ca|cs|da|de|el|en|es|et|fa|fi|fr|gu|he|hi|hr|hu|id|it|ja|ka|ko|lt|lv|mr|ms|nb|nl|pl|pt|ro|ru|sk|sl"
    r"|sq|sr|sv|ta|te|th|tr|uk|ur|uz|vi|zh)(?:[-_](?:[a-z]{2,4}|[A-Z]{2}|H[a-z]{3}))?"
)
_OTHER_FORMATS = {
    ".rst": "reStructuredText",
    ".adoc": "AsciiDoc",
    ".ipynb": "notebook",
    ".html": "HTML",
    ".rmd": "R Markdown",
}
_DOCS_DIR = re.compile(r"^docs_dir\s*[:=]\s*['\"]?([^'\"\n#]+)", re.MULTILINE)
_SRC_DIR = re.compile(r"\bsrcDir\s*:\s*['\"]([^'\"\n]+)['\"]")
_DOCUSAURUS_PATH = re.compile(r"\bpath\s*:\s*['\"]([^'\"\n]+)['\"]")
_MYST = re.compile(r"myst_parser|myst_nb|recommonmark|m2r2?")


@dataclass(frozen=True, slots=True)
class DocsFolder:
    """``path`` from the repository's root, ``.`` for that. ``include``: globs of its pages. ``evidence``: why it is the
    one. ``notes``: what was not understood."""

    path: str
    generator: Generator
    evidence: str
    slugs: Slugs = "github"
    include: tuple[str, ...] = tuple(f"**/*{ending}" for ending in PAGE_ENDINGS)
    exclude: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def rule(self) -> Rule:
        """The rule of the pages' addresses."""
        rules: dict[str, Rule] = {"docusaurus": "docusaurus", "vitepress": "vitepress"}
        return rules.get(self.generator, "directory")


def configurations(paths: Collection[str], directory: str | None = None) -> list[str]:
    """The files of a repository that are read to find the folder, nearest to the root first. ``directory``: the
    package's own folder; files in it come first."""

    def order(path: str) -> tuple[object, ...]:
        is_variant = posixpath.basename(path).startswith("mkdocs.") and path.count(".") > 1  # mkdocs.insiders.yml
        return not _is_below(path, directory), path.count("/"), is_variant, path

    found = []
    for path in paths:
        match = _CONFIGS.fullmatch(posixpath.basename(path)) or _CONFIGS.fullmatch(path)
        if match and path.count("/") <= MAX_DEPTH and not _UNWANTED.search(posixpath.dirname(path)):
            found.append(path)
    return sorted(found, key=order)[:MAX_CONFIGS]


def find(paths: Collection[str], read: Callable[[str], str], directory: str | None = None) -> DocsFolder | None:
    """The folder with most to say; None when nothing is documentation.

    ``paths``: all files of the commit. ``read``: the text of a file of :func:`configurations`. ``directory``: the
    folder of the package, in a repository of several.
    """
    pages = [path for path in paths if path.lower().endswith(PAGE_ENDINGS)]
    candidates = [
        each
        for path in configurations(paths, directory)
        if (each := _configured(path, read(path), pages)) is not None and _count(pages, each.path)
    ]
    own = [each for each in candidates if directory and _is_below(each.path, directory)]
    if own or candidates:
        chosen = max(own or candidates, key=lambda each: (-_ORDER.index(each.generator), _count(pages, each.path)))
        return _one_language(chosen, pages, candidates)
    prefixes = [f"{directory}/", ""] if directory else [""]
    for prefix in prefixes:
        for name in PLAIN_FOLDERS:
            actual = next((path for path in _folders(pages) if path.lower() == prefix.lower() + name), None)
            if actual is not None:
                return _one_language(DocsFolder(actual, "folder", f"the folder {actual}"), pages, [])
    for prefix in prefixes:
        names = (f"{prefix}readme.md".lower(), f"{prefix}readme.markdown".lower())
        readme = next((page for page in sorted(pages) if page.lower() in names), None)
        if readme is not None:
            name = posixpath.basename(readme)
            note = "It has no documentation folder: only its README is indexed."
            return DocsFolder(posixpath.dirname(readme) or ".", "readme", readme, include=(name,), notes=(note,))
    return None


def named(path: str) -> DocsFolder:
    """A folder that the user named."""
    return DocsFolder(posixpath.normpath(path.strip("/") or "."), "folder", "named")


def unread(paths: Collection[str], folder: DocsFolder) -> tuple[str, ...]:
    """Notes on files in the folder that are documentation in other formats."""
    if folder.generator == "readme":
        return ()
    return tuple(f"{kind} in {folder.path} are not read." for kind in other_formats(paths, folder.path))


def other_formats(paths: Collection[str], folder: str) -> list[str]:
    """The documentation in a folder that is not Markdown, such as ``30 reStructuredText files``."""
    counts: dict[str, int] = {}
    for path in paths:
        kind = _OTHER_FORMATS.get(posixpath.splitext(path)[1].lower())
        if kind and _is_below(path, folder):
            counts[kind] = counts.get(kind, 0) + 1
    return [counted(counts[kind], f"{kind} file") for kind in sorted(counts)]


def _configured(path: str, text: str, pages: Collection[str]) -> DocsFolder | None:
    folder, name = posixpath.split(path)

    def at(inner: str) -> str:
        joined = posixpath.normpath(posixpath.join(folder, inner.strip()))
        return "" if joined.startswith(("..", "/")) else joined

    if name.startswith(("mkdocs", "zensical")):
        match = _DOCS_DIR.search(text)
        return _made(at(match[1] if match else "docs"), "mkdocs", path, "mkdocs")
    if name == "conf.py":
        return _made(at("."), "sphinx", path, "github") if _MYST.search(text) else None
    if name.startswith("docusaurus"):
        named_paths = [at(inner) for inner in _DOCUSAURUS_PATH.findall(text)]
        places = [each for each in [*named_paths, at("docs"), at("../docs")] if each and _count(pages, each)]
        best = max(places, key=lambda each: ("blog" not in each, _count(pages, each)), default="")
        return _made(best, "docusaurus", path, "github")
    if name.startswith("astro"):
        return _made(at("src/content/docs"), "astro", path, "github")
    match = _SRC_DIR.search(text)
    root = posixpath.dirname(folder)
    if posixpath.basename(folder) != ".vitepress":
        root = posixpath.dirname(root)
    return _made(posixpath.normpath(posixpath.join(root, match[1] if match else ".")), "vitepress", path, "vitepress")


def _made(path: str, generator: Generator, evidence: str, slugs: Slugs) -> DocsFolder | None:
    return DocsFolder(path, generator, evidence, slugs) if path else None


def _one_language(chosen: DocsFolder, pages: Collection[str], candidates: Collection[DocsFolder]) -> DocsFolder:
    """Of a folder with the same pages in several languages, those in English.

    ``docs/en/docs`` may have its configuration in ``docs/en``, with ``docs/de`` next to it. Or one folder has all: then
    ``en`` and ``de`` are in it, or the pages themselves and ``de``.
    """
    parts = chosen.path.split("/")
    for at, part in enumerate(parts):
        if part != "en" and _LANGUAGE.fullmatch(part):
            english = "/".join([*parts[:at], "en", *parts[at + 1 :]])
            twin = next((each for each in candidates if each.path == english), None)
            if twin is not None:
                return twin
    prefix = "" if chosen.path == "." else f"{chosen.path}/"
    own = {page.removeprefix(prefix) for page in pages if page.startswith(prefix)}
    inside: dict[str, set[str]] = {}
    for page in own:
        top, between, rest = page.partition("/")
        if between and _LANGUAGE.fullmatch(top):
            inside.setdefault(top, set()).add(rest)
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


def _folders(pages: Collection[str]) -> Iterator[str]:
    seen: set[str] = set()
    for page in sorted(pages):
        folder = posixpath.dirname(page)
        while folder and folder not in seen:
            seen.add(folder)
            yield folder
            folder = posixpath.dirname(folder)
