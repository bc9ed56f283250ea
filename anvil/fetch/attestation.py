"""Attestations of indexes: reading, verifying and caching who built one, and the rule on who must have built it.

Sigstore's own library, which is an extra, verifies them offline. The package brings its root of trust, which is the
keys of the public Sigstore.
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
from anvil.fetch.fetched_cache import FetchedCache
from anvil.fetch.settings import FetchOptions
from anvil.formats.characters import without_control
from anvil.formats.data_formats import json_object
from anvil.formats.patterns import OBJECT_ID
from anvil.settings.index_url import is_builder
from anvil.system import installation, safe_files

if TYPE_CHECKING:
    from sigstore.models import TrustedRoot
    from sigstore.verify import Verifier


@dataclass(frozen=True, slots=True)
class Attestation:
    """Who built an index, as a verified attestation says.

    ``repository``: ``OWNER/REPO`` on GitHub, whose workflow ran. ``workflow``: the file and ref of the workflow that
    signed, such as ``.github/workflows/docs.yml@refs/heads/main``; if it is of another repository, with that in front.
    ``commit``: the commit of ``repository`` for which the workflow ran. ``run``: its address; None if unknown.
    """

    repository: str
    workflow: str
    commit: str
    run: str | None = None

    @property
    def shown(self) -> str:
        return f"{self.repository}, {self.workflow}, commit {self.commit[:12]}"


@dataclass(frozen=True, slots=True)
class AttestationRule:
    """The rule for attestations. ``required``: whether an index without a valid one is refused. ``builder``: who must
    have built it, ``OWNER`` or ``OWNER/REPO``; None means whom the address of the index names. ``trusted_root``: the
    file with the trusted root of another Sigstore; None means the public one."""

    required: bool = False
    builder: str | None = None
    trusted_root: str | None = None


SUFFIX = ".sigstore.json"
"""The ending that the file with the attestation of an index has behind the name of the index."""
MAX_BYTES = 1_000_000
"""Bytes of the longest file with attestations. One attestation has about 12,000."""
MAX_BUNDLES = 30
"""Attestations of one index that are verified."""
ISSUER = "https://token.actions.githubusercontent.com"
"""The issuer of the tokens by which workflows of GitHub get their certificates."""
GITHUB = "https://github.com/"
PAYLOAD = "application/vnd.in-toto+json"
STATEMENTS = ("https://in-toto.io/Statement/v1", "https://in-toto.io/Statement/v0.1")
PROVENANCE = "https://slsa.dev/provenance/v1"
"""The kind of statement that says who built a file. There are others, such as bills of materials."""
EXTENSIONS = {
    "1.3.6.1.4.1.57264.1.9": "signer",
    "1.3.6.1.4.1.57264.1.12": "repository",
    "1.3.6.1.4.1.57264.1.13": "commit",
    "1.3.6.1.4.1.57264.1.21": "run",
}
"""Object identifier -> name of the extensions that are read from a certificate of Fulcio, Sigstore's authority."""


def is_by(attestation: Attestation, builder: str | None) -> bool:
    """Whether ``builder``, ``OWNER`` or ``OWNER/REPO``, built the index. GitHub ignores their case. None: anybody."""
    if builder is None:
        return True
    repository = attestation.repository.lower()
    return builder.lower() in (repository, repository.partition("/")[0])


# --- bundles in files and replies ------------------------------------------------------------------------------------


def bundles(data: bytes, shown: str) -> list[str]:
    """The bundles in the bytes of a file: one JSON object, or one in each line, as GitHub's programs write several.

    Empty if the file is not JSON at all, because many sites answer each request with a page. ``shown``: its name in
    errors. Raises :class:`NotAttested` if it is too long, or JSON of another form.
    """
    if len(data) > MAX_BYTES:
        raise NotAttested(f"{shown} is longer than {MAX_BYTES:,} bytes")
    text = data.decode("utf-8", "replace")
    if not text.lstrip("\ufeff \t\r\n").startswith("{"):
        return []
    if json_object(text) is not None:
        return [text]
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > MAX_BUNDLES:
        raise NotAttested(f"{shown} cannot be read, because it has more than {MAX_BUNDLES} lines")
    if any(json_object(line) is None for line in lines):
        raise NotAttested(f"{shown} cannot be read, because it is not JSON")
    return lines


def check_bundle(bundle: str) -> None:
    """Raise :class:`ValueError` if the text is not a bundle, or has no entry of a public log."""
    material = (json_object(bundle) or {}).get("verificationMaterial")
    if not isinstance(material, dict):
        raise ValueError("it is not a Sigstore bundle")
    if not material.get("tlogEntries"):
        raise ValueError(
            "it is not in a public log, as attestations of private repositories are not. "
            "'gh attestation verify' can verify those"
        )


