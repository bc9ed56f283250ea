"""GitHub as a source of indexes: requests to its API, errors by status, artifacts, releases, and attestations.

Of several artifacts with one name, the one whose commit is the nearest ancestor of the local HEAD is taken, else the
newest of the default branch. Artifacts of forks are ignored, because anyone can open a pull request that uploads one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anvil.errors import ArtifactRejected, ConfigError, FetchError, GitError, SourceError, Unreachable
from anvil.fetch import attestation
from anvil.fetch.download import Candidate
from anvil.fetch.fetched_cache import CacheState
from anvil.formats.data_formats import json_object, objects, timestamp
from anvil.formats.patterns import OBJECT_ID
from anvil.git.repository import Repository
from anvil.http.client import HttpClient, Reply, origin
from anvil.index_file import manifests
from anvil.index_file.manifests import Manifest
from anvil.settings import index_url
from anvil.settings.index_url import GitHubAddress

API = "https://api.github.com"
_NEXT = re.compile(r'<([^>]*)>\s*;[^,]*\brel="?next"?')
_SHA256 = re.compile(r"sha256:([0-9a-f]{64})")


def api_url() -> str:
    """The address of the API: ``GITHUB_API_URL``, which is set on runners, also of enterprise servers, else GitHub's.
    Raises :class:`ConfigError` if it cannot be used."""
    url = os.environ.get("GITHUB_API_URL", "").strip().rstrip("/") or API
    if not index_url.is_allowed(url) or index_url.without_secrets(url) != url:
        raise ConfigError("GITHUB_API_URL must be an https address without credentials, such as https://HOST/api/v3.")
    return url


@dataclass(frozen=True, slots=True)
class GitHubSource:
    """An artifact or release of GitHub with an index. The methods are those of
    :class:`anvil.fetch.web_source.WebSource`."""

    address: GitHubAddress

    @property
    def builder(self) -> str:
        return self.address.slug

    def key(self, head: Path | None) -> str:
        """The name of the source in the cache. If HEAD selects the artifact, it contains the local repository."""
        root = None
        with suppress(GitError, SourceError):
            repository = Repository.discover(head) if head is not None and self.address.kind == "artifact" else None
            root = repository and repository.root
        return "\n".join((api_url(), self.address.shown, str(root or "")))

    def authorization(self, is_named_by_user: bool) -> Mapping[str, str]:
        """Origin -> Authorization header for the API, with ``GITHUB_TOKEN``, ``GH_TOKEN`` or the token of ``gh``."""
        api = api_url()
        secret = (os.environ.get("GITHUB_TOKEN") or os.environ.get("GH_TOKEN") or _token_of_gh(api) or "").strip()
        return {origin(api): f"Bearer {secret}"} if secret else {}

    def candidates(self, http: HttpClient, state: CacheState | None, head: Path | None) -> Iterator[Candidate]:
        api = Api(http, self.address)
        yield find_release(api) if self.address.kind == "release" else find_artifact(api, head)

    def url_of(self, state: CacheState) -> str:
        return ""  # its attestation is found by its digest

    def bundles(self, http: HttpClient, sha256: str, url: str) -> list[str]:
        """The bundles of attestations that GitHub stores for an index. Raises :class:`FetchError`, also if one of them
        cannot be read, because it could be the valid one."""
        api = Api(http, self.address)
        list_url = f"{api.root}/attestations/sha256:{sha256}?per_page={attestation.MAX_BUNDLES}"
        response, _ = api.get(list_url, "the attestation", may_be_missing=True)
        if response is None:
            return []
        try:
            return bundles_of_api(response, lambda bundle_url: _fetch_bundle(http, list_url, bundle_url))
        except ValueError as error:
            shown = index_url.without_secrets(list_url)
            raise FetchError(
                f"{shown} answered with something unknown: {error}. Update Anvil, or try again later."
            ) from None


def _token_of_gh(api: str) -> str | None:
    """The output of ``gh auth token``; None if there is no such program, or it has no token for the host."""
    program = shutil.which("gh")
    if program is None:
        return None
    host = urllib.parse.urlsplit(api).hostname or ""
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            [program, "auth", "token", "--hostname", "github.com" if host == "api.github.com" else host],
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode == 0:
            return done.stdout.strip() or None
    return None


class Api:
    def __init__(self, http: HttpClient, address: GitHubAddress) -> None:
        self.http, self.address = http, address
        self.root = f"{api_url()}/repos/{address.slug}"
        self.authorized = http.authorizes(self.root)

    def get(self, url: str, what: str, may_be_missing: bool = False) -> tuple[Any, str | None]:
        """The JSON at ``url``, and the URL of the next page of a list. ``what``: its name in errors.
        ``may_be_missing``: whether the status 404 gives None instead of an error."""
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        with self.http.get(url, headers) as reply:
            if may_be_missing and reply.status == 404:
                return None, None
            self.check_status(reply, what)
            try:
                value = json.loads(reply.text())
            except (ValueError, RecursionError):
                raise Unreachable(f"{reply.host} answered with something that is not JSON. Try again later.") from None
            return value, _next_page(url, reply.headers.get("link", ""))

    def check_status(self, reply: Reply, what: str) -> None:
        """Raise the error for a status other than 200, with the next step."""
        slug, status = self.address.slug, reply.status
        if status == 200:
            return
        limited = reply.headers.get("x-ratelimit-remaining") == "0" or "retry-after" in reply.headers
        if status == 429 or (status == 403 and limited):
            more = "" if self.authorized else " Set GITHUB_TOKEN: with a token, many more requests are allowed."
            when = _time_to_retry(reply.headers)
            raise Unreachable(f"{reply.host} limits the number of requests. Try again {when}.{more}")
        if status == 401:
            raise FetchError(
                f"{reply.host} does not accept the token for {slug}. Set a valid GITHUB_TOKEN, or run 'gh auth login'."
                if self.authorized
                else f"{reply.host} gives {what} to signed-in users only. Set GITHUB_TOKEN, or run 'gh auth login'."
            )
        if status == 403:
            raise FetchError(
                f"The token may not read {what} of {slug}. Give it the permission 'actions: read' for an artifact, "
                "'contents: read' for a release, 'attestations: read' for an attestation."
            )
        if status == 410:
            raise FetchError(f"{what} of {slug} has expired. Run the workflow again, or raise its retention-days.")
        if status == 404:
            token = "the token's permissions" if self.authorized else "whether it needs a GITHUB_TOKEN"
            raise FetchError(f"GitHub does not show {what} of {slug}. Check the name, and {token}.")
        raise FetchError(f"{reply.host} answered with status {status} when asked for {what}. Check the address.")


def _next_page(url: str, links: str) -> str | None:
    """The URL of the next page in a ``Link`` header, if it has the origin of ``url``."""
    link = _NEXT.search(links)
    try:
        target = urllib.parse.urljoin(url, link[1]) if link else ""
        return target if origin(target) == origin(url) else None
    except ValueError:  # not a URL
        return None


def _time_to_retry(headers: Mapping[str, str]) -> str:
    """The time when a rate limit ends, from the headers, for a message."""
    after, reset = headers.get("retry-after", ""), headers.get("x-ratelimit-reset", "")
    if after.isdecimal() and len(after) < 10:
        return f"in {int(after)} s"
    return f"at {timestamp(int(reset))}" if reset.isdecimal() and len(reset) < 12 else "in a while"


def size_of(value: Any) -> int | None:
    """``value`` if it is a number of bytes; else None."""
    return value if type(value) is int and value >= 0 else None


def digest_of(entry: dict[str, Any]) -> str | None:
    """The SHA-256 of an artifact's archive or an asset, if the API has it."""
    match = _SHA256.fullmatch(str(entry.get("digest")))
    return match[1] if match else None


