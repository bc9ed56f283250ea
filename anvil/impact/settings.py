"""The table ``[impact]`` of the configuration."""

from __future__ import annotations

from dataclasses import dataclass

from anvil.settings.schema import within


@dataclass(frozen=True, slots=True)
class ImpactOptions:
    """What ``anvil impact`` reports."""

    min_confidence: float = 0.2
    """Findings with a lower confidence are left out. From 0, which keeps all findings, to 1."""
    ignore: tuple[str, ...] = ()
    """Globs of pages that are never reported. Changelogs and other records of changes are left out without it."""
    ignore_code: tuple[str, ...] = ()
    """Globs of changed files that are not examined, such as generated files. They start at the repository's root."""

    def __post_init__(self) -> None:
        within("impact.min_confidence", self.min_confidence, 0, 1)
