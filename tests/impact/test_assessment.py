"""Whole assessments, over real repositories and indexes without a model."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

import anvil
from anvil.errors import ConfigError
from anvil.impact.assessment import Impact, assess
from anvil.impact.evidence import Evidence, Feature
from anvil.impact.ranking import WEIGHTS
from anvil.impact.settings import ImpactOptions
from anvil.settings.schema import Config, EmbeddingSettings
from tests.support.repositories import commit, head, isolated, run, write

__all__ = ["isolated"]

PAGES = {
    "docs/limits.md": "# Limits\n\nWhat the server refuses.\n\n## Size\n\nUse `--max-size` to refuse large files. The "
    "default is 100.\n\n## Time\n\nA request may take a minute.\n",
    "docs/install.md": "# Install\n\nRun pip.\n\nThe message `the archive has no index file` means: it is damaged.\n",
    "docs/api.md": "# API\n\n::: app.client\n\nCall `fetch_all()` first.\n",
    "docs/worktrees.md": "# Working trees\n\nA page about trees.\n",
    "docs/changelog.md": "# Changes\n\n`--max-size` is new.\n",
    **{f"docs/other/{number}.md": f"# Other {number}\n\nSome words about nothing much.\n" for number in range(12)},
}
CODE = {
    "app/cli.py": 'import click\n\n\n@click.option("--max-size", default=100)\ndef upload(max_size):\n    return 1\n',
    "app/client.py": "def fetch_all():\n    return 1\n",
    "app/archive.py": 'def read():\n    raise ValueError("the archive has no index file")\n',
    "app/worktrees.py": "A = 1\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with code and pages, in one commit."""
    root = tmp_path / "repo"
    root.mkdir()
    run(root, "init", "-q", "-b", "main")
    for path, text in {**PAGES, **CODE}.items():
        write(root / path, text)
    commit(root, "first", at=1_700_000_000)
    return root


def edited(root: Path, files: Mapping[str, tuple[str, str]]) -> str:
    """The diff of replacements in files."""
    for path, (old, new) in files.items():
        text = (root / path).read_text()
        assert old in text
        write(root / path, text.replace(old, new))
    return run(root, "diff")


def assessed(root: Path, diff: str, title: str = "", **tables: object) -> Impact:
    config = Config(embedding=EmbeddingSettings(provider="none"), tables=tables)
    with anvil.open(root / "docs", config=config) as opened:
        return assess(f"{diff}\n", opened, title=title)


def test_a_default_that_changes_finds_the_section_about_it(root: Path) -> None:
    impact = assessed(root, edited(root, {"app/cli.py": ("default=100", "default=200")}))
    first = impact.findings[0]
    assert (first.path, first.heading_path, first.title) == ("limits.md", "Limits > Size", "Limits")
    assert first.line == 7
    assert "names `--max-size`, which the change gives another value (app/cli.py:4)" in first.reasons
    assert impact.files == 1
    assert not any(finding.path == "changelog.md" for finding in impact.findings)


def strongest(impact: Impact, *features: Feature) -> Evidence:
    """The piece of evidence with one of these features that weighs most."""
    chosen = [each for each in impact.evidence if each.feature in features]
    return max(chosen, key=lambda each: each.strength * WEIGHTS[each.feature])


@pytest.mark.parametrize(
    ("files", "feature", "path"),
    [
        ({"app/cli.py": ("--max-size", "--size-limit")}, "public name gone", "limits.md"),
        ({"app/archive.py": ("the archive has no index file", "nothing")}, "text", "install.md"),
        ({"app/client.py": ("return 1", "return 2")}, "link", "api.md"),
        ({"app/worktrees.py": ("A = 1", "A = 2")}, "path words", "worktrees.md"),
    ],
)
def test_each_kind_of_evidence_finds_its_page(
    root: Path, files: Mapping[str, tuple[str, str]], feature: Feature, path: str
) -> None:
    assert strongest(assessed(root, edited(root, files)), feature).path == path


