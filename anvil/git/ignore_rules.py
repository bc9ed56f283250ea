"""Which paths git ignores by its rules: those of ``.gitignore`` files, ``info/exclude`` and the user's own file.

libgit2 gives other answers: it drops a ``!`` line that undoes a rule of another file, and reads some rules without end.
"""

from __future__ import annotations

import errno
import itertools
import os
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from anvil.errors import GitError
from anvil.formats import patterns
from anvil.system import safe_files

MAX_RULES_BYTES = 256_000
"""A larger file of rules is an error: compiling patterns takes a second for 100 kB."""
_WILDCARDS = frozenset("*?[\\")


class _Rule(NamedTuple):
    """``only_name``: the pattern is compared with the name of a file or folder, not with its path."""

    undoes: bool
    only_folders: bool
    only_name: bool
    pattern: str


class IgnoreRules:
    """The rules of a work tree. Not thread-safe.

    ``root``: the work tree. ``shared``: files whose rules hold for all of it; those of the first one count least.
    ``staged``: the bytes of a ``.gitignore`` that the work tree lacks, such as in a sparse checkout.
    """

    def __init__(
        self,
        root: Path,
        shared: Sequence[Path],
        *,
        ignore_case: bool,
        staged: Callable[[str], bytes] = lambda path: b"",
    ) -> None:
        self._root = root
        self._shared = shared
        self._ignore_case = ignore_case
        self._staged = staged
        self._folders: dict[str, _Folder] = {}

    def reload(self) -> None:
        self._folders.clear()

    def match(self, path: str) -> bool:
        """Whether the rules ignore a path, or a folder around it: relative to the root, of a folder with a slash at its
        end. Raises :class:`GitError` for a file of rules that cannot be used."""
        path = os.fsencode(path).decode("latin-1")  # git compares bytes
        folder = path.rstrip("/").rpartition("/")[0]
        unknown = []
        while folder not in self._folders:
            unknown.append(folder)
            if not folder:
                break
            folder = folder.rpartition("/")[0]
        for folder in reversed(unknown):
            self._folders[folder] = self._read(folder)
        return self._folders[path.rstrip("/").rpartition("/")[0]].ignores(path)

    def _read(self, folder: str) -> _Folder:
        if not folder:
            around = _Folder(False, [(0, _File(file, self._ignore_case, follow=True)) for file in self._shared[::-1]])
        else:
            around = self._folders[folder.rpartition("/")[0]]
            if around.ignores(folder + "/"):
                return _Folder(True, ())
        name = os.path.join(os.fsdecode(folder.encode("latin-1")), ".gitignore")
        own = _File(self._root / name, self._ignore_case, staged=self._staged(name))
        return _Folder(False, [(len(folder) + bool(folder), own), *around.files])


class _Folder:
    """``files``: those whose rules hold in a folder, each with where paths begin that its patterns are compared with;
    the first one that has a fitting rule decides."""

    def __init__(self, ignored: bool, files: Sequence[tuple[int, _File]]) -> None:
        self._ignored = ignored
        self.files = [(start, file) for start, file in files if file.groups]

    def ignores(self, path: str) -> bool:
        if self._ignored:
            return True
        verdicts = (file.verdict(path[start:]) for start, file in self.files)
        return next((verdict for verdict in verdicts if verdict is not None), False)


