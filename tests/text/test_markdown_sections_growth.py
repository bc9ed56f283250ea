"""The time that a page takes grows with its length, whatever it is made of; so does that of a line in it."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from anvil.text import section_places
from anvil.text.front_matter import split
from anvil.text.headings import attributes, plain
from anvil.text.markdown_sections import parse
from tests.support.growth import IN_HEADINGS, NAMES, page

SMALL, TIMES = 4_000, 5


def seconds(work: Callable[[], object]) -> float:
    """Processor time."""
    began = time.process_time()
    work()
    return time.process_time() - began


@pytest.mark.parametrize("name", NAMES)
def test_a_page_of_one_construct_takes_linear_time(name: str) -> None:
    small, large = page(name, SMALL), page(name, SMALL * TIMES)
    for _ in range(3):  # other processes on the machine make some runs slow
        few, many = seconds(lambda: parse(small)), seconds(lambda: parse(large))
        if many < few * TIMES * 2.5 + 0.05 and many < 1:
            return
    raise AssertionError(f"{few:.3f} s, and {many:.3f} s for {TIMES} times as much")  # quadratic: TIMES squared


@pytest.mark.parametrize("name", IN_HEADINGS)
def test_a_heading_of_one_construct_takes_little_time(name: str) -> None:
    line = (IN_HEADINGS[name] * 2000)[:1990]
    assert seconds(lambda: plain(*attributes(line)[:1])) < 0.1


@pytest.mark.parametrize("blanks", [495, 100_000])
def test_blanks_around_a_brace_take_linear_time(blanks: int) -> None:
    line = "a" + " " * blanks + "{" + " " * blanks + "b"
    assert seconds(lambda: attributes(line)) < 0.05
    assert attributes(line) == (line, "")
    assert attributes("a" + " " * blanks + "{ #b }") == ("a", "b" if blanks else "")


def test_a_list_after_another_at_each_depth_is_read_once() -> None:
    deep = "".join(f"{'  ' * depth}- a\n{'  ' * depth}* [ ] b\n" for depth in range(15))
    assert seconds(lambda: parse(deep)) < 0.5  # twice at each depth: 32,000 times


@pytest.mark.parametrize("source", [".".join("a" * 15_000) + "=1\n", "a = " + "[" * 30_000 + "\n"])
def test_hostile_front_matter_is_text(source: str) -> None:
    assert seconds(lambda: split(f"+++\n{source}+++\n")) < 1
    assert split(f"+++\n{source}+++\n") == ({}, 0)


def test_the_same_heading_thousands_of_times_is_found_in_its_page_in_little_time() -> None:
    page_ = parse("# a\n" * 5_000)
    headings = [(1, "", "Contents"), *((1, f"a{number}", "a") for number in range(5_000))]
    assert seconds(lambda: section_places.with_anchors(page_, headings)) < 2  # difflib: a minute
    sections = section_places.with_anchors(page_, headings).sections
    assert [section.anchor for section in sections] == [f"a{number}" for number in range(5_000)]
