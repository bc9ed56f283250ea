"""The real programs with an index that is published elsewhere: pulled, searched, served while it changes, offline."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters, stdio_client

import anvil
from anvil.system import safe_files
from tests.conftest import PAGES, write
from tests.support import programs
from tests.support.in_process import complaint, printed, program
from tests.support.index_server import Answer, GitHub, Server, packed, serving
from tests.support.mcp_servers import Speaker, connected
from tests.support.programs import environment
from tests.support.repositories import commit, isolated, run

__all__ = ["isolated"]  # a fixture


def build(docs: Path, index: Path) -> Path:
    """An index of a folder, by words only, for speed."""
    with anvil.open(docs, index, "none") as opened:
        opened.index()
    return index


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The folder that a site is made of, far from where its readers are."""
    return write(tmp_path / "elsewhere" / "pages", PAGES)


@pytest.fixture
def published(site: Path) -> Iterator[Server]:
    """A server with the site's index."""
    with serving() as server:
        server.publish(build(site, site.parent / "index.db"))
        yield server


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """An empty working folder."""
    folder = tmp_path / "here"
    folder.mkdir()
    return folder


@contextmanager
def client(cwd: Path, *flags: str, mode: str = "legacy", **more: str) -> Iterator[Speaker]:
    """A client of ``anvil serve`` over its pipes."""
    line = ["-W", "error::ResourceWarning", "-m", "anvil", "serve", "--provider", "none", *flags]
    parameters = StdioServerParameters(command=sys.executable, args=line, env=environment(**more), cwd=cwd)
    with open(os.devnull, "w") as nothing, connected(stdio_client(parameters, errlog=nothing), mode) as speaker:
        yield speaker


def eventually(look: Callable[[], Any], seconds: float = 20) -> Any:
    """What ``look`` gives as soon as it is true."""
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
    return found


# --- the command line ----------------------------------------------------------------------------------------


def test_pull_puts_an_index_in_place_and_says_what_came(published: Server, site: Path, here: Path) -> None:
    done = programs.program("pull", f"{published.url}/", "--to", "docs.db", cwd=here)
    assert done.stdout.startswith("docs.db pulled: 4 pages, ") and f"from {published.url}/." in done.stdout
    assert (here / "docs.db").read_bytes() == (site.parent / "index.db").read_bytes()
    before = (here / "docs.db").stat()
    told = programs.printed("pull", published.url, "--to", "docs.db", cwd=here)
    assert told["outcome"] == "unchanged" and told["pages"] == 4 and told["from_cache"] is None
    assert told["sha256"] == safe_files.sha256(here / "docs.db")
    assert (here / "docs.db").stat().st_mtime_ns == before.st_mtime_ns
    assert programs.program("pull", published.url, "--to", "docs.db", "--quiet", cwd=here).stdout == ""
    assert programs.program("verify", "docs.db", cwd=here).stdout.startswith("docs.db is sound")
    assert sorted(path.name for path in here.iterdir()) == ["docs.db"]


def test_pull_names_its_own_option(published: Server, here: Path) -> None:
    assert "docs.db pulled: 4 pages" in program("pull", published.url, "--to", "docs.db", cwd=here).stdout
    message = complaint("pull", published.url, "--to", "docs.db/new.db", cwd=here)
    assert message.endswith("docs.db cannot be made (File exists). Choose another place for the index.")


def test_pull_fills_the_place_of_the_configured_index_and_counts_what_differs(published: Server, here: Path) -> None:
    write(here / "docs", {**PAGES, "index.md": "# Changed\n"})
    done = program("pull", published.url, cwd=here)
    assert "1 page differs from the working tree; search uses the pages of the working tree." in done.stdout
    assert (here / "docs/.anvil/.gitignore").read_text() == "*\n"
    assert printed("check", cwd=here, code=1)["changed"] == ["index.md"]
    write(here / "docs", PAGES)
    assert "No page differs from the working tree." in program("pull", published.url, cwd=here).stdout
    write(here, {"anvil.toml": 'index = "kept/docs.db"\n'})
    assert printed("pull", published.url, cwd=here)["index_path"] == str(here / "kept/docs.db")
    write(here / "docs", {"index.md": "# Changed\n"})
    named = program("pull", published.url, "--to", "named.db", cwd=here).stdout
    assert "1 page differs from the working tree. To update the index, run: anvil build --index named.db" in named
    for path in PAGES:
        (here / "docs" / path).rename(here / "docs" / f"other-{path.rpartition('/')[2]}")
    other = program("pull", published.url, "--to", "other.db", cwd=here).stdout
    assert "working tree" not in other, "an index of other documents is not compared with those here"