def check_statement(payload_type: str, payload: bytes, sha256: str) -> None:
    """Raise :class:`ValueError` unless the signed statement says who built the file with this SHA-256."""
    statement = json_object(payload.decode("utf-8", "replace")) if payload_type == PAYLOAD else None
    if statement is None or statement.get("_type") not in STATEMENTS:
        raise ValueError("it is not a statement about files")
    if statement.get("predicateType") != PROVENANCE:
        raise ValueError(f"it is of another kind than {PROVENANCE}")
    subjects = statement.get("subject")
    digests = [row.get("digest") for row in subjects if isinstance(row, dict)] if isinstance(subjects, list) else []
    if sha256 not in [row.get("sha256") for row in digests if isinstance(row, dict)]:
        raise ValueError(f"it is of another file than the index, which has the SHA-256 {sha256[:16]}...")


def identity(extensions: dict[str, bytes]) -> Attestation:
    """Who signed. ``extensions``: object identifier -> value, from the certificate. Raises :class:`ValueError`."""
    values = {name: _utf8_string(extensions[oid]) for oid, name in EXTENSIONS.items() if oid in extensions}
    repository, signer = values.get("repository", ""), values.get("signer", "")
    commit = values.get("commit", "")
    slug = repository.removeprefix(GITHUB)
    if not repository.startswith(GITHUB) or not is_builder(slug) or "/" not in slug or not OBJECT_ID.fullmatch(commit):
        raise ValueError("its certificate does not name a repository of GitHub and a commit")
    owner = slug.partition("/")[0]
    if not signer.lower().startswith(f"{GITHUB}{owner}/".lower()):
        raise ValueError(f"a workflow of another owner signed it for {slug}: {signer[:200]}")
    workflow = signer.removeprefix(GITHUB)
    own = f"{slug}/"
    return Attestation(
        repository=slug,
        workflow=workflow[len(own) :] if workflow.lower().startswith(own.lower()) else workflow,
        commit=commit,
        run=values.get("run"),
    )


def _utf8_string(der: bytes) -> str:
    """The text of a DER ``UTF8String``, which is a tag, a length, and the text. Raises :class:`ValueError`."""
    if len(der) < 2 or der[0] != 0x0C:
        raise ValueError("its certificate has an extension that is not text")
    size, start = der[1], 2
    if size & 0x80:  # a text of 128 bytes or more: the other bits say how many bytes the length takes
        start += size & 0x7F
        size = int.from_bytes(der[2:start], "big")
    if len(der) != start + size:
        raise ValueError("its certificate has a text of another length than it says")
    return der[start:].decode("utf-8")


# --- finding, verifying and remembering ------------------------------------------------------------------------------


def rule_of(options: FetchOptions, base: Path) -> AttestationRule:
    """The rule in a configuration. ``base``: the folder of its relative paths."""
    return AttestationRule(
        required=options.require_attestation or options.attested_by is not None,
        builder=options.attested_by,
        trusted_root=str(base / options.trusted_root) if options.trusted_root is not None else None,
    )


@dataclass(frozen=True, slots=True)
class Examined:
    """The result of an examination. ``attestation``: who built the index; None if not proven. ``notes``: why not."""

    attestation: Attestation | None = None
    notes: tuple[str, ...] = ()


class Examiner:
    """Finds out who built the indexes of one source.

    ``rule``: None means that attestations are not read. ``expected``: who builds the index, as its address says.
    ``shown``: the source in messages. ``cache``: for results. Raises :class:`ConfigError` if the rule requires an
    attestation and none can be verified.
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
                "attested_by in the configuration, or with --attested-by OWNER/REPO of 'anvil pull'."
            )
        ensure_installed(f"{shown} must have an attestation")

    def known(self, sha256: str) -> Examined | None:
        """The result for an index that needs no examination: attestations are not read, or its attestation was verified
        before and has the right builder. Else None."""
        if self.rule is None:
            return Examined()
        if self._cache is None:
            return None
        recalled = verified_before(self._cache, sha256, self._builder, self.rule.trusted_root)
        return None if recalled is None else Examined(recalled)

    def offline(self, sha256: str) -> Examined:
        """The result for a cached index, without a request. Raises :class:`NotAttested` if an attestation is required
        and was not verified before."""
        known = self.known(sha256)
        if known is None and self.rule is not None and self.rule.required:
            raise NotAttested(
                f"The cached index of {self._shown} is refused: its attestation was not verified before. "
                "Fetch it again when the network is there."
            )
        return known or Examined()

    def examine(self, sha256: str, read: Callable[[], Sequence[str]]) -> Examined:
        """Verify the attestation of an index. ``read``: gives its bundles; none if it has no attestation.

        If the rule requires an attestation, :class:`NotAttested` is raised if there is no valid one, and
        :class:`FetchError` if the bundles cannot be fetched.
        """
        rule, known = self.rule, self.known(sha256)
        if rule is None or known is not None:
            return known or Examined()
        try:
            bundles = read()  # before sigstore is looked for: without an attestation nobody needs to install it
            if not bundles and not rule.required:
                return Examined()
            if not bundles:
                raise NotAttested("it has no attestation")
            if not is_installed():
                install = installation.install_extras("attest")
                note = f"Its attestation is not verified: that needs the extra attest. Install it: {install}"
                return Examined(None, (note,))
            chosen = self._chosen(verify(bundles, sha256, rule.trusted_root))
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
            self._cache.note(note_of(sha256, rule.trusted_root), json.dumps(asdict(chosen), sort_keys=True))
        return Examined(chosen)

    def _chosen(self, valid: Sequence[Attestation]) -> Attestation:
        by_builder = next((attestation for attestation in valid if is_by(attestation, self._builder)), None)
        if by_builder is None:
            raise NotAttested(f"it was built by {valid[0].repository}, not by {self._builder}")
        return by_builder


def verified_before(
    cache: FetchedCache, sha256: str, builder: str | None, trusted_root: str | None
) -> Attestation | None:
    """The attestation of an index, if it was verified before with the same trusted root and is by ``builder``."""
    text = cache.read_note(note_of(sha256, trusted_root))
    try:
        attestation = Attestation(**json.loads(text)) if text else None
    except (ValueError, TypeError):
        return None  # another version of Anvil wrote it
    return attestation if attestation is not None and is_by(attestation, builder) else None


def note_of(sha256: str, trusted_root: str | None) -> str:
    return f"attestation {sha256} {trusted_root or ''}"


def read_bundles(path: Path) -> list[str]:
    """The bundles in the file beside the index at ``path``, if any. Raises :class:`NotAttested` if it is unreadable."""
    attestation_path = path.with_name(path.name + SUFFIX)
    try:
        return bundles(safe_files.data(attestation_path, MAX_BYTES), str(attestation_path))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise NotAttested(f"{attestation_path} cannot be read, because {safe_files.reason(error)}") from None


# --- verifying with Sigstore's library ---------------------------------------------------------------------------

PUBLIC = "https://tuf-repo-cdn.sigstore.dev"
"""The address of the public Sigstore's root of trust."""


