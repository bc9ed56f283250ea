"""The options of the HTTP server: one frozen value, which ``anvil serve`` and ``anvil.asgi`` make and pass whole."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from anvil.errors import ConfigError
from anvil.server.oauth import OAuthSettings
from anvil.settings.index_url import LOOPBACK

T = TypeVar("T")
ANY_HOST = "*"
_AFTER_BRACKET = re.compile(r"(?::\d*)?")
_SECONDS = {"second": 1, "minute": 60, "hour": 3600}
_RATE = re.compile(r"(\d{1,9})\s*/\s*(second|minute|hour)")


class Rate(NamedTuple):
    """So many requests in so many seconds. All of them may come at once; they come back one by one."""

    requests: int
    seconds: int

    @classmethod
    def parsed(cls, text: str) -> Rate | None:
        """The rate in a text such as ``60/minute``; None for a blank one. Raises :class:`ConfigError`."""
        if not text.strip():
            return None
        match = _RATE.fullmatch(text.strip())
        if match is None or int(match[1]) == 0:
            raise ConfigError(
                f"ANVIL_RATE_LIMIT is {text!r}. Write a number per second, minute or hour, such as 60/minute."
            )
        return cls(int(match[1]), _SECONDS[match[2]])


def number(text: str, variable: str, meaning: str) -> int:
    """The number in a variable. Raises :class:`ConfigError`."""
    if not text.strip().isdecimal() or len(text.strip()) > 9:
        raise ConfigError(f"{variable} is {text.strip()!r}. Write a number of {meaning}.")
    return int(text)


def _origins(text: str) -> tuple[str, ...]:
    origins = tuple(origin.lower().rstrip("/") for origin in text.split())
    for origin in origins:
        if origin != ANY_HOST and not re.fullmatch(r"https?://[^/?#@]+", origin):
            raise ConfigError(f"ANVIL_CORS_ORIGINS has {origin[:100]!r}. Write https://HOST of a page, or *.")
    return origins


def _option(
    default: T, variable: str | None, help: str = "", metavar: str | None = None, *, repr: bool = True, **more: Any
) -> T:
    """A field that a variable sets, to what ``read`` returns for its text. With ``help`` it is an option of ``anvil
    serve``, too, of which the command says itself if it is repeatable. ``range``: of a number."""
    read = (lambda text: tuple(text.split())) if default == () else str
    metadata = {"variable": variable, "read": read, "help": help, "metavar": metavar, **more}
    return field(default=default, repr=repr, metadata=metadata)


@dataclass(frozen=True)
class HttpOptions:
    """Where the server listens, who may connect, and how often. Raises :class:`ConfigError` for a public host without a
    token."""

    host: str = _option("127.0.0.1", "ANVIL_HOST", "Address to listen on (or ANVIL_HOST).")
    port: int = _option(8000, None, "0: any free port.", range=(0, 65535))
    token: str | None = _option(
        None, "ANVIL_TOKEN", "Bearer token that clients must send (better: ANVIL_TOKEN).", repr=False
    )
    """The token; that of the file, if there is one."""
    token_file: str | None = _option(
        None, "ANVIL_TOKEN_FILE", "File that holds the token, such as a mounted secret (or ANVIL_TOKEN_FILE).", "FILE"
    )
    oauth_issuer: tuple[str, ...] = _option(
        (), "ANVIL_OAUTH_ISSUER", "Identity provider whose access tokens are accepted, by its issuer", "URL"
    )
    oauth_resource: str = _option(
        "",
        "ANVIL_OAUTH_RESOURCE",
        "With --oauth-issuer: this server's address for clients, for which tokens must be made.",
        "URL",
    )
    oauth_scope: tuple[str, ...] = _option(
        (), "ANVIL_OAUTH_SCOPES", "With --oauth-issuer: a scope that tokens must have", "NAME"
    )
    insecure: bool = _option(False, None, "Allow --host other than loopback without a token.")
    allowed_host: tuple[str, ...] = _option(
        (), "ANVIL_ALLOWED_HOST", "Host name by which clients may call the server", "NAME"
    )
    allowed_origins: tuple[str, ...] = _option((), "ANVIL_CORS_ORIGINS", read=_origins)
    """Origins of web pages that may send requests besides those of the hosts, in lower case: ``https://example.org``."""
    rate: Rate | None = _option(None, "ANVIL_RATE_LIMIT", read=Rate.parsed)  # noqa: RUF009 - it is a field
    """How many requests one client may send."""
    proxies: int = _option(
        0,
        "ANVIL_PROXIES",
        "Proxies in front of the server; each adds its client's address to X-Forwarded-For (or ANVIL_PROXIES).",
        "N",
        read=partial(number, variable="ANVIL_PROXIES", meaning="proxies in front of the server"),
        range=(0, None),
    )
    oauth: OAuthSettings = field(init=False)
    """The identity providers whose access tokens are accepted, besides the token."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "token", _read_token(self.token, self.token_file))
        object.__setattr__(self, "oauth", OAuthSettings(self.oauth_issuer, self.oauth_resource, self.oauth_scope))
        if self.token is not None and (not self.token.isascii() or not self.token.isprintable() or " " in self.token):
            raise ConfigError("The token must be printable ASCII without spaces. Choose another, and set ANVIL_TOKEN.")
        for name in self.allowed_host:
            bare = name.strip("[]")
            if name != ANY_HOST and parsed_address(bare) is None and not re.fullmatch(r"[A-Za-z0-9._-]+", bare):
                raise ConfigError(
                    f"No client can have the allowed host {name[:100]!r}. Name a host alone, without scheme and port, "
                    "such as docs.example.org, or '*' for all."
                )
        if not is_loopback(self.host) and not self.needs_token and not self.insecure:
            raise ConfigError(
                f"{self.host} can be reached from other machines. Set a token with ANVIL_TOKEN or --token-file, "
                "or an identity provider with --oauth-issuer, or add --insecure if everyone who can reach it may read "
                "the documents."
            )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], **more: Any) -> HttpOptions:
        """The options by their variables, but ``more`` as given. Raises :class:`ConfigError` for an invalid value."""
        for each in fields(cls):
            text = environment.get(each.metadata.get("variable") or "")
            if text is not None and each.name not in more:
                more[each.name] = each.metadata["read"](text)
        return cls(**more)

    @property
    def needs_token(self) -> bool:
        """Whether clients must send the server's token or an access token."""
        return bool(self.token or self.oauth.issuers)

    def allows_origin(self, origin: str) -> bool:
        return ANY_HOST in self.allowed_origins or origin.lower() in self.allowed_origins

    def knows(self, host: str) -> bool:
        """Whether clients may use this host name (without port)."""
        name = host.lower().rstrip(".")
        if ANY_HOST in self.allowed_host or name in {
            allowed.lower().strip("[]") for allowed in (*LOOPBACK, *self.allowed_host)
        }:
            return True
        own = parsed_address(self.host)
        if self.host == "" or (own is not None and own.is_unspecified):  # it listens on all addresses of the machine
            return parsed_address(name) is not None  # DNS rebinding needs a name: an address is safe
        return name == self.host.lower()


