"""All exceptions that Anvil raises on purpose.

    AnvilError                 one or two sentences: what failed, where, and the next step
    ├── ConfigError            an invalid key, value, option or argument
    ├── SourceError            the documents cannot be read: no such folder, not a repository, no such commit
    ├── GitError               the data of a git repository cannot be read
    │   └── NotOwned           the repository belongs to another user, and git's rules forbid reading it
    ├── ModelError             the embedding model cannot be fetched or loaded
    ├── ProviderError          an embedding service refused a request or cannot be used
    ├── FetchError             a published index cannot be fetched
    │   └── Unreachable        the server does not respond now; an index that was fetched before can be used
    ├── NotFound               a page, section or document that is not in the index
    ├── DocumentRejected       a document that a library cannot store: damaged, empty, unreadable
    │   ├── UnsupportedFormat  its format is not supported, or needs an optional package
    │   └── DocumentTooLarge   over a limit of size, pages, time or memory
    ├── ArtifactError          an index file that cannot be used
    │   ├── ArtifactMissing    there is no file at the path
    │   ├── ArtifactRejected   the file failed a check: truncated, damaged, not an index, tampered with
    │   │   └── NotAttested    no valid attestation says that the right repository built it
    │   └── FormatTooNew       the file was written by a newer version of Anvil
    └── BuildError             an index cannot be built: folder read-only, disk full, cluster lost
        └── IndexBusy          another process is building the index

Outcomes such as stale, skipped and unchanged are values, not exceptions. No message contains a secret.
"""

from __future__ import annotations


class AnvilError(Exception):
    """The base class. ``str(error)`` is a message for people."""


class ConfigError(AnvilError):
    """An invalid configuration key, value or argument."""


class SourceError(AnvilError):
    """The documents cannot be read."""


class GitError(AnvilError):
    """The data of a git repository cannot be read."""


class NotOwned(GitError):
    """A repository belongs to another user. ``trust_command`` is the command that makes git trust it."""

    def __init__(self, message: str, trust_command: str) -> None:
        super().__init__(message)
        self.trust_command = trust_command


class ModelError(AnvilError):
    """The embedding model cannot be fetched or loaded."""


class ProviderError(AnvilError):
    """An embedding service refused a request or cannot be used."""


class FetchError(AnvilError):
    """A published index cannot be fetched."""


class Unreachable(FetchError):
    """The server does not respond now."""


class NotFound(AnvilError):
    """A page, section or document that is not in the index."""


class DocumentRejected(AnvilError):
    """A library cannot store a document."""


class UnsupportedFormat(DocumentRejected):
    """The format of a document is not supported, or needs an optional package that is not installed."""


class DocumentTooLarge(DocumentRejected):
    """A document is over a limit of size, pages, time or memory."""


class ArtifactError(AnvilError):
    """An index file that cannot be used. ``problem``: the message without ``advice``, the next step, where the two
    are apart: another step may be right where the message is shown."""

    def __init__(self, problem: str, advice: str = "") -> None:
        super().__init__(f"{problem} {advice}".rstrip())
        self.problem = problem
        self.advice = advice


class ArtifactMissing(ArtifactError):
    """There is no index file at the path."""


class ArtifactRejected(ArtifactError):
    """An index file failed a check before its first use."""


class OlderIndex(ArtifactRejected):
    """An index file of the older Anvil, the program for Node.js. A build may replace it."""


class NotAttested(ArtifactRejected):
    """No valid attestation says that the right repository built the index."""


class FormatTooNew(ArtifactError):
    """An index file was written by a newer Anvil."""


class BuildError(AnvilError):
    """An index cannot be built or written."""


class IndexBusy(BuildError):
    """Another process is still building the index after the timeout."""
