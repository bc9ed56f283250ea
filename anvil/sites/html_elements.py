"""Kinds of HTML elements: sections in lists, entries of an API, layout tables, admonitions, footnotes and code.

:mod:`anvil.sites.page_content` says which elements have no text, and which separate words.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Container, Iterable

from anvil.sites import html_tree
from anvil.sites.html_tree import Element, classes
from anvil.sites.page_content import HEADINGS, LEVELS, anchor_of, id_of, node_before, signature_name, text_of


def is_list_of_sections(element: Element, entries: Container[int], skipped: Container[int]) -> bool:
    """Whether each item or term of a list begins with a section, a heading or one of the ``entries`` of an API. The
    members in pages of Javadoc are such lists, before Java 16 with lists around them, and so are some numbered steps.
    """
    if not {"blockList", "blockListLast", "block-list"}.isdisjoint(classes(element)):
        return True
    count = 0
    for item in element.iter():
        if item.tag in ("li", "dt") and item.mem_id not in skipped:
            count += 1
            if item.mem_id not in entries and not _begins_section(item, entries, skipped):
                return False
    return count > 0 or any(term.mem_id in entries for term in html_tree.select(element, "div > dt"))  # of nimdoc


def _begins_section(item: Element, entries: Container[int], skipped: Container[int]) -> bool:
    for child in item.iter(include_text=True):
        if child.mem_id in skipped or (child.tag == "a" and child.child is None):  # an anchor
            continue
        if child.is_element_node:
            is_section = child.tag in ("section", "article") and html_tree.first(child, HEADINGS) is not None
            return is_section or child.tag in LEVELS or child.mem_id in entries
        if child.is_text_node and (child.text_content or "").strip():
            return False
    return False


_ENTRY_NAME = """
    .name:not(:has(.ident)), .ident, .method-name, .documentableName, .token, .docstring-binding, .def, .def-name,
    .py-defname, .Identifier, dl.function strong
"""


def entry_of(node: Element, skipped: Container[int]) -> tuple[str, str, str]:
    """(name, id, signature) of the entry of an API that begins with ``node``, in pages of Sphinx, pdoc, RDoc, Scaladoc
    and others. An entry of Sphinx without an id has no name."""
    signature, parent = text_of(node, skipped), node.parent
    if "sig" in classes(node):
        own_id = node.attributes.get("id") or ""
        return (signature_name(node) or signature) if own_id else "", own_id, signature
    name = html_tree.first(node, _ENTRY_NAME)
    anchor = anchor_of(node) or (id_of(parent) if parent is not None else "")
    kind = html_tree.first(parent, ".modifier_kind") if parent is not None else None
    if parent is not None and kind is not None:  # Scaladoc 2, where the ids in a signature are those of types
        signature = f"{kind.text().strip()} {signature}"
        link = html_tree.first(parent, "a[id]") if parent.tag == "li" else None
        anchor = id_of(link) if link is not None else ""
    in_anchor = anchor.rpartition("-")[2]  # in odoc only the id has the name alone
    if name is None and in_anchor in signature.split():
        return in_anchor, anchor, signature
    return text_of(name if name is not None else node, skipped), anchor, signature


# --- tables ---------------------------------------------------------------------------------------------------------


def is_layout_table(table: Element) -> bool:
    """Whether a table only arranges blocks. Such a table has headings, code of several lines, other tables and no
    ``<thead>``, or one row and no ``<th>``."""
    if table.attributes.get("role") == "presentation" or html_tree.first(table, HEADINGS) is not None:
        return True
    # a parameter of JSDoc may have a table of its properties in a cell
    has_header = any(part.tag == "thead" for part in table.iter())
    if not has_header and any(inner.mem_id != table.mem_id for inner in html_tree.select(table, "table")):
        return True
    if any("\n" in pre.text().strip() for pre in html_tree.select(table, "pre")):
        return True
    return len(html_tree.select(table, "tr")) == 1 and html_tree.first(table, "th") is None


def begins_row(cell: Element) -> bool:
    """Whether a cell begins a row in a table of Javadoc, whose rows are not elements."""
    before = node_before(cell)
    return before is None or "col-last" in classes(before)


# --- admonitions ----------------------------------------------------------------------------------

_CALLOUT_KINDS = frozenset(
    """
    note tip hint info important warning caution danger error attention seealso todo success check done question help
    faq failure bug example quote cite abstract summary tldr deprecated versionadded versionchanged
    """.split()  # noqa: SIM905 - easier to read than a list of quoted words
)
_CALLOUT_ELEMENTS = frozenset({"div", "aside", "section", "blockquote", "details"})
_CALLOUT_CLASS = re.compile(
    r"(?<!\S)(?:(?:[a-z]+[-_])?(?:admonition|alert|callout)|blockquote-tag|custom-block|starlight-aside|"
    r"admonitionblock|confluence-information-macro|hint-container)(?!\S)",
    re.I,
)
"""Most generators have a word in front: ``theme-admonition``, ``markdown-alert``, ``vocs_Callout``."""
_CALLOUTS_OF_DOCFX = frozenset({"NOTE", "TIP", "WARNING", "IMPORTANT", "CAUTION"})
"""Classes of admonitions of docfx. Their title is a heading without an id."""
_KIND_IN_CLASS = re.compile(
    r"(?:(?:[a-z]+-)?(?:admonition|alert|callout)|blockquote-tag|starlight-aside-|custom-block|"
    r"confluence-information-macro)-(\w+)|vocs_callout_(\w+)"
)
_KIND_IN_STYLE = re.compile(r"--callout-color: ?var\(--color-fd-(\w+)")
"""The kind of an admonition of Fumadocs, which has no class for it."""
_LOOKS = {
    **{"primary": "info", "secondary": "note", "light": "note", "dark": "note", "information": "info"},
    **{"warn": "warning", "idea": "tip"},
}
"""Other names of kinds, such as the colours of Bootstrap's alerts."""
_CALLOUT_TITLES = re.compile(
    r"(?:(?:[a-z]+-)?(?:admonition|alert|callout)|blockquote-tag|custom-block|hint-container)-"
    r"(?:title|heading|header|label)|starlight-aside__title|admonitionHeading\w*|title"
)


