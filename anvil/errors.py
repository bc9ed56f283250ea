"""All exceptions that Anvil raises on purpose.

Outcomes such as stale, skipped and unchanged are values, not exceptions. No message contains a secret.
"""

from __future__ import annotations


class AnvilError(Exception):
    """The base class. ``str(error)`` is one or two sentences for people: what failed, where, and the next step."""


class ConfigError(AnvilError):
    """An invalid configuration key, value or argument."""


class SourceError(AnvilError):
    """The documents cannot be read: no such folder, not a repository, no such commit."""


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
    """The server does not respond now. An index that was fetched before can be used."""


class NotFound(AnvilError):
    """A page, section or document is not in the index."""


class DocumentRejected(AnvilError):
    """A library cannot store a document: it is damaged, empty or unreadable."""


class UnsupportedFormat(DocumentRejected):
    """The format of a document is not supported, or needs an optional package that is not installed."""


class DocumentTooLarge(DocumentRejected):
    """A document is over a limit of size, pages, time or memory."""


class ArtifactError(AnvilError):
    """An index file that cannot be used.

    ``problem``: the message without ``advice``, the next step. Where the message is shown, another step may be right.
    """

    def __init__(self, problem: str, advice: str = "") -> None:
        super().__init__(f"{problem} {advice}".rstrip())
        self.problem = problem
        self.advice = advice


class ArtifactMissing(ArtifactError):
    """There is no index file at the path."""


class ArtifactRejected(ArtifactError):
    """An index file failed a check before its first use: truncated, damaged, not an index, tampered with."""


class OlderIndex(ArtifactRejected):
    """An index file of the older Anvil, a program for Node.js. A build may replace it."""


class NotAttested(ArtifactRejected):
    """No valid attestation says that the right repository built the index."""


class FormatTooNew(ArtifactError):
    """An index file was written by a newer Anvil."""


class BuildError(AnvilError):
    """An index cannot be built or written: folder read-only, disk full, cluster lost."""


class FolderVanished(BuildError):
    """The folder of an index was emptied, moved or replaced while the index was written."""


class IndexBusy(BuildError):
    """Another process is still building the index after the timeout."""
