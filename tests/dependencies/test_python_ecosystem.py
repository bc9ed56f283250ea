"""Packages of Python: an index of packages, and a virtual environment."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from anvil.dependencies import python_ecosystem
from anvil.dependencies.ecosystems import Registry
from anvil.errors import FetchError, NotFound
from anvil.http.client import HttpClient
from tests.support.dependency_servers import metadata, publish_wheel, wheel
from tests.support.index_server import Answer, Server


@pytest.mark.parametrize("html", [False, True])
def test_a_version_in_the_index(server: Server, http: HttpClient, html: bool) -> None:
    urls = {"Source": "https://github.com/acme/lib", "Documentation": "https://lib.dev/"}
    data = wheel("lib", "1.0", urls=urls)
    publish_wheel(server, "lib", "1.0", data, html)
    ours = Registry(f"{server.url}/simple/", True)
    release = python_ecosystem.release(http, ours, "lib", "1.0")
    assert release.urls is not None
    assert (release.urls.repository, release.urls.documentation) == (
        "https://github.com/acme/lib",
        ("https://lib.dev/",),
    )
    assert release.archive is not None and release.archive.digest == f"sha256:{hashlib.sha256(data).hexdigest()}"
    with pytest.raises(NotFound, match=r"has no version 2\.0 of lib"):
        python_ecosystem.release(http, ours, "lib", "2.0")
    with pytest.raises(NotFound, match="has no package other"):
        python_ecosystem.release(http, ours, "other", "1.0")


def test_the_wheel_for_any_system_is_taken(server: Server, http: HttpClient) -> None:
    names = [
        "lib-1.0-cp311-cp311-win_amd64.whl",
        "lib-1.0-py3-none-any.whl",
        "lib-1.0.1-py3-none-any.whl",
        "lib-1.0.tar.gz",
    ]
    files = [{"filename": name, "url": f"{server.url}/{name}", "size": 5} for name in names]
    body = json.dumps({"files": files}).encode()
    server.answers["/lib/"] = Answer(body, headers={"Content-Type": "application/vnd.pypi.simple.v1+json"})
    release = python_ecosystem.release(http, Registry(f"{server.url}/", True), "lib", "1.0")
    assert release.archive is not None and release.archive.name == "lib-1.0-py3-none-any.whl"


@pytest.mark.parametrize("body", ["[]", "{", '{"files": [1]}', '{"files": [{"url": 1}]}', "[" * 100_000])
def test_an_index_that_sends_nonsense(server: Server, http: HttpClient, body: str) -> None:
    server.answers["/lib/"] = Answer(body.encode(), headers={"Content-Type": "application/json"})
    with pytest.raises(FetchError):
        python_ecosystem.release(http, Registry(f"{server.url}/", True), "lib", "1.0")


def test_an_index_page_whose_tags_are_too_deep(server: Server, http: HttpClient) -> None:
    server.answers["/lib/"] = Answer(b"<div>" * 30_000, headers={"Content-Type": "text/html"})
    with pytest.raises(FetchError, match="sent a page that is not read: its HTML has more than"):
        python_ecosystem.release(http, Registry(f"{server.url}/", True), "lib", "1.0")


def test_a_python_environment_is_read_without_running_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    assert python_ecosystem.installed(tmp_path) is None
    site = tmp_path / ".venv/lib/pypy3.11/site-packages"
    info = site / "My_Lib-1.0.dist-info"
    info.mkdir(parents=True)
    (tmp_path / ".venv/pyvenv.cfg").touch()
    (site / "evil.pth").write_text("import sys; sys.exit('run')")
    (info / "METADATA").write_text(metadata("My_Lib", "1.0", {"Source": "https://github.com/acme/lib"}))
    (info / "RECORD").write_text("my_lib/docs/a.md,,\n../../../../outside,,\n")
    (site / "my_lib/docs").mkdir(parents=True)
    (site / "my_lib/docs/a.md").touch()  # Python 3.12 and later list no file that is missing
    (site / "broken-0.dist-info").mkdir()
    found = python_ecosystem.installed(tmp_path)
    assert found is not None and [each.shown for each in found.unlocked((), ())] == ["my-lib 1.0"]
    package = found.find("my-lib", "1.0")
    assert package is not None and package[0].repository == "https://github.com/acme/lib"
    assert list(package[1]) == ["my_lib/docs/a.md"]
    assert found.find("my-lib", "2.0") is None
