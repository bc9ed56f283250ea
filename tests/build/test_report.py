"""What is said of a build while it runs."""

from __future__ import annotations

from anvil.build.report import ProgressLines


def test_a_line_of_progress_is_not_written_again_while_it_says_the_same() -> None:
    """One large document of a library takes minutes; a line every five seconds said 77 of 82 eleven times."""
    lines: list[str] = []
    progress = ProgressLines(lines.append, first_s=0.0, interval_s=0.0)
    for done in (76, 77, 77, 77, 78, 78):
        progress("ingesting", done, 82)
    assert lines == ["ingesting 77 of 82", "ingesting 78 of 82"]
