"""Code in a page: its text without line numbers, and its language, as the highlighters write them."""

from __future__ import annotations

import re
from collections.abc import Container

from anvil.sites import html_tree
from anvil.sites.html_tree import Element, classes
from anvil.text.lines import backticks

_LINES = frozenset({"ec-line", "token-line", "code-line", "view-line"})
"""Classes of elements that are a line of code each, if they are blocks."""
_NAMED = re.compile(r"(?:language|lang|highlight-source|highlight|sourceCode|src|brush:?)[-: ]([A-Za-z0-9_+#.-]+)")
_NO_LANGUAGE = frozenset(
    "default none text plaintext plain txt notranslate nohighlight source wrapper table raw auto block".split()  # noqa: SIM905
)
_ATTRIBUTES = ("data-lang", "data-language", "data-code-lang")
_LANGUAGE_ANCESTORS = 7


def code_text(pre: Element, skipped: Container[int] = frozenset()) -> str:
    """The code of a ``<pre>`` without ``skipped`` elements, such as line numbers, and empty lines at its ends."""
    pieces: list[str] = []
    ends_line = True

    def line_end() -> None:
        if pieces and not ends_line:
            pieces.append("\n")

    for node, begins in html_tree.walk(pre, skipped):
        if node.is_text_node:
            text = node.text_content or ""
            pieces.append(text)
            ends_line = text.endswith("\n") if text else ends_line
        elif node.is_element_node:
            if node.tag == "br" and begins:
                pieces.append("\n")
                ends_line = True
            elif node.tag in ("div", "li", "tr", "p") or (not begins and not _LINES.isdisjoint(classes(node))):
                line_end()
                ends_line = True
    lines = "".join(pieces).replace("\r\n", "\n").replace("\r", "\n").split("\n")
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
        for name in (*(attributes.get(key) for key in _ATTRIBUTES), *_class_languages(attributes.get("class") or "")):
            if name and name.lower() not in _NO_LANGUAGE:
                return name
    return ""


def _class_languages(names: str) -> list[str]:
    parts = names.split()
    named = [match[1] for part in parts if (match := _NAMED.fullmatch(part))]
    for mark in ("sourceCode", "hljs", "brush:", "src"):
        if mark in parts:
            named += parts[parts.index(mark) + 1 :][:1]
    return named


def fenced(text: str, language: str) -> list[str]:
    """The lines of a fenced code block."""
    fence = backticks(text, 3)
    name = "" if "`" in language else language
    return [f"{fence}{name}", *text.split("\n"), fence]