def _read_token(token: str | None, file: str | None) -> str | None:
    """The token, as given or from its file; None without either. Raises :class:`ConfigError`."""
    if token == "":  # most likely from a shell variable that is not set; the server must not start without a token
        raise ConfigError("The token is empty. Give one with ANVIL_TOKEN or --token-file, or leave --token out.")
    if file is None:
        return token
    if token is not None:
        raise ConfigError("There is a token and a token file. Give one of them: ANVIL_TOKEN or ANVIL_TOKEN_FILE.")
    try:
        text = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(
            f"The token file {file} cannot be read ({reason}). Write the token into it, and let this user read it."
        ) from None
    if not text:
        raise ConfigError(f"The token file {file} is empty. Write the token into it.")
    return text


def is_loopback(host: str) -> bool:
    address = parsed_address(host)
    return host.lower() == "localhost" or (address is not None and address.is_loopback)


def parsed_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The IP address that a text is; None for another text."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def host_name(value: str) -> str | None:
    """The host in a ``Host`` header, or in an ``Origin`` without its scheme; None if it is not valid."""
    if "]" in value and not _AFTER_BRACKET.fullmatch(value.rpartition("]")[2]):
        return None  # urlsplit drops what follows
    try:
        parts = urlsplit(f"http://{value}")
        _ = parts.port  # raises if it is not a number
    except ValueError:
        return None
    return None if parts.path or parts.query or parts.username is not None else parts.hostname
