"""The files that agents read at their start (AGENTS.md and others): writing, comparing, removing the pointer in them.

Each command, hook and merge driver uses :class:`AgentFiles`. A further file that gets the pointer is an entry of
:data:`NAMES`, or else a path that ``_targets`` and ``_candidates`` have.
"""

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
"""The file that is created if none of :data:`NAMES` exists."""
NAMES = (FIRST, "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md")
"""Files that people write. They get the pointer if they exist."""
RULES = ".cursor/rules"
RULE = f"{RULES}/anvil.mdc"
"""A file of Anvil's own. It is created if the folder exists."""
SKILLS = (".claude/skills", ".agents/skills")
"""Folders of skills. Each skill is a folder with a file :data:`SKILL`."""
SKILL = "SKILL.md"
MAX_FILE_BYTES = 1_000_000
"""Larger files are not changed."""
MAX_FOLDER_ENTRIES = 200
"""Rules, and skills of each folder, in which blocks are searched."""
_IMPORT = re.compile(rf"^[ \t]*@(?:\./)?{re.escape(FIRST)}[ \t]*\r?$", re.M)
"""The line with which CLAUDE.md and GEMINI.md include :data:`FIRST`."""
_FRONT_MATTER_ALONE = re.compile(r"---\r?\n(?:(?!---)[^\n]*\n)*---\s*")

Outcome = Literal["written", "unchanged", "removed"]


class FileReport(NamedTuple):
    """The outcome for one file. ``path`` is relative to the root."""

    path: str
    outcome: Outcome


class AgentsReport(NamedTuple):
    """The outcome for the files below ``root``, and the reasons why some were not changed.

    ``documentation``: the pointer; None if none was made.
    """

    root: str
    files: tuple[FileReport, ...]
    problems: tuple[str, ...]
    documentation: DocumentationPointer | None

    def changed(self) -> tuple[str, ...]:
        return tuple(file.path for file in self.files if file.outcome != "unchanged")


class StaleFiles(NamedTuple):
    """The result of a comparison.

    ``stale``: files whose pointer is out of date. ``problems``: reasons why files cannot be compared. ``compared``: the
    number of files with a pointer.
    """

    stale: tuple[str, ...]
    problems: tuple[str, ...]
    compared: int

    def __bool__(self) -> bool:
        return bool(self.stale or self.problems)

    def messages(self, command: str) -> tuple[str, ...]:
        """A sentence on the files that are out of date, with the command that writes them. Then one for each file that
        cannot be compared."""
        names = ", ".join(self.stale)
        stale = f"The pointer for agents is out of date in {names}. Run: {command}"
        return (*([stale] if names else []), *self.problems)


