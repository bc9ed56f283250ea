"""The log of questions and the tool for reports: off by default, masked, bounded, and never in the way of an answer."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

import anvil
from anvil.doc_tests import question_log
from anvil.doc_tests.question_log import QuestionLog
from anvil.errors import AnvilError
from anvil.results import Freshness, SearchResult
from anvil.server import docs_toolset as docs_tools
from anvil.server import markdown_results
from tests.support import in_process
from tests.support.mcp_servers import Speaker, in_memory


def tools(speaker: Speaker) -> list[dict[str, object]]:
    return [tool.model_dump() for tool in speaker.do("list_tools").tools]


def log_of(docs: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (docs / ".anvil" / "questions.jsonl").read_text("utf-8").splitlines()]


def test_nothing_is_logged_unless_it_is_switched_on(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with in_memory(docs, None, "none") as speaker:
        plain = tools(speaker)
        speaker.ok("search_docs", query="how do I install it")
    assert not (docs / ".anvil" / "questions.jsonl").exists()
    assert [tool["name"] for tool in plain] == [tool.name for tool in docs_tools.TOOLS]
    monkeypatch.setenv("ANVIL_SERVE_QUESTION_LOG", "true")
    monkeypatch.setenv("ANVIL_SERVE_REPORT_PAGE", "true")
    with in_memory(docs, None, "none") as speaker:
        changed = tools(speaker)
    assert str(changed[0]["description"]) == str(plain[0]["description"]) + docs_tools.LOGGED
    assert changed[1:-1] == plain[1:] and changed[-1]["name"] == "report_page"


def test_questions_are_logged_masked_with_confidence_and_pages(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANVIL_SERVE_QUESTION_LOG", "true")
    with in_memory(docs, None, "none") as speaker:
        speaker.ok("search_docs", query="install it for jane@example.com")
        speaker.refused("search_docs", query=" ")
    (entry,) = log_of(docs)
    assert entry["question"] == "install it for [e-mail]"
    assert entry["pages"] == ["install.md"] or "install.md" in str(entry["pages"])
    assert set(entry) == {"kind", "time", "question", "index", "confidence", "pages"}
    assert (docs / ".anvil" / ".gitignore").read_text("utf-8") == "*\n"
    if os.name != "nt":
        assert {file.stat().st_mode & 0o777 for file in (docs / ".anvil").glob("*.jsonl")} == {0o600}


def test_questions_are_logged_that_are_answered_in_markdown(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANVIL_SERVE_QUESTION_LOG", "true")
    with anvil.open(docs, provider="none") as opened:
        toolset = markdown_results.in_markdown(docs_tools.configured(docs_tools.TOOLSET, opened))
        toolset.tools[0].bind({"query": "how do I install it"})(opened)
    assert [entry["question"] for entry in log_of(docs)] == ["how do I install it"]


def test_an_answer_comes_when_the_log_cannot_be_written(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANVIL_SERVE_QUESTION_LOG", "true")
    monkeypatch.setenv("ANVIL_SERVE_REPORT_PAGE", "true")
    (docs / ".anvil" / "questions.jsonl").mkdir(parents=True)
    with in_memory(docs, None, "none") as speaker:
        assert speaker.ok("search_docs", query="how do I install it")["results"]
        assert "regular files" in speaker.refused("report_page", file_path="install.md", problem="wrong")


def test_a_full_disk_costs_no_answer(tmp_path: Path, docs: Path) -> None:
    resource = pytest.importorskip("resource", reason="no limit of file sizes here")
    log = QuestionLog(tmp_path / "log.jsonl", 1_000_000)
    with anvil.open(docs, provider="none") as opened:
        result = opened.search("install")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    question_log.record(log, "x", "first", result)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.path.stat().st_size + 10, before[1]))
    try:
        question_log.record(log, "x", "second", result)
        with pytest.raises(AnvilError, match="cannot be written"):
            question_log.report(log, "x", "a.md", "wrong", "")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    question_log.record(log, "x", "third", result)
    question_log.record(log, "x", "fourth", result)
    assert [each.question for each in question_log.questions(log.read())][:1] == ["first"]
    assert question_log.questions(log.read())[-1].question == "fourth"


def test_several_servers_write_one_log_of_a_bounded_size(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"

    def write(name: str) -> None:
        log = QuestionLog(path, 1_000_000)
        for number in range(200):
            log.append({"name": name, "number": number, "text": "ä" * 50})

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {(entry["name"], entry["number"]) for entry in QuestionLog(path, 1).read()} == {
        (name, number) for name in "abcd" for number in range(200)
    }
    small = QuestionLog(tmp_path / "small.jsonl", 5000)
    for number in range(1000):
        small.append({"number": number})
    assert sum(file.stat().st_size for file in tmp_path.glob("small*")) < 11_000
    numbers = [entry["number"] for entry in small.read()]
    assert numbers == list(range(numbers[0], 1000)) and len(numbers) > 200


def test_a_link_in_place_of_the_log_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("x", encoding="utf-8")
    try:
        (tmp_path / "log.jsonl").symlink_to(target)
    except OSError:
        pytest.skip("links are not allowed here")
    question_log.record(QuestionLog(tmp_path / "log.jsonl", 1000), "x", "q", _nothing())
    assert target.read_text("utf-8") == "x"


def _nothing() -> SearchResult:
    return SearchResult(Freshness(None, None), (), 0, 0.0)


def test_reports(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANVIL_SERVE_REPORT_PAGE", "true")
    with in_memory(docs, None, "none") as speaker:
        done = speaker.ok("report_page", file_path="/install.md", problem="outdated", comment="Ask bob@example.com")
        assert done == {"status": "recorded", "file_path": "install.md", "problem": "outdated"}
        speaker.ok("report_page", file_path="guides/backup.md", problem="missing")
        assert "No page found" in speaker.refused("report_page", file_path="nope.md", problem="wrong")
        assert "problem" in speaker.refused("report_page", file_path="install.md", problem="bad")
        speaker.ok("search_docs", query="not logged")
    assert [(entry["kind"], entry["page"]) for entry in log_of(docs)] == [
        ("report", "install.md"),
        ("report", "guides/backup.md"),
    ]
    printed = in_process.program("questions", "--docs", docs, "--provider", "none").stdout
    assert "outdated  install.md: Ask [e-mail]" in printed and "missing  guides/backup.md" in printed


def test_alike_questions_are_one_group_and_those_without_an_answer_are_shown(docs: Path, tmp_path: Path) -> None:
    message = in_process.complaint("questions", "--docs", docs, "--provider", "local")
    assert "There is no log at" in message and "question_log = true" in message
    asked = [
        "Can I pay by credit card?",
        "can I pay by credit card",
        "is it possible to pay with a credit card?",
        "how long before a certificate expires am I warned?",
    ]
    lines = [json.dumps({"kind": "question", "time": f"2026-01-0{n}", "question": ask}) for n, ask in enumerate(asked)]
    (docs / ".anvil").mkdir(exist_ok=True)
    (docs / ".anvil" / "questions.jsonl").write_text("\n".join([*lines, '{"cut', "[]", "7"]), encoding="utf-8")
    found = in_process.printed("questions", "--docs", docs, "--provider", "local")
    (group,) = found["groups"]
    assert (group["count"], group["question"], group["last_asked"]) == (3, "can I pay by credit card", "2026-01-02")
    assert group["confidence"] < 0.15 and group["wordings"] == ["is it possible to pay with a credit card?"]
    assert found["questions"] == 4
    everything = in_process.printed("questions", "--all", "--docs", docs, "--provider", "local")
    assert len(everything["groups"]) == 2
    printed = in_process.program("questions", "--docs", docs, "--provider", "local").stdout
    assert "4 questions in 2 groups, 1 without an answer." in printed
    tests = in_process.program("questions", "--to-tests", "--docs", docs, "--provider", "local").stdout
    assert '# asked 3 times\n# also: is it possible to pay with a credit card?\n[[question]]\nask = "can I' in tests
    all_tests = in_process.program("questions", "--all", "--to-tests", "--docs", docs, "--provider", "local").stdout
    assert "# asked 1 time\n" in all_tests
    (tmp_path / "t.toml").write_text(tests, encoding="utf-8")
    report = in_process.printed("test", tmp_path / "t.toml", "--docs", docs, "--provider", "local")
    assert [outcome["status"] for outcome in report["outcomes"]] == ["new"]


def test_a_long_question_is_one_short_line(docs: Path) -> None:
    asked = json.dumps({"kind": "question", "time": "2026-01-01", "question": "zebra\nstripes " + "x" * 1500})
    (docs / ".anvil").mkdir(exist_ok=True)
    (docs / ".anvil" / "questions.jsonl").write_text(asked, encoding="utf-8")
    shown = in_process.program("questions", "--docs", docs, "--provider", "none", "--all").stdout.splitlines()
    assert "zebra stripes xxx" in shown[1] and len(shown[1]) < 130
