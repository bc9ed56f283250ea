"""The bundled model, and other ONNX models in a folder, on real weights."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anvil.embedding.local import BUNDLED, LocalProvider
from anvil.errors import ModelError
from anvil.settings.schema import EmbeddingSettings

TEXTS = [
    "How do I roll back a release?",
    "Rolling back: run `harbor rollback` with the number of the release to return to. " * 12,
    "| key | default |\n|---|---|\n| retries | 3 |",
    "def main() -> int:\n    return 0\n",
    "Änderungen werden erst nach einem Neustart wirksam.",
    "所有选项都有合理的默认值。",
    "",
    "error",
]


ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def local() -> LocalProvider:
    return LocalProvider(EmbeddingSettings())


def test_vectors_are_float32_rows_of_unit_length(local: LocalProvider) -> None:
    result = local.embed(TEXTS)
    assert result.failed == {}
    assert result.vectors.dtype == np.float32
    assert result.vectors.shape == (len(TEXTS), 384) == (len(TEXTS), local.dimensions)
    np.testing.assert_allclose(np.linalg.norm(result.vectors, axis=1), 1, atol=1e-6)


def test_the_runtime_reports_to_nobody(tmp_path: Path) -> None:
    """It would keep a number of this machine's in the user's cache, for what it sends, except in CI."""
    code = (
        "from anvil.embedding.local import LocalProvider as P\n"
        "from anvil.settings.schema import EmbeddingSettings as S\n"
    )
    code += "assert P(S()).embed(['hello']).vectors.any()"
    kept = {name: value for name, value in os.environ.items() if name not in ("CI", "GITHUB_ACTIONS", "TF_BUILD")}
    homes = dict.fromkeys(["HOME", "USERPROFILE", "LOCALAPPDATA", "XDG_CACHE_HOME", "XDG_DATA_HOME"], str(tmp_path))
    line = [sys.executable, "-c", code]
    done = subprocess.run(line, env={**kept, **homes}, capture_output=True, text=True, check=True)
    assert "elemetry" not in done.stderr
    assert list(tmp_path.rglob("*")) == []


def test_no_texts_give_no_rows(local: LocalProvider) -> None:
    assert local.embed([]).vectors.shape == (0, 384)


def test_meaning_is_near_meaning(local: LocalProvider) -> None:
    question = local.embed_query("undo a deployment")
    scores = (
        local.embed(["Rolling back a release", "Choosing a colour theme", "Baking bread at home"]).vectors @ question
    )
    assert scores.argmax() == 0
    assert scores[0] > scores[1:].max() + 0.1


def test_known_vectors_stay_near_the_published_model(local: LocalProvider) -> None:
    """The file holds what the fp32 weights give for a few texts; 8-bit steps stay near it on any CPU."""
    expected = json.loads((Path(__file__).parents[1] / "data" / "minilm_fp32.json").read_text(encoding="utf-8"))
    vectors = local.embed([entry["text"] for entry in expected]).vectors
    for vector, entry in zip(vectors, expected, strict=True):
        exact = np.array(entry["vector"], np.float32)
        assert float(vector @ exact) / np.linalg.norm(exact) > 0.99, entry["text"][:40]


def test_a_vector_depends_on_its_text_alone(local: LocalProvider) -> None:
    whole = local.embed(TEXTS).vectors
    alone = np.concatenate([local.embed([text]).vectors for text in TEXTS])
    backwards = local.embed(TEXTS[::-1]).vectors[::-1]
    one_thread = LocalProvider(EmbeddingSettings(threads=1)).embed(TEXTS).vectors
    five_threads = LocalProvider(EmbeddingSettings(threads=5)).embed(TEXTS).vectors
    for other in (alone, backwards, one_thread, five_threads):
        assert whole.tobytes() == other.tobytes()


def test_many_threads_may_call_before_the_model_is_loaded() -> None:
    fresh = LocalProvider(EmbeddingSettings())
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(fresh.embed_query, ["the same question"] * 12))
    assert len({answer.tobytes() for answer in answers}) == 1
    fresh.close()


def test_close_lets_go_and_a_later_call_loads_again() -> None:
    fresh = LocalProvider(EmbeddingSettings())
    before = fresh.embed_query("again")
    fresh.close()
    fresh.close()
    assert fresh.embed_query("again").tobytes() == before.tobytes()
    fresh.close()


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t",
        "\0",
        "\x00\x01\x1b[0m\x7f",
        "\ud800 lone \udfff",
        "x" * 300_000,
        "😀" * 400,
        "\u202e" * 9,
        "[SEP] [PAD]",
    ],
    ids=["empty", "blank", "nul", "control", "surrogates", "long word", "emoji", "bidi", "special tokens"],
)
def test_any_text_gives_a_vector(local: LocalProvider, text: str) -> None:
    result = local.embed([text, "plain"])
    assert result.failed == {}
    np.testing.assert_allclose(np.linalg.norm(result.vectors, axis=1), 1, atol=1e-6)
    assert np.linalg.norm(local.embed_query(text)) == pytest.approx(1, abs=1e-6)
    for start, end in local.token_spans([text])[0]:
        assert 0 <= start < end <= len(text)


def test_token_spans_are_the_models_tokens(local: LocalProvider) -> None:
    text = "Über 日本 unbelievable \ud800 tokens"
    pieces = [text[start:end] for start, end in local.token_spans([text])[0]]
    assert pieces[:3] == ["Über", "日", "本"]
    assert "".join(pieces[3:]) == "unbelievabletokens"
    assert local.max_tokens == 254


def test_a_window_of_max_tokens_is_read_whole_and_no_more(local: LocalProvider) -> None:
    full = "one " * local.max_tokens
    whole, longer, shorter = local.embed([full, full + "two", full[:-4]]).vectors
    assert whole.tobytes() == longer.tobytes()
    assert whole.tobytes() != shorter.tobytes()


def test_the_end_of_a_long_question_counts(local: LocalProvider) -> None:
    filler = "Some background that does not matter here at all. " * 40
    about = local.embed(["kubernetes ingress certificates"]).vectors[0]
    plain, asking = (
        local.embed_query(filler),
        local.embed_query(filler + "kubernetes ingress certificates? " * 20),
    )
    assert asking @ about > plain @ about + 0.1
    assert np.linalg.norm(asking) == pytest.approx(1, abs=1e-6)


def test_eight_windows_of_a_question_are_read(local: LocalProvider) -> None:
    window = local.max_tokens
    known = local.embed_query("lamp " * 8 * window)
    assert np.array_equal(local.embed_query("lamp " * 8 * window + "boat " * window), known)
    assert not np.array_equal(local.embed_query("lamp " * 7 * window + "boat " * window), known)


def test_as_many_threads_as_configured_are_used() -> None:
    assert LocalProvider(EmbeddingSettings(threads=3))._threads == 3


def test_dimensions_of_the_bundled_model_are_fixed() -> None:
    with pytest.raises(ModelError, match=r"384 dimensions, not 100.*embedding\.dimensions"):
        _ = LocalProvider(EmbeddingSettings(dimensions=100)).digest


def test_what_the_runtime_rejects_loses_only_its_own_row(local: LocalProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = local._session._vector

    def poisoned(ids: list[int]) -> Any:
        if len(ids) == 3:
            raise RuntimeError("no memory")
        return whole(ids)

    monkeypatch.setattr(local._session, "_vector", poisoned)
    result = local.embed(["two words", "one", "three words here"])
    assert result.failed == {1: "RuntimeError: no memory"}
    assert list(np.linalg.norm(result.vectors, axis=1).round(4)) == [1, 0, 1]
    with pytest.raises(ModelError, match="no memory"):
        local.embed_query("one")


def model_folder(folder: Path, settings: dict[str, Any] | None) -> str:
    """A copy of the bundled model as someone's own, with other settings."""
    folder.mkdir()
    for name in ("model.onnx", "tokenizer.json"):
        shutil.copy(BUNDLED / name, folder / name)
    if settings is not None:
        (folder / "model.json").write_text(json.dumps(settings), encoding="utf-8")
    return str(folder)


