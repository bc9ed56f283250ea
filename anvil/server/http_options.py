"""The options of the HTTP server: address, token, host names, rate, proxies. ``anvil serve`` and ``anvil.asgi`` make
one frozen value of them, and pass it whole."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from anvil.errors import ConfigError
from anvil.server.oauth import OAuthSettings
from anvil.settings import index_url

T = TypeVar("T")
ANY_HOST = "*"
_HOST = re.compile(r"(\[[\w.:]+\]|[\w.-]+)(?::\d*)?", re.ASCII)
_SECONDS = {"second": 1, "minute": 60, "hour": 3600}
_RATE = re.compile(r"(\d{1,9})\s*/\s*(second|minute|hour)")


class Rate(NamedTuple):
    """A number of requests, and the seconds in which a client may send so many.

    All of them may come at once. After that, one more is allowed each ``seconds / requests``.
    """

    requests: int
    seconds: int

    @classmethod
    def parsed(cls, text: str) -> Rate | None:
        """The rate in a text such as ``60/minute``; None for a blank text. Raises :class:`ConfigError` for another."""
        if not text.strip():
            return None
        match = _RATE.fullmatch(text.strip())
        if match is None or int(match[1]) == 0:
            raise ConfigError(
                f"ANVIL_RATE_LIMIT is {text!r}. Write a number per second, minute or hour, such as 60/minute."
            )
        return cls(int(match[1]), _SECONDS[match[2]])


def number(text: str, variable: str, meaning: str) -> int:
    """The number in the text of a variable. Raises :class:`ConfigError` if it is none. ``meaning``: what it counts."""
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
    """A field that an environment variable can set.

    With ``help`` it is also an option of ``anvil serve``. If the default is ``()``, the option is repeatable, and the
    command adds that to the help. ``read``, in ``more``: the function from the text of the variable to the value.
    ``range``: the least and the largest number.
    """
    read = (lambda text: tuple(text.split())) if default == () else str
    metadata = {"variable": variable, "read": read, "help": help, "metavar": metavar, **more}
    return field(default=default, repr=repr, metadata=metadata)


@dataclass(frozen=True)
class HttpOptions:
    """The address of the server, who may connect, and how often.

    Raises :class:`ConfigError` for a public host without a token, and for values that are not valid.
    """

    host: str = _option("127.0.0.1", "ANVIL_HOST", "Address to listen on (or ANVIL_HOST).")
    port: int = _option(8000, None, "0: any free port.", range=(0, 65535))
    token: str | None = _option(
        None, "ANVIL_TOKEN", "Bearer token that clients must send (better: ANVIL_TOKEN).", repr=False
    )
    """The token. If there is a token file, it is read from there."""
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
    """Origins of web pages that may send requests, in lower case: ``https://example.org``. Pages of the allowed hosts
    may anyway."""
    rate: Rate | None = _option(None, "ANVIL_RATE_LIMIT", read=Rate.parsed)  # noqa: RUF009 - it is a field
    """The requests that one client may send; None without a limit."""
    proxies: int = _option(
        0,
        "ANVIL_PROXIES",
        "Proxies in front of the server; each adds its client's address to X-Forwarded-For (or ANVIL_PROXIES).",
        "N",
        read=partial(number, variable="ANVIL_PROXIES", meaning="proxies in front of the server"),
        range=(0, None),
    )
    oauth: OAuthSettings = field(init=False)
    """The identity providers whose access tokens are accepted, as well as the token."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "token", _read_token(self.token, self.token_file))
        object.__setattr__(self, "oauth", OAuthSettings(self.oauth_issuer, self.oauth_resource, self.oauth_scope))
        if self.token is not None and (not self.token.isascii() or not self.token.isprintable() or " " in self.token):
            raise ConfigError("The token must be printable ASCII without spaces. Choose another, and set ANVIL_TOKEN.")
        for name in self.allowed_host:
            bare = name.strip("[]")
            if name != ANY_HOST and parsed_address(bare) is None and not re.fullmatch(r"[A-Za-z0-9._-]+", bare):
                raise ConfigError(
                    f"The allowed host {name[:100]!r} is not a host name. Write it without scheme and port, such as "
                    "docs.example.org, or '*' for all hosts."
                )
        if not is_loopback(self.host) and not self.needs_token and not self.insecure:
            raise ConfigError(
                f"{self.host} can be reached from other machines. Set a token with ANVIL_TOKEN or --token-file, "
                "or an identity provider with --oauth-issuer, or add --insecure if everyone who can reach it may read "
                "the documents."
            )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], **more: Any) -> HttpOptions:
        """The options from their variables; those in ``more`` are taken as they are. Raises :class:`ConfigError` for an
        invalid value."""
        for option in fields(cls):
            text = environment.get(option.metadata.get("variable") or "")
            if text is not None and option.name not in more:
                more[option.name] = option.metadata["read"](text)
        return cls(**more)

    @property
    def needs_token(self) -> bool:
        """Whether clients must send the server's token or an access token."""
        return bool(self.token or self.oauth.issuers)

    def allows_origin(self, origin: str) -> bool:
        return ANY_HOST in self.allowed_origins or origin.lower() in self.allowed_origins

    def knows(self, host: str) -> bool:
        """Whether clients may call the server by this host name (without port)."""
        name = host.lower().rstrip(".")
        if ANY_HOST in self.allowed_host or name in {
            allowed.lower().strip("[]") for allowed in (*index_url.LOOPBACK, *self.allowed_host)
        }:
            return True
        own = parsed_address(self.host)
        if self.host == "" or (own is not None and own.is_unspecified):  # it listens on all addresses of the machine
            return parsed_address(name) is not None  # an address is safe, because DNS rebinding needs a name
        return name == self.host.lower()


def _read_token(token: str | None, file: str | None) -> str | None:
    """The token, from the option or from its file; None without either. Raises :class:`ConfigError`."""
    if token == "":  # most likely a shell variable that is not set: the server must not start without a token then
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
    """The IP address in a text; None if it is none."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def host_name(value: str) -> str | None:
    """The host in a ``Host`` header, or in an ``Origin`` without its scheme; None if it is not valid."""
    match = _HOST.fullmatch(value)
    return match and match[1].strip("[]").lower()
