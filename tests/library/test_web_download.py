from __future__ import annotations

import gzip
import http.server
import ipaddress
import socket
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil.errors import AnvilError, BuildError, ConfigError, DocumentRejected, DocumentTooLarge, UnsupportedFormat
from anvil.http.allowed_servers import Address, anything, is_public
from anvil.library.settings import LibraryOptions
from anvil.library.web_download import downloaded

OPTIONS = LibraryOptions(download_seconds=20)
HERE, ELSEWHERE = "127.0.0.1", "127.0.0.2"


def only_here(address: Address) -> bool:
    """Stands for "public": one loopback address is, the next is not."""
    return str(address) == HERE


class Pages(http.server.BaseHTTPRequestHandler):
    """Answers by path."""

    server: http.server.HTTPServer

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        asked.append((str(self.server.server_address[0]), self.path, self.headers["Host"]))
        step = self.path.split("?")[0].split("/")[1]
        if step == "away":
            self.head(302, location=f"http://{ELSEWHERE}:{self.server.server_port}/page")
        elif step == "near":
            self.head(301, location="/page")
        elif step == "file":
            self.head(302, location="file:///etc/passwd")
        elif step == "loop":
            self.head(302, location="/loop")
        elif step == "drip":
            self.head(200, content_type="text/plain")
            self.endlessly(b"x")
        elif step == "headers":
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            self.endlessly(b"X-More: y\r\n")
        elif step == "flood":
            self.head(200, content_type="text/plain")
            self.endlessly(b"x" * 100_000, 0)
        elif step == "huge":
            self.head(200, content_type="text/plain", content_length="999999999999")
        elif step == "bomb":
            body = b"0" * 10_000_000
            for _ in range(5):
                body = gzip.compress(body)
            self.head(200, content_type="text/plain", content_encoding="gzip, gzip, gzip, gzip, gzip")
            self.wfile.write(body)
        elif step == "exe":
            self.head(200, content_type="application/x-msdownload")
        elif step == "missing":
            self.head(404)
        elif step == "latin":
            late = "Fri, 31 Dec 9999 23:59:59 -1200"  # in UTC no calendar has it
            self.head(200, content_type="text/html; charset=iso-8859-1", last_modified=late)
            self.wfile.write(b"<p>caf\xe9</p>")
        elif step == "said":
            self.head(200, content_type=said[0])
            self.wfile.write(said[1])
        elif step == "release":
            self.head(302, location="/stored/5f1c" if self.path.endswith("pdf") else "/named")
        elif step in ("stored", "named"):
            named = {"content_disposition": "attachment; filename*=UTF-8''%C3%BCber.docx"} if step == "named" else {}
            self.head(200, content_type="application/octet-stream", **named)
            self.wfile.write(b"a file")
        elif step == "notes.md":
            self.head(200, content_type="application/octet-stream", last_modified="Wed, 21 Oct 2015 07:28:00 GMT")
            self.wfile.write(b"# Notes")
        else:
            self.head(200, content_type="text/html")
            self.wfile.write(b"<h1>Page</h1>")

    def head(self, status: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def endlessly(self, data: bytes, pause: float = 0.05) -> None:
        try:
            while True:
                self.wfile.write(data)
                time.sleep(pause)
        except OSError:
            pass


asked: list[tuple[str, str, str]] = []
said: tuple[str, bytes] = "", b""
"""The content type and the body of ``/said``."""


@pytest.fixture
def site() -> Iterator[str]:
    asked.clear()
    server = http.server.ThreadingHTTPServer((HERE, 0), Pages)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://{HERE}:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def refused(url: str, kind: type[AnvilError], options: LibraryOptions = OPTIONS, allowed: Any = only_here) -> str:
    with pytest.raises(kind) as caught, downloaded(url, options, allowed):
        pass
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_page_and_what_is_known_of_it(site: str) -> None:
    with downloaded(f"{site}/near", OPTIONS, only_here) as found:
        assert found.path.read_bytes() == b"<h1>Page</h1>" and found.kind.type == "html"
    assert not found.path.exists()
    assert [(path, host) for _, path, host in asked] == [("/near", site[7:]), ("/page", site[7:])]
    with downloaded(f"{site}/notes.md?x=1", OPTIONS, only_here) as found:
        assert (found.kind.type, found.last_modified) == ("md", "2015-10-21T07:28:00Z")
    for path, kind in (("release/v1/tides.pdf", "pdf"), ("release/5?x=1", "docx")):  # stores of files name no type
        with downloaded(f"{site}/{path}", OPTIONS, only_here) as found:
            assert found.kind.type == kind
    with downloaded(f"{site}/latin", OPTIONS, only_here) as found:
        assert found.path.read_text(encoding="utf-8") == "<p>café</p>" and found.last_modified is None


@pytest.mark.parametrize(
    ("charset", "body", "text"),
    [
        ("windows-1251", "мир".encode("cp1251"), "мир"),
        ("Shift_JIS", "日本".encode("shift_jis"), "日本"),
        ("utf-16", "héllo".encode("utf-16"), "héllo"),
        ("gb18030", "中文".encode("gb18030"), "中文"),
        ('"ISO-8859-2"', b"\xb3", "ł"),
        ("utf-16-le", b"\x00\xd8a", None),  # half a character, and an odd byte
        ("utf-7", b"+2AA-", None),
        ("unicode_escape", b"\\ud800", None),
        ("undefined", b"a", None),
        ("idna", b"xn--a", None),
        ("rot13", b"a", None),
        ("zip", b"a", None),
        ("no-such", b"a", None),
    ],
)
def test_a_page_is_read_in_the_encoding_that_its_server_names_or_left_as_it_is(
    site: str, monkeypatch: pytest.MonkeyPatch, charset: str, body: bytes, text: str | None
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "said", (f"text/plain; charset={charset}", body))
    with downloaded(f"{site}/said", OPTIONS, only_here) as found:
        assert found.path.read_bytes() == (body if text is None else text.encode("utf-8"))
        assert found.kind.type == "txt"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/plain; charset=punycode", b"-" + b"a" * 400_000),  # decoded in seconds, by the square of its length
        ("text/plain; charset*=punycode''-" + "a" * 60_000, b"a"),
        ('text/plain; "' + ";" * 60_000, b"a"),
    ],
)
def test_what_a_server_says_of_a_page_takes_no_time(
    site: str, monkeypatch: pytest.MonkeyPatch, kind: str, body: bytes
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "said", (kind, body))
    started = time.process_time()
    with downloaded(f"{site}/said", OPTIONS, only_here) as found:
        assert found.path.read_bytes() == body
    assert time.process_time() - started < 1.5


