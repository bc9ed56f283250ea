"""A Sigstore of the tests: its authority, its logs, its trusted root, and attestations as GitHub's action makes them.

Keys are made anew for each one. What it signs has the form of the public Sigstore: a certificate of Fulcio with the
extensions for GitHub's workflows and a timestamp of a certificate log, and an entry of Rekor with its proof.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

ISSUER = "https://token.actions.githubusercontent.com"
PROVENANCE = "https://slsa.dev/provenance/v1"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
_ARC = "1.3.6.1.4.1.57264.1"
_START = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)
_SIGNED = datetime.datetime(2025, 6, 1, 12, tzinfo=datetime.timezone.utc)


class Sigstore:
    """An authority and its logs. ``bundle`` signs; ``trusted_root`` is what verifiers need."""

    def __init__(self) -> None:
        self._authority, self._certificates_log, self._log = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority of the tests")])
        self._name = name
        self._root = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(self._authority.public_key())
            .serial_number(1)
            .not_valid_before(_START)
            .not_valid_after(_START + datetime.timedelta(days=3650))
            .add_extension(x509.BasicConstraints(ca=True, path_length=1), critical=True)
            .add_extension(_usage(certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._authority.public_key()), critical=False)
            .sign(self._authority, hashes.SHA256())
        )

    def trusted_root(self) -> dict[str, Any]:
        """``trusted_root.json``."""
        valid = {"start": "2024-01-01T00:00:00Z"}

        def log(key: ec.EllipticCurvePrivateKey, url: str) -> dict[str, Any]:
            return {
                "baseUrl": url,
                "hashAlgorithm": "SHA2_256",
                "publicKey": {
                    "rawBytes": _base64(_der(key)),
                    "keyDetails": "PKIX_ECDSA_P256_SHA_256",
                    "validFor": valid,
                },
                "logId": {"keyId": _base64(hashlib.sha256(_der(key)).digest())},
            }

        authority = {
            "subject": {"organization": "tests", "commonName": "authority of the tests"},
            "uri": "https://fulcio.test",
            "certChain": {"certificates": [{"rawBytes": _base64(self._root.public_bytes(serialization.Encoding.DER))}]},
            "validFor": valid,
        }
        return {
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [log(self._log, "https://rekor.test")],
            "certificateAuthorities": [authority],
            "ctlogs": [log(self._certificates_log, "https://ctfe.test")],
            "timestampAuthorities": [],
        }

    def write_root(self, folder: Path) -> Path:
        """The trusted root as a file."""
        path = folder / "trusted_root.json"
        path.write_text(json.dumps(self.trusted_root()), encoding="utf-8")
        return path

    def bundle(
        self,
        data: bytes,
        repository: str = "acme/docs",
        *,
        signer: str | None = None,
        issuer: str = ISSUER,
        commit: str = COMMIT,
        predicate: str = PROVENANCE,
        statement: Mapping[str, Any] | None = None,
        payload_type: str = "application/vnd.in-toto+json",
        minutes: int = 1,
        extensions: Mapping[int, bytes] | None = None,
    ) -> dict[str, Any]:
        """The attestation of a file by a workflow of ``repository``. ``signer``: the workflow that signed. ``minutes``:
        when it signed, after it got a certificate for ten minutes. ``extensions``: others than those of a run, as
        bytes."""
        signer = signer or f"{repository}/.github/workflows/docs.yml@refs/heads/main"
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._certificate(key, repository, signer, issuer, commit, extensions or {})
        payload = json.dumps(
            statement
            or {
                "_type": "https://in-toto.io/Statement/v1",
                "subject": [{"name": "index.db", "digest": {"sha256": hashlib.sha256(data).hexdigest()}}],
                "predicateType": predicate,
                "predicate": {"buildDefinition": {}, "runDetails": {}},
            }
        ).encode()
        signed = b"DSSEv1 %d %s %d %s" % (len(payload_type), payload_type.encode(), len(payload), payload)
        signature = key.sign(signed, ec.ECDSA(hashes.SHA256()))
        pem = certificate.public_bytes(serialization.Encoding.PEM)
        entry = {
            "apiVersion": "0.0.1",
            "kind": "dsse",
            "spec": {
                "envelopeHash": {"algorithm": "sha256", "value": hashlib.sha256(signed).hexdigest()},
                "payloadHash": {"algorithm": "sha256", "value": hashlib.sha256(payload).hexdigest()},
                "signatures": [{"signature": _base64(signature), "verifier": _base64(pem)}],
            },
        }
        return {
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": {
                "tlogEntries": [self._logged(entry, int(_SIGNED.timestamp()) + 60 * minutes)],
                "timestampVerificationData": {},
                "certificate": {"rawBytes": _base64(certificate.public_bytes(serialization.Encoding.DER))},
            },
            "dsseEnvelope": {
                "payload": _base64(payload),
                "payloadType": payload_type,
                "signatures": [{"sig": _base64(signature)}],
            },
        }

    def _certificate(
        self,
        key: ec.EllipticCurvePrivateKey,
        repository: str,
        signer: str,
        issuer: str,
        commit: str,
        others: Mapping[int, bytes],
    ) -> x509.Certificate:
        """A certificate for ten minutes, with the timestamp that the certificate log signs over the rest of it."""
        values = {
            8: issuer,
            9: f"https://github.com/{signer}",
            12: f"https://github.com/{repository}",
            13: commit,
            21: f"https://github.com/{repository}/actions/runs/1/attempts/1",
        }
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([]))
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(_SIGNED)
            .not_valid_after(_SIGNED + datetime.timedelta(minutes=10))
            .add_extension(_usage(certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False)
            .add_extension(
                x509.SubjectAlternativeName([x509.UniformResourceIdentifier(f"https://github.com/{signer}")]),
                critical=True,
            )
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._authority.public_key()), critical=False
            )
        )
        for number, value in {**{number: _der_text(text) for number, text in values.items()}, **others}.items():
            if value:
                oid = ObjectIdentifier(f"{_ARC}.{number}")
                builder = builder.add_extension(x509.UnrecognizedExtension(oid, value), critical=False)
        rest = builder.sign(self._authority, hashes.SHA256()).tbs_certificate_bytes
        stamp = x509.UnrecognizedExtension(ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2"), self._timestamp(rest))
        return builder.add_extension(stamp, critical=False).sign(self._authority, hashes.SHA256())

    def _timestamp(self, rest: bytes) -> bytes:
        """A list of one signed certificate timestamp (RFC 6962)."""
        milliseconds = int(_SIGNED.timestamp() * 1000)
        entry = hashlib.sha256(_der(self._authority)).digest() + len(rest).to_bytes(3, "big") + rest
        data = struct.pack("!BBQH", 0, 0, milliseconds, 1) + entry + struct.pack("!H", 0)
        signature = self._certificates_log.sign(data, ec.ECDSA(hashes.SHA256()))
        log = hashlib.sha256(_der(self._certificates_log)).digest()
        stamp = struct.pack("!B32sQH", 0, log, milliseconds, 0) + b"\x04\x03" + _sized(signature)
        return _der_value(0x04, _sized(_sized(stamp)))

    def _logged(self, entry: Mapping[str, Any], time: int) -> dict[str, Any]:
        """An entry of the log, which is the only one of its tree: with the promise and the proof that it is there."""
        body = json.dumps(entry, sort_keys=True, separators=(",", ":")).encode()
        log = hashlib.sha256(_der(self._log)).digest()
        root = hashlib.sha256(b"\x00" + body).digest()
        note = f"rekor.test - 1\n1\n{_base64(root)}\n"
        promised = {"body": _base64(body), "integratedTime": time, "logID": log.hex(), "logIndex": 7}
        canonical = json.dumps(promised, sort_keys=True, separators=(",", ":")).encode()
        signed_note = log[:4] + self._log.sign(note.encode(), ec.ECDSA(hashes.SHA256()))
        return {
            "logIndex": "7",
            "logId": {"keyId": _base64(log)},
            "kindVersion": {"kind": "dsse", "version": "0.0.1"},
            "integratedTime": str(time),
            "inclusionPromise": {"signedEntryTimestamp": _base64(self._log.sign(canonical, ec.ECDSA(hashes.SHA256())))},
            "inclusionProof": {
                "logIndex": "0",
                "rootHash": _base64(root),
                "treeSize": "1",
                "hashes": [],
                "checkpoint": {"envelope": f"{note}\n\N{EM DASH} rekor.test {_base64(signed_note)}\n"},
            },
            "canonicalizedBody": _base64(body),
        }


def _usage(certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not certificates,
        key_cert_sign=certificates,
        crl_sign=certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _der(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def _der_text(text: str) -> bytes:
    return _der_value(0x0C, text.encode())


def _der_value(tag: int, data: bytes) -> bytes:
    if len(data) < 128:
        return bytes([tag, len(data)]) + data
    size = len(data).to_bytes((len(data).bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(size)]) + size + data


def _sized(data: bytes) -> bytes:
    return struct.pack("!H", len(data)) + data


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
