"""Embedding on this machine, by the bundled model or another ONNX model in a folder or from a model hub.

The model runs on one text at a time, without padding or mask. So a vector depends only on its text: the same text gives
the same bits, whatever the other texts and the number of threads. The model is loaded at its first use. All methods can
be called from several threads. No other module imports onnxruntime or tokenizers.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from anvil.embedding.passages import PassageScorer, Tokens, has_scorer
from anvil.embedding.provider import Embedded, Vector
from anvil.errors import ConfigError, ModelError
from anvil.formats.characters import encodable, known_scripts
from anvil.formats.data_formats import json_object
from anvil.settings.configuration import merged
from anvil.settings.schema import BUNDLED_MODEL, EmbeddingSettings, one_of, within
from anvil.system import safe_files

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Encoding


T = TypeVar("T")
Outcome = TypeVar("Outcome")

BUNDLED = Path(__file__).parent / "model"
Pooling = Literal["mean", "cls", "none"]
MAX_TOKEN_CHARACTERS = 64
"""The assumed length of the longest token, by which a very long query is cut before it is tokenized."""
MAX_QUERY_WINDOWS = 8
"""Windows of a query that are read: about 2,000 tokens with the bundled model."""
FETCH_AGAIN = "Fetch the model's files again; 'anvil doctor' has the command for the bundled one."

QUIET = {"ORT_DISABLE_TELEMETRY": "1"}
"""Environment variables without which onnxruntime, from version 1.29 on, sends telemetry over the network."""


class LocalProvider:
    """The bundled all-MiniLM-L6-v2, or any ONNX model in a folder or on a model hub."""

    name = "local"
    server = ""

    def __init__(self, settings: EmbeddingSettings) -> None:
        self._settings = settings
        # In a container, a process may use fewer CPUs than the machine has.
        usable_cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._threads = settings.threads or usable_cpus
        self._lock = threading.RLock()
        self._pool: ThreadPoolExecutor | None = None

    @property
    def model(self) -> str:
        """The name in model.json; else the name of the folder."""
        return self._directory.name

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the weights, the tokenizer and the settings."""
        return self._directory.digest

    @property
    def dimensions(self) -> int:
        """The number in model.json; else that of the model, which must then be loaded."""
        return self._directory.settings.dimensions or self._session.dimensions

    @property
    def max_tokens(self) -> int:
        """254 for the bundled model, which reads 256 tokens including [CLS] and [SEP]."""
        return self._tokenizer.budget

    @property
    def scripts(self) -> frozenset[str] | None:
        """The scripts of the tokenizer's vocabulary. Loads the tokenizer."""
        return self._tokenizer.scripts

    def warm(self) -> None:
        """Load the tokenizer and the model, and run the model once, so that its memory is allocated."""
        self._embed(["warm"], "")

    @cached_property
    def passages(self) -> PassageScorer | None:
        """The scorer in the model's folder; None if the folder has none, or the settings switch it off."""
        folder = self._directory.path
        return PassageScorer(folder, self) if self._settings.passages and has_scorer(folder) else None

    def token_spans(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """For each text, (start, end) of its tokens in characters. No token has characters that the model ignores."""
        return self._tokenizer.spans(texts)

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """The tokens of each text, for :attr:`passages`."""
        return self._tokenizer.tokens(texts)

    @staticmethod
    def open_session(path: Path) -> Any:
        """The graph of a file, which runs on one thread. Raises :class:`ModelError` if it cannot be loaded."""
        onnxruntime = runtime()
        options = onnxruntime.SessionOptions()
        # One thread for each run, and as many runs as CPUs: no synchronisation inside a layer, no spinning between
        # layers. benchmarks/embedding.py compares this with the default loops of two other packages.
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the library's errors have no common base but Exception
            raise ModelError(f"{path} cannot be loaded ({error}). {FETCH_AGAIN}") from error

    def embed(self, texts: Sequence[str]) -> Embedded:
        """The unit vectors (n, dimensions). The end of a text with more than ``max_tokens`` is not read."""
        return self._embed(texts, self._directory.settings.document_prefix)

    def embed_query(self, text: str) -> Vector:
        """The unit vector (dimensions,) of a query. Raises :class:`ModelError` if the model cannot run.

        A query that is too long for the model is embedded in windows. Its vector is their average, weighted by tokens.
        """
        import numpy as np

        budget = self._tokenizer.budget
        # A query may be a pasted file. The text after this would not be read.
        text = text[: MAX_QUERY_WINDOWS * budget * MAX_TOKEN_CHARACTERS]
        spans = self.token_spans([text])[0]
        windows = [spans[start : start + budget] for start in range(0, len(spans), budget)[:MAX_QUERY_WINDOWS]]
        pieces = [text[tokens[0][0] : tokens[-1][1]] for tokens in windows] if len(spans) > budget else [text]
        result = self._embed(pieces, self._directory.settings.query_prefix)
        for reason in result.failed.values():
            raise ModelError(f"The query could not be embedded: {reason}")
        weights = np.asarray([len(tokens) for tokens in windows], np.float32)
        return _unit(weights @ result.vectors) if len(pieces) > 1 else result.vectors[0]

    def map(self, function: Callable[[T], Outcome], values: Sequence[T]) -> list[Outcome]:
        """The results in the order of the values. The function is called by as many threads as there are CPUs."""
        if len(values) < 2 or self._threads < 2:
            return [function(value) for value in values]
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="anvil-embed")
            pool = self._pool
        return list(pool.map(function, values))

    def close(self) -> None:
        """Stop the threads and release the model; a later call loads it again."""
        with self._lock:
            if self._pool is not None:
                self._pool.shutdown()
                self._pool = None
            for loaded in ("_session", "_tokenizer", "passages"):
                self.__dict__.pop(loaded, None)

    def _embed(self, texts: Sequence[str], prefix: str) -> Embedded:
        import numpy as np

        ids = self._tokenizer.ids([prefix + text for text in texts] if prefix else texts)
        session = self._session
        # The longest texts first, so that no thread is busy with a long text while the others have nothing to do.
        order = sorted(range(len(ids)), key=lambda row: -len(ids[row]))
        outcomes = self.map(session.run, [ids[row] for row in order])
        vectors = np.zeros((len(ids), self.dimensions), np.float32)
        failed: dict[int, str] = {}
        for row, outcome in zip(order, outcomes, strict=True):
            if isinstance(outcome, str):
                failed[row] = outcome
            else:
                vectors[row] = outcome
        return Embedded(vectors, dict(sorted(failed.items())))

    # A cached property has no lock since Python 3.12. So each of these takes the lock, and checks whether another
    # thread has just loaded the value.
    @cached_property
    def _directory(self) -> ModelDirectory:
        with self._lock:
            directory = self.__dict__.get("_directory") or open_directory(self._settings.model)
            own, configured = directory.settings.dimensions, self._settings.dimensions
            if configured not in (None, own):
                raise ModelError(
                    f"{directory.name} has {own or 'its own number of'} dimensions, not {configured}. Remove "
                    "embedding.dimensions; for a model of your own, model.json sets them."
                )
            return directory

    @cached_property
    def _tokenizer(self) -> _Tokenizer:
        with self._lock:
            return self.__dict__.get("_tokenizer") or _Tokenizer(self._directory)

    @cached_property
    def _session(self) -> _Session:
        with self._lock:
            return self.__dict__.get("_session") or _Session(self._directory)


