"""Web servers as a source of indexes: the manifest, the index file, the attestation beside it, and errors by status."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from anvil.errors import ArtifactRejected, FetchError, Unreachable
from anvil.fetch import attestation
from anvil.fetch.download import NO_VALIDATORS, Candidate, Missing, Validators
from anvil.fetch.fetched_cache import CacheState
from anvil.http.client import HttpClient, Reply, basic_authorization, login_in_netrc, origin
from anvil.index_file import manifests
from anvil.index_file.manifests import Manifest
from anvil.settings import index_url
from anvil.settings.index_url import OWNER, WebAddress

ABSENT = (404, 410)
_PAGES_HOST = re.compile(rf"({OWNER})\.github\.io", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class WebSource:
    """An address on the web where an index is published. The source of each kind of address has these methods."""

    address: WebAddress

    @property
    def builder(self) -> str | None:
        """Who builds the index, if the address says so: the owner of ``https://OWNER.github.io/``."""
        match = _PAGES_HOST.fullmatch(self.address.host)
        return match[1] if match else None

    def key(self, head: Path | None) -> str:
        """The name of the source in the cache. ``head``: a folder in a repository; here its HEAD selects nothing."""
        return self.address.url

    def authorization(self, is_named_by_user: bool) -> Mapping[str, str]:
        """Origin -> value of the Authorization header. Only if the user named the address (``is_named_by_user``), the
        password in ``.netrc`` for its host is sent."""
        login = self.address.credentials or (login_in_netrc(self.address.url) if is_named_by_user else None)
        return {origin(self.address.url): basic_authorization(*login)} if login is not None else {}

    def candidates(self, http: HttpClient, state: CacheState | None, head: Path | None) -> Iterator[Candidate | None]:
        """The candidates, best first. None means that the index of ``state`` is still the current one.

        A candidate without a manifest is a guess: if its download raises :class:`Missing`, try the next one. Raises
        :class:`FetchError` after the last one.
        """
        places = self.address.places
        if state is not None and state.place in places:  # try the last place first
            places = (state.place, *(place for place in places if place != state.place))
        for place in places:
            url = urllib.parse.urljoin(self.address.url, place)
            stored = state if state is not None and state.place == place else None
            if urllib.parse.urlsplit(url).path.lower().endswith(".json"):
                yield from _by_manifest(http, url, place, stored, only=len(places) == 1)
            else:
                yield from _by_file(http, url, place, stored)
        raise FetchError(
            f"There is no index at {self.address.shown}. Name the folder that holds index.json and index.db, or the "
            "file itself."
        )

    def url_of(self, state: CacheState) -> str:
        """The URL of the current index."""
        url = urllib.parse.urljoin(self.address.url, state.place)
        return url if state.file is None else urllib.parse.urljoin(url, urllib.parse.quote(state.file))

    def bundles(self, http: HttpClient, sha256: str, url: str) -> list[str]:
        """The bundles of attestations in the file beside the index at ``url``; none if there is no file. Raises
        :class:`FetchError`, and :class:`NotAttested` if the file cannot be read."""
        parts = urllib.parse.urlsplit(url)
        attestation_url = urllib.parse.urlunsplit(parts._replace(path=parts.path + attestation.SUFFIX))
        with http.get(attestation_url) as reply:
            if reply.status in (*ABSENT, 403):  # some stores answer 403 for a missing file
                return []
            shown = index_url.without_secrets(reply.url)
            if reply.status != 200:
                raise FetchError(f"{shown} answered with status {reply.status}.")
            return attestation.bundles(reply.body(attestation.MAX_BYTES), shown)


def _by_manifest(
    http: HttpClient, url: str, place: str, stored: CacheState | None, only: bool
) -> Iterator[Candidate | None]:
    """The candidate that the manifest at ``url`` describes. ``stored``: the state of an earlier fetch from there.
    ``only``: whether there is no other place, so that a missing or wrong file is an error."""
    conditions = Validators(stored.etag, stored.modified).conditions() if stored else {}
    with http.get(url, conditions) as reply:
        if reply.status == 304 and conditions:
            yield None
            return
        if not only and (reply.status in ABSENT or reply.status == 403):  # some stores answer 403 for a missing file
            return
        _check_web_status(reply)
        text, shown = reply.text(), index_url.without_secrets(reply.url)
        published = manifests.parse(text, shown) if only else manifests.found(text, shown, any_page=True)
        if published is None:
            return  # many sites have another index.json, or answer each request with a page
        base, validators = reply.url, Validators.of(reply)
    yield _candidate(urllib.parse.urljoin(base, urllib.parse.quote(published.file)), place, published, validators)


def _by_file(http: HttpClient, url: str, place: str, stored: CacheState | None) -> Iterator[Candidate]:
    """The candidate for the index file at ``url``. If the user named the file itself, its manifest is looked for beside
    it. ``stored``: the state of an earlier fetch from there."""
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
                published = manifests.found(reply.text(), shown, any_page=True)
                if published is not None:
                    if published.file != name:
                        raise ArtifactRejected(
                            f"{shown} is the manifest of {published.file}, not of {name}. Publish index and manifest "
                            "together."
                        )
                    yield _candidate(url, place, published, NO_VALIDATORS)
                    return
    validators = Validators(stored.etag, stored.modified) if stored else NO_VALIDATORS
    name = index_url.without_secrets(url)
    yield Candidate(url=url, place=place, name=name, check_status=_check_web_status, validators=validators)


def _candidate(url: str, place: str, published: Manifest, validators: Validators) -> Candidate:
    return Candidate(
        url=url,
        place=place,
        name=published.sha256,
        check_status=_check_web_status,
        manifest=published,
        sha256=published.sha256,
        size=published.size,
        validators=validators,
        commit=published.commit,
    )


def _check_web_status(reply: Reply) -> None:
    """Raise the error for a status other than 200, with the next step."""
    status, shown = reply.status, index_url.without_secrets(reply.url)
    if status in ABSENT:
        raise Missing(f"There is nothing at {shown} (status {status}). Check the address.")
    if status in (401, 403, 407):
        raise FetchError(
            f"{shown} cannot be read (status {status}). Put name and password into the address, https://NAME:PASSWORD@"
            f"{reply.host}/..., or into ~/.netrc, which counts for an address that you name yourself, and for one in a "
            "configuration file that you name. Or check your permissions."
        )
    if status == 429:
        raise Unreachable(f"{reply.host} limits the number of requests (status 429). Try again later.")
    if status != 200:
        raise FetchError(f"{shown} answered with status {status}. Check the address.")
