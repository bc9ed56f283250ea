"""Pages, sections and the list of pages, asked for by the addresses that readers use."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anvil
from anvil.build.builder import build
from anvil.documents.working_tree import WorkingTree
from anvil.embedding.provider import EmbeddingProvider
from anvil.errors import NotFound
from anvil.index_file import verify
from anvil.index_file.reader import Reader
from anvil.search import pages
from anvil.server import markdown_results
from anvil.settings.schema import ChunkingOptions
from anvil.wording import full_heading
from tests.conftest import PAGES, write

Opener = Callable[[dict[str, str]], Reader]

HANDBOOK = """\
---
title: The handbook
---
Before any heading.

# Handbook

Welcome.

## Setup

### Linux

Tiny.

### Windows

Tiny too.

## Operation

{long}

### Backup

Every night.

## Setup

The same heading again, under the same parent, with enough text to stand by itself: a second chapter on the setup,
which somebody has written without a look at the first one. Both are kept, and both can be asked for by their own.

# Appendix

The end.
"""
LONG = "\n\n".join(
    f"Paragraph {i} of the long section speaks of operation number {i} at some length." for i in range(60)
)


def indexed(folder: Path, wanted: dict[str, str], provider: EmbeddingProvider) -> Reader:
    """Build an index of the given pages and open it."""
    options = ChunkingOptions(max_chunk_size=900)
    build(WorkingTree(write(folder / "docs", wanted)), folder / "i.db", provider, options)
    return verify.open_checked(folder / "i.db")


@pytest.fixture
def opened(tmp_path: Path, keywords: EmbeddingProvider) -> Iterator[Opener]:
    """Builds an index of the given pages and opens it."""
    with ExitStack() as stack:
        yield lambda wanted: stack.enter_context(indexed(tmp_path, wanted, keywords))


@pytest.fixture(scope="module")
def handbook(tmp_path_factory: pytest.TempPathFactory, keywords: EmbeddingProvider) -> Iterator[Reader]:
    """The index of the handbook and the four pages, which is only read."""
    folder = tmp_path_factory.mktemp("handbook")
    with indexed(folder, {"handbook.md": HANDBOOK.format(long=LONG), **PAGES}, keywords) as reader:
        yield reader


def refusal(ask: Callable[[], object]) -> str:
    with pytest.raises(NotFound) as error:
        ask()
    return str(error.value)


# --- pages ---------------------------------------------------------------------------------------------


def test_a_path_has_4096_characters_at_most(handbook: Reader) -> None:
    for count, told in ((4096, "Use list_pages to discover"), (4097, "It has 4,097 characters, and no path has more")):
        with pytest.raises(NotFound, match=r"^No page found at path: a{500}…\. " + told):
            pages.get_page(handbook, "a" * count)


@pytest.mark.parametrize("count", [50, 1000])
def test_a_page_comes_whole_and_in_document_order(opened: Opener, count: int) -> None:
    text = "# All\n\n" + "".join(
        f"## Section {i}\n\n" + f"This is the text of section {i}, long enough to be a chunk of its own. " * 4 + "\n\n"
        for i in range(count)
    )
    page = pages.get_page(opened({"all.md": text}), "all.md")
    assert "".join(chunk.content for chunk in page.chunks) == text and page.total_chars == len(text)
    assert [chunk.ordinal for chunk in page.chunks] == list(range(len(page.chunks)))
    named = [chunk.heading_path for chunk in page.chunks if chunk.heading_level == 2]
    assert named == [f"All > Section {i}" for i in range(count)]
    assert all(chunk.char_count == len(chunk.content) for chunk in page.chunks)


def test_an_outline_says_where_the_sections_are_in_the_page(handbook: Reader) -> None:
    found = pages.outline(handbook, "handbook.md")
    assert found.page == pages.get_page(handbook, "handbook.md")
    text = pages.page_text(found.page.chunks)
    for section in found.sections:
        content = pages.get_section(handbook, "handbook.md", section.heading_path).content
        assert text[section.start : section.end] == content


def test_the_front_matter_is_not_in_the_text(handbook: Reader) -> None:
    page = pages.get_page(handbook, "handbook.md")
    assert page.title == "The handbook" and page.file_path == "handbook.md"
    assert "".join(c.content for c in page.chunks) == HANDBOOK.format(long=LONG).split("---\n", 2)[2]


@pytest.mark.parametrize(
    "spelled",
    [
        "guides/alerts.md",
        "/guides/alerts.md",
        "./guides/alerts.md",
        ".//guides/./alerts.md",
        "guides/../guides/alerts.md",
        "//guides//alerts.md",
        "//guides/alerts.md",
    ],
)
def test_a_path_may_be_written_in_several_ways(handbook: Reader, spelled: str, docs: Path) -> None:
    for root in (None, docs):
        assert pages.get_page(handbook, spelled, root).file_path == "guides/alerts.md"


def test_an_absolute_path_inside_the_docs_root_is_made_relative(handbook: Reader, docs: Path) -> None:
    assert pages.get_page(handbook, str(docs / "index.md"), docs).file_path == "index.md"
    link = docs.with_name("link")
    link.symlink_to(docs, target_is_directory=True)
    assert pages.get_page(handbook, str(link / "index.md"), link).file_path == "index.md"
    assert pages.get_page(handbook, str(docs / "index.md"), link).file_path == "index.md"


@pytest.mark.parametrize(
    "path",
    [
        "../secret.md",
        "guides/../../secret.md",
        "./../docs/index.md",
        "/../index.md",
        "..",
        "C:\\docs\\index.md",
        "c:/index.md",
        "\\\\server\\share\\index.md",
    ],
)
def test_a_path_that_leads_out_is_refused(handbook: Reader, docs: Path, path: str) -> None:
    write(docs.parent, {"secret.md": "# Secret\n"})
    for root in (None, docs):
        message = refusal(partial(pages.get_page, handbook, path, root))
        assert "outside the docs folder" in message and path in message


def test_an_absolute_path_outside_is_refused_whether_it_exists_or_not(handbook: Reader, docs: Path) -> None:
    """The answer must not tell a stranger which files there are on the machine."""
    write(docs.parent, {"secret.md": "# Secret\n"})
    there, gone = docs.with_name("secret.md"), docs.with_name("sicret.md")
    messages = [refusal(partial(pages.get_page, handbook, str(path), docs)) for path in (there, gone)]
    assert messages[0].replace("secret", "sicret") == messages[1]
    traversal = f"{docs}{os.sep}..{os.sep}secret.md"
    assert "outside" in refusal(lambda: pages.get_page(handbook, traversal, docs))


@pytest.mark.parametrize("path", ["a\0b.md", "\0", "index.md\0.txt"])
def test_a_nul_is_refused(handbook: Reader, docs: Path, path: str) -> None:
    assert "NUL" in refusal(lambda: pages.get_page(handbook, path, docs))


@pytest.mark.parametrize("path", ["", ".", "/", "guides", "guides/", "x" * 5000, "/" + "x" * 5000, "\udcff.md", "~/x"])
def test_whatever_is_no_page_is_said_to_be_none(handbook: Reader, docs: Path, path: str) -> None:
    message = refusal(lambda: pages.get_page(handbook, path, docs))
    assert message.startswith(f"No page found at path: {path[:500]}")
    assert "Use list_pages to discover available pages." in message and len(message) < 1000


def test_the_closest_paths_are_named(handbook: Reader) -> None:
    message = refusal(lambda: pages.get_page(handbook, "guides/allerts.md"))
    assert message.endswith("Closest: guides/alerts.md, guides/checks.md.") or "Closest: guides/alerts.md" in message
    assert "Closest: guides/alerts.md" in refusal(lambda: pages.get_page(handbook, "other/alerts.md"))
    assert "Closest" not in refusal(lambda: pages.get_page(handbook, "zzzzzzzzzzzzzzz"))


@pytest.mark.skipif(os.name == "nt", reason="no such names there")
def test_a_page_of_a_strange_name_can_be_asked_for_as_it_is_listed(opened: Opener) -> None:
    names = ["a b.md", "c:notes.md", "back\\slash.md", "ünïcode.md", "#hash.md", " .md", "x..md"]
    reader = opened({name: f"# Page\n\nText of {name}.\n" for name in names})
    assert {page.file_path for page in pages.list_pages(reader).pages} == set(names)
    for name in names:
        assert pages.get_page(reader, name).file_path == name


def test_a_page_is_found_by_a_name_of_the_same_letters(opened: Opener) -> None:
    decomposed = unicodedata.normalize("NFD", "führer/école.md")
    reader = opened({decomposed: "# École\n\nText.\n", "führer/straße.md": "# Straße\n\nText.\n"})
    assert pages.get_page(reader, unicodedata.normalize("NFC", decomposed)).file_path == decomposed
    assert pages.get_page(reader, unicodedata.normalize("NFD", "führer/straße.md")).file_path == "führer/straße.md"


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60))
def test_any_path_is_answered_or_refused(path: str) -> None:
    try:
        found = pages.normalize_path(path, Path("/srv/docs"))
    except NotFound:
        return
    assert not found.startswith(("/", "../")) and found != ".."


# --- sections ------------------------------------------------------------------------------------------


def test_a_heading_without_text_of_its_own_lists_the_sections_below_it(handbook: Reader) -> None:
    setup = pages.get_section(handbook, "handbook.md", "Handbook > Setup")
    assert setup.content.strip() == "## Setup"
    assert [(each.heading_path, each.anchor) for each in setup.sections] == [
        ("Handbook > Setup > Linux", "linux"),
        ("Handbook > Setup > Windows", "windows"),
    ]
    assert not pages.get_section(handbook, "handbook.md", "Handbook > Setup", include_children=True).sections
    assert not pages.get_section(handbook, "handbook.md", "Handbook > Operation").sections, "it has text of its own"
    bounded = pages.bounded_section(setup, 0, max_chars=len(setup.content) + 40)
    assert [each.anchor for each in bounded.sections] == ["linux"]
    assert "Its sections: #linux, #windows" in markdown_results.render(setup)
    many = replace(setup, sections=100 * (replace(setup.sections[0], heading_path="h" * 90, anchor="a" * 10),))
    assert len(pages.bounded_section(many, 0, None).sections) == 40, "4,000 characters"


def test_every_heading_can_be_asked_for(handbook: Reader) -> None:
    for summary in pages.list_pages(handbook).pages:
        document = handbook.document(summary.file_path)
        assert document
        text = "".join(c.content for c in pages.get_page(handbook, summary.file_path).chunks)
        sections = handbook.sections(document.id)
        found = [pages.get_section(handbook, summary.file_path, s.heading_path) for s in sections]
        assert "".join(section.content for section in found) == text
        for section, each in zip(sections, found, strict=True):
            place = each.metadata
            assert (place.heading_path, place.heading_level) == (section.heading_path, section.heading_level)
            assert place.char_count == len(each.content) and place.file_path == summary.file_path


def test_the_parts_of_a_long_section_come_back_as_one(handbook: Reader) -> None:
    parts = [c.heading_path for c in pages.get_page(handbook, "handbook.md").chunks if "[part" in c.heading_path]
    assert len(parts) > 3 and parts[0].startswith("Handbook > Operation [part 1/")
    section = pages.get_section(handbook, "handbook.md", "Handbook > Operation")
    assert section.content == f"## Operation\n\n{LONG}\n\n"
    assert section.metadata.heading_path == "Handbook > Operation"


def test_a_merged_short_section_is_found_by_itself(handbook: Reader) -> None:
    chunks = pages.get_page(handbook, "handbook.md").chunks
    assert "Handbook > Setup > Windows" not in [c.heading_path for c in chunks]
    section = pages.get_section(handbook, "handbook.md", "Handbook > Setup > Windows")
    assert section.content == "### Windows\n\nTiny too.\n\n"


def test_text_before_any_heading_and_repeated_headings_have_addresses(handbook: Reader) -> None:
    assert pages.get_section(handbook, "handbook.md", "(root)").content.strip() == "Before any heading."
    assert "written without a look" in pages.get_section(handbook, "handbook.md", "Handbook > Setup [2]").content


def test_lines_are_those_of_the_source_file(handbook: Reader) -> None:
    lines = HANDBOOK.format(long=LONG).splitlines(keepends=True)
    for heading in ("Handbook > Setup > Linux", "Handbook > Operation", "Appendix", "(root)"):
        found = pages.get_section(handbook, "handbook.md", heading)
        place = found.metadata
        assert place.start_line is not None and place.end_line is not None
        assert "".join(lines[place.start_line - 1 : place.end_line]) == found.content


def test_children_come_along_when_they_are_asked_for(handbook: Reader) -> None:
    alone = pages.get_section(handbook, "handbook.md", "Handbook > Setup")
    family = pages.get_section(handbook, "handbook.md", "Handbook > Setup", include_children=True)
    assert alone.content == "## Setup\n\n"
    assert family.content == "## Setup\n\n### Linux\n\nTiny.\n\n### Windows\n\nTiny too.\n\n"
    assert family.metadata.start_line == alone.metadata.start_line
    assert family.metadata.end_line is not None and alone.metadata.end_line is not None
    assert family.metadata.end_line > alone.metadata.end_line
    whole = pages.get_section(handbook, "handbook.md", "Handbook", include_children=True).content
    assert whole.startswith("# Handbook\n") and "which somebody has written" in whole and "Appendix" not in whole
    last = pages.get_section(handbook, "handbook.md", "Appendix", include_children=True)
    assert last.content == "# Appendix\n\nThe end.\n"
    root = pages.get_section(handbook, "handbook.md", "(root)", include_children=True)
    assert root.content.strip() == "Before any heading."


@pytest.mark.parametrize(
    ("named", "full"),
    [
        ("The handbook > Handbook > Setup > Windows", "Handbook > Setup > Windows"),
        ("The handbook", "(root)"),
        ("The handbook > (root)", "(root)"),
        ("windows", "Handbook > Setup > Windows"),
        ("#windows", "Handbook > Setup > Windows"),
        ("handbook", "Handbook"),
        ("Windows", "Handbook > Setup > Windows"),
        ("Setup > Windows", "Handbook > Setup > Windows"),
        ("Operation", "Handbook > Operation"),
        ("Setup [2]", "Handbook > Setup [2]"),
        ("The handbook > Backup", "Handbook > Operation > Backup"),
    ],
)
def test_a_section_is_named_by_any_address_that_only_it_has(handbook: Reader, named: str, full: str) -> None:
    found = pages.get_section(handbook, "handbook.md", named)
    assert found == pages.get_section(handbook, "handbook.md", full)
    assert found.metadata.heading_path == full
    assert found.title == "The handbook"


def test_what_fits_several_or_none_is_refused_and_the_closest_named(handbook: Reader) -> None:
    for wanted, near in {
        "Setup": "The handbook > Handbook > Setup; The handbook > Handbook > Setup [2]",
        "Elsewhere > Backup": "The handbook > Handbook > Operation > Backup",
        "Handbook > Operation [part 1/99]": "The handbook > Handbook > Operation",
        "(rot)": "The handbook",
    }.items():
        message = refusal(partial(pages.get_section, handbook, "handbook.md", wanted))
        assert message.startswith(f"No section found at heading: {wanted} in handbook.md. Use get_page")
        assert f"Closest: {near}" in message and "(root)" not in message


def test_every_address_that_is_handed_out_leads_to_its_text(handbook: Reader) -> None:
    for summary in pages.list_pages(handbook).pages:
        page = pages.get_page(handbook, summary.file_path)
        text = pages.page_text(page.chunks)
        lines = ("" if summary.file_path != "handbook.md" else HANDBOOK.format(long=LONG)).splitlines(keepends=True)
        for chunk in page.chunks:
            for path in (chunk.heading_path, full_heading(page.title, chunk.heading_path)):
                found = pages.get_section(handbook, summary.file_path, path)
                place = found.metadata
                if "[part " in chunk.heading_path:
                    assert (found.content, place.heading_path) == (chunk.content, chunk.heading_path)
                assert place.char_count == len(found.content)
                assert chunk.content.startswith(found.content) or found.content.startswith(chunk.content)
                if lines:
                    assert place.start_line is not None and place.end_line is not None
                    assert found.content in "".join(lines[place.start_line - 1 : place.end_line])
        assert (
            "".join(
                pages.get_section(handbook, summary.file_path, section.heading_path).content
                for section in page.sections
            )
            == text
        )
        for section in page.sections:
            found = pages.get_section(handbook, summary.file_path, section.heading_path)
            assert len(found.content) == section.char_count
            assert found.metadata.start_line == section.start_line
        for heading in summary.headings:
            found = pages.get_section(handbook, summary.file_path, heading)
            assert found.metadata.heading_level in (1, 2) and found.metadata.heading_path.endswith(heading)


@pytest.mark.parametrize(
    "heading",
    [
        "",
        "#",
        " > ",
        "Handbook > operation",
        "Handbook>Operation",
        "Handbook > Operation [part 1/99]",
        " Handbook",
        "\udcff",
        "x" * 100_000,
    ],
)
def test_no_address_is_guessed(handbook: Reader, heading: str) -> None:
    message = refusal(lambda: pages.get_section(handbook, "handbook.md", heading))
    assert message.startswith(f"No section found at heading: {heading[:500]}")
    assert " in handbook.md. Use get_page to see available sections." in message and len(message) < 1000


def test_breadcrumbs_are_compared_as_raw_strings(opened: Opener) -> None:
    composed, apart = "Caf\u00e9", "Cafe\u0301"
    reader = opened({"a.md": f"# {composed}\n\nOne.\n\n# {apart}\n\nTwo.\n"})
    assert "One." in pages.get_section(reader, "a.md", composed).content
    assert "Two." in pages.get_section(reader, "a.md", apart).content


# --- the list ------------------------------------------------------------------------------------------


def test_the_list_is_sorted_and_says_what_is_there(handbook: Reader) -> None:
    found = pages.list_pages(handbook)
    paths = [page.file_path for page in found.pages]
    assert paths == sorted(["handbook.md", *PAGES]) and found.total_pages == len(paths)
    handbook_page = next(page for page in found.pages if page.file_path == "handbook.md")
    assert handbook_page.title == "The handbook"
    assert handbook_page.headings == (
        "Handbook",
        "Handbook > Setup",
        "Operation",
        "Handbook > Setup [2]",
        "Appendix",
    )
    for page in found.pages:
        whole = pages.get_page(handbook, page.file_path)
        assert (page.chunk_count, page.total_chars) == (len(whole.chunks), whole.total_chars)
        assert page.last_modified == whole.last_modified


def test_a_prefix_is_a_folder(opened: Opener) -> None:
    names = ["epics/a.md", "epics/deep/b.md", "epics-old/x.md", "epics.md", "index.md"]
    reader = opened({name: f"# {name}\n" for name in names})

    def listed(prefix: str | None) -> list[str]:
        return [page.file_path for page in pages.list_pages(reader, prefix).pages]

    for prefix in ("epics", "epics/", "/epics", "./epics/", "/epics//", "./epics"):
        assert listed(prefix) == ["epics/a.md", "epics/deep/b.md"], prefix
    assert listed("epics/deep") == ["epics/deep/b.md"]
    assert listed("epics-old") == ["epics-old/x.md"]
    for everything in (None, "", "/", ".", "./"):
        assert listed(everything) == sorted(names), everything
    for nothing in ("epi", "EPICS", "epics*", "nothing", "..", "../docs", "%", "epics_old", "\udcff", "a\0b"):
        assert listed(nothing) == [], nothing
    assert listed("epics.md") == ["epics.md"]


def test_the_list_of_nothing_is_empty(opened: Opener, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    found = pages.list_pages(opened({}))
    assert (found.pages, found.total_pages) == ((), 0)


def test_a_page_without_text_is_listed_all_the_same(opened: Opener) -> None:
    reader = opened({"empty.md": "", "blank.md": "\n \n"})
    assert [(p.file_path, p.title, p.chunk_count, p.total_chars) for p in pages.list_pages(reader).pages] == [
        ("blank.md", "blank", 0, 0),
        ("empty.md", "empty", 0, 0),
    ]
    assert pages.get_page(reader, "empty.md").chunks == ()


def test_an_anchor_that_two_headings_share_names_both(tmp_path: Path) -> None:
    text = "# Page\n\n## One {#same}\n\nfirst\n\n## Two {#same}\n\nsecond\n"
    with anvil.open(write(tmp_path / "docs", {"a.md": text}), provider="none") as opened:
        with pytest.raises(NotFound, match=r"2 sections of a.md have the anchor '?#?same'?: .*One.*Two"):
            opened.get_section("a.md", "#same")
        assert "second" in opened.get_section("a.md", "Page > Two").content


Part = TypeVar("Part", anvil.Page, anvil.SectionText)


def parts(read: Callable[[int], Part]) -> list[Part]:
    """A text in parts, each from the ``next_offset`` of the one before."""
    found = [read(0)]
    while (offset := found[-1].next_offset) is not None:
        found.append(read(offset))
    return found


def test_a_page_is_read_in_parts_of_whole_chunks(opened: Opener) -> None:
    reader = opened({"book.md": HANDBOOK.format(long="A sentence. " * 400)})
    whole = pages.get_page(reader, "book.md")
    for max_chars in (1, 700, 3000, whole.total_chars - 1):
        read = parts(partial(pages.bounded_page, whole, max_chars=max_chars))
        assert len(read) > 1 and tuple(chunk for part in read for chunk in part.chunks) == whole.chunks
        assert all(len(pages.page_text(part.chunks)) <= max_chars or len(part.chunks) == 1 for part in read)
        assert all((part.total_chars, part.sections) == (whole.total_chars, whole.sections) for part in read)
    assert pages.bounded_page(whole, 0, None) == pages.bounded_page(whole, -5, whole.total_chars) == whole
    inside = whole.chunks[0].char_count + 1  # an offset within a chunk loses nothing: that chunk comes first
    assert pages.bounded_page(whole, inside, None).chunks == whole.chunks[1:]
    assert pages.bounded_page(whole, whole.total_chars, 10).chunks == ()


def test_a_section_is_read_in_parts_of_whole_lines(opened: Opener) -> None:
    reader = opened({"book.md": "# Book\n\n" + "".join(f"Line {n} of many.\n" for n in range(90)) + "x" * 300})
    whole = pages.get_section(reader, "book.md", "Book")
    read = parts(partial(pages.bounded_section, whole, max_chars=100))
    assert "".join(part.content for part in read) == whole.content
    assert all(len(part.content) <= 100 and part.metadata == whole.metadata for part in read)
    assert all(part.content.endswith(".\n") for part in read[:-3])
    assert [part.content for part in read[-3:]] == ["x" * 100] * 3
    assert pages.bounded_section(whole, 0, None) == pages.bounded_section(whole, 0, len(whole.content)) == whole
    for too_small in (0, -5):  # a reader who goes on by next_offset must come to the end
        assert pages.bounded_section(whole, 7, too_small).next_offset == 8


def test_a_list_has_one_page_at_least(handbook: Reader) -> None:
    listed = pages.list_pages(handbook)
    assert len(listed.pages) > 2
    for limit, max_chars in ((0, None), (-1, None), (1, None), (None, 1)):
        shown = pages.bounded_list(listed, limit, 0, max_chars)
        assert (shown.pages, shown.next_offset) == (listed.pages[:1], 1)


def test_headings_are_read_of_the_pages_that_an_answer_has_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 20,000 pages they take a third of the time."""
    docs = write(tmp_path / "docs", {f"{number:02}.md": f"# Page {number}\n\n## Oil\n" for number in range(40)})
    top_headings = Reader.top_headings
    read: list[int] = []

    def recorded(reader: Reader, documents: list[int]) -> dict[int, tuple[str, ...]]:
        read.append(len(documents))
        return top_headings(reader, documents)

    with anvil.open(docs, provider="none") as opened:
        listed = opened.list_pages().pages
        monkeypatch.setattr(Reader, "top_headings", recorded)
        for offset in (0, 3, 38):
            shown = opened.list_pages(offset=offset, max_chars=1300).pages
            assert shown == listed[offset : offset + len(shown)] and shown[0].headings
        assert opened.list_pages(max_chars=-1).pages == listed[:1]
    assert read == [11, 14, 40, 1]
