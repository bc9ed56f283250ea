"""``POST /upload``: a file into the library from a client that shares no disk with the server.

The request is a multipart form with ``file``, and optionally ``library`` and ``metadata`` (a JSON object as text). It
is written to the disk while it arrives, and refused as soon as it exceeds the limit.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any, BinaryIO

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Message, Receive

from anvil.errors import AnvilError, ConfigError, DocumentTooLarge, UnsupportedFormat
from anvil.formats.data_formats import json_object, plain
from anvil.index_file.table_rows import DEFAULT_LIBRARY
from anvil.library.document_formats import file_name
from anvil.library.library import Library
from anvil.library.metadata_filter import MAX_METADATA_BYTES
from anvil.library.settings import LibraryOptions
from anvil.server.logs import log
from anvil.server.tool_calls import ThreadBridge

FORM_OVERHEAD_BYTES = 256 * 1024
"""Bytes of a request in addition to the file: the other fields and the boundaries."""
STATUSES: tuple[tuple[type[AnvilError], int], ...] = (
    (ConfigError, 400),
    (DocumentTooLarge, 413),
    (UnsupportedFormat, 422),
    (AnvilError, 500),
)
"""(error, HTTP status). The first row that fits counts: the last error is the base class of the others."""


async def answer(bridge: ThreadBridge, request: Request) -> JSONResponse:
    """Ingest the uploaded file: the result of ``ingest_file``, or an error with a status of :data:`STATUSES`."""
    library: Library = bridge.target
    try:
        limit = library.config.table(LibraryOptions).max_upload_bytes
        return JSONResponse(plain(await _ingest_form(bridge, request, limit)))
    except AnvilError as error:
        status = next(status for kind, status in STATUSES if isinstance(error, kind))
        return _refusal(status, str(error))
    except HTTPException as error:  # Starlette could not parse the form
        return _refusal(400, f"The form cannot be read: {error.detail}")
    except Exception as error:
        log.exception("upload failed")
        return _refusal(500, f"The upload failed inside the server ({type(error).__name__}). Its log says where.")


async def _ingest_form(bridge: ThreadBridge, request: Request, max_bytes: int) -> Any:
    # By the header, a form that is too large is refused unread. But the header may be missing or wrong.
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > max_bytes + FORM_OVERHEAD_BYTES:
        raise _too_large(max_bytes)
    bounded = Request(request.scope, _with_limit(request.receive, max_bytes))
    async with bounded.form(max_files=1, max_fields=8, max_part_size=4 * MAX_METADATA_BYTES) as form:
        file = form.get("file")
        if file is None or isinstance(file, str) or not file_name(file.filename or ""):
            raise ConfigError("The form has no file. Send multipart/form-data with a field 'file'.")
        if (file.size or 0) > max_bytes:
            raise _too_large(max_bytes)
        if _is_blank(file.file):
            raise ConfigError("The file is empty. Send a file with text, or delete the document with delete_document.")
        library = _text(form.get("library")) if "library" in form else DEFAULT_LIBRARY
        text = _text(form.get("metadata"))
        metadata = json_object(text) if text.strip() else None
        if text.strip() and metadata is None:
            raise ConfigError("metadata must be a JSON object, as text.")
        name, content = file_name(file.filename or ""), file.file
        return await bridge.call("upload", lambda target: _ingest(target, content, name, library, metadata))


def _is_blank(content: BinaryIO) -> bool:
    """Whether a file has only white space. It is at its start before and after the call."""
    blank = True
    while blank and (block := content.read(1 << 16)):
        blank = not block.strip()
    content.seek(0)
    return blank


def _ingest(target: Library, content: BinaryIO, name: str, library: str, metadata: dict[str, Any] | None) -> Any:
    with tempfile.TemporaryDirectory(prefix="anvil-") as folder:
        path = Path(folder, "document")
        with path.open("wb") as file:
            shutil.copyfileobj(content, file)
        return target.ingest_as(path, name, library, metadata)


def _with_limit(receive: Receive, max_bytes: int) -> Receive:
    """``receive`` with a limit: it raises if the body is larger than a form with a file of ``max_bytes`` can be."""
    received_bytes = 0

    async def bounded() -> Message:
        nonlocal received_bytes
        message = await receive()
        received_bytes += len(message.get("body", b""))
        if received_bytes > max_bytes + FORM_OVERHEAD_BYTES:
            raise _too_large(max_bytes)
        return message

    return bounded


def _too_large(max_bytes: int) -> DocumentTooLarge:
    return DocumentTooLarge(f"The file is larger than {max_bytes:,} bytes (library.max_upload_bytes).")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _refusal(status: int, message: str) -> JSONResponse:
    return JSONResponse({"status": "error", "error": message}, status)
