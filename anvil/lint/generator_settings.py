"""The generator that makes a site of the documentation, found by its configuration, and its rules for pages and links.

YAML is read as data: tags such as ``!ENV`` and ``!!python/name`` are never executed. If the configuration is a program
(Docusaurus, VitePress), only plain strings are read from it.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from anvil.documents.repository_files import FileTree
from anvil.formats import data_formats
from anvil.lint.link_targets import Generator, SiteRules, join
from anvil.settings.schema import Rule, SiteOptions, Slugs

_GENERATORS: Mapping[Rule, Generator] = {
    "directory": "mkdocs",
    "html": "mkdocs",
    "docusaurus": "docusaurus",
    "vitepress": "vitepress",
    "hugo": "unknown",
    "github": "github",
}
_SCRIPTS = (".js", ".ts", ".mjs", ".mts", ".cjs", ".cts", ".json")
_EVERY_SLUG: tuple[Slugs, ...] = ("github", "mkdocs", "hugo", "vitepress")
_SITE_FOLDERS = ("website", "site", "www")
"""Folders beside the documentation that often have Docusaurus's configuration."""
_HUGO = frozenset({"hugo.toml", "hugo.yaml", "hugo.yml", "hugo.json", "config.toml", "config.yaml", "config.yml"})
"""Configuration files of Hugo beside its folder ``content``. They may also be in ``config/_default``."""
_OTHERS = frozenset(
    """
    conf.py book.toml _config.yml astro.config.mjs astro.config.ts astro.config.js antora.yml .gitbook.yaml
    nuxt.config.ts nuxt.config.js next.config.js next.config.mjs next.config.ts mint.json docs.json _quarto.yml
    gatsby-config.js .eleventy.js eleventy.config.js .vuepress docfx.json rspress.config.ts zensical.toml
    velite.config.ts source.config.ts Doxyfile _toc.yml myst.yml
    """.split()  # noqa: SIM905 - easier to read than a list of quoted words
)
"""Files of generators whose rules for links are not implemented."""
_MYST = frozenset({"conf.py", "_toc.yml", "myst.yml"})
"""Files of Sphinx, Jupyter Book and MyST."""
_WRITERSIDE = frozenset({"writerside.cfg", "project.ihp"})
_GITHUB_WIKI = frozenset({"Home.md", "_Sidebar.md"})
_ZOLA = re.compile(r"^base_url\s*=", re.M)
"""A key of Zola in ``config.toml``, a name that Hugo has too."""
MAX_DEPTH_BELOW = 3
"""Depth of folders below the documentation folder in which the configuration of a site is searched."""
_MAKES_NO_PAGES = frozenset(
    """
    anvil autorefs awesome-nav awesome-pages bibtex charts ezlinks exclude exclude-search git-authors
    git-committers git-latest-changes git-revision-date git-revision-date-localized glightbox group htmlproofer
    include-markdown info kroki link-marker literate-nav llmstxt macros material/group material/info
    material/meta material/offline material/optimize material/privacy material/search material/social
    material/tags material/typeset mermaid2 meta mike minify mkdocstrings offline open-in-new-tab optimize
    privacy redirects roamlinks same-dir search section-index social spellcheck swagger-ui-tag table-reader tags
    termynal typeset ultralytics wikilinks with-pdf
    """.split()  # noqa: SIM905 - easier to read than a list of quoted words
)
"""Plugins of MkDocs that add no pages. Any other plugin may."""
_AUTOREFS = frozenset({"autorefs", "mkdocstrings"})
_WIKI_LINKS = re.compile(r"wikilinks|roamlinks|ezlinks|obsidian", re.I)
_SETTING = r"\b%s\s*:\s*(?:'([^'\n]*)'|\"([^\"\n]*)\")"
_JS_COMMENT = re.compile(r"^[ \t]*//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/", re.M)
_MACROS = re.compile(r"\{\{|\{%")
_IDENTIFIERS = re.compile(r"^[ \t]*:::[ \t]+[\w.]+", re.M)
_MDX = re.compile(r"^import\s.*\.mdx?[\"']|<!--\s*@include|^[ \t]*:::include|<[A-Z]|^```{(?:r|python|julia)\b", re.M)
_COMMENT = re.compile(r"<!--")
"""A comment, which a hook of the site may replace."""
_TABS = re.compile(r"^[ \t]*===[!+]? ?[\"']", re.M)
_DOCSIFY = re.compile(r"\$docsify\b")
_EXDOC = re.compile(r"\bextras\s*:|\bex_doc\b")
_GITHUB_DYNAMIC = re.compile(r"\{%|<!--\s*@include|^import\s[^\n]*\.mdx?[\"']|^```\{(?:include|eval-rst|toctree)", re.M)


