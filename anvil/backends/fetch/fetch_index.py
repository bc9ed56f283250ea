"""From a source to a verified file: found, compared with what is cached, downloaded if need be, checked, put in place.

What a server says is never believed: sizes are bounded, digests compared, and the index passes the same check as any
artifact before it has a name. When the server cannot be reached, what was fetched before does, and says so.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from email.utils import parsedate_to_datetime
from pathlib import Path

from anvil.backends.fetch import dispatch, local_path, zip_archive
from anvil.backends.fetch.cache import Cache, CacheEntry, CacheState
from anvil.backends.fetch.candidate import Candidate, Missing
from anvil.backends.fetch.download import download, forget
from anvil.backends.fetch.http_client import HttpClient, Limits
from anvil.backends.fetch.result import UNPUBLISHED, FetchResult, agree
from anvil.backends.git import repository
from anvil.backends.store import manifest_file, verified_cache
from anvil.core import index_url
from anvil.core.index_url import Address, GitHubAddress, LocalPath, WebAddress
from anvil.core.timestamps import timestamp
from anvil.errors import ArtifactError, ArtifactRejected, BuildError, FetchError, IndexBusy, Unreachable
from anvil.models.documents import Manifest, Progress, silent

LOCK_TIMEOUT_S = 600.0
"""How long to wait while another process fetches the same source."""


def fetch(
    source: str | os.PathLike[str],
    *,
    cache: str | os.PathLike[str] | None = None,
    head: str | os.PathLike[str] | None = None,
    token: str | None = None,
    offline: str | None = None,
    limits: Limits | None = None,
    progress: Progress = silent,
) -> FetchResult:
    """The index that ``source`` names, as a verified file.

    ``source``: a path (a file, or a folder with one), ``https://...`` (a file, a folder, a site), or
    ``github:OWNER/REPO[@REF]#artifact:NAME`` or ``#release:TAG``. ``cache``: the folder it is kept in, by default the
    user's. ``head``: a folder in the repository whose HEAD decides which artifact is nearest. ``token`` for GitHub, by
    default ``GITHUB_TOKEN``, ``GH_TOKEN`` or what ``gh`` has. ``offline``: a reason not to ask the server.
    ``progress`` is told ("fetching kB", done, all).

    Raises :class:`ConfigError` for a source that makes no sense, :class:`FetchError` when there is nothing to be had,
    :class:`ArtifactError` for what is refused.
    """
    address = index_url.parse(os.fspath(source))
    where = Path(head) if head is not None else None
    if isinstance(address, LocalPath):
        found = local_path.find(Path(address.path))
    else:
        found = _from_server(
            address, Cache(Path(cache) if cache else None), where, token, offline, limits or Limits(), progress
        )
    if found.distance is None and found.commit and where is not None:
        found = replace(found, distance=repository.distance(where, found.commit))
    return found


def cached_path(source: str, cache: str | os.PathLike[str] | None = None, head: Path | None = None) -> Path:
    """Where :func:`fetch` puts the index of a remote source, there yet or not."""
    address = index_url.parse(source)
    assert not isinstance(address, LocalPath)
    return Cache(Path(cache) if cache else None).entry(dispatch.key(address, head)).index


# --- a server --------------------------------------------------------------------------------------------


def _from_server(
    address: WebAddress | GitHubAddress,
    cache: Cache,
    head: Path | None,
    token: str | None,
    offline: str | None,
    limits: Limits,
    progress: Progress,
) -> FetchResult:
    entry = cache.entry(dispatch.key(address, head))
    if offline:  # waits for nobody, writes nothing
        return _cached(entry, entry.state(), offline)
    asked = time.time()
    try:
        with entry.lock(LOCK_TIMEOUT_S):
            state = entry.state()
            if state is not None and state.checked >= asked:  # another process did, while this one waited
                return _fetched(entry, state)
            try:
                return _newest(entry, state, address, head, token, limits, progress)
            except Unreachable as error:
                if state is None:
                    raise Unreachable(f"{error} Nothing of {address.shown} was fetched before.") from None
                return _cached(entry, state, str(error))
    except IndexBusy as error:
        raise Unreachable(f"Another process is fetching {address.shown}. Try again when it has finished.") from error
    except (OSError, BuildError) as error:  # a home that is read-only, a disk that is full
        why = getattr(error, "strerror", None) or "another program holds it"
        told = f"The cache folder {cache.folder} cannot be written ({why}). Make it writable, or free some space."
        state = entry.state()
        if state is None:
            raise FetchError(told) from error
        return _cached(entry, state, told)


def _newest(
    entry: CacheEntry,
    state: CacheState | None,
    address: WebAddress | GitHubAddress,
    head: Path | None,
    token: str | None,
    limits: Limits,
    progress: Progress,
) -> FetchResult:
    """What the server has now. When what it says does not fit together it is asked once more: it may have been
    published anew between two questions."""
    for last in (False, True):
        with HttpClient(limits, dispatch.authorization(address, token)) as http:
            for candidate in dispatch.candidates(http, address, state, head):
                now = time.time()
                if candidate is None:
                    assert state is not None
                    state = replace(state, checked=now)
                    entry.confirm(state)
                    return _fetched(entry, state)
                try:
                    return _taken(http, entry, state, candidate, address, progress)
                except Missing:
                    continue
                except ArtifactRejected:
                    if last or candidate.manifest is None:
                        raise
                    break
    raise AssertionError  # the candidates end with an error of their own


def _taken(
    http: HttpClient,
    entry: CacheEntry,
    state: CacheState | None,
    candidate: Candidate,
    address: Address,
    progress: Progress,
) -> FetchResult:
    """The candidate as a file in the cache, downloaded unless it is there."""
    cache, now = entry.cache, time.time()
    known = cache.held_by(candidate.name) if candidate.revision else candidate.sha256
    file = cache.object(known) if known else None
    downloaded, validators = file is None, candidate.validators
    vouched = candidate.manifest is not None or candidate.sha256 is not None
    if file is None:
        downloaded_validators = download(http, candidate, entry.part, progress)
        if downloaded_validators is None:
            assert state is not None
            state = replace(state, checked=now)
            entry.confirm(state)
            return _fetched(entry, state)
        if candidate.manifest is None:
            validators = downloaded_validators
        file = _verified(entry, candidate, address.shown, http.limits)
    described = manifest_file.describe(file)
    if candidate.manifest is not None:
        agree(candidate.manifest, described, address.shown)
    fetched = state.fetched if state and state.sha256 == described.sha256 and not downloaded else now
    new = CacheState(
        shown=address.shown,
        place=candidate.place,
        sha256=described.sha256,
        etag=validators.etag,
        modified=validators.modified,
        vouched=vouched,
        fetched=fetched,
        checked=now,
        revision=candidate.revision,
        commit=candidate.commit,
    )
    if state is not None and state.sha256 == described.sha256:
        entry.confirm(new)
    else:
        entry.stand_at(file, described, new)
    cache.prune()
    found = _fetched(entry, new)
    return replace(found, downloaded=downloaded, distance=candidate.distance, notes=(*candidate.notes, *found.notes))


def _verified(entry: CacheEntry, candidate: Candidate, shown: str, limits: Limits) -> Path:
    """The part file checked against everything said of it, and moved into the cache."""
    part = entry.part
    try:
        digest = verified_cache.sha256(part)
        if candidate.sha256 is not None and digest != candidate.sha256:
            raise ArtifactRejected(
                f"What {shown} gave is refused: its SHA-256 is {digest[:16]}..., not "
                f"{candidate.sha256[:16]}... as said. Fetch again; if that does not help, publish it again."
            )
        if candidate.archive:
            file, published = zip_archive.unpack(part, entry.unpacked, limits.size, shown)
            if published is not None:
                agree(published, _described(file, shown), shown)
            sha256 = verified_cache.sha256(file)
        else:
            file, sha256 = part, digest
        _described(file, shown)
        kept = entry.cache.keep(file, sha256)
        if candidate.revision:
            entry.cache.note(candidate.name, sha256)
    finally:
        forget(part)  # whole and refused, or moved: there is nothing to take up again
        entry.unpacked.unlink(missing_ok=True)
    return kept


def _described(file: Path, shown: str) -> Manifest:
    """What is in a file that passes its check; a refusal names the source, not a file in a cache."""
    try:
        return manifest_file.describe(file)
    except ArtifactError as error:
        raise type(error)(str(error).replace(str(file), f"What {shown} gave")) from None


def _cached(entry: CacheEntry, state: CacheState | None, reason: str) -> FetchResult:
    if state is None:
        raise Unreachable(f"{reason} Nothing of it was fetched before.")
    return replace(_fetched(entry, state), from_cache=reason)


def _moment(modified: str | None) -> str | None:
    """The time in a Last-Modified header; None when there is none that can be read."""
    try:
        return timestamp(parsedate_to_datetime(modified).timestamp()) if modified else None
    except (ValueError, OverflowError, OSError):  # whatever a server sends
        return None


def _fetched(entry: CacheEntry, state: CacheState) -> FetchResult:
    described = entry.manifest(state)
    return FetchResult(
        path=entry.index,
        manifest=described,
        origin=state.shown,
        commit=described.commit or state.commit,
        fetched_at=timestamp(state.fetched),
        checked_at=timestamp(state.checked),
        notes=() if state.vouched else (UNPUBLISHED,),
        published_at=_moment(state.modified),
    )
