"""The table ``[fetch]`` of the configuration."""

from __future__ import annotations

from dataclasses import dataclass, field

from anvil.errors import ConfigError
from anvil.settings.schema import MAX_INTERVAL_S, builder, within


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """How a published index is fetched."""

    refresh: int = 600
    """Seconds between checks for a newer published index while serving; 0: never."""
    max_bytes: int = 2_000_000_000
    """A larger index is not fetched."""
    require_attestation: bool = False
    """Whether a published index is refused unless a valid attestation says that the right repository built it. For
    ``anvil deps`` too."""
    attested_by: str | None = None
    """Who must have built the index that ``index`` at the top names or ``anvil pull`` fetches, by a valid attestation:
    ``OWNER`` or ``OWNER/REPO`` on GitHub. Not set means what the address says: the repository of
    ``github:OWNER/REPO``, the owner of ``https://OWNER.github.io/``."""
    trusted_root: str | None = field(default=None, metadata={"instead": "set ANVIL_FETCH_TRUSTED_ROOT"})
    """A ``trusted_root.json`` of another Sigstore than the public one. An error in a file not named with
    ``--config``."""

    def __post_init__(self) -> None:
        builder("fetch.attested_by", self.attested_by)
        if self.trusted_root is not None and not self.trusted_root.strip():
            raise ConfigError("fetch.trusted_root is empty. Name a file, or leave the key out.")
        within("fetch.refresh", self.refresh, 0, MAX_INTERVAL_S)
        within("fetch.max_bytes", self.max_bytes, 1)