def site_rules(files: FileTree, options: SiteOptions, pages: Collection[str] = ()) -> SiteRules:
    """The rules of the documentation's site, by the table ``[site]``, else by a configuration file in the documentation
    folder or above it, else in a folder below that has most ``pages`` (the paths of all pages)."""
    is_configured = options.url or options.rule != SiteOptions().rule
    generator_of_rule = _GENERATORS[options.rule] if is_configured else None
    if (rules := _first_rules(files, files.ancestors(), generator_of_rule)) is not None:
        return replace(rules, rule=options.rule) if is_configured and rules.generator == "mkdocs" else rules
    page_counts = _page_counts(pages)
    main_folders = [folder for folder, count in page_counts.items() if 2 * count > len(pages)]
    if generator_of_rule is None and (below := next(_sites_below(files, main_folders), None)) is not None:
        # Some pages are outside of this site, so its rules for addresses do not hold: only links to files are resolved.
        inner, rules = below
        return rules if rules.generator == "unknown" else replace(unknown(files), inner=inner)
    if generator_of_rule is None or generator_of_rule == "github":
        names_above = {name for folder in files.ancestors() for name in files.names(folder) or ()}
        rules = SiteRules(
            # If a folder has a site of its own, the pages in it have anchors in the style of that site.
            slugs=("github",) if generator_of_rule or not any(_sites_below(files, page_counts)) else _EVERY_SLUG,
            dynamic=_GITHUB_DYNAMIC,
        )
        is_wiki = ".obsidian" in names_above or not _GITHUB_WIKI.isdisjoint(files.names(files.docs) or ())
        return wiki(rules) if is_wiki else rules
    if generator_of_rule == "unknown":
        return unknown(files)
    return replace(_default_rules(files, generator_of_rule), rule=options.rule)


def wiki(rules: SiteRules) -> SiteRules:
    """The rules changed for a wiki or a vault of notes. Its program lists all pages, so there are no orphans, and finds
    a page by its name in any folder."""
    return replace(rules, wiki=True, by_name=True, silent=rules.silent | {"orphan-page"})


def _rules_of_others(files: FileTree, folder: str, names: Mapping[str, bool]) -> SiteRules | None:
    """The rules for a generator whose links are not known, if ``folder`` has its configuration. ``names``: name in the
    folder -> whether it is a folder."""
    is_exdoc = names.get("mix.exs") is False and _EXDOC.search(files.read(join(folder, "mix.exs")) or "")
    if is_exdoc or not _WRITERSIDE.isdisjoint(names):
        return replace(unknown(files), by_name=True)
    is_zola = "config.toml" in names and _ZOLA.search(files.read(join(folder, "config.toml")) or "")
    is_hugo = _content(files, join(folder, "content")) is not None and (
        not _HUGO.isdisjoint(names) or "_default" in (files.names(join(folder, "config")) or ())
    )
    if is_hugo or not _OTHERS.isdisjoint(names) or is_zola:
        return replace(unknown(files), labels=not _MYST.isdisjoint(names))
    if folder == files.docs and names.get("index.html") is False:
        text = files.read(join(folder, "index.html")) or ""
        if _DOCSIFY.search(text):
            return replace(unknown(files), generates="alias" in text)
    return None


def _content(files: FileTree, path: str) -> str | None:
    """The path of a folder with pages in its normal form, ``""`` for the root. None without the documentation in it."""
    folder = posixpath.normpath(path)
    if folder == ".":
        return ""
    return folder if f"{files.docs}/".startswith(f"{folder}/") else None


def _page_counts(pages: Iterable[str]) -> Counter[str]:
    """Folder -> number of pages below it, for folders up to :data:`MAX_DEPTH_BELOW`."""
    return Counter(
        "/".join(folders[:depth])
        for folders in (path.split("/")[:-1] for path in pages)
        for depth in range(min(MAX_DEPTH_BELOW, len(folders)) + 1)
    )


def _first_rules(files: FileTree, folders: Iterable[str], generator: Generator | None = None) -> SiteRules | None:
    """The rules by the first configuration in ``folders``: that of any generator, or only of ``generator``."""
    for folder in folders:
        names = files.names(folder) or {}
        for reader_generator, read in _READERS:
            if generator in (None, reader_generator) and (rules := read(files, folder, names)) is not None:
                return rules
        if generator is None and (rules := _rules_of_others(files, folder, names)) is not None:
            return rules
    return None


