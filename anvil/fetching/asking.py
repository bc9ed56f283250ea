"""Who is asked for a source, as whom, and under which name its answers are kept."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from anvil.addresses import Address, GitHubAddress, WebAddress
from anvil.errors import GitError, SourceError
from anvil.fetching import artifacts, github, releases, web
from anvil.fetching.cache import State
from anvil.fetching.http import Http, origin
from anvil.fetching.offers import Offer
from anvil.git import Repository


def authorization(address: WebAddress | GitHubAddress, token: str | None) -> Mapping[str, str]:
    """Origin -> what it is told of who asks."""
    if isinstance(address, GitHubAddress):
        return github.authorization(token)
    if address.credentials is None:
        return {}
    pair = base64.b64encode(":".join(address.credentials).encode()).decode("ascii")
    return {origin(address.url): f"Basic {pair}"}


def offers(
    http: Http, address: WebAddress | GitHubAddress, state: State | None, head: Path | None
) -> Iterator[Offer | None]:
    """What is to be had there, best first; None for "what ``state`` tells of still stands"."""
    if isinstance(address, WebAddress):
        yield from web.offers(http, address, state)
    else:
        api = github.Api(http, address)
        yield releases.offer(api) if address.kind == "release" else artifacts.offer(api, head)


def key(address: Address, head: Path | None) -> str:
    """What tells sources apart: where HEAD chooses among artifacts, each repository here stands at its own."""
    if not isinstance(address, GitHubAddress):
        return address.url if isinstance(address, WebAddress) else address.path
    root = None
    with suppress(GitError, SourceError):
        repository = Repository.discover(head) if head is not None and address.kind == "artifact" else None
        root = repository and repository.root
    return "\n".join((github.api_url(), address.shown, str(root or "")))
