"""The HTTP client: requests to untrusted servers, with timeouts, limits on size and redirects, TLS, and credentials.

A policy of :mod:`anvil.http.allowed_servers` decides which servers are allowed, also after each redirect. Credentials
are sent to their own origin only. A request ends if the server sends headers or body too slowly. The HTTP library logs
no credentials and URLs of these requests.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import logging
import math
import netrc
import os
import re
import socket
import threading
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timezone
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from anvil._version import __version__
from anvil.errors import FetchError, Unreachable
from anvil.http.allowed_servers import HttpPolicy, IndexPolicy, host_of, proxy_of
from anvil.settings import index_url

if TYPE_CHECKING:
    import ssl

    import httpx2


MAX_REDIRECTS = 5
LOCATION = "location"
"""The key under which a response keeps its header ``Location``, see :func:`_keep_location`."""
REDIRECT_STATUSES = (301, 302, 303, 307, 308)
CERTIFICATES_TTL_S = 600
"""Seconds after which the certificates that this machine trusts are read again."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a request. Times are in seconds."""

    connect: float = 10.0
    """Time until there is a connection."""
    answer: float = 30.0
    """Time from the request to the last header."""
    pause: float = 20.0
    """Time between two bytes."""
    grace: float = 20.0
    """Time for a body before its :attr:`rate` counts."""
    rate: float = 8_000.0
    """Least bytes per second of a body."""
    whole: float = 3_600.0
    """Time for one body."""
    total: float | None = None
    """Time for everything, redirects included; None without a limit."""
    size: int = 2_000_000_000
    """Bytes of the largest index."""
    small: int = 8_000_000
    """Bytes of the longest text, such as a manifest or a list."""


@dataclass(frozen=True, slots=True)
class _Request:
    """The method of a request, its body, and its headers without credentials."""

    method: str
    content: bytes | None
    headers: Mapping[str, str]


class TimedOut(Unreachable):
    """A request took longer than :attr:`Limits.total`."""


class BrokenOff(Unreachable):
    """The server closed the connection before the end of a body."""


class Reply:
    """A response. Its body is read with :meth:`chunks`, :meth:`body` or :meth:`text`. ``url``: after redirects."""

    def __init__(self, response: httpx2.Response, url: str, limits: Limits, deadline: SocketDeadline) -> None:
        self._response, self._limits, self._deadline = response, limits, deadline
        self.url = url
        self.status: int = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self.location: str | None = response.extensions[LOCATION]

    @property
    def host(self) -> str:
        return host_of(self.url)

    @property
    def length(self) -> int | None:
        """Content-Length in bytes; None without one."""
        header = self.headers.get("content-length", "")
        return int(header) if header.isdigit() else None

    def chunks(self, limit: int, too_large: Exception) -> Iterator[bytes]:
        """The body in chunks. Raises ``too_large`` for more than ``limit`` bytes, at once if Content-Length says so;
        :class:`BrokenOff` if it ends early; and :class:`Unreachable` if it is too slow."""
        import httpx2

        # The client asks for none: a small compressed body could become a huge one before its size is checked.
        if self.headers.get("content-encoding", "").strip().lower() not in ("identity", ""):
            raise FetchError(f"{self.host} sent a compressed answer although none was asked for. Tell its owner.")
        if (self.length or 0) > limit:
            raise too_large
        start, received = time.monotonic(), 0
        try:
            for chunk in self._response.iter_raw():
                received += len(chunk)
                passed = time.monotonic() - start
                is_slow = passed > self._limits.grace and received < (passed - self._limits.grace) * self._limits.rate
                if is_slow or passed > self._limits.whole:
                    raise Unreachable(
                        f"{self.host} is too slow: {received:,} bytes in {passed:.0f} s. Try again later."
                    )
                if received > limit:
                    raise too_large
                yield chunk
        except httpx2.TransportError as error:
            message = f"{self.host} broke off after {received:,} bytes ({type(error).__name__}). Try again later."
            raise BrokenOff(message) from None
        # A body without a length ends when the socket is closed. The deadline closes it, too.
        if self._deadline.expired:
            raise Unreachable(f"{self.host} is too slow. Try again later.")

    def body(self, limit: int) -> bytes:
        """The body. Raises :class:`FetchError` when it has more bytes than ``limit``."""
        too_large = FetchError(f"{index_url.without_secrets(self.url)} is longer than {limit:,} bytes.")
        return b"".join(self.chunks(limit, too_large))

    def text(self, limit: int | None = None) -> str:
        """The body as text, of at most ``limit`` bytes (default: ``Limits.small``). Raises as :meth:`body` does."""
        return self.body(self._limits.small if limit is None else limit).decode("utf-8", "replace")


