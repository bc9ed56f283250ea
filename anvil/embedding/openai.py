"""Embedding by OpenAI's API, or by a server with the same API.

OpenAI's library repeats a failed request after a pause. Texts that still fail are reported, and the vectors of the
others are kept. The key is in no message, log line or repr.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from anvil.embedding.provider import Embedded, Vector
from anvil.errors import ConfigError, ProviderError
from anvil.formats.characters import encodable
from anvil.http.client import install_log_filter, unlogged
from anvil.settings import index_url
from anvil.settings.schema import BASE_URL, KEY, EmbeddingSettings
from anvil.system import installation

DEFAULT_MODEL = "text-embedding-3-small"
DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}

SCHEME = "openai-embeddings/1"
"""Part of the digest. Raise the number if the request for a text or the processing of the response changes."""

MAX_INPUTS = 2048
"""The API's limit for the texts of one request. Other servers have lower limits, and tell so only by refusing."""
MAX_REQUEST_TOKENS = 200_000
"""Estimated tokens of one request. The API accepts about 300,000; a rejected request is split in two."""

MAX_ATTEMPTS = 3
AFTER_ALL = f" ({MAX_ATTEMPTS} tries)"
"""The end of the reason if a server is down. If it refuses a text, there is one try."""
TIMEOUT_S = 120.0

# Each piece has at most four UTF-8 bytes. A token of a byte-level BPE has at least one byte, so a text of n pieces has
# at most 4 n tokens. So no text exceeds the model's 8,191 tokens if it has a quarter as many pieces. English has about
# one token for each piece.
_PIECE = re.compile(r"[\x00-\x7f]{1,4}|[\x80-\u07ff]{1,2}|[^\x00-\u07ff]", re.DOTALL)
_KEY_LIKE = re.compile(r"\bsk-[\w*.-]+")


