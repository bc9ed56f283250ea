"""Every error Anvil raises on purpose, in one tree.

    AnvilError                 "could not": one or two sentences, what and where and what next
    ├── ConfigError            a key, value, option or argument that makes no sense
    ├── SourceError            the documents cannot be reached: no such folder, not a repository, no such commit
    ├── GitError               a repository is there, but git's data cannot be read
    │   └── NotOwned           it belongs to another user, and git's rules forbid reading it
    ├── ModelError             the embedding model cannot be had or loaded
    ├── ProviderError          an embedding service refused or cannot be used
    ├── FetchError             an index cannot be had from where it is published
    │   └── Unreachable        the server does not answer now: what was fetched before can do instead
    ├── NotFound               a page, section or document that is not in the index
    ├── DocumentRejected       a document that cannot be taken into a library: damaged, empty, out of reach
    │   ├── UnsupportedFormat  of a kind that is not read, or not without an optional part
    │   └── DocumentTooLarge   over a limit of size, pages, time or memory
    ├── ArtifactError          an index file that cannot be used
    │   ├── ArtifactMissing    there is none at that path
    │   ├── ArtifactRejected   it failed a check: truncated, damaged, foreign, tampered with
    │   └── FormatTooNew       it was written by a newer Anvil
    └── BuildError             an index cannot be built: folder read-only, disk full, cluster lost
        └── IndexBusy          another process is building it

Outcomes (stale, skipped, unchanged) are values, never exceptions. A message never holds a secret.
"""

from __future__ import annotations


class AnvilError(Exception):
    """Base of all errors meant for people; ``str(error)`` is the whole message."""


class ConfigError(AnvilError):
    """A configuration key, value or argument that makes no sense."""


class SourceError(AnvilError):
    """The documents cannot be reached."""


class GitError(AnvilError):
    """A repository's data cannot be read."""


class NotOwned(GitError):
    """A repository belongs to another user. ``trust_command`` is the command that makes git trust it."""

    def __init__(self, message: str, trust_command: str) -> None:
        super().__init__(message)
        self.trust_command = trust_command


class ModelError(AnvilError):
    """The embedding model cannot be had or loaded."""


class ProviderError(AnvilError):
    """An embedding service refused or cannot be used."""


class FetchError(AnvilError):
    """An index cannot be had from where it is published."""


class Unreachable(FetchError):
    """The server cannot be reached, or does not answer, for now."""


class NotFound(AnvilError):
    """A page, section or document that is not in the index."""


class DocumentRejected(AnvilError):
    """A document cannot be taken into a library."""


class UnsupportedFormat(DocumentRejected):
    """A document is of a kind that is not read, or not without an optional part that is not installed."""


class DocumentTooLarge(DocumentRejected):
    """A document is over a limit of size, pages, time or memory."""


class ArtifactError(AnvilError):
    """An index file that cannot be used."""


class ArtifactMissing(ArtifactError):
    """There is no index file at the path."""


class ArtifactRejected(ArtifactError):
    """An index file failed a check before its first use."""


class FormatTooNew(ArtifactError):
    """An index file was written by a newer Anvil."""


class BuildError(AnvilError):
    """An index cannot be built or written."""


class IndexBusy(BuildError):
    """Another process is building the index, and was waited for long enough."""
