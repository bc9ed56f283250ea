"""The server for a source, the credentials for it, and the source's key in the cache."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from anvil.errors import GitError, SourceError
from anvil.fetch import github_api, github_artifacts, github_releases, website
from anvil.fetch.attestation_bundle import expected_builder
from anvil.fetch.builder_identity import AttestationRule
from anvil.fetch.candidate import Candidate
from anvil.fetch.fetched_cache import CacheState
from anvil.git.repository import Repository
from anvil.http.client import HttpClient, origin
from anvil.settings.index_url import Address, GitHubAddress, WebAddress


def authorization(address: WebAddress | GitHubAddress, token: str | None) -> Mapping[str, str]:
    """Origin -> value of the Authorization header."""
    if isinstance(address, GitHubAddress):
        return github_api.authorization(token)
    if address.credentials is None:
        return {}
    pair = base64.b64encode(":".join(address.credentials).encode()).decode("ascii")
    return {origin(address.url): f"Basic {pair}"}


def candidates(
    http: HttpClient, address: WebAddress | GitHubAddress, state: CacheState | None, head: Path | None
) -> Iterator[Candidate | None]:
    """The candidates, best first; None: the index of ``state`` is still the current one."""
    if isinstance(address, WebAddress):
        yield from website.candidates(http, address, state)
    else:
        api = github_api.Api(http, address)
        yield github_releases.find(api) if address.kind == "release" else github_artifacts.find(api, head)


def key(address: Address, head: Path | None, attested: AttestationRule | None = None) -> str:
    """The key of a source. If HEAD selects the artifact, it contains the repository; if an attestation is required, who
    must have built the index. So no index gets there that was fetched for somebody who does not require it."""
    if attested is not None and attested.required:
        builder = attested.builder or expected_builder(address)
        return "\n".join((key(address, head), "built by", (builder or "").lower(), attested.trusted_root or ""))
    if not isinstance(address, GitHubAddress):
        return address.url if isinstance(address, WebAddress) else address.path
    root = None
    with suppress(GitError, SourceError):
        repository = Repository.discover(head) if head is not None and address.kind == "artifact" else None
        root = repository and repository.root
    return "\n".join((github_api.api_url(), address.shown, str(root or "")))
