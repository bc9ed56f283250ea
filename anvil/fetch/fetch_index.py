"""Fetching an index from an address or a path: a verified file in the cache, its manifest, and who built it.

Servers are not trusted: sizes are limited, digests are compared, and the index must pass its check before it becomes
the current one. If the server cannot be reached, the index that was fetched before is used, with a note.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from anvil.errors import ArtifactError, ArtifactRejected, BuildError, FetchError, IndexBusy, Unreachable
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

    ``path`` is the same for each fetch of a source; newer files replace the one there. ``manifest``: of this file.
    ``origin``: the source without credentials. ``fetched_at`` and ``checked_at`` (ISO 8601, UTC): the time of the
    download, and of the last check with the server; None for a path. ``from_cache``: why the server was not used; None
    if it was. ``commit``: the commit that the index was built from. ``distance``: number of commits that HEAD has after
    that one. Both are None if unknown. ``published_at``: the time of the last change, from the server.
    ``attestation``: who built the index, if the request asks for it and it is proven.
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

    ``options``: the configuration. ``cache``: None means the user's own. ``head``: a folder in a repository; the
    artifact nearest to its HEAD is taken. ``offline``: the reason to use the cache only; None means the server is
    asked. ``progress`` gets ("fetching kB", done, total). ``policy``: which servers are allowed; None means those that
    a user may name. ``attested``: the rule for its attestation; None means that attestations are not read. ``limits``:
    None means the usual ones. ``is_named_by_user``: whether the user named the source; only then the password in
    ``.netrc`` for its host is sent.
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
        """The entry of a source in the cache. If an attestation is required, its name contains who must have built the
        index. So it does not have an index that was fetched without this requirement."""
        source, rule = source_of(address), self.attested
        name = source.key(self.head)
        if rule is not None and rule.required:
            builder = (rule.builder or source.builder or "").lower()
            name = "\n".join((name, "built by", builder, rule.trusted_root or ""))
        return (self.cache or FetchedCache()).entry(name)


def fetch(source: str | os.PathLike[str], request: FetchRequest = FetchRequest()) -> FetchResult:
    """The index that ``source`` names, as a verified file.

    ``source``: a path (a file, or a folder with one), ``https://...`` (a file, a folder, a site), or
    ``github:OWNER/REPO[@REF]#artifact:NAME`` or ``#release:TAG``. Raises :class:`ConfigError` if the source is not
    valid, :class:`FetchError` if there is no index, and :class:`ArtifactError` if the index is refused.
    """
    address = index_url.parse(os.fspath(source))
    if isinstance(address, LocalPath):
        examiner = Examiner(request.attested, None, address.shown)
        result = find(Path(address.path))
        examined = examiner.examine(result.manifest.sha256, lambda: attestation.read_bundles(result.path))
        result = replace(result, attestation=examined.attestation, notes=(*result.notes, *examined.notes))
    else:
        entry, index_source = request.entry(address), source_of(address)
        examiner = Examiner(request.attested, index_source.builder, address.shown, entry.cache)
        result = _Server(index_source, request, examiner, entry).fetch()
    if result.distance is None and result.commit and request.head is not None:
        result = replace(result, distance=repository.distance(request.head, result.commit))
    return result


def configured_request(source: str, config: Config, base: Path, head: Path | None = None) -> FetchRequest:
    """A request with the limit and the attestation of a configuration. ``base``: the folder of its relative paths.
    ``head``: see :class:`FetchRequest`. Attestations are read only if the configuration requires one."""
    options = config.table(FetchOptions)
    rule = attestation.rule_of(options, base)
    is_named = source not in config.found_indexes
    return FetchRequest(options, head=head, attested=rule if rule.required else None, is_named_by_user=is_named)


def fetch_as_configured(source: str, config: Config, base: Path, *, head: Path | None = None) -> FetchResult:
    """Fetch an index, see :func:`configured_request`. Raises as :func:`fetch` does."""
    return fetch(source, configured_request(source, config, base, head))


# --- a server --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Server:
    """One fetch from a source on a server. ``entry``: of the source in the cache."""

    source: WebSource | GitHubSource
    request: FetchRequest
    examiner: Examiner
    entry: CacheEntry

    def fetch(self) -> FetchResult:
        """The index of the source, or the cached one if the server cannot be reached."""
        entry, shown = self.entry, self.source.address.shown
        if self.request.offline:  # without the lock: nothing is written
            return self._cached_result(entry.state(), self.request.offline)
        stored = entry.stored_state()
        try:
            with entry.lock(LOCK_TIMEOUT_S, self.request.progress):
                state = entry.state()
                # Another process may have confirmed it while this one waited for the lock. Whether ``checked`` is later
                # is not asked, because a clock can go back.
                is_confirmed = state is not None and (stored is None or state.checked != stored.checked)
                if state is not None and is_confirmed and (known := self.examiner.known(state.sha256)) is not None:
                    return self._result(state, known)
                try:
                    return self._newest(state)
                except Unreachable as error:
                    if state is None:
                        raise Unreachable(f"{error} {shown} was not fetched before.") from None
                    return self._cached_result(state, str(error))
        except IndexBusy as error:
            raise Unreachable(f"Another process is fetching {shown}. Try again when it has finished.") from error
        except (OSError, BuildError) as error:
            if not isinstance(error, CacheUnwritable):
                error = CacheUnwritable(entry.cache.folder, error)
            state = entry.state()
            if state is None:
                raise FetchError(str(error)) from error
            return self._cached_result(state, str(error))

    def _newest(self, state: CacheState | None) -> FetchResult:
        """The index that the server has now. If manifest and file do not match, both are requested a second time,
        because a new index may have been published between the requests."""
        request = self.request
        limits = request.limits or Limits(size=request.options.max_bytes)
        authorization = self.source.authorization(request.is_named_by_user)
        for is_last in (False, True):
            with HttpClient(limits, authorization, request.policy) as http:
                for candidate in self.source.candidates(http, state, request.head):
                    if candidate is None:
                        assert state is not None
                        return self._confirm(http, state, time.time())
                    try:
                        return self._obtain(http, state, candidate)
                    except Missing:
                        continue
                    except ArtifactRejected:
                        if is_last or candidate.manifest is None:
                            raise
                        break
        raise AssertionError  # the iterator of candidates ends with an error

    def _obtain(self, http: HttpClient, state: CacheState | None, candidate: Candidate) -> FetchResult:
        """Make the candidate the current index of its source, after its attestation was examined. It is downloaded if
        the cache does not have it."""
        entry, cache, shown, now = self.entry, self.entry.cache, self.source.address.shown, time.time()
        # With a revision, the published digest may be that of an archive. A note in the cache has that of its index.
        sha256 = cache.read_note(candidate.name) if candidate.revision else candidate.sha256
        file = cache.object(sha256) if sha256 else None
        downloaded, validators = file is None, candidate.validators
        if file is None:
            downloaded_validators = download(http, candidate, entry.part, self.request.progress)
            if downloaded_validators is None:
                assert state is not None
                return self._confirm(http, state, now)
            if candidate.manifest is None:
                validators = downloaded_validators
            file = self._verify(candidate, http.limits.size)
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
        result = self._result(new, examined)
        notes = (*candidate.notes, *result.notes)
        return replace(result, downloaded=downloaded, distance=candidate.distance, notes=notes)

    def _confirm(self, http: HttpClient, state: CacheState, now: float) -> FetchResult:
        """The result for the cached index of ``state``, which is still the one on the server."""
        url = self.source.url_of(state)
        examined = self.examiner.examine(state.sha256, lambda: self.source.bundles(http, state.sha256, url))
        state = replace(state, checked=now)
        self.entry.confirm(state)
        return self._result(state, examined)

    def _verify(self, candidate: Candidate, max_bytes: int) -> Path:
        """Check the downloaded file against its digest and manifest, and move the index into the cache."""
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
            forget(part)  # it was complete, and is refused or moved now
            entry.unpacked.unlink(missing_ok=True)
        return cached_file

    def _cached_result(self, state: CacheState | None, reason: str) -> FetchResult:
        if state is None:
            raise Unreachable(f"{reason} It was not fetched before.")
        return replace(self._result(state, self.examiner.offline(state.sha256)), from_cache=reason)

    def _result(self, state: CacheState, examined: Examined) -> FetchResult:
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
    """Check an index file and describe it. ``named``: its name in errors. Raises :class:`ArtifactError`."""
    try:
        return publish.describe(file)
    except ArtifactError as error:
        problem = error.problem.replace(str(file), named).replace(connection.NAME_ANOTHER, "Check its address.")
        raise type(error)(problem, error.advice and "It has to be built and published again.") from None


def source_of(address: Address) -> WebSource | GitHubSource:
    """The source of an address on a server. A further kind needs a line here, and its module."""
    if isinstance(address, GitHubAddress):
        return GitHubSource(address)
    assert isinstance(address, WebAddress)  # and not a local path
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
    """The manifest at a path; None if it is another JSON file. Raises :class:`ArtifactRejected` if it is damaged."""
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
