"""Finding the documentation of a package at one version, and obtaining the index of an entry of ``anvil.lock``.

The sources are tried in this order: the package itself, its documentation site, a release of its repository, and the
repository's documentation folder at the version's tag. The package is first, because its documentation is of exactly
this version; the repository is last, because its index has to be built here. Each attempt is logged for ``--explain``.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal

from anvil._version import __version__
from anvil.build import builder
from anvil.dependencies import anvil_lock, docs_cache, package_files, remote_repository, repository_docs
from anvil.dependencies.attempts import NAMES_NO_REPOSITORY, AttemptLog, sentence
from anvil.dependencies.ecosystems import Dependency
from anvil.dependencies.package_files import Package, PackageFiles, Packages
from anvil.dependencies.package_names import is_other_version, is_same_version
from anvil.dependencies.project_urls import github_slug, versioned
from anvil.dependencies.remote_repository import RemoteRepository
from anvil.dependencies.settings import DepsOptions
from anvil.dependencies.values import Attempt, DocsHints, DocsReport, LockedDocs, report_on
from anvil.documents.document_source import BAD_NAME, DocumentSource, GivenDocuments, PageDecoder
from anvil.embedding.provider import EmbeddingProvider
from anvil.errors import ArtifactRejected, BuildError, NotFound, Unreachable
from anvil.fetch import attestation, fetch_index
from anvil.fetch.attestation import SUFFIX, AttestationRule
from anvil.fetch.fetch_index import UNPUBLISHED, FetchRequest
from anvil.fetch.fetched_cache import FetchedCache
from anvil.fetch.settings import FetchOptions
from anvil.formats.characters import is_plain_name, plain_name
from anvil.formats.data_formats import canonical, timestamp
from anvil.git.objects import blob_id
from anvil.http.client import HttpClient, Limits
from anvil.index_file import manifests, verify
from anvil.requests import BuildRequest
from anvil.settings.schema import ChunkingOptions, Config, Slugs, SourceOptions
from anvil.system import safe_files
from anvil.text import front_matter
from anvil.values import Document, Progress, Skipped, silent
from anvil.wording import counted

MAX_URL_CHARS = 2000
"""Characters of a page's address."""
MAX_SITES = 2
"""Documentation sites of a package that are tried."""
MAX_SKIPPED_NAMED = 5
"""Skipped pages that have a note."""