# --- artifacts of GitHub Actions -------------------------------------------------------------------------------

MAX_LIST_PAGES = 5
"""Pages of the list that are read, a hundred artifacts each."""
MIN_COMMIT_CHARS = 7
"""Digits of the shortest abbreviation of a commit, as git prints it. A shorter name can only be that of a branch."""


@dataclass(frozen=True, slots=True)
class _Artifact:
    id: int
    commit: str
    branch: str
    created: str
    expires: str
    expired: bool
    sha256: str | None


def find_artifact(api: Api, head: Path | None) -> Candidate:
    """The artifact to fetch. Raises :class:`FetchError`, which says why there is none.

    ``head``: a folder in a repository with the HEAD. If it is None or in no repository, the newest artifact of the
    branch is taken.
    """
    repository: Repository | None = None
    notes: list[str] = []
    try:
        repository = Repository.discover(head) if head is not None else None
    except (GitError, SourceError) as error:
        notes.append(str(error))
    seen: list[_Artifact] = []
    newest: _Artifact | None = None
    branch = api.address.ref
    for page in _pages(api):
        seen += page
        usable = [artifact for artifact in seen if not artifact.expired]
        try:
            if repository is not None and (nearest := _nearest(repository, usable)):
                expired = _nearest(repository, [artifact for artifact in seen if artifact.expired])
                if expired and expired[1] < nearest[1]:
                    notes.append(f"A nearer artifact, of commit {expired[0].commit[:7]}, has expired.")
                return _candidate(api, nearest[0], nearest[1], notes)
        except GitError as error:
            repository, notes = None, [str(error)]
        if newest is None and usable:
            if not branch:
                response, _ = api.get(api.root, "the default branch")
                branch = str(response.get("default_branch")) if isinstance(response, dict) else ""
            newest = next((artifact for artifact in usable if api.address.ref or artifact.branch == branch), None)
        if newest is not None and repository is None:  # with a repository, the next page may have a nearer one
            break
    if newest is None:
        raise FetchError(_why_none(api, seen, branch))
    if repository is not None:
        notes.append(f"No artifact {api.address.name!r} is of an ancestor of HEAD; this is the newest of {branch}.")
    return _candidate(api, newest, None, notes)


