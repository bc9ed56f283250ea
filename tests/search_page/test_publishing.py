"""The files of the search page, without a browser; tests/e2e/site/test_search_page.py opens it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
from collections import Counter
from importlib import resources
from pathlib import Path

import pytest

import anvil
from anvil.errors import BuildError, ConfigError
from anvil.formats.characters import WORD_MARKS
from anvil.index_file import connection, fts_table
from anvil.index_file.table_rows import FORMAT_VERSION
from anvil.index_file.verify import open_checked
from anvil.search import ranking
from anvil.search.candidates import FileIndex
from anvil.search_page import publishing
from anvil.search_page.publishing import FILES, derived_tokens, publish
from anvil.settings.schema import SITE_SEARCH
from anvil.text.query import BEGINNING_LETTERS, STOP, Stemmer, parse_query
from tests.support import html_sites

SCRIPTS = resources.files("anvil.search_page") / "files"
NODE = shutil.which("node")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site with its index, and links between its pages."""
    site = html_sites.site(tmp_path / "site")
    body = '<p>See <a href="../guide/install/">how to set it up</a>.</p><h2>useDeepLinks in useDeepLinks</h2><p>On.</p>'
    html_sites.write(site, {"CHANGELOG/index.html": html_sites.page("Changes", body, address="CHANGELOG/")})
    with anvil.open(site=site, provider="none") as opened:
        opened.index()
    return site


def published(site: Path) -> tuple[Path, dict[str, bytes]]:
    """The page, and the bytes of all files in its folder."""
    with anvil.open(site=site, provider="none") as opened:
        page = opened.publish_search_page()
    return page, {file.name: file.read_bytes() for file in page.parent.iterdir()}


def test_the_page_stands_beside_the_index_and_is_written_once(site: Path) -> None:
    page, files = published(site)
    assert page == site / SITE_SEARCH and files.keys() == {*FILES, publishing.DATA}
    times = {file.name: file.stat().st_mtime_ns for file in page.parent.iterdir()}
    assert published(site) == (page, files)
    assert {file.name: file.stat().st_mtime_ns for file in page.parent.iterdir()} == times
    (page.parent / "words.js").write_text("// older\n", encoding="utf-8")
    assert published(site) == (page, files)


def test_what_the_scripts_need_of_the_pages(site: Path) -> None:
    data = json.loads(published(site)[1][publishing.DATA])
    assert data["site"] == "../../" and data["index"]["file"] == "../index.db"
    with open_checked(site / "anvil/index.db") as reader:
        assert data["index"]["roots"] == reader.root_pages()
    pages = {page["path"]: page for page in data["pages"]}
    assert list(pages) == sorted(pages)
    assert {page["address"] for page in pages.values()} == {"", "guide/install/", "api/", "CHANGELOG/"}
    install = pages["guide/install/index.html"]
    assert install["words"].split() == ["how", "it", "set", "to", "up"] and 0 < install["popularity"] < 1
    changes = pages["CHANGELOG/index.html"]
    assert (changes["factor"], changes["record_factor"]) == (0.7, 1.0)
    assert list(changes["heading_parts"].values()) == ["deep link us"]
    assert not {"words", "family", "chunks"} & changes.keys() and not {"versions", "translations"} & data.keys()
    assert data["rules"]["FIELD_WEIGHTS"] == list(ranking.FIELD_WEIGHTS)


def test_a_site_of_several_versions(tmp_path: Path) -> None:
    versions = {
        f"{name}/{page}index.html": html_sites.page("Start", f"<p>Of {name} and {page}.</p>")
        for name in ("1.9", "1.10", "latest")
        for page in ("", "a/", "b/")
    }
    site = html_sites.write(tmp_path / "site", versions)
    with anvil.open(site=site, provider="none") as opened:
        opened.index()
    data = json.loads(published(site)[1][publishing.DATA])
    assert {(page["version"], page["family"], page["chunks"]) for page in data["pages"]} == {
        (name, family, 1) for name in ("1.9", "1.10", "latest") for family in range(3)
    }
    names = ["latest", "1.10", "1.9"]
    assert data["versions"]["around"] == [names] and data["versions"]["families"] == [[names, 0]] * 3
    assert data["versions"]["spellings"] == {"1.9": "1.9", "v1.9": "1.9", "1.10": "1.10", "v1.10": "1.10"}


def test_a_site_of_several_languages(tmp_path: Path) -> None:
    texts = {f"{folder}{name}/index.html": f"{folder}{name}" for folder in ("", "de/") for name in "abc"}
    site = html_sites.write(
        tmp_path / "site", {path: html_sites.page("Start", f"<p>Of {text}.</p>") for path, text in texts.items()}
    )
    with anvil.open(site=site, provider="none") as opened:
        opened.index()
    data = json.loads(published(site)[1][publishing.DATA])
    path_of = {page["id"]: page["path"].removesuffix("/index.html") for page in data["pages"]}
    translations = sorted(sorted(path_of[id_] for id_ in ids) for ids in data["translations"])
    assert translations == [["a", "de/a"], ["b", "de/b"], ["c", "de/c"]]


