"""A real HTTP server on loopback for tests: files as web servers give them, faults as networks have them, and what
GitHub's API is documented to say."""

from __future__ import annotations

import hashlib
import io
import json
import re
import socket
import ssl
import stat
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from anvil.index_file import publish


@dataclass
class Answer:
    """The response for a path. ``cuts``: the connection ends after this number of bytes of the body, once for each;
    ``drip``: seconds before each byte of the body; ``drip_headers``: before each byte of the headers."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    etag: bool = True
    ranges: bool = True
    cuts: list[int] = field(default_factory=list)
    drip: float = 0.0
    drip_headers: float = 0.0
    asked: Callable[[], object] = lambda: None
    """Called at a request for the path."""


@dataclass
class Request:
    """A request."""

    path: str
    headers: Message


class _Quiet(ThreadingHTTPServer):
    """Logs nothing about clients that disconnect, such as those that do not trust a certificate."""

    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        pass


class Server:
    """Paths (with their query, or without) -> answers; the requests that came, in order."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.answers: dict[str, Answer] = {}
        self.requests: list[Request] = []
        self._http: ThreadingHTTPServer | None = None
        self.port = 0

    def start(self) -> Server:
        """Start, on the same port as before."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # else the body of an answer waits 40 ms for the client's acknowledgement

            def do_GET(self) -> None:
                outer.requests.append(Request(self.path, self.headers))
                path = self.path if self.path in outer.answers else self.path.partition("?")[0]
                self.close_connection = True
                with suppress(OSError):  # the client had enough
                    respond(self, outer.answers.get(path, Answer(b"not found", 404)))

            def log_message(self, *_: Any) -> None:
                pass

        self._http = _Quiet(("127.0.0.1", self.port), Handler)
        if self._tls is not None:
            plain = self._http.socket
            self._http.socket = self._tls.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
        self.port = self._http.server_address[1]
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def stop(self) -> None:
        """Stop, so that the server is unreachable."""
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()
            self._http = None

    @property
    def url(self) -> str:
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}"

    def asked(self, path: str) -> list[Request]:
        """The requests for a path, whatever their query."""
        return [each for each in self.requests if each.path.partition("?")[0] == path]

    def json(self, path: str, value: Any, **more: Any) -> None:
        """Answer with JSON."""
        self.answers[path] = Answer(json.dumps(value).encode(), **more)

    def publish(self, index: Path, folder: str = "/anvil/") -> None:
        """An index and its manifest, as a site build leaves them."""
        beside = publish.write_manifest(index)
        self.answers[f"{folder}index.db"] = Answer(index.read_bytes())
        self.answers[f"{folder}index.json"] = Answer(beside.read_bytes())


def respond(handler: BaseHTTPRequestHandler, answer: Answer) -> None:
    """One answer, with the conditions and ranges of HTTP, and its faults."""
    answer.asked()
    status, body, headers = answer.status, answer.body, dict(answer.headers)
    tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
    if status == 200 and answer.etag:
        headers["ETag"] = tag
        if handler.headers.get("If-None-Match") == tag:
            status, body = 304, b""
    modified = headers.get("Last-Modified")
    if status == 200 and modified and handler.headers.get("If-Modified-Since") == modified:
        status, body = 304, b""
    asked = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range", ""))
    if status == 200 and answer.ranges and asked and handler.headers.get("If-Range", tag) == tag:
        start = int(asked[1])
        status = 206 if start < len(body) else 416
        span = f"{start}-{len(body) - 1}" if status == 206 else "*"
        headers["Content-Range"] = f"bytes {span}/{len(body)}"
        body = body[start:] if status == 206 else b""
    headers.setdefault("Content-Length", str(len(body)))  # an empty one of the test's is left out
    head = f"HTTP/1.1 {status} OK\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items() if value)
    _sent(handler, (head + "Connection: close\r\n\r\n").encode(), answer.drip_headers)
    cut = answer.cuts.pop(0) if answer.cuts and status in (200, 206) else None
    _sent(handler, body[:cut], answer.drip)
    if cut is not None:
        handler.wfile.flush()
        handler.connection.shutdown(socket.SHUT_RDWR)


def _sent(handler: BaseHTTPRequestHandler, data: bytes, drip: float) -> None:
    if not drip:
        handler.wfile.write(data)
        return
    for byte in data:
        time.sleep(drip)
        handler.wfile.write(bytes([byte]))
        handler.wfile.flush()


@contextmanager
def serving(tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """A running server, over TLS if a context is given."""
    server = Server(tls).start()
    try:
        yield server
    finally:
        server.stop()


def packed(files: dict[str, bytes], *, link: str | None = None) -> bytes:
    """A ZIP archive as an upload makes it; ``link``: the member that is a symbolic link."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            member = zipfile.ZipInfo(name)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = (stat.S_IFLNK if name == link else stat.S_IFREG | 0o644) << 16
            archive.writestr(member, data)
    return whole.getvalue()


