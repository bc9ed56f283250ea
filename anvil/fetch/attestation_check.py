"""The attestation of a fetched index: found beside it or at GitHub, verified, and remembered in the cache.

Sigstore's own library verifies it offline: no server is asked. The package is an extra. Its root of trust, the keys of
the public Sigstore, comes with it.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import urllib.parse
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from anvil.errors import ConfigError, FetchError, NotAttested
from anvil.fetch import attestation_bundle
from anvil.fetch.attestation_bundle import Attestation, AttestationRule
from anvil.fetch.fetched_cache import FetchedCache
from anvil.fetch.github import Api
from anvil.fetch.settings import FetchOptions
from anvil.formats.characters import without_control
from anvil.http.client import HttpClient
from anvil.settings import index_url
from anvil.settings.index_url import GitHubAddress, WebAddress
from anvil.system import installation

if TYPE_CHECKING:
    from sigstore.models import TrustedRoot
    from sigstore.verify import Verifier


ABSENT = (403, 404, 410)
"""Statuses of a file that is not there; some stores answer 403 for a missing file."""


def rule_of(options: FetchOptions, base: Path) -> AttestationRule:
    """The rule of a configuration. ``base``: the start of its relative paths."""
    return AttestationRule(
        required=options.require_attestation or options.attested_by is not None,
        builder=options.attested_by,
        trusted_root=str(base / options.trusted_root) if options.trusted_root is not None else None,
    )


@dataclass(frozen=True, slots=True)
class Examined:
    """``attestation``: who built the index, None if that is not proven. ``notes``: why it is not."""

    attestation: Attestation | None = None
    notes: tuple[str, ...] = ()


class Examiner:
    """Finds out who built the indexes of one source.

    ``rule``: None when nobody asks. ``expected``: who builds what is at that source, as its address says. ``shown``:
    the source in messages. ``cache``: where results are remembered. Raises :class:`ConfigError` for a rule that cannot
    be kept.
    """

    def __init__(
        self, rule: AttestationRule | None, expected: str | None, shown: str, cache: FetchedCache | None = None
    ) -> None:
        self.rule, self._shown, self._cache = rule, shown, cache
        self._builder = (rule and rule.builder) or expected
        if rule is None or not rule.required:
            return
        if self._builder is None:
            raise ConfigError(
                f"{shown} must have an attestation, but nothing says who must have built it. Name the repository with "
                "--attested-by OWNER/REPO, or with attested_by in the configuration."
            )
        if not is_installed():
            raise ConfigError(
                f"{shown} must have an attestation, and verifying it needs the package sigstore. "
                f"Install it: {installation.install_extras('attest')}"
            )

    def recall(self, sha256: str) -> Attestation | None:
        """Who built an index that was verified before, if it is who must have built it."""
        if self.rule is None or self._cache is None:
            return None
        return recalled(self._cache, sha256, self._builder, self.rule.trusted_root)

    def is_settled(self, sha256: str) -> bool:
        """Whether nothing more can be found out about an index."""
        return self.rule is None or self.recall(sha256) is not None

    def offline(self, sha256: str) -> Attestation | None:
        """Who built a cached index. Raises :class:`NotAttested` if that must be known and is not."""
        found = self.recall(sha256)
        if found is None and self.rule is not None and self.rule.required:
            raise NotAttested(
                f"The cached index of {self._shown} is refused: its attestation was not verified before. "
                "Fetch it again when the network is there."
            )
        return found

    def examine(self, sha256: str, read: Callable[[], Sequence[str]]) -> Examined:
        """Verify the attestation of an index. ``read``: gets the bundles, none if there is no attestation.

        Raises :class:`NotAttested` if the rule demands a valid one and there is none, :class:`FetchError` if that
        cannot be found out.
        """
        rule = self.rule
        if rule is None:
            return Examined()
        known = self.recall(sha256)
        if known is not None:
            return Examined(known)
        try:
            bundles = (
                read()
            )  # before sigstore is looked for: an index without an attestation needs no advice to install it
            if not bundles and not rule.required:
                return Examined()
            if not bundles:
                raise NotAttested("it has no attestation")
            if not is_installed():
                install = installation.install_extras("attest")
                note = f"Its attestation is not verified: that needs the package sigstore. Install it: {install}"
                return Examined(None, (note,))
            found = self._chosen(verify(bundles, sha256, rule.trusted_root))
        except NotAttested as error:
            if rule.required:
                raise NotAttested(
                    f"{self._shown} is refused, because {self._builder} must have built it: {error}. "
                    "Ask its publisher, or correct who must have built it."
                ) from None
            return Examined(None, (f"Its attestation is not valid: {error}.",))
        except FetchError as error:
            if rule.required:
                raise
            return Examined(None, (f"Its attestation cannot be fetched: {error}",))
        if self._cache is not None:
            self._cache.note(note_of(sha256, rule.trusted_root), json.dumps(asdict(found), sort_keys=True))
        return Examined(found)

    def _chosen(self, found: Sequence[Attestation]) -> Attestation:
        fit = next((each for each in found if attestation_bundle.is_by(each, self._builder)), None)
        if fit is None:
            raise NotAttested(f"it was built by {found[0].repository}, not by {self._builder}")
        return fit


def recalled(cache: FetchedCache, sha256: str, builder: str | None, trusted_root: str | None) -> Attestation | None:
    """Who built an index, if its attestation was verified before with the same trusted root, and it is ``builder``."""
    text = cache.held_by(note_of(sha256, trusted_root))
    try:
        found = Attestation(**json.loads(text)) if text else None
    except (ValueError, TypeError):
        return None  # written by another version
    return found if found is not None and attestation_bundle.is_by(found, builder) else None


def note_of(sha256: str, trusted_root: str | None) -> str:
    """The name of the note in the cache that says who built an index."""
    return f"attestation {sha256} {trusted_root or ''}"


def beside(http: HttpClient, url: str) -> list[str]:
    """The bundles in the file beside an index on a web server. Raises :class:`FetchError`, :class:`NotAttested`."""
    parts = urllib.parse.urlsplit(url)
    place = urllib.parse.urlunsplit(parts._replace(path=parts.path + attestation_bundle.SUFFIX))
    with http.get(place) as reply:
        if reply.status in ABSENT:
            return []
        shown = index_url.without_secrets(reply.url)
        if reply.status != 200:
            raise FetchError(f"{shown} answered with status {reply.status}.")
        return _parsed(reply.text(attestation_bundle.MAX_BYTES), shown)


def of_file(path: Path) -> list[str]:
    """The bundles in the file beside an index on this machine. Raises :class:`NotAttested`."""
    place = path.with_name(path.name + attestation_bundle.SUFFIX)
    if not place.is_file():
        return []
    with place.open("rb") as file:
        data = file.read(attestation_bundle.MAX_BYTES + 1)
    return of_bytes(data, str(place))


def of_bytes(data: bytes, shown: str) -> list[str]:
    """The bundles in a file that was read. Raises :class:`NotAttested`."""
    if len(data) > attestation_bundle.MAX_BYTES:
        raise NotAttested(f"{shown} is longer than {attestation_bundle.MAX_BYTES:,} bytes")
    return _parsed(data.decode("utf-8", "replace"), shown)


def of_github(http: HttpClient, address: GitHubAddress, sha256: str) -> list[str]:
    """The bundles that GitHub keeps of an index that a workflow attested. Raises :class:`FetchError`, also when one of
    them cannot be read: what it says is not known then."""
    api = Api(http, address)
    url = f"{api.root}/attestations/sha256:{sha256}?per_page={attestation_bundle.MAX_BUNDLES}"
    response, _ = api.get(url, "the attestation", may_be_missing=True)
    if response is None:
        return []
    try:
        return attestation_bundle.bundles_of_api(response, lambda stored: _stored(http, url, stored))
    except ValueError as error:
        shown = index_url.without_secrets(url)
        raise FetchError(
            f"{shown} answered with something unknown: {error}. Update Anvil, or try again later."
        ) from None


def _stored(http: HttpClient, api: str, url: str) -> str:
    """The bundle in GitHub's storage at ``url``, which the answer of ``api`` names. It is requested like the target
    of a redirect, and without the token: the address is signed."""
    with http.anonymous() as anonymous, anonymous.get(anonymous.target(api, url)) as reply:
        shown = index_url.without_secrets(reply.url)
        if reply.status != 200:
            raise FetchError(f"{shown} answered with status {reply.status}. Try again later.")
        data = reply.body(attestation_bundle.MAX_BYTES)
    try:
        return attestation_bundle.stored_bundle(data)
    except ValueError as error:
        raise FetchError(f"The attestation at {shown} cannot be read, because {error}. Update Anvil.") from None


def of_server(http: HttpClient, address: WebAddress | GitHubAddress, url: str, sha256: str) -> list[str]:
    """The bundles of the index at ``url``, which ``address`` led to."""
    return of_github(http, address, sha256) if isinstance(address, GitHubAddress) else beside(http, url)


def _parsed(text: str, shown: str) -> list[str]:
    try:
        return attestation_bundle.bundles(text)
    except ValueError as error:
        raise NotAttested(f"{shown} cannot be read, because {error}") from None


# --- verifying with Sigstore's library ---------------------------------------------------------------------------

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
