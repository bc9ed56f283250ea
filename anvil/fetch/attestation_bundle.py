"""Attestations of indexes: who built one and who must have, Sigstore bundles in text, and the statement in one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from anvil.formats.json_values import json_object
from anvil.formats.patterns import OBJECT_ID
from anvil.settings.index_url import OWNER, Address, GitHubAddress, WebAddress, is_builder


@dataclass(frozen=True, slots=True)
class Attestation:
    """Who built an index, as a verified attestation says.

    ``repository``: ``OWNER/REPO`` on GitHub, whose workflow ran. ``workflow``: the file of the workflow that signed and
    its ref, ``.github/workflows/docs.yml@refs/heads/main``; of another repository, with that in front. ``commit``: the
    commit of ``repository`` that the workflow ran for. ``run``: the address of the run, if it is known.
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
    """What is done about attestations. ``required``: whether an index without a valid one is refused. ``builder``: who
    must have built it, ``OWNER`` or ``OWNER/REPO``; None for what the address of the index says. ``trusted_root``: the
    file of another Sigstore's trusted root; None for the public one."""

    required: bool = False
    builder: str | None = None
    trusted_root: str | None = None


SUFFIX = ".sigstore.json"
"""What follows the name of an index in the name of the file with its attestation."""
MAX_BYTES = 1_000_000
"""Bytes of the longest file with attestations. One has about 12,000."""
MAX_BUNDLES = 30
"""Attestations of one index that are verified."""
ISSUER = "https://token.actions.githubusercontent.com"
"""Who says, to the authority that signs certificates, which workflow is running."""
GITHUB = "https://github.com/"
PAYLOAD = "application/vnd.in-toto+json"
STATEMENTS = ("https://in-toto.io/Statement/v1", "https://in-toto.io/Statement/v0.1")
PROVENANCE = "https://slsa.dev/provenance/v1"
"""The kind of statement that says who built a file. Others, such as a list of parts, say something else."""
_PAGES_HOST = re.compile(rf"({OWNER})\.github\.io", re.IGNORECASE)
EXTENSIONS = {
    "1.3.6.1.4.1.57264.1.9": "signer",
    "1.3.6.1.4.1.57264.1.12": "repository",
    "1.3.6.1.4.1.57264.1.13": "commit",
    "1.3.6.1.4.1.57264.1.21": "run",
}
"""Extensions of a certificate of Fulcio, Sigstore's authority, that are read."""


def expected_builder(address: Address) -> str | None:
    """Who builds what is at an address, as far as the address says: the repository of ``github:OWNER/REPO``, the owner
    of ``https://OWNER.github.io/``."""
    if isinstance(address, GitHubAddress):
        return address.slug
    match = _PAGES_HOST.fullmatch(address.host) if isinstance(address, WebAddress) else None
    return match[1] if match else None


def is_by(attestation: Attestation, builder: str | None) -> bool:
    """Whether ``OWNER`` or ``OWNER/REPO`` built it; GitHub ignores case in both. None: anybody."""
    if builder is None:
        return True
    repository = attestation.repository.lower()
    return builder.lower() in (repository, repository.partition("/")[0])


def bundles(text: str) -> list[str]:
    """The bundles in a file: one JSON object, or one in each line, as GitHub's programs write several. Empty for text
    that is not JSON at all, because many sites answer every address with a page. Raises :class:`ValueError`."""
    if not text.lstrip("\ufeff \t\r\n").startswith("{"):
        return []
    if json_object(text) is not None:
        return [text]
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > MAX_BUNDLES:
        raise ValueError(f"it has more than {MAX_BUNDLES} lines")
    if any(json_object(line) is None for line in lines):
        raise ValueError("it is not JSON")
    return lines


def bundles_of_api(response: Any, read: Callable[[str], str]) -> list[str]:
    """The bundles in what GitHub's API says about a digest. ``read``: gets the bundle at an address, which the API
    names instead of the bundle itself.

    Raises :class:`ValueError` for an answer that cannot be read: it is not known then whether there is an attestation.
    """
    rows = response.get("attestations") if isinstance(response, dict) else None
    if not isinstance(rows, list):
        raise ValueError("it has no list of attestations")
    found = []
    for number, row in enumerate(rows[:MAX_BUNDLES], 1):
        bundle, url = (row.get("bundle"), row.get("bundle_url")) if isinstance(row, dict) else (None, None)
        if isinstance(bundle, dict):
            found.append(json.dumps(bundle))
        elif isinstance(url, str) and url:
            found.append(read(url))
        else:
            raise ValueError(f"attestation {number} has neither a bundle nor its address")
    return found


