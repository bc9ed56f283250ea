"""What pages include from other files: read with them in each syntax, bounded, and compared when it changes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import anvil
from anvil.documents.document_source import DocumentSource
from anvil.documents.git_tree import CommitTree, StagedTree
from anvil.documents.working_tree import WorkingTree
from anvil.settings.schema import SourceOptions
from anvil.text import includes
from anvil.text.includes import IncludedFile, Look, expand, source_line
from anvil.values import Document
from tests.documents.test_git_tree import age
from tests.support import in_process
from tests.support.programs import program
from tests.support.repositories import commit, isolated, root, run, write

__all__ = ["isolated", "root"]  # fixtures: pytest finds them by name

CODE = "one\ntwo\nthree\nfour\nfive\n"
SECTIONS = "import x\n# --8<-- [start:main]\ndef main():\n    pass\n# --8<-- [end:main]\nrest\n"
REGIONS = "a\n  // #region snippet\n  b\n  // #region inner\n  c\n  // #endregion inner\n  // #endregion snippet\nd\n"


def expanded(text: str, page: str = "a/p.md", root: str = "docs", **files: str) -> includes.Expanded:
    """``text`` with files by path; ``__`` stands for ``/`` and ``_`` before the ending for ``.``."""
    named = {name.replace("__", "/").replace("DOT", "."): body for name, body in files.items()}
    look = Look(root, lambda path: IncludedFile("id" if path in named else "", named.get(path)))
    return expand(text, page, look)


def added(text: str, made: includes.Expanded) -> list[str]:
    """The lines that were put in, having made sure that all others are the source, in their order."""
    rest = made.text.split("\n")
    taken: list[str] = []
    for after, count in reversed(made.inserted):
        earlier = sum(n for line, n in made.inserted if line < after)
        taken[:0] = rest[after + earlier : after + earlier + count]
        del rest[after + earlier : after + earlier + count]
    assert "\n".join(rest).rstrip("\n") == text.rstrip("\n")
    return taken


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{* ../../src/x.py *}\n", ["```py", "one", "two", "three", "four", "five", "```"]),
        ("{* ../../src/x.py ln[2:3,5] hl[1] *}\n", ["```py", "two", "three", "five", "```"]),
        ('{* ../../src/x.py hl[1:2] title["x"] *}\n', ["```py", "one", "two", "three", "four", "five", "```"]),
        ("```py\n{!../../src/x.py!}\n```\n", ["one", "two", "three", "four", "five"]),
        ("```py\n{!> ../../src/x.py [ln:1-2]!}\n```\n", ["one", "two"]),
        ("```py\n{!../../src/x.py[ln:2-3]!}\n```\n", ["two", "three"]),
        ("```py\n{!../../src/x.py ln[1:2] hl[1]!}\n```\n", ["one", "two"]),
        ('```py\n--8<-- "src/x.py"\n```\n', ["one", "two", "three", "four", "five"]),
        ('    ```py\n    --8<-- "src/x.py:2:3"\n    ```\n', ["    two", "    three"]),
        ('--8<-- "src/x.py::1,4:"\n', ["one", "four", "five"]),
        ("-8<- 'src/s.py:main'\n", ["def main():", "    pass"]),
        ('--8<-- "src/s.py"\n', ["import x", "def main():", "    pass", "rest"]),
        ("--8<--\nsrc/y.txt\n; src/x.py\n--8<--\n", ["y"]),
        ("<<< @/../src/x.py\n", ["```py", "one", "two", "three", "four", "five", "```"]),
        ("<<< ./own.ts#snippet{2 ts} [name]\n", ["```ts", "b", "c", "```"]),
        ("<<< @/a/own.ts#inner\n", ["```ts", "c", "```"]),
        ('{{< readfile file="own.txt" >}}\n', ["own"]),
        ('{{% readfile "own.txt" %}}\n', ["own"]),
        (
            '{{< readfile file="/src/x.py" code="true" lang="python" >}}\n',
            ["```python", "one", "two", "three", "four", "five", "```"],
        ),
        (
            "```{literalinclude} ../../src/x.py\n:language: python\n:lines: 2-3\n```\n",
            ["```python", "two", "three", "```"],
        ),
        (
            "```{literalinclude} ../../src/x.py\n:start-after: two\n:end-before: five\n```\n",
            ["```py", "three", "four", "```"],
        ),
        ("- item\n\n  {* src/y.txt *}\n", ["  ```txt", "  y", "  ```"]),
        ("{* src/ticks.md *}\n", ["````md", "```", "x", "```", "````"]),
    ],
)
def test_each_syntax(text: str, expected: list[str]) -> None:
    files = {
        "src__xDOTpy": CODE,
        "src__yDOTtxt": "y\n",
        "src__sDOTpy": SECTIONS,
        "docs__a__ownDOTts": REGIONS,
        "docs__a__ownDOTtxt": "own\n",
        "src__ticksDOTmd": "```\nx\n```\n",
    }
    assert added(text, expanded(text, **files)) == expected


def test_a_documentation_folder_may_begin_with_a_dot() -> None:
    assert "docs/x.py" not in expanded("{* x.py *}\n", root=".docs", docs__xDOTpy="another folder\n").files


@pytest.mark.parametrize(
    "text",
    [
        ';--8<-- "src/x.py"\n',
        "```md\n{* src/x.py *}\n```\n",
        "~~~\n<<< @/../src/x.py\n~~~\n",
        'In `--8<-- "src/x.py"` it is text.\n',
        '--8<-- "https://example.org/x.py"\n',
        "{* ../../../src/x.py *}\n",
        "{* /etc/passwd *}\n",
        "{* src/.env *}\n",
        "{* src/id_rsa *}\n",
        "{* gone.py *}\n",
        '{{</* readfile "src/x.py" */>}}\n',
        "```{literalinclude} ../../src/x.py\n:pyobject: main\n```\n",
        '--8<-- "src/x.py:nowhere"\n',
        "{* src/x.py ln[a] *} text\n",
        "---\nx: |\n  {* src/x.py *}\n---\ntext\n",
        '```\n{{< highlight "x" >}}\n```\n',
        "<<< @/../src/x.py#nowhere\n",
    ],
)
def test_what_is_not_plain_or_not_allowed_stays_as_it_is(text: str) -> None:
    made = expanded(text, **{"src__xDOTpy": CODE, "src__DOTenv": "S=1\n", "src__id_rsa": "key\n", "etc__passwd2": "r"})
    assert (made.text, made.inserted) == (text, ())


@pytest.mark.parametrize("head", ["---\ntitle: A\nx: |\n  {!b.md!}\n---\n", "+++\ntitle = 'A'\n+++\n"])
def test_what_front_matter_names_is_not_included(head: str) -> None:
    assert not expanded(head + "Text.\n", docs__bDOTmd="Included.").files
    made = expanded(head + "{!b.md!}\n", docs__bDOTmd="Included.")
    assert made.text == head + "{!b.md!}\nIncluded.\n" and made.inserted == ((head.count("\n") + 1, 1),)


@pytest.mark.parametrize("folder", ["snippets", "includes", "docs__snippets", "docs__includes", "docs__src"])
def test_a_snippet_is_found_in_the_folders_that_sites_name_for_them(folder: str) -> None:
    text = '--8<-- "flags/exclude.md"\n'
    assert added(text, expanded(text, **{f"{folder}__flags__excludeDOTmd": "Leave out files.\n"})) == [
        "Leave out files."
    ]
    near = expanded(text, **{f"{folder}__flags__excludeDOTmd": "Far.", "docs__flags__excludeDOTmd": "Near."})
    assert added(text, near) == ["Near."]


def test_a_page_does_not_include_itself_but_the_snippet_of_its_name() -> None:
    text = '--8<-- "p.md"\n'
    made = expanded(text, docs__a__pDOTmd=text, docs__snippets__pDOTmd="# From the snippet\n")
    assert added(text, made) == ["# From the snippet"]


def test_a_block_that_is_no_front_matter_is_text() -> None:
    text = "---\n- a: [\n{!b.md!}\n---\nText.\n"  # not YAML
    assert expanded(text, docs__bDOTmd="Included.").text == text.replace("!}\n", "!}\nIncluded.\n")
    fence = "---\n[\n```\n---\n{* b.md *}\n"  # the fence is open: what follows is code
    assert expanded(fence, docs__bDOTmd="Included.").text == fence


def test_markdown_that_is_included_may_include_once_more() -> None:
    files = {"partsDOTmd": '--8<-- "deep.md"\n', "deepDOTmd": 'deep\n--8<-- "parts.md"\n'}
    text = '--8<-- "parts.md"\n'
    assert added(text, expanded(text, **files)) == ['--8<-- "deep.md"', "deep", '--8<-- "parts.md"']


@pytest.mark.parametrize(
    ("line", "looks"),
    [
        ("{!no.py!}\n", 9),  # once in each folder that the path can start from
        ('--8<-- "no.md"\n', 9),
        ("<<< @/no.py\n", 2),
        ("--8<--\nno.txt\n--8<--\n", 9),
        ("{!large.py!}\n", 1),
        ('--8<-- "f.py:nowhere"\n', 200),
        ("{!f.py [ln:2000] !}\n", 200),
        ("<<< @/f.py#nowhere\n", 2 * 200),
    ],
)
def test_what_includes_nothing_is_looked_for_a_bounded_number_of_times(line: str, looks: int) -> None:
    files = {"f.py": "x = 1\n" * 10, "large.py": None}
    looked: list[str] = []

    def look(path: str) -> IncludedFile:
        looked.append(path)
        return IncludedFile("id", files[path]) if path in files else IncludedFile("", None)

    made = expand(line * 3000, "a/p.md", Look("docs", look))
    assert len(looked) == looks and not made.inserted
    assert len(made.missing) == (3000 if "no." in line else 0)


def test_a_page_names_no_more_than_200_files_that_there_are_not() -> None:
    looked: list[str] = []

    def look(path: str) -> IncludedFile:
        looked.append(path)
        return IncludedFile("", None)

    made = expand("".join(f"{{!{number}.py!}}\n" for number in range(5000)), "a/p.md", Look("docs", look))
    assert len(looked) == len(made.files) == 200 * 9 and len(made.missing) == 200


def test_a_page_includes_no_more_than_its_bounds() -> None:
    text = '--8<-- "x.txt"\n' * 500
    assert len(expanded(text, xDOTtxt="x\n").inserted) == 200
    large = expanded(text, xDOTtxt="x" * 99_999 + "\n")
    assert len(large.text) < 400_000 + len(text) + 1000


def test_time_grows_with_the_text_alone() -> None:
    for line in ("{* ", "{! ", "--8<-- ", "<<< ", "{{< readfile ", ".. literalinclude:: ", "{*" + " " * 50, "- 8<- "):
        for text in (
            line * 60_000,
            (line + "\n") * 20_000,
            line + "[ln" * 60_000,
            line + " " * 200_000 + "x",
            line + "a[" * 60_000,
            line + '"' * 60_000,
            (line + "a#b" + " " * 380 + "x\n") * 1000,
            (line + '"a" ' + "a" * 370 + " >}}\n") * 1000,
        ):
            started = time.process_time()
            expanded(text)
            assert time.process_time() - started < 1.0, (line, text[:40], time.process_time() - started)


def test_the_regions_of_a_file_are_found_in_little_time() -> None:
    began = time.process_time()
    expanded("<<< x.js#a\n", xDOTjs=(" " * 380 + "xregion\n") * 1000)
    assert time.process_time() - began < 1


def test_included_lines_count_as_the_line_that_includes_them() -> None:
    inserted = ((3, 2), (5, 1))
    assert [source_line(line, inserted) for line in range(1, 10)] == [1, 2, 3, 3, 3, 4, 5, 5, 6]


# --- in a repository -----------------------------------------------------------------------------------------


PAGE = "---\ntitle: First\n---\n# First steps\n\n{* ../src/app.py hl[2] *}\n\nThen run it.\n\n## Next\n\nMore.\n"
APP = "from lighthouse import Lamp\n\nlamp = Lamp(quenchless=True)\n"


@pytest.fixture
def project(root: Path) -> Path:
    write(root / "docs/first.md", PAGE)
    write(root / "src/app.py", APP)
    commit(root, "code in a page", at=1_700_000_500)
    return root


def every(root: Path, options: SourceOptions = SourceOptions()) -> Iterator[DocumentSource]:
    docs = root / "docs"
    yield WorkingTree(docs, options)
    yield StagedTree(docs, options)
    yield CommitTree(docs, "HEAD", options)


def test_every_source_gives_the_same_page_with_its_code(project: Path) -> None:
    read = [source.read("first.md") for source in every(project)]
    assert isinstance(read[0], Document) and "Lamp(quenchless=True)" in read[0].text
    assert read[0].fingerprint.startswith("+6{") and read == [read[0]] * 3
    entries = [source.scan().entries for source in every(project)]
    assert entries == [entries[0]] * 3
    off = [source.scan().entries["first.md"] for source in every(project, SourceOptions(includes=False))]
    assert off == [f"{read[0].blob_id}:+0{{}}"] * 3


def test_switching_includes_on_or_off_is_noticed_by_every_source(project: Path) -> None:
    on, off = SourceOptions(), SourceOptions(includes=False)
    for before, after in ((off, on), (on, off)):
        known = WorkingTree(project / "docs", before).scan().entries
        for source in every(project, after):
            current = source.scan(known).entries
            assert current["first.md"] != known["first.md"], source.name
            document = source.read("first.md")
            assert isinstance(document, Document)
            assert f"{document.blob_id}:{document.fingerprint}" == current["first.md"]
            assert source.scan(current).entries == current
            assert {path for path in known if known[path] == current[path]}  # pages that include nothing


def test_pages_as_they_were_indexed_are_not_searched_for_includes(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes a third of the time of a first scan."""
    known = WorkingTree(project / "docs").scan().entries
    searched: list[str] = []
    monkeypatch.setattr(includes, "may_include", searched.append)
    for source in every(project):
        assert source.scan(known).entries == known
    assert not searched


