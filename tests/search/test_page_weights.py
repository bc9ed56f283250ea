"""Weights of pages in the ranking: the factors of records and of configured globs."""

from __future__ import annotations

from pathlib import Path

import pytest

import anvil
from anvil.errors import ConfigError
from anvil.search import page_weights
from anvil.search.page_weights import asks_for_records, factors, is_record
from tests.conftest import write

PAGES = {
    "new/queue.md": "# Queue\n\nThe queue holds jobs until a worker takes them.\n",
    "old/queue.md": "# Queue\n\nThe queue holds jobs until a worker takes them, as it did.\n",
    "other.md": "# Colours\n\nThe colours of the theme are set in one file.\n",
}
WEIGHTS = '[embedding]\nprovider = "none"\n[search.weights]\n"old/**" = {}\n'


@pytest.mark.parametrize("path", ["CHANGELOG.md", "releases/1.2.md", "docs/blog/post.md", "whats-new.md", "rfcs/1.md"])
def test_a_record_is_known_by_its_path(path: str) -> None:
    assert is_record(path)


@pytest.mark.parametrize("path", ["guide/releasing.md", "newsletter.md", "history-of-ideas.md", "blogging.md"])
def test_a_page_with_such_a_word_in_its_name_is_none(path: str) -> None:
    assert not is_record(path)


def test_questions_about_versions_ask_for_records() -> None:
    assert asks_for_records("what changed in 2.1?") and not asks_for_records("how do I start a worker?")


def test_own_weights_go_before_the_rule_and_records_count_where_they_are_asked_for() -> None:
    found = factors(
        [(1, "blog/a.md"), (2, "news.md"), (3, "a.md"), (4, "old/a.md")], {"weights": '[["blog",0.2],["old",0.5]]'}
    )
    assert found.usual == {1: 0.2, 2: 0.7, 4: 0.5}
    assert found.about_records == {1: 1.0, 2: 1.0, 4: 0.5}


@pytest.mark.parametrize(
    "page",
    [
        "---\ndeprecated: true\n---\n# Job queue\n\n",
        "---\ndeprecated: since 2.0\n---\n# Job queue\n\n",
        "---\ndeprecated: {since: 2}\n---\n# Job queue\n\n",
        "# Job queue (deprecated since 2.0)\n\n",
        "# Deprecated: job queue\n\n",
        '# Job queue\n\n!!! warning "Deprecated"\n    Use queues.\n\n',
        "# Job queue\n\n:::warning Deprecated\nUse queues.\n:::\n\n",
        "# Job queue\n\n> **Deprecated**\n\n",
        "# Job queue\n\nThis command has been deprecated.\n\n",
    ],
)
def test_a_page_that_says_that_it_is_deprecated_ranks_below_a_living_one(tmp_path: Path, page: str) -> None:
    text = "The job queue holds jobs until a worker takes them.\n"
    docs = write(tmp_path / "docs", {"jobs.md": f"{page}{text}", "queue.md": f"# Queue\n\n{text}"})
    with anvil.open(docs, index=tmp_path / "i.db", provider="none") as opened:
        for question, first in (("job queue", "queue.md"), ("deprecated job queue", "jobs.md")):
            assert opened.search(question).results[0].metadata.file_path == first


@pytest.mark.parametrize(
    "signs",
    [
        (0, "", ""),
        ("False", "", ""),
        (" no", "", ""),
        ("[]", "", ""),
        (None, "Deprecated features", ""),
        (None, "Migrating from deprecated APIs", ""),
        (None, "", "This parameter is deprecated."),
        (None, "", "The old key (deprecated)"),
    ],
)
def test_a_page_about_what_is_deprecated_is_not_deprecated(signs: tuple[object, str, str]) -> None:
    assert not page_weights.is_deprecated(*signs)


def test_a_build_records_weights_and_a_search_uses_them(tmp_path: Path) -> None:
    write(tmp_path / "docs", PAGES)
    order = []
    for weight in (0.3, 3):
        (tmp_path / "anvil.toml").write_text(WEIGHTS.format(weight), encoding="utf-8")
        with anvil.open(tmp_path / "docs", config=tmp_path / "anvil.toml", index=tmp_path / "i.db") as opened:
            assert opened.index().outcome == "built"
            assert opened.index().outcome == "unchanged"
        with anvil.open(index=tmp_path / "i.db") as published:  # without the configuration
            order.append([hit.metadata.file_path for hit in published.search("queue of jobs").results])
    assert order == [["new/queue.md", "old/queue.md"], ["old/queue.md", "new/queue.md"]]


@pytest.mark.parametrize("weights", ["0", "9", '"much"', "true"])
def test_a_weight_that_is_none_is_refused(tmp_path: Path, weights: str) -> None:
    (tmp_path / "anvil.toml").write_text(WEIGHTS.format(weights), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"search\.weights"):
        anvil.open(write(tmp_path / "docs", PAGES), config=tmp_path / "anvil.toml")


def test_the_first_glob_counts_and_a_folder_means_its_pages() -> None:
    weight_of = page_weights.weigher({"old/kept.md": 1.0, "old": 0.5, "**/draft-*.md": 0.2})
    assert [weight_of(path) for path in ("old/kept.md", "old/a.md", "new/draft-1.md", "new/a.md", "older.md")] == [
        1.0,
        0.5,
        0.2,
        None,
        None,
    ]
