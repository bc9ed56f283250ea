"""The list of examinations of an installation and a project, and the function that runs them.

An examination is a function that yields findings. One that fails does not end the others. None uses the network, and
none writes more than a temporary file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from anvil.models.findings import Finding
from anvil.services.doctor import (
    clients,
    context,
    folders,
    index,
    installation,
    library,
    mkdocs,
    model,
    pre_commit,
    repository,
)
from anvil.services.doctor.place import Place

Examination = Callable[[Place], Iterator[Finding]]

EXAMINATIONS: dict[str, Examination] = {
    "python": installation.python,
    "program": installation.program,
    "packages": installation.packages,
    "extras": installation.extras,
    "sqlite": installation.sqlite,
    "sqlite-vec": installation.sqlite_vec,
    "model": model.examine,
    "configuration": folders.configuration,
    "documents": folders.documents,
    "git": repository.examine,
    "index": index.examine,
    "index in git": index.in_git,
    "folders": folders.writable,
    "file events": folders.events,
    "clients": clients.examine,
    "pre-commit": pre_commit.examine,
    "mkdocs": mkdocs.examine,
    "context": context.examine,
    "library": library.examine,
}
"""Subject -> examination, in the order of the report: what a check depends on is checked before it."""


def examine(place: Place) -> Iterator[Finding]:
    """All findings, as they are made. An examination that raises becomes a finding of its own."""
    for subject, examination in EXAMINATIONS.items():
        try:
            yield from examination(place)
        except Exception as error:  # a later examination may find the cause
            yield Finding(subject, "unseen", f"This could not be examined ({type(error).__name__}: {error}).")
