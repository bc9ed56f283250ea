"""`anvil test`: real pages, the real model and real git, as a documentation team uses them."""

from __future__ import annotations

import json
import shutil
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import pytest

import anvil
from anvil.doc_tests import comparing
from anvil.doc_tests.suite import parse, record_answers
from anvil.errors import ConfigError
from tests.conftest import PAGES, write
from tests.support import in_process
from tests.support.repositories import isolated, run  # noqa: F401

SUITE = """\
# what users ask
[defaults]
within = 1
[[question]]
ask = "how long before a certificate expires am I warned"
expect = "guides/checks.md#certificates"
[[question]]
ask = "how do I hold back alerts at night"
expect = ["guides/alerts.md#Silence at night"]
[[question]]
ask = "install it on a Windows server"
expect = "install.md#windows"
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with pages, a suite and an index of them; to be copied."""
    root = tmp_path_factory.mktemp("built")
    write(root / "docs", PAGES)
    (root / "anvil-tests.toml").write_text(SUITE, encoding="utf-8")
    git = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
    run(root, "init", "-q", "-b", "main")
    run(root, "add", "docs", "anvil-tests.toml")
    run(root, *git, "commit", "-q", "-m", "first")
    with anvil.open(root / "docs", provider="local") as opened:
        opened.index()
    return root


@pytest.fixture
def root(built: Path, tmp_path: Path, isolated: None) -> Iterator[Path]:  # noqa: F811
    """A copy of it to edit."""
    copy = tmp_path / "repo"
    shutil.copytree(built, copy)
    yield copy


def edit(root: Path, path: str, old: str, new: str) -> None:
    file = root / "docs" / path
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def suite(root: Path, text: str) -> None:
    (root / "anvil-tests.toml").write_text(text, encoding="utf-8")


def test_the_suite_next_to_the_docs_passes(root: Path) -> None:
    done = in_process.program("test", cwd=root)
    assert "3 of 3 questions are answered as expected (100%, and 100% must be)." in done.stdout
    assert "PASSED  4 pages" in done.stdout


def test_a_question_that_lost_its_answer_fails_and_says_what_came(root: Path) -> None:
    edit(root, "guides/checks.md", "## Certificates", "## Other things")
    message = in_process.complaint("test", cwd=root)
    assert "line 4: expect names 'guides/checks.md#certificates', but the page has no such heading, or more" in message
    assert "It has no headings" not in message
    suite(root, SUITE.replace("#certificates", "#disk-space"))
    done = in_process.program("test", cwd=root, code=1)
    assert "expected  guides/checks.md#disk-space, which is result" in done.stdout
    assert "came instead  1. guides/checks.md:11  Checks > Other things  (0." in done.stdout
    assert "2 of 3 questions" in done.stdout and "FAILED" in done.stdout
    suite(root, SUITE.replace("#certificates", "#disk-space") + "[suite]\nmin_hit = 0.6\n")
    in_process.program("test", cwd=root)


def test_nothing_is_expected_where_nothing_answers(root: Path) -> None:
    suite(root, '[[question]]\nask = "how do I bake a chocolate cake?"\nexpect = "nothing"\n')
    in_process.program("test", cwd=root)
    suite(root, '[[question]]\nask = "how do I run the installer on Windows?"\nexpect = "nothing"\n')
    done = in_process.program("test", cwd=root, code=1)
    assert "expected  nothing, but something seems to answer" in done.stdout