class GitHub:
    """The API of one repository, ``owner/repo``, on a server; archives are given by another host's signed URLs."""

    def __init__(self, api: Server, storage: Server) -> None:
        self.api, self.storage = api, storage
        self.artifacts: list[dict[str, Any]] = []
        self.root = "/repos/owner/repo"
        self.page = 100
        api.json(self.root, {"id": 1, "default_branch": "main"})
        self.list()

    def artifact(
        self,
        commit: str,
        archive: bytes,
        *,
        branch: str = "main",
        name: str = "docs-index",
        expired: bool = False,
        created: str = "2026-01-01T00:00:00Z",
        fork: bool = False,
        digest: str | None = "right",
    ) -> int:
        """Upload an artifact. Returns its id."""
        number = 100 + len(self.artifacts)
        told: dict[str, Any] = {
            "id": number,
            "node_id": "x",
            "name": name,
            "size_in_bytes": len(archive),
            "expired": expired,
            "url": f"{self.api.url}{self.root}/actions/artifacts/{number}",
            "archive_download_url": f"{self.api.url}{self.root}/actions/artifacts/{number}/zip",
            "created_at": created,
            "updated_at": created,
            "expires_at": "2026-04-01T00:00:00Z",
            "workflow_run": {
                "id": 9,
                "repository_id": 1,
                "head_repository_id": 2 if fork else 1,
                "head_branch": branch,
                "head_sha": commit,
            },
        }
        if digest:
            told["digest"] = f"sha256:{hashlib.sha256(archive).hexdigest() if digest == 'right' else digest}"
        self.artifacts.append(told)
        signed = f"/blobs/{number}?sig=SECRET-SIGNATURE"
        self.storage.answers[signed] = Answer(archive)
        zipped = f"{self.root}/actions/artifacts/{number}/zip"
        self.api.answers[zipped] = (
            Answer(b'{"message": "Artifact has expired"}', 410)
            if expired
            else Answer(b"", 302, {"Location": f"{self.storage.url.replace('127.0.0.1', 'localhost')}{signed}"})
        )
        self.list()
        return number

    def list(self) -> None:
        """The list, newest first, in pages that name the next one."""
        path = f"{self.root}/actions/artifacts"
        newest = sorted(self.artifacts, key=lambda each: (each["created_at"], each["id"]), reverse=True)
        for name in {"", *(each["name"] for each in newest), "docs-index"}:
            found = [each for each in newest if not name or each["name"] == name]
            query = f"name={name}&per_page=100" if name else "per_page=100"
            pages = max(1, -(-len(found) // self.page))
            for number in range(1, pages + 1):
                at = f"{path}?{query}" + (f"&page={number}" if number > 1 else "")
                following = f'<{self.api.url}{path}?{query}&page={number + 1}>; rel="next", <x>; rel="last"'
                self.api.json(
                    at,
                    {"total_count": len(found), "artifacts": found[(number - 1) * self.page : number * self.page]},
                    headers={"Link": following} if number < pages else {},
                )

    def release(self, tag: str, files: dict[str, bytes], *, digests: bool = True) -> None:
        """A release with assets, which storage gives on a redirect."""
        assets = []
        for number, (name, data) in enumerate(files.items(), 500 + 10 * len(self.api.answers)):
            asset: dict[str, Any] = {"id": number, "name": name, "size": len(data), "state": "uploaded"}
            if digests:
                asset["digest"] = f"sha256:{hashlib.sha256(data).hexdigest()}"
            assets.append(asset)
            self.storage.answers[f"/assets/{number}"] = Answer(data)
            self.api.answers[f"{self.root}/releases/assets/{number}"] = Answer(
                b"", 302, {"Location": f"{self.storage.url}/assets/{number}?sig=SECRET-SIGNATURE"}
            )
        for place in (f"tags/{tag}", "latest"):
            self.api.json(f"{self.root}/releases/{place}", {"tag_name": tag, "assets": assets})
