"""What elements of a page are besides headings: sections in lists, entries of an API, admonitions, and code.

Which elements are no text, and which part words, such as those of ruby annotations, is in ``page_content``.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Container, Iterable

from anvil.sites import html_tree
from anvil.sites.html_tree import Element, classes
from anvil.sites.page_content import HEADINGS, LEVELS, id_of, node_before, signature_name, text_of


def is_list_of_sections(element: Element, entries: Container[int], skipped: Container[int]) -> bool:
    """Whether each item or term of a list is a section of the page, as in the pages of Javadoc and in numbered steps:
    it begins with a section, a heading or one of the ``entries`` of an API."""
    count = 0
    for item in element.iter():
        if item.tag in ("li", "dt") and item.mem_id not in skipped:
            count += 1
            if item.mem_id not in entries and not _begins_section(item, entries, skipped):
                return False
    return count > 0


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


def begins_row(cell: Element) -> bool:
    """Whether a cell begins a row in a table of Javadoc, which has cells alone."""
    before = node_before(cell)
    return before is None or "col-last" in classes(before)


_ENTRY_NAME = ".name, .method-name, .documentableName, .token, .docstring-binding, .def, .def-name, dl.function strong"


def entry_of(node: Element, skipped: Container[int]) -> tuple[str, str, str]:
    """The name, the id and the signature of an entry of an API that begins with an element, in pages of Sphinx, pdoc,
    RDoc, Scaladoc and others. In Sphinx's, an entry without an id has no name."""
    if "sig" in classes(node):
        own = node.attributes.get("id") or ""
        return (signature_name(node) or text_of(node, skipped)) if own else "", own, text_of(node, skipped)
    named, signature, above = html_tree.first(node, _ENTRY_NAME), text_of(node, skipped), node.parent
    with_id = [node, html_tree.first(node, "[id], a[name]"), above]
    kind = html_tree.first(above, ".modifier_kind") if above is not None else None
    if above is not None and kind is not None:  # of Scaladoc 2, where the ids in a signature are those of types
        signature = f"{kind.text().strip()} {signature}"
        with_id = [html_tree.first(above, "a[id]")] if above.tag == "li" else []
    ids = (id_of(each) for each in with_id if each is not None)
    return text_of(named if named is not None else node, skipped), next(filter(None, ids), ""), signature


# --- admonitions of all generators ----------------------------------------------------------------------------------

_CALLOUT_KINDS = frozenset(
    """
    note tip hint info important warning caution danger error attention seealso todo success check done question help
    faq failure bug example quote cite abstract summary tldr deprecated versionadded versionchanged
    """.split()  # noqa: SIM905 - a list of quoted words is not read
)
_CALLOUT_ELEMENTS = frozenset({"div", "aside", "section", "blockquote", "details"})
_CALLOUT_CLASS = re.compile(
    r"(?<!\S)(?:(?:[a-z]+[-_])?(?:admonition|alert|callout)|blockquote-tag|custom-block|starlight-aside|"
    r"admonitionblock|confluence-information-macro|hint-container)(?!\S)",
    re.I,
)
"""Most generators have their name in front: ``theme-admonition``, ``markdown-alert``, ``vocs_Callout``."""
_CALLOUTS_OF_DOCFX = frozenset({"NOTE", "TIP", "WARNING", "IMPORTANT", "CAUTION"})
"""Classes of its admonitions, whose title is a heading without an id."""
_KIND_IN_CLASS = re.compile(
    r"(?:(?:[a-z]+-)?(?:admonition|alert|callout)|blockquote-tag|starlight-aside-|custom-block|"
    r"confluence-information-macro)-(\w+)|vocs_callout_(\w+)"
)
_KIND_IN_STYLE = re.compile(r"--callout-color: ?var\(--color-fd-(\w+)")
"""The kind of an admonition of Fumadocs, which no class names."""
_LOOKS = {
    **{"primary": "info", "secondary": "note", "light": "note", "dark": "note", "information": "info"},
    **{"warn": "warning", "idea": "tip"},
}
"""Other names of kinds, such as Bootstrap's for the looks of an alert."""
_CALLOUT_TITLES = re.compile(
    r"(?:(?:[a-z]+-)?(?:admonition|alert|callout)|blockquote-tag|custom-block|hint-container)-"
    r"(?:title|heading|header|label)|starlight-aside__title|admonitionHeading\w*|title"
)