def test_the_edited_page_is_blamed(root: Path) -> None:
    edit(root, "guides/checks.md", "Lighthouse warns two weeks before a TLS certificate expires.", "See elsewhere.")
    edit(root, "guides/checks.md", "## Certificates", "## Miscellany {#certificates}")
    edit(root, "index.md", "It is one binary", "It is only one binary")
    (root / "docs" / "warnings.md").write_text(
        "# Certificates that expire\n\nYou are warned two weeks before a certificate expires.\n", encoding="utf-8"
    )
    suite(root, SUITE.replace("#certificates", ""))
    report = in_process.printed("test", "--baseline", "main", cwd=root, code=1)
    (difference,) = report["comparison"]["differences"]
    assert (difference["kind"], difference["before"]["rank"]) == ("worse", 1)
    assert {page["file_path"] for page in report["comparison"]["changed_pages"]} == {
        "guides/checks.md",
        "index.md",
        "warnings.md",
    }
    assert difference["blame"]["file_path"] in ("guides/checks.md", "warnings.md")
    done = in_process.program("test", "--baseline", "main", "-q", cwd=root, code=1)
    assert "1 question got worse" in done.stdout and "Because" in done.stdout


def test_a_page_that_overtakes_is_blamed(root: Path) -> None:
    (root / "docs" / "windows.md").write_text(
        "# Install it on a Windows server\n\nInstall it on a Windows server: run the installer on the server.\n",
        encoding="utf-8",
    )
    edit(root, "index.md", "It is one binary", "It is only one binary")
    report = in_process.printed("test", "--baseline", "HEAD", cwd=root, code=1)
    (difference,) = report["comparison"]["differences"]
    assert difference["blame"]["file_path"] == "windows.md"
    assert difference["reason"] == "Because windows.md was added and is now result 1."
    assert difference["decisive"] is True
    done = in_process.program("test", "--baseline", "main", cwd=root, code=1)
    assert "1 question got worse (1 question is lost), 0 better." in done.stdout


