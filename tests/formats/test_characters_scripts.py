"""Scripts: which ones a vocabulary has words of, and which questions are in others."""

from __future__ import annotations

import pytest

from anvil.formats.characters import is_unread, known_scripts, readable, script, script_names


def test_a_script_is_known_by_pieces_of_several_letters() -> None:
    latin = [f"##{first}{second}" for first in "abcdefghij" for second in "abcdefghij"]
    cyrillic = [f"{first}{second}" for first in "абвгд" for second in "абвгд"]
    single = [chr(0x4E00 + number) for number in range(1000)]
    assert known_scripts([*latin, *cyrillic, *single, "##", "12", ""]) == {"LATIN"}
    assert known_scripts(latin[1:]) == set(), "99 pieces are not enough"


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        ("plain", False),
        ("Änderungen geprüft, naïve façade", False),
        ("12 + 34 = ٤٦", False),
        ("如何使用 Docker", True),
        ("Docker 容器", True),
        ("what does 依赖 mean in this page", False),
        ("Как разбить приложение", True),
        ("アプリ", True),
        ("문서", True),
        ("", False),
    ],
)
def test_a_question_is_unread_if_a_quarter_of_its_letters_are(text: str, unread: bool) -> None:
    assert is_unread(text, {"LATIN"}) is unread
    assert not is_unread(text, None), "nobody knows what a remote model reads"
    assert not is_unread(text, {"LATIN", "CJK", "HANGUL", "KATAKANA", "CYRILLIC"})


def test_names_of_scripts() -> None:
    assert [script(letter) for letter in "aéя文カ한"] == ["LATIN", "LATIN", "CYRILLIC", "CJK", "KATAKANA", "HANGUL"]
    assert script_names({"LATIN", "CJK", "CYRILLIC"}) == "CJK, Cyrillic, Latin"


def test_a_text_that_is_unread_keeps_what_a_model_reads_and_all_places() -> None:
    latin = frozenset({"LATIN"})
    assert readable("`useId`는 naïve하게 “key”를 만듭니다。", latin) == "`useId`  naïve    key        "
    mostly_latin = "what does 依赖 mean in this page"
    assert readable(mostly_latin, latin) == mostly_latin
    assert readable("문서", None) == "문서", "nobody knows what a remote model reads"
