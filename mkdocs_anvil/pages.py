"""From a page of MkDocs to a document of the index: what readers are shown, and where."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mkdocs.utils import is_markdown_file

from anvil import frontmatter, globs
from anvil.anchors import Heading
from anvil.models import SEPARATOR, Document
from mkdocs_anvil import llms

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

Expand = Callable[[str], str]


def entry(page: Page, document: Document) -> llms.Entry:
    """What ``llms.txt`` and its companions say of a page. One without an h1 gets its title for it."""
    _, begin = frontmatter.split(document.text)
    text = document.text[begin:]
    title = document.title or document.path
    if not any(level == 1 for level, _, _ in document.headings or ()):
        text = f"# {title}\n\n{text.lstrip()}"
    above = None if document.nav_path is None else tuple(str(s.title) for s in reversed(list(page.ancestors)))
    about = page.meta.get("description")
    return llms.Entry(title, above, page.file.dest_uri, document.url, str(about) if about else "", text)


class Choice:
    """Which pages are indexed, and which of them as their HTML: globs over the paths in ``docs_dir``.

    Without ``include`` all are; ``exclude`` wins. Material's ``search: {exclude: true}`` in a page's front matter is
    respected as well.
    """

    def __init__(self, include: Sequence[str], exclude: Sequence[str], rendered: Sequence[str]) -> None:
        self._include, self._exclude, self._rendered = include or ("**",), exclude, rendered

    def wants(self, path: str, meta: Mapping[str, Any]) -> bool:
        """Whether the page at ``path`` is indexed."""
        search = meta.get("search")
        if isinstance(search, Mapping) and search.get("exclude") is True:
            return False
        return _fits(self._include, path) and not _fits(self._exclude, path)

    def as_rendered(self, path: str) -> bool:
        """Whether the page's HTML is indexed instead of its Markdown; a notebook, say, has no Markdown."""
        return not is_markdown_file(path) or _fits(self._rendered, path)


def _fits(patterns: Iterable[str], path: str) -> bool:
    return any(globs.matches(pattern, path) for pattern in patterns)


def document(page: Page, headings: tuple[Heading, ...], text: str, in_nav: bool) -> Document:
    """What an index holds of a page whose HTML has these headings, and whose Markdown is ``text``."""
    title = str(page.title)
    above = [str(section.title) for section in reversed(list(page.ancestors))]
    edit = {"edit_url": page.edit_url} if page.edit_url else {}
    return Document(
        path=page.file.src_uri,
        blob_id="",
        text=text,
        size=0,
        last_modified="",
        title=title,
        url=page.canonical_url,
        nav_path=SEPARATOR.join([*above, title]) if in_nav else None,
        metadata={**frontmatter.plain(page.meta), **edit, "rendered": True},
        headings=headings,
    )


def source_text(page: Page, expand: Expand) -> str:
    """The page's Markdown after all plugins, under the front matter of its file, so that lines keep their numbers."""
    text = expand(page.markdown or "")
    if not page.meta:
        return text
    try:
        source = page.file.content_string
    except (OSError, ValueError):  # a plugin read it from elsewhere
        return text
    if not source.startswith("---"):
        return text
    _, begin = frontmatter.split(source)
    blank = len(source[begin:]) - len(source[begin:].lstrip("\n"))
    return source[: begin + blank] + text if begin else text


def expansion(config: MkDocsConfig) -> Expand:
    """What Markdown extensions of the site put in place before anything is rendered: snippets of other files.

    MkDocs shows plugins the Markdown before that; the extensions' own preprocessors are run once more.
    """
    names = [name for name in _EXPANDING if name in config.markdown_extensions]
    if not names:
        return lambda text: text
    from markdown import Markdown

    configs = {name: config.mdx_configs.get(name, {}) for name in names}
    made = Markdown(extensions=names, extension_configs=configs)
    steps = [made.preprocessors[_EXPANDING[name]] for name in names]

    def expand(text: str) -> str:
        lines = text.split("\n")
        for step in steps:
            lines = step.run(lines)
        return "\n".join(lines)

    return expand


_EXPANDING = {"pymdownx.snippets": "snippet", "markdown_include.include": "include"}
"""Extension -> the name of its preprocessor."""
