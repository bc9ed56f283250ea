"""Real parts for tests of ``anvil deps``: git repositories over smart HTTP, an index of Python packages, an npm
registry, all on loopback, and packages with what they carry."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.support import repositories
from tests.support.index_server import Answer, Server


def repository(folder: Path, files: Mapping[str, str | bytes], tag: str = "v1.0.0", at: int = 1_700_000_000) -> Path:
    """A repository with one more commit of these files, and a tag. Its server can send parts of it."""
    if not (folder / ".git").exists():
        folder.mkdir(parents=True, exist_ok=True)
        repositories.run(folder, "init", "-q", "-b", "main")
        for key in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant", "http.receivepack"):
            repositories.run(folder, "config", key, "false" if key == "http.receivepack" else "true")
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    repositories.run(folder, "add", "--all")
    repositories.run(folder, "commit", "-q", "--allow-empty", "-m", f"release {tag}", at=at)
    repositories.run(folder, "tag", "--force", "--annotate", "-m", tag, tag)
    return folder


@contextmanager
def git_server(
    root: Path, password: str | None = None, sent: list[int] | None = None, refuses: int | None = None
) -> Iterator[str]:
    """The repositories below ``root``, over smart HTTP by git's own CGI program; the address. ``password``: of the user
    ``reader``, without which the server answers 401. ``sent`` gets the bytes of each answer. ``refuses``: the status of
    each answer but that to git's first question, what the server can do."""
    program = Path(repositories.run(root, "--exec-path"), "git-http-backend")
    expected = None
    if password is not None:
        import base64

        expected = "Basic " + base64.b64encode(f"reader:{password}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else the body of an answer waits 40 ms for the client's acknowledgement

        def _run(self) -> None:
            if expected is not None and self.headers.get("Authorization") != expected:
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="git"')
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            path, _, query = self.path.partition("?")
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            environment = {
                "PATH": os.environ["PATH"],
                "HOME": os.environ["HOME"],
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "safe.directory",
                "GIT_CONFIG_VALUE_0": "*",
                "GIT_PROJECT_ROOT": str(root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "REQUEST_METHOD": self.command,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "REMOTE_ADDR": "127.0.0.1",
            }
            done = subprocess.run([program], input=body, capture_output=True, env=environment, check=False)
            if refuses is not None and self.command == "POST":
                self.send_response(refuses)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            head, _, data = done.stdout.partition(b"\r\n\r\n")
            if sent is not None:
                sent.append(len(done.stdout))
            fields = [line.partition(": ") for line in head.decode().split("\r\n") if line]
            status = next((int(value.split()[0]) for name, _, value in fields if name == "Status"), 200)
            self.send_response(status)
            for name, _, value in fields:
                if name != "Status":
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _run

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def wheel(
    name: str, version: str, files: Mapping[str, bytes] | None = None, urls: Mapping[str, str] | None = None
) -> bytes:
    """A wheel with these files, and addresses in its metadata."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    there = {f"{module}/__init__.py": b"raise SystemExit('code of a package was run')\n", **(files or {})}
    there[f"{info}/METADATA"] = metadata(name, version, urls).encode()
    there[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    there[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*there, f"{info}/RECORD"]).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, data in there.items():
            archive.writestr(zipfile.ZipInfo(path, (2024, 1, 1, 0, 0, 0)), data)
    return buffer.getvalue()


def metadata(name: str, version: str, urls: Mapping[str, str] | None = None) -> str:
    """A ``METADATA`` file."""
    lines = [f"Project-URL: {label}, {url}" for label, url in (urls or {}).items()]
    return "\n".join(["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *lines, "", "A package.", ""])


def tarball(package: Mapping[str, Any], files: Mapping[str, bytes] | None = None) -> bytes:
    """An npm package."""
    buffer = io.BytesIO()
    there = {"package.json": json.dumps(package).encode(), **(files or {})}
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, data in there.items():
            member = tarfile.TarInfo(f"package/{path}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def publish_wheel(
    server: Server, name: str, version: str, data: bytes, html: bool = False, with_metadata: bool = True
) -> None:
    """A version in the index at ``/simple/``, with the wheel's metadata by its side, unless ``with_metadata`` is
    False."""
    module = name.replace("-", "_")
    file = f"{module}-{version}-py3-none-any.whl"
    sha256 = hashlib.sha256(data).hexdigest()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        text = archive.read(f"{module}-{version}.dist-info/METADATA")
    server.answers[f"/files/{file}"] = Answer(data)
    if with_metadata:
        server.answers[f"/files/{file}.metadata"] = Answer(text)
    if html:
        attribute = ' data-core-metadata="true"' if with_metadata else ""
        link = f'<a href="../../files/{file}#sha256={sha256}"{attribute}>{file}</a>'
        page = f"<!DOCTYPE html><html><body>{link}</body></html>".encode()
        server.answers[f"/simple/{name}/"] = Answer(page, headers={"Content-Type": "text/html"})
        return
    row = {"filename": file, "url": f"../../files/{file}", "hashes": {"sha256": sha256}, "core-metadata": with_metadata}
    body = json.dumps({"meta": {"api-version": "1.1"}, "name": name, "files": [{**row, "size": len(data)}]}).encode()
    kind = {"Content-Type": "application/vnd.pypi.simple.v1+json"}
    server.answers[f"/simple/{name}/"] = Answer(body, headers=kind)


def publish_npm(server: Server, package: Mapping[str, Any], data: bytes) -> None:
    """A version in the registry at ``/npm/``."""
    import base64

    name, version = package["name"], package["version"]
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
    place = f"/npm/{name.replace('/', '%2F')}"
    tarball = f"{server.url}{place}/-/{version}.tgz"
    server.answers[f"{place}/-/{version}.tgz"] = Answer(data)
    server.json(f"{place}/{version}", {**package, "dist": {"tarball": tarball, "integrity": integrity}})