def _why_none(api: Api, seen: list[_Artifact], branch: str | None) -> str:
    """The message if no artifact can be taken, with the next step."""
    name, slug = api.address.name, api.address.slug
    usable = [artifact for artifact in seen if not artifact.expired]
    if usable:
        others = ", ".join(sorted({artifact.branch for artifact in usable})[:5])
        return (
            f"{slug} has no artifact {name!r} of {branch} or of an ancestor of HEAD, but of {others}. "
            f"Run the workflow on {branch}, or name a branch: github:{slug}@BRANCH#artifact:{name}."
        )
    if seen:
        return (
            f"The artifact {name!r} of {slug}, commit {seen[0].commit[:7]}, expired on {seen[0].expires[:10]}. "
            "Run the workflow again, or raise its retention-days."
        )
    at = f" of {api.address.ref}" if api.address.ref else ""
    response, _ = api.get(f"{api.root}/actions/artifacts?per_page=100", "the artifacts")
    names = sorted({str(artifact.get("name")) for artifact in objects(response, "artifacts")} - {name})[:5]
    what = f"There are: {', '.join(names)}." if names else "Run the workflow that uploads it, then fetch again."
    return f"No run{at} of {slug} left an artifact {name!r}. {what}"


def _pages(api: Api) -> Iterator[list[_Artifact]]:
    """The pages of the list of artifacts with the name, and the branch or commit, of the address; newest first."""
    name = api.address.name
    url: str | None = f"{api.root}/actions/artifacts?{urllib.parse.urlencode({'name': name, 'per_page': 100})}"
    for _ in range(MAX_LIST_PAGES):
        if url is None:
            return
        response, url = api.get(url, f"the artifact {name!r}")
        yield _artifacts_in(response, api.address)


def _artifacts_in(response: Any, address: GitHubAddress) -> list[_Artifact]:
    """The artifacts in a reply of the API, newest first, without those of forks and invalid entries."""
    name, ref, artifacts = address.name, address.ref, []
    for entry in objects(response, "artifacts"):
        run = entry.get("workflow_run")
        if not isinstance(run, dict) or entry.get("name") != name or type(entry.get("id")) is not int:
            continue
        if type(run.get("repository_id")) is not int or run.get("head_repository_id") != run["repository_id"]:
            continue  # it is from a pull request of a fork
        commit, branch = str(run.get("head_sha")), str(run.get("head_branch"))
        is_at = ref is None or ref == branch or (len(ref) >= MIN_COMMIT_CHARS and commit.startswith(ref.lower()))
        if is_at and OBJECT_ID.fullmatch(commit):
            artifacts.append(
                _Artifact(
                    id=entry["id"],
                    commit=commit,
                    branch=branch,
                    created=str(entry.get("created_at")),
                    expires=str(entry.get("expires_at")),
                    expired=entry.get("expired") is True,
                    sha256=digest_of(entry),
                )
            )
    return sorted(artifacts, key=lambda artifact: (artifact.created, artifact.id), reverse=True)


def _nearest(repository: Repository, artifacts: list[_Artifact]) -> tuple[_Artifact, int] | None:
    """The artifact of HEAD's nearest ancestor, and the distance to it in commits; None if there is none."""
    by_commit: dict[str, _Artifact] = {}
    for artifact in artifacts:  # newest first, so the newest one of each commit is taken
        by_commit.setdefault(artifact.commit, artifact)
    nearest = repository.nearest(by_commit)
    return (by_commit[nearest[0]], nearest[1]) if nearest else None


def _candidate(api: Api, artifact: _Artifact, distance: int | None, notes: list[str]) -> Candidate:
    what = f"the artifact {api.address.name!r} of commit {artifact.commit[:7]}"
    return Candidate(
        url=f"{api.root}/actions/artifacts/{artifact.id}/zip",
        place="",
        name=artifact.sha256 or f"{api.root}/actions/artifacts/{artifact.id}",
        check_status=lambda reply: api.check_status(reply, what),
        sha256=artifact.sha256,
        archive=True,
        revision=f"artifact {artifact.id}",
        commit=artifact.commit,
        distance=distance,
        notes=tuple(notes),
    )


# --- releases ----------------------------------------------------------------------------------------------------