class _Tokenizer:
    """Turns texts into token ids, not more than the model reads."""

    def __init__(self, directory: ModelDirectory) -> None:
        from tokenizers import Tokenizer

        path = directory.path / "tokenizer.json"
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception
            raise ModelError(f"{path} cannot be read ({error}). {FETCH_AGAIN}") from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()  # the original model's tokenizer.json cuts at 128 tokens
        self._limit = directory.settings.max_tokens - self._tokenizer.num_special_tokens_to_add(False)
        prefixes = (directory.settings.document_prefix, directory.settings.query_prefix)
        self.budget = self._limit - max(len(spans) for spans in self.spans(prefixes))
        if self.budget < 1:
            raise ModelError(f"{directory.path}: max_tokens leaves no room for text. Raise it in model.json.")

    @cached_property
    def scripts(self) -> frozenset[str]:
        # Decoded, because some vocabularies have pieces of bytes.
        pieces = [[number] for number in range(self._tokenizer.get_vocab_size())]
        return known_scripts(self._tokenizer.decode_batch(pieces))

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        # The "fast" method gives no offsets of tokens. Only spans() and tokens() need them.
        encodings = self._tokenizer.encode_batch_fast([encodable(text) for text in texts], add_special_tokens=False)
        for encoding in encodings:
            encoding.truncate(self._limit)
        return [self._tokenizer.post_process(encoding).ids for encoding in encodings]

    def spans(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        return [encoding.offsets for encoding in self._encode(texts)]

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        encodings = self._encode(texts)
        return [Tokens(encoding.ids, [start for start, _ in encoding.offsets]) for encoding in encodings]

    def _encode(self, texts: Sequence[str]) -> list[Encoding]:
        return self._tokenizer.encode_batch([encodable(text) for text in texts], add_special_tokens=False)


class _Session:
    """Turns token ids into one unit vector, by an ONNX graph with ids and perhaps a mask and token types as inputs."""

    def __init__(self, directory: ModelDirectory) -> None:
        import numpy as np

        path = directory.path / "model.onnx"
        self._session = LocalProvider.open_session(path)
        types = {"tensor(int32)": np.int32, "tensor(int64)": np.int64}
        self._inputs: dict[str, Any] = {}
        for entry in self._session.get_inputs():
            if entry.name not in ("input_ids", "attention_mask", "token_type_ids") or entry.type not in types:
                raise ModelError(f"{path} wants an input {entry.name} ({entry.type}) that Anvil cannot give.")
            self._inputs[entry.name] = types[entry.type]
        outputs = [entry.name for entry in self._session.get_outputs()]
        # An export with pooling in the graph has this output beside the hidden states.
        self._output = "sentence_embedding" if "sentence_embedding" in outputs else outputs[0]
        self._pooling = directory.settings.pooling
        self._dimensions = directory.settings.dimensions
        # By a run, because in the graph the size of an output may be a name instead of a number.
        self.dimensions = len(self._vector([0, 0])) if self._dimensions is None else self._dimensions

    def run(self, ids: list[int]) -> Vector | str:
        """The unit vector, or the reason of a failure."""
        import numpy as np

        try:
            vector = self._vector(ids)
        except Exception as error:  # a text that the runtime rejects must not affect the others
            return f"{type(error).__name__}: {error}"
        return vector if np.isfinite(vector).all() else "the model gave numbers that are not finite"

    def _vector(self, ids: list[int]) -> Vector:
        import numpy as np

        row = np.asarray([ids], np.int64)
        values = {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": np.zeros_like(row)}
        feed = {name: values[name].astype(kind, copy=False) for name, kind in self._inputs.items()}
        output: NDArray[np.float32] = self._session.run([self._output], feed)[0][0]
        if output.ndim == 2 and self._pooling == "none":
            raise ModelError("the model gives a vector a token: set pooling to mean or cls in model.json")
        if output.ndim == 2:
            output = output[0] if self._pooling == "cls" else output.mean(axis=0)
        if self._dimensions is not None and len(output) < self._dimensions:
            raise ModelError(f"the model has {len(output)} dimensions, not {self._dimensions}")
        return _unit(output[: self._dimensions])


def runtime() -> Any:
    """The module onnxruntime, loaded with telemetry off. Environment variables of the user are not changed."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    import onnxruntime

    if QUIET.items() <= os.environ.items():
        onnxruntime.disable_telemetry_events()  # Windows ignores the environment variable
    return onnxruntime


def _unit(vector: Vector) -> Vector:
    import numpy as np

    exact = vector.astype(np.float64)  # a sum of squares in float32 loses digits
    length = float(np.sqrt(np.square(exact).sum()))
    return (exact / max(length, 1e-12)).astype(np.float32)


# --- a model's folder: model.onnx, tokenizer.json, and model.json with the other settings that define a vector -----


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The settings that define a vector, besides the weights and the tokenizer."""

    dimensions: int | None = None
    """The number of components that are used, from the first one on, for models trained for that; None for all."""
    pooling: Pooling = "mean"
    """How (1, tokens, d) becomes (1, d): ``mean`` or ``cls``; ``none`` if the output of the graph is a vector."""
    max_tokens: int = 256
    """Tokens that the model reads, including its special tokens."""
    query_prefix: str = ""
    document_prefix: str = ""

    def __post_init__(self) -> None:
        one_of("pooling", self.pooling, Pooling)
        for key in ("max_tokens", "dimensions"):
            if (value := getattr(self, key)) is not None:
                within(key, value, 1)


@dataclass(frozen=True, slots=True)
class ModelDirectory:
    """A complete model folder, its settings, and the digest of both."""

    path: Path
    name: str
    settings: ModelSettings
    digest: str


def model_digest(path: Path, settings: ModelSettings) -> str:
    """SHA-256 (hex) of ``settings`` and of the folder's model.onnx and tokenizer.json."""
    parts = {name: safe_files.sha256(path / name) for name in ("model.onnx", "tokenizer.json")}
    text = json.dumps({**parts, "settings": asdict(settings)}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def open_directory(model: str) -> ModelDirectory:
    """The folder of a model. ``model``: empty for the bundled model, else the path of a folder or an id of a hub.

    The digest of the bundled model is read from its model.json. Other digests are computed, in about 0.1 s for 100 MB.
    Raises :class:`ModelError` if files are missing or model.json is invalid.
    """
    path = Path(model).expanduser() if model else BUNDLED
    if model and not path.is_dir():
        path = _download(model)
    for name in ("model.onnx", "tokenizer.json"):
        if not (path / name).is_file():
            raise ModelError(f"{path} has no {name}. A model folder holds model.onnx and tokenizer.json.")
    file = path / "model.json"
    entries = json_object(file.read_bytes()) if file.is_file() else {}
    if entries is None:
        raise ModelError(f"{file} must hold one JSON object. Correct or remove it.")
    name = str(entries.get("name") or path.resolve().name)
    # Other keys are ignored, because model hubs have files of this name, too.
    own = {key: entries[key] for key in ModelSettings.__dataclass_fields__ if entries.get(key) is not None}
    try:
        settings = merged(ModelSettings(), own, str(file))
    except ConfigError as error:
        raise ModelError(str(error)) from None
    # The digest in model.json is trusted only for the bundled model. A test compares it with the files.
    digest = str(entries["digest"]) if path == BUNDLED else model_digest(path, settings)
    return ModelDirectory(
        path=path, name=name if path != BUNDLED or model else BUNDLED_MODEL, settings=settings, digest=digest
    )


def _download(model: str) -> Path:
    """Download "org/name" from the model hub into its cache. Returns the folder with both files."""
    advice = (
        "Set embedding.model to a folder that holds model.onnx and tokenizer.json, "
        "or leave it empty for the bundled model."
    )
    looks_like_id = model.count("/") == 1 and not model.startswith((".", "/", "~")) and "\\" not in model
    if not looks_like_id:
        raise ModelError(f"There is no model folder {model}. {advice}")
    if find_spec("huggingface_hub") is None:
        raise ModelError(f"{model} is not a folder and huggingface_hub is not installed. {advice}")
    from huggingface_hub import snapshot_download

    patterns = ["model.onnx", "onnx/model.onnx", "tokenizer.json", "model.json"]  # not the weights for PyTorch
    try:
        root = Path(snapshot_download(model, allow_patterns=patterns))
    except Exception as error:  # from the hub's library, its HTTP client, or the system
        line = str(error).strip().partition("\n")[0][:200]
        raise ModelError(
            f"{model} is not a folder, and the model hub did not provide it ({type(error).__name__}: {line}). {advice}"
        ) from error
    if not (root / "model.onnx").is_file() and (root / "onnx" / "model.onnx").is_file():
        return _complete_onnx_folder(root)
    return root


def _complete_onnx_folder(root: Path) -> Path:
    """Copy the tokenizer into the subfolder in which hub repositories have the ONNX export. Returns this folder."""
    folder = root / "onnx"
    for name in ("tokenizer.json", "model.json"):
        if (root / name).is_file() and not (folder / name).is_file():
            (folder / name).write_bytes((root / name).read_bytes())
    return folder
