"""Download of a document from the web to a temporary file, with its type and date.

The URL is not trusted: only public addresses are used, unless the user allows others (:class:`DocumentPolicy`). Size,
time, redirects and content types are limited.
"""

from __future__ import annotations

import contextlib
import tempfile
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from anvil.errors import BuildError, DocumentRejected, DocumentTooLarge, FetchError, UnsupportedFormat
from anvil.formats import characters
from anvil.http.allowed_servers import Allowed, DocumentPolicy, anything, is_public
from anvil.http.client import HttpClient, Limits, Reply, TimedOut, attachment_name, content_type, http_date
from anvil.index_file.connection import FREE_TEMPORARY
from anvil.library.document_formats import BY_CONTENT_TYPE, BY_ENDING, FileKind, file_name, type_of
from anvil.library.settings import LibraryOptions
from anvil.settings import index_url

MAX_SHOWN_CHARS = 200
"""Characters of a URL in a message."""
VAGUE = ("", "text/plain", "application/octet-stream", "binary/octet-stream")
"""Content types that servers send for any file. Then the ending of the name decides."""
_PDF = b"%PDF-"


@dataclass(frozen=True, slots=True)
class Download:
    """A downloaded file. ``last_modified``: ISO 8601 in UTC; None if the server does not say."""

    path: Path
    kind: FileKind
    last_modified: str | None


@contextlib.contextmanager
def downloaded(url: str, options: LibraryOptions, allowed: Allowed | None = None) -> Iterator[Download]:
    """Download a document to a file that exists within this context.

    ``allowed``: which addresses can be used (default: from ``options``). Raises :class:`ConfigError` if the URL is not
    valid, and :class:`DocumentRejected` if the document cannot be fetched or is refused.
    """
    policy = DocumentPolicy(allowed or (anything if options.allow_private_urls else is_public))
    seconds = options.download_seconds
    limits = Limits(connect=seconds, answer=seconds, pause=seconds, grace=seconds, whole=seconds, total=seconds)
    with tempfile.TemporaryDirectory(prefix="anvil-") as folder:
        try:
            with HttpClient(limits, policy=policy) as http, http.get(url) as reply:
                if reply.status != 200:
                    shown = _shown(reply.url)
                    raise DocumentRejected(f"{shown} has status {reply.status}. Open it in a browser to see why.")
                download = _save(reply, url, Path(folder, "document"), options.max_file_bytes)
        except TimedOut:
            raise DocumentTooLarge(
                f"{_shown(url)} took longer than {seconds:g} s (library.download_seconds)."
            ) from None
        except FetchError as error:
            raise DocumentRejected(str(error)) from None
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise BuildError(f"The download cannot be written ({reason}). {FREE_TEMPORARY}") from None
        yield download


def _save(reply: Reply, url: str, target: Path, max_bytes: int) -> Download:
    media_type, charset = content_type(reply.headers)
    # The address before the redirects, too: they often lead to a store of files, whose addresses have no names.
    names = (attachment_name(reply.headers), *(urllib.parse.urlsplit(address).path for address in (reply.url, url)))
    endings = [type_of(name) for name in names]
    file_type = _type(media_type, next((ending for ending in endings if ending in BY_ENDING), endings[1]))
    length = reply.length or 0
    sent = f"{length:,} bytes; the limit is {max_bytes:,}" if length > max_bytes else f"more than {max_bytes:,} bytes"
    too_large = DocumentTooLarge(f"{reply.host} sends {sent} (library.max_file_bytes).")
    with target.open("wb") as file:
        file.writelines(reply.chunks(max_bytes, too_large))
    with target.open("rb") as file:
        if file.read(len(_PDF)) == _PDF:  # a script that sends files often gives the content type of web pages
            file_type = "pdf"
    # Only the header may name the encoding, and the reader gets the file alone. So the file is stored as UTF-8.
    codec = characters.known_encoding(charset) if charset else None
    format_ = BY_ENDING.get(file_type)
    if format_ is not None and format_.content == "text" and codec and codec != "utf-8":
        with contextlib.suppress(UnicodeDecodeError):  # the header names a wrong encoding
            target.write_text(target.read_bytes().decode(codec), encoding="utf-8", newline="")
    return Download(target, FileKind(file_type, file_name(url)), http_date(reply.headers.get("last-modified")))


def _type(media_type: str, ending: str) -> str:
    if media_type in VAGUE and ending:
        return ending
    if media_type in BY_CONTENT_TYPE:
        return BY_CONTENT_TYPE[media_type]
    if ending in BY_ENDING:  # a type may have other names, such as text/x-rst or application/x-pdf
        return ending
    raise UnsupportedFormat(
        f"Content of type {media_type or 'unknown'} is not supported. Supported are web pages, text and documents."
    )


def _shown(url: str) -> str:
    return index_url.without_secrets(url)[:MAX_SHOWN_CHARS]