class HttpClient(contextlib.AbstractContextManager["HttpClient"]):
    """A client for one fetch; a context manager. ``authorization``: origin -> value of the header ``Authorization``."""

    def __init__(
        self, limits: Limits, authorization: Mapping[str, str] | None = None, policy: HttpPolicy | None = None
    ) -> None:
        import httpx2

        self.limits = limits
        self._policy = policy or IndexPolicy()
        self._authorization = dict(authorization or {})
        loopback = (f"[{name}]" if ":" in name else name for name in index_url.LOOPBACK)
        try:
            self._client = httpx2.Client(
                follow_redirects=False,
                verify=_tls(self._policy.uses_environment),
                trust_env=self._policy.uses_environment,
                timeout=httpx2.Timeout(limits.pause, connect=limits.connect),
                headers={"User-Agent": f"anvil-docs/{__version__}", "Accept-Encoding": "identity"},
                # each request has a connection of its own, since its deadline shuts the connection down
                limits=httpx2.Limits(max_keepalive_connections=0),
                mounts={f"all://{name}": None for name in loopback},  # no proxy for this machine
                event_hooks={"response": [_keep_location]},
            )
        except ImportError:  # of socksio, which httpx2 needs for a SOCKS proxy
            raise FetchError(
                "A proxy of the environment is a SOCKS proxy. Run 'pip install socksio' to use it."
            ) from None
        except ValueError:  # its message is not shown: it has the address of the proxy, which may hold a password
            raise FetchError(
                "HTTPS_PROXY, HTTP_PROXY or ALL_PROXY is not the address of a proxy. Correct it."
            ) from None
        install_log_filter()

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def authorizes(self, url: str) -> bool:
        """Whether requests to the origin of this URL have credentials."""
        return origin(url) in self._authorization

    def anonymous(self) -> HttpClient:
        """A client without credentials, with the same limits and policy."""
        return HttpClient(self.limits, policy=self._policy)

    def target(self, before: str, url: str) -> str:
        """``url``, as the answer of ``before`` names it, checked as a redirect. Raises :class:`FetchError` if bad."""
        try:
            origin(url)  # raises ValueError for an invalid address
            return self._policy.redirect(before, url)
        except ValueError:  # also UnicodeError, which is raised for an invalid host name
            raise FetchError(f"{host_of(before)} names an invalid address. Tell its owner.") from None

    @contextlib.contextmanager
    def get(
        self, url: str, headers: Mapping[str, str] | None = None, method: str = "GET", content: bytes | None = None
    ) -> Iterator[Reply]:
        """Send a request, with the body ``content`` if it has one. Redirects are followed for GET only.

        The caller checks the status. Only for 408 and 5xx :class:`Unreachable` is raised here, as for a server that
        cannot be reached. Raises :class:`FetchError` for an invalid address or a forbidden redirect, and the errors of
        the policy.
        """
        import httpx2

        end = math.inf if self.limits.total is None else time.monotonic() + self.limits.total
        host = host_of(url)
        with unlogged(), contextlib.ExitStack() as stack:
            try:
                self._policy.check(url)
                reply = self._follow(_Request(method, content, dict(headers or {})), url, end, stack)
                host = reply.host
                if reply.status >= 500 or reply.status == 408:
                    raise Unreachable(f"{host} has an error (status {reply.status}). Try again later.")
                yield reply
            except (httpx2.HTTPError, Unreachable) as error:
                if time.monotonic() >= end:
                    raise TimedOut(f"{host} took longer than {self.limits.total:g} s. Try again later.") from None
                if isinstance(error, Unreachable):
                    raise
                proxy = proxy_of(url) if self._policy.uses_environment else None
                through, check = (f" through the proxy {proxy}", "HTTPS_PROXY, NO_PROXY and ") if proxy else ("", "")
                raise Unreachable(
                    f"{host} cannot be reached{through} ({reason(error)}). Check {check}the network."
                ) from None

    def _follow(self, message: _Request, url: str, end: float, stack: contextlib.ExitStack) -> Reply:
        """The reply after redirects. ``end``: the monotonic time at which the request must be finished."""
        import httpx2

        invalid = f"{host_of(url)} is not a valid host. Check the address."
        for _ in range(MAX_REDIRECTS + 1):
            try:
                reply = self._send(message, url, end, stack)
                target = reply.location
                if reply.status not in REDIRECT_STATUSES or not target or message.method != "GET":
                    return reply
                invalid = f"{host_of(url)} redirects to an invalid address. Tell its owner."
                target = urllib.parse.urljoin(url, target)
                origin(target)  # raises ValueError for an invalid address
                url = self._policy.redirect(url, target)
            except (httpx2.InvalidURL, ValueError):  # also UnicodeError, which is raised for an invalid host name
                raise FetchError(invalid) from None
        raise FetchError(f"{host_of(url)} redirects more than {MAX_REDIRECTS} times. Check the address.")

    def _send(self, message: _Request, url: str, end: float, stack: contextlib.ExitStack) -> Reply:
        """The reply of one server. ``stack`` closes it."""
        import httpx2

        target, headers = httpx2.URL(url), dict(message.headers)
        if authorization := self._authorization.get(origin(url)):
            headers["Authorization"] = authorization
        deadline = SocketDeadline()
        extensions: dict[str, Any] = {"trace": deadline.trace}
        remaining = min(self.limits.answer, end - time.monotonic())
        address = self._policy.resolve(target.raw_host.decode("ascii").strip("[]"), target.port or 0, remaining)
        if address is not None:  # connect to the checked address; Host and certificate use the name
            headers["Host"] = target.netloc.decode("ascii")
            extensions["sni_hostname"] = target.host
            target = target.copy_with(host=address)
        stack.callback(deadline.cancel)
        deadline.start(min(self.limits.answer, end - time.monotonic()))
        try:
            request = self._client.build_request(
                message.method, target, content=message.content, headers=headers, extensions=extensions
            )
            response = stack.enter_context(contextlib.closing(self._client.send(request, stream=True)))
        except Exception:
            if deadline.expired:
                problem = f"{host_of(url)} did not answer in {self.limits.answer:.0f} s. Try again later."
                raise Unreachable(problem) from None
            raise
        deadline.cancel()
        if end < math.inf:
            deadline.start(end - time.monotonic())
        return Reply(response=response, url=url, limits=self.limits, deadline=deadline)