class _File:
    """The rules of one file, in groups of neighbours that all ignore or all undo; the last one first."""

    def __init__(self, file: Path, ignore_case: bool, *, follow: bool = False, staged: bytes = b"") -> None:
        self._ignore_case = ignore_case
        try:
            data = safe_files.data(file, MAX_RULES_BYTES, follow=follow)
        except FileNotFoundError:
            data = staged
        except OSError as error:
            if error.errno == errno.EFBIG:
                raise GitError(f"{file} cannot be used: {safe_files.reason(error)}.") from error
            data = b""  # git does not read it either, such as a folder
        if ignore_case:
            data = data.lower().replace(b"[:upper:]", b"[:lower:]")
        rules = _rules(data)
        groups = itertools.groupby(rules, lambda rule: rule.undoes)
        self.groups = [_Group(undo, list(group)) for undo, group in groups][::-1]

    def verdict(self, path: str) -> bool | None:
        """Whether the file ignores a path, relative to its folder; None when no rule fits."""
        if self._ignore_case:  # git folds ASCII alone, and so do bytes
            path = path.encode("latin-1").lower().decode("latin-1")
        names = path.rstrip("/")
        keys = {names.rpartition("/")[2], "/" + names}
        if path != names:
            keys |= {key + "/" for key in keys}
        return next((not group.undo for group in self.groups if group.fits(path, keys)), None)


class _Group:
    def __init__(self, undo: bool, rules: Sequence[_Rule]) -> None:
        self.undo = undo
        self._literal: set[str] = set()
        self._wild: dict[bool, list[_Rule]] = {True: [], False: []}
        """Whether they are compared with names -> rules."""
        endings = []
        for rule in rules:
            tail = "/" if rule.only_folders else ""
            if not _WILDCARDS & set(rule.pattern):
                self._literal.add(("" if rule.only_name else "/") + rule.pattern + tail)
            elif rule.only_name and rule.pattern[0] == "*" and not _WILDCARDS & set(rule.pattern[1:]):
                endings.append(rule.pattern[1:] + tail)  # the most frequent kind, such as *.log
            else:
                self._wild[rule.only_name].append(rule)
        self._endings = tuple(endings)

    def fits(self, path: str, keys: set[str]) -> bool:
        """Whether a rule fits. ``keys``: what one without wildcards can be equal to."""
        if not self._literal.isdisjoint(keys) or any(key.endswith(self._endings) for key in keys):
            return True
        name = path[path.rstrip("/").rfind("/") + 1 :]
        return (
            self._expressions[True].fullmatch(name) is not None or self._expressions[False].fullmatch(path) is not None
        )

    @cached_property
    def _expressions(self) -> dict[bool, re.Pattern[str]]:
        return {only_name: _compiled(rules) for only_name, rules in self._wild.items()}


def literal(path: str) -> str:
    """The pattern of a rule, or of a line in ``.gitattributes``, that fits this path alone."""
    escaped = re.sub(r"([\\*?\[\]])", r"\\\1", path)
    return f"\\{escaped}" if escaped.startswith(("!", "#")) else escaped


def _compiled(rules: Sequence[_Rule]) -> re.Pattern[str]:
    """An expression for the names or paths that fit one of the rules; those of folders have a slash at the end."""
    numbers = itertools.count()
    # A wildcard at the end is no empty name.
    return re.compile(
        "|".join(
            f"(?:{patterns.wildmatch(rule.pattern, numbers)})(?<!/)/{'' if rule.only_folders else '?'}"
            for rule in rules
        )
        or "(?!)"
    )


def _rules(data: bytes) -> list[_Rule]:
    """The rules in a file, as git reads them."""
    rules = []
    for line in data.removeprefix(b"\xef\xbb\xbf").decode("latin-1").split("\n"):
        line = line.removesuffix("\r")
        pattern = line.rstrip(" ")
        if (len(pattern) - len(pattern.rstrip("\\"))) % 2 and pattern != line:
            pattern += " "  # its backslash keeps the first blank
        if pattern.startswith("#"):
            continue
        undoes = pattern.startswith("!")
        pattern = pattern[undoes:]
        only_folders = pattern.endswith("/")
        pattern = pattern[: len(pattern) - only_folders]
        only_name = "/" not in pattern
        pattern = pattern.removeprefix("/")
        if pattern and not pattern.startswith(("/", "./")) and not pattern.endswith("/"):  # these match no path
            rules.append(_Rule(undoes, only_folders, only_name, pattern))
    return rules