def test_where_no_page_alone_is_to_blame_the_report_says_how_many_were_tried(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one.md", "two.md"):  # each alone overtakes the right page
        write(root / "docs", {name: "# Windows server\n\nInstall it on a Windows server.\n"})
    suite(root, SUITE.replace("install.md#windows", "install.md"))
    (difference,) = in_process.printed("test", "--baseline", "main", cwd=root, code=1)["comparison"]["differences"]
    assert (difference["blame"], difference["reason"]) == (
        None,
        "None of the 2 pages that changed explains it alone.",
    )
    monkeypatch.setattr(comparing, "MAX_REPLAYS_OF_QUESTION", 1)
    (difference,) = in_process.printed("test", "--baseline", "main", cwd=root, code=1)["comparison"]["differences"]
    assert difference["reason"] == "1 of the 2 pages that changed were tried: none explains it alone."


def test_a_removed_page_is_blamed_and_what_got_better_is_said(root: Path) -> None:
    (root / "docs" / "guides" / "alerts.md").unlink()
    (root / "docs" / "sleep.md").write_text("# Backups\n\nA backup is made each night.\n", encoding="utf-8")
    suite(root, SUITE + '[[question]]\nask = "when are backups made"\nexpect = "sleep.md"\n')
    comparison = in_process.printed("test", "--baseline", "main", cwd=root, code=1)["comparison"]
    worse, better = comparison["differences"]
    assert [(each["after"]["question"]["ask"], each["blame"]["file_path"]) for each in (worse, better)] == [
        ("how do I hold back alerts at night", "guides/alerts.md"),
        ("when are backups made", "sleep.md"),
    ]


def test_a_renamed_page_keeps_its_expectations(root: Path) -> None:
    (root / "docs/install.md").rename(root / "docs/setup.md")  # not staged
    edit(root, "setup.md", "## Linux", "## On Linux")
    done = in_process.program("test", cwd=root)
    assert "anvil: install.md is setup.md now. Write the new name into the suite." in done.stderr
    report = in_process.printed("test", "--baseline", "main", cwd=root)
    assert report["comparison"]["differences"] == []
    (page,) = report["comparison"]["changed_pages"]
    assert (page["kind"], page["file_path"], page["old_path"]) == ("moved", "setup.md", "install.md")
    run(root, "add", "-A")
    run(root, "commit", "-q", "-m", "moved")
    run(root, "mv", "docs/setup.md", "docs/begin.md")
    run(root, "commit", "-q", "-a", "-m", "moved again")
    assert "install.md is begin.md now" in in_process.program("test", cwd=root).stderr
    suite(root, SUITE.replace("install.md", "begin.md"))
    assert in_process.printed("test", "--baseline", "HEAD~2", cwd=root)["comparison"]["differences"] == []


def test_the_baseline_of_a_branch_is_where_it_was_left(root: Path) -> None:
    run(root, "switch", "-q", "-c", "edits")
    edit(root, "index.md", "It is one binary", "It is a single binary")
    run(root, "commit", "-q", "-a", "-m", "edit")
    run(root, "switch", "-q", "main")
    (root / "docs" / "windows.md").write_text("# Install it on a Windows server\n\nWindows server.\n", encoding="utf-8")
    run(root, "add", "docs")
    run(root, "commit", "-q", "-m", "another's work")
    run(root, "switch", "-q", "edits")
    comparison = in_process.printed("test", "--baseline", "main", cwd=root)["comparison"]
    assert [page["file_path"] for page in comparison["changed_pages"]] == ["index.md"]
    assert "where this branch left it" in comparison["baseline"]


def test_the_baseline_may_be_an_index(root: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.db"
    shutil.copy(root / "docs" / ".anvil" / "index.db", old)
    shutil.rmtree(root / ".git")
    (root / "docs" / "guides" / "alerts.md").unlink()
    comparison = in_process.printed("test", "--baseline", old, cwd=root, code=1)["comparison"]
    (difference,) = comparison["differences"]
    assert difference["blame"]["file_path"] == "guides/alerts.md"
    write(root / "docs", PAGES)
    with anvil.open(root / "docs", tmp_path / "none.db", "none") as opened:
        opened.index()
    suite(root, SUITE + '[[question]]\nask = "which relay for messages"\nexpect = "guides/alerts.md#e-mail"\n')
    comparison = in_process.printed("test", "--baseline", tmp_path / "none.db", cwd=root)["comparison"]
    assert all(each["blame"] is None for each in comparison["differences"])
    assert "other settings" in comparison["notes"][0]


def test_answers_are_not_written_to_a_suite_that_was_edited_meanwhile(root: Path) -> None:
    with anvil.open(root / "docs") as opened:
        text = '[[question]]\nask = "which systems does it run on"\n'
        report = opened.test(parse(text))
    assert "expect = " in record_answers(text, report, "suite")
    for edited in ('[[question]]\nask = "another"\n\n' + text, text + 'expect = "nothing"\n'):
        with pytest.raises(ConfigError, match="was edited"):
            record_answers(edited, report, "suite")


def test_wrong_baselines(root: Path, tmp_path: Path) -> None:
    assert "There is no commit 'nowhere'" in in_process.complaint("test", "--baseline", "nowhere", cwd=root)
    edit(root, "index.md", "It is one binary", "It is a single binary")
    run(root, "commit", "-q", "-a", "-m", "second")
    run(tmp_path, "clone", "-q", "--depth", "1", root.as_uri(), "shallow")
    shutil.copytree(root / "docs" / ".anvil", tmp_path / "shallow" / "docs" / ".anvil")
    message = in_process.complaint("test", "--baseline", "HEAD~1", cwd=tmp_path / "shallow")
    assert "This clone is shallow" in message and "fetch-depth: 0" in message
    shutil.rmtree(root / ".git")
    assert "is in no git repository" in in_process.complaint("test", "--baseline", "main", cwd=root)
    message = in_process.complaint("test", "--baseline", "milvus://me:secret@x/y", cwd=root)
    assert "milvus://x/y cannot be a baseline" in message and "secret" not in message


def test_what_names_no_page_is_an_error_with_the_closest(root: Path) -> None:
    suite(root, '[[question]]\nask = "a"\nexpect = ["docs/install.md", "guides/check.md"]\n')
    message = in_process.complaint("test", cwd=root)
    assert "line 1: expect names 'docs/install.md', which is no page. Closest: install.md" in message
    assert "expect names 'guides/check.md', which is no page. Closest: guides/checks.md" in message
    suite(root, '[[question]]\nask = "a"\nexpect = "install.md#window"\n')
    assert "Closest: #windows" in in_process.complaint("test", cwd=root)


def test_there_is_no_suite(root: Path) -> None:
    (root / "anvil-tests.toml").unlink()
    message = in_process.complaint("test", cwd=root)
    assert "There is no anvil-tests.toml" in message and "anvil test --suggest" in message
    suggested = in_process.program("test", "--suggest", cwd=root)
    assert "No heading is a question. These are headings of your pages" in suggested.stderr
    comment = "# a heading of this page: ask what a reader would, in other words\n"
    assert f'{comment}[[question]]\nask = "Linux"\nexpect = "install.md#linux"\n' in suggested.stdout
    suite(root, suggested.stdout)  # a usable start
    assert "4 of 4 questions" in in_process.program("test", cwd=root).stdout
    suite(root, "")  # as the shell leaves it before `anvil test --suggest > anvil-tests.toml` begins
    assert in_process.program("test", "--suggest", cwd=root).stdout == suggested.stdout
    (root / "anvil-tests.toml").unlink()
    assert "cannot be combined" in in_process.complaint("test", "--suggest", "--update", cwd=root)
    assert "cannot be combined" in in_process.complaint("questions", "--to-tests", "--json", cwd=root)
    assert "There is no other.toml" in in_process.complaint("test", "other.toml", cwd=root)


def test_a_page_alone_is_no_answer_when_it_is_unlikely_to_answer(root: Path) -> None:
    ask = 'ask = "how long before a certificate expires am I warned"\n'
    alone = f'[[question]]\n{ask}expect = "guides/checks.md"\n'
    more = '[[question]]\nask = "bake a cake of chocolate"\nexpect = "index.md"\nwithin = 10\n'
    suite(root, alone + more)
    done = in_process.program("test", cwd=root, code=1)
    assert "1 of 2 questions" in done.stdout
    assert "expected  index.md, which is result " in done.stdout
    assert ", but unlikely to answer (0.0" in done.stdout
    report = in_process.printed("test", "--mode", "keyword", cwd=root, code=1)
    assert [outcome["status"] for outcome in report["outcomes"]] == ["pass", "fail"]
    assert report["outcomes"][0]["better_expect"] == "guides/checks.md#certificates"


def test_questions_that_expect_a_page_alone_are_named(root: Path) -> None:
    alone = '[[question]]\nask = "warned of a certificate that expires"\nexpect = "guides/checks.md"\n'
    suite(root, SUITE + alone)
    done = in_process.program("test", "--lint", cwd=root, code=1)
    assert done.stdout == (
        "anvil-tests.toml:13: warned of a certificate that expires\n"
        "      expects guides/checks.md, whichever section answers. "
        "Today this answers: guides/checks.md#certificates\n"
    )
    suite(root, SUITE + alone.replace("checks.md", "checks.md#certificates"))
    assert in_process.program("test", "--lint", cwd=root).stdout == "Each question expects a section.\n"
    edit(root, "guides/checks.md", "## Certificates", "## Other things")  # such a question notices it
    assert "names 'guides/checks.md#certificates', but the page has no such heading" in in_process.complaint(
        "test", cwd=root
    )
    assert "cannot be combined" in in_process.complaint("test", "--lint", "--json", cwd=root)


def test_new_questions_get_the_answers_of_today(root: Path) -> None:
    more = '# new\n[[question]]\nask = "an alert that nobody acknowledges" # rota\n'
    more += '[[question]]\nask = "how do I bake a chocolate cake?"\n'
    suite(root, SUITE + more)
    done = in_process.program("test", cwd=root)
    assert "2 questions have no expect. 'anvil test --update' shows today's answers and records them." in done.stderr
    assert "3 of 3 questions" in done.stdout
    done = in_process.program("test", "--update", cwd=root)
    assert 'expect = "guides/alerts.md#escalation"' in done.stderr and "have no expect" not in done.stderr
    written = (root / "anvil-tests.toml").read_text(encoding="utf-8")
    assert written.startswith(SUITE + "# new\n")
    assert '# rota\nexpect = "guides/alerts.md#escalation"\n' in written
    assert written.endswith('cake?"\n')
    assert "nothing is likely to answer: name a page" in done.stderr
    assert "4 of 4 questions" in in_process.program("test", cwd=root).stdout
    assert in_process.program("test", "--update", cwd=root).stderr.count("name a page") == 1
    suite(root, SUITE)
    assert "nothing to write" in in_process.program("test", "--update", cwd=root).stderr


def test_questions_are_suggested(root: Path) -> None:
    (root / "docs" / "faq.md").write_text(
        "# FAQ\n\n## Why is `it` so *quiet*?\n\nNo.\n\n## Installing behind a proxy\n\nSet it.\n\n## No\n\nNo.\n",
        encoding="utf-8",
    )
    about = "# Crew\n\n## Questions of the crew\n\n### What the crew asked for\n\nTea.\n"  # no FAQ
    (root / "docs" / "crew.md").write_text(about, encoding="utf-8")
    edit(root, "index.md", "## Why another monitor", "## Why another monitor?")
    printed = in_process.program("test", "--suggest", cwd=root).stdout
    assert 'ask = "Why another monitor?"\nexpect = "index.md#why-another-monitor"' in printed
    assert 'ask = "Installing behind a proxy"\nexpect = "faq.md#installing-behind-a-proxy"' in printed
    assert printed.count("[[question]]") == 3
    suite(root, SUITE + printed)
    assert "6 of 6" in in_process.program("test", cwd=root).stdout
    log = root / "docs" / ".anvil" / "questions.jsonl"
    log.write_text(json.dumps({"kind": "question", "question": "What does it cost?"}), encoding="utf-8")
    logged = in_process.program("test", "--suggest", cwd=root).stdout
    assert logged.strip() == '# from the question log\n[[question]]\nask = "What does it cost?"'
    log.unlink()
    again = in_process.program("test", "--suggest", cwd=root)
    assert again.stdout == "" and "No heading is a question that the suite lacks." in again.stderr


def test_junit(root: Path, tmp_path: Path) -> None:
    suite(
        root, SUITE + '[[question]]\nask = "bell \\u0007 & <tag>"\nexpect = "guides/checks.md#disk-space"\nwithin = 1\n'
    )
    in_process.program("test", "--junit", tmp_path / "out.xml", cwd=root, code=1)
    (found,) = ElementTree.parse(tmp_path / "out.xml").getroot()
    assert (found.get("tests"), found.get("failures"), found.get("skipped")) == ("4", "1", "0")
    assert [case.find("failure") is None for case in found] == [True, True, True, False]
    assert found[3].get("name") == "bell \ufffd & <tag>"
    assert {case.get("file") for case in found} == {"anvil-tests.toml"}, "as CI systems know it"
    message = in_process.complaint("test", "--junit", tmp_path / "no" / "out.xml", cwd=root)
    assert "cannot be written" in message


def test_without_vectors_words_decide(root: Path) -> None:
    report = in_process.printed("test", "--mode", "keyword", cwd=root)
    assert [outcome["rank"] for outcome in report["outcomes"]] == [1, 1, 1]
    in_process.program("build", "--provider", "none", "--index", "words.db", cwd=root)
    done = in_process.program("test", "--provider", "local", "--index", "words.db", cwd=root)
    assert "Semantic search is off" in done.stderr


def test_the_api_gives_the_same(root: Path) -> None:
    printed = in_process.printed("test", "--baseline", "main", cwd=root)
    with anvil.open(root / "docs") as opened:
        report = opened.test(root / "anvil-tests.toml", baseline="main")
    assert (report.passed, report.hit, report.mrr) == (printed["passed"], printed["hit"], printed["mrr"])
    asked = [outcome["question"]["ask"] for outcome in printed["outcomes"]]
    assert [outcome.question.ask for outcome in report.outcomes] == asked
    assert json.loads(json.dumps(printed)) == printed
    assert report.failed == () and report.comparison is not None and report.comparison.lost == ()
