from anvil.ci import summary
from anvil.impact.assessment import Impact, Undocumented
from anvil.impact.ranking import AffectedSection

FINDING = AffectedSection("a|b.md", "Limits > Size", "Limits", 7, 0.71, ("names `--max-size`", "is called like x"))
DONE = AffectedSection("c.md", "C", "C", 1, 0.4, ())
NEW = Undocumented("flag", "--size-limit", "app/cli.py", 3)


def test_nothing_is_said_when_nothing_is_likely() -> None:
    assert summary.render_impact((), Impact((FINDING,), done=(DONE,), files=2), None) == ""
    assert summary.impact_headline((), Impact(())) == "nothing that this change makes wrong was found"


def test_sections_additions_and_what_is_done() -> None:
    impact = Impact((FINDING,), (NEW,), (DONE,), files=2)
    assert summary.impact_headline((FINDING,), impact) == (
        "1 section may be wrong after this change, and no page has 1 addition"
    )
    text = summary.render_impact((FINDING,), impact, "https://x.example/blob/1/docs/")
    assert text.startswith("## Documentation: 1 section may be wrong")
    assert "[`a\\|b.md:7`](https://x.example/blob/1/docs/a%7Cb.md#L7) | `Limits > Size` | " in text
    assert "| `` names `--max-size` ``; `is called like x` | 0.71 |" in text
    assert "| `--size-limit` | flag | `app/cli.py:3` |" in text
    assert "<details><summary>1 section that the change edits already</summary>" in text
