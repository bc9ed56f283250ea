"""The real MkDocs builds a site, and the site carries the index of what its readers see."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import anvil
from anvil.values import Changes
from tests.conftest import PAGES, linked, write
from tests.support import mkdocs_sites as sites
from tests.support.in_process import complaint, program
from tests.support.repositories import commit, run

pytest.importorskip("mkdocs")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return sites.make(tmp_path, PAGES)


def check(site: Path) -> Changes:
    with anvil.open(site / "docs", site / "site/anvil/index.db", "none") as opened:
        return opened.check()


def test_the_site_carries_its_index_and_a_manifest(site: Path) -> None:
    told = sites.build(site, "--strict")
    assert "4 pages" in told and "have no URL" not in told
    index = site / "site/anvil/index.db"
    with anvil.open(index=index, provider="none") as opened:
        found = opened.search("silence at night").results[0].metadata
        assert (found.file_path, found.url) == ("guides/alerts.md", f"{sites.SITE}guides/alerts/#silence-at-night")
    manifest = json.loads((index.parent / "index.json").read_text(encoding="utf-8"))
    assert (manifest["file"], manifest["size"], manifest["pages"]) == ("index.db", index.stat().st_size, 4)
    assert not check(site)
    assert (site / ".anvil/.gitignore").read_text() == "*\n"


def test_a_second_build_gives_the_same_bytes_and_writes_nothing_anew(site: Path) -> None:
    sites.build(site)
    kept, index = site / ".anvil/site-docs.db", site / "site/anvil/index.db"
    first, stamp = index.read_bytes(), kept.stat().st_mtime_ns
    sites.build(site)
    assert index.read_bytes() == first and kept.stat().st_mtime_ns == stamp
    kept.unlink()
    sites.build(site)
    assert index.read_bytes() == first
    assert sorted(path.name for path in index.parent.iterdir()) == ["index.db", "index.json"]


def test_a_build_without_changes_loads_no_model(site: Path) -> None:
    told = "import sys\ndef on_shutdown(**_):\n    print('LOADED', 'onnxruntime' in sys.modules, file=sys.stderr)\n"
    sites.make(site, {}, told, {"embedding": {"provider": "local"}})
    assert "LOADED True" in sites.build(site)
    assert "LOADED False" in sites.build(site)


def test_what_plugins_made_of_a_page_is_indexed(tmp_path: Path) -> None:
    hook = "def on_page_markdown(text, page, **_):\n    return text.replace('{{ version }}', '12.5 walrus')\n"
    site = sites.make(tmp_path, {"index.md": "# Home\n\nVersion {{ version }}.\n"}, hook)
    sites.build(site, "--strict")
    assert "Version 12.5 walrus." in sites.text(site, "index.md")
    assert not check(site)
    (site / "hook.py").write_text(hook.replace("walrus", "narwhal"), encoding="utf-8")
    sites.build(site, "--strict")  # the file is the same, what it says is not
    assert "12.5 narwhal" in sites.text(site, "index.md")


def test_a_page_that_plugins_made_has_no_file_and_is_never_stale(tmp_path: Path) -> None:
    hook = (
        "from mkdocs.structure.files import File\n"
        "def on_files(files, config):\n"
        "    files.append(File.generated(config, 'made/list.md', content='# List\\n\\nOf animals.\\n\\n## Zebra\\n'))\n"
    )
    site = sites.make(tmp_path, {"index.md": "# Home\n"}, hook)
    sites.build(site, "--strict")
    made = sites.documents(site)["made/list.md"]
    assert (made.blob_id, made.url, made.nav_path) == ("", f"{sites.SITE}made/list/", "Made > List")
    assert sites.anchors(site, "made/list.md") == [("List", "list"), ("List > Zebra", "zebra")]
    assert not check(site)
    with anvil.open(site / "docs", site / "site/anvil/index.db", "none") as opened:
        assert opened.search("zebra").results[0].metadata.file_path == "made/list.md"


def test_pages_that_a_plugin_collects_from_other_folders_have_no_file(tmp_path: Path) -> None:
    """As monorepo does it, which makes a temporary folder ``docs_dir``."""
    hook = (
        "import shutil, mkdocs.plugins\n"
        "@mkdocs.plugins.event_priority(50)\n"
        "def on_config(config):\n"
        "    folder = config.site_dir + '-merged'\n"
        "    shutil.copytree(config.docs_dir, folder)\n"
        "    shutil.copytree(config.docs_dir + '/../part', folder + '/part')\n"
        "    config.docs_dir = folder\n"
    )
    site = sites.make(tmp_path, {"index.md": "# Home\n", "../part/tides.md": "# Tides\n\nA walrus.\n"}, hook)
    sites.build(site)
    shutil.rmtree(site / "site-merged")
    assert not check(site)
    with anvil.open(site / "docs", site / "site/anvil/index.db", "none") as opened:
        assert [hit.metadata.file_path for hit in opened.search("walrus").results] == ["part/tides.md"]
        (site / "docs/index.md").write_text("# Home\n\nA narwhal.\n", encoding="utf-8")
        assert [hit.metadata.file_path for hit in opened.search("narwhal").results] == ["index.md"]


def test_what_the_site_leaves_out_is_not_new_but_a_new_page_is(tmp_path: Path) -> None:
    pages = {
        "index.md": "# Home\n",
        "drafts/a.md": "# Draft\n",
        "parts/b.md": "# Part\n",
        "hidden.md": "---\nsearch:\n  exclude: true\n---\n# Hidden\n",
        "internal/c.md": "# Internal\n",
        "loose.md": "# Loose\n",
        ".secret/d.md": "# Secret\n",
        "notes.rst": "Notes\n=====\n",
    }
    site = sites.make(
        tmp_path,
        pages,
        anvil={"exclude": ["internal/**"]},
        draft_docs="drafts/",
        exclude_docs="parts/",
        not_in_nav="loose.md",
    )
    sites.build(site, "--strict")
    found = sites.documents(site)
    assert list(found) == ["index.md", "loose.md"]
    assert (found["index.md"].nav_path, found["loose.md"].nav_path) == ("Home", None)
    assert not check(site)
    (site / "docs/new.md").write_text("# New\n", encoding="utf-8")
    (site / "docs/internal/c.md").write_text("# Internal, edited\n", encoding="utf-8")
    assert check(site) == Changes(added=("new.md",))
    stale = program("check", "--docs", "docs", "--index", "site/anvil/index.db", cwd=site, code=1).stdout
    assert "new.md" in stale and "internal" not in stale


def test_only_what_is_included_is_indexed(site: Path) -> None:
    sites.make(site, {}, anvil={"include": ["guides/**"]})
    sites.build(site, "--strict")
    assert list(sites.documents(site)) == ["guides/alerts.md", "guides/checks.md"]
    assert not check(site)


def test_a_server_beside_the_folder_reads_an_edited_page_from_its_file(tmp_path: Path) -> None:
    hook = "def on_page_markdown(text, page, **_):\n    return text.replace('{{ x }}', 'walrus')\n"
    pages = {"index.md": "# Home\n\n{{ x }}\n", "guide/a.md": "---\nowner: me\n---\n# A\n\n## B\n\nOld. {{ x }}\n"}
    site = sites.make(
        tmp_path,
        pages,
        hook,
        repo_url="https://example.com/r",
        edit_uri="edit/",
        nav=["index.md", {"Guides": [{"The guide": "guide/a.md"}]}],
    )
    sites.build(site, "--strict")
    before = sites.documents(site)["guide/a.md"]
    assert (before.title, before.nav_path) == ("The guide", "Guides > The guide")
    edit = "https://example.com/r/edit/guide/a.md"
    assert before.metadata == {"owner": "me", "edit_url": edit, "rendered": True}
    edited = "---\nowner: you\n---\n# A\n\n## B and more\n\nNew. {{ x }}\n"
    (site / "docs/guide/a.md").write_text(edited, encoding="utf-8")
    with anvil.open(site / "docs", site / "site/anvil/index.db", "none") as opened:
        answer = opened.search("new", mode="keyword")
        assert answer.freshness.refreshed == ("guide/a.md",)
        hit = answer.results[0]
        assert "New. {{ x }}" in hit.content
        assert hit.metadata.url == f"{sites.SITE}guide/a/#b-and-more"
        assert "walrus" in opened.get_page("index.md").chunks[0].content
        with opened.members[0].live.query() as copy:
            after = copy.reader.document("guide/a.md")
    assert after is not None
    assert (after.title, after.nav_path, after.url) == (before.title, before.nav_path, before.url)
    assert after.metadata == {"owner": "you", "edit_url": edit, "rendered": False}


def test_a_plain_build_replaces_a_sites_index_with_force_only(site: Path) -> None:
    index = site / ".anvil/site-docs.db"
    sites.build(site)
    before = index.read_bytes()
    arguments = ("build", "--docs", "docs", "--index", index, "--provider", "none")
    told = complaint(*arguments, cwd=site)
    assert "mkdocs build" in told and "--force" in told and index.read_bytes() == before
    program(*arguments, "--force", cwd=site)
    with sites.index(site, ".anvil/site-docs.db") as reader:
        assert reader.excluded_hashes() is None
        assert all(page.url is None and "rendered" not in page.metadata for page in reader.documents())
    sites.build(site)
    assert sites.documents(site)["index.md"].url == sites.SITE


def test_a_check_of_the_html_names_the_check_of_the_documents(site: Path) -> None:
    sites.build(site)
    right = "anvil check --docs docs --index site/anvil/index.db"
    for options in ((), ("--docs", "docs")):
        stale = program("check", "--site", "site", *options, cwd=site, code=1).stdout
        assert "The MkDocs plugin built this index" in stale and stale.endswith(f" run: {right}\n")
    assert "is fresh" in program(*right.split()[1:], cwd=site).stdout
    program("build", "-q", "--site", "site", cwd=site)
    assert "is fresh" in program("check", "--site", "site", cwd=site).stdout
    (site / "site/index.html").write_text("<html><body><h1>Other</h1><p>text</p></body></html>", encoding="utf-8")
    assert (
        "Build the site, and run: anvil build --site site"
        in program("check", "--site", "site", cwd=site, code=1).stdout
    )


def test_advice_for_a_sites_index_is_to_build_the_site(tmp_path: Path) -> None:
    site = sites.make(tmp_path, {**PAGES, "draft.md": "# Draft\n"}, anvil={"exclude": ["draft.md"]})
    sites.build(site)
    write(site / "docs", {"index.md": "# Edited\n"})
    stale = program("check", "--index", "site/anvil/index.db", cwd=site, code=1).stdout
    assert "1 page differs" in stale
    assert "with 'mkdocs build', or after another generator with 'anvil build --site FOLDER'" in stale
    pulled = program("pull", "site/anvil/index.db", "--to", "docs.db", cwd=site).stdout
    assert "1 page differs" in pulled and "mkdocs build" in pulled and "anvil build" not in pulled
    checked = program("ci", "check", "--index", "docs.db", "--summary", "summary.md", cwd=site, code=1).stdout
    assert "Run 'mkdocs build'" in checked and "Run `mkdocs build`" in (site / "summary.md").read_text()
    sites.build(site)
    assert "fresh" in program("check", "--index", "site/anvil/index.db", cwd=site).stdout
    program("pull", "site/anvil/index.db", "--to", "docs.db", cwd=site)
    write(site / "docs", {"draft.md": "# Still a draft\n"})
    assert "No page differs" in program("pull", "site/anvil/index.db", "--to", "docs.db", cwd=site).stdout


@pytest.mark.parametrize("directory_urls", [True, False])
def test_urls_and_anchors_are_the_sites_own(tmp_path: Path, directory_urls: bool) -> None:
    page = """\
