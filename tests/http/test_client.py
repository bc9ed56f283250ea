"""What clients of one process share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest
import trustme

from anvil.http import client


def test_the_trusted_certificates_are_read_once_for_all_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create, read = httpx2.create_ssl_context, []

    def counted(**options: Any) -> Any:
        read.append(options)
        return create(**options)

    monkeypatch.setattr(httpx2, "create_ssl_context", counted)
    for name in ("one.pem", "other.pem"):
        trustme.CA().cert_pem.write_to_path(str(tmp_path / name))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / name))
        for _ in range(2):
            with client.HttpClient(client.Limits()):
                pass
    assert read == [{"trust_env": True}] * 2
