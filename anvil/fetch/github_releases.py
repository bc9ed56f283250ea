"""An index among the assets of a GitHub release."""

from __future__ import annotations

import urllib.parse
from typing import Any

from anvil.errors import ArtifactRejected, FetchError
from anvil.fetch.candidate import Candidate
from anvil.fetch.github_api import Api, digest_of, entries, size_of
from anvil.index_file import manifest
from anvil.settings import index_url
from anvil.values import Manifest


def find(api: Api) -> Candidate:
    """The index of the release. Raises :class:`FetchError` when there is none."""
    tag = api.address.name
    place = "latest" if tag == "latest" else f"tags/{urllib.parse.quote(tag, safe='')}"
    response, _ = api.get(f"{api.root}/releases/{place}", f"the release {tag!r}")
    assets = {str(asset.get("name")): asset for asset in entries(response, "assets") if type(asset.get("id")) is int}
    published = None
    for name in sorted(assets, key=lambda name: (name != "index.json", name)):
        if (
            name.endswith(".json")
            and published is None
            and (size_of(assets[name].get("size")) or 0) < manifest.MAX_CHARACTERS
        ):
            published = _manifest_of(api, assets[name])
    names = [published.file] if published else [name for name in assets if name.lower().endswith(index_url.FILES)]
    names = ["index.db"] if "index.db" in names and not published else names
    if len(names) != 1 or names[0] not in assets:
        there = ", ".join(sorted(assets)[:8]) or "nothing"
        raise FetchError(f"The release {tag!r} of {api.address.slug} holds {there}. Attach index.db and index.json.")
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


def _manifest_of(api: Api, asset: dict[str, Any]) -> Manifest | None:
    headers = {"Accept": "application/octet-stream"}
    with api.http.get(f"{api.root}/releases/assets/{asset['id']}", headers) as reply:
        api.check_status(reply, f"the asset {asset.get('name')}")
        return manifest.found(reply.text(), f"the asset {asset.get('name')}", any_page=True)
