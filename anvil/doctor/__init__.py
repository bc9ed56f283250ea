"""What can be wrong with an installation and a project, looked at one thing after the other.

An examination is a function that yields findings; each stands alone, so that one broken part hides no other. None
writes anything but a file that is gone at once, none goes over the network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from anvil.doctor import clients, folders, index, installation, model, repository, setups
from anvil.doctor.place import Place
from anvil.findings import Finding

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
    "pre-commit": setups.pre_commit,
    "mkdocs": setups.mkdocs,
}
"""Subject -> examination, in the order in which they are told: each rests on those before it."""


def examine(place: Place) -> Iterator[Finding]:
    """All findings, as they come. Never raises for what is broken: that is a finding, too."""
    for subject, look in EXAMINATIONS.items():
        try:
            yield from look(place)
        except Exception as error:  # whatever it is: the next examination may still find out why
            yield Finding(subject, "unseen", f"This could not be looked at ({type(error).__name__}: {error}).")