def stored_bundle(data: bytes) -> str:
    """The bundle in a file of GitHub's storage: JSON, plain or packed with Snappy. Raises :class:`ValueError`."""
    text = data.decode("utf-8", "replace")
    if json_object(text) is None:
        text = unpacked(data, MAX_BYTES).decode("utf-8", "replace")
        if json_object(text) is None:
            raise ValueError("it is not JSON")
    return text


def check_bundle(bundle: str) -> None:
    """Raise :class:`ValueError` for what is no bundle, and for one that names no entry of a public log."""
    material = (json_object(bundle) or {}).get("verificationMaterial")
    if not isinstance(material, dict):
        raise ValueError("it is not a Sigstore bundle")
    if not material.get("tlogEntries"):
        raise ValueError(
            "it is not in a public log, as attestations of private repositories are not. "
            "'gh attestation verify' can verify those"
        )


def check_statement(payload_type: str, payload: bytes, sha256: str) -> None:
    """Raise :class:`ValueError` unless the signed statement is of who built the file with this SHA-256."""
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
    """Who signed, from the extensions of the certificate by their number. Raises :class:`ValueError`."""
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
    """A DER ``UTF8String``: its tag, its length, and the text."""
    if len(der) < 2 or der[0] != 0x0C:
        raise ValueError("its certificate has an extension that is not text")
    size, start = der[1], 2
    if size & 0x80:
        start += size & 0x7F
        size = int.from_bytes(der[2:start], "big")
    if len(der) != start + size:
        raise ValueError("its certificate has a text of another length than it says")
    return der[start:].decode("utf-8")


_LONGEST_INLINE = 60
"""Up to this length, the first byte of a literal has the length itself. Above, it has the number of bytes with it."""


def unpacked(data: bytes, limit: int) -> bytes:
    """The bytes in a block. ``limit``: how many it may have; a longer block is refused before it is unpacked. Raises
    :class:`ValueError`."""
    size, position = _size(data)
    if size > limit:
        raise ValueError(f"it has {size:,} bytes unpacked, and {limit:,} are allowed")
    result = bytearray()
    while position < len(data):
        tag = data[position]
        position += 1
        kind, upper = tag & 3, tag >> 2
        extra = (max(0, upper + 1 - _LONGEST_INLINE), 1, 2, 4)[kind]
        number = int.from_bytes(_part(data, position, extra), "little")
        position += extra
        if kind == 0:
            length = (number if extra else upper) + 1
            _ensure_fits(length, result, size)
            result += _part(data, position, length)
            position += length
            continue
        offset = number
        length = upper + 1
        if kind == 1:  # the three upper bits belong to the offset
            offset, length = (tag >> 5 << 8) + number, (upper & 7) + 4
        _ensure_fits(length, result, size)
        _copy(result, offset, length)
    if len(result) != size:
        raise ValueError(f"it has {len(result):,} bytes unpacked, and says that it has {size:,}")
    return bytes(result)


def _size(data: bytes) -> tuple[int, int]:
    """The length that a block says it has, and where its elements begin: seven bits in each byte, the lowest first."""
    size = 0
    for position, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            if size >= 1 << 32:
                break
            return size, position + 1
    raise ValueError("it is not a block of Snappy")


def _part(data: bytes, start: int, length: int) -> bytes:
    if start + length > len(data):
        raise ValueError("it ends too early")
    return data[start : start + length]


def _ensure_fits(length: int, result: bytearray, size: int) -> None:
    if len(result) + length > size:
        raise ValueError(f"it has more bytes unpacked than the {size:,} that it says")


def _copy(result: bytearray, offset: int, length: int) -> None:
    """Append bytes that begin ``offset`` before the end. A copy longer than its offset repeats what it copied."""
    if not 0 < offset <= len(result):
        raise ValueError("it copies bytes from before its start")
    start = len(result) - offset
    chunk = bytes(result[start : start + length])
    result += (chunk * -(-length // len(chunk)))[:length]
