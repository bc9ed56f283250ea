"""The manifest beside a published index: the same text for the same index, and nothing believed unchecked."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

import anvil
from anvil.errors import ArtifactMissing, ArtifactRejected
from anvil.index_file import manifests, publish
from anvil.index_file.manifests import Manifest, ModelIdentity
from anvil.system import safe_files

SOUND = Manifest(
    format=1,
    file="index.db",
    sha256="a" * 64,
    size=12,
    digest="b" * 64,
    commit="c" * 40,
    last_modified="2026-01-31T09:30:00Z",
    anvil_version="0.1.0",
    model=ModelIdentity("local", "MiniLM", "d" * 64, 384),
    pages=1,
    chunks=2,
    vectors=3,
)


def test_it_comes_back_as_it_was_written() -> None:
    assert manifests.parse(manifests.render(SOUND), "index.json") == SOUND


def test_a_newer_reader_may_add_keys() -> None:
    text = json.dumps({**json.loads(manifests.render(SOUND)), "signature": "x"})
    assert manifests.parse(text, "index.json") == SOUND


@pytest.mark.parametrize("key", [each.name for each in dataclasses.fields(Manifest) if each.name != "commit"])
@pytest.mark.parametrize("value", [None, True, -1, "../index.db", [], 1.5])
def test_every_field_is_checked(key: str, value: object) -> None:
    if key in ("last_modified", "anvil_version") and isinstance(value, str):
        return  # any text
    text = json.dumps({**json.loads(manifests.render(SOUND)), key: value})
    with pytest.raises(ArtifactRejected, match=r"^http://x/index\.json is not the manifest of an index: its "):
        manifests.parse(text, "http://x/index.json")


@pytest.mark.parametrize("name", ["/etc/passwd", "..", ".hidden", "a/b.db", "a\\b.db", "", "x?y", "c:evil"])
def test_a_name_leads_nowhere_else(name: str) -> None:
    with pytest.raises(ArtifactRejected, match="'file'"):
        manifests.parse(manifests.render(dataclasses.replace(SOUND, file=name)), "index.json")


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "[" * 50_000, "x" * 200_000, '"text"'])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ArtifactRejected, match=r"index\.json is not the manifest"):
        manifests.parse(text, "index.json")


def test_it_is_written_beside_the_index_and_left_alone_when_nothing_changed(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("# A\n\nText.\n", encoding="utf-8")
    index = tmp_path / "out" / "index.db"
    with anvil.open(docs, index, "none") as opened:
        report = opened.index()
    path = publish.write_manifest(index)
    told = manifests.parse(path.read_text(encoding="utf-8"), str(path))
    assert path == tmp_path / "out" / "index.json"
    assert (told.digest, told.size, told.pages) == (report.digest, index.stat().st_size, 1)
    assert told.sha256 == safe_files.sha256(index)
    before = path.stat().st_mtime_ns
    publish.write_manifest(index)
    assert path.stat().st_mtime_ns == before


def test_without_an_index_there_is_nothing_to_describe(tmp_path: Path) -> None:
    with pytest.raises(ArtifactMissing):
        publish.describe(tmp_path / "index.db")
