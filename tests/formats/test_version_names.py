"""Which of some versions is the newest, and which tags mark a version."""

from __future__ import annotations

import time

import pytest

from anvil.formats.version_names import closest_tags, find_tag, newest


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        (["1.9", "1.10", "1.2"], "1.10"),
        (["v2.0.0", "v1.9.9"], "v2.0.0"),
        (["2.0rc1", "1.9"], "1.9"),
        (["2.0-beta.1", "2.0-alpha.4"], "2.0-beta.1"),
        (["main", "0.1"], "0.1"),
        (["latest", "9.9"], "latest"),
        (["stable", "latest", "9.9"], "stable"),
        (["", "1.0"], "1.0"),
        (["develop", "main"], "main"),
    ],
)
def test_the_newest_version(versions: list[str], expected: str) -> None:
    assert newest(versions) == newest(versions[::-1]) == expected


@pytest.mark.parametrize(
    ("name", "version", "there", "expected"),
    [
        ("fastapi", "0.115.0", ["0.115.0", "0.115.1"], "0.115.0"),
        ("click", "8.1.7", ["v8.1.7", "8.1.70"], "v8.1.7"),
        (
            "@astrojs/starlight",
            "0.9.1",
            ["@astrojs/starlight@0.9.1", "@astrojs/other@0.9.1"],
            "@astrojs/starlight@0.9.1",
        ),
        ("@acme/ui", "2.0.0", ["ui@2.0.0", "v2.0.0"], "ui@2.0.0"),
        ("my-lib", "1.2.3", ["my_lib-1.2.3"], "my_lib-1.2.3"),
        ("lib", "1.2.3", ["release-1.2.3"], "release-1.2.3"),
        ("sqlalchemy", "2.0.30", ["rel_2_0_30"], "rel_2_0_30"),
        ("curl", "8.1.0", ["curl-8_1_0", "v8.1"], "curl-8_1_0"),
        ("lib", "8.1.0", ["v8.1", "8_1_0"], "v8.1"),
        ("lib", "1.2.0", ["v1.2"], "v1.2"),
        ("lib", "1.2.3", ["v1.2", "v1.2.4"], None),
        ("core", "1.0.0", ["core/v1.0.0"], "core/v1.0.0"),
    ],
)
def test_the_forms_that_projects_use(name: str, version: str, there: list[str], expected: str | None) -> None:
    assert find_tag(there, name, version) == expected


def test_the_closest_tags() -> None:
    there = ["v1.0.0", "v1.1.0", "v1.0.1", "v9.0.0", "nightly"]
    assert closest_tags(there, "lib", "1.0.2", 3) == ["v1.0.1", "v1.0.0", "v1.1.0"]
    assert closest_tags(["a@1.0.0", "b@1.0.1", "b@1.0.0"], "b", "1.0.2", 3) == ["b@1.0.1", "b@1.0.0", "a@1.0.0"]
    assert closest_tags(["v2.1.0", "v2.9.0", "v1.10.0"], "@acme/lib2", "2.10.0", 1) == ["v2.9.0"]
    assert closest_tags([], "lib", "1", 3) == []


def test_time_of_the_closest_tags_grows_with_their_length_only() -> None:
    tags = [f"{'1' * 500}{number}" for number in range(5_000)]
    begin = time.thread_time()
    assert len(closest_tags(tags, "lib", "1" * 60, 3)) == 3
    assert time.thread_time() - begin < 5  # 0.03 s, and 14 s where texts are compared
