"""A document from the web, for a URL that anybody may have thought of, such as the author of a page a model read.

Only public addresses are asked, unless the user allows others: a name is resolved once, all its addresses are looked
at, and the connection goes to one of them, so that no second answer of the name server can lead elsewhere. The same
for each redirect. Size, time, redirects and kinds of content are bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from anvil import __version__, charsets, httpheaders
from anvil.config import LibraryOptions
from anvil.errors import ConfigError, DocumentRejected, DocumentTooLarge, UnsupportedFormat

if TYPE_CHECKING:
    import httpx2

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Allowed = Callable[[Address], bool]
REDIRECTS = 5
ALLOW = "Start Anvil with --allow-private-urls, or with ANVIL_LIBRARY_ALLOW_PRIVATE_URLS=true, to allow that."
TYPES = {
    "text/html": "html", "application/xhtml+xml": "html", "text/markdown": "md", "text/plain": "txt",
    "application/pdf": "pdf", "text/csv": "csv", "application/json": "json", "application/xml": "xml",
    "text/xml": "xml", "application/rss+xml": "rss", "application/atom+xml": "atom", "application/epub+zip": "epub",
    "application/zip": "zip", "image/png": "png", "image/jpeg": "jpg", "audio/mpeg": "mp3", "audio/wav": "wav",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
}  # fmt: skip
VAGUE = ("", "text/plain", "application/octet-stream", "binary/octet-stream")
"""What servers say of a file they know nothing of: then its name decides."""
_NOT_PUBLIC = tuple(map(ipaddress.ip_network, (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
    "192.0.0.0/24",  # holds 192.0.0.192, where Oracle's cloud tells machines their secrets
    "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
    "168.63.129.16/32",  # Azure's service for its machines, among addresses that are public else
    "224.0.0.0/4", "240.0.0.0/4",
    "2001::/23",  # with Teredo, whose addresses wrap another
    "2001:db8::/32", "2002::/16",  # 6to4 wraps another too, and is no longer in use
    "3fff::/20",
)))  # fmt: skip
"""IANA's registries of special addresses, and what clouds put elsewhere. Python's own tables differ by its version."""
_PUBLIC_IPV6 = ipaddress.ip_network("2000::/3")
"""All that is given out for the open internet."""
_WRAPS_IPV4 = tuple(map(ipaddress.ip_network, ("::ffff:0:0/96", "64:ff9b::/96")))
"""An IPv4 address in the last 32 bits: as sockets show it, and by way of a translator (NAT64)."""
_ENDING = re.compile(r"\.([A-Za-z0-9]{1,8})$")
_TEXT = ("html", "md", "txt", "csv", "json", "xml", "rss", "atom")


@dataclass(frozen=True, slots=True)
class Download:
    """A file that was fetched: where it lies, its type as an ending, when it was last modified (ISO 8601, UTC)."""

    path: Path
    type: str
    last_modified: str | None


def is_public(address: Address) -> bool:
    """Whether an address is one of the open internet, also by way of those that wrap another."""
    if isinstance(address, ipaddress.IPv6Address):
        if any(address in each for each in _WRAPS_IPV4):
            return is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        if address not in _PUBLIC_IPV6:
            return False
    return not any(address in each for each in _NOT_PUBLIC)


def anything(address: Address) -> bool:
    """Allows every address."""
    return True


@contextlib.contextmanager
def downloaded(url: str, options: LibraryOptions, allowed: Allowed | None = None) -> Iterator[Download]:
    """Fetch what ``url`` leads to; the file is gone with the context.

    ``allowed``: which addresses may be asked (default: as ``options`` say). Raises :class:`ConfigError` for what is no
    URL, :class:`DocumentRejected` for what cannot be had or is refused.
    """
    policy = allowed or (anything if options.allow_private_urls else is_public)
    with tempfile.TemporaryDirectory(prefix="anvil-") as folder:
        target = Path(folder, "document")
        with ThreadPoolExecutor(1) as thread:  # an event loop of its own, whatever runs in the caller's thread
            found = thread.submit(lambda: asyncio.run(_within_time(url, target, options, policy))).result()
        yield found


async def _within_time(url: str, target: Path, options: LibraryOptions, allowed: Allowed) -> Download:
    try:
        return await asyncio.wait_for(_fetched(url, target, options, allowed), options.download_seconds)
    except asyncio.TimeoutError:
        raise DocumentTooLarge(
            f"{_shown(url)} took longer than {options.download_seconds:g} s (library.download_seconds)."
        ) from None


async def _fetched(url: str, target: Path, options: LibraryOptions, allowed: Allowed) -> Download:
    import httpx2

    # no proxy of the environment: it would resolve names again, beyond our sight
    async with httpx2.AsyncClient(trust_env=False, follow_redirects=False, timeout=options.download_seconds) as client:
        try:
            for _ in range(REDIRECTS + 1):
                where = _parsed(url)
                address = await _checked(where, allowed)
                request = client.build_request(
                    "GET", where.copy_with(host=str(address)),
                    headers={"Host": where.netloc.decode("ascii"), "User-Agent": f"anvil/{__version__}",
                             "Accept-Encoding": "identity"},
                    extensions={"sni_hostname": where.host},
                )  # fmt: skip
                response = await client.send(request, stream=True)
                try:
                    if response.is_redirect and "location" in response.headers:
                        url = str(where.join(response.headers["location"]))
                        continue
                    if response.status_code != 200:
                        raise DocumentRejected(f"{_shown(url)} was answered with status {response.status_code}.")
                    return await _saved(response, where, target, options)
                finally:
                    await response.aclose()
        except httpx2.InvalidURL:
            raise ConfigError(f"{_shown(url)} is not a URL.") from None
        except httpx2.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise DocumentRejected(f"{_shown(url)} cannot be fetched ({reason[:200]}).") from None
    raise DocumentRejected(f"{_shown(url)} redirects more than {REDIRECTS} times.")


def _parsed(url: str) -> httpx2.URL:
    import httpx2

    where = httpx2.URL(url)
    if where.scheme not in ("http", "https"):
        raise ConfigError(f"{_shown(url)} is not an http or https URL.")
    if where.userinfo:
        raise ConfigError("The URL holds a user name or password, which would be kept with the document. Leave it out.")
    if where.port is not None and not 0 < where.port < 65536:
        raise ConfigError(f"{_shown(url)} names a port that there is not.")
    if not where.host:
        raise ConfigError(f"{_shown(url)} names no host.")
    return where


async def _checked(where: httpx2.URL, allowed: Allowed) -> Address:
    """An address of the host; all of them must be allowed."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            where.raw_host.decode("ascii").strip("[]"), where.port or 0, type=1
        )
        addresses = [ipaddress.ip_address(str(each[4][0]).partition("%")[0]) for each in found]
    except (OSError, UnicodeError, ValueError):
        raise DocumentRejected(f"There is no host {where.host}. Check the URL.") from None
    for address in addresses:
        if not allowed(address):
            raise DocumentRejected(f"{where.host} is on this machine or a private network, and is not asked. {ALLOW}")
    return addresses[0]


