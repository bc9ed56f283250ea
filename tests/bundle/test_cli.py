"""``anvil bundle``, from a documentation folder and from a built site."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import write
from tests.support import html_sites, repositories
from tests.support.in_process import complaint, printed, program

PAGES = {
    "index.md": "# Beacon\n\nSee [the guide](guide/use.md#lamp) and ![a picture](a.png).\n",
    "guide/use.md": "---\ndescription: How to use it\n---\n\n"
    "# Use\n\n[Start](../index.md), `[code](../index.md)`\n\n## Lamp\n\nIt shines.\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path / "docs", PAGES)
    (tmp_path / "mkdocs.yml").write_text("site_name: Beacon\n", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "beacon"\nversion = "2.1"\n', encoding="utf-8")
    return tmp_path


def tree(out: Path) -> dict[str, bytes]:
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


def test_a_documentation_folder(project: Path) -> None:
    done = program("bundle", "out", cwd=project)
    assert done.stdout.startswith("out has the documentation of beacon 2.1: 2 pages, ")
    assert "(3 files written, 0 unchanged)" in done.stdout
    assert "1 image is not copied, and nothing says where the site is" in done.stderr
    files = tree(project / "out")
    assert list(files) == ["AGENTS.md", "docs/anvil-bundle.json", "docs/guide/use.md", "docs/index.md"]
    assert files["docs/index.md"].decode() == (
        '---\ntitle: "Beacon"\n---\n\n# Beacon\n\nSee [the guide](guide/use.md#lamp) and a picture.\n'
    )
    assert files["docs/guide/use.md"].decode() == (
        '---\ntitle: "Use"\ndescription: "How to use it"\n---\n\n'
        "# Use\n\n[Start](../index.md), `[code](../index.md)`\n\n"
        "## Lamp\n\nIt shines.\n"
    )
    assert b"# beacon 2.1: documentation" in files["AGENTS.md"]
    again = program("bundle", "out", cwd=project)
    assert "(0 files written, 3 unchanged)" in again.stdout
    assert tree(project / "out") == files
    published = program("bundle", "other", "--site-url", "https://beacon.example/", cwd=project)
    assert "1 image is not copied, because the site has none at these paths" in published.stderr


def test_a_built_site(tmp_path: Path) -> None:
    home = html_sites.page("Beacon", '<p><a href="guide/">guide</a> <a href="a.pdf">file</a></p>', address="")
    images = (
        '<img alt="A lamp" src="../lamp.png"><img alt="B" src="data:image/png,x"><img alt="C" src="//x.test/c.png">'
    )
    body = f'<p>It shines. <a href="../">back</a> <a href="/docs/">top</a></p><p>{images}</p>'
    guide = html_sites.page("Guide", body, address="guide/")
    html_sites.write(tmp_path / "site", {"index.html": home, "guide/index.html": guide})
    options = ("--docs-version", "3", "--name", "beacon", "--json")
    report = printed("bundle", "out", "--site", "site", *options, cwd=tmp_path)
    assert (report["pages"], report["version"], report["name"]) == (2, "3", "beacon")
    files = tree(tmp_path / "out")
    assert b"[guide](guide/index.md) [file](https://example.org/docs/a.pdf)" in files["docs/index.md"]
    assert b"[back](../index.md) [top](../index.md)" in files["docs/guide/index.md"]
    assert b"![A lamp](https://example.org/docs/lamp.png) B ![C](https://x.test/c.png)" in files["docs/guide/index.md"]
    assert b'url: "https://example.org/docs/guide/"' in files["docs/guide/index.md"]
    assert b"The same pages are at https://example.org/docs/" in files["AGENTS.md"]


def test_images_of_a_site_without_an_address_stay_their_alternative_texts(tmp_path: Path) -> None:
    home = html_sites.page("Beacon", '<p><img alt="A lamp" src="lamp.png"> shines.</p><p><img src="b.png"></p>')
    html_sites.write(tmp_path / "site", {"index.html": home})
    done = program("bundle", "out", "--site", "site", "--name", "beacon", cwd=tmp_path)
    assert "2 images are not copied, and nothing says where the site is" in done.stderr
    assert "No package metadata says which version this is." in done.stderr
    assert not program("bundle", "out", "--site", "site", "--name", "beacon", "--quiet", cwd=tmp_path).stderr
    text = (tmp_path / "out/docs/index.md").read_text(encoding="utf-8")
    assert text.endswith("# Beacon\n\nA lamp shines.\n")
    assert "lead to the site" not in (tmp_path / "out/AGENTS.md").read_text(encoding="utf-8")


def test_the_same_commit_gives_the_same_bytes_and_times_are_those_of_commits(tmp_path: Path) -> None:
    bundles = []
    for name in ("one", "two"):
        root = tmp_path / name
        write(root / "docs", PAGES)
        repositories.run(root, "init", "-q", "-b", "main")
        repositories.run(root, "config", "user.name", "A")
        repositories.run(root, "config", "user.email", "a@example.org")
        repositories.commit(root, "pages", at=1_700_000_000)
        program("bundle", "out", "--docs-version", "1", "--name", "x", "--index", "--provider", "none", cwd=root)
        bundles.append(tree(root / "out"))
    assert bundles[0] == bundles[1]
    assert b'last_modified: "2023-11-14T22:13:20Z"' in bundles[0]["docs/index.md"]


def test_results_of_the_index_are_the_files_beside_it(project: Path) -> None:
    program("bundle", "out", "--index", "--provider", "none", cwd=project)
    found = printed("search", "--index", "docs.anvil.db", "shines", "--mode", "keyword", "--json", cwd=project / "out")
    hit = found["results"][0]["metadata"]
    assert hit["file_path"] == "docs/guide/use.md"
    lines = (project / "out/docs/guide/use.md").read_text(encoding="utf-8").splitlines()
    assert lines[hit["start_line"] - 1] == "## Lamp"


def test_pages_that_are_left_out_are_linked_where_they_are_published(project: Path) -> None:
    options = ("--exclude", "guide/**", "--config", "anvil.toml")
    (project / "docs/a.png").write_bytes(b"")
    (project / "anvil.toml").write_text('[site]\nurl = "https://x.test/"\n', encoding="utf-8")
    program("bundle", "out", *options, cwd=project)
    assert list(tree(project / "out")) == ["AGENTS.md", "docs/anvil-bundle.json", "docs/index.md"]
    text = (project / "out/docs/index.md").read_text(encoding="utf-8")
    assert "[the guide](https://x.test/guide/use/#lamp) and ![a picture](https://x.test/a.png)" in text
    assert "There is no page to bundle" in complaint("bundle", "out", "--exclude", "**", cwd=project)


def test_links_that_lead_nowhere_in_the_bundle_are_text(project: Path) -> None:
    links = "[One](guide/use.md), [![two](a.png)](gone.md 'see [x](guide/use.md)'), [it][d], "
    links += '<a href="gone/">h</a>, [w](https://w.test), [s](index.md), [b](index.md#beacon)'
    write(project / "docs", {"index.md": f"# Beacon\n\n{links}\n\n[d]: ../src/x.py\n"})
    done = program("bundle", "out", "--exclude", "guide/**", cwd=project)
    assert "4 links lead to nothing that is here or published: the text stays. Give --site-url" in done.stderr
    text = (project / "out/docs/index.md").read_text(encoding="utf-8")
    assert 'One, two, [it][d], <a href="">h</a>, [w](https://w.test), [s](index.md), [b](#beacon)\n\n[d]: <>\n' in text


def test_over_the_limit_nothing_is_written_and_the_largest_are_named(project: Path) -> None:
    write(project / "docs", {"api/large.md": "# L\n" + "words " * 2000})
    done = program("bundle", "out", "--max-size", "2kB", "--index", "--provider", "none", cwd=project, code=1)
    assert not (project / "out").exists()
    assert "Nothing was written: 3 pages, " in done.stderr
    assert "docs.anvil.db: leave out --index" in done.stderr
    assert "--exclude 'docs/api/**'" in done.stderr
    report = json.loads(program("bundle", "out", "--max-size", "100", "--json", cwd=project, code=1).stdout)
    assert any("--exclude 'docs/api/large.md'" in line for line in report["too_large"])
    program("bundle", "out", "--max-size", "2kB", "--exclude", "docs/api/**", cwd=project)
    write(project / "docs", {f"{number:02}.md": "# N\n" + "words " * 30 * number for number in range(15)})
    report = json.loads(program("bundle", "other", "--max-size", "100", "--json", cwd=project, code=1).stdout)
    named = [line.split("'")[1] for line in report["too_large"] if "--exclude" in line]
    assert named == ["docs/api/**", "docs/api/large.md", *(f"docs/{number:02}.md" for number in range(14, 5, -1))]
    assert "is not a size" in complaint("bundle", "out", "--max-size", "much", cwd=project)


def test_what_is_in_the_way_is_named(project: Path) -> None:
    write(project / "out", {"AGENTS.md": "mine"})
    done = program("bundle", "out", cwd=project, code=1)
    assert "out/AGENTS.md is kept as it is: somebody else put it there." in done.stderr
    assert "(2 files written, 0 unchanged)" in done.stdout
    assert program("bundle", "out", "--json", cwd=project, code=1)
    pages = {f"{number:02}.md": "# N\n" for number in range(12)}
    write(project / "docs", pages)
    write(project / "out/docs", pages)
    done = program("bundle", "out", cwd=project, code=1)
    assert done.stderr.count("is kept as it is") == 10 and "3 more files are kept as they are." in done.stderr
    for out in (".", "docs", "docs/package"):
        assert "among the documentation" in complaint("bundle", out, cwd=project)


def test_odd_pages(project: Path) -> None:
    odd = {"odd.md": "---\ntitle: [\n---\n\n# Odd\n", "odd.mdx": "# Other\n", "aux.md": "# Aux\n", "empty.md": ""}
    write(project / "docs", odd)
    done = program("bundle", "out", cwd=project)
    assert "odd.mdx is odd.mdx.md in the bundle, because odd.md is odd.md." in done.stderr
    assert "aux.md is aux-.md in the bundle, because some systems refuse its name." in done.stderr
    assert "odd.md has front matter that is not valid. It is in the text of the page." in done.stderr
    assert "title: [" in (project / "out/docs/odd.md").read_text(encoding="utf-8")
    assert len(list((project / "out/docs").rglob("*.md"))) == 6