def callout_kind(element: Element) -> str | None:
    """The kind of an admonition, such as ``warning``; None if the element is not an admonition."""
    if element.tag not in _CALLOUT_ELEMENTS:
        return None
    attributes = element.attributes
    class_names = attributes.get("class") or ""
    names = class_names.split()
    if element.tag == "aside" and (stated := attributes.get("data-type") or "") in _CALLOUT_KINDS:
        return stated  # Writerside
    if style := _KIND_IN_STYLE.search(attributes.get("style") or ""):
        return _LOOKS.get(style[1], style[1])
    if _CALLOUT_CLASS.search(class_names) is None and not (
        _is_docfx_callout(names) or (element.tag == "details" and not _CALLOUT_KINDS.isdisjoint(names))
    ):
        return None
    lowered = [name.lower() for name in names]
    in_class = [match[1] or match[2] for name in lowered if (match := _KIND_IN_CLASS.fullmatch(name))]
    kind = next((name for name in (*in_class, *lowered) if name in _CALLOUT_KINDS or name in _LOOKS), "note")
    return _LOOKS.get(kind, kind)


def callout_title(element: Element) -> Element | None:
    """The element with the title of an admonition, or None.

    It is the first child if that is a ``<summary>``, has the class of a title, or is a heading of docfx. In AsciiDoc it
    is the label in place of the icon.
    """
    child = next((inner for inner in element.iter() if inner.is_element_node), None)
    if child is None:
        return None
    if child.tag == "summary" or is_callout_title(child):
        return child
    if child.tag in LEVELS and not child.attributes.get("id") and _is_docfx_callout(classes(element)):
        return child
    return html_tree.first(element, "td.icon") if "admonitionblock" in classes(element) else None


def is_callout_title(element: Element) -> bool:
    """Whether an element has a class of titles of admonitions."""
    return any(_CALLOUT_TITLES.fullmatch(name) for name in classes(element))


def _is_docfx_callout(names: Iterable[str]) -> bool:
    return not _CALLOUTS_OF_DOCFX.isdisjoint(names)


_FOOTNOTES = frozenset({"footnote", "footnotes", "footnote-list", "footnotes-list", "footnotes-section"})


def is_in_footnotes(element: Element) -> bool:
    """Whether an element is directly in one for footnotes."""
    parent = element.parent
    return parent is not None and (
        parent.attributes.get("role") == "doc-endnotes" or not _FOOTNOTES.isdisjoint(classes(parent))
    )


# --- code -----------------------------------------------------------------------------------------------------------

