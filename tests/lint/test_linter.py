"""The rules of the linter, over folders of real files."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

import anvil
from anvil.documents.working_tree import WorkingTree
from anvil.errors import ConfigError, SourceError
from anvil.lint.linted_page import LintPage
from anvil.lint.linter import LintReport
from anvil.lint.settings import LintLevels, LintOptions
from anvil.settings.schema import Config, SiteOptions, Slugs, SourceOptions
from tests.support.repositories import commit, isolated, root, run, write

__all__ = ["isolated", "root"]

MKDOCS = "site_name: Site\nmarkdown_extensions: [attr_list, admonition, pymdownx.snippets]\n"


def write_pages(folder: Path, pages: Mapping[str, str]) -> None:
    for path, text in pages.items():
        write(folder / "docs" / path, text)


def linted(
    folder: Path,
    pages: Mapping[str, str],
    *rules: str,
    others: Mapping[str, str] | None = None,
    config: Config | None = None,
) -> LintReport:
    """The report on ``pages`` in the folder ``docs`` below ``folder``, with ``others`` from ``folder`` on."""
    write_pages(folder, pages)
    for path, text in (others or {}).items():
        write(folder / path, text)
    with anvil.open(folder / "docs", config=config or Config()) as opened:
        return opened.lint(rules=rules or None)


def messages(report: LintReport) -> list[str]:
    return [f"{found.path}:{found.line} {found.message}" for found in report.findings]


def places(report: LintReport) -> list[str]:
    return [f"{found.path}:{found.line}" for found in report.findings]


# --- links on MkDocs -----------------------------------------------------------------------------------------------


def test_a_link_to_a_page_that_does_not_exist_names_the_page_with_that_name(tmp_path: Path) -> None:
    pages = {"index.md": "# A\n\nSee [b](b.md) and [c](c.md#x).\n", "guide/b.md": "# B\n", "c.md": "# X\n"}
    report = linted(tmp_path, pages, "broken-link", others={"mkdocs.yml": MKDOCS})
    assert messages(report) == [
        "index.md:3 Broken link 'b.md': there is no file b.md. Did you mean guide/b.md?",
    ]
    assert report.generator == "mkdocs" and report.pages == 3


def test_links_of_every_form_are_resolved(tmp_path: Path) -> None:
    page = """\
---
title: A
---
# A

[1](gone1.md) ![alt](gone2.png) [3][ref] <a href="gone4.md">x</a> <img src="gone5.png" alt="">
`[code](gone.md)`

[ref]: gone3.md

```
[code](gone.md)
```

<!-- [comment](gone.md) -->

!!! note
    Inside [6](gone6.md)

