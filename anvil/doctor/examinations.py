"""The list of examinations of an installation and a project, and the function that runs them.

An examination is a function that yields findings. One that fails does not end the others. None uses the network, and
none writes more than a temporary file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from anvil.doctor import (
    client_entries,
    embedding_model,
    folders,
    index_state,
    mkdocs_project,
    pre_commit_hooks,
    python_packages,
)
from anvil.doctor.examined_project import Place
from anvil.doctor.values import Finding

Examination = Callable[[Place], Iterator[Finding]]

EXAMINATIONS: dict[str, Examination] = {
    "python": python_packages.python,
    "program": python_packages.program,
    "packages": python_packages.packages,
    "extras": python_packages.extras,
    "sqlite": python_packages.sqlite,
    "sqlite-vec": python_packages.sqlite_vec,
    "model": embedding_model.examine,
    "configuration": folders.configuration,
    "documents": folders.documents,
    "git": folders.examine,
    "index": index_state.examine,
    "index in git": index_state.in_git,
    "folders": folders.writable,
    "file events": folders.events,
    "clients": client_entries.examine,
    "pre-commit": pre_commit_hooks.examine,
    "mkdocs": mkdocs_project.examine,
    "context": folders.examine_context,
    "library": index_state.examine_library,
}
"""Subject -> examination, in the order of the report: what a check depends on is checked before it."""


def examine(place: Place) -> Iterator[Finding]:
    """All findings, as they are made. An examination that raises becomes a finding of its own."""
    for subject, examination in EXAMINATIONS.items():
        try:
            yield from examination(place)
        except Exception as error:  # a later examination may find the cause
            yield Finding(subject, "unseen", f"This could not be examined ({type(error).__name__}: {error}).")