_LINES = frozenset({"ec-line", "token-line", "code-line", "view-line"})
"""Classes of elements that are one line of code each."""
_NAMED = re.compile(r"(?:language|lang|highlight-source|highlight|sourceCode|src|brush:?)[-: ]([A-Za-z0-9_+#.-]+)")
_NO_LANGUAGE = frozenset(
    """
    default none null text plaintext plain txt notranslate nohighlight source wrapper table raw auto block code
    highlight hljs literal literal-block inline prettyprint
    """.split()  # noqa: SIM905
)
_ONE_NAME = re.compile(r"[a-z][a-z0-9+#]{0,11}")
_ATTRIBUTES = ("data-lang", "data-language", "data-code-lang")
_LANGUAGE_ANCESTORS = 7
_CODE_AS_TEXT = frozenset({"code-block", "code-collapse"})


def is_code_group(element: Element | None) -> bool:
    """Whether an element is a group of tabs with code, as VitePress has it."""
    return element is not None and "vp-code-group" in classes(element)


def is_code(element: Element) -> bool:
    """Whether a ``<div>`` is a block of code of Doxygen, whose lines are elements, or of Writerside, which is text."""
    names = classes(element)
    if "fragment" in names:
        return html_tree.first(element, "div.line") is not None
    return not _CODE_AS_TEXT.isdisjoint(names) and html_tree.first(element, "pre") is None


def code_text(pre: Element, skipped: Container[int] = frozenset()) -> str:
    """The code of a ``<pre>``, or of an element whose lines are elements.

    ``skipped``: elements to leave out, such as line numbers. Empty lines at the begin and the end are left out too.
    """
    pieces: list[str] = []
    ends_line = True
    for node, begins in html_tree.walk(pre, skipped):
        if node.is_text_node:
            text = node.text_content or ""
            is_child = node.parent is not None and node.parent.mem_id == pre.mem_id
            if pre.tag != "pre" and is_child and "\n" in text and not text.strip():
                continue  # white space between the elements of two lines
            pieces.append(text)
            ends_line = text.endswith("\n") if text else ends_line
        elif node.is_element_node:
            if node.tag == "br" and begins:
                pieces.append("\n")
                ends_line = True
            elif node.tag in ("div", "li", "tr", "p") or (not begins and not _LINES.isdisjoint(classes(node))):
                if pieces and not ends_line:
                    pieces.append("\n")
                ends_line = True
    text = "".join(pieces).replace("\r\n", "\n").replace("\r", "\n")
    if pre.tag != "pre":  # its lines are indented as the HTML around them
        text = textwrap.dedent(text.replace("\xa0", " "))
    # generators leave blanks at line ends where they took marks out
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")


def language_of(pre: Element) -> str:
    """The language that a ``<pre>``, its ``<code>`` or an element around it names; else ``""``."""
    code = html_tree.first(pre, "code")
    elements: list[Element] = [pre, *([code] if code is not None else [])]
    ancestor = pre.parent
    for _ in range(_LANGUAGE_ANCESTORS):
        if ancestor is None or not ancestor.is_element_node or ancestor.tag in ("body", "main", "article"):
            break
        elements.append(ancestor)
        ancestor = ancestor.parent
    for element in elements:
        attributes = element.attributes
        names = f"{attributes.get('class') or ''} {attributes.get('data-syntaxhighlighter-params') or ''}"
        in_classes = _class_languages(names, element.tag in ("figure", "pre"))
        for name in (*(attributes.get(key) for key in _ATTRIBUTES), *in_classes):
            if name and name.lower() not in _NO_LANGUAGE:
                return name
    only_class = (code.attributes.get("class") or "") if code is not None else ""  # as TypeDoc and YARD write it
    return only_class if _ONE_NAME.fullmatch(only_class) and only_class not in _NO_LANGUAGE else ""


def _class_languages(names: str, is_figure_or_pre: bool) -> list[str]:
    """The languages that classes may name. Hexo writes ``highlight LANGUAGE`` at a ``<figure>`` or ``<pre>``."""
    parts = names.replace(";", " ").split()
    languages = [match[1] for part in parts if (match := _NAMED.fullmatch(part))]
    marks = ("sourceCode", "hljs", "brush:", "src", "makeup", "code", *(("highlight",) if is_figure_or_pre else ()))
    for mark in marks:
        if mark in parts:
            languages += parts[parts.index(mark) + 1 :][:1]
    return languages
