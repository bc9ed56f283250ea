"""The server as an OAuth resource server: it accepts the access tokens of one identity provider, and says of which.

The text is https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization, with RFC 9728 (metadata of a
protected resource), RFC 8707 (audience) and RFC 6750 (challenges).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from anvil.errors import AnvilError, ConfigError
from anvil.settings import index_url

METADATA_PATH = "/.well-known/oauth-protected-resource"
METADATA_CACHE = "public, max-age=3600"


class Refusal(NamedTuple):
    """Why a request is refused: status, message, and the challenge in ``WWW-Authenticate``."""

    status: int
    message: str
    challenge: str


@dataclass(frozen=True)
class OAuthSettings:
    """The identity provider, the address of this server for its clients, and the scopes that a token must have.

    Raises :class:`ConfigError` for an address that is neither https nor of this machine.
    """

    issuer: str
    resource: str
    scopes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, url in (("issuer", self.issuer), ("resource", self.resource)):
            if not index_url.is_allowed(url) or "#" in url or "?" in url:
                raise ConfigError(f"The OAuth {name} {url!r} is not an https address. Check --oauth-{name}.")
        if any(not scope.isascii() or not scope.isprintable() or set(scope) & set(' "\\') for scope in self.scopes):
            raise ConfigError("An OAuth scope has a character that is not allowed. Check --oauth-scope.")

    @classmethod
    def given(cls, issuer: str | None, resource: str | None, scopes: tuple[str, ...] = ()) -> OAuthSettings | None:
        """The settings from options; None without any. Raises :class:`ConfigError` if one is missing."""
        if not issuer and not resource and not scopes:
            return None
        if not issuer or not resource:
            raise ConfigError("OAuth needs both the issuer and the resource: --oauth-issuer and --oauth-resource.")
        return cls(issuer, resource, scopes)

    @property
    def metadata_paths(self) -> tuple[str, ...]:
        """Where the metadata is: with the path of the resource (RFC 9728), and without."""
        path = urlsplit(self.resource).path.rstrip("/")
        return (f"{METADATA_PATH}{path}", METADATA_PATH) if path else (METADATA_PATH,)

    def metadata(self) -> Mapping[str, Any]:
        """The metadata of this server as a protected resource."""
        scopes = {"scopes_supported": list(self.scopes)} if self.scopes else {}
        return {
            "resource": self.resource,
            "authorization_servers": [self.issuer],
            "bearer_methods_supported": ["header"],
            "resource_name": "Anvil",
            **scopes,
        }

    def challenge(self, error: str = "") -> str:
        """``WWW-Authenticate``: where the metadata is, and which scopes are needed."""
        parts = urlsplit(self.resource)
        parameters = [
            *([f'error="{error}"'] if error else []),
            f'resource_metadata="{parts.scheme}://{parts.netloc}{self.metadata_paths[0]}"',
            *([f'scope="{" ".join(self.scopes)}"'] if self.scopes else []),
        ]
        return f"Bearer {', '.join(parameters)}"


class TokenGuard:
    """Decides about access tokens."""

    def __init__(self, settings: OAuthSettings) -> None:
        from anvil.server.identity_provider import IdentityProvider  # imports the HTTP client

        self.settings = settings
        self._provider = IdentityProvider(settings.issuer)
        resource = settings.resource.rstrip("/")
        self._audiences = (resource, f"{resource}/")

    async def refusal(self, token: str | None) -> Refusal | None:
        """Why a request with this token is refused; None if it is accepted."""
        import asyncio  # the settings above are also read by servers over stdio, which need it later

        from anvil.server.identity_provider import InvalidToken

        settings = self.settings
        if not token:
            return Refusal(401, "Send an access token: Authorization: Bearer TOKEN.", settings.challenge())
        try:
            claims = await asyncio.to_thread(self._provider.claims, token, self._audiences)
        except InvalidToken as error:
            return Refusal(401, f"{error} Get another one.", settings.challenge("invalid_token"))
        except AnvilError:
            return Refusal(503, "The identity provider cannot be reached. Try again later.", settings.challenge())
        missing = [scope for scope in settings.scopes if scope not in _scopes(claims)]
        if missing:
            message = f"The token lacks the scope {' '.join(missing)}."
            return Refusal(403, message, settings.challenge("insufficient_scope"))
        return None


def _scopes(claims: Mapping[str, Any]) -> set[str]:
    """The scopes of a token: ``scope`` (RFC 9068), or ``scp`` as some providers name it, as text or a list."""
    found: set[str] = set()
    for name in ("scope", "scp"):
        value = claims.get(name)
        if isinstance(value, str):
            found |= set(value.split())
        elif isinstance(value, list):
            found |= {str(item) for item in value}
    return found
