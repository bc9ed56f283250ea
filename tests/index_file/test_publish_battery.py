"""A short form of ``benchmarks/batter_store.py``: damaged and crafted index files are refused, or answer as before."""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import sqlite3
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import apsw
import pytest

import anvil
from anvil.cli import program
from anvil.errors import ArtifactRejected
from anvil.index_file import connection, verify
from anvil.index_file.reader import reporting_damage

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "batter_store.py"


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("batter_store", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["batter_store"] = module
    spec.loader.exec_module(module)
    return module


battering = script()


def battery(folder: Path, provider: str) -> Any:
    return battering.Battery(folder, battering.PAGES, provider)


def test_bad_values_are_refused_or_harmless(tmp_path: Path) -> None:
    """With vectors, as only then all tables have rows."""
    tried = battery(tmp_path, "local")
    battering.crafted(tried, random.Random(13), 0.006)
    assert not tried.failures and tried.tried["sealed"] > 7 and tried.refused["words"] >= 9


def test_flipped_bits_are_refused_or_harmless(tmp_path: Path) -> None:
    tried = battery(tmp_path, "none")
    battering.flips(tried, random.Random(13), 12)
    assert not tried.failures and tried.refused["flips"] > 5


@pytest.mark.skipif(os.name == "nt", reason="Windows renames nothing onto an open file")
def test_what_is_opened_is_what_was_checked(tmp_path: Path) -> None:
    tried = battery(tmp_path, "none")
    battering.renames(tried, 0.4)
    assert not tried.failures and tried.tried["renames"] > 20


def test_a_killed_build_leaves_a_sound_index(tmp_path: Path) -> None:
    tried = battery(tmp_path, "none")
    battering.kills(tried, random.Random(13), 2)
    assert not tried.failures


def test_a_flip_in_each_page_of_the_keyword_index_is_found(tmp_path: Path) -> None:
    """Of the bytes in use: search would silently find less."""
    tried = battery(tmp_path, "none")
    connected = connection.open_artifact(tried.sound)
    words = connected.execute("SELECT block FROM chunks_fts_data ORDER BY length(block) DESC LIMIT 1").get
    connected.close()
    data, chance, passed = bytearray(tried.sound.read_bytes()), random.Random(5), 0
    begin = data.index(words[:200])
    for place in chance.sample(range(begin + 4, begin + 200), 40):
        data[place] ^= 4
        tried.file.write_bytes(data)
        try:
            verify.check(tried.file)
            passed += 1
        except ArtifactRejected:
            pass
        data[place] ^= 4
    assert passed == 0


def test_a_pair_of_changes_that_cancel_out_is_found_by_the_thorough_check(tmp_path: Path) -> None:
    """FTS5's own check adds entries up by exclusive or. Without a new checksum every check finds the change."""
    tried = battery(tmp_path, "none")
    connected = connection.open_artifact(tried.sound)
    id_, block = connected.execute("SELECT id, block FROM chunks_fts_data ORDER BY length(block) DESC LIMIT 1").get
    connected.close()
    place = 21  # in the list of chunks that hold a word
    changed = block[:place] + bytes([block[place] ^ 1]) + block[place + 1 :]
    for again in (False, True):
        tried.crafted("UPDATE chunks_fts_data SET block = ? WHERE id = ?", (changed, id_), again)
        if again:
            verify.check(tried.file)
        with pytest.raises(ArtifactRejected, match="keyword index"):
            verify.check(tried.file, thorough=again)


BREAKS = (
    "UPDATE documents SET id = -1 WHERE file_path = 'index.md'",
    "UPDATE anvil_meta SET value = '³' WHERE key = 'embedding_dimensions'",
    "UPDATE documents SET metadata = '" + '{"a":' * 50_000 + "1" + "}" * 50_000 + "'",
    "UPDATE documents SET digest = 'text'",
    "UPDATE anvil_meta SET value = x'00' WHERE key = 'chunking'",
    "UPDATE sections SET start_line = 'first'",
)


def test_a_build_replaces_a_file_that_breaks_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tried = battery(tmp_path, "none")
    for statement, force in [*((each, ()) for each in BREAKS), (BREAKS[0], ("--force",))]:
        assert tried.crafted(statement)
        command = ["build", "--docs", str(tried.docs), "--index", str(tried.file), "--provider", "none", *force]
        code, told = program.run(command), "".join(capsys.readouterr())
        assert code == 0, (statement, told)
        assert "It was built again." in told, statement
        assert "Build it again" not in told and "--force" not in told, statement
        assert tried.file.read_bytes() == tried.sound.read_bytes(), statement


def test_damage_that_is_met_later_is_told_with_the_way_out(tmp_path: Path) -> None:
    tried = battery(tmp_path, "none")
    shutil.copyfile(tried.sound, tried.file)
    with anvil.open(index=tried.file, provider="none") as opened:
        opened.list_pages()
        with sqlite3.connect(tried.file) as writer:  # into the file that is open: nobody should, somebody will
            writer.execute("DELETE FROM chunks_fts_docsize")
        writer.close()
        os.utime(tried.file, (0, 0))
        with pytest.raises(ArtifactRejected, match=r"Build it again|fetch it again"):
            opened.search("night")


def test_search_that_misses_a_chunk_says_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = battery(tmp_path, "none")
    tried.crafted("DELETE FROM chunks_fts_docsize")
    monkeypatch.setattr(verify, "_check", lambda *given: None)  # as if the damage were done after the check
    with anvil.open(index=tried.file, provider="none") as opened, pytest.raises(ArtifactRejected, match="damaged"):
        opened.search("night")


def test_what_sqlite_raises_in_an_answer_is_damage() -> None:
    told = pytest.raises(ArtifactRejected, match=r"docs\.db was damaged since it was opened")
    with told, reporting_damage("docs.db"):
        raise apsw.CorruptError("malformed")


def test_a_title_with_a_nul_character_is_indexed(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text('---\ntitle: "one\\0two"\n---\nText.\n', encoding="utf-8")
    with anvil.open(docs, tmp_path / "i.db", "none") as opened:
        opened.index()
        assert [page.title for page in opened.list_pages().pages] == ["one\ufffdtwo"]