def test_a_folder_without_settings_is_a_model(tmp_path: Path, local: LocalProvider) -> None:
    own = LocalProvider(EmbeddingSettings(model=model_folder(tmp_path / "mine", None)))
    assert (own.model, own.dimensions, own.max_tokens) == ("mine", 384, 254)
    assert own.embed_query("hello").tobytes() == local.embed_query("hello").tobytes()
    own.close()


def test_a_folders_settings_define_vectors_and_digest(tmp_path: Path) -> None:
    plain = LocalProvider(EmbeddingSettings(model=model_folder(tmp_path / "plain", {"dimensions": 384})))
    settings = {
        "query_prefix": "query: ",
        "document_prefix": "passage: ",
        "max_tokens": 64,
        "dimensions": 128,
    }
    own = LocalProvider(EmbeddingSettings(model=model_folder(tmp_path / "own", settings)))
    assert own.digest != plain.digest
    assert (own.dimensions, own.max_tokens) == (128, 64 - 2 - 2)
    prefixed = plain.embed(["passage: text"]).vectors[0, :128]
    np.testing.assert_allclose(own.embed(["text"]).vectors[0], prefixed / np.linalg.norm(prefixed), atol=1e-6)
    assert own.embed_query("text").tobytes() != own.embed(["text"]).vectors[0].tobytes()