class OpenAIProvider:
    """text-embedding-3-small (1,536 dimensions), or the model that the settings name."""

    name = "openai"
    scripts = None
    passages = None
    max_tokens = 8191 // 4

    def __init__(self, settings: EmbeddingSettings) -> None:
        """Opens no connection and needs no key yet. Raises :class:`ConfigError` if the model's dimensions are unknown,
        or if the key should not be sent to the address."""
        url = settings.base_url or os.environ.get(BASE_URL, "").strip()
        self._url = index_url.service(url, "embedding.base_url" if settings.base_url else BASE_URL) if url else None
        self.server = self._url or ""
        self.model = settings.model or DEFAULT_MODEL
        model_dimensions = DIMENSIONS.get(self.model)
        dimensions = settings.dimensions or model_dimensions
        if dimensions is None:
            raise ConfigError(f"The dimensions of {self.model} are not known. Set embedding.dimensions.")
        self.dimensions = dimensions
        self.digest = hashlib.sha256(f"{SCHEME}\n{self.model}\n{dimensions}".encode()).hexdigest()
        # The models of other servers may refuse the parameter, so it is sent only for OpenAI's models.
        self._shortened = model_dimensions is not None and dimensions != model_dimensions
        self._settings = settings
        self._lock = threading.Lock()
        self._connected: Any = None
        self._key = ""
        self._max_inputs = MAX_INPUTS
        """The number of texts that this server accepts in one request, as far as it is known."""

    def warm(self) -> None:
        """Does nothing, because there is no model to load."""

    def token_spans(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """The spans of pieces of at most four bytes. ``max_tokens`` pieces are never too long for the model."""
        return [[piece.span() for piece in _PIECE.finditer(text)] for text in texts]

    def embed(self, texts: Sequence[str]) -> Embedded:
        """The unit vectors (n, dimensions). The end of a text with more than ``max_tokens`` is ignored.

        Raises :class:`ProviderError` if no text can succeed: no key, key refused, quota used up, unknown model. If some
        texts have succeeded before, it is not raised: all others fail with that reason, without a request.
        """
        import numpy as np

        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        failed: dict[int, str] = {}
        if texts:
            self.client()
            inputs = [self._input(text) for text in texts]
            try:
                for rows in self._batches(inputs):
                    self._embed_rows(inputs, rows, vectors, failed)
            except ProviderError as error:
                embedded = vectors.any(axis=1)
                if not embedded.any():  # else vectors that were paid for would be lost
                    raise
                failed = {int(row): failed.get(int(row), str(error)) for row in np.flatnonzero(~embedded)}
        is_down = any(reason.endswith(AFTER_ALL) for reason in failed.values())
        return Embedded(vectors, dict(sorted(failed.items())), is_down=is_down)

    def embed_query(self, text: str) -> Vector:
        """The unit vector (dimensions,) of a query. Raises :class:`ProviderError` if it failed."""
        result = self.embed([text])
        for reason in result.failed.values():
            raise ProviderError(f"The query could not be embedded: {reason}")
        vector: Vector = result.vectors[0]
        return vector

    def close(self) -> None:
        """Close the connection. A later call opens another one."""
        with self._lock:
            if self._connected is not None:
                self._connected.close()
                self._connected = None

    def _input(self, text: str) -> str:
        text = encodable(text)
        spans = self.token_spans([text])[0]
        # The API refuses an empty input.
        return text[: spans[: self.max_tokens][-1][1]] if spans else " "

    def _embed_rows(self, inputs: Sequence[str], rows: range, vectors: Vector, failed: dict[int, str]) -> None:
        """Fill ``vectors`` or ``failed`` for ``rows``.

        A rejected batch is split in halves, until the bad text is alone. If no text is bad, the batch was too large,
        and later batches are not larger than its halves."""
        openai = _library()
        is_rejected = False
        if len(rows) <= self._max_inputs:
            try:
                vectors[rows.start : rows.stop] = self._request([inputs[row] for row in rows])
                return
            except openai.APIError as error:
                if getattr(error, "status_code", None) not in (400, 413, 422):
                    failed.update(dict.fromkeys(rows, f"{self._reason(error)}{AFTER_ALL}"))
                    return
                if len(rows) == 1:
                    if _parameter(error) not in (None, "input"):  # the model or its dimensions, so that all texts fail
                        raise ProviderError(self._reason(error)) from None
                    failed[rows[0]] = self._reason(error)
                    return
                is_rejected = True
        middle = rows.start + len(rows) // 2
        self._embed_rows(inputs, range(rows.start, middle), vectors, failed)
        self._embed_rows(inputs, range(middle, rows.stop), vectors, failed)
        if is_rejected and failed.keys().isdisjoint(rows):
            self._max_inputs = min(self._max_inputs, len(rows) // 2)

    def _batches(self, inputs: Sequence[str]) -> Iterator[range]:
        """Ranges of rows within the server's limits for the texts and tokens of one request."""
        start, tokens = 0, 0
        for row, text in enumerate(inputs):
            count = sum(1 for _ in _PIECE.finditer(text))
            if row > start and (row - start >= self._max_inputs or tokens + count > MAX_REQUEST_TOKENS):
                yield range(start, row)
                start, tokens = row, 0
            tokens += count
        yield range(start, len(inputs))

    def _request(self, inputs: list[str]) -> Vector:
        """A batch's vectors (n, dimensions). The library retries on rate limits, server errors and lost connections."""
        openai = _library()
        extra = {"dimensions": self.dimensions} if self._shortened else {}
        try:
            with unlogged():
                answer = self.client().embeddings.create(model=self.model, input=inputs, **extra)
        except (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError) as error:
            raise ProviderError(self._reason(error)) from None
        except openai.RateLimitError as error:
            if getattr(error, "code", None) == "insufficient_quota":  # the same status as for too many requests
                raise ProviderError(self._reason(error)) from None
            raise
        return self._vectors(answer.data, len(inputs))

    def _vectors(self, data: Sequence[Any], count: int) -> Vector:
        import numpy as np

        # Sorted, because the API promises an index with each vector, but no order.
        values = np.array([entry.embedding for entry in sorted(data, key=lambda entry: entry.index)], np.float64)
        if values.shape != (count, self.dimensions):
            raise ProviderError(
                f"{self.model} answered with vectors of shape {values.shape}, not {(count, self.dimensions)}. "
                "Set embedding.dimensions to what the model gives."
            )
        lengths = np.sqrt(np.square(values).sum(axis=1, keepdims=True))
        unit: Vector = (values / np.maximum(lengths, 1e-12)).astype(np.float32)
        return unit

    def client(self) -> Any:
        """OpenAI's client. No request is made. Raises :class:`ProviderError` if there is no key or no package."""
        with self._lock:
            if self._connected is None:
                self._key = api_key(self._settings)
                if not self._key:
                    raise ProviderError("OpenAI API key required. Set embedding.api_key or OPENAI_API_KEY.")
                install_log_filter()
                self._connected = _library().OpenAI(
                    api_key=self._key,
                    base_url=self._url,
                    max_retries=MAX_ATTEMPTS - 1,  # after the pause of the server's Retry-After, else growing pauses
                    timeout=TIMEOUT_S,
                )
            return self._connected

    def _reason(self, error: Any) -> str:
        """The message for an error of the library, without anything that looks like a key."""
        status = getattr(error, "status_code", None)
        if status in (401, 403):
            return f"OpenAI refused the API key (HTTP {status}). Check OPENAI_API_KEY or embedding.api_key."
        if status is None:
            where = index_url.without_secrets(str(self.client().base_url)).rstrip("/")
            return f"No connection to {where}: {type(error).__name__}."
        body = error.body if isinstance(error.body, dict) else {"message": error.body}  # other servers may send a text
        message = " ".join(str(body.get("message") or body.get("detail") or "").split())[:300]
        # OpenAI's message about a wrong key contains a part of it.
        message = _KEY_LIKE.sub("[key]", message.replace(self._key, "[key]"))
        return f"OpenAI answered HTTP {status}" + (f": {message}" if message else "")


def api_key(settings: EmbeddingSettings) -> str:
    """The key from the settings or the environment; empty if there is none."""
    return settings.api_key or os.environ.get(KEY, "")


def _parameter(error: Any) -> str | None:
    """The name of the request parameter that the API rejects; None if it names none."""
    name = getattr(error, "param", None)
    return name.partition("[")[0].partition(".")[0] if isinstance(name, str) and name else None


def _library() -> Any:
    try:
        return import_module("openai")
    except ModuleNotFoundError as error:
        raise ProviderError(
            f"The openai package is not installed. Run: {installation.install_extras('openai')}"
        ) from error
