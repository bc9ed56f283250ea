"""``anvil build --site --markdown`` in whole: the files, the second build, and the same from Sphinx and the action."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import anvil
from tests.conftest import write as write_files
from tests.e2e.site.test_sphinx import PAGES as SPHINX_PAGES
from tests.e2e.site.test_sphinx import build as sphinx_build
from tests.support import html_sites
from tests.support.html_sites import BASE, write
from tests.support.in_process import complaint, program

NONE = ("--provider", "none")


def build(site: Path, *options: str | Path) -> tuple[str, str]:
    done = program("build", "--site", site, *NONE, *options)
    return done.stdout, done.stderr


def tree(site: Path) -> dict[str, str]:
    """Path -> digest of all files."""
    return {
        file.relative_to(site).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in site.rglob("*")
        if file.is_file()
    }


def test_each_page_is_there_as_markdown_and_a_second_build_changes_nothing(tmp_path: Path) -> None:
    site = html_sites.site(tmp_path / "site")
    write(site, {"guide/more.html": html_sites.page("More", '<p><a href="install/#on-windows">On</a></p>')})
    before = tree(site)
    said, _ = build(site, "--markdown")
    assert "Markdown of 4 pages in 9 files: 9 written." in said
    assert (site / "guide/install.md").read_text(encoding="utf-8") == (
        f'---\ntitle: "Install"\nurl: "{BASE}guide/install/"\nlanguage: "en"\n---\n\n'
        "# Install\n\nRun `pip install harbour`.\n\n## On Windows\n\nUse the crane.\n"
    )
    assert "[On](install/index.md#on-windows)" in (site / "guide/more.md").read_text(encoding="utf-8")
    llms = (site / "llms.txt").read_text(encoding="utf-8")
    assert f"- [Install]({BASE}guide/install/index.md)\n" in llms
    after = tree(site)
    assert {path: after[path] for path in before} == before
    for _ in range(2):
        said, _ = build(site, "--markdown")
        assert "is up to date" in said and "Markdown of 4 pages in 9 files: unchanged." in said
    assert tree(site) == after
    again = html_sites.site(tmp_path / "again")
    write(again, {"guide/more.html": html_sites.page("More", '<p><a href="install/#on-windows">On</a></p>')})
    build(again, "--markdown")
    assert {path: digest for path, digest in tree(again).items() if path.endswith((".md", "json"))} == {
        path: digest for path, digest in after.items() if path.endswith((".md", "json"))
    }


def test_a_link_to_the_markdown_leaves_the_index_as_it_is(tmp_path: Path) -> None:
    site = html_sites.site(tmp_path / "site")
    build(site, "--markdown")
    before = tree(site)
    said, _ = build(site, "--link-markdown")
    assert "is up to date" in said
    linked = (site / "guide/install/index.html").read_text(encoding="utf-8")
    assert '<link rel="alternate" type="text/markdown" href="index.md" data-anvil></head>' in linked
    after = tree(site)
    assert {path for path in after if after[path] != before[path]} == {
        "index.html",
        "guide/install/index.html",
        "api/index.html",
        "anvil/markdown.json",
    }
    said, _ = build(site, "--link-markdown")
    assert "is up to date" in said and "unchanged" in said
    assert tree(site) == after
    with anvil.open(site=site, provider="none") as opened:
        assert "crane" in opened.search("crane").results[0].content
    build(site, "--markdown")
    assert tree(site) == before


def test_a_build_from_the_pages_reads_no_markdown_that_it_wrote(tmp_path: Path) -> None:
    site = html_sites.site(tmp_path / "site")
    build(site, "--markdown")
    first = (site / "anvil/index.db").read_bytes()
    os.utime(site / "api/index.html", ns=(10**18, 10**18))  # it is read again
    build(site, "--markdown")
    assert (site / "anvil/index.db").read_bytes() == first
    (site / "anvil/index.db").unlink()
    build(site, "--markdown", "--force")
    with anvil.open(index=site / "anvil/index.db", provider="none") as opened:
        text = "".join(chunk.content for chunk in opened.get_page("api/index.html").chunks)
    assert text == "# API\n\n## dock\n\nMoors a ship.\n"


def test_markdown_of_a_generator_stays_and_is_still_read(tmp_path: Path) -> None:
    site = html_sites.site(tmp_path / "site")
    same = "# Install\n\nRun `pip install harbour`.\n\n## On Windows\n\nUse the *crane*.\n"
    write(site, {"guide/install/index.md": same})
    _, told = build(site, "--markdown")
    assert "guide/install/index.md: not a file of Anvil, so it stays as it is." in told
    assert (site / "guide/install/index.md").read_text(encoding="utf-8") == same
    assert "*crane*" in (site / "guide/install.md").read_text(encoding="utf-8")
    said, _ = build(site, "--markdown")
    assert "is up to date" in said and "unchanged" in said


def test_markdown_of_a_site_with_front_matter_that_yaml_does_not_take(tmp_path: Path) -> None:
    site = html_sites.site(tmp_path / "site")
    odd = "---\ntitle: [\n---\n\n# Install\n\nRun `pip install harbour`.\n"
    write(site, {"guide/install/index.md": odd})
    said, told = build(site, "--markdown")
    assert "guide/install/index.md: not a file of Anvil, so it stays as it is." in told
    assert "Markdown of 3 pages in 6 files: 6 written." in said
    assert (site / "guide/install/index.md").read_text(encoding="utf-8") == odd
    assert "title: [" not in (site / "guide/install.md").read_text(encoding="utf-8")


def test_images_are_kept_in_the_markdown_and_not_in_the_index(tmp_path: Path) -> None:
    site = html_sites.site(tmp_path / "site")
    images = (
        '<p>The <img alt="A lamp" src="../lamp.png"> and <img alt="sign" src="/docs/sign.svg"> shine.</p>'
        '<p><img src="https://x.test/b.png"></p><p><img alt="Dot" src="data:image/png;base64,AA"><img alt="Far"></p>'
    )
    write(site, {"guide/index.html": html_sites.page("Guide", images, address="guide/")})
    build(site, "--markdown")
    for path, folder in (("guide/index.md", "../"), ("guide.md", "")):
        text = (site / path).read_text(encoding="utf-8")
        assert text.endswith(
            f"# Guide\n\nThe ![A lamp]({folder}lamp.png) and ![sign](/docs/sign.svg) shine.\n\n"
            "![](https://x.test/b.png)\n\nDot Far\n"
        )
    assert "![A lamp](lamp.png)" in (site / "llms-full.txt").read_text(encoding="utf-8")
    with anvil.open(index=site / "anvil/index.db", provider="none") as opened:
        text = "".join(chunk.content for chunk in opened.get_page("guide/index.html").chunks)
    assert text == "# Guide\n\nThe A lamp and sign shine.\n\nDot Far\n"
    said, _ = build(site, "--markdown")
    assert "is up to date" in said and "unchanged" in said
    moved = images.replace("../lamp.png", "../lamp-2.png")
    write(site, {"guide/index.html": html_sites.page("Guide", moved, address="guide/")})
    said, _ = build(site, "--markdown")
    assert "is up to date" in said and "3 written" in said
    assert "![A lamp](lamp-2.png)" in (site / "guide.md").read_text(encoding="utf-8")


def test_a_page_that_the_generator_removed_loses_its_markdown(tmp_path: Path) -> None:
    site = html_sites.site(tmp_path / "site")
    build(site, "--markdown")
    (site / "api/index.html").unlink()
    said, _ = build(site, "--markdown")
    assert "Markdown of 2 pages in 5 files: 2 written, 2 removed." in said  # the two lists
    assert not (site / "api").exists() and not (site / "api.md").exists()


def test_the_configuration_asks_for_it(tmp_path: Path) -> None:
    html_sites.site(tmp_path / "site")
    write_files(tmp_path, {"anvil.toml": '[site]\nfolder = "site"\nmarkdown = true\n', "docs/x.md": "# X\n"})
    done = program("build", *NONE, cwd=tmp_path)
    assert "Markdown of 3 pages" in done.stdout
    assert "data-anvil" not in (tmp_path / "site/index.html").read_text(encoding="utf-8")
    write_files(tmp_path, {"anvil.toml": '[site]\nfolder = "site"\nlink_markdown = true\n'})
    assert "Markdown of 3 pages" in program("build", *NONE, cwd=tmp_path).stdout
    assert "data-anvil" in (tmp_path / "site/index.html").read_text(encoding="utf-8")
    with anvil.open(config=tmp_path / "anvil.toml", provider="none") as opened:
        opened.publish_markdown(link_html=False)
        assert "data-anvil" not in (tmp_path / "site/index.html").read_text(encoding="utf-8")
        opened.publish_markdown()
    assert "data-anvil" in (tmp_path / "site/index.html").read_text(encoding="utf-8")


def test_messages_say_what_to_do(tmp_path: Path) -> None:
    write_files(tmp_path / "docs", {"x.md": "# X\n"})
    index = tmp_path / "x.db"
    assert "--site" in complaint("build", "--docs", tmp_path / "docs", "--index", index, *NONE, "--markdown")
    site = html_sites.site(tmp_path / "site")
    assert "--shard" in complaint("build", "--site", site, *NONE, "--markdown", "--shard", "1/2")


def test_versions_and_descriptions(tmp_path: Path) -> None:
    def page(title: str, about: str) -> str:
        head = f'<meta name="description" content="{about}">'
        return html_sites.page(title, f"<p>Words of {title}.</p>", address=f"{title}/", head=head)

    site = tmp_path / "site"
    write(site, {"index.html": html_sites.page("Home", "<p>Words.</p>", address="")})
    write(site, {f"{name}/index.html": page(name, "About the whole project") for name in ("a", "b")})
    write(site, {"c/index.html": page("c", "About c alone")})
    build(site, "--markdown", "--docs-version", "1.2.0")
    assert 'version: "1.2.0"\n' in (site / "a.md").read_text(encoding="utf-8")
    assert "description" not in (site / "a.md").read_text(encoding="utf-8")
    assert 'description: "About c alone"\n' in (site / "c.md").read_text(encoding="utf-8")
    assert f"- [c]({BASE}c/index.md): About c alone\n" in (site / "llms.txt").read_text(encoding="utf-8")


def test_the_lists_have_the_newest_version_of_each_page(tmp_path: Path) -> None:
    site = tmp_path / "site"
    for version, names in (("v1.9", "abcd"), ("v1.10", "abc")):
        for name in names:
            address = f"docs/{version}/{name}/"
            write(site, {f"{address}index.html": html_sites.page(name, f"<p>{name}, {version}.</p>", address=address)})
    said, _ = build(site, "--markdown")
    assert "Markdown of 7 pages in 16 files" in said and (site / "docs/v1.9/a.md").is_file()
    listed = [line for line in (site / "llms.txt").read_text(encoding="utf-8").splitlines() if line.startswith("- ")]
    assert [line.rpartition("/docs/")[2] for line in listed] == [
        *(f"v1.10/{name}/index.md)" for name in "abc"),
        "v1.9/d/index.md)",
    ]
    full = (site / "llms-full.txt").read_text(encoding="utf-8")
    assert "a, v1.10." in full and "d, v1.9." in full and "a, v1.9." not in full


def test_sphinx_writes_it(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    write_files(docs, SPHINX_PAGES)
    code, said = sphinx_build(docs, anvil_markdown=True, version="1.2")
    assert code == 0 and "anvil: Markdown of 2 pages in 5 files: 5 written." in said
    text = (tmp_path / "html/lamp.html.md").read_text(encoding="utf-8")
    assert text.startswith('---\ntitle: "Lamp"\nurl: "https://docs.example.com/lamp.html"\nversion: "1.2"\n')
    assert (tmp_path / "html/lamp.md").read_text(encoding="utf-8") == text
    assert (tmp_path / "html/llms.txt").read_text(encoding="utf-8").startswith("# Handbook\n")
    assert "data-anvil" not in (tmp_path / "html/lamp.html").read_text(encoding="utf-8")
    _, said = sphinx_build(docs, anvil_link_markdown=True, version="1.2")
    assert "anvil: 2 pages, unchanged" in said
    assert 'href="lamp.md" data-anvil' in (tmp_path / "html/lamp.html").read_text(encoding="utf-8")