def _sites_below(files: FileTree, folders: Iterable[str]) -> Iterator[tuple[str, SiteRules]]:
    """(folder below the documentation folder, rules of its site) for each of ``folders`` that a generator reads."""
    for inner in sorted(filter(None, folders)):
        inside = files.at(join(files.docs, inner))
        if (rules := _first_rules(inside, inside.ancestors())) is not None:
            yield inner, rules


def _default_rules(files: FileTree, generator: Generator) -> SiteRules:
    """The rules for a site whose configuration is missing or cannot be read."""
    slugs = {"mkdocs": ("mkdocs", "github"), "vitepress": ("vitepress",)}
    return SiteRules(
        generator,
        slugs=slugs.get(generator, ("github",)),  # type: ignore[arg-type]
        content=files.docs,
        dynamic=_any(_MACROS, _IDENTIFIERS, _MDX),
        silent=frozenset({"undefined-reference"}),
    )


def _any(*patterns: re.Pattern[str]) -> re.Pattern[str]:
    return re.compile("|".join(pattern.pattern for pattern in patterns), re.M)


def unknown(files: FileTree) -> SiteRules:
    """The rules for a generator whose links are not known: only links to files are resolved."""
    return replace(_default_rules(files, "unknown"), rule=None, slugs=_EVERY_SLUG)


# --- MkDocs --------------------------------------------------------------------------------------------------------


def _yaml(text: str | None) -> dict[str, Any] | None:
    """The mapping in a YAML text. None if it is no mapping or cannot be read safely."""
    if text is None:
        return None
    try:
        loaded = data_formats.read_yaml(text, "plain")
    except ValueError:
        return None
    return loaded if isinstance(loaded, dict) else None


def _mkdocs(files: FileTree, folder: str, names: Mapping[str, bool]) -> SiteRules | None:
    configs = sorted(name for name in names if re.fullmatch(r"(?:mk|proper)docs[\w.-]*\.ya?ml", name))
    if not configs:
        return None
    read = {name: _yaml(files.read(posixpath.join(folder, name))) for name in configs}
    loaded = {name: config or {} for name, config in read.items()}
    if None in read.values():
        return replace(_default_rules(files, "mkdocs"), generates=True)
    main = next((name for name in ("properdocs.yml", "mkdocs.yml", "mkdocs.yaml") if name in loaded), None)
    docs_dirs = {str(config["docs_dir"]) for config in loaded.values() if "docs_dir" in config} or {"docs"}
    contents = (_content(files, posixpath.join(folder, docs_dir)) for docs_dir in docs_dirs)
    content = next((path for path in contents if path is not None), None)
    if content is None:
        return None
    whole = list(loaded.values()) if main is None else _with_parents(loaded, main)
    return _mkdocs_rules(files, folder, content, whole)


def _mkdocs_rules(files: FileTree, folder: str, content: str, whole: list[dict[str, Any]]) -> SiteRules:
    """The rules of a site with pages in ``content``. ``whole``: its configurations. The first one with a key counts."""

    def first(key: str) -> Any:
        return next((config[key] for config in whole if config.get(key) is not None), None)

    plugins, extensions = _named(whole, "plugins"), _named(whole, "markdown_extensions")
    hooks = any(config.get("hooks") for config in whole)
    has_autorefs = bool(plugins.keys() & _AUTOREFS)
    dynamic = [_MACROS, *([_IDENTIFIERS] if has_autorefs else []), *([_COMMENT] if hooks else [])]
    if "slugify" in extensions.get("pymdownx.tabbed", {}):
        dynamic.append(_TABS)
    redirects = plugins.get("redirects", {}).get("redirect_maps")
    validation = first("validation")
    links = (validation.get("links") or validation) if isinstance(validation, dict) else {}
    toc = extensions.get("toc", {})
    silent = set()
    if has_autorefs or hooks or extensions.get("pymdownx.snippets", {}).get("auto_append"):
        silent.add("undefined-reference")  # they may define the label
    if extensions.get("pymdownx.highlight", {}).get("default_lang"):
        silent.add("fence-without-language")
    return SiteRules(
        "mkdocs",
        rule="html" if first("use_directory_urls") is False else "directory",
        slugs=("mkdocs", "github") if "slugify" in toc or "permalink_slugify" in toc else ("mkdocs",),
        content=content,
        published_at=str(first("site_url") or "").strip(),
        strict_absolute=isinstance(links, dict) and links.get("absolute_links") == "relative_to_docs",
        generates=bool(hooks or any(name not in _MAKES_NO_PAGES for name in plugins)),
        dynamic=_any(*dynamic),
        nav=_mkdocs_nav(content, whole, plugins),
        redirects={str(old): str(new) for old, new in redirects.items()} if isinstance(redirects, dict) else {},
        snippets=_include_folders(folder, content, extensions, hooks),
        excluded=(*_ignore_lines(whole, "exclude_docs"), *_strings(plugins.get("exclude", {}).get("glob"))),
        filled=frozenset(
            str(options.get("tags_file", "tags.md")) if name.endswith("tags") else f"{_blog_folder(options)}/index.md"
            for name, options in plugins.items()
            if name.endswith(("blog", "tags"))
        ),
        wiki=any(_WIKI_LINKS.search(name) for name in (*plugins, *extensions)),
        silent=frozenset(silent),
    )


