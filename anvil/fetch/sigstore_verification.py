"""Verifying attestations with Sigstore's own library, offline: no server is asked.

The package is an extra. Its root of trust, the keys of the public Sigstore, comes with it.
"""

from __future__ import annotations

import importlib.util
import logging
import urllib.parse
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from anvil.errors import ConfigError, NotAttested
from anvil.fetch import attestation_bundle
from anvil.fetch.attestation_bundle import Attestation
from anvil.formats.control_characters import without_control

if TYPE_CHECKING:
    from sigstore.models import TrustedRoot
    from sigstore.verify import Verifier

PUBLIC = "https://tuf-repo-cdn.sigstore.dev"
"""The public Sigstore, by the address of its root of trust."""
MAX_ROOT_BYTES = 1_000_000


def is_installed() -> bool:
    """Whether attestations can be verified here."""
    return importlib.util.find_spec("sigstore") is not None


def verify(bundles: Sequence[str], sha256: str, trusted_root: str | None = None) -> list[Attestation]:
    """Who built the file with this SHA-256: of each bundle that is a valid attestation of it by a workflow of GitHub.

    ``trusted_root``: the file of another Sigstore's trusted root. Raises :class:`NotAttested`, with the reason, when no
    bundle is valid, and :class:`ConfigError`.
    """
    logging.getLogger("sigstore").addHandler(logging.NullHandler())  # else its warnings are printed
    from sigstore.verify import Verifier

    verifier = Verifier(trusted_root=_public_root() if trusted_root is None else _root(Path(trusted_root)))
    found, problem = [], "there is none"
    for bundle in bundles:
        try:
            found.append(_verified(verifier, bundle, sha256))
        except NotAttested as error:
            problem = str(error)
    if not found:
        raise NotAttested(problem)
    return found


def _verified(verifier: Verifier, text: str, sha256: str) -> Attestation:
    from sigstore.models import Bundle
    from sigstore.verify.policy import OIDCIssuerV2

    try:
        attestation_bundle.check_bundle(text)
        bundle = Bundle.from_json(text)
        payload_type, payload = verifier.verify_dsse(bundle, OIDCIssuerV2(attestation_bundle.ISSUER))
        extensions = {
            each.oid.dotted_string: each.value.public_bytes()
            for each in bundle.signing_certificate.extensions
            if each.oid.dotted_string in attestation_bundle.EXTENSIONS
        }
        attestation_bundle.check_statement(payload_type, payload, sha256)
        return attestation_bundle.identity(extensions)
    except Exception as error:  # bundles are hostile, and the parsers below raise many things: it is not verified then
        first = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
        raise NotAttested(without_control(first)[:300].rstrip(".")) from error


def _public_root() -> TrustedRoot:
    """The trusted root in the package. Its own function prefers a copy that it once made in the user's cache, which is
    never renewed offline."""
    from sigstore.models import TrustedRoot

    place = resources.files("sigstore") / "_store" / urllib.parse.quote(PUBLIC, safe="") / "trusted_root.json"
    with resources.as_file(place) as path:
        return TrustedRoot.from_file(str(path))


def _root(path: Path) -> TrustedRoot:
    from sigstore.models import TrustedRoot

    try:
        if path.stat().st_size > MAX_ROOT_BYTES:
            raise ValueError(f"it has more than {MAX_ROOT_BYTES:,} bytes")
        return TrustedRoot.from_file(str(path))
    except Exception as error:  # OSError, and what the parsers raise about a file that is something else
        reason = getattr(error, "strerror", None) or next(iter(str(error).splitlines()), "")
        raise ConfigError(
            f"fetch.trusted_root: {path} cannot be used ({without_control(reason)[:200].rstrip('.')}). "
            "Name a trusted_root.json of Sigstore."
        ) from error