[out](https://example.org/gone.md) [mail](mailto:a@b.c) [tpl]({{ url }}/gone.md) [top](#) [ok](A.md)
"""
    report = linted(tmp_path, {"A.md": page}, "broken-link", others={"mkdocs.yml": MKDOCS})
    assert places(report) == ["A.md:6"] * 4 + ["A.md:9", "A.md:18"]


def test_mkdocs_links_may_be_addresses_of_pages(tmp_path: Path) -> None:
    pages = {
        "index.md": "[a](guide/install/) [b](/guide/install/) [c](guide/)",
        "guide/install.md": "[up](../../) [self](../install/#x) ![i](../../img/a.png) [img](../img/a.png)\n\n# X\n",
        "guide/index.md": "[broken](../nothing/)",
        "img/a.png": "",
    }
    report = linted(tmp_path, pages, "broken-link", "broken-anchor", others={"mkdocs.yml": MKDOCS})
    assert messages(report) == ["guide/index.md:1 Broken link '../nothing/': there is no page or file nothing."]


def test_a_file_outside_of_the_folder_is_not_on_an_mkdocs_site_but_on_github(tmp_path: Path) -> None:
    pages, others = {"index.md": "[license](../LICENSE)\n"}, {"LICENSE": "x", "mkdocs.yml": MKDOCS}
    run(tmp_path, "init", "-q")
    (report,) = linted(tmp_path, pages, "broken-link", others=others).findings
    assert "LICENSE is outside of the documentation folder" in report.message
    (tmp_path / "mkdocs.yml").unlink()
    assert not linted(tmp_path, pages, "broken-link").findings


@pytest.mark.parametrize("extra", ["plugins: [gen-files]\n", "plugins: [nobody-knows-this]\n", "hooks: [hook.py]\n"])
def test_where_pages_may_be_generated_a_missing_page_is_no_finding(tmp_path: Path, extra: str) -> None:
    assert not linted(
        tmp_path, {"index.md": "[a](made.md)"}, "broken-link", others={"mkdocs.yml": MKDOCS + extra}
    ).findings


def test_capital_letters_count_on_every_system(tmp_path: Path) -> None:
    report = linted(tmp_path, {"index.md": "[a](Guide/Install.md)", "guide/install.md": "# A"}, "broken-link")
    assert "There is guide/install.md: capital letters differ" in report.findings[0].message


def test_percent_encoded_and_bracketed_targets(tmp_path: Path) -> None:
    pages = {"a b.md": "# Größe\n", "index.md": "[1](a%20b.md#gr%C3%B6%C3%9Fe) [2](<a b.md>) [3](a%20c.md)"}
    assert places(linted(tmp_path, pages, "broken-link", "broken-anchor")) == ["index.md:1"]


# --- anchors -------------------------------------------------------------------------------------------------------


def test_a_broken_anchor_names_the_closest_or_the_page_that_has_it(tmp_path: Path) -> None:
    pages = {"a.md": "# Install it\n\n[x](b.md#instal-it) [y](b.md#far) [z](#install-it)", "b.md": "# Install it\n"}
    report = linted(tmp_path, pages | {"c.md": "# Far\n"}, "broken-anchor")
    assert messages(report) == [
        "a.md:3 b.md has no anchor '#far'. c.md has it.",
        "a.md:3 b.md has no anchor '#instal-it'. Did you mean '#install-it'?",
    ]


@pytest.mark.parametrize(
    ("anchor", "text"),
    [
        ("own", "## Title {#own}\n"),
        ("own", "## Title { #own .class }\n"),
        ("own", '<a id="own"></a>\n'),
        ("own", '<a name="own"></a>\n'),
        ("own", '<div\n  class="x"\n  id="own">\n'),
        ("own", "Text\n{: #own }\n"),
        ("own", "[](){#own}\n"),
        ("own", "(own)=\n"),
        ("in-a-note", "!!! note\n    ## In a note\n"),
        ("in-a-quote", "> ## In a quote\n"),
        ("in-a-list", "- ## In a list\n"),
        ("in-html", "<h2>In HTML</h2>\n"),
        ("set-ext", "Set ext\n-------\n"),
        ("same-1", "# Same\n\n# Same\n"),
        ("same_1", "# Same\n\n# Same\n"),
        ("code", "# `code`\n"),
        (":~:text=word", "word\n"),
        ("__tabbed_1_2", "x\n"),
    ],
)
def test_anchors_that_pages_have(tmp_path: Path, anchor: str, text: str) -> None:
    others = {"mkdocs.yml": MKDOCS} if anchor == "same_1" else {}
    pages = {"a.md": f"[x](b.md#{anchor})", "b.md": f"# First\n\n{text}\ntext\n"}
    assert not linted(tmp_path, pages, "broken-anchor", others=others).findings


def test_a_message_is_one_line_whatever_a_link_says(tmp_path: Path) -> None:
    text = "# A\n\n[1](#x%0Ab.md:1%0D:) [2](gone%0Ac.md)\n"
    found = linted(tmp_path, {"a.md": text}).findings
    assert {"broken-anchor", "broken-link"} <= {finding.rule for finding in found}
    assert all(len(finding.message.splitlines()) == 1 for finding in found)


def test_an_id_in_code_or_a_comment_is_no_anchor(tmp_path: Path) -> None:
    text = '[1](#a) [2](#b)\n\n```html\n<p id="a">\n```\n\n<!-- <p id="b"> -->\n'
    assert len(linted(tmp_path, {"a.md": text}, "broken-anchor").findings) == 2


def test_a_heading_with_an_id_of_its_own_loses_the_usual_anchor(tmp_path: Path) -> None:
    report = linted(tmp_path, {"a.md": "# Title {#own}\n\n[1](#title) [2](#own)\n"}, "broken-anchor")
    assert [found.message for found in report.findings] == ["This page has no anchor '#title'."]


def test_pages_with_identifiers_of_mkdocstrings_have_anchors_that_only_a_build_knows(tmp_path: Path) -> None:
    config = MKDOCS + "plugins: [mkdocstrings]\n"
    pages = {"a.md": "[x](b.md#pkg.Thing)\n[y][pkg.Thing]", "b.md": "::: pkg.Thing\n"}
    assert not linted(tmp_path, pages, "broken-anchor", "undefined-reference", others={"mkdocs.yml": config}).findings


# --- other rules ---------------------------------------------------------------------------------------------------


def test_a_label_that_is_not_defined(tmp_path: Path) -> None:
    page = "[text][gone] [ok][Here] [gone][] a[0][1] [^1][2] \\[x][y]\n\n[here]: index.md\n"
    assert messages(linted(tmp_path, {"index.md": page}, "undefined-reference")) == [
        "index.md:1 The link label '[gone]' is not defined in this page."
    ]


def test_an_orphan_is_linked_by_no_page_and_shown_by_no_navigation(tmp_path: Path) -> None:
    pages = {
        "index.md": "[a](a.md) [self](index.md)",
        "a.md": "",
        "b.md": "[itself](b.md)",
        "c.md": "",
        "d.md": "---\ndraft: true\n---\n",
        "e.md": "",
    }
    others = {
        "mkdocs.yml": MKDOCS + "nav:\n  - Home: index.md\n  - More:\n      - c.md\n",
        "README.md": "[e](docs/e.md)",
    }
    run(tmp_path, "init", "-q")
    report = linted(tmp_path, pages, "orphan-page", others=others)
    assert messages(report) == ["b.md:1 No page links to this page, and the navigation does not show it."]
    (tmp_path / "mkdocs.yml").write_text(MKDOCS)  # without a nav, MkDocs shows all pages
    assert not linted(tmp_path, pages, "orphan-page").findings


def test_pages_that_github_itself_shows_are_no_orphans(tmp_path: Path) -> None:
    pages = {"README.md": "x", "CONTRIBUTING.md": "x", "docs/SECURITY.md": "x", "LICENSE.md": "x", "other.md": "x"}
    assert places(linted(tmp_path, pages, "orphan-page")) == ["other.md:1"]
    nav = {"mkdocs.yml": MKDOCS + "nav: [README.md, docs/SECURITY.md, LICENSE.md]\n"}
    assert places(linted(tmp_path, pages, "orphan-page", others=nav)) == ["CONTRIBUTING.md:1", "other.md:1"]


def test_pages_that_are_found_by_their_name_are_no_orphans(tmp_path: Path) -> None:
    pages = {"README.md": "x", "README.zh-CN.md": "x", "AGENTS.md": "x", "CHANGELOG.md": "x", "skills/a/SKILL.md": "x"}
    assert places(linted(tmp_path, {**pages, "notes.md": "x"}, "orphan-page")) == ["notes.md:1"]


def test_a_link_to_a_folder_without_a_readme_is_one_to_each_page_that_github_lists(tmp_path: Path) -> None:
    pages = {
        "index.md": "[keys](./keys) [dev](dev/) [other site](https://example.org/more/)",
        "keys/en.md": "x",
        "keys/ja.md": "x",
        "keys/old/de.md": "x",
        "dev/README.md": "x",
        "dev/unlinked.md": "x",
        "more/a.md": "x",
    }
    assert places(linted(tmp_path, pages, "orphan-page")) == ["dev/unlinked.md:1", "keys/old/de.md:1", "more/a.md:1"]
    above = {"README.md": "[more](docs/more)"}
    run(tmp_path, "init", "-q")
    report = linted(tmp_path, pages, "orphan-page", others=above)
    assert places(report) == ["dev/unlinked.md:1", "keys/old/de.md:1"]


def test_repeated_headings_empty_sections_long_pages(tmp_path: Path) -> None:
    text = "# A\n\n## Example\n\nx\n\n## Example\n\n## Last\n\n<!-- anything may be put here -->\n\n## End\n\n---\n"
    config, others = Config(tables={"lint": LintOptions(max_page_chars=20)}), {"mkdocs.yml": MKDOCS}
    rules = ("repeated-heading", "empty-section", "long-page")
    report = linted(tmp_path, {"a.md": text}, *rules, config=config, others=others)
    assert messages(report) == [
        "a.md:1 The page has 88 characters; the limit is 20. Split it.",
        "a.md:7 The section 'Example' is empty.",
        "a.md:7 2 headings of this page have the anchor of 'Example' (the first is at line 3). This one gets "
        "'#example_1', which changes with headings above it.",
        "a.md:13 The section 'End' is empty.",
    ]


def test_fences_and_images(tmp_path: Path) -> None:
    text = '![](a.png) ![ok](a.png) <img src="a.png"> <img src="a.png" alt="">\n\n```\nx\n```\n\n- ~~~text\n  x\n'
    report = linted(tmp_path, {"a.md": text}, "unclosed-fence", "fence-without-language", "image-without-alt")
    assert [(found.line, found.rule) for found in report.findings] == [
        (1, "image-without-alt"),
        (3, "fence-without-language"),
        (7, "unclosed-fence"),
    ]
    ends = "<pre><code>```mermaid\n\ngraph\n```</code></pre>\n", "export const a = `~~~js\n\n1\n~~~`\n"
    assert not linted(tmp_path, dict(zip(("a.md", "b.mdx"), ends, strict=True)), "unclosed-fence").findings
    text = '![](a.png){width="1" fig-alt="A cat"} ![](a.png){ alt="A dog" }\n'
    assert not linted(tmp_path, {"a.md": text}, "image-without-alt").findings
    text = "Text.\n\n![ ][b] ![cat][b]\n\n[b]: b.png\n"
    assert places(linted(tmp_path, {"a.md": text}, "image-without-alt")) == ["a.md:3"]


def test_an_included_file_that_does_not_exist(tmp_path: Path) -> None:
    text = '# A\n\n--8<-- "gone.md"\n--8<-- "there.md"\n\n[x](#from-there)\n'
    others = {"mkdocs.yml": MKDOCS, "there.md": "## From there\n\n[broken](nothing.md)\n"}
    report = linted(tmp_path, {"a.md": text}, others=others)
    assert messages(report) == ["a.md:3 The included file 'gone.md' does not exist."]


def test_sections_that_say_the_same(tmp_path: Path) -> None:
    text = "word " * 30
    pages = {"a.md": f"# A\n\n{text}\n", "b.md": f"# B\n\n{text}\n", "de/a.md": f"# A\n\n{text}\n"}
    report = linted(tmp_path, pages, "near-duplicate")
    assert messages(report) == ["a.md:1 'A' says the same as 'B' at b.md:1."]
    assert "there is no index with vectors" in report.notes[0]
    with anvil.open(tmp_path / "docs", provider="none") as opened:  # for which another build would be no help
        opened.index()
        assert "the index has no vectors. Build it with an embedding provider" in opened.lint().notes[0]


# --- what is silenced ----------------------------------------------------------------------------------------------


def test_comments_silence_rules(tmp_path: Path) -> None:
    text = """\
[1](gone.md)
<!-- anvil-lint-disable-next-line broken-link -->
[2](gone.md)
[3](gone.md)
<!-- anvil-lint-disable broken-link, broken-anchor -->
[4](gone.md) [5](#gone)
<!-- anvil-lint-enable broken-link -->
[6](gone.md) [7](#gone)
<!-- anvil-lint-disable -->
[8](gone.md)
"""
    report = linted(tmp_path, {"a.md": text}, "broken-link", "broken-anchor")
    assert places(report) == ["a.md:1", "a.md:4", "a.md:8"]
    assert report.suppressed == 5


def test_a_comment_with_an_unknown_rule_names_the_closest(tmp_path: Path) -> None:
    text = "<!-- anvil-lint-disable broken-lnk -->\n\n<!-- anvil-lint-ignore -->\n\n[x](gone.md)\n"
    report = linted(tmp_path, {"a.md": text}, "broken-link", "unknown-suppression")
    assert [(found.line, found.rule) for found in report.findings] == [
        (1, "unknown-suppression"),
        (3, "unknown-suppression"),
        (5, "broken-link"),
    ]
    assert report.findings[0].message == "There is no rule 'broken-lnk'. Did you mean 'broken-link'?"


def test_levels_and_ignored_pages_come_from_the_configuration(tmp_path: Path) -> None:
    pages = {"a.md": "[x](gone.md) [y](#gone)", "old/b.md": "[x](gone.md)"}
    levels = LintLevels(broken_link="note", broken_anchor="off")
    report = linted(tmp_path, pages, config=Config(tables={"lint": LintOptions(ignore=("old/**",), levels=levels)}))
    assert [(f.path, f.rule, f.level) for f in report.findings if f.rule != "orphan-page"] == [
        ("a.md", "broken-link", "note")
    ]


def test_unknown_rules_and_levels_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="Did you mean 'orphan-page'"):
        linted(tmp_path, {"a.md": ""}, "orphan-pages")
    with pytest.raises(ConfigError, match=r"lint\.levels\.broken-link has an unknown value"):
        LintLevels(broken_link="fatal")  # type: ignore[arg-type]
    with anvil.open(tmp_path / "docs") as opened:
        opened.index()
    monkeypatch.chdir(tmp_path / "docs" / ".anvil")
    with anvil.open(index="index.db") as opened, pytest.raises(SourceError):
        opened.lint()


# --- other generators ----------------------------------------------------------------------------------------------


def test_vitepress_links(tmp_path: Path) -> None:
    pages = {
        "index.md": "[a](/guide/a) [b](/guide/a.html) [c](/guide/a.md) [d](/guide/) [e](./guide/a) ![i](/logo.png)",
        "guide/a.md": "# A\n\n[x](/guide/gone) [y](./b) ![i](/gone.png)",
        "guide/index.md": "",
        "public/logo.png": "",
        ".vitepress/config.ts": "export default { themeConfig: { sidebar: [{ link: '/guide/' }] } }",
    }
    report = linted(tmp_path, pages, "broken-link")
    assert report.generator == "vitepress"
    assert [found.message.split(":")[0] for found in report.findings] == [
        "Broken image '/gone.png'",
        "Broken link './b'",
        "Broken link '/guide/gone'",
    ]


@pytest.mark.parametrize("address", ["https://example.org/lamp/", "https://example.org/lamp"])
def test_links_from_the_top_of_the_host_are_checked_below_the_path_of_the_site(tmp_path: Path, address: str) -> None:
    pages = {"a.md": "[b](/lamp/b/) [gone](/lamp/gone/) [other site](/shop/)", "b.md": ""}
    report = linted(tmp_path, pages, "broken-link", others={"mkdocs.yml": f"{MKDOCS}site_url: {address}\n"})
    assert messages(report) == ["a.md:1 Broken link '/lamp/gone/': the site has no page or file /lamp/gone/."]


def test_a_link_of_vitepress_to_its_folder_is_to_the_page_of_the_folder(tmp_path: Path) -> None:
    pages = {
        "presets/README.md": "## Tokyo Night\n\n[t](./tokyo-night)",
        "presets/tokyo-night.md": "[back](./#tokyo-night) [gone](./#gone)\n\n# Preset",
        ".vitepress/config.ts": "export default { rewrites: { ':folder/README.md': ':folder/index.md' } }",
    }
    (found,) = linted(tmp_path, pages, "broken-anchor").findings
    assert found.message == "presets/README.md has no anchor '#gone'."


def test_docusaurus_links(tmp_path: Path) -> None:
    pages = {
        "intro.md": "---\nslug: /\n---\n[a](/docs/guide/a) [b](guide/01-a.mdx) [c](@site/static/x.png) ![x](/x.png)",
        "guide/01-a.mdx": "# A\n\n[up](../intro.md) [b](./b) [c](/docs/gone) [d](/blog/x) [e](gone.mdx) [i](/docs/)",
        "guide/b.md": "",
    }
    others = {"docusaurus.config.js": "module.exports = {presets: [['classic', {docs: {}}]]}", "static/x.png": ""}
    report = linted(tmp_path, pages, "broken-link", others=others)
    assert report.generator == "docusaurus"
    assert [found.message.split(":")[0] for found in report.findings] == ["Broken link 'gone.mdx'"]


def test_links_from_the_top_of_docusaurus_lead_to_pages_below_docs_without_a_route_of_their_own(tmp_path: Path) -> None:
    pages = {"a.md": "[b](/docs/guide/b#gone) [b](/docs/guide/b#part)", "guide/b.md": "## Part\n"}
    config = "module.exports = {presets: [['classic', {docs: {%s}}]]}"
    report = linted(tmp_path, pages, "broken-anchor", others={"docusaurus.config.js": config % ""})
    assert messages(report) == ["a.md:1 guide/b.md has no anchor '#gone'."]
    (tmp_path / "docusaurus.config.js").write_text(config % "routeBasePath: '/'")
    assert not linted(tmp_path, pages, "broken-anchor", others={}).findings


def test_docusaurus_in_a_folder_beside_the_documentation(tmp_path: Path) -> None:
    pages = {
        "a.md": "---\nid: first\n---\n[b](second#part) [x](@site/static/x.png) [y](@site/no.png) [z](/docs/gone)",
        "b.md": "---\nslug: second\n---\n## Part\n",
        "c.md": "",
    }
    others = {
        "website/docusaurus.config.ts": "export default {presets: [['classic', {docs: {path: '../docs'}}]]}",
        "website/sidebars.ts": "export default {docs: ['first', 'b']}",
        "website/static/x.png": "",
    }
    report = linted(tmp_path, pages, "broken-link", "broken-anchor", "orphan-page", others=others)
    assert report.generator == "docusaurus"
    assert messages(report) == [
        "a.md:4 Broken link '@site/no.png': there is no @site/no.png.",
    ]
    (tmp_path / "website" / "docusaurus.config.ts").write_text("export default {docs: {path: '../handbook'}}")
    assert linted(tmp_path, pages, "broken-link", others={}).generator == "github"


def test_many_orphans_without_a_navigation_mean_that_another_tool_makes_the_site(tmp_path: Path) -> None:
    def pages(linked: int) -> dict[str, str]:
        return {
            "index.md": "[gone](gone.md) [address](guide/gone) [anchor](a0.md#gone)",
            **{f"a{number}.md": "# A\n" for number in range(11)},
            **{f"b{number}.md": f"[next](b{(number + 1) % linked}.md)" for number in range(linked)},
        }

    rules = ("broken-link", "broken-anchor", "orphan-page")
    report = linted(tmp_path / "third", pages(18), *rules)  # 10 of 30
    assert (report.generator, len(report.findings), report.notes) == ("github", 13, ())
    report = linted(tmp_path / "more", pages(17), *rules)
    assert report.generator == "unknown"
    assert messages(report) == [
        "index.md:1 a0.md has no anchor '#gone'.",
        "index.md:1 Broken link 'gone.md': there is no file gone.md.",
    ]
    assert report.notes == (
        "No page links to 10 of 29 pages, so a tool that is not known here makes the site. If none does, set "
        "'rule = \"github\"' in the table [site] of anvil.toml.",
    )
    config = Config(site=SiteOptions(rule="github"))
    assert linted(tmp_path / "more", pages(17), *rules, config=config).generator == "github"
    config = Config(tables={"lint": LintOptions(ignore=("a10.md",))})  # 9 orphans are left
    assert linted(tmp_path / "more", pages(17), *rules, config=config).generator == "github"
    assert linted(tmp_path / "more", pages(17), "long-page").generator == "github"
    silenced = {**pages(17), "a10.md": "<!-- anvil-lint-disable orphan-page -->\n"}
    report = linted(tmp_path / "silenced", silenced, *rules)
    assert (report.generator, report.suppressed) == ("github", 1)


def test_links_in_the_table_of_contributors_that_a_bot_writes_lead_nowhere_by_design(tmp_path: Path) -> None:
    ada = '<a href="https://x.test"><sub><b>Ada</b></sub></a><br /><a href="#code-ada" title="Code">C</a>'
    older = "[<sub><b>Bob</b></sub>](https://x.test)<br />[C](#code-bob)"
    page = f"# A\n\n[x](#gone)\n\n<table><tr>\n<td>{ada}</td>\n</tr></table>\n\n| {older} |\n|---|\n"
    assert places(linted(tmp_path, {"index.md": page}, "broken-anchor")) == ["index.md:3"]


def test_of_a_site_of_hugo_only_links_to_files_say_what_they_mean(tmp_path: Path) -> None:
    links = '[b](b.md#x) [c]({{< ref "gone" >}}) [d](/gone/) [e](gone.md) [f](../b/#gone)\n'
    pages = {"content/a.md": links, "content/b.md": "# X\n"}
    for file, text in {**pages, "hugo.toml": "title = 'x'\n"}.items():
        write(tmp_path / file, text)
    for config in (Config(), Config(site=SiteOptions("https://example.org/", "hugo"))):
        with anvil.open(tmp_path / "content", config=config) as opened:
            report = opened.lint(rules=["broken-link", "broken-anchor"])
        assert report.generator == "unknown"
        assert messages(report) == ["a.md:1 Broken link 'gone.md': there is no file gone.md."]


def test_the_site_of_the_configuration_wins(tmp_path: Path) -> None:
    config = Config(site=SiteOptions("https://example.org/", "vitepress"))
    report = linted(tmp_path, {"index.md": "[a](/b)", "b.md": ""}, others={"mkdocs.yml": MKDOCS}, config=config)
    assert report.generator == "vitepress"


def test_where_the_generator_is_not_known_only_links_to_files_are_examined(tmp_path: Path) -> None:
    pages = {"index.md": "[a](gone.md) [b](gone/) [c](/gone)", "conf.py": ""}
    report = linted(tmp_path, pages, others={"mkdocs.yml.txt": ""})
    assert report.generator == "unknown" and places(report) == ["index.md:1"]


def test_where_the_generator_is_not_known_an_anchor_may_begin_with_the_headings_above(tmp_path: Path) -> None:
    pages = {"a.md": "# A\n\n## Options\n\n### envPrefix\n\n[a](#Options-envPrefix) [b](#Options-gone)\n"}
    report = linted(tmp_path, pages, "broken-anchor", others={"book.toml": ""})
    assert report.generator == "unknown"
    assert messages(report) == ["a.md:7 This page has no anchor '#Options-gone'."]


def test_where_many_links_to_pages_are_broken_an_unknown_generator_changes_links(tmp_path: Path) -> None:
    def linked_to(broken: int, sound: int) -> LintReport:
        text = "".join(f"[x](b{number}.md)\n" for number in range(broken)) + "[x](a.md)\n" * sound
        return linted(tmp_path / f"{broken}-{sound}", {"a.md": text}, "broken-link", others={"_config.yml": ""})

    report = linked_to(20, 59)
    assert {finding.level for finding in report.findings} == {"note"} and len(report.findings) == 20
    assert report.notes == (
        "20 of 79 links to pages lead to no file: the tool that shows the pages may change links, or make a page "
        "when it is opened. What is found of links and anchors is a note.",
    )
    for broken, sound in ((20, 60), (19, 0)):
        report = linked_to(broken, sound)
        assert {finding.level for finding in report.findings} == {"error"} and report.notes == ()


def test_an_anchor_in_a_part_of_pages_is_one_of_the_page_around_it(tmp_path: Path) -> None:
    pages = {"_part.md": "[x](#gone) [y](a.md#gone)", "a.md": "[x](#gone)", "_index.md": "[x](#gone)"}
    report = linted(tmp_path / "quarto", pages, "broken-anchor", others={"_quarto.yml": ""})
    assert messages(report) == [
        "_index.md:1 This page has no anchor '#gone'.",
        "_part.md:1 a.md has no anchor '#gone'.",
        "a.md:1 This page has no anchor '#gone'.",
    ]
    assert len(linted(tmp_path / "github", pages, "broken-anchor").findings) == 4


def test_where_the_generator_is_not_known_an_anchor_may_leave_out_the_elements_of_a_heading(tmp_path: Path) -> None:
    pages = {"a.md": "# A\n\n### config <span>([root](#a))</span>\n\n[a](#config) [b](#root) [c](#config-root)\n"}
    gitbook = {"a.md": "# `$SYS.<id>.A` - B\n\n[a](#usdsys.less-than-id-greater-than.a-b) [c](#usdsys.id.a)\n"}
    report = linted(tmp_path / "gitbook", gitbook, "broken-anchor", others={".gitbook.yaml": ""})
    assert messages(report) == ["a.md:3 This page has no anchor '#usdsys.id.a'."]
    report = linted(tmp_path / "unknown", pages, "broken-anchor", others={"_config.yml": ""})
    assert messages(report) == ["a.md:5 This page has no anchor '#root'."]
    assert len(linted(tmp_path / "github", pages, "broken-anchor").findings) == 2


def test_a_link_of_sphinx_that_is_an_anchor_alone_may_name_a_target_of_any_page(tmp_path: Path) -> None:
    pages = {
        "source/a.md": "[b](#howto:b) [object](#Spawner.ip) [gone](gone.md)\n[c](b.md#gone)",
        "source/b.md": "(howto:b)=\n# B",
    }
    report = linted(tmp_path, pages, "broken-anchor", "broken-link", others={"docs/source/conf.py": ""})
    assert report.generator == "unknown"
    assert messages(report) == [
        "source/a.md:1 Broken link 'gone.md': there is no file source/gone.md.",
        "source/a.md:2 source/b.md has no anchor '#gone'.",
    ]


def test_exdoc_finds_a_page_by_its_name_in_any_folder(tmp_path: Path) -> None:
    pages = {"a.md": "[b](b.md) [gone](gone.md)\n[c](b.md#gone)", "howto/b.md": "[a](a.md)"}
    exdoc = 'defp docs, do: [extras: ["docs/a.md"]]'
    report = linted(tmp_path / "exdoc", pages, "broken-link", "broken-anchor", others={"mix.exs": exdoc})
    assert report.generator == "unknown"
    assert messages(report) == [
        "a.md:1 Broken link 'gone.md': there is no file gone.md.",
        "a.md:2 howto/b.md has no anchor '#gone'.",
    ]
    assert linted(tmp_path / "no", pages, "broken-link", others={"mix.exs": "[]"}).generator == "github"


def test_docsify_is_known_by_its_page(tmp_path: Path) -> None:
    pages = {"a.md": "[route](guide?id=x) [gone](gone.md)"}
    start = "<script>window.$docsify = {%s}</script>"
    report = linted(tmp_path / "a", pages, "broken-link", others={"docs/index.html": start % "name: 'x'"})
    assert messages(report) == ["a.md:1 Broken link 'gone.md': there is no file gone.md."]
    report = linted(tmp_path / "b", pages, "broken-link", others={"docs/index.html": start % "alias: {'/gone': 'x'}"})
    assert messages(report) == []
    assert linted(tmp_path / "c", pages, "broken-link", others={"docs/index.html": ""}).generator == "github"


def test_a_site_that_has_most_pages_is_found_inside_the_folder(tmp_path: Path) -> None:
    pages = {"README.md": "", "site/docs/a.md": "[gone](gone.md) [address](../b/gone/)", "site/docs/b.md": ""}
    report = linted(tmp_path / "a", pages, "broken-link", "orphan-page", others={"docs/site/mkdocs.yml": MKDOCS})
    assert report.generator == "unknown"
    assert messages(report) == ["site/docs/a.md:1 Broken link 'gone.md': there is no file site/docs/gone.md."]
    assert report.notes == (
        "Most pages are those of a site in a/docs/site/docs. To resolve links as its generator does, name this folder.",
    )
    above = {"mkdocs.yml": "docs_dir: docs/site\n"}
    assert linted(tmp_path / "d", pages, "orphan-page", others=above).findings == ()
    more = {**pages, "c.md": "", "d.md": ""}
    assert linted(tmp_path / "b", more, "broken-link", others={"docs/site/mkdocs.yml": MKDOCS}).generator == "github"
    report = linted(tmp_path / "c", pages, "broken-link", others={"docs/site/book.toml": ""})
    assert (report.generator, report.notes) == ("unknown", ())


def test_a_site_may_be_made_of_the_whole_repository(tmp_path: Path) -> None:
    config = "docs_dir: .\nplugins: [same-dir]\nnav: [README.md, docs/a.md, docs/*]\n"
    pages = {"a.md": "[above](../README.md) [gone](gone.md)", "b.md": ""}
    report = linted(tmp_path, pages, "broken-link", "orphan-page", others={"mkdocs.yml": config, "README.md": ""})
    assert report.generator == "mkdocs"
    assert messages(report) == ["a.md:1 Broken link 'gone.md': there is no file gone.md."]


def test_anchors_of_a_site_that_has_some_pages_are_known_outside_it(tmp_path: Path) -> None:
    pages = {"a.md": "", "b.md": "", "c.md": "", "site/config.md": "# `private.version`\n"}
    pages["site/guide.md"] = "[option](config.md#private-version) [gone](config.md#gone)\n"
    for name in ("a", "b"):
        others = {"docs/site/.vitepress/config.ts": ""} if name == "a" else {}
        report = linted(tmp_path / name, pages, "broken-anchor", others=others)
        assert report.generator == "github"
        assert len(report.findings) == (1 if name == "a" else 2)
    config = Config(site=SiteOptions(rule="github"))
    assert len(linted(tmp_path / "a", pages, "broken-anchor", config=config).findings) == 2


def test_wiki_links_where_they_are_links(tmp_path: Path) -> None:
    links = "[[Second Page#Part]] [[gone]] [[c|shown]]\n\n| a |\n|---|\n| [[Second Page#^block\\|shown]] |\n"
    links += "[a](Second-Page.md#Part#Of%20two) [b](Second-Page.md#Of%20two)\n%% [[lost]] %%\n"
    second = "# Part\n\nText. ^block\n\n## Of two\n"
    pages = {"a.md": links, "Second-Page.md": second, "sub/c.md": ""}
    assert not linted(tmp_path, pages, "broken-link").findings
    (tmp_path / ".obsidian").mkdir()
    pages |= {"d.md": "[[up/down]]", "up___down.md": ""}
    report = linted(tmp_path, pages, "broken-link", "broken-anchor")
    assert messages(report) == ["a.md:1 Broken link 'gone': no page is named 'gone'."]


@pytest.mark.parametrize(("named", "broken"), [(6, ["a.md:1 Broken link 'gone': no page is named 'gone'."]), (1, [])])
def test_double_brackets_are_links_if_most_of_them_name_a_page(tmp_path: Path, named: int, broken: list[str]) -> None:
    text = "[[gone]] " + "[[b]] " * named + "[[1]] " * (named == 1) * 9
    assert messages(linted(tmp_path, {"a.md": text, "b.md": ""}, "broken-link")) == broken


def test_an_id_in_docsify_is_an_anchor(tmp_path: Path) -> None:
    text = "[a](#b) [c](#c)\n\n## A :id=b\n\nText.\n\n## C {docsify-ignore}\n\nText.\n"
    assert not linted(tmp_path, {"a.md": text}, "broken-anchor").findings


def test_reading_pages_has_progress(tmp_path: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    write_pages(tmp_path, {"a.md": "", "b.md": ""})
    with anvil.open(tmp_path / "docs", progress=lambda *step: steps.append(step)) as opened:
        opened.lint()
    assert steps == [("reading", 0, 2), ("reading", 1, 2)]


# --- git and the index ---------------------------------------------------------------------------------------------


def test_a_page_that_was_renamed_in_git_is_named(root: Path) -> None:
    text = "\n".join(f"Line {number}." for number in range(40))
    write(root / "docs/a.md", text)
    write(root / "docs/b.md", "gone")
    commit(root, "second", at=1_700_000_100)
    (root / "docs/b.md").unlink()
    (root / "docs/guide").mkdir()
    (root / "docs/a.md").rename(root / "docs/guide/first.md")
    commit(root, "third", at=1_700_000_200)
    (root / "docs/guide/first.md").rename(root / "docs/guide/second.md")
    commit(root, "fourth", at=1_700_000_300)
    report = linted(root, {"index.md": "[a](a.md) [b](b.md) [c](never.md)"}, "broken-link")
    assert [found.message for found in report.findings] == [
        "Broken link 'a.md': there is no file a.md. It moved to guide/second.md.",
        "Broken link 'b.md': there is no file b.md. It was removed.",
        "Broken link 'never.md': there is no file never.md.",
    ]
    (root / "docs/guide/second.md").rename(root / "docs/guide/third.md")  # neither staged nor committed
    report = linted(root, {"index.md": "[a](a.md) [now](guide/second.md)"}, "broken-link")
    assert [found.message.partition(".md. ")[2] for found in report.findings] == ["It moved to guide/third.md."] * 2
    write(root / "docs/left/out.md", "text")
    commit(root, "fifth", at=1_700_000_400)
    run(root, "sparse-checkout", "set", "src")
    report = linted(root, {"index.md": "[out](left/out.md)"}, "broken-link")
    assert [found.message for found in report.findings] == ["Broken link 'left/out.md': there is no file left/out.md."]


def test_sections_that_nearly_say_the_same_are_found_by_the_vectors_of_the_index(tmp_path: Path) -> None:
    text = (
        "To rotate the signing key, run the rotate command on the primary host, wait until both keys are published, "
        "and remove the old key after one day."
    )
    pages = {
        "a.md": f"# Rotate the signing key\n\n{text}\n",
        "b.md": f"# Rotate the signing key\n\n{text.replace('one day', '24 hours')}\n",
        "c.md": "# Weather\n\nIt rains in spring, and in autumn the wind comes from the west, often for many days.\n",
    }
    write_pages(tmp_path, pages)
    with anvil.open(tmp_path / "docs") as opened:
        opened.index()
    report = linted(tmp_path, pages, "near-duplicate")
    assert places(report) == ["a.md:1"] and "at b.md:1 (similarity 0.9" in report.findings[0].message
    assert report.notes == ()
    write_pages(tmp_path, {"b.md": '# Rotate the signing key\n\n--8<-- "a.md"\n'})
    with anvil.open(tmp_path / "docs") as opened:
        opened.index()
        assert not opened.lint(rules=["near-duplicate"]).findings
    write_pages(tmp_path, pages)
    with anvil.open(tmp_path / "docs") as opened:
        opened.index()
    stale = linted(tmp_path, {"b.md": pages["b.md"] + "\nOne more.\n"}, "near-duplicate")
    assert not stale.findings and "1 page" in stale.notes[0]


def test_a_fresh_index_and_none_give_the_same_findings(tmp_path: Path) -> None:
    page = "\n\n# A {#own}\n\n[1](#own) [2](#a) [3](b.md#set-ext) [4](gone.md)\n\n## Empty\n"
    pages = {
        "a.md": f"---\ntitle: x\n---\n{page}",
        "b.md": "Set ext\n=======\n\n# Set ext\n",
        "c.md": page.replace("\n", "\r\n"),
    }
    before = linted(tmp_path, pages)
    with anvil.open(tmp_path / "docs", provider="none") as opened:
        opened.index()
        assert opened.lint().findings == before.findings
    assert {finding.rule for finding in before.findings} >= {"broken-link", "broken-anchor", "empty-section"}


# --- hostile input -------------------------------------------------------------------------------------------------


def test_paths_that_lead_out_of_the_repository_are_not_looked_at(root: Path) -> None:
    write(root / "docs/a.md", "[1](../../../../etc/passwd) [2](..) [3](../../x.md) [4](%00) [5](a%2f..%2fb.md)\n")
    with anvil.open(root / "docs") as opened:
        found = opened.lint(rules=["broken-link"]).findings
    assert [finding.message for finding in found] == ["Broken link 'a%2f..%2fb.md': there is no file b.md."]


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_links_of_the_file_system(root: Path) -> None:
    (root / "docs/link.md").symlink_to("a.md")
    (root / "docs/out").symlink_to("/etc")
    (root / "docs/loop").symlink_to("loop")
    (root / "mkdocs.yml").symlink_to("/etc/hostname")
    write(root / "docs/a.md", "# A\n\n[1](link.md#a) [2](loop) [3](loop/x.md#y)\n")
    with anvil.open(root / "docs") as opened:
        report = opened.lint(rules=["broken-link", "broken-anchor"])
    assert report.generator == "mkdocs" and not report.findings  # its configuration is not read: pages may be made
    (root / "mkdocs.yml").unlink()
    with anvil.open(root / "docs") as opened:
        report = opened.lint(rules=["broken-link", "broken-anchor"])
    assert [(found.path, found.message) for found in report.findings] == [
        (name, "Broken link 'loop/x.md#y': there is no file loop/x.md.") for name in ("a.md", "link.md")
    ]


@pytest.mark.parametrize(
    "config",
    [
        "a: &a [*a, *a]\n",
        "nav: !!python/object/apply:os.system [exit]\nplugins: !ENV [X, []]\n",
        "{" * 5000,
        "nav: 1\nplugins: 2\nmarkdown_extensions: [[1], {2: 3}]\nvalidation: x\nsite_url: 4\ndocs_dir: docs\n",
        "\0",
        "INHERIT: mkdocs.yml\n",
        "- a list\n",
    ],
)
def test_a_configuration_that_is_hostile_or_wrong_does_no_harm(tmp_path: Path, config: str) -> None:
    report = linted(tmp_path, {"index.md": "# A\n\n[x](#a)\n"}, "broken-anchor", others={"mkdocs.yml": config})
    assert report.generator == "mkdocs" and not report.findings


def test_a_megabyte_and_thousands_of_links_take_linear_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []  # pages whose anchors were looked at
    anchors = LintPage.anchors

    def counted(page: LintPage, style: Slugs) -> dict[str, int]:
        asked.append(page.path)
        return anchors(page, style)

    monkeypatch.setattr(LintPage, "anchors", counted)
    pages = {
        "links.md": "[x](links.md#a) [y](b.md) ![](c.png)\n" * 5_000,
        "open.md": "[" * 300_000 + "](x.md)",
        "tags.md": "<a href='" * 50_000,
        "wiki.md": "[[" * 200_000,
        "line.md": "word " * 200_000 + "[x](gone.md)",
        **{f"circle{number}.md": f"[next](circle{(number + 1) % 200}.md)\n" for number in range(200)},
    }
    began = time.process_time()
    report = linted(tmp_path, pages, "broken-link", "broken-anchor", "orphan-page")
    assert time.process_time() - began < 20
    assert len(asked) < 10 * len(pages)
    assert ("line.md", 1) in [(finding.path, finding.line) for finding in report.findings]
    assert not [finding for finding in report.findings if finding.path.startswith("circle")]


def test_documentation_in_another_format_is_no_reason_to_say_only_that_nothing_was_found(tmp_path: Path) -> None:
    texts = {f"{name}.rst": "Title\n=====\n" for name in "abc"} | {"readme.md": "# R\n"}
    report = linted(tmp_path, texts, others={"docs/conf.py": ""})
    assert report.pages == 1 and "3 reStructuredText files in the documentation folder are not read" in report.notes[-1]
    with anvil.open(tmp_path / "docs") as opened:  # a part of the pages says nothing about the other files
        notes = opened.lint(source=WorkingTree(tmp_path / "docs", SourceOptions())).notes
    assert not any("are not read" in note for note in notes)


def test_three_sections_that_say_the_same_are_named(tmp_path: Path) -> None:
    page = f"# A\n\n{'word ' * 30}\n"
    report = linted(tmp_path, {f"{name}.md": page for name in "abcde"}, "near-duplicate")
    expected = "a.md:1 'A' says the same as 'A' at b.md:1, 'A' at c.md:1, 'A' at d.md:1 and 1 more section."
    assert messages(report)[0] == expected


def test_links_of_50_files_around_the_documentation_are_read(tmp_path: Path) -> None:
    pages = {"index.md": "# Start\n", "a.md": "# A\n", "b.md": "# B\n"}
    around = {f"{number:02}.md": "# N\n" for number in range(52)}
    around |= {"49.md": "[a](docs/a.md)\n", "50.md": "[b](docs/b.md)\n"}
    assert places(linted(tmp_path, pages, "orphan-page", others=around)) == ["b.md:1"]


def test_github_shows_the_readme_of_a_folder_and_no_other_file_in_place_of_its_list(tmp_path: Path) -> None:
    pages = {
        "index.md": "# Start\n\n[more](more/) [rest](rest/)\n",
        "more/readme-first.md": "# F\n",
        "more/x.md": "# X\n",
    }
    pages |= {"rest/readme.md": "# R\n", "rest/y.md": "# Y\n"}
    assert places(linted(tmp_path, pages, "orphan-page")) == ["rest/y.md:1"]


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ("english", "unreleased-2", 0),
        ("english", "unreleased-20", 1),
        ("en/docs/v1.9", "en/docs/release-2.100", 0),
        ("en/docs/1.9", "en/docs", 0),
        ("en/docs/cats", "en/docs/dogs", 1),
    ],
)
def test_the_same_page_in_two_editions_repeats_nothing(tmp_path: Path, first: str, second: str, found: int) -> None:
    """A folder at the top of at most 12 characters may be a language or a version."""
    page = f"# A\n\n{'word ' * 30}\n"
    report = linted(tmp_path, {f"{first}/a.md": page, f"{second}/a.md": page}, "near-duplicate")
    assert len(messages(report)) == found


@pytest.mark.parametrize(("name", "found"), [("a.zh-CN.md", 0), ("a.中文.md", 0), ("a.module.md", 1), ("b.de.md", 1)])
def test_the_same_page_in_a_language_that_its_name_has_repeats_nothing(tmp_path: Path, name: str, found: int) -> None:
    page = f"# A\n\n{'word ' * 30}\n"
    assert len(messages(linted(tmp_path, {"a.md": page, name: page}, "near-duplicate"))) == found


def test_a_book_has_redirects_and_may_link_to_books_beside_it(tmp_path: Path) -> None:
    redirects = '[output.html.redirect]\n"/old/page.html" = "../new.html"\n'
    pages = {"new.md": "[old](old/page.md) [gone](old/gone.md) [std](../core/primitive.f32.md#method.max)\n"}
    for config, expected in (
        ('[book]\nsrc = "docs"\n' + redirects, ["old/gone.md"]),
        (redirects, ["old/page.md", "old/gone.md", "../core/primitive.f32.md"]),  # another folder is the book
        ("not = = TOML", ["old/page.md", "old/gone.md", "../core/primitive.f32.md"]),
    ):
        report = linted(tmp_path, pages, "broken-link", others={"book.toml": config})
        assert report.generator == "unknown"
        assert {message.split("'")[1].partition("#")[0] for message in messages(report)} == set(expected)


@pytest.mark.parametrize(
    ("others", "found"),
    [({"mkdocs.yml": MKDOCS}, ["a.md:3"]), ({}, []), ({"book.toml": '[book]\nsrc = "docs"\n'}, [])],
)
def test_capital_letters_in_an_anchor_count_on_mkdocs(
    tmp_path: Path, others: Mapping[str, str], found: list[str]
) -> None:
    pages = {"a.md": "# Head\n\n[x](#HEAD)\n"}
    assert places(linted(tmp_path, pages, "broken-anchor", others=others)) == found