def test_pull_takes_the_index_of_a_digest_or_none(published: Server, site: Path, here: Path) -> None:
    digest = safe_files.sha256(site.parent / "index.db")
    stood = (site.parent / "index.db").read_bytes()[:5000]
    (here / "docs.db").write_bytes(stood)
    message = complaint("pull", published.url, "--to", "docs.db", "--sha256", "0" * 64, cwd=here, code=1)
    assert f"has the SHA-256 {digest}, not {'0' * 64}. " in message
    refused = printed("pull", published.url, "--to", "docs.db", "--sha256", "0" * 64, cwd=here, code=1)
    assert refused["outcome"] == "refused"
    assert (here / "docs.db").read_bytes() == stood
    assert printed("pull", published.url, "--to", "docs.db", "--sha256", digest.upper(), cwd=here)["sha256"] == digest
    assert "64 hexadecimal digits" in complaint("pull", published.url, "--sha256", digest[:-1], cwd=here)


def test_a_file_that_is_no_index_is_not_replaced(published: Server, here: Path) -> None:
    write(here, {"notes.txt": "My notes."})
    assert "notes.txt is not an Anvil index, and would be lost." in complaint(
        "pull", published.url, "--to", "notes.txt", cwd=here
    )
    assert (here / "notes.txt").read_text() == "My notes." and not published.requests


def test_pull_from_a_path(site: Path, published: Server, here: Path) -> None:
    told = printed("pull", site.parent, "--to", "x.db", cwd=here)
    assert told["origin"] == str(site.parent / "index.db") and told["fetched_at"] is None
    assert "There is no file or folder docs.example.org. Write a path, https://HOST/" in complaint(
        "pull", "docs.example.org", "--to", "x.db", cwd=here
    )


def test_exit_codes_and_complaints(published: Server, here: Path) -> None:
    assert "Name it with --docs, or a file with --to." in complaint("pull", published.url, cwd=here)
    assert "There is no index at" in complaint("pull", f"{published.url}/none/", "--to", "x.db", cwd=here)
    assert "over https only" in complaint("pull", "http://docs.example.com", "--to", "x.db", cwd=here)
    assert "does not say what to fetch" in complaint("pull", "github:o/r", "--to", "x.db", cwd=here)
    published.answers["/anvil/index.db"].body = bytes(100)
    assert "where its manifest says" in complaint("pull", published.url, "--to", "x.db", cwd=here, code=1)
    published.answers["/page.db"] = Answer(b"<!doctype html>")
    message = complaint("pull", f"{published.url}/page.db", "--to", "x.db", cwd=here, code=1)
    assert message.endswith("is not an Anvil index. Check its address.")
    assert complaint("pull", published.url, "x.db", cwd=here).endswith(" To write that file, add: --to x.db")
    refused = printed("pull", f"{published.url}/page.db", "--to", "x.db", cwd=here, code=1)
    assert refused["outcome"] == "refused"
    published.stop()
    message = complaint("pull", published.url, "--to", "x.db", cwd=here)
    assert "cannot be reached" in message and "was not fetched before" in message
    assert list(here.iterdir()) == []


def test_pull_offline_uses_what_was_fetched_and_says_so(published: Server, here: Path) -> None:
    program("pull", published.url, "--to", "a.db", cwd=here)
    published.stop()
    done = program("pull", published.url, "--to", "b.db", cwd=here)
    assert "is used: 127.0.0.1" in done.stderr and "cannot be reached" in done.stderr
    asked = program("pull", published.url, "--to", "c.db", "--offline", cwd=here)
    assert "--offline" in asked.stderr
    assert (here / "b.db").read_bytes() == (here / "c.db").read_bytes() == (here / "a.db").read_bytes()


