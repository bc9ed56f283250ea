"""Words of Markdown."""

from __future__ import annotations

from anvil.sites import content_words


def test_marks_and_links_do_not_separate_words_and_images_do() -> None:
    line = "[int](a.md)s, un[`happy`](x)ly, [**b**](c)d [![sun](a.png)](b)rise\\[no](x)"
    assert content_words.of_markdown(line) == ["ints", "unhappyly", "bd", "sun", "rise", "no"]
