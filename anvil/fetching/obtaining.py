"""From a source to a verified file: found, compared with what is cached, downloaded if need be, checked, put in place.

What a server says is never believed: sizes are bounded, digests compared, and the index passes the same check as any
artifact before it has a name. When the server cannot be reached, what was fetched before does, and says so.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

from anvil import addresses, git
from anvil.addresses import Address, GitHubAddress, LocalPath, WebAddress
from anvil.errors import ArtifactError, ArtifactRejected, BuildError, FetchError, IndexBusy, Unreachable
from anvil.fetching import asking, on_disk, unpacking
from anvil.fetching.cache import Cache, Entry, State
from anvil.fetching.downloading import NEVER_SEEN, Wanted, download, forget
from anvil.fetching.fetched import UNPUBLISHED, Fetched, agree
from anvil.fetching.http import Http, Limits
from anvil.fetching.offers import Missing, Offer
from anvil.git import timestamp
from anvil.models import Manifest, Progress, silent
from anvil.store import describing, trust

PATIENCE = 600.0
"""Seconds that another process's fetching of the same source is waited for."""


def fetch(
    source: str | os.PathLike[str],
    *,
    cache: str | os.PathLike[str] | None = None,
    head: str | os.PathLike[str] | None = None,
    token: str | None = None,
    offline: str | None = None,
    limits: Limits | None = None,
    progress: Progress = silent,
) -> Fetched:
    """The index that ``source`` names, as a verified file.

    ``source``: a path (a file, or a folder with one), ``https://...`` (a file, a folder, a site), or
    ``github:OWNER/REPO[@REF]#artifact:NAME`` or ``#release:TAG``. ``cache``: the folder it is kept in, by default the
    user's. ``head``: a folder in the repository whose HEAD decides which artifact is nearest. ``token`` for GitHub, by
    default ``GITHUB_TOKEN``, ``GH_TOKEN`` or what ``gh`` has. ``offline``: a reason not to ask the server.
    ``progress`` is told ("fetching kB", done, all).

    Raises :class:`ConfigError` for a source that makes no sense, :class:`FetchError` when there is nothing to be had,
    :class:`ArtifactError` for what is refused.
    """
    address = addresses.parse(os.fspath(source))
    where = Path(head) if head is not None else None
    if isinstance(address, LocalPath):
        found = on_disk.find(Path(address.path))
    else:
        found = _from_server(address, Cache(Path(cache) if cache else None), where, token, offline, limits or Limits(),
                             progress)  # fmt: skip
    if found.distance is None and found.commit and where is not None:
        found = replace(found, distance=git.distance(where, found.commit))
    return found


def cached_path(source: str, cache: str | os.PathLike[str] | None = None, head: Path | None = None) -> Path:
    """Where :func:`fetch` puts the index of a remote source, there yet or not."""
    address = addresses.parse(source)
    assert not isinstance(address, LocalPath)
    return Cache(Path(cache) if cache else None).entry(asking.key(address, head)).index


# --- a server --------------------------------------------------------------------------------------------


def _from_server(
    address: WebAddress | GitHubAddress, cache: Cache, head: Path | None, token: str | None, offline: str | None,
    limits: Limits, progress: Progress,
) -> Fetched:  # fmt: skip
    entry = cache.entry(asking.key(address, head))
    if offline:  # waits for nobody, writes nothing
        return _cached(entry, entry.state(), offline)
    asked = time.time()
    try:
        with entry.held(PATIENCE):
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
    entry: Entry, state: State | None, address: WebAddress | GitHubAddress, head: Path | None, token: str | None,
    limits: Limits, progress: Progress,
) -> Fetched:  # fmt: skip
    """What the server has now. When what it says does not fit together it is asked once more: it may have been
    published anew between two questions."""
    for last in (False, True):
        with Http(limits, asking.authorization(address, token)) as http:
            for offer in asking.offers(http, address, state, head):
                now = time.time()
                if offer is None:
                    assert state is not None
                    state = replace(state, checked=now)
                    entry.confirm(state)
                    return _fetched(entry, state)
                try:
                    return _taken(http, entry, state, offer, address, progress)
                except Missing:
                    continue
                except ArtifactRejected:
                    if last or offer.manifest is None:
                        raise
                    break
    raise AssertionError  # the offers end with an error of their own