def test_a_redirect_to_a_private_address_is_not_followed(site: str) -> None:
    told = refused(f"{site}/away", DocumentRejected)
    assert "private network" in told and "--allow-private-urls" in told
    assert [host for host, _, _ in asked] == [HERE]
    assert "is not an http or https URL" in refused(f"{site}/file", ConfigError)


def test_private_addresses_are_not_asked_unless_allowed(site: str) -> None:
    for url in (site, site.replace(HERE, "localhost"), site.replace(HERE, "2130706433"), site.replace(HERE, "127.1")):
        refused(url, DocumentRejected, allowed=None)
    assert asked == []
    with downloaded(site, replace(OPTIONS, allow_private_urls=True)) as found:
        assert found.kind.type == "html"


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "240.0.0.1",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "fd00:ec2::254",
        "ff02::1",
        "::ffff:10.0.0.1",
        "::ffff:169.254.169.254",
        "2002:7f00:1::",
        "64:ff9b::a9fe:a9fe",
        "100.100.100.200",
        "198.18.0.1",
        # what some clouds keep for their machines, and what is only called public by some versions of Python
        "192.0.0.192",
        "168.63.129.16",
        "192.0.0.9",
        "192.0.0.10",
        "fec0::1",
        "feff::1",
        "::ffff:192.0.0.192",
        "::ffff:168.63.129.16",
        "64:ff9b::a83f:8110",
        "64:ff9b::c000:c0",
        "64:ff9b:1::808:808",
        "64:ff9b:1:ffff::a00:1",
        # those that wrap another: private, or public by a way that nobody offers any more
        "2002:a9fe:a9fe::1",
        "2002:808:808::1",
        "2001:0:a9fe:a9fe::",
        "2001::f5ff:fffe",
        "::10.0.0.1",
        "::8.8.8.8",
        "::ffff:0:10.0.0.1",
        "0.1.2.3",
        "100.127.255.255",
        "169.254.0.1",
        "172.31.255.255",
        "192.88.99.1",
        "198.19.255.255",
        "203.0.113.9",
        "198.51.100.9",
        "192.0.2.9",
        "239.255.255.250",
        "2001:db8::1",
        "2001:2::1",
        "2001:10::1",
        "2001:20::1",
        "3fff::1",
        "5f00::1",
        "100::1",
        "fe80::1%eth0",
        "fe80::a9fe:a9fe%1",
        "fd00::1",
        "fdff::1",
        "ff0e::1",
    ],
)
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "168.63.129.15",
        "168.63.129.17",
        "169.253.255.255",
        "172.15.255.255",
        "172.32.0.0",
        "191.255.255.255",
        "192.0.1.0",
        "192.0.3.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2606:4700::1111",
        "2001:200::1",
        "2001:4860:4860::8888",
        "2003::1",
        "2a00:1450::1",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
    ],
)
def test_addresses_that_are(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(network="2000::/3")))
def test_none_is_public_that_python_knows_for_private(address: Address) -> None:
    assert address.is_global or not is_public(address)


