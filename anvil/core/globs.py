"""Globs over POSIX paths, to select source files and to filter results by page.

``*``, ``?`` and ``[a-z]`` match within a folder, ``**`` as a whole segment matches any number of folders, and ``{a,b}``
matches either. A pattern from a client must not stall a server. Regular expressions backtrack, so a glob is an
automaton: matching takes one step for each character of the path. An invalid pattern matches nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

_MAX_PATTERN_CHARACTERS = 1024
_MAX_ALTERNATIVES = 256
_MAX_NODES = 4096

_Test = Callable[[str], bool]


class _Malformed(ValueError):
    """A pattern that is not valid; the text says why."""


def bounded(pattern: str) -> str:
    """The pattern, cut where it is too long to be valid, so that caches by pattern stay small."""
    return pattern[: _MAX_PATTERN_CHARACTERS + 1]


def compile(pattern: str, *, ignore_case: bool = False) -> Glob:
    """The glob for a pattern. Globs are cached and can be shared by threads.

    An invalid pattern raises nothing: its glob matches no path, and ``malformed`` says why. A leading ``/`` or ``./``
    is ignored. A trailing ``/`` means all files below.
    """
    return _compiled(bounded(pattern), ignore_case)


@lru_cache(maxsize=512)
def _compiled(pattern: str, ignore_case: bool) -> Glob:
    return Glob(pattern, ignore_case=ignore_case)


def matches(pattern: str, path: str) -> bool:
    """Whether the pattern matches the whole of ``path`` (POSIX, relative); case-sensitive."""
    return compile(pattern).matches(path)


class Glob:
    """A compiled pattern: an automaton that makes each deterministic state when a path first reaches it."""

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
        """Whether the pattern matches the whole of ``path``."""
        node = self._automaton.start()
        for character in path.lower() if self._ignore_case else path:
            node = node[character]
        return node.accepts

    def __repr__(self) -> str:
        return f"Glob({self.pattern!r})"


class _Node(dict[str, "_Node"]):
    """A deterministic state: character -> next state, filled on demand."""

    __slots__ = ("accepts", "automaton", "states")

    def __init__(self, automaton: _Automaton, states: frozenset[int]) -> None:
        self.automaton = automaton
        self.states = states
        self.accepts = not states.isdisjoint(automaton.accepting)

    def __missing__(self, character: str) -> _Node:
        node = self[character] = self.automaton.step(self.states, character)
        return node


class _Automaton:
    """The nondeterministic states of all alternatives: edges with a test, and edges that take no character."""

    def __init__(self) -> None:
        self.accepting: set[int] = set()
        self._edges: list[list[tuple[_Test, int]]] = []
        self._free: list[int | None] = []
        self._starts: list[int] = []
        self._nodes: dict[frozenset[int], _Node] = {}
        self._start: _Node | None = None

    def add(self, pattern: str) -> None:
        """Add the states of one alternative, a pattern without braces."""
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
                if whole and end == len(pattern):  # all files below: at least one character
                    inner = self._state()
                    self._edges[state].append((_anything, inner))
                    self._edges[inner].append((_anything, inner))
                    state, at = inner, end
                elif whole and pattern[end] == "/":  # any number of folders, also none
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
            if len(self._nodes) >= _MAX_NODES:  # limit the memory: states are made again on demand
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
    """The test of the class that begins at ``at``, and the position after it. A class never matches ``/``."""
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
    """(character, whether it is not escaped) of a class body."""
    items: list[tuple[str, bool]] = []
    at = 0
    while at < len(body):
        escaped = body[at] == "\\"
        at += escaped
        items.append((body[at], not escaped))
        at += 1
    return items


def _class_end(pattern: str, at: int) -> int:
    """The position after the class that begins at ``at``. A ``]`` at its beginning is a member."""
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
    """All alternatives of the pattern's braces, in order."""
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
    """The text before the first braces, their alternatives, and the text after; None without braces."""
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