def test_an_index_outside_of_the_site_is_an_error(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(site)
    assert publish(Path("anvil/index.db"), site, {}).is_file()
    other = shutil.copy(site / "anvil/index.db", tmp_path / "index.db")
    with pytest.raises(ConfigError, match="is not in"):
        publish(Path(other), site, {})


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_nothing_is_written_through_a_link(site: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (site / "anvil/search").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BuildError, match="leads out of"):
        published(site)
    (site / "anvil/search").unlink()
    (site / "anvil/search").mkdir()
    (site / "anvil/search/words.js").symlink_to(tmp_path / "elsewhere/words.js")
    with pytest.raises(BuildError, match="is a link"):
        published(site)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_derived_terms_count_as_words_of_a_heading(site: Path) -> None:
    with open_checked(site / "anvil/index.db") as reader:
        stem = FileIndex(reader).stem
        for text in ("useDeepLinks of HTML5Parser, v2 and plain", "größeÄnderung", "", "使用VitestApp 表示"):
            tokens = Counter(derived_tokens(text, stem).split())
            assert tokens + Counter(stem.counts(text)) == Counter(stem.heading_counts(text))


def test_the_scripts_are_all_there_and_know_the_format() -> None:
    assert {file.name for file in SCRIPTS.iterdir()} == set(FILES)
    text = {name: (SCRIPTS / name).read_text(encoding="utf-8") for name in FILES}
    assert f"const FORMAT = {FORMAT_VERSION};" in text["index-file.js"]
    assert f"const BEGINNING_LETTERS = {BEGINNING_LETTERS};" in text["words.js"]
    assert WORD_MARKS.encode("ascii", "backslashreplace").decode().replace("\\xad", "\\u00ad") in text["words.js"]
    used = set(re.findall(r"\b[A-Z][A-Z0-9_]*\b", text["ranking.js"] + text["words.js"]))
    assert publishing.RULES.keys() <= used
    assert publishing.RULES["STOP"] == sorted(STOP)  # the same file in each process
    for name, script in text.items():
        assert not re.search(r"(inner|outer|Adjacent)HTML|document\.write|\beval\b|new Function", script), name
        assert not re.search(r"""["'(`]https?://""", script), name  # addresses are in comments only


@pytest.mark.skipif(not NODE, reason="there is no Node")
@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".js")])
def test_node_reads_each_script(name: str, tmp_path: Path) -> None:
    module = tmp_path / name.replace(".js", ".mjs")
    module.write_text((SCRIPTS / name).read_text(encoding="utf-8"), encoding="utf-8")
    done = subprocess.run([str(NODE), "--check", str(module)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


QUESTIONS = [
    "how do I configure `for` and at() in useDeepLinks?",
    '"deep links" of DEC-0054, a.b.c and --flag-name',
    "Если `isActive` истинно, в sizeOfData есть useEffect this",  # stop words are names here, but not parts
    "各 `MyButton` 的 count 状態 ﾊﾟ half",
    "角\u0301 한\u0301 \u0301 x",  # a mark without a letter is no word
    "\u03bc\u03ad\u03c1\u03b1 \u03a3\u038a\u03a3\u03a5\u03a6\u039f\u03a3 ﬁle café",
]


@pytest.mark.skipif(not NODE, reason="there is no Node")
def test_a_question_is_read_in_the_browser_as_on_the_command_line(tmp_path: Path) -> None:
    with contextlib.closing(connection.open_scratch()) as handle:
        stem = Stemmer(fts_table.tokenizer(handle))
        parsed = [parse_query(question, stem) for question in QUESTIONS]
    module = tmp_path / "words.mjs"
    code = (
        (SCRIPTS / "words.js").read_text(encoding="utf-8")
        + """
        const [questions, rules] = JSON.parse(process.argv[2]);
        console.log(JSON.stringify(questions.map(each => parseQuestion(each, rules)).map(({terms, phrases}) =>
          [Object.fromEntries([...terms].map(([key, term]) => [key, term.weight])), Object.fromEntries(phrases)])));
    """
    )
    module.write_text(code, encoding="utf-8")
    given = json.dumps([QUESTIONS, publishing.RULES])
    done = subprocess.run([str(NODE), str(module), given], capture_output=True, encoding="utf-8", check=True)
    expected = [[{token: weight for token, (weight, _) in each.terms.items()}, each.phrases] for each in parsed]
    assert json.loads(done.stdout) == expected