def test_a_tree_that_knew_the_code_sees_each_change_of_it(project: Path) -> None:
    age(project / "src/app.py", project / "docs/first.md")
    tree = WorkingTree(project / "docs")
    first = tree.scan()
    assert tree.scan() is first and tree.scan() is first
    write(project / "src/app.py", APP + "lamp.light()\n")
    second = tree.scan().entries["first.md"]
    assert second != first.entries["first.md"] and second.split(":")[0] == first.entries["first.md"].split(":")[0]
    (project / "src/app.py").unlink()
    third = tree.scan().entries["first.md"]
    assert third not in (second, first.entries["first.md"])
    write(project / "src/app.py", APP)
    assert tree.scan().entries == first.entries


def test_trees_of_git_read_no_page_when_nothing_changed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = WorkingTree(project / "docs").scan().entries
    _, staged, committed = every(project)
    monkeypatch.setattr("anvil.git.repository.Repository.read_blob", lambda *_: pytest.fail("a page was read"))
    assert staged.scan(known).entries == known == committed.scan(known).entries


def test_links_and_ignored_files_are_not_included(project: Path, tmp_path: Path) -> None:
    (project / "src/app.py").unlink()
    write(tmp_path / "elsewhere.py", "secret\n")
    (project / "src/app.py").symlink_to(tmp_path / "elsewhere.py")
    read = WorkingTree(project / "docs").read("first.md")
    assert isinstance(read, Document) and "secret" not in read.text
    (project / "src/app.py").unlink()
    run(project, "rm", "-q", "--cached", "src/app.py")
    write(project / ".gitignore", "src/app.py\n")
    write(project / "src/app.py", "secret\n")
    read = WorkingTree(project / "docs").read("first.md")
    assert isinstance(read, Document) and "secret" not in read.text


