"""Git's ignore rules, from ``.gitignore`` files, ``info/exclude`` and the user's own file: which paths git ignores.

libgit2's own rules are not used. It drops a ``!`` line that undoes a rule of another file, and it reads some rules in
an endless loop."""

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
"""A larger file of rules is an error: compiling the patterns of 100 kB takes a second."""
_WILDCARDS = frozenset("*?[\\")


class _Rule(NamedTuple):
    """One line of a file of rules.

    ``undoes``: it begins with ``!``. ``only_name``: the pattern is compared with names of files or folders.
    """

    undoes: bool
    only_folders: bool
    only_name: bool
    pattern: str


class IgnoreRules:
    """The ignore rules of a work tree. Not thread-safe.

    - ``root``: the work tree.
    - ``shared``: files with rules for the whole work tree. A later file wins over an earlier one.
    - ``staged`` returns the staged bytes of a ``.gitignore`` that is missing on disk, such as in a sparse checkout.
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
        """Whether the rules ignore a path or a folder above it. ``path``: relative to the root; a folder has a slash at
        its end. Raises :class:`GitError` if a file of rules cannot be used."""
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
            parent = _Folder(False, [(0, _File(file, self._ignore_case, follow=True)) for file in self._shared[::-1]])
        else:
            parent = self._folders[folder.rpartition("/")[0]]
            if parent.ignores(folder + "/"):
                return _Folder(True, ())
        name = os.path.join(os.fsdecode(folder.encode("latin-1")), ".gitignore")
        own = _File(self._root / name, self._ignore_case, staged=self._staged(name))
        return _Folder(False, [(len(folder) + bool(folder), own), *parent.files])


class _Folder:
    """The rules that hold in a folder.

    ``files``: the files of rules, the nearest one first, each with the length of the path of its own folder. The first
    file with a matching rule decides.
    """

    def __init__(self, ignored: bool, files: Sequence[tuple[int, _File]]) -> None:
        self._ignored = ignored
        self.files = [(start, file) for start, file in files if file.groups]

    def ignores(self, path: str) -> bool:
        if self._ignored:
            return True
        verdicts = (file.verdict(path[start:]) for start, file in self.files)
        return next((verdict for verdict in verdicts if verdict is not None), False)


class _File:
    """The rules of one file, in groups of neighbours that all ignore or all undo. The last group comes first."""

    def __init__(self, file: Path, ignore_case: bool, *, follow: bool = False, staged: bytes = b"") -> None:
        self._ignore_case = ignore_case
        try:
            data = safe_files.data(file, MAX_RULES_BYTES, follow=follow)
        except FileNotFoundError:
            data = staged
        except OSError as error:
            if error.errno == errno.EFBIG:
                raise GitError(f"{file} cannot be used: {safe_files.reason(error)}.") from error
            data = b""  # such as a folder, which git does not read, either
        if ignore_case:
            data = data.lower().replace(b"[:upper:]", b"[:lower:]")
        rules = _rules(data)
        groups = itertools.groupby(rules, lambda rule: rule.undoes)
        self.groups = [_Group(undoes, list(group)) for undoes, group in groups][::-1]

    def verdict(self, path: str) -> bool | None:
        """Whether the file ignores a path relative to its folder; None if no rule matches."""
        if self._ignore_case:  # as bytes, because git folds only ASCII
            path = path.encode("latin-1").lower().decode("latin-1")
        names = path.rstrip("/")
        keys = {names.rpartition("/")[2], "/" + names}
        if path != names:
            keys |= {key + "/" for key in keys}
        return next((not group.undoes for group in self.groups if group.matches(path, keys)), None)


class _Group:
    """Neighbouring rules that all ignore or all undo, prepared for fast comparison."""

    def __init__(self, undoes: bool, rules: Sequence[_Rule]) -> None:
        self.undoes = undoes
        self._literal: set[str] = set()
        self._wild: dict[bool, list[_Rule]] = {True: [], False: []}
        """Rules with wildcards: those for names under True, those for paths under False."""
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

    def matches(self, path: str, keys: set[str]) -> bool:
        """Whether a rule matches. ``keys``: the forms of the path to which a rule without wildcards can be equal."""
        if not self._literal.isdisjoint(keys) or any(key.endswith(self._endings) for key in keys):
            return True
        name = path[path.rstrip("/").rfind("/") + 1 :]
        return (
            self._expressions[True].fullmatch(name) is not None or self._expressions[False].fullmatch(path) is not None
        )

    @cached_property
    def _expressions(self) -> dict[bool, re.Pattern[str]]:
        return {only_name: _any_of(rules) for only_name, rules in self._wild.items()}


def literal(path: str) -> str:
    """The pattern of a rule, or of a line in ``.gitattributes``, that matches only this path."""
    escaped = re.sub(r"([\\*?\[\]])", r"\\\1", path)
    return f"\\{escaped}" if escaped.startswith(("!", "#")) else escaped


def _any_of(rules: Sequence[_Rule]) -> re.Pattern[str]:
    """The expression for names or paths that match one of the rules. Folders have a slash at the end."""
    numbers = itertools.count()
    # (?<!/): a wildcard at the end does not match an empty name.
    return re.compile(
        "|".join(
            f"(?:{patterns.wildmatch(rule.pattern, numbers)})(?<!/)/{'' if rule.only_folders else '?'}"
            for rule in rules
        )
        or "(?!)"
    )


def _rules(data: bytes) -> list[_Rule]:
    rules = []
    for line in data.removeprefix(b"\xef\xbb\xbf").decode("latin-1").split("\n"):
        line = line.removesuffix("\r")
        pattern = line.rstrip(" ")
        if (len(pattern) - len(pattern.rstrip("\\"))) % 2 and pattern != line:
            pattern += " "  # the backslash keeps the blank behind it
        if pattern.startswith("#"):
            continue
        undoes = pattern.startswith("!")
        pattern = pattern[undoes:]
        only_folders = pattern.endswith("/")
        pattern = pattern[: len(pattern) - only_folders]
        only_name = "/" not in pattern
        pattern = pattern.removeprefix("/")
        if pattern and not pattern.startswith(("/", "./")) and not pattern.endswith("/"):  # these match nothing
            rules.append(_Rule(undoes, only_folders, only_name, pattern))
    return rules
