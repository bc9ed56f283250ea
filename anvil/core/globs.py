"""Globs over POSIX paths, for choosing source files and for filtering answers by page.

One meaning everywhere: ``*``, ``?`` and ``[a-z]`` stay within a folder, ``**`` as a whole segment crosses
them, and ``{a,b}`` is either. Matching takes one step a character whatever the pattern, so a pattern from a
stranger cannot stall a server, and a malformed one matches nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

_MAX_PATTERN_CHARACTERS = 1024
_MAX_ALTERNATIVES = 256
_MAX_NODES = 4096

_Test = Callable[[str], bool]


class _Malformed(ValueError):
    """A pattern that has no meaning; the text says why."""


def bounded(pattern: str) -> str:
    """The pattern, cut behind the place where it is too long to mean anything: what is remembered by it stays small."""
    return pattern[: _MAX_PATTERN_CHARACTERS + 1]


def compile(pattern: str, *, ignore_case: bool = False) -> Glob:
    """The glob for a pattern; compiled ones are remembered and may be shared by threads.

    Never raises: what is malformed gives a glob that matches nothing and says why in ``malformed``. A
    leading ``/`` or ``./`` is dropped, and a trailing ``/`` means everything beneath.
    """
    return _compiled(bounded(pattern), ignore_case)


@lru_cache(maxsize=512)
def _compiled(pattern: str, ignore_case: bool) -> Glob:
    return Glob(pattern, ignore_case=ignore_case)


def matches(pattern: str, path: str) -> bool:
    """Whether the whole of ``path`` (POSIX, relative) fits the pattern; case matters."""
    return compile(pattern).matches(path)


class Glob:
    """A compiled pattern: a small automaton whose deterministic states are made when a path first needs
    them."""

    __slots__ = ("_automaton", "_ignore_case", "malformed", "pattern")

    def __init__(self, pattern: str, *, ignore_case: bool = False) -> None:
        self.pattern = pattern
        self.malformed: str | None = None
        self._ignore_case = ignore_case
        self._automaton = _Automaton()
        try:
            for alternative in _expand(pattern.lower() if ignore_case else pattern):
                self._automaton.add(_anchored(alternative))
        except _Malformed as reason:
            self.malformed = str(reason)
            self._automaton = _Automaton()

    def matches(self, path: str) -> bool:
        """Whether the whole of ``path`` fits."""
        node = self._automaton.start()
        for character in path.lower() if self._ignore_case else path:
            node = node[character]
        return node.accepts

    def __repr__(self) -> str:
        return f"Glob({self.pattern!r})"


class _Node(dict[str, "_Node"]):
    """A deterministic state: character -> next state, filled as characters are met."""

    __slots__ = ("accepts", "automaton", "states")

    def __init__(self, automaton: _Automaton, states: frozenset[int]) -> None:
        self.automaton = automaton
        self.states = states
        self.accepts = not states.isdisjoint(automaton.accepting)

    def __missing__(self, character: str) -> _Node:
        node = self[character] = self.automaton.step(self.states, character)
        return node


class _Automaton:
    """Nondeterministic states of all alternatives side by side: tested edges, and free moves."""

    def __init__(self) -> None:
        self.accepting: set[int] = set()
        self._edges: list[list[tuple[_Test, int]]] = []
        self._free: list[int | None] = []
        self._starts: list[int] = []
        self._nodes: dict[frozenset[int], _Node] = {}
        self._start: _Node | None = None

    def add(self, pattern: str) -> None:
        """Append the states of one alternative, brace-free pattern."""
        state = self._state()
        self._starts.append(state)
        at = 0
        while at < len(pattern):
            character = pattern[at]
            if character == "*":
                end = at
                while end < len(pattern) and pattern[end] == "*":
                    end += 1
                whole = end - at == 2 and (at == 0 or pattern[at - 1] == "/")
                if whole and end == len(pattern):  # everything beneath, at least one character
                    inner = self._state()
                    self._edges[state].append((_anything, inner))
                    self._edges[inner].append((_anything, inner))
                    state, at = inner, end
                elif whole and pattern[end] == "/":  # any number of whole folders, none included
                    inner, after = self._state(), self._state()
                    self._edges[state].append((_within, inner))
                    self._edges[inner] += [(_within, inner), ("/".__eq__, state)]
                    self._free[state] = after
                    state, at = after, end + 1
                else:
                    after = self._state()
                    self._edges[state].append((_within, state))
                    self._free[state] = after
                    state, at = after, end
                continue
            if character == "?":
                test: _Test = _within
                at += 1
            elif character == "[":
                test, at = _character_class(pattern, at)
            else:
                if character == "\\":
                    at += 1
                test = pattern[at].__eq__
                at += 1
            after = self._state()
            self._edges[state].append((test, after))
            state = after
        self.accepting.add(state)

    def start(self) -> _Node:
        if self._start is None:
            self._start = self._node(list(self._starts))
        return self._start

    def step(self, states: frozenset[int], character: str) -> _Node:
        return self._node([to for state in states for test, to in self._edges[state] if test(character)])

    def _node(self, states: list[int]) -> _Node:
        reached: set[int] = set()
        while states:
            state = states.pop()
            if state not in reached:
                reached.add(state)
                if (free := self._free[state]) is not None:
                    states.append(free)
        key = frozenset(reached)
        node = self._nodes.get(key)
        if node is None:
            if len(self._nodes) >= _MAX_NODES:  # bounded memory: forget, and make again what is needed
                self._nodes.clear()
                self._start = None
            node = self._nodes[key] = _Node(self, key)
        return node

    def _state(self) -> int:
        self._edges.append([])
        self._free.append(None)
        return len(self._edges) - 1


def _anything(character: str) -> bool:
    return True


def _within(character: str) -> bool:
    return character != "/"


def _anchored(pattern: str) -> str:
    while pattern.startswith(("/", "./")):
        pattern = pattern[1:] if pattern[0] == "/" else pattern[2:]
    return pattern + "**" if pattern.endswith("/") else pattern


def _character_class(pattern: str, at: int) -> tuple[_Test, int]:
    """The test of the class that opens at ``at``, and the position after it. A class never matches ``/``."""
    end = _class_end(pattern, at)
    body = pattern[at + 1 : end - 1]
    negated = body[:1] in ("!", "^")
    ranges: list[tuple[str, str]] = []
    items = _class_items(body[1:] if negated else body)
    index = 0
    while index < len(items):
        low = items[index][0]
        if index + 2 < len(items) and items[index + 1] == ("-", True):
            high = items[index + 2][0]
            if high < low:
                raise _Malformed(f"the range {low}-{high} runs backwards")
            index += 3
        else:
            high = low
            index += 1
        ranges.append((low, high))

    def test(character: str) -> bool:
        return character != "/" and negated != any(low <= character <= high for low, high in ranges)

    return test, end


def _class_items(body: str) -> list[tuple[str, bool]]:
    """The characters of a class body, each with whether it stood unescaped."""
    items: list[tuple[str, bool]] = []
    at = 0
    while at < len(body):
        escaped = body[at] == "\\"
        at += escaped
        items.append((body[at], not escaped))
        at += 1
    return items


def _class_end(pattern: str, at: int) -> int:
    """The position after the class that opens at ``at``; a ``]`` that comes first is a member."""
    at += 1
    if pattern[at : at + 1] in ("!", "^"):
        at += 1
    first = at
    while at < len(pattern):
        if pattern[at] == "]" and at > first:
            return at + 1
        at += 2 if pattern[at] == "\\" else 1
    raise _Malformed("a [ is never closed")


def _expand(pattern: str) -> list[str]:
    """Every alternative of the pattern's braces, in order; at most 256 of them."""
    if len(pattern) > _MAX_PATTERN_CHARACTERS:
        raise _Malformed(f"longer than {_MAX_PATTERN_CHARACTERS} characters")
    if not pattern:
        raise _Malformed("empty")
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        text = waiting.pop()
        parts = _first_braces(text)
        if parts is None:
            done.append(text)
        else:
            head, alternatives, tail = parts
            waiting += [head + alternative + tail for alternative in reversed(alternatives)]
        if len(done) + len(waiting) > _MAX_ALTERNATIVES:
            raise _Malformed(f"more than {_MAX_ALTERNATIVES} alternatives")
    return done


def _first_braces(text: str) -> tuple[str, list[str], str] | None:
    """Text before the first braces, their alternatives, and text after; None without braces."""
    depth, opened, cut, at = 0, 0, 0, 0
    alternatives: list[str] = []
    while at < len(text):
        character = text[at]
        if character == "\\":
            if at + 1 == len(text):
                raise _Malformed("it ends in a backslash")
            at += 1
        elif character == "[":
            at = _class_end(text, at) - 1
        elif character == "{":
            depth += 1
            if depth == 1:
                opened, cut = at, at + 1
        elif depth and character in ",}":
            if depth == 1:
                alternatives.append(text[cut:at])
                cut = at + 1
            if character == "}":
                depth -= 1
                if depth == 0:
                    return text[:opened], alternatives, text[at + 1 :]
        at += 1
    if depth:
        raise _Malformed("a { is never closed")
    return None
