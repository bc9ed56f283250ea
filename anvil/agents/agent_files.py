"""The files that agents read at their start, and the pointer to the documentation in them."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from anvil.agents import skill
from anvil.agents.marked_block import block_body, blocks, with_block, without_block
from anvil.agents.pointer_text import DocumentationPointer, repository_pointer
from anvil.bundle.project_metadata import find_project
from anvil.documents import repository_files
from anvil.documents.document_source import DocumentSource
from anvil.errors import AnvilError, BuildError, ConfigError
from anvil.settings.configuration import load_config, nearest_config
from anvil.system import safe_files

if TYPE_CHECKING:
    from anvil.api import Anvil

FIRST = "AGENTS.md"
"""Created if none of the files exists."""
NAMES = (FIRST, "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md")
"""Files that people write: they get the pointer if they exist."""
RULES = ".cursor/rules"
RULE = f"{RULES}/anvil.mdc"
"""A file of Anvil's own, created if the folder exists."""
SKILLS = (".claude/skills", ".agents/skills")
SKILL = "SKILL.md"
MAX_FILE_BYTES = 1_000_000
"""Larger files are not changed."""
MAX_FOLDER_ENTRIES = 200
"""Rules, and skills, in which blocks are searched."""
_IMPORT = re.compile(rf"^[ \t]*@(?:\./)?{re.escape(FIRST)}[ \t]*\r?$", re.M)
"""How CLAUDE.md and GEMINI.md include another file."""
_FRONT_MATTER_ALONE = re.compile(r"---\r?\n(?:(?!---)[^\n]*\n)*---\s*")

Outcome = Literal["written", "unchanged", "removed"]


class FileReport(NamedTuple):
    """What became of a file. ``path``: from the root."""

    path: str
    outcome: Outcome


class AgentsReport(NamedTuple):
    """What became of the files below ``root``, and why some were left as they are. ``documentation``: the pointer, None
    where none was made."""

    root: str
    files: tuple[FileReport, ...]
    problems: tuple[str, ...]
    documentation: DocumentationPointer | None

    def changed(self) -> tuple[str, ...]:
        return tuple(file.path for file in self.files if file.outcome != "unchanged")


class StaleFiles(NamedTuple):
    """``stale``: files whose pointer is not that of the documents. ``problems``: why a file cannot be compared.
    ``compared``: how many have a pointer."""

    stale: tuple[str, ...]
    problems: tuple[str, ...]
    compared: int

    def __bool__(self) -> bool:
        return bool(self.stale or self.problems)

    def messages(self, command: str) -> tuple[str, ...]:
        """A sentence for the files that are out of date, with the command that writes them, and one for each that
        cannot be compared."""
        names = ", ".join(self.stale)
        stale = f"The pointer for agents is out of date in {names}. Run: {command}"
        return (*([stale] if names else []), *self.problems)


