"""Policies for requests: which servers may be reached, after redirects and DNS too, and which addresses are private.

An index that the user named may be on any https server. An untrusted URL may lead to public addresses only.
"""

from __future__ import annotations

import ipaddress
import queue
import socket
import threading
import urllib.parse
from collections.abc import Callable, Collection

from anvil.errors import ConfigError, FetchError, Unreachable
from anvil.settings import index_url

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Allowed = Callable[[Address], bool]
ALLOW = "Start Anvil with --allow-private-urls, or with ANVIL_LIBRARY_ALLOW_PRIVATE_URLS=true, to allow that."
ALLOW_DEPENDENCIES = "Set ANVIL_DEPS_ALLOW_PRIVATE_URLS=true to allow that."
_NOT_PUBLIC = tuple(
    map(
        ipaddress.ip_network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24",  # with 192.0.0.192, the metadata service of Oracle's cloud
            "192.0.2.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "168.63.129.16/32",  # Azure's metadata service, in a public network
            "224.0.0.0/4",
            "240.0.0.0/4",
            "2001::/23",  # with Teredo, whose addresses contain another
            "2001:db8::/32",
            "2002::/16",  # 6to4 contains another too, and is not used any more
            "3fff::/20",
        ),
    )
)
"""IANA's special addresses, and metadata services of clouds. They are listed here because Python's own tables differ
between its versions."""
_PUBLIC_IPV6 = ipaddress.ip_network("2000::/3")
"""The global unicast addresses."""
_WRAPS_IPV4 = tuple(map(ipaddress.ip_network, ("::ffff:0:0/96", "64:ff9b::/96")))
"""Networks whose addresses have an IPv4 address in the last 32 bits: mapped addresses, and NAT64."""


class IndexPolicy:
    """The policy for an index that the user named: over https, or on this machine.

    Redirects from https to http, and from another host to this machine, are not allowed.
    """

    uses_environment = True
    """Whether proxies and certificates of the environment are used."""

    def check(self, url: str) -> None:
        """Raises an :class:`AnvilError` if a URL is not allowed."""
        if not index_url.is_allowed(url):
            raise FetchError(f"{host_of(url)} can be used over https only. Check the address.")

    def redirect(self, before: str, target: str) -> str:
        """The URL after a redirect. Raises an :class:`AnvilError` if it is not allowed, ValueError if it is invalid."""
        hosts = f"{host_of(before)} to {host_of(target)}".removesuffix(" to ")
        if not index_url.is_allowed(target) or (before.startswith("https:") and not target.startswith("https:")):
            scheme = urllib.parse.urlsplit(target).scheme
            kind = "plain http" if scheme == "http" else f"an address with {scheme}:"
            raise FetchError(f"A redirect from {hosts} leads to {kind}, which is not followed. Tell its owner.")
        if index_url.is_loopback(target) and not index_url.is_loopback(before):
            raise FetchError(f"A redirect from {hosts}, this machine, is not followed. Check the address.")
        parts = urllib.parse.urlsplit(target)
        if not parts.hostname:
            raise ValueError("no host")
        return urllib.parse.urlunsplit((parts.scheme, host_of(target), parts.path, parts.query, ""))

    def resolve(self, host: str, port: int, timeout_s: float) -> str | None:
        """The address to connect to; None: the HTTP library resolves it. Raises :class:`AnvilError` if forbidden."""
        return None


class DocumentPolicy:
    """The policy for the URL of a document, which may come from the author of a page that a model read.

    ``allowed`` decides about addresses. A name is resolved once and all its addresses are checked. The client connects
    to one of these, so a second answer of the name server has no effect. No proxy is used: it would resolve the name.
    """

    uses_environment = False

    def __init__(self, allowed: Allowed) -> None:
        self._allowed = allowed

    def check(self, url: str) -> None:
        parts = index_url.split(url)
        if "@" in parts.netloc:
            raise ConfigError(
                "The URL contains a user name or password, which would be stored with the document. Leave it out."
            )
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
            shown = index_url.without_secrets(url)[:200]
            raise ConfigError(f"{shown} is not an http or https URL with a valid host and port.")

    def redirect(self, before: str, target: str) -> str:
        self.check(target)
        return target

    def resolve(self, host: str, port: int, timeout_s: float) -> str | None:
        private = f"{host} is on this machine or a private network, which is not allowed. {ALLOW}"
        return _look_up(host, port, timeout_s, self._allowed, private)