class DocsFinder(contextlib.AbstractContextManager["DocsFinder"]):
    """Finds documentation for the project in ``base``, and puts indexes into ``cache``, which is one of
    :func:`anvil.dependencies.docs_cache.cache`. Raises :class:`ConfigError` if attestations are required and cannot be
    verified here."""

    def __init__(self, config: Config, base: Path, cache: FetchedCache, progress: Progress = silent) -> None:
        if config.table(FetchOptions).require_attestation:
            attestation.ensure_installed("fetch.require_attestation is set")
        self._config, self._fetch = config, config.table(FetchOptions)
        self._options = config.table(DepsOptions)
        self._base = base
        self.cache = cache
        self._progress = progress
        self._log = AttemptLog()
        self._packages = Packages(config.table(DepsOptions), base, self._log, progress)
        self._policy = self._packages.policy
        self._provider: EmbeddingProvider | None = None
        self._notes: list[str] = []
        self._attestation_notes: list[str] = []
        """Notes on attestations that could not be verified."""

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        return tuple(self._log.attempts)

    def __exit__(self, *_: object) -> None:
        if self._provider is not None:
            self._provider.close()

    # --- finding -----------------------------------------------------------------------------------------------

    def find(self, dependency: Dependency, hints: DocsHints = DocsHints(), refresh: bool = False) -> DocsReport:
        """Find the documentation of a package, and cache it. ``refresh``: search again, even if it was found before."""
        assert dependency.version is not None
        self._reset()
        package = __version__, dependency.ecosystem, dependency.name, dependency.version
        attested = attestation.is_installed(), self._fetch.require_attestation, self._fetch.trusted_root
        question = canonical([*package, asdict(hints), asdict(self._options), self.provider.digest, *attested])
        remembered = None if refresh else docs_cache.recall(self.cache, question)
        if remembered is not None and self._is_attested(remembered):
            self._log.record("cache", remembered.url, "it was found here before", True)
            return self._report(remembered)
        wanted = LockedDocs(
            dependency.ecosystem, dependency.name, dependency.version, "repository", url="", digest="", sha256=""
        )
        docs = self._search(wanted, hints)
        if docs is None:
            return report_on("failed", dependency, attempts=self.attempts, problem=self._log.failure(dependency))
        if unreachable := self._log.unreachable:
            self._notes += [f"Its {item.source} could not be asked. {sentence(item.outcome)}" for item in unreachable]
            self._notes.append(f"To ask again, run: anvil deps add {dependency.name} --refresh")
        if not self._attestation_notes:  # if there are any, the next search tries to verify it again
            docs_cache.remember(self.cache, question, docs)
        return self._report(docs)

    def _reset(self) -> None:
        self._log.clear()
        self._notes, self._attestation_notes = [], []

    def _search(self, wanted: LockedDocs, hints: DocsHints) -> LockedDocs | None:
        """The documentation of the first source that has it; None if none has, and the log says why. ``wanted``: an
        entry with the package and its version only."""
        if hints.repository is not None:
            return self._from_repository(wanted, hints, hints.repository, None)
        is_repository_wanted = hints.tag is not None or hints.folder is not None
        with tempfile.TemporaryDirectory(prefix="anvil-") as folder:
            package = self._packages.find(wanted, Path(folder))
            if package is None:
                return None
            with self._log.attempt("package", package.page):
                docs, attested = replace(wanted, source="package", url=package.page), lambda: self._rule(package.github)
                if not is_repository_wanted and (carried := self._from_package(docs, package, Path(folder), attested)):
                    return carried
        for site in () if is_repository_wanted else package.urls.documentation[:MAX_SITES]:
            published = self._from_site(wanted, site, package)
            if published is not None:
                return published
        if package.urls.repository is None:
            self._log.record("repository", package.page, NAMES_NO_REPOSITORY)
            return None
        return self._from_repository(wanted, hints, package.urls.repository, package.urls.directory)

    # --- carried by the package ------------------------------------------------------------------------------------

    def _from_package(
        self,
        docs: LockedDocs,
        package: Package,
        folder: Path,
        attested: Callable[[], AttestationRule | None],
        kind: Literal["index", "pages"] | None = None,
    ) -> LockedDocs | None:
        """The documentation in the files of a package: its index, or an index built of its pages if there is none that
        can be used; None if it carries neither.

        ``folder``: for downloads. ``attested``: gives the rule for the attestation of an index. ``kind``: for an entry
        of ``anvil.lock``, the only kind that is accepted.
        """
        files = self._packages.files(package, folder)
        carried = package_files.carried_docs(files.paths)
        if carried.index is not None and kind != "pages":
            # An index that cannot be used does not end a search: the pages are next. But a lock's entry is the index.
            with self._log.attempt("package", package.page) if kind is None else contextlib.nullcontext():
                indexed = self._index_of_package(docs, files, carried.index, attested())
                # For an entry of a lock, obtain() compares the digest.
                return self._ensure_version(indexed) if kind is None else indexed
        if kind == "index":
            raise NotFound(f"{package.page} carries no index any more")
        if carried.pages:
            pages = files.read(carried.pages)
            return self._build(_packed_pages(docs.shown, pages), docs, f"carries {counted(len(pages), 'page')}")
        if carried.llms is not None:
            text = files.read([carried.llms])[carried.llms].decode("utf-8-sig", "replace")
            pages = {name: content.encode() for name, content in package_files.llms_pages(text)}
            return self._build(_packed_pages(docs.shown, pages), docs, f"carries {carried.llms}")
        if carried.index is None:
            self._log.record("package", package.page, "carries no index, no docs folder and no llms-full.txt")
        return None

    def _index_of_package(
        self, docs: LockedDocs, files: PackageFiles, path: str, attested: AttestationRule | None
    ) -> LockedDocs:
        """The index at ``path`` in a package. Its attestation may be in a file beside it."""
        beside = f"{path}{SUFFIX}"
        data = files.read([path, beside] if beside in files.paths else [path])
        index, bundle = data[path], data.get(beside)
        examined = attestation.Examiner(attested, None, f"{path} of {docs.shown}", self.cache).examine(
            hashlib.sha256(index).hexdigest(),
            lambda: attestation.bundles(bundle, beside) if bundle is not None else [],
        )
        self._attestation_notes += examined.notes
        built_by = examined.attestation.repository if examined.attestation is not None else None
        with self.cache.workplace() as file:
            file.write_bytes(index)
            return self._keep(file, replace(docs, attested_by=built_by), f"carries {path}")

    # --- published ---------------------------------------------------------------------------------------------------

    def _from_site(self, wanted: LockedDocs, site: str, package: Package) -> LockedDocs | None:
        """An index that the documentation site publishes; None if there is none of this version.

        Addresses with the version are tried first. Any version can be at an address without one, so an index from there
        must name exactly this version: a series such as 2.1 is not enough.
        """
        docs, version = replace(wanted, source="site", url=site), wanted.version
        with self._log.attempt("site", site):
            for is_versioned, address in [*((True, url) for url in versioned(site, version)), (False, site)]:
                url = f"{address.rstrip('/')}/anvil/index.json"
                if not self._has_manifest(url):
                    continue
                published = self._fetch_index(url, replace(docs, url=url), "is published", self._rule(package.github))
                stated = self._stated_version(published)
                is_of_version = stated is not None and is_same_version(stated, version)
                if is_of_version or (is_versioned and not is_other_version(stated or "", version)):
                    return published
                self._log.record(
                    "site", url, f"is of version {stated}" if stated else "does not say of which version it is"
                )
            self._log.record("site", site, "publishes no index of this version")
        return None

    def _has_manifest(self, url: str) -> bool:
        limits = Limits(connect=5, answer=10, whole=20)
        with self._log.host(url), HttpClient(limits, policy=self._policy) as http, http.get(url) as reply:
            return reply.status == 200 and manifests.found(reply.text(), url, any_page=True) is not None

    def _from_release(self, docs: LockedDocs, slug: str) -> LockedDocs | None:
        url = f"github:{slug}#release:{docs.tag}"
        with self._log.attempt("release", url):
            docs = replace(docs, source="release", url=url, commit=None, folder=None)
            return self._ensure_version(self._fetch_index(url, docs, "has an index", self._rule(slug)))
        return None

    def _fetch_index(self, url: str, docs: LockedDocs, outcome: str, attested: AttestationRule | None) -> LockedDocs:
        with self._log.host(url):
            request = FetchRequest(
                self._fetch, self.cache, progress=self._progress, policy=self._policy, attested=attested
            )
            result = fetch_index.fetch(url, request)
            if result.from_cache:  # a lock needs the index that is published now, and the server cannot be asked
                raise Unreachable(result.from_cache)
        self._attestation_notes += [note for note in result.notes if note != UNPUBLISHED]
        built_by = result.attestation.repository if result.attestation is not None else None
        with self.cache.workplace() as file:
            shutil.copyfile(result.path, file)  # a copy, because a newer index will replace that file
            return self._keep(file, replace(docs, commit=result.manifest.commit, attested_by=built_by), outcome)

    def _rule(self, builder: str | None) -> AttestationRule:
        """The rule for the attestation of an index. ``builder``: who must have built it; None if its package does not
        name its repository. Raises :class:`NotFound` if an attestation is required and ``builder`` is None."""
        rule = attestation.rule_of(replace(self._fetch, attested_by=None), self._base)
        if rule.required and builder is None:
            raise NotFound(
                "nothing names its repository on GitHub, which must have built a published index "
                "(fetch.require_attestation)"
            )
        return replace(rule, builder=builder)

    # --- built here --------------------------------------------------------------------------------------------------

    def _from_repository(
        self, wanted: LockedDocs, hints: DocsHints, url: str, directory: str | None
    ) -> LockedDocs | None:
        """The index in a release of the repository, else one built here. None without tag or pages, as the log says."""
        docs = replace(wanted, source="repository", url=url)
        with self._log.attempt("repository", url), self._remote(url) as remote:
            tag, commit = remote.tag_of(docs.name, docs.version, hints.tag)
            named = tuple(key for key in anvil_lock.NAMED if getattr(hints, key) is not None)
            docs = replace(docs, tag=tag, commit=commit, named=named)
            slug = github_slug(url)
            released = self._from_release(docs, slug) if slug is not None and hints == DocsHints() else None
            return released or self._build_from(remote, docs, hints.folder, directory)
        return None

    @contextmanager
    def _remote(self, url: str) -> Iterator[RemoteRepository]:
        options = self._options
        with self._log.host(url):
            address, protocols, settings = remote_repository.checked(url, self._policy, options.allow_private_urls)
        with RemoteRepository(address, protocols, settings, options.max_fetch_bytes, self._progress) as remote:
            yield remote

    def _build_from(
        self, remote: RemoteRepository, docs: LockedDocs, folder: str | None, directory: str | None = None
    ) -> LockedDocs:
        assert docs.commit is not None
        source, chosen, notes = repository_docs.read(remote, docs.commit, docs.tag, folder, directory)
        self._notes += notes
        outcome = f"{chosen.path} at {docs.tag or docs.commit[:12]} ({chosen.evidence})"
        return self._build(source, replace(docs, folder=chosen.path), outcome, chosen.slugs)

    def _build(self, source: DocumentSource, docs: LockedDocs, outcome: str, slugs: Slugs = "github") -> LockedDocs:
        with self.cache.workplace() as file:
            request = BuildRequest(version=docs.version, progress=self._progress)
            report = builder.build(source, file, self.provider, ChunkingOptions(slugs=slugs), request)
            if report.nothing_embedded:
                raise BuildError(f"{docs.shown} could not be embedded. {report.nothing_embedded_because}".strip())
            self._notes += [f"{skipped.path}: {skipped.reason}." for skipped in report.skipped[:MAX_SKIPPED_NAMED]]
            if report.failed:
                self._notes.append(f"{counted(len(report.failed), 'passage')} could not be embedded.")
            return self._keep(file, replace(docs, anvil_version=__version__), outcome)

    @property
    def provider(self) -> EmbeddingProvider:
        """The project's embedding provider. So one vector of a question serves the project's documentation, too."""
        if self._provider is None:
            from anvil.embedding.provider import create_cached_provider

            self._provider = create_cached_provider(self._config.embedding.provider, self._config.embedding)
        return self._provider

    # --- from a lock -------------------------------------------------------------------------------------------------

    def obtain(self, entry: LockedDocs) -> Path:
        """The path of the index of an entry of ``anvil.lock``. If not cached, it is fetched or built as the entry says.

        Raises :class:`FetchError`, :class:`NotFound`, and :class:`ArtifactRejected` for another index.
        """
        self._reset()
        cached_path = docs_cache.find(self.cache, entry)
        if cached_path is not None and self._is_attested(entry):
            return cached_path
        wanted = replace(entry, digest="", sha256="", anvil_version=None, attested_by=None)
        if entry.source == "repository":
            with self._remote(entry.url) as remote:
                repository_docs.ensure_tagged(remote, entry)
                docs = self._build_from(remote, wanted, entry.folder)
        elif entry.source == "package":
            kind: Literal["index", "pages"] = "index" if entry.anvil_version is None else "pages"
            with tempfile.TemporaryDirectory(prefix="anvil-") as name:
                package = self._packages.find(entry, Path(name))
                attested = functools.partial(self._rule_of_lock, entry)
                carried = self._from_package(wanted, package, Path(name), attested, kind) if package else None
            if carried is None:
                raise NotFound(f"{entry.shown} cannot be fetched. {sentence(self._log.attempts[-1].outcome)}")
            docs = carried
        else:
            docs = self._fetch_index(entry.url, wanted, "is published", self._rule_of_lock(entry))
        self._ensure_same(entry, docs)
        path = docs_cache.find(self.cache, docs)
        assert path is not None
        if docs.anvil_version is not None:  # a note for the entry in the lock, which may have another SHA-256
            self.cache.note(docs_cache.name(entry), safe_files.sha256(path))
        return path

    def _rule_of_lock(self, entry: LockedDocs) -> AttestationRule | None:
        """The rule for the attestation of an entry's index; None if none is required. Raises :class:`ArtifactRejected`
        if one is required and the entry does not say who must have built the index."""
        if not self._fetch.require_attestation:
            return None
        if entry.attested_by is None:
            raise ArtifactRejected(
                f"{entry.shown} is refused: anvil.lock does not say who built it, and fetch.require_attestation is set."
                f" To take what is attested, run: anvil deps update {entry.name}"
            )
        return self._rule(entry.attested_by)

    def _is_attested(self, entry: LockedDocs) -> bool:
        return docs_cache.is_attested(self.cache, entry, self._fetch, self._base)

    def _ensure_same(self, entry: LockedDocs, docs: LockedDocs) -> None:
        if docs.digest == entry.digest and (entry.anvil_version is not None or docs.sha256 == entry.sha256):
            return
        update = f"To take what is there now, run: anvil deps update {entry.name}"
        if entry.anvil_version not in (None, docs.anvil_version):
            raise ArtifactRejected(
                f"anvil.lock has {entry.shown} as Anvil {entry.anvil_version} built it, and Anvil {__version__} builds "
                f"another index from the same commit. {update}"
            )
        raise ArtifactRejected(
            f"{entry.shown} is refused: anvil.lock has the digest {entry.digest[:12]} and SHA-256 {entry.sha256[:12]}, "
            f"but {entry.url} has {docs.digest[:12]} and {docs.sha256[:12]}. Its publisher replaced it, or the "
            f"lock was changed. {update}"
        )

    # --- shared ------------------------------------------------------------------------------------------------------

    def _keep(self, file: Path, docs: LockedDocs, outcome: str) -> LockedDocs:
        """Check an index, move it into the cache, and return its complete entry."""
        described = fetch_index.checked_manifest(file, f"The index of {docs.shown}")
        kept = replace(docs, digest=described.digest, sha256=described.sha256, commit=docs.commit or described.commit)
        docs_cache.keep(self.cache, file, kept)
        self._log.record(docs.source, docs.url, outcome, True)
        return kept

    def _stated_version(self, docs: LockedDocs) -> str | None:
        """The version that a cached index states; None if it states none."""
        with verify.open_checked(docs_cache.find(self.cache, docs) or Path()) as reader:
            return reader.meta().get("version")

    def _ensure_version(self, docs: LockedDocs) -> LockedDocs:
        """The entry. Raises :class:`NotFound` if its index states another version: publishers may forget to rebuild."""
        stated = self._stated_version(docs)
        if stated is not None and is_other_version(stated, docs.version):
            self._log.attempts.pop()  # the attempt that says it was found
            raise NotFound(f"its index is of version {stated}")
        return docs

    def _report(self, docs: LockedDocs) -> DocsReport:
        path = docs_cache.find(self.cache, docs)
        if path is None:
            raise ArtifactRejected(f"The cache lost the index of {docs.shown}. Run the command again.")
        notes = tuple(dict.fromkeys((*self._notes, *self._attestation_notes)))
        return report_on("added", docs, docs=docs, pages=docs_cache.pages(path), attempts=self.attempts, notes=notes)


_PACKED_AT = timestamp(315_532_800)
"""The time of all pages of a package: 1980, the oldest time in a ZIP archive. A package has the time when it was
packed, not the times when its pages changed."""


def _packed_pages(name: str, pages: Mapping[str, bytes]) -> GivenDocuments:
    """The pages of a package as documents. ``pages``: path -> bytes."""
    documents, skipped, decoder = [], [], PageDecoder(SourceOptions())
    for path, data in sorted(pages.items()):
        if reason := decoder.refusal(data) if is_plain_name(path) else BAD_NAME:
            skipped.append(Skipped(plain_name(path), reason))
        else:
            text = decoder.text(data)
            documents.append(Document(path, blob_id(data), text, len(data), _PACKED_AT, url=_stated_url(text)))
    return GivenDocuments(name, documents, skipped)


def _stated_url(text: str) -> str | None:
    """The address ``url`` in the front matter of a page, as pages that were made from a site have it."""
    url = front_matter.split(text)[0].get("url")
    if not isinstance(url, str) or len(url) > MAX_URL_CHARS or not url.startswith(("https://", "http://")):
        return None
    return url if url.isprintable() and " " not in url else None