def _ignore_lines(configs: list[dict[str, Any]], *keys: str) -> Iterator[str]:
    """The globs in settings that are written as a .gitignore. Negated ones are left out."""
    for config in configs:
        for key in keys:
            for line in map(str.strip, str(config.get(key) or "").splitlines()):
                if line and not line.startswith(("#", "!")):
                    yield line.lstrip("/") if "/" in line.rstrip("/") else f"**/{line}"


def _blog_folder(options: Mapping[str, Any]) -> str:
    return str(options.get("blog_dir", "blog")).strip("/")


def _with_parents(loaded: Mapping[str, dict[str, Any]], main: str) -> list[dict[str, Any]]:
    """The configuration ``main`` and those that it inherits from, the nearest first."""
    chain = [main]
    while isinstance(parent := loaded[chain[-1]].get("INHERIT"), str):
        name = posixpath.normpath(parent)
        if name not in loaded or name in chain:
            break
        chain.append(name)
    return [loaded[name] for name in chain]


def _named(configs: list[dict[str, Any]], key: str) -> dict[str, dict[str, Any]]:
    """Name -> options of the plugins or extensions of all configurations, which list them or map them."""
    merged: dict[str, dict[str, Any]] = {}
    for listed in (config.get(key) for config in configs):
        for entry in listed if isinstance(listed, list) else [listed]:
            named = entry if isinstance(entry, dict) else {entry: None} if isinstance(entry, str) else {}
            for name, options in named.items():
                merged.setdefault(str(name), {}).update(options if isinstance(options, dict) else {})
    return merged


def _include_folders(
    folder: str, content: str, extensions: Mapping[str, dict[str, Any]], hooks: bool
) -> tuple[str, ...] | None:
    """The folders of included files; None if no extension includes files or a folder is not known."""
    options = extensions.get("pymdownx.snippets")
    if options is None or hooks:
        return (folder, content) if extensions.keys() & {"markdown_include.include", "mdx_include"} else None
    bases = options.get("base_path", ["."])
    bases = bases if isinstance(bases, list) else [bases]
    if options.get("url_download") or not all(isinstance(base, str) and not re.search(r"[!$]", base) for base in bases):
        return None
    return tuple(posixpath.normpath(posixpath.join(folder, base)) for base in bases)


def _mkdocs_nav(
    content: str, configs: list[dict[str, Any]], plugins: Mapping[str, Any]
) -> Callable[[str], bool] | None:
    """A function that says whether the navigation shows a file; None if it shows all or a plugin makes it."""
    navs = [config["nav"] for config in configs if config.get("nav")]
    if not navs or {"literate-nav", "awesome-pages", "awesome-nav", "section-index"} & plugins.keys():
        return None
    shown = {posixpath.normpath(path) + "/" * path.endswith("/") for path in _strings(navs)}
    if any("*" in path for path in shown):
        return None
    from anvil.formats import patterns

    hidden = [patterns.glob(pattern) for pattern in _ignore_lines(configs, "not_in_nav", "draft_docs")]
    folders = [path for path in shown if path.endswith("/")]
    folders += [f"{_blog_folder(options)}/" for name, options in plugins.items() if name.endswith("blog")]

    def is_shown(file: str) -> bool:
        path = posixpath.relpath(file, content or ".")
        return path in shown or path.startswith(tuple(folders)) or any(glob.matches(path) for glob in hidden)

    return is_shown


