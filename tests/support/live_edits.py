"""Pages that are edited, renamed and deleted while a server answers: each answer must match the present files.

A run counts its changes, and collects a sentence for each stale answer.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Ask = Callable[..., dict[str, Any] | None]
"""(tool, **arguments) -> the structured content of its result; None for a tool error."""


@dataclass
class LiveEdits:
    """Writes pages below ``docs``, a folder of its own, and checks that ``ask`` finds them."""

    docs: Path
    chance: random.Random
    ask: Ask = lambda tool, **arguments: None
    words: dict[str, str] = field(default_factory=dict)
    """Page -> the word that only its present text has."""
    gone: list[str] = field(default_factory=list)
    """Words of former texts."""
    changes: int = 0
    """Changes so far; the number of the next one."""
    tried: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def begin(self, pages: int = 3) -> None:
        """Write the first pages."""
        for number in range(pages):
            self._write(f"first{number}.md", number)
        self.changes = pages

    def run(self, rounds: int) -> None:
        """Change a page, then ask; repeat."""
        for number in range(self.changes, self.changes + rounds):
            kind = self.chance.choice(["write", "write", "edit", "edit", "edit", "rename", "delete"])
            if kind != "write" and not self.words:
                kind = "write"
            self.tried[kind] += 1
            path = self._change(kind, number)
            self._check(f"round {number}, {kind} {path}", path)
        self.changes += rounds

    def _change(self, kind: str, number: int) -> str:
        if kind == "write":
            path = f"{self.chance.choice(['', 'guides/', 'a/b/'])}page{number}.md"
            self._write(path, number)
            return path
        path = self.chance.choice(sorted(self.words))
        file = self.docs / path
        if kind == "edit":
            self._write(path, number)
        elif kind == "delete":
            file.unlink()
            self.gone.append(self.words.pop(path))
        else:
            target = f"moved/page{number}.md"
            (self.docs / target).parent.mkdir(exist_ok=True)
            file.rename(self.docs / target)
            self.words[target] = self.words.pop(path)
        return path

    def _write(self, path: str, number: int) -> None:
        if path in self.words:
            self.gone.append(self.words[path])
        self.words[path] = f"quux{number}zib"
        file = self.docs / path
        file.parent.mkdir(parents=True, exist_ok=True)
        more = "Some text. " * self.chance.randrange(60)
        text = f"# Page {number}\n\nIt names {self.words[path]}.\n\n## More\n\n{more}\n"
        if self.chance.random() < 0.5 or not file.exists():
            file.write_text(text, encoding="utf-8")
        else:
            fresh = file.with_suffix(".tmp")
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(file)

    def _check(self, where: str, path: str) -> None:
        question = self.chance.choice(["page", "search", "gone", "list"])
        self.tried[f"asked for {question}"] += 1
        if question == "page":
            page = self.ask("get_page", file_path=path)
            text = "".join(chunk["content"] for chunk in page["chunks"]) if page else None
            word = self.words.get(path)
            if (text is None) != (word is None) or (word is not None and word not in (text or "")):
                self._fail(where, f"get_page has {text!r}, the file has {word!r}")
        elif question == "search" and self.words:
            other, word = self.chance.choice(sorted(self.words.items()))
            found = self._found(word)
            if found != {other}:
                self._fail(where, f"search for {word} gives {found}, it is in {other}")
        elif question == "gone" and self.gone:
            word = self.gone[-1]
            if found := self._found(word):
                self._fail(where, f"search for {word} gives {found}, it is in no page")
        elif question == "list":
            listing = self.ask("list_pages") or {"pages": []}
            listed = {page["file_path"] for page in listing["pages"]}
            if listed != set(self.words):
                self._fail(where, f"list_pages differs by {listed ^ set(self.words)}")

    def _found(self, word: str) -> set[str]:
        """The pages of which a result holds a word."""
        result = self.ask("search_docs", query=word, mode="keyword") or {"results": []}
        return {hit["metadata"]["file_path"] for hit in result["results"] if word in hit["content"]}

    def _fail(self, where: str, what: str) -> None:
        self.failures.append(f"{where}: {what}")
