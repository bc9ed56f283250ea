"""Who built an index, and who must have built it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Attestation:
    """Who built an index, as a verified attestation says.

    ``repository``: ``OWNER/REPO`` on GitHub, whose workflow ran. ``workflow``: the file of the workflow that signed and
    its ref, ``.github/workflows/docs.yml@refs/heads/main``; of another repository, with that in front. ``commit``: the
    commit of ``repository`` that the workflow ran for. ``run``: the address of the run, if it is known.
    """

    repository: str
    workflow: str
    commit: str
    run: str | None = None

    @property
    def shown(self) -> str:
        return f"{self.repository}, {self.workflow}, commit {self.commit[:12]}"


@dataclass(frozen=True, slots=True)
class AttestationRule:
    """What is done about attestations. ``required``: whether an index without a valid one is refused. ``builder``: who
    must have built it, ``OWNER`` or ``OWNER/REPO``; None for what the address of the index says. ``trusted_root``: the
    file of another Sigstore's trusted root; None for the public one."""

    required: bool = False
    builder: str | None = None
    trusted_root: str | None = None
