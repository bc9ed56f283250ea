"""What a server is found to have: one downloadable thing, and what is known of it beforehand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from anvil.errors import FetchError
from anvil.fetching.downloading import NEVER_SEEN, Validators
from anvil.fetching.http import Reply
from anvil.models import Manifest


@dataclass(frozen=True, slots=True)
class Offer:
    """An index, or an archive with one, at ``url``.

    ``place`` is where below the source it was found, ``name`` tells this version from others where the source does.
    ``manifest`` as published, ``sha256`` and ``size`` of the bytes at ``url`` as the manifest or the server's own
    records say, ``validators`` of what tells whether there is a newer one. ``refuse`` raises for a status that is
    no answer.
    """

    url: str
    place: str
    name: str
    refuse: Callable[[Reply], None]
    manifest: Manifest | None = None
    sha256: str | None = None
    size: int | None = None
    validators: Validators = NEVER_SEEN
    accept: str | None = None
    archive: bool = False
    revision: str | None = None
    commit: str | None = None
    distance: int | None = None
    notes: tuple[str, ...] = ()


class Missing(FetchError):
    """There is nothing at this place; another may be tried."""
