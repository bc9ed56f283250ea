"""The log of a search for documentation: places that were tried, for ``--explain``, slow hosts, and the message if
nothing was found."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

from anvil.dependencies.ecosystems import ECOSYSTEMS, Dependency
from anvil.dependencies.values import Attempt
from anvil.errors import AnvilError, Unreachable
from anvil.fetch.fetched_cache import CacheUnwritable
from anvil.http.allowed_servers import host_of
from anvil.settings import index_url

NAMES_NO_REPOSITORY = "its metadata names no repository"
SLOW_FAILURE_S = 4.0
"""A host that takes longer than this to fail is not asked again in the same run, so that forty packages do not wait for
it forty times."""


class AttemptLog:
    """The attempts for one package; :meth:`clear` begins with the next one."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self.unreachable: list[Attempt] = []
        """The attempts that failed because a server could not be reached."""
        self._slow_hosts: set[str] = set()

    def clear(self) -> None:
        """Forget the attempts, but not the slow hosts."""
        self.attempts, self.unreachable = [], []

    def record(self, source: str, place: str, outcome: str, found: bool = False) -> None:
        """Record the outcome at a place. ``found``: whether it has the documentation."""
        sentence = outcome if found else f"{outcome.rstrip('.')}."
        self.attempts.append(Attempt(source, index_url.without_secrets(place), sentence, found))

    @contextmanager
    def attempt(self, source: str, place: str) -> Iterator[None]:
        """A context for a search at a place. Its error is recorded and not raised, so that the next place is tried.
        :class:`CacheUnwritable` is raised: every attempt would fail with it."""
        try:
            yield
        except CacheUnwritable:
            raise
        except AnvilError as error:
            self.record(source, place, str(error))
            if isinstance(error, Unreachable):
                self.unreachable.append(self.attempts[-1])

    @contextmanager
    def host(self, url: str) -> Iterator[None]:
        """A context for requests to the host of an address. Raises :class:`Unreachable` for a host that failed slowly
        before, see :data:`SLOW_FAILURE_S`."""
        host = host_of(url) or url.partition(":")[0]
        if host in self._slow_hosts:
            raise Unreachable(f"{host} did not answer a moment ago, and is not asked again in this run.")
        began = time.monotonic()
        try:
            yield
        except Unreachable:
            if time.monotonic() - began > SLOW_FAILURE_S:
                self._slow_hosts.add(host)
            raise

    def failure(self, dependency: Dependency) -> str:
        """The message if no place has documentation: why the last one has none, and which could not be reached."""
        last = next((attempt for attempt in reversed(self.attempts) if not attempt.found), None)
        if last is not None and last in self.unreachable:
            return f"The documentation of {dependency.shown} could not be looked up. {sentence(last.outcome)}"
        why = f" {sentence(last.outcome)}" if last else ""
        why += "".join(f" Its {attempt.source} could not be asked: {attempt.outcome}" for attempt in self.unreachable)
        argument = dependency.name
        if dependency.origin == "the command line":  # no lockfile has the version
            argument += f"{ECOSYSTEMS[dependency.ecosystem].pin}{dependency.version}"
        advice = f" Name its repository: anvil deps add {argument} --repository URL"
        is_of_repository = (
            last is not None and last.source == "repository" and not last.outcome.startswith(NAMES_NO_REPOSITORY)
        )
        return f"No documentation of {dependency.shown} was found.{why}{'' if is_of_repository else advice}"


def sentence(outcome: str) -> str:
    """The outcome with a capital letter at its beginning, unless it begins with the name of a host."""
    return outcome[0].upper() + outcome[1:] if re.match(r"[a-z]+ (?!cannot be reached)", outcome) else outcome
