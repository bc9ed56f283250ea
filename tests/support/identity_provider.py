"""A small identity provider on loopback: metadata, signing keys, and a token endpoint for clients with a secret."""

from __future__ import annotations

import base64
import functools
import json
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

SECRETS = {"agent": "agent-secret"}
"""Client id -> secret."""


@functools.cache
def _made(key_id: str, kind: str) -> Any:
    """A key, which is made once for all providers: one of RSA takes 50 ms."""
    return rsa.generate_private_key(65537, 2048) if kind == "RSA" else ec.generate_private_key(ec.SECP256R1())


class Provider:
    """The provider's keys, what it was asked for, and tokens of any kind."""

    def __init__(self, url: str) -> None:
        self.issuer = url
        self.requests: list[str] = []
        self.keys: dict[str, Any] = {}
        self.rotate("first")

    def rotate(self, key_id: str, kind: str = "RSA") -> None:
        """Replace the signing key."""
        self.keys = {key_id: _made(key_id, kind)}

    def public_keys(self) -> dict[str, Any]:
        """The JSON Web Key Set."""
        entries = []
        for key_id, key in self.keys.items():
            kind = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
            entries.append({**json.loads(kind.to_jwk(key.public_key())), "kid": key_id, "use": "sig"})
        return {"keys": entries}

    def token(self, audience: str, scope: str | None = "", *, key: Any = None, key_id: str = "", **claims: Any) -> str:
        """An access token for an audience."""
        known_id, known = next(iter(self.keys.items()))
        content = {"iss": self.issuer, "aud": audience, "sub": "agent", "exp": time.time() + 300, "scope": scope}
        signing = key or known
        algorithm = "RS256" if isinstance(signing, rsa.RSAPrivateKey) else "ES256"
        kept = {name: value for name, value in {**content, **claims}.items() if value is not None}
        return jwt.encode(kept, signing, algorithm, headers={"kid": key_id or known_id})

    def answer(self, path: str, form: dict[str, str], authorization: str) -> tuple[int, Any]:
        """The status and the JSON for a request."""
        if path == "/.well-known/openid-configuration":
            return 200, {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
                "response_types_supported": ["code"],
                "grant_types_supported": ["client_credentials"],
                "token_endpoint_auth_methods_supported": ["client_secret_basic"],
            }
        if path == "/keys":
            return 200, self.public_keys()
        if path == "/token":
            client, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
            if SECRETS.get(client) != secret or form.get("grant_type") != "client_credentials":
                return 401, {"error": "invalid_client"}
            token = self.token(form["resource"], form.get("scope", ""))
            return 200, {"access_token": token, "token_type": "Bearer", "expires_in": 300}
        return 404, {"error": "not_found"}


@contextmanager
def running() -> Iterator[Provider]:
    """The provider on a port of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
            path = urllib.parse.urlsplit(self.path).path
            provider.requests.append(path)
            status, value = provider.answer(
                path, dict(urllib.parse.parse_qsl(body)), self.headers.get("authorization", "")
            )
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        provider = Provider(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()
