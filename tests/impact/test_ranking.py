import pytest

from anvil.impact import ranking
from anvil.impact.evidence import Evidence
from anvil.impact.names import Name
from anvil.impact.ranking import change_probability
from anvil.search.confidence import logistic


@pytest.mark.parametrize(
    ("title", "feature"),
    [
        ("Add `--max-size` to upload (#12)", "first word new"),
        ("feat(cli): sizes", "first word new"),
        ("fix(cli): sizes", "first word fix"),
        ("Fixes a crash", "first word fix"),
        ("feat(cli)!: sizes", "breaking"),
    ],
)
def test_what_a_title_says(title: str, feature: str) -> None:
    found = {str(name): value for name, value in ranking.title_features(title).items()}
    assert found[feature] == 1.0


def test_words_of_a_title_are_counted_up_to_three() -> None:
    found = ranking.title_features("Add options, flags and settings, fix a bug")
    assert (found["words new"], found["words fix"], found["words internal"]) == (3.0, 2.0, 0.0)


@pytest.mark.parametrize("title", ["", "  ", "(#12)", "更新"])
def test_a_title_without_words_has_no_features(title: str) -> None:
    assert ranking.title_features(title) == {}


def test_a_title_of_a_feature_needs_pages_more_than_one_of_a_fix() -> None:
    titles = ("feat: add an option --max-size", "Say something", "fix: handle a race", "refactor: move tests")
    feature, neutral, fix, refactoring = (change_probability(ranking.title_features(title)) for title in titles)
    assert feature > 2 * neutral and neutral > max(fix, refactoring)


def test_files() -> None:
    found = ranking.file_features(["app/config.py", "app/b.py"], tests=2)
    assert found["tests"] == 0.5 and found["surface files"] == 1.0
    assert ranking.file_features([], tests=1)["tests"] == 0.0


def test_new_words_in_code() -> None:
    new = Name("size", "word", "added", "cli.py", 2, is_new=True)
    used = Name("--max-size", "flag", "removed", "cli.py", 1)
    assert ranking.name_features([new, used])["new words in code"] > ranking.name_features([used])["new words in code"]


def test_evidence_counts_of_the_page_that_has_most() -> None:
    evidence = [
        Evidence("joint change", "a.md", None, 0.5, ""),
        Evidence("joint change", "b.md", None, 0.2, ""),
        Evidence("prose", "b.md", "B", 0.3, "", subject="one"),
        Evidence("prose", "b.md", "C", 0.4, "", subject="two"),
        Evidence("link", "a.md", None, 1.0, ""),
    ]
    assert ranking.evidence_features(evidence) == {"public name gone": 0.0, "joint change": 0.5, "prose": 0.5}


def test_how_sure_one_piece_of_evidence_makes() -> None:
    """In thousandths, for one of ten pages, where the change concerns any."""
    odds = {name: ranking.log_odds({name: 1.0}, 10) for name in ranking.WEIGHTS}
    assert {name: round(1000 * logistic(value), 1) for name, value in odds.items()} == {
        "public name gone": 444.6,
        "name gone": 3.3,
        "name new": 2.4,
        "name touched": 8.0,
        "name near": 3.2,
        "text": 16.9,
        "title search": 43.4,
        "title name": 28.4,
        "title path": 26.5,
        "path words": 9.9,
        "link": 6.1,
        "joint change": 369.9,
        "joint folder": 160.8,
        "often changed": 11.4,
        "prose": 4.5,
    }


def test_how_much_a_change_needs_pages_by_one_feature() -> None:
    """In thousandths; 66 without any."""
    assert {name: round(1000 * change_probability({name: 1.0})) for name in ranking.CHANGE_WEIGHTS} == {
        "words new": 102,
        "words fix": 50,
        "words internal": 39,
        "first word new": 91,
        "first word fix": 36,
        "breaking": 343,
        "tests": 125,
        "surface files": 103,
        "new words in code": 99,
        "public name gone": 587,
        "joint change": 770,
        "prose": 190,
    }
