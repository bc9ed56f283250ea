"""``anvil build --site``: the index of what readers see, whatever built it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from pathlib import Path

import pytest

import anvil
from anvil.errors import SourceError
from tests.support import html_sites
from tests.support.html_sites import BASE, page, write
from tests.support.in_process import complaint, printed, program

NONE = ("--provider", "none")


def build(site: Path, *options: str | Path, code: int = 0) -> str:
    return program("build", "--site", site, *NONE, *options, code=code).stdout


def sha256(site: Path) -> str:
    return hashlib.sha256((site / "anvil/index.db").read_bytes()).hexdigest()


def test_a_built_site_has_its_index(tmp_path: Path) -> None:
    site, docs = html_sites.site(tmp_path / "site"), html_sites.docs(tmp_path / "docs")
    assert "3 pages" in build(site, "--docs", docs)
    manifest = json.loads((site / "anvil/index.json").read_text(encoding="utf-8"))
    assert manifest["pages"] == 3 and manifest["sha256"] == sha256(site)
    hits = printed("search", "--site", site, "--docs", docs, "crane", "--json")["results"]
    assert hits[0]["metadata"]["file_path"] == "guide/install.md"
    assert hits[0]["metadata"]["url"] == f"{BASE}guide/install/#on-windows"
    listed = printed("list", "--site", site, "--docs", docs, "--json")["pages"]
    assert [each["file_path"] for each in listed] == ["api/index.html", "guide/install.md", "index.md"]
    text = program("show", "--site", site, "--docs", docs, "guide/install.md").stdout
    assert "navigation words" not in text and "Built on" not in text
    heading = program("grep", "--site", site, "--docs", docs, "on windows").stdout.splitlines()[0]
    assert heading.startswith(f"{docs / 'guide/install.md'}:") or "guide/install.md:" in heading


def test_pages_that_are_older_than_their_source_are_named_and_no_others(tmp_path: Path) -> None:
    docs, site = html_sites.docs(tmp_path / "docs"), html_sites.site(tmp_path / "site")
    for file in docs.rglob("*.md"):
        os.utime(file, (1_700_000_000, 1_700_000_000))
    assert "may be older" not in program("build", "--site", site, "--docs", docs, *NONE).stderr
    os.utime(docs / "guide/install.md")
    os.utime(site / "guide/install/index.html", (1_700_000_000, 1_700_000_000))
    told = program("build", "--site", site, "--docs", docs, *NONE).stderr
    assert "1 page of the site may be older than the source, such as guide/install.md" in told


def test_an_edited_source_answers_from_its_file(tmp_path: Path) -> None:
    site, docs = html_sites.site(tmp_path / "site"), html_sites.docs(tmp_path / "docs")
    missing = complaint("search", "--site", site, "--docs", docs, "crane")
    assert f"'anvil build --docs {docs} --site {site}'" in missing and not (site / "anvil").exists()
    build(site, "--docs", docs)
    assert "is fresh" in program("check", "--site", site, "--docs", docs).stdout
    (docs / "guide/install.md").write_text("# Install\n\nUse the new gangway.\n", encoding="utf-8")
    stale = program("check", "--site", site, "--docs", docs, code=1).stdout
    assert "guide/install.md" in stale and f"build --docs {docs} --site {site}" in stale
    with anvil.open(docs, site=site, provider="none") as opened:
        hit = opened.search("gangway").results[0]
    assert hit.metadata.file_path == "guide/install.md" and hit.metadata.url == f"{BASE}guide/install/#install"


def test_an_edited_source_of_another_format_is_stale_and_the_index_answers(tmp_path: Path) -> None:
    site, docs = html_sites.site(tmp_path / "site"), html_sites.docs(tmp_path / "docs")
    (docs / "guide/install.md").rename(docs / "guide/install.rst")
    build(site, "--docs", docs)
    of_index = ("--docs", docs, "--index", site / "anvil/index.db")
    assert "is fresh" in program("check", *of_index).stdout
    (docs / "guide/install.rst").write_text("Install\n=======\n\nUse the gangway.\n", encoding="utf-8")
    assert "changed  guide/install.rst" in program("check", *of_index, code=1).stdout
    for index, folder in ((site / "anvil/index.db", None), (None, site)):
        with anvil.open(docs, index, "none", site=folder) as opened:
            assert opened.check().changed
            assert opened.grep("crane").matches and not opened.grep("gangway").matches
    with anvil.open(docs, site / "anvil/index.db", "none") as opened:
        assert opened.index(force=True).pages == len(list(docs.rglob("*.md")))


def test_lines_are_those_of_the_source_or_there_are_none(tmp_path: Path) -> None:
    source = (
        "---\ntitle: Cranes\n---\nimport Tabs from '@theme/Tabs'\n\n"
        "# Cranes\n\nLift loads\nwith care.\n\n```sh\n# Wind\n```\n\n"
        "## Wind\n\nStop at ten knots.\n\n<Tabs>\n\n</Tabs>\n\n## Load {#max}\n\nFour tons.\n\n### Wind\n\nLess then.\n"
    )
    body = (
        "<p>Lift loads with care.</p><pre><code># Wind</code></pre><h2 id=wind>Wind</h2><p>Stop at ten knots.</p>"
        "<h2 id=made>Made by a plugin</h2><p>Nowhere else.</p><h2 id=max>The load</h2><p>Four tons.</p>"
        "<h3 id=wind-1>Wind</h3><p>Less then.</p>"
    )
    site = html_sites.site(tmp_path / "site")
    write(site, {"cranes/index.html": page("Cranes", body, address="cranes/")})
    docs = write(html_sites.docs(tmp_path / "docs"), {"cranes.md": source})
    build(site, "--docs", docs)
    with anvil.open(docs, site=site, provider="none") as opened:
        sections = {s.anchor: (s.start_line, s.end_line) for s in opened.outline("cranes.md").sections}
        assert sections == {
            "cranes": (6, 14),
            "wind": (15, 21),
            "made": (None, None),
            "max": (23, 25),
            "wind-1": (27, 29),
        }
        found = opened.search("ten knots").results[0].metadata
        assert (found.start_line, found.end_line) == (15, 21)
        assert opened.search("moors").results[0].metadata.start_line is None
        assert opened.get_section("cranes.md", "made").metadata.start_line is None
        assert [match.line for match in opened.grep("Lift loads").matches] == [None]
    options = ("--site", site, "--docs", docs)
    assert "cranes.md:15  " in program("search", *options, "ten knots").stdout
    assert "api/index.html  " in program("search", *options, "moors a ship").stdout
    assert program("grep", *options, "Nowhere else").stdout.endswith("cranes.md:Nowhere else.\n")
    assert "Stop at ten knots." in program("show", *options, "cranes.md:17").stdout
    assert "no source file" in complaint("show", *options, "api/index.html:3")
    program("verify", site / "anvil/index.db")
    (docs / "cranes.md").write_text(source.replace("Stop at", "\n\nHalt at"), encoding="utf-8")
    hit = printed("search", *options, "halt knots", "--json")["results"][0]["metadata"]
    assert (hit["start_line"], hit["end_line"]) == (15, 24)
    assert program("grep", *options, "Halt at").stdout.endswith("cranes.md:19:Halt at ten knots.\n")


def test_a_page_of_the_site_that_changed_makes_the_index_stale(tmp_path: Path) -> None:
    site = html_sites.site(tmp_path / "site")
    build(site)
    write(site, {"api/index.html": page("API", "<p>Moors two ships.</p>", address="api/")})
    assert "api/index.html" in program("check", "--site", site, code=1).stdout


def test_an_index_with_an_address_of_the_site_is_compared_with_that_address(tmp_path: Path) -> None:
    site = html_sites.site(tmp_path / "site")
    build(site, "--site-url", "https://other.example/")
    assert "is fresh" in program("check", "--site", site, "--site-url", "https://other.example/").stdout
    stale = program("check", "--site", site, code=1).stdout
    assert "If it was built with --site-url, give that to check, too." in stale
    assert "give that" not in program("check", "--site", site, "--site-url", "https://third.example/", code=1).stdout


def test_the_default_folder_of_documents_is_used_if_most_pages_have_a_source_there(tmp_path: Path) -> None:
    site = html_sites.site(tmp_path / "site")
    html_sites.docs(tmp_path / "docs")
    program("build", "--site", site, *NONE, cwd=tmp_path)
    with anvil.open(index=site / "anvil/index.db") as opened:
        assert "guide/install.md" in {each.file_path for each in opened.list_pages().pages}
    shutil.rmtree(tmp_path / "docs")
    write(tmp_path / "docs", {"other.md": "# Other\n"})
    program("build", "--site", site, *NONE, cwd=tmp_path)
    with anvil.open(index=site / "anvil/index.db") as opened:
        assert "guide/install/index.html" in {each.file_path for each in opened.list_pages().pages}


def test_time_stamps_and_hashes_of_assets_do_not_matter(tmp_path: Path) -> None:
    site = html_sites.site(tmp_path / "site")
    build(site)
    before = sha256(site)
    for file in site.rglob("*.html"):
        text = file.read_text(encoding="utf-8").replace("0123abcd", "9876fedc").replace("2026-01-31", "2026-02-01")
        file.write_text(text, encoding="utf-8")
    modified = os.stat(site / "anvil/index.db").st_mtime_ns
    assert "up to date" in build(site)
    assert os.stat(site / "anvil/index.db").st_mtime_ns == modified
    shutil.rmtree(site / "anvil")
    build(site)
    assert sha256(site) == before


def test_a_site_that_was_emptied_takes_the_index_from_before(tmp_path: Path) -> None:
    """With the bundled model: no passage is embedded again."""
    site = html_sites.site(tmp_path / "site")
    program("build", "--site", site)
    before = sha256(site)
    shutil.rmtree(site)
    html_sites.site(site)
    assert re.search(r"0 passages embedded, [1-9]", program("build", "--site", site).stdout)
    assert sha256(site) == before


def test_a_cache_folder_that_cannot_be_written_costs_nothing_but_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from anvil.system import safe_files

    write(tmp_path, {"cache": "a file"})
    monkeypatch.setattr(safe_files, "user_cache", lambda: tmp_path / "cache")
    report = json.loads(build(html_sites.site(tmp_path / "site"), "--json"))
    assert report["pages"] == 3 and report["reasons"][0].startswith("No copy of the index is kept")


def test_configuration_names_the_site(tmp_path: Path) -> None:
    html_sites.site(tmp_path / "public")
    keys = '[site]\nfolder = "public"\nurl = "https://other.example/x"\nexclude = ["api/**"]\nignore = ["h2"]\n'
    write(tmp_path, {"anvil.toml": keys})
    program("build", *NONE, cwd=tmp_path)
    with anvil.open(config=tmp_path / "anvil.toml") as opened:
        pages = opened.list_pages().pages
        assert [each.url for each in pages] == [
            "https://other.example/x/guide/install/",
            "https://other.example/x/",
        ]
        assert "On Windows" not in opened.get_page("guide/install/index.html").chunks[0].content


def test_versions_and_languages_are_kept_apart(tmp_path: Path) -> None:
    site = tmp_path / "site"
    for version in ("1.2", "2.0", "latest"):
        for path in ("index.html", "guide/index.html", "api/index.html"):
            address = f"latest/{path.removesuffix('index.html')}"
            write(site, {f"{version}/{path}": page("Guide", f"<p>Of {version}, {path}.</p>", address=address)})
    write(site, {"2.0/de/index.html": page("Start", "<p>Anfang.</p>", address="2.0/de/", lang="de")})
    build(site)
    with anvil.open(index=site / "anvil/index.db") as opened, opened.members[0].location.open() as reader:
        metadata = {
            path: document.metadata for path in reader.identities() if (document := reader.document(path)) is not None
        }
        assert metadata["1.2/guide/index.html"]["version"] == "1.2" and len(metadata) == 10
        assert metadata["2.0/de/index.html"]["language"] == "de"
        hits = opened.search("guide", file_filter="1.2/**").results
        assert {hit.metadata.url for hit in hits} == {f"{BASE}1.2/{path}#guide" for path in ("", "guide/", "api/")}
        hits = opened.search("anfang start", language="de").results
        assert {hit.metadata.file_path for hit in hits} == {"2.0/de/index.html"}
        assert {(hit.metadata.version, hit.metadata.language) for hit in hits} == {("2.0", "de")}
        section = opened.get_section("2.0/de/index.html", "Start").metadata
        assert (section.version, section.language) == ("2.0", "de")
    found = printed("search", "--site", site, "--version", "1.2", "guide", "--json")["results"]
    assert {hit["metadata"]["file_path"] for hit in found} == {
        f"1.2/{path}index.html" for path in ("", "guide/", "api/")
    }
    assert {hit["metadata"]["version"] for hit in found} == {"1.2"}
    write(tmp_path, {"anvil.toml": '[site]\nfolder = "site"\nversions = ["2.0"]\nlanguages = ["en"]\n'})
    program("build", *NONE, cwd=tmp_path)
    with anvil.open(index=site / "anvil/index.db") as opened:
        listed = [each.file_path for each in opened.list_pages().pages]
        assert listed == ["2.0/api/index.html", "2.0/guide/index.html", "2.0/index.html"]


def test_what_is_left_out_is_reported_with_its_reason(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "moved.html": page("Moved", "", head='<meta http-equiv="refresh" content="0; url=guide/">'),
        "hidden.html": page("Hidden", "<p>x</p>", head='<meta name="robots" content="noindex, follow">'),
        "copy.html": page("Copy", "<p>x</p>", address="guide/install/"),
        "search.html": page("Search", "<p>Type a word.</p>"),
        "en/1.2/search/index.html": page("Search", "<p>Type two words.</p>"),
        "api/search/index.html": page("Search", "<p>It returns the pages that have a word.</p>"),
        "tags/index.html": page("Tags", '<ul><li><a href="x">many words in a link</a></li></ul>'),
        "empty.html": "<html><body><main></main></body></html>",
        "section.html": '<body><nav>Home</nav><main></main><script src="app.js"></script></body>',
        "shell.html": '<html><body><div id="root"></div><script type="module" src="app.js"></script></body></html>',
        "frames.html": '<frameset><frame src="index.html"></frameset>',
        "deep.html": "<div>" * 300_000,
        "large.html": b"<p>" + b"x" * 6_000_000,
    }
    site = write(html_sites.site(tmp_path / "site"), files)
    report = json.loads(build(site, "--json"))
    reasons = {each["path"]: each["reason"] for each in report["skipped"]}
    assert reasons == {
        "404.html": "it is the page for addresses that do not exist",
        "copy.html": f"its canonical address is {BASE}guide/install/",
        "deep.html": "its HTML has more than 1,000 elements inside each other",
        "empty.html": "it has no text",
        "frames.html": "it is a set of frames",
        "hidden.html": "its robots tag is noindex",
        "large.html": "it is larger than 5,000,000 bytes (source.max_file_bytes)",
        "moved.html": "it leads to guide/",
        "search.html": "it is the search page",
        "en/1.2/search/index.html": "it is the search page",
        "section.html": "it has no text",
        "shell.html": "its HTML has no text: scripts make it in the browser",
        "tags/index.html": "it is a list of other pages",
    }
    assert report["pages"] == 4


def test_many_pages_that_are_left_out_make_one_line(tmp_path: Path) -> None:
    moved = {f"old/{n}.html": '<meta http-equiv="refresh" content="0; url=/new">' for n in range(9)}
    site = write(tmp_path / "site", {**moved, "new.html": page("New", "<p>Text.</p>")})
    said = program("build", "--site", site, *NONE).stderr
    assert "left out old/0.html, old/1.html, old/2.html and 6 more: it leads to another page" in said
    assert "old/8.html" in program("build", "--site", site, *NONE, "--verbose").stderr


LONG = "<p>Cranes lift the loads of ships that moor at the quay, from six in the morning until ten in the evening.</p>"


def test_a_copy_of_a_page_is_left_out_and_the_one_with_a_source_stays(tmp_path: Path) -> None:
    other = LONG.replace("Cranes", "Tugs") + "<h2 id=more>More</h2>" + LONG.replace("Cranes", "Pilots")
    site = write(
        html_sites.site(tmp_path / "site"),
        {
            "zz/cranes/index.html": page("Cranes", LONG + "<p>Bell.</p>"),
            "de/cranes/index.html": page("Cranes", LONG + "<p>Bell.</p>", lang="de"),
            "tugs/index.html": page("Tugs", other),
            "all/index.html": page("All", LONG.replace("Cranes", "Tugs") + f"<h1>Cranes</h1>{LONG}<p>Bell.</p>"),
            "1.0/index.html": page("Tugs", other),
            "2.0/index.html": page("Tugs", other),
        },
    )
    docs = write(html_sites.docs(tmp_path / "docs"), {"zz/cranes.md": "# Cranes\n"})
    report = json.loads(build(site, "--docs", docs, "--json"))
    assert {each["path"]: each["reason"] for each in report["skipped"] if each["path"] != "404.html"} == {
        "all/index.html": "its text is that of tugs/index.html, zz/cranes/index.html",
        "de/cranes/index.html": "its text is that of zz/cranes/index.html",
    }
    without_source = json.loads(build(site, "--json"))["skipped"]
    assert {"path": "zz/cranes/index.html", "reason": "its text is that of de/cranes/index.html"} in without_source
    write(docs, {"all.md": "# All\n\n{{ everything }}\n"})  # a source does not make a page its own that repeats others
    assert "all/index.html" in build(site, "--docs", docs, "--json")


def test_a_sitemap_names_the_pages(tmp_path: Path) -> None:
    site = html_sites.site(tmp_path / "site")
    listed = "".join(f"<url><loc>{BASE}{address}</loc></url>" for address in ("", "guide/install/"))
    write(site, {"sitemap.xml": f'<?xml version="1.0"?><urlset>{listed}</urlset>'})
    report = json.loads(build(site, "--json"))
    assert report["pages"] == 2
    assert {"path": "api/index.html", "reason": "it is not in sitemap.xml"} in report["skipped"]
    moved = '<meta http-equiv="refresh" content="0; url=/"><p>It moved: <a href="/">here</a>.</p>'
    write(site, {f"old/{number}/index.html": moved for number in range(9)})
    report = json.loads(build(site, "--json"))
    assert (report["pages"], report["reasons"]) == (2, []), "redirects are no pages that a sitemap must name"


def test_the_sitemap_of_a_folder_says_nothing_of_one_whose_name_begins_the_same(tmp_path: Path) -> None:
    site = html_sites.site(tmp_path / "site")
    for folder, crane in (("port", "one crane"), ("port-north", "two cranes")):
        write(site, {f"{folder}/index.html": page(folder, f"<p>It has {crane}.</p>", address=f"{folder}/")})
    write(site, {"port/sitemap.xml": f"<urlset><url><loc>{BASE}port/</loc></url></urlset>"})
    report = json.loads(build(site, "--json"))
    assert report["pages"] == 5, report["skipped"]


@pytest.mark.parametrize(
    "sitemap",
    [
        '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]><urlset><url><loc>&b;</loc></url></urlset>',
        "<urlset>" + "<url><loc>https://other.example/elsewhere/</loc></url>" * 10_000 + "</urlset>",
        "<urlset><url><loc>https://example.org/../../x.html</loc></url></urlset>",
    ],
)
def test_a_sitemap_that_is_not_of_this_site_is_not_used(tmp_path: Path, sitemap: str) -> None:
    site = write(html_sites.site(tmp_path / "site"), {"sitemap.xml": sitemap})
    report = json.loads(build(site, "--json"))
    assert report["pages"] == 3
    assert report["reasons"] == ["sitemap.xml names other pages than the site has, so all HTML files are read."]


def test_an_empty_sitemap_and_those_of_languages_are_no_reason_for_a_remark(tmp_path: Path) -> None:
    site = html_sites.site(tmp_path / "site")
    for empty in ('<?xml version="1.0"?><urlset></urlset>', "\0\xff"):
        write(site, {"sitemap.xml": empty})
        assert "sitemap.xml" not in program("build", "--site", site, *NONE).stderr
    of_language = "<urlset>{}</urlset>".format("".join(f"<loc>{BASE}{path}</loc>" for path in ("", "guide/install/")))
    write(site, {"sitemap.xml": f"<sitemapindex><loc>{BASE}en/sitemap.xml</loc></sitemapindex>"})
    write(site, {"en/sitemap.xml": of_language})
    write(site, {"de/index.html": page("Anfang", "<p>Der Hafen.</p>", address="de/", lang="de")})
    write(site, {"de/a/index.html": page("Kran", "<p>Der Kran.</p>", address="de/a/", lang="de")})
    write(site, {"de/sitemap.xml": f"<urlset><loc>{BASE}de/a/</loc><loc>{BASE}de/</loc></urlset>"})
    report = json.loads(build(site, "--json"))
    assert report["pages"] == 4 and not any("sitemap.xml" in reason for reason in report["reasons"])
    assert {"path": "api/index.html", "reason": "it is not in sitemap.xml"} in report["skipped"]


@pytest.mark.parametrize(
    ("meta", "key"),
    [
        ("mkdocs-1.6.1, mkdocs-material", "site_url in mkdocs.yml or properdocs.yml"),
        ("Hugo 0.168.0", "baseURL in hugo.toml"),
        ("", None),
    ],
)
def test_a_site_without_an_address_is_told_how_to_get_one(tmp_path: Path, meta: str, key: str | None) -> None:
    head = f'<meta name="generator" content="{meta}">'
    body = '<article class="md-content__inner">Text.</article>'
    site = write(tmp_path / "site", {"a.html": page("A", body, head=head), "b.html": page("B", body + "b", head=head)})
    said = program("build", "--site", site, *NONE).stderr
    told = [line for line in said.splitlines() if "--site-url" in line]
    assert len(told) == 1 and (key is None or f"set {key} and build the site again" in told[0])
    assert "--site-url" not in program("build", "--site", site, "--site-url", BASE, *NONE).stderr


def test_the_path_of_the_index_is_written_without_detours(tmp_path: Path) -> None:
    site = html_sites.site(tmp_path / "site")
    (tmp_path / "work").mkdir()
    said = build(site.parent / "work" / ".." / "site")
    assert f"Built {site / 'anvil/index.db'}" in said


def test_markdown_of_the_site_is_used_where_it_says_the_same(tmp_path: Path) -> None:
    site = html_sites.site(tmp_path / "site")
    same = "# Install\n\nRun `pip install harbour`.\n\n## On Windows\n\nUse the *crane*.\n"
    write(site, {"guide/install/index.md": same, "api/index.md": "# API\n\nAnother text.\n"})
    build(site)
    with anvil.open(index=site / "anvil/index.db") as opened:
        assert "*crane*" in "".join(each.content for each in opened.get_page("guide/install/index.html").chunks)
        assert "Moors a ship" in "".join(each.content for each in opened.get_page("api/index.html").chunks)


def test_messages_say_what_to_do(tmp_path: Path) -> None:
    assert "There is no folder" in complaint("build", "--site", tmp_path / "none", *NONE, code=2)
    site = html_sites.site(tmp_path / "site")
    assert f"Build it with 'anvil build --site {site}'" in complaint("search", "--site", site, "x", code=2)
    empty = write(tmp_path / "empty", {"a.txt": "x"})
    assert "has no HTML page. Build the site first" in complaint("build", "--site", empty, *NONE, code=2)
    shell = '<html><body><div id="app"></div><script src="app.js"></script></body></html>'
    app = write(tmp_path / "app", {"index.html": shell})
    assert "pre-rendering" in complaint("build", "--site", app, *NONE, code=2)
    write(tmp_path, {"anvil.toml": '[site]\nfolder = "empty"\ncontent = ["main[["]\n'})
    assert "'main[[' is not a valid CSS selector. Correct" in complaint("build", *NONE, cwd=tmp_path, code=2)


def test_a_site_that_changes_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    from anvil.settings.schema import SiteOptions
    from anvil.sites.site_folder import SiteFolder

    site = html_sites.site(tmp_path / "site")
    sizes = list(range(100, 0, -1))

    def change(stage: str, done: int, total: int) -> None:
        if sizes:
            (site / "new.html").write_text(page("New", f"<p>{'x ' * sizes.pop()}</p>"), encoding="utf-8")

    source = SiteFolder(site, SiteOptions(), progress=change)
    with pytest.raises(SourceError, match="changes while it is read"):
        source.scan()
    sizes.clear()
    assert len(source.scan().entries) == 4
    source.close()


@pytest.mark.parametrize("written", [0, 1])
def test_an_index_that_a_generator_deletes_while_it_is_written_is_written_again(tmp_path: Path, written: int) -> None:
    site = html_sites.site(tmp_path / "site")
    emptied: list[str] = []

    def empty(stage: str, done: int, total: int) -> None:
        if stage == "writing" and done == written and not emptied:
            emptied.append(stage)
            shutil.rmtree(site)
            html_sites.site(site)

    with anvil.open(site=site, provider="none", progress=empty) as opened:
        assert opened.index().pages == 3
    assert emptied and "is fresh" in program("check", "--site", site).stdout


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_links_and_odd_names(tmp_path: Path) -> None:
    secret = write(tmp_path / "secret", {"x.html": page("Secret", "<p>x</p>")})
    site = html_sites.site(tmp_path / "site")
    (site / "link.html").symlink_to(secret / "x.html")
    (site / "latest").symlink_to(site / "guide")
    write(site, {"..%2Fx.html": page("Up", "<p>Odd name.</p>"), "..x.html": page("Dots", "<p>Odd name too.</p>")})
    report = json.loads(build(site, "--json"))
    assert {each["path"]: each["reason"] for each in report["skipped"] if "link" in each["reason"]} == {
        "latest": "it is a link to another file or folder",
        "link.html": "it is a link to another file or folder",
    }
    assert report["pages"] == 5


def test_two_pages_with_one_address(tmp_path: Path) -> None:
    files = {"a.html": page("A", "<p>x</p>", address="a.html"), "a/index.html": page("A", "<p>x</p>", address="a.html")}
    report = json.loads(build(write(tmp_path / "site", files), "--json"))
    assert report["pages"] == 1 and report["skipped"][0]["reason"] == "its address is that of a.html"


def test_broken_encodings_scripts_and_absolute_links(tmp_path: Path) -> None:
    body = '<p>caf\xe9 <a href="file:///etc/passwd">x</a></p><script>var secret</script><style>.no{}</style>'
    site = write(
        tmp_path / "site", {"index.html": page("Start", body).replace('charset="utf-8"', "").encode("latin-1")}
    )
    build(site)
    with anvil.open(index=site / "anvil/index.db") as opened:
        text = "".join(each.content for each in opened.get_page("index.html").chunks)
    assert "caf\xe9" in text and "secret" not in text and ".no" not in text


def test_a_site_publishes_its_skill(tmp_path: Path) -> None:
    site, docs = html_sites.site(tmp_path / "site"), html_sites.docs(tmp_path / "docs")
    index = site / ".well-known/agent-skills/index.json"
    build(site, "--docs", docs)
    assert not index.exists()
    assert ".well-known/agent-skills/index.json" in build(site, "--docs", docs, "--skill")
    (entry,) = json.loads(index.read_text(encoding="utf-8"))["skills"]
    data = (index.parent / entry["url"]).read_bytes()
    assert entry["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
    text = data.decode()
    assert text.startswith(f"---\nname: {entry['name']}\ndescription: ")
    assert " pages of documentation" in text and f"anvil search --index {BASE}anvil/index.db" in text
    before = index.read_bytes(), index.stat().st_mtime_ns
    build(site, "--docs", docs, "--skill")
    assert (index.read_bytes(), index.stat().st_mtime_ns) == before
    assert (index.parent / entry["url"]).read_bytes() == data
    index.write_text("{}")
    said = complaint("build", "--site", site, *NONE, "--docs", docs, "--skill")
    assert "not in the form" in said and index.read_text() == "{}"
    assert "--site" in complaint("build", "--docs", docs, "--index", tmp_path / "x.db", *NONE, "--skill")


@pytest.mark.parametrize("bad", ["http://[", "///[", "https://[::1/"])
def test_an_address_that_cannot_be_read_costs_nothing_but_itself(tmp_path: Path, bad: str) -> None:
    head = f'<link rel="canonical" href="{bad}"><link rel="edit" href="{bad}">'
    site = write(
        tmp_path / "site",
        {
            "index.html": page("Start", "<p>The gangway is open.</p>", head=head),
            "a.html": page("Other", "<p>A lighthouse.</p>", address=f"{BASE}a.html"),
            "sitemap.xml": f"<urlset><url><loc>{bad}</loc></url><url><loc>{BASE}index.html</loc></url>"
            f"<url><loc>{BASE}a.html</loc></url></urlset>",
        },
    )
    build(site)
    found = printed("search", "gangway", "--index", site / "anvil/index.db", *NONE)
    assert found["results"][0]["metadata"]["file_path"] == "index.html"
    complaint("build", "--site", site, "--site-url", bad, *NONE, code=2).index("site.url must be an address")


def test_the_index_of_a_site_is_not_written_through_a_link(tmp_path: Path) -> None:
    site = write(tmp_path / "site", {"index.html": page("Start", "<p>text</p>")})
    (tmp_path / "outside").mkdir()
    (site / "anvil").symlink_to(tmp_path / "outside")
    assert "is a link that leads out of" in complaint("build", "--site", site, *NONE, code=2)
    assert not list((tmp_path / "outside").iterdir())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_a_pipe_among_the_pages_is_left_out_by_name(tmp_path: Path) -> None:
    site = write(tmp_path / "site", {"index.html": page("Start", "<p>text</p>")})
    os.mkfifo(site / "x.html")
    done = program("build", "--site", site, *NONE)
    assert "left out x.html: it is not a regular file" in done.stdout + done.stderr


def test_a_page_that_would_keep_the_parser_busy_is_left_out_by_name(tmp_path: Path) -> None:
    hostile = "<title>x</title><main>" + "<div></x>" * 60_000
    site = write(tmp_path / "site", {"index.html": page("Start", "<p>text</p>"), "evil.html": hostile})
    began = time.process_time()
    done = program("build", "--site", site, *NONE)
    assert time.process_time() - began < 10
    assert "left out evil.html: its HTML has more than 1,000 elements" in done.stdout + done.stderr