def callout_kind(element: Element) -> str | None:
    """The kind of an admonition, such as ``warning``; None for another element."""
    if element.tag not in _CALLOUT_ELEMENTS:
        return None
    attributes = element.attributes
    class_names = attributes.get("class") or ""
    names = class_names.split()
    if element.tag == "aside" and (stated := attributes.get("data-type") or "") in _CALLOUT_KINDS:
        return stated  # of Writerside
    if style := _KIND_IN_STYLE.search(attributes.get("style") or ""):
        return _LOOKS.get(style[1], style[1])
    if _CALLOUT_CLASS.search(class_names) is None and not (
        _is_of_docfx(names) or (element.tag == "details" and not _CALLOUT_KINDS.isdisjoint(names))
    ):
        return None
    lowered = [name.lower() for name in names]
    in_class = [match[1] or match[2] for name in lowered if (match := _KIND_IN_CLASS.fullmatch(name))]
    kind = next((name for name in (*in_class, *lowered) if name in _CALLOUT_KINDS or name in _LOOKS), "note")
    return _LOOKS.get(kind, kind)


def callout_title(element: Element) -> Element | None:
    """The element with an admonition's title: its ``<summary>``, a child whose class says so, a heading in one of
    docfx, or the label in the place of an icon in one of AsciiDoc."""
    child = next((each for each in element.iter() if each.is_element_node), None)
    if child is None:
        return None
    if child.tag == "summary" or is_titled(child):
        return child
    if child.tag in LEVELS and not child.attributes.get("id") and _is_of_docfx(classes(element)):
        return child
    return html_tree.first(element, "td.icon") if "admonitionblock" in classes(element) else None


def is_titled(element: Element) -> bool:
    """Whether the class of an element says that it is the title of an admonition."""
    return any(_CALLOUT_TITLES.fullmatch(name) for name in classes(element))


def _is_of_docfx(names: Iterable[str]) -> bool:
    return not _CALLOUTS_OF_DOCFX.isdisjoint(names)


_FOOTNOTES = frozenset({"footnote", "footnotes", "footnote-list", "footnotes-list", "footnotes-section"})


def is_in_footnotes(element: Element) -> bool:
    """Whether a list is in an element for footnotes."""
    above = element.parent
    return above is not None and (
        above.attributes.get("role") == "doc-endnotes" or not _FOOTNOTES.isdisjoint(classes(above))
    )


# --- code -----------------------------------------------------------------------------------------------------------

_LINES = frozenset({"ec-line", "token-line", "code-line", "view-line"})
"""Classes of elements that are a line of code each, if they are blocks."""
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
    """Whether an element has the tabs of VitePress, each of which is code."""
    return element is not None and "vp-code-group" in classes(element)


def is_code(element: Element) -> bool:
    """Whether a ``<div>`` is code: that of Doxygen, whose lines are elements, and that of Writerside, which is text."""
    names = classes(element)
    if "fragment" in names:
        return html_tree.first(element, "div.line") is not None
    return not _CODE_AS_TEXT.isdisjoint(names) and html_tree.first(element, "pre") is None


def code_text(pre: Element, skipped: Container[int] = frozenset()) -> str:
    """The code of a ``<pre>``, or of an element whose lines are elements, without ``skipped`` elements, such as line
    numbers, and empty lines at its ends."""
    pieces: list[str] = []
    ends_line = True
    for node, begins in html_tree.walk(pre, skipped):
        if node.is_text_node:
            text = node.text_content or ""
            is_own = node.parent is not None and node.parent.mem_id == pre.mem_id
            if pre.tag != "pre" and is_own and "\n" in text and not text.strip():
                continue  # between the lines
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
    lines = (text if pre.tag == "pre" else textwrap.dedent(text.replace("\xa0", " "))).split("\n")  # as around it
    return "\n".join(line.rstrip() for line in lines).strip("\n")  # generators leave blanks where they took marks out


def language_of(pre: Element) -> str:
    """The language of a ``<pre>``, as its element, its ``<code>`` or an element around it names it; else ``""``."""
    code = html_tree.first(pre, "code")
    elements: list[Element] = [pre, *([code] if code is not None else [])]
    above = pre.parent
    for _ in range(_LANGUAGE_ANCESTORS):
        if above is None or not above.is_element_node or above.tag in ("body", "main", "article"):
            break
        elements.append(above)
        above = above.parent
    for element in elements:
        attributes = element.attributes
        named = (attributes.get("class") or "", attributes.get("data-syntaxhighlighter-params") or "")
        in_classes = _class_languages(" ".join(named), element.tag in ("figure", "pre"))
        for name in (*(attributes.get(key) for key in _ATTRIBUTES), *in_classes):
            if name and name.lower() not in _NO_LANGUAGE:
                return name
    only = (code.attributes.get("class") or "") if code is not None else ""  # as TypeDoc and YARD write it
    return only if _ONE_NAME.fullmatch(only) and only not in _NO_LANGUAGE else ""


def _class_languages(names: str, is_code: bool) -> list[str]:
    """The languages that classes may name; those of a figure or code as Hexo writes them."""
    parts = names.replace(";", " ").split()
    named = [match[1] for part in parts if (match := _NAMED.fullmatch(part))]
    for mark in ("sourceCode", "hljs", "brush:", "src", "makeup", "code", *(("highlight",) if is_code else ())):
        if mark in parts:
            named += parts[parts.index(mark) + 1 :][:1]
    return named