def test_outside_a_repository_only_the_folder_is_known(tmp_path: Path) -> None:
    docs = tmp_path / "plain/docs"
    write(docs / "p.md", '--8<-- "own.py"\n\n--8<-- "../other.py"\n')
    write(docs / "own.py", "inside\n")
    write(tmp_path / "plain/other.py", "outside\n")
    read = WorkingTree(docs).read("p.md")
    assert isinstance(read, Document) and "inside" in read.text and "outside" not in read.text


def test_answers_hold_the_code_and_lines_stay_those_of_the_file(project: Path) -> None:
    index = project / "docs.anvil.db"
    with anvil.open(project / "docs", index, provider="none") as opened:
        opened.index()
        hit = opened.search("quenchless").results[0]
        assert hit.metadata.file_path == "first.md" and "quenchless" in hit.content
        assert (hit.metadata.start_line, hit.metadata.end_line) == (4, 9)
        page = "".join(chunk.content for chunk in opened.get_page("first.md").chunks)
        assert page == PAGE.split("---\n", 2)[2].replace("*}\n", f"*}}\n```py\n{APP}```\n")
        section = opened.get_section("first.md", "First steps > Next").metadata
        assert (section.start_line, section.end_line) == (10, 12)


def test_the_programs_see_changed_code(project: Path) -> None:
    index = project / "docs.anvil.db"
    check: list[str | Path] = ["check", "--docs", "docs", "--index", index]
    in_process.program("build", "--docs", "docs", "--index", index, "--provider", "none", cwd=project)
    for tree in ([], ["--staged"], ["--ref", "HEAD"]):
        in_process.program(*check, *tree, cwd=project)
    write(project / "src/app.py", APP + "lamp.light()\n")
    assert "changed  first.md" in program(*check, cwd=project, code=1).stdout
    in_process.program(*check, "--staged", cwd=project)
    run(project, "add", "src/app.py")
    assert "changed  first.md" in in_process.program(*check, "--staged", cwd=project, code=1).stdout
    program("build", "--staged", "--docs", "docs", "--index", index, "--provider", "none", cwd=project)
    in_process.program(*check, "--staged", cwd=project)
    in_process.program(*check, cwd=project)
    in_process.program(*check, "--ref", "HEAD", cwd=project, code=1)
    search: list[str | Path] = ["search", "--docs", "docs", "--index", index, "--provider", "none"]
    line = int(in_process.program(*search, "quenchless", cwd=project).stdout.split("docs/first.md:")[1].split()[0])
    assert 4 <= line <= 9  # the section's lines in the file, however long the code is


@pytest.mark.parametrize("path", [r"a\u0000.py", r"a\ud800.py"])
def test_a_path_that_no_page_can_include_is_none_of_a_fingerprint(path: str) -> None:
    """An index from elsewhere could name one, and each search would end with an error of the system."""
    assert includes.files(includes.fingerprint({"a.py": "1"})) == {"a.py": "1"}
    assert includes.files(f'+6{{"{path}": "1"}}') is None
