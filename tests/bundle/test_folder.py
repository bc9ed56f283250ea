"""The folder of a bundle: what is written, what is removed, and what is left alone."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil.bundle import folder
from anvil.bundle.agents_md import BundledProject
from anvil.bundle.folder import Bundle, page_files
from anvil.errors import BuildError
from anvil.system import safe_files


def bundle(**files: str) -> Bundle:
    named = {("AGENTS.md" if name == "AGENTS" else f"docs/{name}.md"): text.encode() for name, text in files.items()}
    return Bundle(BundledProject("x", "1.0"), named, len(named))


def tree(out: Path) -> dict[str, bytes]:
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


def test_what_changed_is_written_and_what_is_gone_is_removed(tmp_path: Path) -> None:
    first = folder.write(tmp_path, bundle(AGENTS="A", a="1", **{"old/b": "2"}))
    assert first.written == ("AGENTS.md", "docs/a.md", "docs/old/b.md")
    times = {path: (tmp_path / path).stat().st_mtime_ns for path in ("AGENTS.md", "docs/anvil-bundle.json")}
    before = tree(tmp_path)
    assert folder.write(tmp_path, bundle(AGENTS="A", a="1", **{"old/b": "2"})).unchanged == 3
    assert tree(tmp_path) == before
    assert {path: (tmp_path / path).stat().st_mtime_ns for path in times} == times
    second = folder.write(tmp_path, bundle(AGENTS="A", a="new"))
    assert (second.written, second.removed, second.unchanged) == (("docs/a.md",), ("docs/old/b.md",), 1)
    assert not (tmp_path / "docs/old").exists()
    assert set(tree(tmp_path)) == {"AGENTS.md", "docs/a.md", "docs/anvil-bundle.json"}


def test_the_manifest_has_the_digests_in_canonical_json(tmp_path: Path) -> None:
    folder.write(tmp_path, bundle(a="1"))
    text = (tmp_path / "docs/anvil-bundle.json").read_text(encoding="utf-8")
    values = json.loads(text)
    assert values["files"] == [
        {
            "path": "docs/a.md",
            "sha256": "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b",
            "size": 1,
        }
    ]
    assert (values["format"], values["name"], values["version"], values["pages"]) == (1, "x", "1.0", 1)
    assert text == json.dumps(values, sort_keys=True, separators=(",", ":")) + "\n"


def test_files_of_somebody_else_are_kept_and_named(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("mine", encoding="utf-8")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/notes.md").write_text("mine", encoding="utf-8")
    done = folder.write(tmp_path, bundle(AGENTS="A", a="1", b="2"))
    assert done.kept == {"AGENTS.md": "somebody else put it there"}
    (tmp_path / "docs/a.md").write_text("edited", encoding="utf-8")
    (tmp_path / "docs/b.md").write_text("edited", encoding="utf-8")
    done = folder.write(tmp_path, bundle(AGENTS="A", a="new"))
    assert done.kept["docs/a.md"] == done.kept["docs/b.md"] == "it was changed since"
    texts = tree(tmp_path)
    assert [texts[path] for path in ("AGENTS.md", "docs/notes.md", "docs/a.md", "docs/b.md")] == [
        b"mine",
        b"mine",
        b"edited",
        b"edited",
    ]


def test_an_edited_file_stays_somebody_elses_until_it_is_removed(tmp_path: Path) -> None:
    folder.write(tmp_path, bundle(a="1"))
    (tmp_path / "docs/a.md").write_text("edited", encoding="utf-8")
    for _ in range(2):
        assert folder.write(tmp_path, bundle(a="2")).kept == {"docs/a.md": "it was changed since"}
    (tmp_path / "docs/a.md").unlink()
    assert folder.write(tmp_path, bundle(a="2")).written == ("docs/a.md",)


def test_an_interrupted_write_is_finished_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write(tmp_path, bundle(a="1", b="1", c="1"))
    write_file, calls = safe_files.write_file, []

    def failing(path: Path, content: str | bytes, **more: bool) -> None:
        calls.append(path.name)
        if len(calls) == 3:
            raise OSError(28, "No space left on device", str(path))
        write_file(path, content, **more)

    with monkeypatch.context() as patched:
        patched.setattr(safe_files, "write_file", failing)
        with pytest.raises(BuildError, match=r"docs.b\.md cannot be written: No space left on device"):
            folder.write(tmp_path, bundle(a="2", b="2"))
    done = folder.write(tmp_path, bundle(a="2", b="2"))
    assert (done.written, done.removed, done.kept) == (("docs/b.md",), ("docs/c.md",), {})
    assert b"before" not in (tmp_path / "docs/anvil-bundle.json").read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_links_are_not_followed(tmp_path: Path) -> None:
    out, outside = tmp_path / "out", tmp_path / "outside"
    out.mkdir()
    outside.mkdir()
    (outside / "a.md").write_text("secret", encoding="utf-8")
    (out / "docs").symlink_to(outside)
    with pytest.raises(BuildError, match="docs is a link, so nothing is written there"):
        folder.write(out, bundle(AGENTS="A", a="1"))
    assert not (out / "AGENTS.md").exists()
    (out / "docs").unlink()
    (out / "docs").mkdir()
    (out / "docs/a.md").symlink_to(outside / "a.md")
    assert "docs/a.md is a link" in folder.write(out, bundle(a="1")).kept["docs/a.md"]
    assert (outside / "a.md").read_text(encoding="utf-8") == "secret"


@pytest.mark.parametrize("path", ["../outside.md", "/etc/passwd", "docs/../../outside.md", "docs//a.md", "C:a.md", 3])
def test_a_manifest_that_leads_out_is_refused(tmp_path: Path, path: object) -> None:
    out = tmp_path / "out"
    folder.write(out, bundle(a="1"))
    (tmp_path / "outside.md").write_text("1", encoding="utf-8")
    manifest = out / "docs/anvil-bundle.json"
    values = json.loads(manifest.read_bytes())
    values["files"].append({**values["files"][0], "path": path})
    manifest.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(BuildError, match="is not a manifest of a bundle"):
        folder.write(out, bundle(b="1"))
    assert (tmp_path / "outside.md").exists()


def test_a_file_in_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "docs").write_text("mine", encoding="utf-8")
    with pytest.raises(BuildError, match="docs is not a folder"):
        folder.write(tmp_path, bundle(a="1"))


@pytest.mark.skipif(sys.platform == "win32" or os.getuid() == 0, reason="nothing is read-only there")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(BuildError, match="cannot be written: Permission denied"):
            folder.write(tmp_path, bundle(a="1"))
    finally:
        tmp_path.chmod(0o700)


def test_the_ending_is_that_of_markdown() -> None:
    paths = ["a.md", "b.mdx", "c/d.markdown", "e/index.html", "f.rst", "g.v2", "H.MD"]
    assert page_files(paths) == (
        {
            "H.MD": "H.md",
            "a.md": "a.md",
            "b.mdx": "b.md",
            "c/d.markdown": "c/d.md",
            "e/index.html": "e/index.md",
            "f.rst": "f.md",
            "g.v2": "g.v2.md",
        },
        {},
    )


def test_two_pages_never_share_a_file_and_plain_markdown_keeps_its_name() -> None:
    files, notes = page_files(["a.html", "a.md", "a.mdx", "A.md"])
    assert files == {"A.md": "A.md", "a.html": "a.html.md", "a.md": "a.md.md", "a.mdx": "a.mdx.md"}
    assert notes["a.mdx"] == "a.mdx is a.mdx.md in the bundle, because A.md is a.md."
    assert page_files(["a.md", "A.mdx"])[0] == {"a.md": "a.md", "A.mdx": "A.mdx.md"}
    assert page_files(["x/é.md", "x/e\u0301.md"])[0]["x/é.md"] == "x/é.md.md"


def test_names_of_many_pages_are_found_fast_also_where_they_would_be_one() -> None:
    different = [f"{number}.md" for number in range(2000)]
    equal = [f"{chr(mark)}{chr(other)}.md" for mark in range(1, 32) for other in range(1, 48) if other != 46]  # "--.md"
    started = time.thread_time()
    files, _ = page_files(different + equal)
    assert time.thread_time() - started < 2
    assert len(set(map(str.casefold, files.values()))) == len(different + equal)


def test_names_that_not_every_system_takes() -> None:
    long = "n" * 300
    files, notes = page_files([f"{long}.md", f"{long}{long}.md", "aux.md", "what?.md", "dots./a.md", "nul", "con/b.md"])
    assert files["aux.md"] == "aux-.md"
    assert files["what?.md"] == "what-.md"
    assert files["dots./a.md"] == "dots/a.md"
    assert (files["nul"], files["con/b.md"]) == ("nul-.md", "con-/b.md")
    assert len(files[f"{long}.md"]) == 120
    assert len(set(files.values())) == 7 == len(notes)
    assert notes["aux.md"] == "aux.md is aux-.md in the bundle, because some systems refuse its name."


NAMES = st.text(st.characters(blacklist_characters="/\0"), min_size=1, max_size=8).filter(
    lambda name: name not in (".", "..")
)


@given(st.lists(NAMES, max_size=8))
def test_all_pages_have_portable_files_of_their_own(paths: list[str]) -> None:
    files, _ = page_files(set(paths))
    assert files.keys() == set(paths)
    names = [name.casefold() for name in files.values()]
    assert len(set(names)) == len(names)
    for name in files.values():
        assert len(name.encode()) <= 120
        assert name.endswith(".md") and name.isprintable() and not set('<>:"|?*\\/') & set(name)