class AgentFiles:
    """The agents' files around a documentation folder.

    They are at the root of its repository. Without one they are in ``base``, the folder of the configuration. If the
    documents are not in that folder, they are in the folder above the documents.
    """

    def __init__(self, docs: Path, base: Path) -> None:
        self._docs = Path(os.path.realpath(docs))
        self._repository = repository_files.repository_of(docs)
        if self._repository is not None and not self._docs.is_relative_to(self._repository.root):
            self._repository = None
        base = Path(os.path.realpath(base))
        folder = base if self._docs.is_relative_to(base) else self._docs.parent
        self.root = folder if self._repository is None else self._repository.root
        self.docs = self._docs.relative_to(self.root).as_posix()
        """The path of the documentation folder from :attr:`root`; ``.`` if it is the root."""

    @classmethod
    def around(cls, opened: Anvil) -> AgentFiles | None:
        """The files around the documents that are opened; None for an index without documents."""
        return None if opened.folder is None else cls(opened.folder, opened.base)

    @property
    def project_name(self) -> str:
        """The name of the project in its package metadata, without the scope of npm, or else that of its folder."""
        return find_project(self.root, self.root).name.rpartition("/")[2]

    # --- the pointer -----------------------------------------------------------------------------------------------

    def pointer(self, source: DocumentSource) -> DocumentationPointer:
        """The pointer to the documents. It is made of their paths, so no document is read for it."""
        scan = source.scan()
        skipped = tuple(f"{item.path}: {item.reason}" for item in scan.skipped)
        paths = [path for path in scan.entries if not self._is_agent_file(path)]
        return repository_pointer(paths, self.docs, self._options)._replace(skipped=skipped)

    def _is_agent_file(self, page: str) -> bool:
        """Whether a page is an agents' file. The pointer does not count these, so writing it does not change it."""
        path = page if self.docs == "." else f"{self.docs}/{page}"
        return path in NAMES or path.startswith(tuple(f"{folder}/" for folder in (RULES, *SKILLS)))

    @cached_property
    def _options(self) -> tuple[str, ...]:
        """The options that a command in the root needs to use these documents. There are none if the configuration
        there, or the default, names the documents."""
        root_config, docs_config = nearest_config(self.root), nearest_config(self._docs)
        if self.docs == "docs" if root_config is None else self._is_configured_by(root_config):
            return ()
        if docs_config is not None and self._is_configured_by(docs_config):
            file = Path(os.path.realpath(docs_config.parent)) / docs_config.name
            return (shlex.join(["--config", file.relative_to(self.root).as_posix()]),)
        return (shlex.join(["--docs", self.docs]),)

    def _is_configured_by(self, file: Path) -> bool:
        with suppress(AnvilError):
            config, base = load_config(file, {}, {})
            return (base / config.docs).resolve() == self._docs
        return False

    # --- which files -----------------------------------------------------------------------------------------------

    def _targets(self, skill_wanted: bool) -> Iterator[tuple[str, str]]:
        """(path, text before the pointer in a new file) for each file that gets the pointer."""
        # A file is created only if no agent would find the pointer otherwise.
        existing = [name for name in self._files_of_people() if os.path.lexists(self.root / name)]
        has_rules = (self.root / RULES).is_dir()
        yield from ((name, "") for name in existing or ([] if has_rules else [FIRST]))
        if has_rules:
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
        """The paths of the files that have a block of this documentation folder, or of one that no longer exists."""
        return [path for path in self._candidates() if self._has_pointer(path)]

    def _files_of_people(self) -> Iterator[str]:
        """The paths of :data:`NAMES`. A link to another Markdown file of the repository is replaced by that file."""
        root = Path(os.path.realpath(self.root))
        paths: list[str] = []
        for name in NAMES:
            target = Path(os.path.realpath(root / name))
            is_link = (root / name).is_symlink() and target.suffix == ".md" and target.is_relative_to(root)
            paths.append(target.relative_to(root).as_posix() if is_link else name)
        yield from dict.fromkeys(paths)

    def _candidates(self) -> Iterator[str]:
        """The paths of files that may have a block."""
        yield from self._files_of_people()
        for folder, ending in ((RULES, ""), *((skills, f"/{SKILL}") for skills in SKILLS)):
            with suppress(OSError):
                names = sorted(os.listdir(self.root / folder))[:MAX_FOLDER_ENTRIES]
                for name in names:
                    # beside the folders of skills there may be files, such as a README
                    if os.path.isdir(self.root / folder / name) if ending else name.endswith(".mdc"):
                        yield f"{folder}/{name}{ending}"

    def _has_pointer(self, path: str) -> bool:
        """Whether a file has a block as :meth:`with_pointer` describes it, or a marker without the other one."""
        text = self._readable(path)
        try:
            return text is not None and bool(self._bodies(text, path))
        except ConfigError:
            return True

    def _is_gone(self, docs: str) -> bool:
        return not os.path.isdir(os.path.join(self.root, docs))

    # --- reading and writing ---------------------------------------------------------------------------------------

    def _read(self, path: str) -> str | None:
        """The text of a file; None without one. Raises :class:`AnvilError` for a file that Anvil does not change."""
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
        """Raises :class:`ConfigError` if a folder on the path of a file is a link out of the root."""
        parent = os.path.realpath((self.root / path).parent)
        if not Path(parent).is_relative_to(os.path.realpath(self.root)):
            raise ConfigError(f"{path} is in a folder that is a link out of {self.root}. It was left as it is.")

    def _write(self, path: str, text: str) -> None:
        file = self.root / path
        state = safe_files.regular_file(file)
        if state is not None and not state.st_mode & 0o222:  # renaming a new file over it would work all the same
            raise ConfigError(f"{path} is read-only. Make it writable, and try again. It was left as it is.")
        self._ensure_inside(path)
        safe_files.put_file(file, text.encode(), flush=False)

    def _is_covered(self, path: str) -> bool:
        """Whether a file includes AGENTS.md, so that its readers get the pointer from there."""
        text = self._readable(path) if path != FIRST and os.path.lexists(self.root / FIRST) else None
        return text is not None and _IMPORT.search(text) is not None and not self._has_pointer(path)

    def write(self, source: DocumentSource, *, skill_wanted: bool = False, only_marked: bool = False) -> AgentsReport:
        """Write the pointer into the files that agents read. ``only_marked``: only into files that have one already."""
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
                text = self._without_stale_blocks(start if before is None else before, path)
                after = with_block(text, self.docs, documentation.text, path)
                if after != before:
                    self._write(path, after)
                files.append(FileReport(path, "unchanged" if after == before else "written"))
            except (ConfigError, BuildError) as error:
                problems.append(self._message(error))
        return AgentsReport(str(self.root), tuple(files), tuple(problems), documentation)

    def remove(self) -> AgentsReport:
        """Remove the pointer from all files. Files without other text are removed, and so are folders of skills that
        are empty then: in an existing folder the next :meth:`write` would create a skill."""
        files: list[FileReport] = []
        problems: list[str] = []
        for path in self._candidates():
            try:
                before = self._read(path) or ""
                after = without_block(self._without_stale_blocks(before, path), self.docs, path)
                if after == before:
                    continue
                is_generated = path == RULE or path.endswith(f"/{SKILL}")
                if not after.strip() or (is_generated and _FRONT_MATTER_ALONE.fullmatch(after)):
                    self._delete(path)
                    files.append(FileReport(path, "removed"))
                else:
                    self._write(path, after)
                    files.append(FileReport(path, "written"))
            except (ConfigError, BuildError) as error:
                problems.append(self._message(error))
        return AgentsReport(str(self.root), tuple(files), tuple(problems), None)

    def _without_stale_blocks(self, text: str, path: str) -> str:
        """The text without blocks of documentation folders that no longer exist, as after a rename."""
        for block in blocks(text, path):
            if block.docs != self.docs and self._is_gone(block.docs):
                text = without_block(text, block.docs, path)
        return text

    def _delete(self, path: str) -> None:
        file = self.root / path
        try:
            file.unlink()
            for folder in Path(path).parents[:-1] if path.endswith(f"/{SKILL}") else ():  # all but the root
                with suppress(OSError):  # it is not empty, or a link
                    (self.root / folder).rmdir()
        except OSError as error:
            raise ConfigError(f"{path} cannot be removed: {error.strerror}. Change its permissions.") from None

    def _message(self, error: Exception) -> str:
        return str(error).replace(f"{self.root}{os.sep}", "")

    # --- comparing -------------------------------------------------------------------------------------------------

    def compare(self, source: DocumentSource, revision: str | None = None, staged: bool = False) -> StaleFiles:
        """Compare pointers with the documents. ``staged``: in the staged files. ``revision``: in those of a commit."""
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
        """The texts of the blocks of this documentation folder, and of folders that no longer exist. Raises
        :class:`ConfigError` for a marker without the other one."""
        return [
            block_body(text, block)
            for block in blocks(text, path)
            if block.docs == self.docs or self._is_gone(block.docs)
        ]

    def _readable(self, path: str) -> str | None:
        """The text of a file; None without one, and for a file that Anvil does not change."""
        try:
            return self._read(path)
        except (ConfigError, BuildError):
            return None

    def _in_git(self, path: str, revision: str | None) -> str | None:
        """The text of a file in a commit, or that is staged; None without one, and for a file that is not changed."""
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
        """The paths of the tracked files whose pointer differs from the staged one."""
        different = []
        for path in self._candidates():
            staged, current = self._in_git(path, None), self._readable(path)
            if staged is None or current is None:
                continue
            with suppress(ConfigError):
                if self._bodies(staged, path) != self._bodies(current, path):
                    different.append(path)
        return tuple(different)
