"""HTML to Markdown: the content of a page, with its headings and their ids.

The elements are converted in one pass without recursion. An element that Markdown has no form for keeps its text: each
word of the content is in the Markdown, in the same order.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from anvil.sites import html_tree
from anvil.sites.html_elements import (
    begins_row,
    callout_kind,
    callout_title,
    code_text,
    entry_of,
    is_callout_title,
    is_code,
    is_code_group,
    is_in_footnotes,
    is_layout_table,
    is_list_of_sections,
    language_of,
)
from anvil.sites.html_tree import Element, classes
from anvil.sites.markdown_tables import Table
from anvil.sites.markdown_writer import MarkdownWriter
from anvil.sites.page_content import (
    CODE,
    EDGES,
    HEADINGS,
    LEVELS,
    SCRIPTS,
    Content,
    anchor_of,
    around,
    is_note_reference,
    is_separate_script,
    signature_name,
    text_of,
)
from anvil.sites.site_pages import PageImage
from anvil.text.section_places import Heading

_MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", "del": "~~", "s": "~~", "strike": "~~"}
_BLOCKS = EDGES | {"colgroup", "optgroup", "search"}
_ANCHORED = ", ".join(f"{tag}[id]" for tag in LEVELS)
_TAB_LISTS = frozenset({"tablist", "tabbed-labels", "rp-tabs__label"})
_TAB_PANELS = frozenset({"tabpanel", "tabbed-block", "rp-tabs__content__item", "tabs__content"})
"""Classes of the tabs of Asciidoctor, pymdownx, Rspress and Writerside. In Writerside ``data-title`` is the label."""
_NUMBER = re.compile(r"[\[\]()^\s]+")
"""The signs around the number of a footnote: [1], (1), ^1."""
_NO_ADDRESS = ("javascript:", "data:", "blob:")
_MEMBER_CELLS = re.compile("mem(?:Templ)?Item")  # the type of a member and its name, in Doxygen
_TEX = "annotation[encoding='application/x-tex']"
# \(inline\), and \[a formula of its own\] or $$so$$: what MathJax and KaTeX find in text
_DELIMITED = re.compile(r"\\\((.*)\\\)|\\\[(.*)\\\]|\$\$(.*)\$\$", re.S)


class Converted(NamedTuple):
    """The Markdown of a page, with its headings and images in order.

    These headings begin no section and are left out: those in lists and tables, and those in quotes without an id.
    """

    markdown: str
    headings: tuple[Heading, ...]
    images: tuple[PageImage, ...]


def to_markdown(content: Content) -> Converted:
    """Convert the content of a page."""
    anchored = [
        each for root in content.roots for each in html_tree.select(root, _ANCHORED) if not is_callout_title(each)
    ]
    converter = _Converter(content, around(anchored))
    for root in content.roots:
        converter.add(root)
    text = converter.writer.finished()
    return Converted(text, tuple(converter.headings), tuple(converter.writer.images))


@dataclass(slots=True)
class _List:
    """An open list. ``number``: the number of its next item; None for bullets. ``notes``: its items are footnotes.
    ``end``: an item that begins at this size of the Markdown has no empty line before it; -1 for none."""

    number: int | None = None
    notes: bool = False
    in_item: bool = False
    end: int = -1


class _Converter:
    """Markdown of the elements of a page, written as they are visited."""

    def __init__(self, content: Content, with_headings: frozenset[int]) -> None:
        self.writer = MarkdownWriter()
        self.headings: list[Heading] = []
        self._skipped = set(content.skipped)
        self._entries = content.entries
        self._with_headings = with_headings
        """Elements that contain a heading with an id. A quote among them is written without marks, so that its headings
        are sections."""
        self._ends: list[tuple[int, Callable[[], object]]] = []
        self._lists: list[_List] = []
        self._tables: list[Table] = []
        self._tabs: list[deque[str]] = [deque()]
        self._level = 0
        self._entry_level = 0
        self._entry_levels: dict[int, int] = {}
        """Element with entries of an API -> the level of the heading above the entries. All entries in it are one level
        below, and headings in an entry are below the entry."""

    def add(self, root: Element) -> None:
        # Without recursion: elements can be a thousand deep (html_tree.MAX_DEPTH), which Python's stack may not hold.
        end = root.mem_id
        node = root.child
        while node is not None:
            following = self._begin(node)
            while following is None:
                while self._ends and self._ends[-1][0] == node.mem_id:
                    self._ends.pop()[1]()
                following = node.next
                if following is None:
                    above = node.parent
                    if above is None or above.mem_id == end:
                        break
                    node = above
            node = following
        self.writer.end()
        self._flush_labels()

    def _begin(self, node: Element) -> Element | None:
        """Write the begin of a node. Returns the child to continue with, or None if the node is done."""
        if node.mem_id in self._skipped:
            return None
        if node.is_text_node:
            self.writer.text(node.text_content or "")
        if not node.is_element_node:
            return None
        if node.mem_id in self._entries and self.writer.at_top:
            self._entry(node)
            return None
        tag = node.tag or ""
        handle = _HANDLERS.get(tag) or (_Converter._block if tag in _BLOCKS else _Converter._inline)
        return node.child if handle(self, node) else None

    def _at_end(self, node: Element, action: Callable[[], object]) -> None:
        self._ends.append((node.mem_id, action))

    def _text(self, node: Element) -> str:
        return text_of(node, self._skipped)

    # --- inline --------------------------------------------------------------------------------------------

    def _mark(self, node: Element) -> bool:
        self.writer.open_span(_MARKS[node.tag or ""])
        self._at_end(node, self.writer.close_span)
        return True

    def _inline(self, node: Element) -> bool:
        names = classes(node) if node.tag == "span" else []
        if names and ("katex" in names or "katex-display" in names or "arithmatex" in names or "math" in names):
            is_block = "katex-display" in names or html_tree.first(node, "math[display=block]") is not None
            return not self._math(node, display=is_block)
        return True

    def _script(self, node: Element) -> bool:
        """A superscript or subscript: with a space before it unless it is part of a word, as in H2O."""
        if is_separate_script(node, self.writer.last_text):
            self.writer.text(" ")
        return True

    def _code(self, node: Element) -> bool:
        self.writer.code(self._text_in_code(node))
        return False

    def _text_in_code(self, node: Element) -> str:
        return "".join(
            "\n" if each.tag == "br" else each.text_content or ""
            for each, begins in html_tree.walk(node, self._skipped)
            if begins and (each.is_text_node or each.tag == "br")
        )

    def _link(self, node: Element) -> bool:
        attributes = node.attributes
        target = (attributes.get("href") or "").strip()
        if is_note_reference(node):
            number = _NUMBER.sub("", node.text())
            self.writer.raw(f"[^{number}]" if number else "")
            return False
        if not target or target.lower().startswith(_NO_ADDRESS):
            return True
        self.writer.open_span("[", target)
        self._at_end(node, self.writer.close_span)
        return True

    def _image(self, node: Element) -> bool:
        attributes = node.attributes
        target = (attributes.get("src") or "").strip()
        if target.lower().startswith(_NO_ADDRESS):
            target = ""
        self.writer.image((attributes.get("alt") or "").strip(), target)
        return False

    def _line_break(self, node: Element) -> bool:
        self.writer.line_break()
        return False

    def _input(self, node: Element) -> bool:
        attributes = node.attributes
        if attributes.get("type") == "checkbox" and self._lists and self._lists[-1].in_item:
            self.writer.raw("[x] " if "checked" in attributes else "[ ] ")
        return False

    def _math(self, node: Element, display: bool) -> bool:
        """Write the TeX source of a formula. Returns whether it has one."""
        alternative = (node.attributes.get("alttext") or "") if node.tag == "math" else ""
        tex = html_tree.first(node, _TEX)
        source = tex.text() if tex is not None else alternative
        if not source:
            delimited = _DELIMITED.fullmatch(self._text_in_code(node).strip())
            if delimited is None:
                return False
            display = delimited[1] is None
            source = delimited[1] or delimited[2] or delimited[3] or ""
        source = " ".join(source.split())
        mark = "$$" if display else "$"
        if display:
            self.writer.end()
        self.writer.raw(f"{mark}{source}{mark}")
        if display:
            self.writer.end()
        return True

    # --- blocks --------------------------------------------------------------------------------------------

    def _block(self, node: Element) -> bool:
        self.writer.end()
        self._at_end(node, self.writer.end)
        return True

    def _division(self, node: Element) -> bool:
        """Write a ``<div>`` or the like, which may be tabs, code, a table, an admonition, a formula or a footnote."""
        self.writer.end()
        attributes = node.attributes
        names = (attributes.get("class") or "").split()
        role = attributes.get("role")
        if role or names:
            # labels of tabs by their role or class, or in VitePress by the group that they are in
            has_labels = role == "tablist" or not _TAB_LISTS.isdisjoint(names)
            if has_labels or ("tabs" in names and is_code_group(node.parent)):
                self._tab_labels(node)
                return False
            if role == "tabpanel" or not _TAB_PANELS.isdisjoint(names):
                self._panel(node)
            if is_code(node):
                self._bold_line(attributes.get("data-title") or attributes.get("data-synopsis") or "")
                return self._pre(node)
            if "summary-table" in names:
                return self._table(node)
            if self._tables and self._tables[-1].is_parent_of(node):
                return (not begins_row(node) or self._row(node)) and self._cell(node)
            kind = None if self.writer.in_line else callout_kind(node)
            if kind is not None:
                self._admonition(node, kind)
                return True
            if ("math" in names or "arithmatex" in names) and self._math(node, display=True):
                return False
            if "footnote" in names and node.tag == "aside":
                self._note(node, html_tree.first(node, ".label"))
        if self._tabs[-1] and is_code_group(node.parent.parent if node.parent is not None else None):
            self._panel(node)
        self._at_end(node, self.writer.end)
        return True

    def _admonition(self, node: Element, kind: str) -> None:
        title = callout_title(node)
        text = ""
        if title is not None and title.mem_id not in self._skipped:
            self.writer.open_line(plain=True)
            self.writer.text(self._text(title))
            text = self.writer.close_line()
            self._skipped.add(title.mem_id)
        is_only_title = node.mem_id in self._with_headings  # the rest is not quoted, so that its headings are sections
        self.writer.open_container("> ", "> ")
        self.writer.block([f"[!{kind.upper()}] {text}".rstrip()], tight=not text and not is_only_title)
        if is_only_title:
            self.writer.close_container()
            self._at_end(node, self.writer.end)
        else:
            self._at_end(node, self.writer.close_container)

    def _quote(self, node: Element) -> bool:
        if callout_kind(node) is not None:
            return self._division(node)
        self.writer.end()
        if not self.writer.in_line and node.mem_id not in self._with_headings:
            self.writer.open_container("> ", "> ")
            self._at_end(node, self.writer.close_container)
        else:
            self._at_end(node, self.writer.end)
        return True

    def _summary(self, node: Element) -> bool:
        if html_tree.first(node, HEADINGS) is not None:
            return self._block(node)
        self._bold_line(self._text(node))
        return False

    def _bold_line(self, text: str) -> None:
        """Write a label, such as that of a tab, as a bold paragraph."""
        self.writer.end()
        if text:
            self.writer.open_span("**")
            self.writer.text(text)
            self.writer.close_span()
            self.writer.end()

    def _heading(self, node: Element) -> bool:
        level = max(LEVELS[node.tag or ""], min(6, self._entry_level + 1))
        if self.writer.in_line:  # in a cell or a term there is no line for it
            return self._block(node)
        self.writer.end()
        text = self._text(node)
        name = signature_name(node, self._skipped)
        if name and name != text:
            self._add_heading(level, anchor_of(node), name, self._code_line(name))
            self.writer.raw(self._code_line(text))
            self.writer.end()
            self._level = level
            return False
        self.writer.open_line(plain=True)

        def end() -> None:
            line = self.writer.close_line()
            if line:
                self._add_heading(level, anchor_of(node), text, line)
                self._level = level

        self._at_end(node, end)
        return True

    def _add_heading(self, level: int, anchor: str, text: str, line: str) -> None:
        self.writer.heading(level, line)
        self.headings.append(Heading(level, anchor, text))

    def _label(self, node: Element) -> bool:
        is_in_set = node.parent is not None and "tabbed-set" in classes(node.parent)
        # Tabs of sphinx-design, sphinx-inline-tabs and old pymdownx are labels of radio buttons.
        if is_in_set or not {"sd-tab-label", "tab-label"}.isdisjoint(classes(node)):
            self._bold_line(self._text(node))
            return False
        return self._inline(node)

    def _pre(self, node: Element) -> bool:
        text = code_text(node, self._skipped)
        if self.writer.in_line:
            self.writer.raw(" ")
            self.writer.code(text)
            self.writer.raw(" ")
        elif text:
            self.writer.code_block(text, language_of(node))
        return False

    # --- tabs ----------------------------------------------------------------------------------------------

    def _tab_labels(self, node: Element) -> None:
        self._flush_labels()
        for selector in ("[role=tab], .rp-tabs__label__item", "label", "li", "button", "a"):
            labels = html_tree.select(node, selector)
            if labels:
                self._tabs[-1].extend(text for label in labels if (text := self._text(label)))
                return
        self._bold_line(self._text(node))

    def _panel(self, node: Element) -> None:
        self._bold_line(self._tabs[-1].popleft() if self._tabs[-1] else node.attributes.get("data-title") or "")
        self._tabs.append(deque())

        def end() -> None:
            self._flush_labels()
            self._tabs.pop()

        self._at_end(node, end)

    def _flush_labels(self) -> None:
        """Write the labels of tabs that have no panel."""
        while self._tabs[-1]:
            self._bold_line(self._tabs[-1].popleft())

    # --- lists ---------------------------------------------------------------------------------------------

    def _list(self, node: Element) -> bool:
        attributes = node.attributes
        if attributes.get("role") == "tablist":
            self.writer.end()
            self._tab_labels(node)
            return False
        if self.writer.in_line or is_list_of_sections(node, self._entries, self._skipped):
            return self._block(node)
        self.writer.end()
        notes = node.tag == "ol" and is_in_footnotes(node)
        number = None
        if node.tag == "ol":
            start = attributes.get("start") or "1"
            number = int(start) if start.isascii() and start.isdigit() and len(start) < 9 else 1
        self._open_list(node, _List(number, notes))
        return True

    def _open_list(self, node: Element, opened: _List) -> None:
        # Directly under the text of its item, as lists are written by hand; only the number 1 ends a paragraph.
        if self._lists and self._lists[-1].in_item and opened.number in (None, 1):
            opened.end = self.writer.size if self.writer.blocks_in_container <= 1 else -1
        self._lists.append(opened)
        self._at_end(node, self._close_list)

    def _close_list(self) -> None:
        self.writer.end()
        self._close_item(self._lists[-1])
        self._lists.pop()

    def _item(self, node: Element) -> bool:
        if self.writer.in_line or not self._lists:
            return self._block(node)
        self.writer.end()
        current = self._lists[-1]
        if current.in_item:  # its own list was not opened, as a list of sections is not: it is no item of ``current``
            return self._block(node)
        mark = "- "
        if current.number is not None:
            mark = f"[^{current.number}]: " if current.notes else f"{current.number}. "
            current.number += 1
        self._open_item(current, mark, "    " if current.notes else " " * len(mark))
        self._at_end(node, lambda: self._close_item(current))
        return True

    def _open_item(self, current: _List, first: str, rest: str) -> None:
        current.in_item = True
        self.writer.open_container(first, rest, tight=current.end == self.writer.size)

    def _close_item(self, current: _List) -> None:
        if current.in_item:
            item = self.writer.close_container()
            # the next item is directly below, unless this one has several blocks
            if item.begun:
                current.end = self.writer.size if item.blocks <= 1 else -1
            elif current.number is not None:
                # This item was empty and is not written. If it was the first, the list begins with another number than
                # 1, which needs an empty line before it.
                current.end = -1
            current.in_item = False

    def _note(self, node: Element, label: Element | None) -> None:
        """Open a footnote that is an element of its own. ``label``: the element with its number."""
        number = _NUMBER.sub("", label.text()) if label is not None else ""
        if label is not None and number:
            self._skipped.add(label.mem_id)
            self.writer.open_container(f"[^{number}]: ", "    ")
            self._at_end(node, self.writer.close_container)

    # --- definitions ---------------------------------------------------------------------------------------

    def _definitions(self, node: Element) -> bool:
        entries = self._entries if self.writer.at_top else frozenset()
        if self.writer.in_line or (not self._lists and is_list_of_sections(node, entries, self._skipped)):
            return self._block(node)
        self.writer.end()
        self._open_list(node, _List())
        return True

    def _term(self, node: Element) -> bool:
        if self.writer.in_line or not self._lists:
            return self._block(node)
        self.writer.end()
        current = self._lists[-1]
        self._close_item(current)
        self._open_item(current, "- ", "  ")
        self.writer.open_line()

        def end() -> None:
            line = self.writer.close_line()
            if line:
                cannot_be_bold = "**" in line or line.endswith("\\")  # Markdown would not read marks around it as bold
                self.writer.block([line if cannot_be_bold else f"**{line}**"], tight=True)

        self._at_end(node, end)
        return True

    def _entry(self, node: Element) -> None:
        """Write the begin of an API's entry: its name as heading a level below the one above it, and its signature."""
        self.writer.end()
        parent = node.parent
        name, anchor, signature = entry_of(node, self._skipped)
        # The entry that the page is about, below a title with its name, gets no second heading. In Sphinx it does: only
        # the entry has the anchor there.
        is_title = "sig" not in classes(node) and [heading.text for heading in self.headings] == [name]
        if name and parent is not None and not is_title:
            level, outer = self._entry_levels.setdefault(parent.mem_id, self._level), self._entry_level

            def end() -> None:
                self._level, self._entry_level = level, outer

            self._at_end(parent, end)
            self._level = self._entry_level = min(6, max(1, level) + 1)
            self._add_heading(self._level, anchor, name, self._code_line(name))
        if signature != name or is_title:
            self.writer.raw(self._code_line(signature))
            self.writer.end()

    def _code_line(self, text: str) -> str:
        """A text as inline code, for a line of its own."""
        self.writer.open_line(plain=True)
        self.writer.code(text)
        return self.writer.close_line()

    # --- tables --------------------------------------------------------------------------------------------

    def _table(self, node: Element) -> bool:
        self.writer.end()
        if "memname" in classes(node):  # a signature in pages of Doxygen, with a row for each parameter
            self.writer.raw(self._code_line(self._text(node)))
            self.writer.end()
            return False
        self._tables.append(Table(node.mem_id, self.writer.in_line or is_layout_table(node)))
        self._at_end(node, self._close_table)
        return True

    def _close_table(self) -> None:
        self.writer.end()
        if lines := self._tables.pop().lines():
            self.writer.block(lines)

    def _row(self, node: Element) -> bool:
        self.writer.end()
        if self._tables and not self._tables[-1].is_layout:
            self._tables[-1].begin_row(node)
        return True

    def _cell(self, node: Element) -> bool:
        if not self._tables or not self._tables[-1].has_row:
            is_member = bool(_MEMBER_CELLS.search(node.attributes.get("class") or ""))
            return self._inline(node) if is_member else self._block(node)
        self.writer.open_line()
        self._at_end(node, lambda: self._tables[-1].add(node, self.writer.close_line()))
        return True


_Handler = Callable[[_Converter, Element], bool]
_HANDLERS: dict[str, _Handler] = {
    **dict.fromkeys(LEVELS, _Converter._heading),
    **dict.fromkeys(_MARKS, _Converter._mark),
    **dict.fromkeys(CODE, _Converter._code),
    **dict.fromkeys(("div", "section", "aside", "details"), _Converter._division),
    **dict.fromkeys(("ul", "ol", "menu"), _Converter._list),
    **dict.fromkeys(SCRIPTS, _Converter._script),
    **dict.fromkeys(("td", "th"), _Converter._cell),
    "a": _Converter._link,
    "blockquote": _Converter._quote,
    "br": _Converter._line_break,
    "dl": _Converter._definitions,
    "dt": _Converter._term,
    "img": _Converter._image,
    "input": _Converter._input,
    "label": _Converter._label,
    "li": _Converter._item,
    "math": lambda self, node: not self._math(node, display=node.attributes.get("display") == "block"),
    "pre": _Converter._pre,
    "summary": _Converter._summary,
    "table": _Converter._table,
    "tr": _Converter._row,
}
"""Tag -> the method that writes the begin of such an element and returns whether to write its content too."""