def _keep_location(response: httpx2.Response) -> None:
    """Move the header ``Location`` out of httpx2's reach. It checks the address even if redirects are not followed, and
    some of its releases raise an error for it."""
    response.extensions[LOCATION] = response.headers.pop(LOCATION, None)


def _tls(uses_environment: bool) -> ssl.SSLContext:
    """TLS with the certificates that this machine trusts. Clients share it, since reading certificates takes 30 ms."""
    variables = [os.environ.get(name) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if uses_environment]
    return _cached_tls(uses_environment, tuple(variables), time.monotonic() // CERTIFICATES_TTL_S)


@functools.lru_cache(maxsize=4)
def _cached_tls(uses_environment: bool, variables: tuple[str | None, ...], period: float) -> ssl.SSLContext:
    """Settings of TLS. The other arguments are the key of the cache: with other values they are made again."""
    import httpx2

    try:
        return httpx2.create_ssl_context(trust_env=uses_environment)
    except OSError as error:  # also ssl.SSLError, for a file that holds no certificate
        file = next(filter(None, variables), "this machine")
        raise FetchError(
            f"The certificates of SSL_CERT_FILE cannot be read from {file} ({error.strerror}). Correct the variable."
        ) from None


def origin(url: str) -> str:
    """Scheme, host and port of a URL, which credentials are for."""
    parts = urllib.parse.urlsplit(url)
    port = parts.port or {"https": 443, "http": 80}.get(parts.scheme, 0)
    return f"{parts.scheme}://{parts.hostname}:{port}"


def basic_authorization(name: str, password: str) -> str:
    """The value of an Authorization header."""
    return f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode('ascii')}"


