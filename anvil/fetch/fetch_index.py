"""Fetching an index: from a source to a verified file in the cache.

Servers are not trusted: sizes are limited, digests are compared, and the index must pass its check before it gets its
name. If the server cannot be reached, the index that was fetched before is used, with a note.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from anvil.errors import (
    ArtifactError,
    ArtifactRejected,
    BuildError,
    FetchError,
    IndexBusy,
    Unreachable,
)
from anvil.fetch import attestation
from anvil.fetch.attestation import Attestation, AttestationRule, Examined, Examiner
from anvil.fetch.download import Candidate, Missing, download, forget, unpack
from anvil.fetch.fetched_cache import CacheEntry, CacheState, CacheUnwritable, FetchedCache
from anvil.fetch.github import GitHubSource
from anvil.fetch.settings import FetchOptions
from anvil.fetch.web_source import WebSource
from anvil.formats.data_formats import timestamp
from anvil.git import repository
from anvil.http.allowed_servers import HttpPolicy
from anvil.http.client import HttpClient, Limits, http_date
from anvil.index_file import connection, manifests, publish
from anvil.index_file.manifests import Manifest
from anvil.settings import index_url
from anvil.settings.index_url import Address, GitHubAddress, LocalPath, WebAddress
from anvil.settings.schema import INDEX_FOLDER, INDEX_NAME, Config
from anvil.system import safe_files
from anvil.values import LOCK_TIMEOUT_S, Progress, silent

UNPUBLISHED = "It is published without a manifest, so the download is checked against its own checksums only."


@dataclass(frozen=True, slots=True)
class FetchResult:
    """A verified index on this machine.

    ``path`` is the same for each fetch of a source; its file is replaced by newer ones. ``manifest``: of that file.
    ``origin``: the source without credentials. ``fetched_at`` and ``checked_at`` (ISO 8601, UTC): the time of the
    download, and of the last check with the server; None for a path. ``from_cache``: why the server was not used; None
    if it was. ``commit``: the commit that the index was built from. ``distance``: number of commits that HEAD has after
    it. Both are None if unknown. ``published_at``: the time of the last change, from the server. ``attestation``: who
    built the index, if that was asked for and is proven.
    """

    path: Path
    manifest: Manifest
    origin: str
    commit: str | None
    distance: int | None = None
    fetched_at: str | None = None
    checked_at: str | None = None
    from_cache: str | None = None
    downloaded: bool = False
    notes: tuple[str, ...] = ()
    published_at: str | None = None
    attestation: Attestation | None = None


def agree(published: Manifest, actual: Manifest, shown: str) -> None:
    """Raise :class:`ArtifactRejected` unless the manifest belongs to this index."""
    for key in ("sha256", "size", "format", "digest", "commit"):
        expected, value = getattr(published, key), getattr(actual, key)
        if expected != value:
            raise ArtifactRejected(
                f"{shown} is refused: its manifest has {key} {expected}, but the index has {value}. "
                "Publish index and manifest together, and fetch again."
            )


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """How an index is fetched.

    ``options``: as configured. ``cache``: where it is kept; None for the user's own. ``head``: a folder in the
    repository; the artifact nearest to its HEAD is taken. ``offline``: a reason to use the cache only. ``progress``
    gets ("fetching kB", done, total). ``policy``: which servers are allowed; None for those that a user may name.
    ``attested``: what is done about its attestation; None for nothing. ``limits``: instead of the usual ones.
    ``is_named_by_user``: whether the source is the user's own words; only then the password that ``.netrc`` has for
    its host is sent.
    """

    options: FetchOptions = field(default_factory=FetchOptions)
    cache: FetchedCache | None = None
    head: Path | None = None
    offline: str | None = None
    progress: Progress = silent
    policy: HttpPolicy | None = None
    attested: AttestationRule | None = None
    limits: Limits | None = None
    is_named_by_user: bool = False

    def entry(self, address: Address) -> CacheEntry:
        """The place of a source in the cache. If an attestation is required, who must have built the index is part of
        its name. So no index gets there that was fetched for somebody who does not require it."""
        source, rule = source_of(address), self.attested
        name = source.key(self.head)
        if rule is not None and rule.required:
            builder = (rule.builder or source.builder or "").lower()
            name = "\n".join((name, "built by", builder, rule.trusted_root or ""))
        return (self.cache or FetchedCache()).entry(name)


def fetch(source: str | os.PathLike[str], request: FetchRequest = FetchRequest()) -> FetchResult:
    """The index that ``source`` names, as a verified file.

    ``source``: a path (a file, or a folder with one), ``https://...`` (a file, a folder, a site), or
    ``github:OWNER/REPO[@REF]#artifact:NAME`` or ``#release:TAG``. Raises :class:`ConfigError` for an invalid source,
    :class:`FetchError` when there is no index, :class:`ArtifactError` when the index is refused.
    """
    address = index_url.parse(os.fspath(source))
    if isinstance(address, LocalPath):
        examiner = Examiner(request.attested, None, address.shown)
        result = find(Path(address.path))
        examined = examiner.examine(result.manifest.sha256, lambda: attestation.of_file(result.path))
        result = replace(result, attestation=examined.attestation, notes=(*result.notes, *examined.notes))
    else:
        entry, index_source = request.entry(address), source_of(address)
        examiner = Examiner(request.attested, index_source.builder, address.shown, entry.cache)
        result = _Server(index_source, request, examiner, entry).fetch()
    if result.distance is None and result.commit and request.head is not None:
        result = replace(result, distance=repository.distance(request.head, result.commit))
    return result


def fetch_as_configured(source: str, config: Config, base: Path, *, head: Path | None = None) -> FetchResult:
    """:func:`fetch`, with the limit and the attestation that a configuration asks for. ``base``: the start of its
    paths."""
    options = config.table(FetchOptions)
    rule = attestation.rule_of(options, base)
    is_named = source not in config.found_indexes
    return fetch(
        source, FetchRequest(options, head=head, attested=rule if rule.required else None, is_named_by_user=is_named)
    )


# --- a server --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Server:
    """A source on a server, and its ``entry`` in the cache."""

    source: WebSource | GitHubSource
    request: FetchRequest
    examiner: Examiner
    entry: CacheEntry

    def fetch(self) -> FetchResult:
        """The index that the source has, or the cached one."""
        entry, shown = self.entry, self.source.address.shown
        if self.request.offline:  # no lock, and nothing is written
            return self._cached(entry.state(), self.request.offline)
        stored = entry.stored_state()
        try:
            with entry.lock(LOCK_TIMEOUT_S, self.request.progress):
                state = entry.state()
                # Another process confirmed it while this one waited. No time is compared: a clock can go back.
                is_confirmed = state is not None and (stored is None or state.checked != stored.checked)
                if state is not None and is_confirmed and self.examiner.is_settled(state.sha256):
                    return self._fetched(state, Examined(self.examiner.recall(state.sha256)))
                try:
                    return self._newest(state)
                except Unreachable as error:
                    if state is None:
                        raise Unreachable(f"{error} {shown} was not fetched before.") from None
                    return self._cached(state, str(error))
        except IndexBusy as error:
            raise Unreachable(f"Another process is fetching {shown}. Try again when it has finished.") from error
        except (OSError, BuildError) as error:
            if not isinstance(error, CacheUnwritable):
                error = CacheUnwritable(entry.cache.folder, error)
            state = entry.state()
            if state is None:
                raise FetchError(str(error)) from error
            return self._cached(state, str(error))

    def _newest(self, state: CacheState | None) -> FetchResult:
        """The index that the server has now. If its files do not match each other, they are requested a second time,
        because a new index can be published between two requests."""
        request = self.request
        limits = request.limits or Limits(size=request.options.max_bytes)
        authorization = self.source.authorization(request.is_named_by_user)
        for last in (False, True):
            with HttpClient(limits, authorization, request.policy) as http:
                for candidate in self.source.candidates(http, state, request.head):
                    if candidate is None:
                        assert state is not None
                        return self._confirmed(http, state, time.time())
                    try:
                        return self._obtain(http, state, candidate)
                    except Missing:
                        continue
                    except ArtifactRejected:
                        if last or candidate.manifest is None:
                            raise
                        break
        raise AssertionError  # the iterator of candidates ends with an error

    def _obtain(self, http: HttpClient, state: CacheState | None, candidate: Candidate) -> FetchResult:
        """The candidate in the cache; it is downloaded if needed. It becomes the current index of its source after its
        attestation was examined."""
        entry, cache, shown, now = self.entry, self.entry.cache, self.source.address.shown, time.time()
        # With a revision, the digest that is published may be that of an archive. A note says which index it holds.
        sha256 = cache.held_by(candidate.name) if candidate.revision else candidate.sha256
        file = cache.object(sha256) if sha256 else None
        downloaded, validators = file is None, candidate.validators
        if file is None:
            downloaded_validators = download(http, candidate, entry.part, self.request.progress)
            if downloaded_validators is None:
                assert state is not None
                return self._confirmed(http, state, now)
            if candidate.manifest is None:
                validators = downloaded_validators
            file = self._verified(candidate, http.limits.size)
        described = publish.describe(file)
        if candidate.manifest is not None:
            agree(candidate.manifest, described, shown)
        sha256, url = described.sha256, candidate.url
        examined = self.examiner.examine(sha256, lambda: self.source.bundles(http, sha256, url))
        is_same = state is not None and state.sha256 == described.sha256
        new = CacheState(
            shown=shown,
            place=candidate.place,
            sha256=described.sha256,
            etag=validators.etag,
            modified=validators.modified,
            vouched=candidate.manifest is not None or candidate.sha256 is not None,
            fetched=state.fetched if state is not None and is_same and not downloaded else now,
            checked=now,
            revision=candidate.revision,
            commit=candidate.commit,
            file=candidate.manifest.file if candidate.manifest is not None else None,
        )
        if is_same:
            entry.confirm(new)
        else:
            entry.replace(file, described, new)
        cache.prune()
        result = self._fetched(new, examined)
        notes = (*candidate.notes, *result.notes)
        return replace(result, downloaded=downloaded, distance=candidate.distance, notes=notes)

    def _confirmed(self, http: HttpClient, state: CacheState, now: float) -> FetchResult:
        """The index of ``state``, which is still the one that the server has."""
        url = self.source.url_of(state)
        examined = self.examiner.examine(state.sha256, lambda: self.source.bundles(http, state.sha256, url))
        state = replace(state, checked=now)
        self.entry.confirm(state)
        return self._fetched(state, examined)

    def _verified(self, candidate: Candidate, max_bytes: int) -> Path:
        """Check the downloaded file against its digest and manifest, and move it into the cache."""
        entry, part, shown = self.entry, self.entry.part, self.source.address.shown
        named = f"The download from {shown}"
        try:
            digest = safe_files.sha256(part)
            if candidate.sha256 is not None and digest != candidate.sha256:
                raise ArtifactRejected(
                    f"The download from {shown} is refused: its SHA-256 is {digest[:16]}..., but "
                    f"{candidate.sha256[:16]}... is published. Fetch again. If that does not help, publish it again."
                )
            if candidate.archive:
                file, published = unpack(part, entry.unpacked, max_bytes, shown)
                if published is not None:
                    agree(published, checked_manifest(file, named), shown)
                sha256 = safe_files.sha256(file)
            else:
                file, sha256 = part, digest
            checked_manifest(file, named)
            cached_file = entry.cache.keep(file, sha256)
            if candidate.revision:
                entry.cache.note(candidate.name, sha256)
        finally:
            forget(part)  # it is complete: refused or moved
            entry.unpacked.unlink(missing_ok=True)
        return cached_file

    def _cached(self, state: CacheState | None, reason: str) -> FetchResult:
        if state is None:
            raise Unreachable(f"{reason} It was not fetched before.")
        return replace(self._fetched(state, Examined(self.examiner.offline(state.sha256))), from_cache=reason)

    def _fetched(self, state: CacheState, examined: Examined) -> FetchResult:
        described = self.entry.manifest(state)
        return FetchResult(
            path=self.entry.index,
            manifest=described,
            origin=state.shown,
            commit=described.commit or state.commit,
            fetched_at=timestamp(state.fetched),
            checked_at=timestamp(state.checked),
            notes=(*(() if state.vouched else (UNPUBLISHED,)), *examined.notes),
            published_at=http_date(state.modified),
            attestation=examined.attestation,
        )


def checked_manifest(file: Path, named: str) -> Manifest:
    """The manifest of a checked file, which errors call by this name."""
    try:
        return publish.describe(file)
    except ArtifactError as error:
        problem = error.problem.replace(str(file), named).replace(connection.NAME_ANOTHER, "Check its address.")
        raise type(error)(problem, error.advice and "It has to be built and published again.") from None


def source_of(address: Address) -> WebSource | GitHubSource:
    """The source of an address. Another kind is a line here, and its module."""
    if isinstance(address, GitHubAddress):
        return GitHubSource(address)
    assert isinstance(address, WebAddress)  # a path is no source on a server
    return WebSource(address)


def find(path: Path) -> FetchResult:
    """The index at or in ``path``. Raises :class:`FetchError` or :class:`ArtifactError`."""
    if not path.exists():
        raise FetchError(f"There is no file or folder {path}. Write {index_url.FORMS}.")
    if not path.is_dir():
        manifest_path = manifests.manifest_path(path)
        return _local(path, _manifest_at(manifest_path) if manifest_path.is_file() else None)
    for candidate_path in (*index_url.PLACES, f"{INDEX_FOLDER}/{INDEX_NAME}"):
        file = path / candidate_path
        if file.suffix == ".json" and file.is_file():
            published = _manifest_at(file)
            if published is not None:
                return _local(file.with_name(published.file), published)
        elif file.is_file():
            return _local(file, None)
    raise FetchError(f"There is no index in {path}. Name the folder that holds index.json and index.db, or the file.")


def _manifest_at(path: Path) -> Manifest | None:
    """The manifest at a path; None for another JSON file. Raises :class:`ArtifactRejected` for a damaged manifest."""
    try:
        text = safe_files.text(path, errors="replace")
    except OSError as error:
        raise ArtifactRejected(f"The manifest {path} cannot be read ({error.strerror}). Check the file.") from error
    return manifests.found(text, str(path))


def _local(path: Path, published: Manifest | None) -> FetchResult:
    described = publish.describe(path)
    if published is not None:
        agree(published, described, str(path))
    return FetchResult(path=path, manifest=described, origin=str(path), commit=described.commit)
