"""The index of a merge in git."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from anvil.build import builder
from anvil.documents import document_source
from anvil.documents.document_source import SourceWrapper
from anvil.documents.git_tree import CommitTree, StagedTree
from anvil.documents.working_tree import WorkingTree
from anvil.embedding.provider import EmbeddingProvider
from anvil.git.repository import Repository
from anvil.git_drivers import merge
from anvil.index_file import verify
from anvil.settings.schema import ChunkingOptions
from anvil.values import UNKNOWN_TIME, Document, Scan, Skipped
from tests.conftest import PAGES, replacements, write
from tests.support import repositories
from tests.support.repositories import commit, run

isolated = pytest.fixture(repositories.isolation)  # here only where asked for


def index_of(
    docs: Path, revision: str, index: Path, provider: EmbeddingProvider, options: ChunkingOptions | None = None
) -> Path:
    builder.build(CommitTree(docs, revision), index, provider, options or ChunkingOptions())
    return index


def repository_of(root: Path) -> Repository:
    """A repository with the commits ``base``, ``left`` and ``right``, whose sides edit different pages."""
    docs = write(root / "docs", PAGES)
    run(root, "init", "-q", "-b", "base")
    commit(root, "base", at=1_700_000_000)
    for side in ("left", "right"):
        run(root, "checkout", "-q", "-b", side, "base")
        write(docs, {f"{side}.md": f"# {side}\n\nOf the {side}.\n"})
        commit(root, side, at=1_700_000_000)
    found = Repository.discover(root)
    assert found is not None
    return found


def test_an_index_is_not_open_when_its_merge_takes_its_place(
    isolated: None, keywords: EmbeddingProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows would refuse to."""
    repository = repository_of(tmp_path / "repo")
    docs = tmp_path / "repo/docs"
    base, ours, theirs = (index_of(docs, name, tmp_path / f"{name}.db", keywords) for name in ("base", "left", "right"))
    seen = replacements(ours, monkeypatch)
    report, torn = merge.reconcile(base, ours, theirs, repository, lambda meta: keywords)
    assert (report.pages, torn, seen) == (6, (), [0])
    with verify.open_checked(ours) as reader:
        assert {"left.md", "right.md"} < reader.blob_ids().keys()


def test_a_merged_page_has_the_time_of_the_side_that_it_comes_from(
    isolated: None, keywords: EmbeddingProvider, tmp_path: Path
) -> None:
    root, long = tmp_path / "repo", [f"Line {number}.\n\n" for number in range(20)]
    write(root / "docs", {"both.md": "".join(long), "left.md": "# L\n", "right.md": "# R\n", "same.md": "# S\n"})
    run(root, "init", "-q", "-b", "base")
    commit(root, "base", at=1_700_000_000)
    for side, at, changed in (("left", 1_700_000_100, 0), ("right", 1_700_000_200, -1)):
        run(root, "checkout", "-q", "-b", side, "base")
        edited = [*long]
        edited[changed] = f"Edited by {side}.\n\n"
        write(root / "docs", {"both.md": "".join(edited), f"{side}.md": "# Edited\n", "same.md": "# Other\n"})
        commit(root, side, at=at)
        write(root / "docs", {"same.md": "# S\n"})
        commit(root, "taken back", at=at)
    repository = Repository.discover(root)
    assert repository is not None
    names = ("base", "left", "right")
    base, ours, theirs = (index_of(root / "docs", name, tmp_path / f"{name}.db", keywords) for name in names)
    merge.reconcile(base, ours, theirs, repository, lambda meta: keywords)
    with verify.open_checked(ours) as reader:
        seconds = {document.file_path: document.last_modified[-3:] for document in reader.documents()}
    assert seconds == {"both.md": "40Z", "left.md": "00Z", "right.md": "40Z", "same.md": "00Z"}


def test_a_merged_page_that_includes_code_is_stale_for_every_source(
    isolated: None, keywords: EmbeddingProvider, tmp_path: Path
) -> None:
    """The driver does not follow includes: another build of the index does."""
    root, page = tmp_path / "repo", "# Code\n\n{* ../src/app.py *}\n\nOne.\n\nTwo.\n\nThree.\n\nFour.\n"
    docs = write(root / "docs", {"code.md": page, **PAGES})
    write(root / "src", {"app.py": "lamp = 1\n"})
    run(root, "init", "-q", "-b", "base")
    commit(root, "base", at=1_700_000_000)
    for side, text in (("left", page.replace("One", "First")), ("right", page.replace("Four", "Last"))):
        run(root, "checkout", "-q", "-b", side, "base")
        write(docs, {"code.md": text})
        commit(root, side, at=1_700_000_000)
    repository = Repository.discover(root)
    assert repository is not None
    base, ours, theirs = (index_of(docs, name, tmp_path / f"{name}.db", keywords) for name in ("base", "left", "right"))
    merge.reconcile(base, ours, theirs, repository, lambda meta: keywords)
    write(docs, {"code.md": page.replace("One", "First").replace("Four", "Last")})
    commit(root, "merged", at=1_700_000_000)
    with verify.open_checked(ours) as reader:
        known = reader.identities()
    for source in (WorkingTree(docs), StagedTree(docs), CommitTree(docs, "HEAD")):
        assert document_source.compare(known, source.scan(known).entries).changed == ("code.md",), source.name


class WithTags(SourceWrapper):
    """The pages of a tree, and one that a site generator made."""

    tags = Document("tags.md", "", "# Tags\n\nAll of them.\n", 25, UNKNOWN_TIME, fingerprint="f" * 64)

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        return Scan({**super().scan().entries, "tags.md": document_source.identity("", self.tags.fingerprint)})

    def read(self, path: str) -> Document | Skipped:
        return self.tags if path == "tags.md" else super().read(path)

    def last_modified(
        self, paths: Collection[str], known: Mapping[str, tuple[str, str]], since: str | None
    ) -> dict[str, str]:
        return {"tags.md": UNKNOWN_TIME, **super().last_modified({*paths} - {"tags.md"}, known, since)}


def test_pages_without_a_file_wait_for_the_site_when_all_is_cut_anew(
    isolated: None, keywords: EmbeddingProvider, tmp_path: Path
) -> None:
    repository = repository_of(tmp_path / "repo")
    docs = tmp_path / "repo/docs"
    tree = CommitTree(docs, "left")
    ours = tmp_path / "left.db"
    builder.build(WithTags(tree), ours, keywords, ChunkingOptions())
    base = index_of(docs, "base", tmp_path / "base.db", keywords)
    other_sizes = ChunkingOptions(min_chunk_size=0, max_chunk_size=300)
    for options, skipped in ((ChunkingOptions(), []), (other_sizes, ["tags.md"])):
        theirs = index_of(docs, "right", tmp_path / "right.db", keywords, options)
        report, _ = merge.reconcile(base, ours, theirs, repository, lambda meta: keywords)
        assert [each.path for each in report.skipped] == skipped
        with verify.open_checked(ours) as reader:
            assert reader.identities().keys() == {*PAGES, "left.md", "right.md", "tags.md"} - {*skipped}
