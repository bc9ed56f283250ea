"""Hostile pages of any length, each of one construct, that could keep a server busy."""

from __future__ import annotations

LINES: dict[str, str] = {
    "empty items": "-\n",
    "items": "- a\n",
    "numbered items": "1. a\n",
    "other markers": "-\n*\n+\n",
    "nested items": "".join("  " * depth + "- a\n" for depth in range(16)),
    "items in a line": "- " * 16 + "a\n",
    "boxes": "- [ ] a\n",
    "nested boxes": "- [ ] a\n  - [x] b\n",
    "boxes in a line": "- " * 15 + "[ ] a\n",
    "items apart": "- a\n\n",
    "fences in items": "- ```\n",
    "quotes": "> a\n",
    "empty quotes": ">\n",
    "nested quotes": ">" * 32 + " a\n",
    "quotes deeper and deeper": "".join(">" * n + " a\n" for n in range(33)),
    "quoted items": "> - > - > - a\n",
    "lazy quotes": "> a\nb\n",
    "lazy items": "- a\nb\n",
    "fences": "```\n",
    "two fences": "~~~\n```\n",
    "comments": "<!--\n",
    "tags": '<a b="c">\n\n',
    "less than": "<\n",
    "headings": "# a\n",
    "empty headings": "#\n",
    "numbered headings": "# a_1\n",
    "levels": "# a\n## b\n### c\n#### d\n",
    "underlined": "a\n=\n",
    "rules": "---\n",
    "almost rules": "* " * 300 + "x\n",
    "pipes": "|\n",
    "tables": "| a | b |\n|---|---|\n| c | d |\n\n",
    "references": "[a]: b\n",
    "open references": "[\n",
    "unfinished titles": '[a]: b "\n',
    "footnotes": "[^a]: b\n",
    "code": "    a\n\n",
    "blank lines": "\n",
    "spaces": " \n",
    "tabs": "\t\n",
    "carriage returns": "\r",
    "form feeds": "\f\n",
    "admonitions": "!!! note\n    a\n",
    "a word": "a",
    "a line": "a ",
    "open brackets": "[",
    "stars": "*",
    "less than in a line": "<",
}
"""Name -> repeated text."""
IN_HEADINGS: dict[str, str] = {
    "emphasis": "*a_b",
    "emphasis in emphasis": "*_a",
    "strong": "a**b",
    "closers": "a* ",
    "odd runs": "a***b*",
    "strikes": "~~a",
    "ticks": "`a``b",
    "brackets": "[",
    "pictures": "![",
    "closing brackets": "]",
    "targets": "[](",
    "spaced targets": "[a](      ",
    "titles": '[a](b "',
    "notes": "[^a",
    "opened comments": "<!--",
    "MDX comments": "{/*",
    "MDX ids": "{/* #a ",
    "tags": '<a b="c" ',
    "spaced tags": "<a b      ",
    "addresses": "<a@b",
    "entities": "&",
    "braces": "{",
    "spaced braces": "   {   ",
    "classes": "{.a .b ",
    "values": '{a="b ',
    "words": "aaaaaaaaa-",
    "backslashes": "\\*",
}
"""Name -> repeated text in headings of 2,000 characters, the longest that are read."""


def page(name: str, size: int) -> str:
    """A page of about ``size`` characters."""
    if name in LINES:
        return LINES[name] * (size // len(LINES[name]))
    inside = IN_HEADINGS[name.removeprefix("headings of ")]
    heading = "# a" + (inside * 2000)[:1990] + "b\n"
    return heading * max(size // len(heading), 1)


NAMES = [*LINES, *(f"headings of {name}" for name in IN_HEADINGS)]
