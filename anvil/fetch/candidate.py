"""A candidate: an index that a server offers, and the HTTP validators of its version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from anvil.errors import FetchError
from anvil.http.client import Reply
from anvil.values import Manifest


@dataclass(frozen=True, slots=True)
class Validators:
    """ETag and Last-Modified of a file, for conditional requests."""

    etag: str | None = None
    modified: str | None = None

    @classmethod
    def of(cls, reply: Reply) -> Validators:
        return cls(reply.headers.get("etag"), reply.headers.get("last-modified"))

    def conditions(self) -> dict[str, str]:
        """Request headers that ask for the file only if it changed."""
        conditions = {"If-None-Match": self.etag, "If-Modified-Since": None if self.etag else self.modified}
        return {name: value for name, value in conditions.items() if value}

    @property
    def strong(self) -> str | None:
        """The ETag if it is a strong one, which identifies the bytes."""
        return self.etag if self.etag and not self.etag.startswith("W/") else None


NO_VALIDATORS = Validators()


@dataclass(frozen=True, slots=True)
class Candidate:
    """An index, or an archive with one, that can be downloaded from ``url``.

    ``place``: its path below the source. ``name`` identifies this version and contains no secret. ``check_status``
    raises for a status other than success. ``manifest`` as published. ``sha256`` and ``size`` in bytes of the download,
    from the manifest or the server's API. ``validators``: of the manifest, or, without one, of the file that was
    downloaded before. ``revision``: the source's name for this version (an artifact, a release).
    """

    url: str
    place: str
    name: str
    check_status: Callable[[Reply], None]
    manifest: Manifest | None = None
    sha256: str | None = None
    size: int | None = None
    validators: Validators = NO_VALIDATORS
    accept: str | None = None
    archive: bool = False
    revision: str | None = None
    commit: str | None = None
    distance: int | None = None
    notes: tuple[str, ...] = ()

    def request_headers(self) -> dict[str, str]:
        """Headers of the download. Without a manifest they ask for the file only if it changed."""
        accept = {"Accept": self.accept} if self.accept else {}
        return accept if self.manifest is not None else {**accept, **self.validators.conditions()}


class Missing(FetchError):
    """There is no file at this place. The next place can be tried."""