def test_a_name_is_resolved_once_and_the_address_that_was_looked_at_is_asked(
    site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [HERE, ELSEWHERE]
    names: list[str] = []
    port = int(site.rpartition(":")[2])

    def rebinding(host: Any, *_: Any, **__: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name.replace(".", "").isdigit():
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (name, port))]
        names.append(name)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (answers[len(names) - 1], port))]

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    with downloaded(f"http://rebind.example:{port}/page", OPTIONS, only_here) as found:
        assert found.kind.type == "html"
    assert names == ["rebind.example"] and asked == [(HERE, "/page", f"rebind.example:{port}")]


def test_one_private_address_among_several_is_enough(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    both = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, 80)) for each in (HERE, ELSEWHERE)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both)
    refused("http://mixed.example/", DocumentRejected)
    assert asked == []


@pytest.mark.parametrize("path", ["drip", "headers"])
def test_a_server_that_never_ends_is_left(site: str, path: str) -> None:
    started = time.monotonic()
    told = refused(f"{site}/{path}", DocumentTooLarge, replace(OPTIONS, download_seconds=0.5))
    assert "took longer than 0.5 s" in told and time.monotonic() - started < 60


def test_a_pdf_that_is_called_a_page_is_read_as_pdf(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "said", ("text/html; charset=iso-8859-1", b"%PDF-1.4\n\xe2\xe3"))
    with downloaded(f"{site}/said/get.php", OPTIONS, only_here) as found:
        assert found.kind.type == "pdf" and found.path.read_bytes() == b"%PDF-1.4\n\xe2\xe3"


@pytest.mark.parametrize(
    ("said_type", "path", "read_as"),
    [
        ("text/x-rst", "/said/guide.rst", "rst"),
        ("application/x-pdf", "/said/Report.PDF", "pdf"),
        ("text/html", "/said/guide.md", "html"),
    ],
)
def test_the_ending_decides_where_the_content_type_is_not_known(
    site: str, monkeypatch: pytest.MonkeyPatch, said_type: str, path: str, read_as: str
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "said", (said_type, b"text"))
    with downloaded(site + path, OPTIONS, only_here) as found:
        assert found.kind.type == read_as


@pytest.mark.parametrize(("path", "told"), [("flood", "more than 1,000,000"), ("huge", "sends 999,999,999,999")])
def test_no_more_than_the_limit_is_read(site: str, path: str, told: str) -> None:
    assert told in refused(f"{site}/{path}", DocumentTooLarge, replace(OPTIONS, max_file_bytes=1_000_000))


def test_a_disk_that_takes_no_more_is_told(site: str) -> None:
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        assert "cannot be written (File too large). Free some space" in refused(f"{site}/flood", BuildError)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_compressed_answer_is_refused_before_any_of_it_is_unpacked(site: str) -> None:
    assert " sent a compressed answer although none was asked for." in refused(f"{site}/bomb", DocumentRejected)


def test_what_is_refused_says_why(site: str) -> None:
    assert "redirects more than 5 times" in refused(f"{site}/loop", DocumentRejected)
    assert "application/x-msdownload is not supported" in refused(f"{site}/exe", UnsupportedFormat)
    assert "status 404" in refused(f"{site}/missing", DocumentRejected)
    assert "There is no host" in refused("http://nobody.invalid/", DocumentRejected)
    assert "cannot be reached" in refused(f"http://{HERE}:1/", DocumentRejected)
    for url in ("ftp://x/y", "file:///etc/passwd", "nonsense", "javascript:1", "https://[::1"):
        assert "is not an http or https URL" in refused(url, ConfigError)
    for port in ("99999", "65536", "0"):
        assert "is not an http or https URL with a valid host and port" in refused(
            f"http://{HERE}:{port}/", ConfigError
        )
    assert "user name or password" in refused("http://me:secret@x/", ConfigError)
    assert "secret" not in refused(f"http://{HERE}:1/?key=secret", DocumentRejected)


def test_a_certificate_is_checked_for_the_name_not_for_the_address(tmp_path: Path) -> None:
    import subprocess

    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    made = subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-keyout",
            key,
            "-out",
            certificate,
            "-days",
            "1",
            "-subj",
            "/CN=localhost",
        ],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("needs openssl")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    names: list[str | None] = []
    context.sni_callback = lambda sock, name, _: names.append(name)

    class Quiet(http.server.HTTPServer):
        def handle_error(self, *_: object) -> None:
            """The client hangs up."""

    server = Quiet((HERE, 0), Pages)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.handle_request)
    thread.start()
    told = refused(f"https://localhost:{server.server_port}/", DocumentRejected, allowed=anything)
    thread.join(10)
    server.server_close()
    assert "certificate" in told.lower() and names == ["localhost"]