def is_installed() -> bool:
    """Whether attestations can be verified here."""
    return all(map(importlib.util.find_spec, ("sigstore", "cramjam")))


def ensure_installed(why: str) -> None:
    """Raise :class:`ConfigError` if attestations cannot be verified here. ``why``: the begin of its message."""
    if not is_installed():
        raise ConfigError(
            f"{why}, and verifying attestations needs the extra attest. "
            f"Install it: {installation.install_extras('attest')}"
        )


def verify(bundles: Sequence[str], sha256: str, trusted_root: str | None = None) -> list[Attestation]:
    """The attestations in those bundles that are valid, by a workflow of GitHub, for the file with this SHA-256.

    ``trusted_root``: the file with the trusted root of another Sigstore. Raises :class:`NotAttested` with the reason if
    no bundle is valid, and :class:`ConfigError` if that file cannot be used.
    """
    logging.getLogger("sigstore").addHandler(logging.NullHandler())  # otherwise its warnings are printed
    from sigstore.verify import Verifier

    verifier = Verifier(trusted_root=_public_root() if trusted_root is None else _root(Path(trusted_root)))
    valid, problem = [], "there is none"
    for bundle in bundles:
        try:
            valid.append(_verify_bundle(verifier, bundle, sha256))
        except NotAttested as error:
            problem = str(error)
    if not valid:
        raise NotAttested(problem)
    return valid


def _verify_bundle(verifier: Verifier, text: str, sha256: str) -> Attestation:
    from sigstore.models import Bundle
    from sigstore.verify.policy import OIDCIssuerV2

    try:
        check_bundle(text)
        bundle = Bundle.from_json(text)
        # The signature and the issuer of its certificate come first: only then are payload and certificate trusted.
        payload_type, payload = verifier.verify_dsse(bundle, OIDCIssuerV2(ISSUER))
        extensions = {
            extension.oid.dotted_string: extension.value.public_bytes()
            for extension in bundle.signing_certificate.extensions
            if extension.oid.dotted_string in EXTENSIONS
        }
        check_statement(payload_type, payload, sha256)
        return identity(extensions)
    except Exception as error:  # for a hostile bundle, the parsers of sigstore raise errors of many kinds
        first = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
        raise NotAttested(without_control(first)[:300].rstrip(".")) from error


def _public_root() -> TrustedRoot:
    """The trusted root in sigstore's package. Its own function prefers an older cached copy, not renewed offline."""
    from sigstore.models import TrustedRoot

    resource = resources.files("sigstore") / "_store" / urllib.parse.quote(PUBLIC, safe="") / "trusted_root.json"
    with resources.as_file(resource) as path:
        return TrustedRoot.from_file(str(path))


def _root(path: Path) -> TrustedRoot:
    from sigstore.models import TrustedRoot

    try:
        return TrustedRoot.from_file(str(path))
    except Exception as error:  # OSError, and errors of the parsers for a file of another kind
        reason = getattr(error, "strerror", None) or next(iter(str(error).splitlines()), "")
        raise ConfigError(
            f"fetch.trusted_root: {path} cannot be used ({without_control(reason)[:200].rstrip('.')}). "
            "Name a trusted_root.json of Sigstore."
        ) from error