def test_search_list_show_status_and_check_take_an_address(published: Server, here: Path) -> None:
    where = ["--index", f"{published.url}/anvil/"]
    found = printed("search", *where, "night alerts", cwd=here)
    assert found["results"][0]["metadata"]["file_path"] == "guides/alerts.md"
    assert found["freshness"]["checked"] is None
    assert printed("list", *where, "guides", cwd=here)["total_pages"] == 2
    assert "# Install" in program("show", *where, "install.md", cwd=here).stdout
    status = program("status", *where, cwd=here).stdout
    assert f"from  {published.url}/anvil/" in status
    write(here / "docs", {**PAGES, "index.md": "# Changed\n"})
    assert "anvil build" not in program("check", *where, cwd=here, code=1).stdout
    assert "is not built here" in complaint("build", *where, cwd=here)
    assert "anvil build" not in program("status", *where, cwd=here).stdout
    run(here, "init", "-q")
    unheld = complaint("git", "install", *where, cwd=here)  # and not that some file of the cache is in no repository
    assert f"published at {published.url}/anvil/, not in a commit" in unheld and "--tracked" not in unheld
    published.stop()
    offline = printed("search", *where, "night alerts", cwd=here)
    assert any("last confirmed less than a minute ago" in note for note in offline["freshness"]["notes"])
    assert offline["freshness"]["checked"] == "working tree"
    artifact = printed("status", *where, cwd=here)["index"]["artifact"]
    assert artifact["origin"] == f"{published.url}/anvil/" and "cannot be reached" in artifact["note"]


def test_the_address_can_stand_in_the_configuration(published: Server, here: Path) -> None:
    write(here, {"anvil.toml": f'index = "{published.url}/"\n'})
    assert printed("list", cwd=here)["total_pages"] == 4
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANVIL_INDEX", f"{published.url}/anvil/index.db")
        assert printed("status", cwd=here)["index"]["artifact"]["origin"].endswith("/anvil/index.db")
    with anvil.open(index=published.url, provider="none") as opened:
        assert opened.origin == f"{published.url}/" and opened.search("alerts").results


# --- the server ----------------------------------------------------------------------------------------------


def test_serve_answers_initialize_before_the_download_and_tools_say_how_far_it_is(
    published: Server, here: Path
) -> None:
    gate = threading.Event()
    published.answers["/anvil/index.db"].asked = lambda: gate.wait(25)
    with client(here, "--index", f"{published.url}/") as speaker:
        assert len(speaker.do("list_tools").tools) == 6
        message = speaker.refused("search_docs", query="alerts")
        assert message.startswith(f"The index is being fetched from {published.url}/.")
        gate.set()

        def answered() -> Any:
            result = speaker.call("search_docs", query="alerts")
            return None if result.is_error else result.structured_content

        found = eventually(answered, 60)
        assert found["results"] and found["freshness"]["notes"] == [
            "Semantic search is off: the index was built without vectors (embedding provider none)."
        ]


def test_serve_takes_a_new_index_as_soon_as_it_is_published(published: Server, site: Path, here: Path) -> None:
    write(here, {"anvil.toml": f'index = "{published.url}/"\n\n[fetch]\nrefresh = 1\n'})
    with client(here) as speaker:
        speaker.wait_for_index()
        assert speaker.ok("list_pages")["total_pages"] == 4
        write(site, {"news.md": "# News\n\nThe lighthouse got a new lamp.\n"})
        published.publish(build(site, site.parent / "index.db"))
        eventually(lambda: speaker.ok("list_pages")["total_pages"] == 5)
        assert speaker.ok("search_docs", query="new lamp")["results"][0]["metadata"]["file_path"] == "news.md"
        good = published.answers["/anvil/index.json"]
        published.answers["/anvil/index.json"] = Answer(good.body.replace(b'"size": ', b'"size": 1'))
        eventually(lambda: speaker.ok("get_status")["index"]["artifact"]["note"])
        assert "its manifest has" in speaker.ok("search_docs", query="lamp")["freshness"]["notes"][0]
        published.answers["/anvil/index.json"] = good
        eventually(lambda: not speaker.ok("get_status")["index"]["artifact"]["note"])


