"""Attestations verified by Sigstore's library: real ones of the public Sigstore, and those of a Sigstore of the tests.

``conformance.sigstore.json`` is the attestation of a workflow of sigstore/sigstore-conformance, from that repository.
``reusable-workflow.sigstore.json`` and ``private.sigstore.json`` are from the tests of cli/cli: one was signed by a
workflow of another owner, one by GitHub's own Sigstore for private repositories.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from anvil.errors import ConfigError, NotAttested
from anvil.fetch import attestation
from anvil.fetch.attestation import Attestation
from tests.support.sigstore import COMMIT, Sigstore

REAL = Path(__file__).parents[1] / "data" / "attestations"
REAL_SHA = "a0cfc71271d6e278e57cd332ff957c3f7043fdda354c4cbb190a30d56efa01bf"
INDEX = b"the bytes of an index"
SHA = hashlib.sha256(INDEX).hexdigest()


@pytest.fixture(scope="module")
def sigstore() -> Sigstore:
    return Sigstore()


@pytest.fixture
def root(sigstore: Sigstore, tmp_path: Path) -> str:
    return str(sigstore.write_root(tmp_path))


def real(name: str) -> str:
    return (REAL / f"{name}.sigstore.json").read_text(encoding="utf-8")


def refused(bundle: Any, root: str | None, sha256: str = SHA) -> str:
    with pytest.raises(NotAttested) as caught:
        attestation.verify([bundle if isinstance(bundle, str) else json.dumps(bundle)], sha256, root)
    return str(caught.value)


# --- real ones, with the keys of the public Sigstore that the package carries ----------------------------------------


def test_a_real_attestation_is_verified_offline(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def no_network(*_: Any) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = attestation.verify([real("conformance")], REAL_SHA)
    repository = "sigstore-conformance/extremely-dangerous-public-oidc-beacon"
    assert found == [
        Attestation(
            repository,
            ".github/workflows/extremely-dangerous-oidc-beacon.yml@refs/heads/main",
            "82a3bfe6dd50fe9c71d6315eae66da15307856cf",
            f"https://github.com/{repository}/actions/runs/12359147651/attempts/1",
        )
    ]
    assert list(tmp_path.iterdir()) == []  # nothing was written for the user either
    assert capfd.readouterr() == ("", "")


def test_a_real_attestation_is_of_its_file_only() -> None:
    assert "of another file" in refused(real("conformance"), None)


def test_a_real_attestation_with_one_byte_changed_is_refused() -> None:
    bundle = json.loads(real("conformance"))
    payload = bytearray(base64.b64decode(bundle["dsseEnvelope"]["payload"]))
    payload[-3] ^= 1
    bundle["dsseEnvelope"]["payload"] = base64.b64encode(payload).decode()
    assert "invalid signature" in refused(bundle, None, REAL_SHA)


def test_a_workflow_of_another_owner_may_not_sign() -> None:
    sha = "49a3aa6075e0f49f82843e74b5baa614ad2a588e6675612bf108a0a008c5ac25"
    reason = refused(real("reusable-workflow"), None, sha)
    assert reason.startswith(
        "a workflow of another owner signed it for malancas/attest-demo: https://github.com/github/"
    )


def test_an_attestation_of_a_private_repository_says_what_can_verify_it() -> None:
    sha = "ae57936def59bc4c75edd3a837d89bcefc6d3a5e31d55a6fa7a71624f92c3c3b"
    assert "'gh attestation verify' can verify those" in refused(real("private"), None, sha)


# --- those of a Sigstore of the tests --------------------------------------------------------------------------------


def test_who_built_an_index_is_in_the_certificate(sigstore: Sigstore, root: str) -> None:
    own, shared = sigstore.bundle(INDEX), "acme/shared/.github/workflows/build.yml@refs/tags/v1"
    other = sigstore.bundle(INDEX, "acme/site", signer=shared)
    found = attestation.verify([json.dumps(own), "{}", json.dumps(other)], SHA, root)
    assert [each.repository for each in found] == ["acme/docs", "acme/site"]
    assert found[0].workflow == ".github/workflows/docs.yml@refs/heads/main" and found[0].commit == COMMIT
    assert found[1].workflow == shared


def test_another_sigstore_is_not_trusted(sigstore: Sigstore, root: str) -> None:
    assert refused(Sigstore().bundle(INDEX), root)
    assert refused(sigstore.bundle(INDEX), None)
    assert refused(real("conformance"), root, REAL_SHA)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"issuer": "https://gitlab.com"}, "OIDCIssuerV2"),
        ({"issuer": f"{attestation.ISSUER}/acme"}, "OIDCIssuerV2"),
        ({"signer": "evil/docs/.github/workflows/docs.yml@refs/heads/main"}, "a workflow of another owner"),
        ({"predicate": "https://spdx.dev/Document"}, "of another kind"),
        ({"payload_type": "text/plain"}, "not a statement"),
        ({"statement": {"_type": "https://in-toto.io/Statement/v1", "subject": []}}, "of another kind"),
        ({"minutes": 11}, ""),
        ({"minutes": -1}, ""),
        ({"commit": "\x1b[31m"}, "does not name a repository of GitHub and a commit"),
        ({"extensions": {12: b""}}, "does not name a repository of GitHub and a commit"),
        ({"extensions": {12: b"\x0c\xffx"}}, "another length"),
        ({"extensions": {8: b""}}, "OIDCIssuerV2"),
        ({"extensions": {8: b"x"}}, ""),
    ],
)
def test_a_signed_attestation_of_something_else_is_refused(
    changes: dict[str, Any], reason: str, sigstore: Sigstore, root: str
) -> None:
    assert reason in refused(sigstore.bundle(INDEX, **changes), root)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all values in JSON."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + [place for key, each in pairs for place in paths(each, (*path, key))]


def test_no_value_of_a_bundle_can_be_changed_to_something_else(sigstore: Sigstore, root: str) -> None:
    """Each value replaced by others: the result is a refusal in one line, or the same attestation of the same bytes."""
    whole = sigstore.bundle(INDEX)
    expected = attestation.verify([json.dumps(whole)], SHA, root)
    others: list[Any] = [None, 7, "x", "AAAA", [], {}, [{}], True, "9" * 5000]
    logging.disable(logging.CRITICAL)
    refusals = 0
    for path in paths(whole):
        for other in others:
            changed = json.loads(json.dumps(whole))
            place = changed
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = other
            try:
                assert attestation.verify([json.dumps(changed)], SHA, root) == expected, (path, other)
            except NotAttested as error:
                assert 0 < len(str(error)) < 400 and "\n" not in str(error)
                refusals += 1
    logging.disable(logging.NOTSET)
    assert refusals > 200


def test_the_signature_of_another_bundle_does_not_fit(sigstore: Sigstore, root: str) -> None:
    one, two = sigstore.bundle(INDEX), sigstore.bundle(INDEX)
    for part in ("verificationMaterial", "dsseEnvelope"):
        assert refused({**one, part: two[part]}, root)
    entries = two["verificationMaterial"]["tlogEntries"]
    assert refused({**one, "verificationMaterial": {**one["verificationMaterial"], "tlogEntries": entries}}, root)


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", "x", '{"mediaType": 1}', '{"a":' * 10_000, "\x00"])
def test_what_is_no_bundle_is_refused(text: str, root: str) -> None:
    assert refused(text, root)


def test_a_signed_file_is_not_an_attestation(sigstore: Sigstore, root: str) -> None:
    bundle = sigstore.bundle(INDEX)
    del bundle["dsseEnvelope"]
    message = {"messageDigest": {"algorithm": "SHA2_256", "digest": "AAAA"}, "signature": "AAAA"}
    assert refused({**bundle, "messageSignature": message}, root)


def test_a_trusted_root_that_is_none_is_an_error_of_the_configuration(sigstore: Sigstore, tmp_path: Path) -> None:
    bundle = json.dumps(sigstore.bundle(INDEX))
    file = tmp_path / "root.json"
    for content in (None, b"", b"{}", b"\xff"):
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(ConfigError, match="cannot be used"):
            attestation.verify([bundle], SHA, str(file))


def test_the_package_is_imported_for_verifying_only() -> None:
    modules = "anvil.fetch.cli, anvil.fetch.fetch_index, anvil.dependencies.finder"
    code = f"import sys; import {modules}; print('sigstore' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
