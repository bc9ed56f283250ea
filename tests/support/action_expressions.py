"""The part of GitHub's expression language that this project's action and workflows use, evaluated as the runner does.

As the reference "Evaluate expressions in workflows and actions" has it: strings are compared without regard to case,
null, false, 0 and the empty string are false, ``&&`` and ``||`` give one of their operands. What is not written here
is an error, so that the action cannot come to use it unnoticed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<name>[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*)|(?P<sign>==|!=|&&|\|\||[!(),]))"
)
_EMBEDDED = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_LITERALS = {"true": True, "false": False, "null": None}

Functions = Mapping[str, Callable[..., Any]]


def interpolate(text: str, contexts: Mapping[str, Any], functions: Functions) -> str:
    """A string with its ``${{ }}`` replaced by their values."""
    return _EMBEDDED.sub(lambda found: shown(evaluate(found[1], contexts, functions)), text)


def condition(text: str, contexts: Mapping[str, Any], functions: Functions) -> bool:
    """An ``if:``, with or without ``${{ }}`` around it; ``success()`` is part of one that names no status function."""
    whole = _EMBEDDED.fullmatch(text.strip())
    expression = whole[1] if whole else text
    if not re.search(r"\b(success|always|failure|cancelled)\(\)", expression):
        expression = f"success() && ({expression})"
    return truth(evaluate(expression, contexts, functions))


def evaluate(expression: str, contexts: Mapping[str, Any], functions: Functions) -> Any:
    """The value of an expression."""
    return _Parser(expression, contexts, functions).whole()


def truth(value: Any) -> bool:
    """Whether a value counts as true."""
    return value not in (None, False, 0, "")


def shown(value: Any) -> str:
    """A value as text."""
    return {None: "", True: "true", False: "false"}.get(value, str(value))


def equal(left: Any, right: Any) -> bool:
    """Whether two values are equal: strings whatever their case, null as an empty string."""
    return shown(left).casefold() == shown(right).casefold()


class _Parser:
    def __init__(self, expression: str, contexts: Mapping[str, Any], functions: Functions) -> None:
        self._tokens: list[tuple[str, str]] = []
        place = 0
        expression = expression.strip()
        while place < len(expression):
            found = _TOKEN.match(expression, place)
            assert found and found.lastgroup, f"not understood: {expression[place:]!r}"
            self._tokens.append((found.lastgroup, found[found.lastgroup]))
            place = found.end()
        self._contexts = contexts
        self._functions = functions

    def whole(self) -> Any:
        value = self._either()
        assert not self._tokens, f"left over: {self._tokens}"
        return value

    def _next_is(self, *signs: str) -> bool:
        return bool(self._tokens) and self._tokens[0][0] == "sign" and self._tokens[0][1] in signs

    def _take(self, sign: str) -> None:
        assert self._next_is(sign), f"{sign} expected, not {self._tokens[:1]}"
        self._tokens.pop(0)

    def _either(self) -> Any:
        value = self._both()
        while self._next_is("||"):
            self._take("||")
            other = self._both()
            value = value if truth(value) else other
        return value

    def _both(self) -> Any:
        value = self._compared()
        while self._next_is("&&"):
            self._take("&&")
            other = self._compared()
            value = other if truth(value) else value
        return value

    def _compared(self) -> Any:
        value = self._single()
        while self._next_is("==", "!="):
            sign = self._tokens.pop(0)[1]
            same = equal(value, self._single())
            value = same if sign == "==" else not same
        return value

    def _single(self) -> Any:
        if self._next_is("!"):
            self._take("!")
            return not truth(self._single())
        if self._next_is("("):
            self._take("(")
            value = self._either()
            self._take(")")
            return value
        kind, text = self._tokens.pop(0)
        if kind == "text":
            return text[1:-1].replace("''", "'")
        assert kind == "name", f"not understood: {text!r}"
        if self._next_is("("):
            return self._called(text)
        return _LITERALS[text] if text in _LITERALS else self._looked_up(text)

    def _called(self, name: str) -> Any:
        self._take("(")
        arguments = []
        while not self._next_is(")"):
            arguments.append(self._either())
            if not self._next_is(")"):
                self._take(",")
        self._take(")")
        return self._functions[name](*arguments)

    def _looked_up(self, dotted: str) -> Any:
        context, *rest = dotted.split(".")
        value: Any = self._contexts[context]  # a context that does not exist is a mistake of the author
        for key in rest:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value
