"""An index on a web server: a file, a folder with an index, or a site with such a folder."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterator

from anvil.errors import ArtifactRejected, FetchError, Unreachable
from anvil.fetch.download import NO_VALIDATORS, Candidate, Missing, Validators
from anvil.fetch.fetched_cache import CacheState
from anvil.http.client import HttpClient, Reply
from anvil.index_file import manifest
from anvil.settings import index_url
from anvil.settings.index_url import WebAddress
from anvil.values import Manifest

ABSENT = (404, 410)


def candidates(http: HttpClient, address: WebAddress, state: CacheState | None) -> Iterator[Candidate | None]:
    """The candidates, best first; None: the index of ``state`` is still the current one.

    A candidate without a manifest is a guess. If its download raises :class:`Missing`, the next one is taken.
    """
    places = address.places
    if state is not None and state.place in places:  # try the last place first
        places = (state.place, *(place for place in places if place != state.place))
    for place in places:
        url = urllib.parse.urljoin(address.url, place)
        known = state if state is not None and state.place == place else None
        if urllib.parse.urlsplit(url).path.lower().endswith(".json"):
            yield from _by_manifest(http, url, place, known, only=len(places) == 1)
        else:
            yield from _by_file(http, url, place, known)
    raise FetchError(
        f"There is no index at {address.shown}. Name the folder that holds index.json and index.db, or the file itself."
    )


def _by_manifest(
    http: HttpClient, url: str, place: str, known: CacheState | None, only: bool
) -> Iterator[Candidate | None]:
    conditions = Validators(known.etag, known.modified).conditions() if known else {}
    with http.get(url, conditions) as reply:
        if reply.status == 304:
            yield None
            return
        if not only and (reply.status in ABSENT or reply.status == 403):  # some stores answer 403 for a missing file
            return
        _check_status(reply)
        text, shown = reply.text(), index_url.without_secrets(reply.url)
        published = manifest.parse(text, shown) if only else manifest.found(text, shown, any_page=True)
        if published is None:
            return  # many sites have another index.json, or answer every address with a page
        base, validators = reply.url, Validators.of(reply)
    yield _candidate(urllib.parse.urljoin(base, urllib.parse.quote(published.file)), place, published, validators)


def _by_file(http: HttpClient, url: str, place: str, known: CacheState | None) -> Iterator[Candidate]:
    parts = urllib.parse.urlsplit(url)
    stem, _, ending = parts.path.rpartition(".")
    if not place and not parts.query and f".{ending.lower()}" in index_url.FILES:
        manifest_url = urllib.parse.urlunsplit((*parts[:2], f"{stem}.json", "", ""))
        with http.get(manifest_url) as reply:
            if reply.status == 200:
                shown, name = (
                    index_url.without_secrets(manifest_url),
                    urllib.parse.unquote(parts.path.rpartition("/")[2]),
                )
                published = manifest.found(reply.text(), shown, any_page=True)
                if published is not None:
                    if published.file != name:
                        raise ArtifactRejected(
                            f"{shown} is the manifest of {published.file}, not of {name}. Publish index and manifest "
                            "together."
                        )
                    yield _candidate(url, place, published, NO_VALIDATORS)
                    return
    since = Validators(known.etag, known.modified) if known else NO_VALIDATORS
    yield Candidate(
        url=url, place=place, name=index_url.without_secrets(url), check_status=_check_status, validators=since
    )


def _candidate(url: str, place: str, published: Manifest, validators: Validators) -> Candidate:
    return Candidate(
        url=url,
        place=place,
        name=published.sha256,
        check_status=_check_status,
        manifest=published,
        sha256=published.sha256,
        size=published.size,
        validators=validators,
        commit=published.commit,
    )


def _check_status(reply: Reply) -> None:
    """Raise for a status other than success."""
    status, shown = reply.status, index_url.without_secrets(reply.url)
    if status in ABSENT:
        raise Missing(f"There is nothing at {shown} (status {status}). Check the address.")
    if status in (401, 403, 407):
        raise FetchError(
            f"{shown} cannot be read (status {status}). Put name and password into the address, https://NAME:PASSWORD@"
            f"{reply.host}/..., or check your permissions."
        )
    if status == 429:
        raise Unreachable(f"{reply.host} limits the number of requests (status 429). Try again later.")
    if status != 200:
        raise FetchError(f"{shown} answered with status {status}. Check the address.")