class DependencyPolicy(IndexPolicy):
    """The policy for addresses in packages, lockfiles and registries: https, and public addresses only.

    ``trusted``: hosts (with ports) that the user named, such as a private registry. They may have any address.
    ``allow_private``: all hosts may have any address, and this machine may be used over plain http. Behind a proxy of
    the environment, the proxy resolves names and decides about their addresses.
    """

    def __init__(self, trusted: Collection[str] = (), allow_private: bool = False) -> None:
        self._trusted = frozenset(trusted)
        self._allow_private = allow_private

    def check(self, url: str) -> None:
        super().check(url)
        if index_url.is_loopback(url) and not self._allow_private and host_of(url) not in self._trusted:
            raise FetchError(f"{host_of(url)} is this machine, which a package may not name. {ALLOW_DEPENDENCIES}")

    def redirect(self, before: str, target: str) -> str:
        url = super().redirect(before, target)
        self.check(url)
        return url

    def resolve(self, host: str, port: int, timeout_s: float) -> str | None:
        url_host = f"[{host}]" if ":" in host else host
        is_trusted = not self._trusted.isdisjoint((url_host, f"{url_host}:{port}"))
        if self._allow_private or is_trusted or proxy_of(f"https://{url_host}"):
            return None
        private = f"{host} is in a private network, which a package may not name. {ALLOW_DEPENDENCIES}"
        return _look_up(host, port, timeout_s, is_public, private)


HttpPolicy = IndexPolicy | DocumentPolicy
"""The rules for the URLs and addresses that a client may request."""


def proxy_of(url: str) -> str | None:
    """Host and port of the proxy that the environment names for a URL; None without one."""
    import urllib.request

    parts, proxies = urllib.parse.urlsplit(url), urllib.request.getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or parts.hostname in index_url.LOOPBACK or urllib.request.proxy_bypass(parts.netloc):
        return None
    return host_of(proxy if "://" in proxy else f"http://{proxy}")


def _look_up(host: str, port: int, timeout_s: float, allowed: Allowed, private: str) -> str:
    """An address of a host name. Raises :class:`Unreachable` if there is none, the name is bad or the time is over, and
    :class:`FetchError`, with the message ``private``, if one of the addresses is not allowed."""
    answers: queue.SimpleQueue[list[str]] = queue.SimpleQueue()

    def resolve() -> None:
        try:
            answers.put([str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)])
        except (OSError, ValueError):
            answers.put([])

    threading.Thread(target=resolve, name="name lookup", daemon=True).start()  # a lookup has no timeout of its own
    try:
        names = answers.get(timeout=max(timeout_s, 0.001))
        addresses = [ipaddress.ip_address(name.partition("%")[0]) for name in names]
    except (queue.Empty, ValueError):
        addresses = []
    if not addresses:
        raise Unreachable(f"There is no host {host}. Check the address and the network.")
    if not all(map(allowed, addresses)):
        raise FetchError(private)
    return str(addresses[0])


def is_public(address: Address) -> bool:
    """Whether an address is public. If it contains an IPv4 address, that one is checked."""
    if isinstance(address, ipaddress.IPv6Address):
        if any(address in network for network in _WRAPS_IPV4):
            return is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        if address not in _PUBLIC_IPV6:
            return False
    return not any(address in network for network in _NOT_PUBLIC)


def anything(address: Address) -> bool:
    """Allow every address."""
    return True


def host_of(url: str) -> str:
    """Host and port of a URL, without credentials; empty if the URL is not valid."""
    try:
        return urllib.parse.urlsplit(url).netloc.rpartition("@")[2]
    except ValueError:
        return ""
