"""Tags that mark a version."""

from __future__ import annotations

import pytest

from anvil.dependencies import version_tags


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
    assert version_tags.find(there, name, version) == expected


def test_the_closest_tags() -> None:
    there = ["v1.0.0", "v1.1.0", "v1.0.1", "v9.0.0", "nightly"]
    assert version_tags.closest(there, "lib", "1.0.2") == ["v1.0.1", "v1.0.0", "v1.1.0"]
    assert version_tags.closest(["a@1.0.0", "b@1.0.1", "b@1.0.0"], "b", "1.0.2") == [
        "b@1.0.1",
        "b@1.0.0",
        "a@1.0.0",
    ]
    assert version_tags.closest([], "lib", "1") == []
