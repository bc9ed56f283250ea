"""``POST /upload``: a file into the library from a client that shares no disk with the server.

It is a multipart form: ``file``, and perhaps ``library`` and ``metadata``, a JSON object as text. What comes in is
written to disk as it comes, and no further than the limit.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any, BinaryIO

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Message, Receive

from anvil.errors import AnvilError, ConfigError, DocumentTooLarge, UnsupportedFormat
from anvil.filters import METADATA_BYTES
from anvil.ingesting import file_name
from anvil.library import DEFAULT, Library
from anvil.server.crossing import Crossing
from anvil.server.logs import log
from anvil.server.schemas import plain

ROOM = 256 * 1024
"""Bytes of a request beyond the file's: the other fields, and what parts them."""
STATUSES: tuple[tuple[type[AnvilError], int], ...] = (
    (ConfigError, 400), (DocumentTooLarge, 413), (UnsupportedFormat, 422), (AnvilError, 500),
)  # fmt: skip


class Upload:
    """The route, over one library."""

    def __init__(self, crossing: Crossing) -> None:
        self._crossing = crossing

    async def answer(self, request: Request) -> JSONResponse:
        """As ``ingest_file`` answers, or an error with a status that fits."""
        library: Library = self._crossing.subject
        try:
            return JSONResponse(plain(await self._taken_in(request, library.config.library.max_upload_bytes)))
        except AnvilError as error:
            status = next(status for kind, status in STATUSES if isinstance(error, kind))
            return _refusal(status, str(error))
        except HTTPException as error:  # Starlette's, of a form that is none
            return _refusal(400, f"The form cannot be read: {error.detail}")
        except Exception as error:
            log.exception("upload failed")
            return _refusal(500, f"The upload failed inside the server ({type(error).__name__}). Its log says where.")

    async def _taken_in(self, request: Request, most: int) -> Any:
        length = request.headers.get("content-length", "")
        if length.isdigit() and int(length) > most + ROOM:
            raise _too_large(most)
        bounded = Request(request.scope, _counted(request.receive, most))
        async with bounded.form(max_files=1, max_fields=8, max_part_size=4 * METADATA_BYTES) as form:
            file = form.get("file")
            if file is None or isinstance(file, str) or not file_name(file.filename or ""):
                raise ConfigError("The form has no file. Send multipart/form-data with a field 'file'.")
            if (file.size or 0) > most:
                raise _too_large(most)
            library, metadata = _text(form.get("library")) or DEFAULT, _object(_text(form.get("metadata")))
            name, content = file_name(file.filename or ""), file.file
            return await self._crossing.ask("upload", lambda held: _ingest(held, content, name, library, metadata))


def _ingest(held: Library, content: BinaryIO, name: str, library: str, metadata: dict[str, Any] | None) -> Any:
    with tempfile.TemporaryDirectory(prefix="anvil-") as folder:
        path = Path(folder, "document")
        with path.open("wb") as file:
            shutil.copyfileobj(content, file)
        return held.ingest_as(path, name, library, metadata)


def _counted(receive: Receive, most: int) -> Receive:
    """``receive`` that gives up when more comes than a file of ``most`` bytes needs."""
    come = 0

    async def counted() -> Message:
        nonlocal come
        message = await receive()
        come += len(message.get("body", b""))
        if come > most + ROOM:
            raise _too_large(most)
        return message

    return counted


def _too_large(most: int) -> DocumentTooLarge:
    return DocumentTooLarge(f"The file is larger than {most:,} bytes (library.max_upload_bytes).")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _object(text: str) -> dict[str, Any] | None:
    if not text.strip():
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ConfigError("metadata must be a JSON object, as text.")
    return found


def _refusal(status: int, message: str) -> JSONResponse:
    return JSONResponse({"status": "error", "error": message}, status)