def _strings(value: Any) -> Iterator[str]:
    """All strings in nested lists and values of mappings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)


# --- Docusaurus ----------------------------------------------------------------------------------------------------


def _docusaurus(files: FileTree, folder: str, names: Mapping[str, bool]) -> SiteRules | None:
    """The rules of a site configured in ``folder`` or a folder of it such as ``website`` with ``path: "../docs"``."""
    for site in (folder, *(join(folder, name) for name in _SITE_FOLDERS if names.get(name))):
        inner = files.names(site) or {}
        config = next((name for name in inner if re.fullmatch(r"docusaurus\.config\.[cm]?[jt]s", name)), None)
        source = _JS_COMMENT.sub("", files.read(posixpath.join(site, config)) or "") if config is not None else ""
        contents = [join(site, path) for path in _settings(source, "path") if path]
        others = []
        if config is not None and site == folder:
            contents.append(join(site, "docs"))
            others.append(files.docs)  # such as versioned_docs/version-2.0
        for path in (*contents, *others):
            if (content := _content(files, path)) is not None:
                is_at_docs = path in contents and "routeBasePath" not in source
                return SiteRules(
                    "docusaurus",
                    "docusaurus",
                    content=content,
                    published_at="docs" if is_at_docs else "",
                    starts=(content, site),
                    assets=(join(site, "static"),),
                    dynamic=_any(_MDX, _MACROS),
                    silent=frozenset({"undefined-reference"}),
                )
    return None


def _settings(source: str, key: str) -> list[str]:
    """The string values of a key in a program, without slashes at their ends."""
    return [(single or double).strip("/") for single, double in re.findall(_SETTING % key, source)]


# --- VitePress -----------------------------------------------------------------------------------------------------


def _vitepress(files: FileTree, folder: str, names: Mapping[str, bool]) -> SiteRules | None:
    if not names.get(".vitepress"):
        return None
    sources = list(_scripts(files, posixpath.join(folder, ".vitepress")))
    if not sources:
        return None
    whole = _JS_COMMENT.sub("", "\n".join(sources))
    content = _content(files, join(folder, next(iter(_settings(whole, "srcDir")), ".")))
    if content is None:
        return None
    return SiteRules(
        "vitepress",
        "vitepress",
        slugs=("vitepress",),
        content=content,
        published_at=next(iter(_settings(whole, "base")), ""),
        assets=(join(content, "public"),),
        strict_absolute="rewrites" not in whole,
        generates="rewrites" in whole,
        dynamic=_any(_MDX, _MACROS),
        doubtful=frozenset({"broken-anchor"}) if "slugify" in whole else frozenset(),
    )


def _scripts(files: FileTree, folder: str, depth: int = 2) -> Iterator[str]:
    """The texts of the programs and JSON files in a folder of configuration, without built and cached ones."""
    for name, is_folder in sorted((files.names(folder) or {}).items()):
        if is_folder and depth and name not in ("cache", "dist", "node_modules"):
            yield from _scripts(files, posixpath.join(folder, name), depth - 1)
        elif name.endswith(_SCRIPTS) and (text := files.read(posixpath.join(folder, name))) is not None:
            yield text


# --- mdBook --------------------------------------------------------------------------------------------------------


def _mdbook(files: FileTree, folder: str, names: Mapping[str, bool]) -> SiteRules | None:
    """The rules of a book: those of an unknown generator, with the book's redirects and links to books beside it."""
    text = files.read(posixpath.join(folder, "book.toml")) if "book.toml" in names else None
    try:
        config = data_formats.read_toml(text or "")
    except ValueError:
        return None
    content = _content(files, join(folder, str(data_formats.value_at(config, "book", "src") or "src")))
    if text is None or content is None:
        return None
    redirects = data_formats.value_at(config, "output", "html", "redirect")
    old = {str(path).strip("/"): str(new) for path, new in redirects.items()} if isinstance(redirects, dict) else {}
    return replace(
        unknown(files),
        content=content,
        redirects={path.removesuffix(".html") + ".md": new for path, new in old.items()},
        beside=True,
    )


_READERS: tuple[tuple[Generator, Callable[[FileTree, str, Mapping[str, bool]], SiteRules | None]], ...] = (
    ("vitepress", _vitepress),
    ("mkdocs", _mkdocs),
    ("docusaurus", _docusaurus),
    ("unknown", _mdbook),
)
"""The readers in the order in which they examine a folder. VitePress is first, because no other generator has a folder
``.vitepress``."""