async def _saved(response: httpx2.Response, where: httpx2.URL, target: Path, options: LibraryOptions) -> Download:
    said, charset = httpheaders.content_type(response.headers)
    kind = _type(said, where.path)
    length = response.headers.get("content-length", "")
    most, size = options.max_file_bytes, 0
    if length.isdigit() and int(length) > most:
        raise DocumentTooLarge(
            f"{where.host} sends {int(length):,} bytes; the limit is {most:,} (library.max_file_bytes)."
        )
    if httpheaders.is_packed(response.headers):
        raise DocumentRejected(f"{where.host} {httpheaders.PACKED}")
    with target.open("wb") as file:
        async for block in response.aiter_raw():
            size += len(block)
            if size > most:
                raise DocumentTooLarge(f"{where.host} sends more than {most:,} bytes (library.max_file_bytes).")
            file.write(block)
    codec = charsets.known(charset) if charset else None
    if kind in _TEXT and codec and codec != "utf-8":
        with contextlib.suppress(UnicodeDecodeError):  # a server that errs is not believed
            target.write_text(target.read_bytes().decode(codec), encoding="utf-8", newline="")
    return Download(target, kind, httpheaders.last_modified(response.headers))


def _type(said: str, path: str) -> str:
    ending = _ENDING.search(path)
    if said in VAGUE and ending:
        return ending[1].lower()
    if said in TYPES:
        return TYPES[said]
    raise UnsupportedFormat(f"Content of type {said or 'unknown'} is not read; web pages, text and documents are.")


def _shown(url: str) -> str:
    """A URL without what may be secret in it."""
    return re.sub(r"//[^/@]*@", "//", url.partition("?")[0])[:200]