def test_a_function_that_the_code_has_no_more(root: Path) -> None:
    diff = edited(root, {"app/client.py": ("def fetch_all", "def fetch_every")})
    impact = assessed(root, diff)
    assert strongest(impact, "public name gone").path == "api.md"
    assert impact.findings[0].confidence > 0.2 and impact.findings[0].path == "api.md"

    def is_gone() -> bool:
        return "public name gone" in {each.feature for each in assessed(root, diff).evidence}

    write(root / "lib/other.py", "fetch_all()\n")
    assert not is_gone()  # the file is in the work tree, although git does not track it yet
    commit(root, "other", at=1_700_000_001)
    assert not is_gone()
    write(root / "lib/other.py", "fetch_allies()\ntest_fetch_all()\n")
    assert is_gone()
    (root / "lib/other.py").unlink()
    assert is_gone()  # the deletion is not staged
    run(root, "checkout", "-q", "lib/other.py")
    run(root, "sparse-checkout", "set", "--no-cone", "docs", "app")
    assert not (root / "lib/other.py").exists() and not is_gone()  # it may have the name


def test_a_guide_to_a_newer_version_names_what_is_gone(root: Path) -> None:
    write(root / "docs/upgrading.md", "# Upgrading\n\nReplace `fetch_all` with `fetch_every`.\n")
    impact = assessed(root, edited(root, {"app/client.py": ("def fetch_all", "def fetch_every")}))
    assert {each.path for each in impact.evidence if each.feature == "public name gone"} == {"api.md"}


def test_a_variable_in_a_function_is_no_function_that_the_code_has_no_more(root: Path) -> None:
    write(root / "docs/style.md", "# Style\n\nCall it `target_offset`, and its end `target_end`.\n")
    write(root / "app/sort.js", "const target_end = 1\nfunction sort() {\n    const target_offset = 2\n}\n")
    commit(root, "sort", at=1_700_000_001)
    write(root / "app/sort.js", "function sort() {\n}\n")
    gone = [each for each in assessed(root, run(root, "diff")).evidence if each.feature == "public name gone"]
    assert [each.reason[:18] for each in gone] == ["names `target_end`"]


def test_a_page_that_links_to_a_changed_file_is_found(root: Path) -> None:
    write(root / "docs/other/3.md", "# Other 3\n\nAs [the code] does it.\n\n[the code]: ../../app/worktrees.py\n")
    impact = assessed(root, edited(root, {"app/worktrees.py": ("A = 1", "A = 2")}))
    assert ("other/3.md", "links to app/worktrees.py") in [(each.path, each.reason) for each in impact.evidence]


def test_a_name_in_the_title(root: Path) -> None:
    diff = edited(root, {"app/worktrees.py": ("A = 1", "B = 2")})
    named = strongest(assessed(root, diff, title="Refuse files by `--max-size`"), "title name")
    assert (named.path, named.heading_path) == ("limits.md", "Limits > Size")


@pytest.mark.parametrize(
    ("title", "is_named"),
    [
        ("Remove the archive", False),
        ("fix(cli): removes the archive", False),
        ("Read it. Remove it instead", False),
        ("app remove: the archive", True),
        ("`remove` the archive", True),
    ],
)
def test_what_a_title_says_was_done_is_no_name(root: Path, title: str, is_named: bool) -> None:
    write(root / "docs/commands.md", "# Commands\n\n## remove\n\nIt removes, or with `instead` it keeps.\n")
    diff = edited(root, {"app/worktrees.py": ("A = 1", "B = 2")})
    named = {each.subject for each in assessed(root, diff, title).evidence if each.feature == "title name"}
    assert ("remove" in named, "instead" in named) == (is_named, False)


