"""Addresses in the metadata of packages."""

from __future__ import annotations

import pytest

from anvil.dependencies.project_urls import (
    ProjectUrls,
    github_slug,
    named_by_user,
    of_npm,
    of_python,
    repository_at,
    versioned,
)


@pytest.mark.parametrize(
    ("address", "repository"),
    [
        ("https://github.com/fastapi/fastapi", "https://github.com/fastapi/fastapi"),
        ("http://www.github.com/pallets/click/", "https://github.com/pallets/click"),
        ("https://github.com/pydantic/pydantic/blob/main/HISTORY.md", "https://github.com/pydantic/pydantic"),
        ("git+https://github.com/vitejs/vite.git", "https://github.com/vitejs/vite"),
        ("git+ssh://git@github.com/acme/ui.git", "https://github.com/acme/ui"),
        ("git@gitlab.com:group/sub/lib.git", "https://gitlab.com/group/sub/lib"),
        ("git://github.com/acme/ui.git", "https://github.com/acme/ui"),
        ("github:acme/ui", "https://github.com/acme/ui"),
        ("acme/ui", "https://github.com/acme/ui"),
        ("https://gitlab.com/a/b/c/-/tree/main", "https://gitlab.com/a/b/c"),
        ("https://git.example.org/team/lib.git", "https://git.example.org/team/lib.git"),
        ("https://example.org/docs/", None),
        ("https://github.com/acme", None),
        ("file:///etc/x.git", None),
        ("ext::sh -c id", None),
        ("https://github.com/--upload-pack=x/y z", None),
        ("https://[::1/x.git", None),
        ("", None),
    ],
)
def test_repositories(address: str, repository: str | None) -> None:
    assert repository_at(address) == repository


def test_the_most_certain_label_counts() -> None:
    urls = [
        ("Homepage", "https://github.com/acme/website"),
        ("Documentation", "https://lib.example.org/en/latest/"),
        ("Source Code", "https://github.com/acme/lib"),
    ]
    assert of_python(urls) == ProjectUrls("https://github.com/acme/lib", None, ("https://lib.example.org/en/latest/",))
    assert of_python([("Docs", "javascript:alert(1)"), ("docs", "https://pypi.org/x")]) == ProjectUrls()


def test_a_folder_of_a_repository_of_several_packages() -> None:
    package = {
        "repository": {"url": "git+https://github.com/acme/all.git", "directory": "packages/ui"},
        "homepage": "https://ui.dev",
    }
    assert of_npm(package) == ProjectUrls("https://github.com/acme/all", "packages/ui", ("https://ui.dev",))
    assert of_npm({"repository": {"url": 1, "directory": "../.."}, "homepage": []}) == ProjectUrls()


def test_addresses_of_a_version() -> None:
    def hosts(site: str) -> list[str]:
        return list(versioned(site, "1.2.3"))[:3]

    assert hosts("https://a.dev/") == ["https://a.dev/1.2.3/", "https://a.dev/v1.2.3/", "https://a.dev/1.2/"]
    assert hosts("https://a.dev/en/latest/intro/")[0] == "https://a.dev/en/1.2.3/"
    assert hosts("https://lib.readthedocs.io")[0] == "https://lib.readthedocs.io/en/1.2.3/"
    assert hosts("https://a.dev/guide/index.html")[0] == "https://a.dev/1.2.3/"


def test_github() -> None:
    assert github_slug("https://github.com/acme/lib.git") == "acme/lib"
    assert github_slug("https://gitlab.com/acme/lib") is None


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("fastapi/fastapi", "https://github.com/fastapi/fastapi"),
        ("gitlab:a/b", "https://gitlab.com/a/b"),
        ("github.com/a/b", "https://github.com/a/b"),
        ("https://github.com/a/b/tree/main/docs", "https://github.com/a/b"),
        ("git@git.acme.dev:team/lib.git", "ssh://git@git.acme.dev/team/lib.git"),
        ("ssh://git@github.com/a/b", "ssh://git@github.com/a/b"),
        ("https://git.acme.dev/team/lib", "https://git.acme.dev/team/lib"),
        ("file:///srv/git/lib", "file:///srv/git/lib"),
        ("/srv/git/lib", "/srv/git/lib"),
        ("-u/x", "-u/x"),
        ("https://[broken", "https://[broken"),
    ],
)
def test_what_a_user_calls_a_repository(text: str, address: str) -> None:
    assert named_by_user(text) == address