def find_release(api: Api) -> Candidate:
    """The index in the release. Raises :class:`FetchError` if there is none."""
    tag = api.address.name
    release_path = "latest" if tag == "latest" else f"tags/{urllib.parse.quote(tag, safe='')}"
    response, _ = api.get(f"{api.root}/releases/{release_path}", f"the release {tag!r}")
    assets = {str(asset.get("name")): asset for asset in objects(response, "assets") if type(asset.get("id")) is int}
    published = _find_manifest(api, assets)
    names = [published.file] if published else [name for name in assets if name.lower().endswith(index_url.FILES)]
    names = ["index.db"] if "index.db" in names and not published else names
    if len(names) != 1 or names[0] not in assets:
        asset_names = ", ".join(sorted(assets)[:8]) or "nothing"
        raise FetchError(
            f"The release {tag!r} of {api.address.slug} holds {asset_names}. Attach index.db and index.json."
        )
    asset = assets[names[0]]
    digest = digest_of(asset)
    if published and digest and digest != published.sha256:
        raise ArtifactRejected(
            f"{api.address.shown} is refused: its manifest is of another file than {names[0]}. Attach both together."
        )
    what = f"{names[0]} in the release {tag!r}"
    return Candidate(
        url=f"{api.root}/releases/assets/{asset['id']}",
        place="",
        name=digest or f"{api.root}/releases/assets/{asset['id']}",
        check_status=lambda reply: api.check_status(reply, what),
        manifest=published,
        sha256=digest or (published.sha256 if published else None),
        size=size_of(asset.get("size")),
        accept="application/octet-stream",
        revision=f"release {response.get('tag_name', tag)}",
        commit=published.commit if published else None,
    )


def _find_manifest(api: Api, assets: Mapping[str, dict[str, Any]]) -> Manifest | None:
    """The manifest among the files of a release; None if there is none."""
    # index.json comes first, which is Anvil's name for it: a release may have other files that look like a manifest.
    for name in sorted(assets, key=lambda name: (name != "index.json", name)):
        if name.endswith(".json") and (size_of(assets[name].get("size")) or 0) < manifests.MAX_CHARACTERS:
            url = f"{api.root}/releases/assets/{assets[name]['id']}"
            with api.http.get(url, {"Accept": "application/octet-stream"}) as reply:
                api.check_status(reply, f"the asset {name}")
                published = manifests.found(reply.text(), f"the asset {name}", any_page=True)
            if published is not None:
                return published
    return None


# --- attestations -------------------------------------------------------------------------------------------------


def _fetch_bundle(http: HttpClient, api: str, url: str) -> str:
    """The bundle in GitHub's storage at ``url``, which the reply of ``api`` names. It is requested like the target of a
    redirect, and without the token, because the address is signed. Raises :class:`FetchError`."""
    if not attestation.is_installed():  # it could not be unpacked, and nobody would read it
        return ""
    with http.anonymous() as anonymous, anonymous.get(anonymous.target(api, url)) as reply:
        shown = index_url.without_secrets(reply.url)
        if reply.status != 200:
            raise FetchError(f"{shown} answered with status {reply.status}. Try again later.")
        data = reply.body(attestation.MAX_BYTES)
    try:
        return stored_bundle(data)
    except ValueError as error:
        raise FetchError(f"The attestation at {shown} cannot be read, because {error}. Update Anvil.") from None


def bundles_of_api(response: Any, read: Callable[[str], str]) -> list[str]:
    """The bundles in the API's reply about a digest. ``read``: gets the bundle at a URL, which the reply may have
    instead of a bundle.

    Raises :class:`ValueError` if the reply has another form: then it is unknown whether there is an attestation.
    """
    rows = response.get("attestations") if isinstance(response, dict) else None
    if not isinstance(rows, list):
        raise ValueError("it has no list of attestations")
    texts = []
    for number, row in enumerate(rows[: attestation.MAX_BUNDLES], 1):
        bundle, url = (row.get("bundle"), row.get("bundle_url")) if isinstance(row, dict) else (None, None)
        if isinstance(bundle, dict):
            texts.append(json.dumps(bundle))
        elif isinstance(url, str) and url:
            texts.append(read(url))
        else:
            raise ValueError(f"attestation {number} has neither a bundle nor its address")
    return texts


def stored_bundle(data: bytes) -> str:
    """The bundle in a file of GitHub's storage: JSON, plain or packed with Snappy. Raises :class:`ValueError`."""
    text = data.decode("utf-8", "replace")
    if json_object(text) is not None:
        return text
    import cramjam

    unpacked = bytearray(attestation.MAX_BYTES)  # cramjam refuses a longer one before it unpacks it
    try:
        size = cramjam.snappy.decompress_raw_into(data, unpacked)
    except cramjam.DecompressionError as error:
        raise ValueError(str(error)) from None
    text = unpacked[:size].decode("utf-8", "replace")
    if json_object(text) is None:
        raise ValueError("it is not JSON")
    return text