def _taken(
    http: Http, entry: Entry, state: State | None, offer: Offer, address: Address, progress: Progress
) -> Fetched:
    """The offer as a file in the cache, downloaded unless it is there."""
    cache, now = entry.cache, time.time()
    known = cache.held_by(offer.name) if offer.revision else offer.sha256
    file = cache.object(known) if known else None
    downloaded, validators = file is None, offer.validators
    vouched = offer.manifest is not None or offer.sha256 is not None
    if file is None:
        wanted = Wanted(offer.url, offer.name, offer.refuse, offer.sha256, offer.size,
                        {"Accept": offer.accept} if offer.accept else None,
                        offer.validators if offer.manifest is None else NEVER_SEEN)  # fmt: skip
        told = download(http, wanted, entry.part, progress)
        if told is None:
            assert state is not None
            state = replace(state, checked=now)
            entry.confirm(state)
            return _fetched(entry, state)
        if offer.manifest is None:
            validators = told
        file = _verified(entry, offer, address.shown, http.limits)
    described = describing.describe(file)
    if offer.manifest is not None:
        agree(offer.manifest, described, address.shown)
    fetched = state.fetched if state and state.sha256 == described.sha256 and not downloaded else now
    new = State(
        address.shown, offer.place, described.sha256, validators.etag, validators.modified, vouched,
        fetched, now, offer.revision, offer.commit,
    )  # fmt: skip
    if state is not None and state.sha256 == described.sha256:
        entry.confirm(new)
    else:
        entry.stand_at(file, described, new)
    cache.prune()
    found = _fetched(entry, new)
    return replace(found, downloaded=downloaded, distance=offer.distance, notes=(*offer.notes, *found.notes))


def _verified(entry: Entry, offer: Offer, shown: str, limits: Limits) -> Path:
    """The part file checked against everything said of it, and moved into the cache."""
    part = entry.part
    try:
        digest = trust.sha256(part)
        if offer.sha256 is not None and digest != offer.sha256:
            raise ArtifactRejected(
                f"What {shown} gave is refused: its SHA-256 is {digest[:16]}..., not {offer.sha256[:16]}... as said. "
                "Fetch again; if that does not help, publish it anew."
            )
        if offer.archive:
            file, published = unpacking.unpack(part, entry.unpacked, limits.size, shown)
            if published is not None:
                agree(published, _described(file, shown), shown)
            sha256 = trust.sha256(file)
        else:
            file, sha256 = part, digest
        _described(file, shown)
        kept = entry.cache.keep(file, sha256)
        if offer.revision:
            entry.cache.note(offer.name, sha256)
    finally:
        forget(part)  # whole and refused, or moved: there is nothing to take up again
        entry.unpacked.unlink(missing_ok=True)
    return kept


def _described(file: Path, shown: str) -> Manifest:
    """What is in a file that passes its check; a refusal names the source, not a file in a cache."""
    try:
        return describing.describe(file)
    except ArtifactError as error:
        raise type(error)(str(error).replace(str(file), f"What {shown} gave")) from None


def _cached(entry: Entry, state: State | None, reason: str) -> Fetched:
    if state is None:
        raise Unreachable(f"{reason} Nothing of it was fetched before.")
    return replace(_fetched(entry, state), from_cache=reason)


def _fetched(entry: Entry, state: State) -> Fetched:
    described = entry.manifest(state)
    return Fetched(
        entry.index, described, state.shown, described.commit or state.commit, None, timestamp(state.fetched),
        timestamp(state.checked), notes=() if state.vouched else (UNPUBLISHED,),
    )  # fmt: skip
