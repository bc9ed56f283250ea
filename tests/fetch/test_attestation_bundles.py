"""Attestations as text: bundles in files, the statement in one, who is expected, and who a certificate names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from anvil.errors import NotAttested
from anvil.fetch import attestation, fetch_index, github
from anvil.fetch.attestation import Attestation
from anvil.settings import index_url

SHA = "ab" * 32
STATEMENT: dict[str, Any] = {
    "_type": "https://in-toto.io/Statement/v1",
    "subject": [{"name": "other", "digest": {"sha256": "cd" * 32}}, {"name": "x", "digest": {"sha256": SHA}}],
    "predicateType": attestation.PROVENANCE,
    "predicate": {},
}


def der(text: str) -> bytes:
    data = text.encode()
    return b"\x0c" + (bytes([len(data)]) if len(data) < 128 else b"\x81" + bytes([len(data)])) + data


def certificate(**others: str) -> dict[str, bytes]:
    """The extensions of a certificate for ``acme/docs``; ``others`` replace values."""
    values = {
        "signer": "https://github.com/acme/docs/.github/workflows/docs.yml@refs/heads/main",
        "repository": "https://github.com/acme/docs",
        "commit": "0123456789" * 4,
        "run": "https://github.com/acme/docs/actions/runs/1/attempts/1",
        **others,
    }
    return {oid: der(values[name]) for oid, name in attestation.EXTENSIONS.items()}


@pytest.mark.parametrize(
    ("address", "builder"),
    [
        ("github:Acme/docs#artifact:anvil-index", "Acme/docs"),
        ("github:acme/docs#release:latest", "acme/docs"),
        ("https://acme.github.io/docs/", "acme"),
        ("https://docs.example.com/", None),
        ("https://acme.github.io.example.com/", None),
        ("https://x.acme.github.io/", None),
    ],
)
def test_who_is_expected_follows_from_the_address(address: str, builder: str | None) -> None:
    assert fetch_index.source_of(index_url.parse(address)).builder == builder


def test_a_repository_and_its_owner_fit_in_any_case_and_nothing_else() -> None:
    built = Attestation("Acme/Docs", "w", "c")
    assert all(attestation.is_by(built, each) for each in (None, "acme", "ACME/docs"))
    assert not any(attestation.is_by(built, each) for each in ("acm", "acme/doc", "docs", "acme/docs2", ""))


def test_bundles_of_a_file_are_one_object_or_one_in_each_line() -> None:
    one, two = json.dumps({"a": 1}), json.dumps({"b": 2}, indent=2)

    def bundles(text: str) -> list[str]:
        return attestation.bundles(text.encode(), "the file")

    assert bundles(one + "\n") == [one + "\n"]
    assert bundles(two) == [two]
    assert bundles(f"{one}\n\n{one}\n") == [one, one]
    assert bundles("<!doctype html><p>every address is answered with a page") == []
    assert bundles("") == []
    for text in ("{", f"{one}\n[]", "{" * 100_000, f"{one}\n" * (attestation.MAX_BUNDLES + 1), " " * 1_000_001):
        with pytest.raises(NotAttested, match="the file"):
            bundles(text)


def test_bundles_of_the_api_are_in_its_answer_or_at_the_address_it_names() -> None:
    asked: list[str] = []

    def read(url: str) -> str:
        asked.append(url)
        return f'{{"at": "{url}"}}'

    rows = [{"bundle": {"a": 1}, "bundle_url": "https://w"}, {"bundle": None, "bundle_url": "https://x"}]
    found = github.bundles_of_api({"attestations": [*rows, {"bundle_url": "https://y"}]}, read)
    assert found == ['{"a": 1}', '{"at": "https://x"}', '{"at": "https://y"}']
    assert asked == ["https://x", "https://y"]
    assert github.bundles_of_api({"attestations": []}, read) == []
    many = {"attestations": [{"bundle_url": f"https://{number}"} for number in range(99)]}
    assert len(github.bundles_of_api(many, read)) == attestation.MAX_BUNDLES == len(asked) - 2


@pytest.mark.parametrize(
    "response",
    [
        {"attestations": "?"},
        {},
        [],
        "?",
        *({"attestations": [{"bundle": {}}, row]} for row in ("?", None, {}, {"bundle": None, "bundle_url": None})),
        *({"attestations": [{"bundle": "?", "bundle_url": url}]} for url in ("", 7, ["https://x"])),
    ],
)
def test_an_answer_of_the_api_that_cannot_be_read_does_not_mean_that_there_is_none(response: Any) -> None:
    with pytest.raises(ValueError, match=r"no list of attestations|neither a bundle nor its address"):
        github.bundles_of_api(response, lambda url: "{}")


def test_a_stored_bundle_is_json_plain_or_packed() -> None:
    text = '{"a": "' + "ä" * 20 + '"}'
    data = text.encode()
    packed = bytes([len(data), len(data) - 1 << 2]) + data
    assert github.stored_bundle(data) == github.stored_bundle(packed) == text
    for broken in (b"", b"<html>", b"[]", b"\x02\x04[]", packed[:-1], b"{" * 2_000, b"\xc1\x84\x3d" + data):
        with pytest.raises(ValueError):
            github.stored_bundle(broken)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"_type": "https://example.com"}, "not a statement about files"),
        ({"predicateType": "https://spdx.dev/Document"}, "of another kind"),
        ({"subject": [{"name": "x", "digest": {"sha256": "cd" * 32}}]}, "of another file"),
        ({"subject": [{"name": SHA, "digest": {"sha512": SHA}}]}, "of another file"),
        ({"subject": {"digest": {"sha256": SHA}}}, "of another file"),
        ({"subject": None}, "of another file"),
        ({"subject": ["x", {"digest": "x"}]}, "of another file"),
    ],
)
def test_a_statement_must_be_the_provenance_of_the_file(changes: dict[str, Any], reason: str) -> None:
    attestation.check_statement(attestation.PAYLOAD, json.dumps(STATEMENT).encode(), SHA)
    with pytest.raises(ValueError, match=reason):
        attestation.check_statement(attestation.PAYLOAD, json.dumps({**STATEMENT, **changes}).encode(), SHA)


def test_a_payload_of_another_type_is_not_a_statement() -> None:
    for payload_type, payload in (
        ("text/plain", json.dumps(STATEMENT).encode()),
        (attestation.PAYLOAD, b"\xff["),
    ):
        with pytest.raises(ValueError, match="not a statement"):
            attestation.check_statement(payload_type, payload, SHA)


def test_a_certificate_names_repository_workflow_commit_and_run() -> None:
    found = attestation.identity(certificate())
    assert found == Attestation(
        "acme/docs",
        ".github/workflows/docs.yml@refs/heads/main",
        "0123456789" * 4,
        "https://github.com/acme/docs/actions/runs/1/attempts/1",
    )
    assert found.shown == "acme/docs, .github/workflows/docs.yml@refs/heads/main, commit 012345678901"
    shared = certificate(signer="https://github.com/Acme/shared/.github/workflows/build.yml@refs/tags/v1")
    assert attestation.identity(shared).workflow == "Acme/shared/.github/workflows/build.yml@refs/tags/v1"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("repository", "https://gitlab.com/acme/docs"),
        ("repository", "https://github.com/acme"),
        ("repository", "https://github.com/acme/docs/more"),
        ("repository", "https://github.com/acme/do\ncs"),
        ("commit", "main"),
        ("signer", "https://github.com/other/docs/.github/workflows/docs.yml@refs/heads/main"),
        ("signer", "https://github.com/acme-evil/docs/.github/workflows/docs.yml@refs/heads/main"),
        ("signer", "https://example.com/acme/docs"),
    ],
)
def test_a_certificate_for_something_else_is_refused(name: str, value: str) -> None:
    with pytest.raises(ValueError):
        attestation.identity(certificate(**{name: value}))


@pytest.mark.parametrize(
    "value", [b"", b"\x0c", b"\x0c\x05abc", b"\x04\x03abc", b"\x0c\x03abcd", b"\x0c\x82\x01", b"\x0c\x02\xff\xff"]
)
def test_an_extension_that_is_not_text_is_refused(value: bytes) -> None:
    with pytest.raises(ValueError):
        attestation.identity({**certificate(), "1.3.6.1.4.1.57264.1.12": value})