# Title with *emphasis* & `code`

## Same

## Same

## Named {: #chosen }

!!! note

    ## Inside a note

```
## Not a heading
```

## <abbr title="x">HTML</abbr> &copy; 2024 {: .c #html }

<h2 id="raw">Raw</h2>

#### Ünïcode — naïve

- # In a list
"""
    site = sites.make(
        tmp_path,
        {"index.md": "# Home\n", "a b/ü.md": page},
        use_directory_urls=directory_urls,
        markdown_extensions=["attr_list", "admonition", {"toc": {"permalink": "#", "toc_depth": 2}}],
    )
    sites.build(site)
    url = f"{sites.SITE}a%20b/%C3%BC/" if directory_urls else f"{sites.SITE}a%20b/%C3%BC.html"
    assert sites.documents(site)["a b/ü.md"].url == url
    html = (site / ("site/a b/ü/index.html" if directory_urls else "site/a b/ü.html")).read_text(encoding="utf-8")
    found = sites.anchors(site, "a b/ü.md")
    assert [anchor for _, anchor in found] == [
        "title-with-emphasis-code",
        "same",
        "same_1",
        "chosen",
        "html",
        "unicode-naive",
    ]
    assert all(f'id="{anchor}"' in html for _, anchor in found)


def test_a_heading_that_shows_only_a_picture_keeps_its_anchor(tmp_path: Path) -> None:
    site = sites.make(tmp_path, {"index.md": "# ![](logo.svg)\n\nText.\n\n## Two\n\nMore.\n", "logo.svg": "<svg/>"})
    sites.build(site, "--strict")
    assert [anchor for _, anchor in sites.anchors(site, "index.md")] == ["_1", "two"]


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    site = sites.make(tmp_path, {"index.md": "---\na: 1\nb: 2024-01-02\n---\n\n\n# Home\n\nText.\n\n## Two\n\nMore.\n"})
    sites.build(site)
    with sites.index(site) as reader:
        document = reader.document("index.md")
        assert document is not None and document.metadata["b"] == "2024-01-02"
        assert [section.start_line for section in reader.sections(document.id)][1:] == [11]


def test_rendered_pages_are_indexed_as_their_html_says(tmp_path: Path) -> None:
    hook = (
        "def on_page_content(html, page, **_):\n"
        "    return html.replace('<p>HERE</p>', '<h2 id=\"mod.f\"><code>f(a_b)</code></h2><p>Walks LATER.</p>')\n"
        "def on_env(env, files, **_):\n"
        "    for file in files.documentation_pages():\n"
        "        file.page.content = file.page.content.replace('LATER', '<b>far</b>')\n"
    )
    pages = {"index.md": "# Home\n\nHERE\n", "api.md": "# API\n\nHERE\n\n```python\nx = 1\n```\n"}
    site = sites.make(tmp_path, pages, hook, {"rendered": ["api*"]}, markdown_extensions=["fenced_code"])
    sites.build(site, "--strict")
    assert sites.anchors(site, "api.md") == [("API", "api"), ("API > f(a_b)", "mod.f")]
    assert "Walks **far**." in sites.text(site, "api.md") and "```python\nx = 1\n```" in sites.text(site, "api.md")
    assert "HERE" in sites.text(site, "index.md")
    assert not check(site)


def test_snippets_are_part_of_the_page(tmp_path: Path) -> None:
    pytest.importorskip("pymdownx")
    site = sites.make(
        tmp_path,
        {"index.md": '# Home\n\n--8<-- "parts/a.md"\n\n## End\n', "parts/a.md": "## Of a snippet\n\nWalrus.\n"},
        exclude_docs="parts/",
        markdown_extensions=[{"pymdownx.snippets": {"base_path": ["docs"]}}],
    )
    sites.build(site, "--strict")
    assert "Walrus." in sites.text(site, "index.md")
    assert [anchor for _, anchor in sites.anchors(site, "index.md")] == ["home", "of-a-snippet", "end"]


def test_all_languages_of_a_site_are_in_one_index(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs_static_i18n")
    pages = {"index.md": "# Welcome\n", "index.fr.md": "# Bienvenue\n", "only.md": "# Only\n", "g/neu.de.md": "# Neu\n"}
    languages = [
        {"locale": "en", "default": True, "name": "English"},
        {"locale": "fr", "name": "Français"},
        {"locale": "de", "name": "Deutsch"},
    ]
    anvil_options = {"anvil": {"embedding": {"provider": "none"}}}
    i18n = {"i18n": {"docs_structure": "suffix", "languages": languages}}
    for plugins in ([anvil_options, i18n], [i18n, anvil_options]):
        site = sites.make(tmp_path, pages, plugins=plugins)
        assert sites.build(site).count("pages, ") == 1
        assert {path: page.url for path, page in sites.documents(site).items()} == {
            "index.md": sites.SITE,
            "index.fr.md": f"{sites.SITE}fr/",
            "only.md": f"{sites.SITE}only/",
            "g/neu.de.md": f"{sites.SITE}de/g/neu/",
        }
        assert not check(site)


def test_a_version_of_a_site_carries_its_own_index(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mike")
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "A Writer")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "writer@example.com")
    config = (site / "mkdocs.yml").read_text().replace("- search", "- search\n- mike")
    (site / "mkdocs.yml").write_text(config)
    run(site, "init", "-q", "-b", "main")
    (site / ".gitignore").write_text("site/\n.anvil/\n")
    commit(site, "first", at=1_700_000_000)
    sites.mike(site, "deploy", "1.0")
    (site / "docs/new.md").write_text("# New\n", encoding="utf-8")
    sites.mike(site, "deploy", "2.0")
    run(site, "checkout", "-q", "gh-pages")
    assert "new.md" not in sites.documents(site, "1.0/anvil/index.db")
    assert sites.documents(site, "2.0/anvil/index.db")["new.md"].url == f"{sites.SITE}2.0/new/"
    assert sorted(path.name for path in (site / ".anvil").iterdir()) == [".gitignore", "site-docs.db"]


def test_llms_txt_and_markdown_beside_the_pages(tmp_path: Path) -> None:
    pages = {
        "index.md": "---\ndescription: Where it\n  begins\n---\n# Home\n\nHello.\n",
        "guide/a.md": "No [heading](../out.md#out).\n",
        "guide/b.md": "# B [x]\n\nText.\n",
        "loose.md": "# Loose\n",
        "out.md": "# Out\n",
    }
    site = sites.make(
        tmp_path,
        pages,
        anvil={"llms_txt": True, "exclude": ["out.md"]},
        site_description="Watches servers.",
        not_in_nav="loose.md\nout.md",
        nav=[{"Start": "index.md"}, {"Guide": ["guide/b.md", "guide/a.md"]}],
    )
    sites.build(site, "--strict")

    def read(path: str) -> str:
        return (site / "site" / path).read_text(encoding="utf-8")

    assert (
        read("llms.txt")
        == f"""\
