"""Who is asked for a source, as whom, and under which name its answers are kept."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from anvil.backends.fetch import github_api, github_artifacts, github_releases, website
from anvil.backends.fetch.cache import CacheState
from anvil.backends.fetch.candidate import Candidate
from anvil.backends.fetch.http_client import HttpClient, origin
from anvil.backends.git.repository import Repository
from anvil.core.index_url import Address, GitHubAddress, WebAddress
from anvil.errors import GitError, SourceError


def authorization(address: WebAddress | GitHubAddress, token: str | None) -> Mapping[str, str]:
    """Origin -> what it is told of who asks."""
    if isinstance(address, GitHubAddress):
        return github_api.authorization(token)
    if address.credentials is None:
        return {}
    pair = base64.b64encode(":".join(address.credentials).encode()).decode("ascii")
    return {origin(address.url): f"Basic {pair}"}


def candidates(
    http: HttpClient, address: WebAddress | GitHubAddress, state: CacheState | None, head: Path | None
) -> Iterator[Candidate | None]:
    """What is to be had there, best first; None for "what ``state`` tells of still stands"."""
    if isinstance(address, WebAddress):
        yield from website.candidates(http, address, state)
    else:
        api = github_api.Api(http, address)
        yield github_releases.find(api) if address.kind == "release" else github_artifacts.find(api, head)


def key(address: Address, head: Path | None) -> str:
    """What tells sources apart: where HEAD chooses among artifacts, each repository here stands at its own."""
    if not isinstance(address, GitHubAddress):
        return address.url if isinstance(address, WebAddress) else address.path
    root = None
    with suppress(GitError, SourceError):
        repository = Repository.discover(head) if head is not None and address.kind == "artifact" else None
        root = repository and repository.root
    return "\n".join((github_api.api_url(), address.shown, str(root or "")))