def test_what_is_new_stands_beside_what_is_near_it_in_the_code(root: Path) -> None:
    text = "# Flags\n\n## Depth\n\nUse `--depth` to stop.\n\n## Width\n\nCall `cut_lines` to cut.\n"
    write(root / "docs/flags.md", text)
    code = 'import click\n\n\n@click.option("--depth")\n%sdef cut(width):\n    cut_lines(%s)\n'
    write(root / "app/flags.py", code % ("", "width"))
    commit(root, "flags", at=1_700_000_001)
    write(root / "app/flags.py", code % ('@click.option("--height")\n', "height, width"))
    findings = assessed(root, run(root, "diff")).findings
    assert next(each.heading_path for each in findings if each.path == "flags.md") == "Flags > Depth"


def test_history_alone_and_only_before_the_change(root: Path) -> None:
    for number in range(4):
        write(root / "app/worktrees.py", f"A = {number + 10}\n")
        write(root / "docs/other/3.md", f"# Other 3\n\nText {number}.\n")
        commit(root, f"both {number}", at=1_700_000_100 + number)
    before = head(root)
    write(root / "app/worktrees.py", "A = 99\n")
    write(root / "docs/other/4.md", "# Other 4\n\nIn the commit itself.\n")
    commit(root, "the change", at=1_700_000_200)
    diff = run(root, "diff", before, "HEAD", "--", "app")
    with anvil.open(root / "docs", provider="none") as opened:
        impact = assess(f"{diff}\n", opened, before=before)
    together = strongest(impact, "joint change")
    assert together.path == "other/3.md"
    assert together.reason == "changed together with app/worktrees.py in 4 of 4 commits"
    assert "other/4.md" not in [each.path for each in impact.evidence if each.feature == "joint change"]


def test_a_section_that_the_change_edits_is_done(root: Path) -> None:
    diff = edited(
        root, {"app/cli.py": ("default=100", "default=200"), "docs/limits.md": ("default is 100", "default is 200")}
    )
    impact = assessed(root, diff)
    assert [(finding.path, finding.heading_path) for finding in impact.done] == [("limits.md", "Limits > Size")]
    assert "Limits > Size" not in [finding.heading_path for finding in impact.findings]


def test_of_translations_only_the_best_or_the_edited_page_is_named(root: Path) -> None:
    for language in ("en", "ja", "pt-BR"):
        for name, text in (("limits", "The size is that of `--max-bytes`.\n"), ("a", "A\n"), ("b", "B\n")):
            write(root / f"docs/{language}/{name}.md", f"# {name} {language}\n\n{text}")
    code = {"app/cli.py": ("default=100", 'default=100)\n@click.option("--max-bytes"')}
    edited(root, code)
    commit(root, "second", at=1_700_000_100)
    change = {"app/cli.py": ("--max-bytes", "--max-chars")}
    impact = assessed(root, edited(root, change))
    assert len([finding for finding in impact.findings if finding.path.endswith("/limits.md")]) == 1
    run(root, "checkout", "app")
    impact = assessed(root, edited(root, change | {"docs/ja/limits.md": ("--max-bytes", "--max-chars")}))
    assert [finding.path for finding in impact.done] == ["ja/limits.md"]
    assert not [finding for finding in impact.findings if finding.path.endswith("/limits.md")]


def test_additions_that_no_page_has(root: Path) -> None:
    diff = edited(
        root,
        {
            "app/cli.py": ("def upload", '@click.option("--brand-new")\n@click.option("--said-here")\ndef upload'),
            "app/client.py": ("return 1", 'return os.environ["APP_SECRET_MODE"]'),
            "docs/limits.md": ("What the server", "Use `--said-here`. What the server"),
        },
    )
    found = assessed(root, diff).undocumented
    assert [(each.kind, each.name, each.path, each.line) for each in found] == [
        ("flag", "--brand-new", "app/cli.py", 5),
        ("variable", "APP_SECRET_MODE", "app/client.py", 2),
    ]