# Lighthouse

> Watches servers.

## Pages

- [Start]({sites.SITE}index.md): Where it begins

## Guide

- [B (x)]({sites.SITE}guide/b/index.md)
- [A]({sites.SITE}guide/a/index.md)

## Optional

- [Loose]({sites.SITE}loose/index.md)
"""
    )
    assert read("guide/a/index.md").startswith(f'---\ntitle: "A"\nurl: "{sites.SITE}guide/a/"\nlast_modified: "20')
    assert read("guide/a/index.md").endswith('Z"\n---\n\n# A\n\nNo [heading](../../out/index.html#out).\n')
    assert read("guide/a.md").endswith("No [heading](../out/index.html#out).\n")
    assert read("index.md").endswith("---\n\n# Home\n\nHello.\n")
    full = read("llms-full.txt")
    assert (
        full.index("Hello.")
        < full.index("# B [x]")
        < full.index("No [heading](out/index.html#out).")
        < full.index("# Loose")
    )
    assert "Out" not in full and not (site / "site/out/index.md").exists()


def test_only_what_readers_see_of_a_site_is_indexed(tmp_path: Path) -> None:
    pytest.importorskip("pymdownx")
    page = (
        "---\nowner: me\n---\n# Lamp\n\n<!-- zebra -->\n<style>\n.quagga {}\n</style>\n"
        "<svg><text>okapi</text></svg>\n\n"
        "The <span class='yak'>wick</span>, `<b>`, [knob] and PEP.\n\n[knob]: https://example.com/dromedary\n\n"
        "<div markdown>\n\n## Use\n\nTurn.\n\n</div>\n\n*[PEP]: Walrus\n"
    )
    extensions = ["abbr", "md_in_html", {"pymdownx.snippets": {"base_path": ["parts"], "auto_append": ["glossary.md"]}}]
    pages = {"index.md": page, "../parts/glossary.md": "*[wick]: Glossary of gnus\n"}
    site = sites.make(tmp_path, pages, anvil={"llms_txt": True}, markdown_extensions=extensions)
    assert "Indexed as their HTML" not in sites.build(site, "--strict")
    with sites.index(site) as reader:
        [document] = reader.documents()
        assert [each.start_line for each in reader.sections(document.id)] == [4, 18]
        assert not any(reader.hidden(reader.chunk_rows(document.id)).values())
    for said in (sites.text(site, "index.md"), (site / "site/llms-full.txt").read_text(encoding="utf-8")):
        assert "The wick, `<b>`, [knob] and PEP." in said and "## Use\n\nTurn." in said
        for word in ("zebra", "quagga", "okapi", "yak", "Walrus", "gnus", "div", "\x7f"):
            assert word not in said, word
    assert "dromedary" not in sites.text(site, "index.md")
    assert "[knob]: https://example.com/dromedary\n" in (site / "site/index.md").read_text(encoding="utf-8")
    assert not check(site)


def test_pages_that_exist_as_html_only_are_found_and_named(tmp_path: Path) -> None:
    hook = (
        "from mkdocs.structure.files import File\n"
        "def on_files(files, config):\n"
        "    for name, text in {'archive.md': '# 2024', 'made.md': '# Made\\n\\nWords.'}.items():\n"
        "        files.append(File.generated(config, name, content=text))\n"
        "def on_page_content(html, page, **_):\n"
        "    return html.replace('<p>::: package</p>', '<h2 id=\"f\">f(a)</h2><p>Walks. <img alt=Yak src=../y.png>')\n"
    )
    pages = {"index.md": "# Home\n\nHello.\n", "api.md": "# API\n\n::: package\n", "blank.md": "# Blank\n"}
    site = sites.make(tmp_path, pages, hook, {"llms_txt": True})
    assert "Indexed as HTML, because it has more text than the Markdown: api.md\n" in sites.build(site, "--strict")
    assert sites.anchors(site, "api.md") == [("API", "api"), ("API > f(a)", "f")]
    assert "Walks. Yak" in sites.text(site, "api.md")
    assert "Walks. ![Yak](y.png)" in (site / "site/api.md").read_text(encoding="utf-8")
    assert set(sites.documents(site)) == {"index.md", "api.md", "blank.md", "made.md"}
    sites.make(site, {}, hook, {"rendered": False})
    assert "Indexed as" not in sites.build(site)
    assert "::: package" in sites.text(site, "api.md")


def test_what_another_plugin_wrote_is_left_and_told(tmp_path: Path) -> None:
    hook = "def on_post_build(config):\n    open(config.site_dir + '/llms.txt', 'w').write('theirs')\n"
    site = sites.make(tmp_path, {"index.md": "# Home\n", "llms-full.txt": "static"}, hook, {"llms_txt": True})
    for _ in range(2):
        said = sites.build(site)
        assert "llms_txt: llms-full.txt, llms.txt: not a file of Anvil, so it stays as it is." in said
        assert (site / "site/llms.txt").read_text() == "theirs"
        assert (site / "site/llms-full.txt").read_text() == "static"
        assert (site / "site/index.md").read_text().endswith("---\n\n# Home\n")


# --- trouble --------------------------------------------------------------------------------------------------


def test_an_empty_site_has_an_empty_index(tmp_path: Path) -> None:
    site = sites.make(tmp_path, {}, site_url="")
    (site / "docs").mkdir(exist_ok=True)
    told = sites.build(site)
    assert "0 pages" in told and "Results have no URL: set site_url" in told
    assert sites.documents(site) == {}


@pytest.mark.parametrize("on_error", ["warn", "fail"])
def test_a_site_without_its_index_is_told(site: Path, on_error: str) -> None:
    sites.make(site, {}, anvil={"on_error": on_error, "index_path": "guides/alerts/index.html/index.db"})
    assert "The site has no index" in sites.build(site, code=0 if on_error == "warn" else 1)
    assert "The site has no index" in sites.build(site, "--strict", code=1)
    assert (site / "site/guides/alerts/index.html").is_file()


@pytest.mark.parametrize("on_error", ["warn", "fail"])
def test_what_nobody_foresaw_costs_the_index_and_not_the_site(tmp_path: Path, on_error: str) -> None:
    hook = "def on_post_page(output, page, **_):\n    page.meta = 5\n    return output\n"
    site = sites.make(tmp_path, {"index.md": "# Home\n\nWalrus.\n"}, hook, {"on_error": on_error})
    told = sites.build(site, code=0 if on_error == "warn" else 1)
    assert "The site has no index, because of an error in Anvil (AttributeError: " in told and "Traceback" not in told
    assert (site / "site/index.html").is_file() and not (site / "site/anvil").exists()


def test_a_kept_index_that_is_damaged_is_built_anew(site: Path) -> None:
    sites.build(site)
    first = (site / "site/anvil/index.db").read_bytes()
    (site / ".anvil/site-docs.db").write_bytes(first[:5000])
    assert "damaged" in sites.build(site, "--strict")
    assert (site / "site/anvil/index.db").read_bytes() == first


def test_an_index_folder_that_cannot_be_made_is_told(site: Path) -> None:
    (site / ".anvil").write_text("in the way")
    assert ".anvil" in sites.build(site)
    assert not (site / "site/anvil").exists()


def test_a_page_whose_html_cannot_be_converted_is_indexed_as_markdown(tmp_path: Path) -> None:
    hook = "def on_page_content(html, **_):\n    return '<div>' * 20_000 + html + '</div>' * 20_000\n"
    site = sites.make(tmp_path, {"index.md": "# Home\n\nWalrus.\n"}, hook, {"rendered": ["**"]})
    assert "index.md is indexed as Markdown" in sites.build(site)
    assert "Walrus." in sites.text(site, "index.md")


def test_a_page_whose_snippets_are_gone_is_indexed_without_them(tmp_path: Path) -> None:
    pytest.importorskip("pymdownx")
    hook = "import os\ndef on_page_content(html, **_):\n    os.remove('docs/../part.txt')\n"
    snippets = {"pymdownx.snippets": {"base_path": ["."], "check_paths": True}}
    pages = {"index.md": '# Home\n\n--8<-- "part.txt"\n\nWalrus.\n', "../part.txt": "Part.\n"}
    site = sites.make(tmp_path, pages, hook, markdown_extensions=[snippets])
    assert "index.md is indexed without its snippets" in sites.build(site)
    assert "Walrus." in sites.text(site, "index.md")


def test_a_site_folder_inside_the_documents_is_refused_by_mkdocs(site: Path) -> None:
    sites.make(site, {}, site_dir="docs/site")
    assert "should not be within the 'docs_dir'" in sites.build(site, code=1)


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ({"indexpath": "x.db"}, "Unrecognised configuration name: indexpath"),
        ({"index_path": "../index.db"}, "is not a file inside the site"),
        ({"index_path": "/index.db"}, "is not a file inside the site"),
        ({"index_path": "index.html"}, "is not a file inside the site"),
        ({"index_path": ""}, "is not a file inside the site"),
        ({"on_error": "ignore"}, "on_error"),
        ({"rendered": "api/**"}, "rendered"),
        ({"previous": [1]}, "a path or URL"),
        ({"chunking": {"max_chunk_size": 1}}, "chunking.max_chunk_size is 1"),
        ({"chunking": {"size": 1}}, "Unrecognised configuration name: size"),
        ({"embedding": {"provider": "magic"}}, "provider"),
    ],
)
def test_options_that_make_no_sense_are_named(site: Path, option: dict[str, object], told: str) -> None:
    sites.make(site, {}, anvil=option)
    assert told in sites.build(site, "--strict", code=1)


def test_a_database_that_the_site_offers_is_not_replaced(site: Path) -> None:
    (site / "docs/anvil").mkdir()
    (site / "docs/anvil/index.db").write_bytes(b"SQLite format 3\0" + bytes(84))
    sites.make(site, {})
    assert "is not an Anvil index, and would be lost" in sites.build(site, "--strict", code=1)
    assert (site / "site/anvil/index.db").stat().st_size == 100


def test_it_can_be_switched_off_by_the_environment(site: Path) -> None:
    text = (site / "mkdocs.yml").read_text(encoding="utf-8")
    text = text.replace("- anvil:\n", "- anvil:\n    enabled: !ENV [WITH_INDEX, true]\n")
    (site / "mkdocs.yml").write_text(text, encoding="utf-8")
    sites.build(site, "--strict", WITH_INDEX="false")
    assert not (site / "site/anvil").exists() and not (site / ".anvil").exists()
    sites.build(site, "--strict")
    assert (site / "site/anvil/index.db").is_file()


def test_settings_come_from_anvil_toml_then_the_environment_then_the_options(site: Path) -> None:
    (site / "anvil.toml").write_text("[chunking]\nmax_chunk_size = 500\nmin_chunk_size = 50\n", encoding="utf-8")
    sites.make(site, {}, anvil={"chunking": {"max_chunk_size": 700}})
    sites.build(site, ANVIL_CHUNKING_MAX_CHUNK_SIZE="600", ANVIL_CHUNKING_MIN_CHUNK_SIZE="60")
    with sites.index(site) as reader:
        chunking = json.loads(reader.meta()["chunking"])
    assert (chunking["max_chunk_size"], chunking["min_chunk_size"], chunking["slugs"]) == (700, 60, "mkdocs")


def test_nothing_is_written_through_links_of_a_checkout(tmp_path: Path) -> None:
    site = sites.make(tmp_path / "work", PAGES, anvil={"llms_txt": True})
    away = tmp_path / "away"
    away.write_text("mine")
    for name in ("anvil/index.db", "anvil/index.db.new", "anvil/index.json", "llms.txt"):
        linked(site / "site" / name, away)
    assert "would be lost" in sites.build(site, "--dirty")  # otherwise MkDocs empties the folder first
    assert away.read_text() == "mine"
    (site / "site/anvil/index.db").unlink()
    sites.build(site, "--dirty")
    assert away.read_text() == "mine"
    assert sorted(each.name for each in (site / "site/anvil").iterdir()) == ["index.db", "index.json", "markdown.json"]
    assert not any(each.is_symlink() for each in (site / "site/anvil").iterdir())
    assert (site / "site/llms.txt").is_symlink()  # it stays, and is named
    shutil.rmtree(site / ".anvil")
    linked(site / ".anvil", tmp_path)
    assert "leads out" in sites.build(site) and not (tmp_path / "site-docs.db").exists()


def test_a_folder_of_the_site_that_leads_out_of_it_gets_no_index(tmp_path: Path) -> None:
    site = sites.make(tmp_path / "work", PAGES)
    (tmp_path / "away").mkdir()
    (site / "site").mkdir()
    linked(site / "site/anvil", tmp_path / "away")
    assert "leads out of" in sites.build(site, "--dirty") and not any((tmp_path / "away").iterdir())


def test_questions_that_the_pages_do_not_answer_fail_a_strict_build(tmp_path: Path) -> None:
    options = {"embedding": {"provider": "none"}, "tests": "anvil-tests.toml"}
    site = sites.make(tmp_path, PAGES, "", options)
    question = '[[question]]\nask = "quiet window at night"\nwithin = 1\nexpect = '
    (site / "anvil-tests.toml").write_text(f'{question}"guides/alerts.md#silence-at-night"\n', encoding="utf-8")
    assert "1 of 1 question is answered as expected" in sites.build(site, "--strict")
    (site / "anvil-tests.toml").write_text(f'{question}"install.md"\n', encoding="utf-8")
    told = sites.build(site, "--strict", code=1)
    assert "'quiet window at night' expects install.md: " in told and "guides/alerts.md comes first." in told
    assert "0 of 1 question is answered as expected" in sites.build(site)
    (site / "anvil-tests.toml").write_text(f'{question}"gone.md"\n', encoding="utf-8")
    assert "The questions are not asked: " in sites.build(site, "--strict", code=1)
    (site / "anvil-tests.toml").unlink()
    sites.build(site, code=1)


def test_the_site_publishes_a_skill(tmp_path: Path) -> None:
    site = sites.make(
        tmp_path, PAGES, anvil={"skill": True, "llms_txt": True, "mcp_url": "https://mcp.example.org/mcp"}
    )
    sites.build(site, "--strict")
    folder = site / "site/.well-known/agent-skills"
    (entry,) = json.loads((folder / "index.json").read_text(encoding="utf-8"))["skills"]
    text = (folder / entry["url"]).read_text(encoding="utf-8")
    assert " pages of documentation" in text and "<https://mcp.example.org/mcp>" in text and "llms-full.txt" in text
    assert f"anvil search --index {sites.SITE}anvil/index.db" in text
    sites.build(site, "--strict")
    assert (folder / entry["url"]).read_text(encoding="utf-8") == text