def test_serve_offline_answers_from_what_was_fetched_and_says_its_age(published: Server, here: Path) -> None:
    where = ["--index", f"{published.url}/"]
    program("list", *where, cwd=here)
    published.stop()
    (state,) = Path(os.environ["XDG_CACHE_HOME"]).rglob("state.json")
    told = json.loads(state.read_text())
    state.write_text(json.dumps({**told, "checked": told["checked"] - 3 * 3600}))
    with client(here, *where) as speaker:
        found = speaker.ok("search_docs", query="alerts")
        assert found["results"] and "last confirmed 3 hours ago" in found["freshness"]["notes"][0]
        assert "last confirmed 3 hours ago" in speaker.ok("get_status")["index"]["artifact"]["note"]


def test_serve_without_a_server_or_a_cache_says_so_and_recovers(
    published: Server, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published.stop()
    write(here, {"anvil.toml": f'index = "{published.url}/"\n\n[fetch]\nrefresh = 1\n'})
    with client(here) as speaker:
        message = speaker.refused("search_docs", query="alerts")
        assert "cannot be reached" in message and "was not fetched before" in message
        published.start()
        eventually(lambda: not speaker.call("search_docs", query="alerts").is_error)


# --- the whole story -----------------------------------------------------------------------------------------


def test_an_artifact_of_ci_is_pulled_at_a_later_commit_and_served_from_the_later_text(
    tmp_path: Path, here: Path
) -> None:
    origin = tmp_path / "origin"
    write(origin / "docs", PAGES)
    run(origin, "init", "-q", "-b", "main")
    first = commit(origin, "docs", at=1_700_000_000)
    built = build(origin / "docs", tmp_path / "runner" / "index.db")
    with serving() as api, serving() as storage:
        github = GitHub(api, storage)
        server = Server()
        server.publish(built)
        files = {path.rpartition("/")[2]: answer.body for path, answer in server.answers.items()}
        github.artifact(first, packed(files))
        write(origin / "docs", {"guides/alerts.md": PAGES["guides/alerts.md"].replace("three times", "seven times")})
        commit(origin, "edit", at=1_700_000_100)
        write(origin / "docs", {"index.md": PAGES["index.md"].replace("every minute", "every fortnight")})
        commit(origin, "edit again", at=1_700_000_200)
        clone = tmp_path / "clone"
        run(tmp_path, "clone", "-q", str(origin), str(clone))
        more = {"GITHUB_API_URL": api.url, "GITHUB_TOKEN": "ghp_secret"}
        line = [sys.executable, "-m", "anvil", "pull", "github:owner/repo", "artifact:docs-index"]
        done = subprocess.run(line, cwd=clone, env=environment(**more), capture_output=True, text=True, check=True)
        assert f"Built from commit {first[:12]}, 2 commits before HEAD." in done.stdout
        assert "2 pages differ from the working tree" in done.stdout
        assert "ghp_secret" not in done.stdout + done.stderr
        refreshed = "2 pages are newer than in this index, and refreshed: guides/alerts.md, index.md."
        with client(clone) as speaker:  # the index that was pulled
            found = speaker.ok("search_docs", query="alert is sent when a check fails seven times")
            assert "seven times" in found["results"][0]["content"]
            assert speaker.ok("get_status")["index"]["artifact"]["note"] == refreshed
        with client(clone, "--index", "github:owner/repo#artifact:docs-index", **more) as speaker:  # the source itself
            found = speaker.ok("search_docs", query="It asks each of them every fortnight")
            assert "every fortnight" in found["results"][0]["content"]
            assert found["freshness"]["commit"] == first and "checked" not in found["freshness"]
            artifact = speaker.ok("get_status")["index"]["artifact"]
            assert artifact["origin"] == "github:owner/repo#artifact:docs-index"
            assert (artifact["commit"], artifact["distance"]) == (first, 2)
            assert artifact["note"] == refreshed
        assert (
            hashlib.sha256((clone / "docs/.anvil/index.db").read_bytes()).digest()
            == hashlib.sha256(files["index.db"]).digest()
        )