def test_keys_of_the_configuration_of_other_programs_are_no_settings_of_the_project(root: Path) -> None:
    others = [
        *("Cargo.toml", "pyproject.toml", "tsconfig.base.json", ".codacy.yml", ".cargo/config.toml", "i18n/en.yml"),
        *(
            "charts/crds/records.yml",
            "contrib/dependencies.json",
            "gradle/libs.versions.toml",
            "charts/templates/hook.yml",
        ),
    ]
    for file in (*others, "azure-pipelines.yml", "app/settings.yml", "composer-schema.json"):
        write(
            root / file, f'{{\n  "{file[1:3]}-added": 1\n}}\n' if file.endswith("json") else f'{file[1:3]}-added: "1"\n'
        )
    run(root, "add", "-A")
    found = assessed(root, run(root, "diff", "--cached")).undocumented
    assert [(each.name, each.path) for each in found] == [
        ("pp-added", "app/settings.yml"),
        ("om-added", "composer-schema.json"),
    ]


def test_tests_pages_and_locks_are_no_code(root: Path) -> None:
    for folder in ("tests", "src/Acme.Core.Tests", "src/Acme.UnitTests/Data", "unit-tests", "AcmeTests"):
        write(root / folder / "data.cs", 'assert "--max-size"\n')
    write(root / "anvil.toml", 'docs = "docs"\n')
    write(root / "docs.anvil.db", "--max-size\n")
    write(root / "docs/assets/manifest.json", '{"--max-size": 1}\n')
    write(root / "docs/extra.css", ".a { --max-size: 1 }\n")
    write(root / "docs/people.yml", "max-size: 1\n")
    write(root / ".gitmodules", "--max-size\n")
    write(root / "uv.lock", "--max-size\n" * 5001)  # more lines than are kept, and of which none is examined
    write(root / "notes.md", "--max-size\n")
    run(root, "add", "-A")
    assert assessed(root, run(root, "diff", "--cached")) == Impact((), files=0)
    write(root / "latest/contests/data.cs", "x = 1\n")
    write(root / "docs/snippets/client.py", "x = 1\n")  # which pages may include
    write(root / "assets/app.css", ".a { }\n")
    run(root, "add", "-A")
    assert assessed(root, run(root, "diff", "--cached")).files == 3


def test_the_configuration_leaves_pages_and_files_out(root: Path) -> None:
    diff = edited(root, {"app/cli.py": ("default=100", "default=200")})
    no_page = assessed(root, diff, impact=ImpactOptions(ignore=("lim*.md",)))
    assert "limits.md" not in [finding.path for finding in no_page.findings]
    assert assessed(root, diff, impact=ImpactOptions(ignore_code=("app/**",))).files == 0


def test_a_shallow_clone_says_what_is_missing(root: Path, tmp_path: Path) -> None:
    for number in range(3):
        commit(root, f"more {number}", at=1_700_000_100 + number)
    run(tmp_path, "clone", "-q", "--depth", "1", root.as_uri(), "shallow")
    shallow = tmp_path / "shallow"
    impact = assessed(shallow, edited(shallow, {"app/cli.py": ("default=100", "default=200")}))
    assert impact.findings[0].path == "limits.md"
    (note,) = impact.notes
    assert "is shallow, with 0 commits before the change" in note and "fetch-depth: 0" in note


def test_pages_outside_of_the_repository(root: Path, tmp_path: Path) -> None:
    """The pages as they were, written to another folder, with the history of the repository."""
    diff = edited(root, {"app/cli.py": ("default=100", "default=200")})
    shutil.copytree(root / "docs", tmp_path / "elsewhere/pages")
    with anvil.open(tmp_path / "elsewhere/pages", provider="none") as opened:
        impact = assess(f"{diff}\n", opened, repository=root, before=head(root), docs_path="docs")
    assert impact.findings[0].path == "limits.md"
    assert impact.notes == ()


def test_without_a_repository_it_says_so(root: Path) -> None:
    diff = edited(root, {"app/cli.py": ("default=100", "default=200")})
    shutil.rmtree(root / ".git")
    impact = assessed(root, diff)
    assert impact.findings[0].path == "limits.md"
    assert "is in no git repository" in impact.notes[0]


def test_a_text_that_is_no_diff_is_refused(root: Path) -> None:
    with pytest.raises(ConfigError, match="not a diff"):
        assessed(root, "hello")


