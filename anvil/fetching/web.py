"""An index on a web server: a file, a folder with an index in it, or a site with such a folder."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterator

from anvil import addresses, manifest
from anvil.addresses import WebAddress
from anvil.errors import ArtifactRejected, FetchError, Unreachable
from anvil.fetching.cache import State
from anvil.fetching.downloading import NEVER_SEEN, Validators
from anvil.fetching.http import Http, Reply
from anvil.fetching.offers import Missing, Offer
from anvil.models import Manifest

ABSENT = (404, 410)


def offers(http: Http, address: WebAddress, state: State | None) -> Iterator[Offer | None]:
    """What may be there, best first; None for "what ``state`` tells of still stands".

    An offer without a manifest is a guess: downloading it may raise :class:`Missing`, then the next one is taken.
    """
    places = address.places
    if state is not None and state.place in places:  # what was there the last time is asked for first
        places = (state.place, *(each for each in places if each != state.place))
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


def _by_manifest(http: Http, url: str, place: str, known: State | None, only: bool) -> Iterator[Offer | None]:
    conditions = Validators(known.etag, known.modified).conditions() if known else {}
    with http.get(url, conditions) as reply:
        if reply.status == 304:
            yield None
            return
        if not only and (reply.status in ABSENT or reply.status == 403):  # some stores forbid what they do not have
            return
        _judge(reply)
        try:
            found = manifest.parse(reply.text(), addresses.without_secrets(reply.url))
        except ArtifactRejected:
            if only:
                raise
            return  # many sites have an index.json of another kind, and many answer anything with a page
        base, validators = reply.url, Validators.of(reply)
    yield _offer(urllib.parse.urljoin(base, urllib.parse.quote(found.file)), place, found, validators)


def _by_file(http: Http, url: str, place: str, known: State | None) -> Iterator[Offer]:
    parts = urllib.parse.urlsplit(url)
    stem, _, ending = parts.path.rpartition(".")
    if not place and not parts.query and f".{ending.lower()}" in addresses.FILES:
        beside = urllib.parse.urlunsplit((*parts[:2], f"{stem}.json", "", ""))
        with http.get(beside) as reply:
            if reply.status == 200:
                try:
                    found = manifest.parse(reply.text(), addresses.without_secrets(beside))
                except ArtifactRejected:
                    found = None  # a file of that name that is something else
                if found is not None and found.file == urllib.parse.unquote(parts.path.rpartition("/")[2]):
                    yield _offer(url, place, found, NEVER_SEEN)
                    return
    since = Validators(known.etag, known.modified) if known else NEVER_SEEN
    yield Offer(url, place, addresses.without_secrets(url), _judge, validators=since)


def _offer(url: str, place: str, found: Manifest, validators: Validators) -> Offer:
    return Offer(url, place, found.sha256, _judge, found, found.sha256, found.size, validators, commit=found.commit)


def _judge(reply: Reply) -> None:
    """Raise for a status that is no answer."""
    status, shown = reply.status, addresses.without_secrets(reply.url)
    if status in ABSENT:
        raise Missing(f"There is nothing at {shown} (status {status}). Check the address.")
    if status in (401, 403, 407):
        raise FetchError(
            f"{shown} may not be read (status {status}). Put name and password into the address, https://NAME:PASSWORD@"
            f"{reply.host}/..., or check what you may see."
        )
    if status == 429:
        raise Unreachable(f"{reply.host} has had too many requests (status 429). Try again later.")
    if status != 200:
        raise FetchError(f"{shown} answered with status {status}. Check the address.")