class AgentFiles:
    """The agents' files around a documentation folder: at the root of its repository; without one, in ``base``, the
    folder of the configuration, or in the folder above the documents.
    """

    def __init__(self, docs: Path, base: Path) -> None:
        self._docs = Path(os.path.realpath(docs))
        self._repository = repository_files.repository_of(docs)
        if self._repository is not None and not self._docs.is_relative_to(self._repository.root):
            self._repository = None
        around = Path(os.path.realpath(base))
        outside = around if self._docs.is_relative_to(around) else self._docs.parent
        self.root = outside if self._repository is None else self._repository.root
        self.docs = self._docs.relative_to(self.root).as_posix()
        """The documentation folder from :attr:`root`; ``.`` if it is the root."""

    @classmethod
    def around(cls, opened: Anvil) -> AgentFiles | None:
        """Those around the documents that are opened; None for an index alone."""
        return None if opened.folder is None else cls(opened.folder, opened.base)

    @property
    def project_name(self) -> str:
        """The name of the project in its package metadata, without the scope that npm has, else that of its folder."""
        return find_project(self.root, self.root).name.rpartition("/")[2]

    # --- the pointer -----------------------------------------------------------------------------------------------

    def pointer(self, source: DocumentSource) -> DocumentationPointer:
        """The pointer to the documents. No document is read again for it."""
        scan = source.scan()
        skipped = tuple(f"{item.path}: {item.reason}" for item in scan.skipped)
        paths = [path for path in scan.entries if not self._is_own(path)]
        return repository_pointer(paths, self.docs, self._options)._replace(skipped=skipped)

    def _is_own(self, path: str) -> bool:
        """Whether a page is one of the agents' files: the pointer is not about itself."""
        inside = path if self.docs == "." else f"{self.docs}/{path}"
        return inside in NAMES or inside.startswith(tuple(f"{folder}/" for folder in (RULES, *SKILLS)))

    @cached_property
    def _options(self) -> tuple[str, ...]:
        """The options by which a command in the root uses these documents: none if the configuration there, or the
        default, names them."""
        of_root, of_docs = nearest_config(self.root), nearest_config(self._docs)
        if self.docs == "docs" if of_root is None else self._is_configured_by(of_root):
            return ()
        if of_docs is not None and self._is_configured_by(of_docs):
            file = Path(os.path.realpath(of_docs.parent)) / of_docs.name
            return (shlex.join(["--config", file.relative_to(self.root).as_posix()]),)
        return (shlex.join(["--docs", self.docs]),)

    def _is_configured_by(self, file: Path) -> bool:
        with suppress(AnvilError):
            config, base = load_config(file, {}, {})
            return (base / config.docs).resolve() == self._docs
        return False

    # --- which files -----------------------------------------------------------------------------------------------

    def _targets(self, skill_wanted: bool) -> Iterator[tuple[str, str]]:
        """(path, first text of a new file) of the files that get the pointer."""
        # A file is created only where no agent would find the pointer otherwise.
        existing = [name for name in self._written() if os.path.lexists(self.root / name)]
        rules = (self.root / RULES).is_dir()
        yield from ((name, "") for name in existing or ([] if rules else [FIRST]))
        if rules:
            yield RULE, skill.rule_front_matter(self.docs)
        marked = set(self.with_pointer()) - {*existing, RULE}
        yield from ((path, "") for path in sorted(marked))
        for folder in SKILLS:
            if (skill_wanted or (self.root / folder).is_dir()) and not any(path.startswith(folder) for path in marked):
                name = skill.skill_name(self.project_name)
                path = f"{folder}/{name}/{SKILL}"
                if not os.path.lexists(self.root / path):
                    yield path, skill.front_matter(name, self.docs)
                elif skill_wanted:
                    raise ConfigError(f"{path} exists, and 'anvil agents' did not write it. Rename it, and try again.")

    def with_pointer(self) -> list[str]:
        """The paths of the files with a block of this documentation folder, or of one that no longer exists."""
        return [path for path in self._candidates() if self._has_pointer(path)]

    def _written(self) -> Iterator[str]:
        """The paths of the files that people write. In place of one that is a link, the Markdown file of the repository
        to which it leads."""
        root = os.path.realpath(self.root)
        written: list[str] = []
        for name in NAMES:
            target = os.path.relpath(os.path.realpath(self.root / name), root).replace(os.sep, "/")
            is_link = (self.root / name).is_symlink() and target.endswith(".md") and not target.startswith("../")
            written.append(target if is_link else name)
        yield from dict.fromkeys(written)

    def _candidates(self) -> Iterator[str]:
        """The paths at which a file may have a block."""
        yield from self._written()
        for folder, tail in ((RULES, ""), *((skills, f"/{SKILL}") for skills in SKILLS)):
            with suppress(OSError):
                names = sorted(os.listdir(self.root / folder))[:MAX_FOLDER_ENTRIES]
                for name in names:
                    is_place = os.path.isdir(self.root / folder / name) if tail else name.endswith(".mdc")
                    if is_place:  # a file beside the folders of skills, such as a README, is none
                        yield f"{folder}/{name}{tail}"

    def _has_pointer(self, path: str) -> bool:
        """Whether a file has such a block, or half of a block."""
        text = self._readable(path)
        try:
            return text is not None and bool(self._bodies(text, path))
        except ConfigError:
            return True

    def _is_gone(self, docs: str) -> bool:
        return not os.path.isdir(os.path.join(self.root, docs))

    # --- reading and writing ---------------------------------------------------------------------------------------

    def _read(self, path: str) -> str | None:
        """The text of a file; None if it does not exist. Raises :class:`AnvilError` for one that Anvil leaves alone."""
        file = self.root / path
        self._ensure_inside(path)
        state = safe_files.regular_file(file)
        if state is None:
            return None
        if state.st_size > MAX_FILE_BYTES:
            raise ConfigError(
                f"{path} has {state.st_size:,} bytes. 'anvil agents' leaves files of more than {MAX_FILE_BYTES:,} "
                "alone. Shorten it, or move it away."
            )
        try:
            return safe_files.data(file, MAX_FILE_BYTES, follow=False).decode()
        except UnicodeDecodeError:
            raise ConfigError(f"{path} is not UTF-8. Save it as UTF-8, and try again.") from None
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror}. Change its permissions.") from None

    def _ensure_inside(self, path: str) -> None:
        """Raise :class:`ConfigError` for a file in a folder that is a link out of the root."""
        parent = os.path.realpath((self.root / path).parent)
        if not Path(parent).is_relative_to(os.path.realpath(self.root)):
            raise ConfigError(f"{path} is in a folder that is a link out of {self.root}. It was left as it is.")

    def _write(self, path: str, text: str) -> None:
        file = self.root / path
        state = safe_files.regular_file(file)
        if state is not None and not state.st_mode & 0o222:  # it would be replaced all the same
            raise ConfigError(f"{path} is read-only. Make it writable, and try again. It was left as it is.")
        self._ensure_inside(path)
        safe_files.put_file(file, text.encode(), flush=False)

    def _is_covered(self, path: str) -> bool:
        """Whether readers of a file get the pointer from AGENTS.md, which it includes."""
        text = self._readable(path) if path != FIRST and os.path.lexists(self.root / FIRST) else None
        return text is not None and _IMPORT.search(text) is not None and not self._has_pointer(path)

    def write(self, source: DocumentSource, *, skill_wanted: bool = False, only_marked: bool = False) -> AgentsReport:
        """Write the pointer into the files that agents read; ``only_marked``: only into files that have it already."""
        if only_marked:
            targets = [(path, "") for path in sorted(set(self.with_pointer()))]
            if not targets:
                return AgentsReport(str(self.root), (), (), None)
        else:
            targets = list(self._targets(skill_wanted))
        documentation = self.pointer(source)
        files: list[FileReport] = []
        problems: list[str] = []
        for path, start in targets:
            if self._is_covered(path):
                continue
            try:
                before = self._read(path)
                text = self._without_gone(start if before is None else before, path)
                after = with_block(text, self.docs, documentation.text, path)
                if after != before:
                    self._write(path, after)
                files.append(FileReport(path, "unchanged" if after == before else "written"))
            except (ConfigError, BuildError) as error:
                problems.append(self._message(error))
        return AgentsReport(str(self.root), tuple(files), tuple(problems), documentation)

    def remove(self) -> AgentsReport:
        """Remove the pointer from all files, the files that have nothing else, and folders of skills that are empty
        then: an existing one gets a skill by the next :meth:`write`."""
        files: list[FileReport] = []
        problems: list[str] = []
        for path in self._candidates():
            try:
                before = self._read(path) or ""
                after = without_block(self._without_gone(before, path), self.docs, path)
                if after == before:
                    continue
                generated = path == RULE or path.endswith(f"/{SKILL}")
                if not after.strip() or (generated and _FRONT_MATTER_ALONE.fullmatch(after)):
                    self._delete(path)
                    files.append(FileReport(path, "removed"))
                else:
                    self._write(path, after)
                    files.append(FileReport(path, "written"))
            except (ConfigError, BuildError) as error:
                problems.append(self._message(error))
        return AgentsReport(str(self.root), tuple(files), tuple(problems), None)

    def _without_gone(self, text: str, path: str) -> str:
        """The text without the blocks of documentation folders that no longer exist, as after a rename."""
        for block in blocks(text, path):
            if block.docs != self.docs and self._is_gone(block.docs):
                text = without_block(text, block.docs, path)
        return text

    def _delete(self, path: str) -> None:
        file = self.root / path
        try:
            file.unlink()
            for folder in Path(path).parents[:-1] if path.endswith(f"/{SKILL}") else ():  # never the root itself
                with suppress(OSError):  # it is not empty, or a link
                    (self.root / folder).rmdir()
        except OSError as error:
            raise ConfigError(f"{path} cannot be removed: {error.strerror}. Change its permissions.") from None

    def _message(self, error: Exception) -> str:
        return str(error).replace(f"{self.root}{os.sep}", "")

    # --- comparing -------------------------------------------------------------------------------------------------

    def compare(self, source: DocumentSource, revision: str | None = None, staged: bool = False) -> StaleFiles:
        """The files whose pointer is out of date. ``staged``: compare the staged files; ``revision``: those of a
        commit."""
        bodies_by_path: dict[str, list[str]] = {}
        problems: list[str] = []
        for path in self._candidates():
            text = self._in_git(path, revision) if staged or revision is not None else self._readable(path)
            try:
                bodies = self._bodies(text or "", path)
            except ConfigError as error:
                problems.append(self._message(error))
                continue
            if bodies:
                bodies_by_path[path] = bodies
        if not bodies_by_path:
            return StaleFiles((), tuple(problems), 0)
        expected = self.pointer(source).text
        stale = [path for path, bodies in bodies_by_path.items() if bodies != [expected]]
        return StaleFiles(tuple(stale), tuple(problems), len(bodies_by_path))

    def _bodies(self, text: str, path: str) -> list[str]:
        return [
            block_body(text, block)
            for block in blocks(text, path)
            if block.docs == self.docs or self._is_gone(block.docs)
        ]

    def _readable(self, path: str) -> str | None:
        """The text of a file; None where there is none, and for a file that Anvil does not change."""
        try:
            return self._read(path)
        except (ConfigError, BuildError):
            return None

    def _in_git(self, path: str, revision: str | None) -> str | None:
        if self._repository is None:
            return None
        entry = self._repository.entry(path, None if revision is None else self._repository.resolve(revision))
        if entry is None or entry.kind != "file":
            return None
        data = self._repository.read_blob(entry.id)
        try:
            return data.decode() if len(data) <= MAX_FILE_BYTES else None
        except UnicodeDecodeError:
            return None

    def unstaged(self) -> tuple[str, ...]:
        """The tracked files whose pointer differs from the staged one."""
        different = []
        for path in self._candidates():
            staged, here = self._in_git(path, None), self._readable(path)
            with suppress(ConfigError):
                if staged is not None and here is not None and self._bodies(staged, path) != self._bodies(here, path):
                    different.append(path)
        return tuple(different)