def test_a_diff_may_have_the_colors_of_git(root: Path) -> None:
    diff = edited(root, {"app/cli.py": ("default=100", "default=200")})
    colored = run(root, "diff", "--color=always")
    assert colored.startswith("\x1b[") and assessed(root, colored) == assessed(root, diff)


def test_the_same_change_gives_the_same_result(root: Path) -> None:
    diff = edited(root, {"app/cli.py": ("default=100", "default=200"), "app/client.py": ("return 1", "return 2")})
    assert assessed(root, diff, "Change both") == assessed(root, diff, "Change both")


def test_a_flag_that_nearly_every_passage_has_is_documented(root: Path) -> None:
    for number in range(60):
        sections = "".join(f"## Part {part}\n\n{'Some words. ' * 30}Use `--verbose`.\n\n" for part in range(8))
        write(root / f"docs/many/{number}.md", f"# Many {number}\n\n{sections}")
    diff = edited(root, {"app/cli.py": ("def upload", '@click.option("--verbose")\ndef upload')})
    assert assessed(root, diff).undocumented == ()


def test_a_finding_has_four_reasons_at_most(root: Path) -> None:
    flags = [f"--part-{name}" for name in ("one", "two", "three", "four", "five", "six")]
    write(root / "docs/parts.md", f"# Parts\n\nThe flags {', '.join(f'`{flag}`' for flag in flags)} are known.\n")
    write(root / "app/parts.py", "".join(f'click.option("{flag}")\n' for flag in flags))
    commit(root, "parts", at=1_700_000_001)
    diff = edited(root, {"app/parts.py": ("--part-", "--piece-")})
    assert [len(each.reasons) for each in assessed(root, diff).findings if each.path == "parts.md"] == [4]


def test_ten_sections_at_most_are_evidence_of_a_title(root: Path) -> None:
    diff = edited(root, {"app/worktrees.py": ("A = 1", "A = 2")})
    found = assessed(root, diff, "some words about nothing much").evidence
    assert len([each for each in found if each.feature == "title search"]) == 10


def test_a_name_in_the_title_that_is_marked_weighs_more_than_a_word(root: Path) -> None:
    diff = edited(root, {"app/worktrees.py": ("A = 1", "A = 2")})
    marked, plain = (
        strongest(assessed(root, diff, f"Wait a {word}"), "title name").strength for word in ("`minute`", "minute")
    )
    assert plain == pytest.approx(0.6 * 0.12 * marked)  # it may be no name, and is no code in the page


def test_up_to_three_signs_may_be_between_the_words_of_a_name(root: Path) -> None:
    write(root / "docs/spaced.md", "# Spaced\n\nThe idle - time is long, not the idle -- time.\n")
    impact = assessed(root, edited(root, {"app/worktrees.py": ("A = 1", "A = 2")}), "Change `idleTime`")
    assert [each.path for each in impact.evidence if each.feature == "title name"] == ["spaced.md"]


def test_a_file_without_an_ending_is_not_known_by_the_links_to_its_name(root: Path) -> None:
    write(root / "app/run", "A = 1\n")
    write(root / "docs/run.md", "# Other\n\nAs [it] starts.\n\n[it]: https://a.example/run\n")
    commit(root, "run", at=1_700_000_001)
    impact = assessed(root, edited(root, {"app/run": ("A = 1", "A = 2")}))
    assert not [each for each in impact.evidence if each.feature == "link"]


def test_the_searches_have_the_vectors_of_changed_pages(root: Path, tmp_path: Path) -> None:
    diff = edited(root, {"app/worktrees.py": ("A = 1", "A = 2")})
    with anvil.open(root / "docs", tmp_path / "i.db") as opened:
        opened.index()
        write(root / "docs/new.md", "# New\n\nA zebra.\n")
        assert opened.grep("zebra").total_matches == opened.get_status().index.pending_vectors == 1
        assess(f"{diff}\n", opened)
        assert opened.get_status().index.pending_vectors == 0
