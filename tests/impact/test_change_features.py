import pytest

from anvil.impact import change_features
from anvil.impact.change_features import KIND_OF_CHANGE
from anvil.impact.names import Name
from anvil.impact.ranking import CHANGE_WEIGHTS, WEIGHTS, need
from anvil.impact.values import KIND_OF, KINDS, Evidence


def test_each_feature_has_a_weight() -> None:
    assert CHANGE_WEIGHTS.keys() == KIND_OF_CHANGE.keys()
    assert WEIGHTS.keys() == KIND_OF.keys()


@pytest.mark.parametrize(
    ("title", "feature"),
    [
        ("Add `--max-size` to upload (#12)", "first word new"),
        ("feat(cli): sizes", "first word new"),
        ("fix(cli): sizes", "first word fix"),
        ("Fixes a crash", "first word fix"),
        ("refactor: sizes", "first word internal"),
        ("feat(cli)!: sizes", "breaking"),
        ("uploads take --max-size", "marked name"),
    ],
)
def test_what_a_title_says(title: str, feature: str) -> None:
    found = {str(name): value for name, value in change_features.of_title(title).items()}
    assert found[feature] == 1.0


def test_words_of_a_title_are_counted_up_to_three() -> None:
    found = change_features.of_title("Add options, flags and settings, fix a bug")
    assert (found["words new"], found["words fix"], found["words internal"]) == (3.0, 2.0, 0.0)


@pytest.mark.parametrize("title", ["", "  ", "(#12)", "更新"])
def test_a_title_without_words_has_no_features(title: str) -> None:
    assert change_features.of_title(title) == {}


def test_a_title_of_a_feature_needs_pages_more_than_one_of_a_fix() -> None:
    titles = ("feat: add an option --max-size", "Say something", "fix: handle a race", "refactor: move tests")
    feature, neutral, fix, refactoring = (need(change_features.of_title(title), KINDS) for title in titles)
    assert feature > 2 * neutral and neutral > max(fix, refactoring)
    assert len({need(change_features.of_title(title), KINDS - {"title"}) for title in titles}) == 1


def test_files() -> None:
    found = change_features.of_files([("app/config.py", False), ("app/b.py", True)], tests=2)
    assert found["tests"] == 0.5 and found["surface files"] == 1.0 and found["new files"] > 0
    assert change_features.of_files([], tests=1)["tests"] == 0.0


def test_public_names_and_joint_changes() -> None:
    gone = Name("--max-size", "flag", "removed", "cli.py", 1, defined=True)
    used = Name("--max-size", "flag", "removed", "cli.py", 1)
    new = Name("size", "word", "added", "cli.py", 2, is_new=True)
    assert change_features.of_names([gone, new])["public name changed"] == 1.0
    assert change_features.of_names([used])["public name changed"] == 0.0
    assert change_features.of_names([new])["new words in code"] > 0
    evidence = [Evidence("joint change", "a.md", None, 0.5, ""), Evidence("link", "a.md", None, 1.0, "")]
    assert change_features.of_evidence(evidence) == {"strongest joint change": 0.5}