def tiny_graph(folder: Path, inputs: dict[str, int]) -> None:
    """A graph that looks ids up in a table, (1, tokens, 2), and adds its other inputs to the rows."""
    onnx = pytest.importorskip("onnx")
    helper, types = onnx.helper, onnx.TensorProto
    table = onnx.numpy_helper.from_array(np.arange(61044, dtype=np.float32).reshape(30522, 2), "table")
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["rows"])]
    last = "rows"
    for name in list(inputs)[1:]:
        nodes.append(helper.make_node("Cast", [name], [f"{name}_f"], to=types.FLOAT))
        nodes.append(helper.make_node("Unsqueeze", [f"{name}_f", "axis"], [f"{name}_u"]))
        nodes.append(helper.make_node("Add", [last, f"{name}_u"], [f"{name}_sum"]))
        last = f"{name}_sum"
    axis = onnx.numpy_helper.from_array(np.array([2], np.int64), "axis")
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, kind, ["b", "s"]) for name, kind in inputs.items()],
        [helper.make_tensor_value_info(last, types.FLOAT, ["b", "s", 2])],
        [table, axis],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    (folder / "model.onnx").write_bytes(model.SerializeToString())


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_hidden_states_are_pooled_here(tmp_path: Path, pooling: str) -> None:
    folder = Path(model_folder(tmp_path / "tiny", {"pooling": pooling}))
    tiny_graph(folder, {"input_ids": 7, "attention_mask": 6, "token_type_ids": 7})
    own = LocalProvider(EmbeddingSettings(model=str(folder)))
    ids = np.array(own._tokenizer.ids(["some text"])[0], np.float64)
    rows = np.stack([2 * ids + 1, 2 * ids + 2], axis=1)
    expected = rows.mean(axis=0) if pooling == "mean" else rows[0]
    np.testing.assert_allclose(own.embed_query("some text"), expected / np.linalg.norm(expected), atol=1e-6)
    assert own.dimensions == 2


def test_hidden_states_without_pooling_are_refused(tmp_path: Path) -> None:
    folder = Path(model_folder(tmp_path / "tiny", {"pooling": "none", "dimensions": 2}))
    tiny_graph(folder, {"input_ids": 7})
    result = LocalProvider(EmbeddingSettings(model=str(folder))).embed(["text"])
    assert "pooling" in result.failed[0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pooling": "max"}, r"model\.json: pooling has an unknown value"),
        ({"max_tokens": 0}, r"model\.json: max_tokens is 0"),
        ({"dimensions": "many"}, r"dimensions in .*model\.json must be a whole number"),
        ({"query_prefix": 3}, r"query_prefix in .*model\.json must be a string"),
        ([], "one JSON object"),
    ],
)
def test_settings_that_make_no_sense_are_named(tmp_path: Path, settings: Any, message: str) -> None:
    path = model_folder(tmp_path / "own", settings)
    with pytest.raises(ModelError, match=message):
        _ = LocalProvider(EmbeddingSettings(model=path)).digest


def test_a_damaged_model_is_named(tmp_path: Path) -> None:
    path = model_folder(tmp_path / "own", None)
    (tmp_path / "own" / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(ModelError, match=r"model\.onnx cannot be loaded"):
        LocalProvider(EmbeddingSettings(model=path)).embed_query("x")
    (tmp_path / "own" / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ModelError, match=r"tokenizer\.json cannot be read"):
        LocalProvider(EmbeddingSettings(model=path)).embed_query("x")
    (tmp_path / "own" / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"has no tokenizer\.json"):
        LocalProvider(EmbeddingSettings(model=path)).embed_query("x")


@pytest.mark.parametrize("model", ["./missing", "no-such-folder", "some/where/deep"])
def test_a_missing_folder_names_both_ways_out(model: str) -> None:
    with pytest.raises(ModelError, match=r"no model folder.*Set embedding\.model.*bundled"):
        _ = LocalProvider(EmbeddingSettings(model=model)).digest


def test_a_hub_that_cannot_be_reached_names_both_ways_out(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hub:
        @staticmethod
        def snapshot_download(model: str, allow_patterns: list[str]) -> str:
            raise OSError("no route to host")

    monkeypatch.setattr("anvil.embedding.local.find_spec", lambda name: object())
    monkeypatch.setitem(sys.modules, "huggingface_hub", Hub)
    with pytest.raises(ModelError, match=r"org/name.*no route to host.*Set embedding\.model.*bundled"):
        _ = LocalProvider(EmbeddingSettings(model="org/name")).digest


def test_a_hub_repository_with_its_export_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "onnx").mkdir()
    shutil.copy(BUNDLED / "model.onnx", tmp_path / "onnx" / "model.onnx")
    shutil.copy(BUNDLED / "tokenizer.json", tmp_path / "tokenizer.json")

    class Hub:
        @staticmethod
        def snapshot_download(model: str, allow_patterns: list[str]) -> str:
            return str(tmp_path)

    monkeypatch.setitem(sys.modules, "huggingface_hub", Hub)
    monkeypatch.setattr("anvil.embedding.local.find_spec", lambda name: object())
    assert LocalProvider(EmbeddingSettings(model="org/name")).embed_query("x").shape == (384,)