def login_in_netrc(url: str) -> tuple[str, str] | None:
    """Name and password for the host of a URL, from ``~/.netrc`` or the file that ``NETRC`` names, which pip, curl and
    git read, too. None if there are none or the file cannot be used."""
    host = urllib.parse.urlsplit(url).hostname or ""
    with contextlib.suppress(OSError, ValueError, netrc.NetrcParseError):
        entry = netrc.netrc(os.environ.get("NETRC") or None).hosts.get(host)  # without "default", which is for any host
        if entry is not None:
            return entry[0], entry[2] or ""
    return None


def reason(error: Exception) -> str:
    """The message of an error, or its type if the message contains a URL."""
    message = re.sub(r"^\[[^]]*\] ?", "", str(error).strip()).rstrip(".")
    return message if message and "://" not in message else type(error).__name__


class SocketDeadline:
    """A timer that shuts down the sockets of a request. That ends the wait in the HTTP library."""

    def __init__(self) -> None:
        self.expired = False
        self._sockets: list[socket.socket] = []
        self._timer: threading.Timer | None = None

    def trace(self, event: str, info: dict[str, Any]) -> None:
        """Note the socket of each new connection. The HTTP library calls this at each step of a request."""
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            sock = info["return_value"].get_extra_info("socket")
            if sock is not None:
                self._sockets.append(sock)
                if self.expired:
                    self._expire()

    def start(self, seconds: float) -> None:
        """Set the deadline, in seconds from now."""
        self.cancel()
        self._timer = threading.Timer(max(seconds, 0), self._expire)
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _expire(self) -> None:
        self.expired = True
        for sock in self._sockets:
            with contextlib.suppress(OSError):  # closed meanwhile
                # the method of a plain socket, for TLS too: it sends no closing message
                socket.socket.shutdown(sock, socket.SHUT_RDWR)


# --- headers, which are untrusted: one that cannot be parsed is ignored ------------------------------------------

_MAX_PARSED_CHARACTERS = 500
"""Characters of a header that are parsed. The parser takes quadratic time."""


def content_type(headers: Mapping[str, str]) -> tuple[str, str | None]:
    """The media type in lower case, empty without one; and the name of the encoding, or None."""
    message = _parsed(headers, "content-type")
    charset = message.get_param("charset")
    media_type = message.get_content_type() if message["content-type"] else ""
    return media_type, charset.strip() if isinstance(charset, str) else None


def attachment_name(headers: Mapping[str, str]) -> str:
    """The file name for the body by ``Content-Disposition``; empty without one."""
    try:
        return _parsed(headers, "content-disposition").get_filename("")
    except ValueError:  # raised by the codec that the header names
        return ""


def _parsed(headers: Mapping[str, str], name: str) -> Message:
    message = Message()
    message[name] = headers.get(name, "")[:_MAX_PARSED_CHARACTERS]
    return message


def http_date(header: str | None) -> str | None:
    """The time in a header such as Last-Modified, in ISO 8601 and UTC; None without a valid one."""
    try:
        moment = parsedate_to_datetime(header or "").astimezone(timezone.utc)
    except (TypeError, ValueError, OverflowError, OSError):
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


# --- logs: URLs may be signed, so log records of the HTTP library about these requests are dropped
# ---------------------

_unlogged: ContextVar[bool] = ContextVar("anvil_unlogged", default=False)


@contextlib.contextmanager
def unlogged() -> Iterator[None]:
    """A context in which log records of the HTTP library are dropped."""
    token = _unlogged.set(True)
    try:
        yield
    finally:
        _unlogged.reset(token)


def _is_logged(record: logging.LogRecord) -> bool:
    return not _unlogged.get()


def install_log_filter() -> None:
    """Add the filter to the loggers of HTTP libraries. A second call does nothing."""
    for version in ("", "2"):  # OpenAI's client uses httpx, this one httpx2
        for name in ("connection", "http11", "proxy", "socks"):
            logging.getLogger(f"httpcore{version}.{name}").addFilter(_is_logged)
        logging.getLogger(f"httpx{version}").addFilter(_is_logged)
    logging.getLogger("openai._base_client").addFilter(_is_logged)
