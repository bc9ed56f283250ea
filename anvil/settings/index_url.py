"""Addresses of an index: a path, an ``https`` URL, a GitHub artifact or release, or a Milvus collection.

The printable form of an address never contains credentials or a query, which can be a signature.
"""

from __future__ import annotations

import ipaddress
import re
import urllib.parse
from dataclasses import dataclass, field
from typing import Literal

from anvil.errors import ConfigError
from anvil.formats.patterns import lazy_pattern

OWNER = "[A-Za-z0-9](?:[A-Za-z0-9_-]{0,38})"
"""A pattern of an owner on GitHub."""
_BUILDER = lazy_pattern(rf"{OWNER}(?:/[A-Za-z0-9._-]{{1,100}})?")
FORMS = "a path, https://HOST/..., or github:OWNER/REPO with artifact:NAME or release:TAG"
FILES = (".db", ".sqlite", ".sqlite3")
"""Endings of an address of an index file. Other addresses are folders."""
PLACES = ("index.json", "anvil/index.json", "index.db", "anvil/index.db")
"""Paths below a folder or a site at which an index is looked for, in this order."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")  # and all of 127.0.0.0/8, see is_loopback()
_REMOTE = lazy_pattern(r"(https?://|github:|milvus(\+https|\+lite)?:)", re.IGNORECASE)
_MILVUS = lazy_pattern(r"milvus(?P<kind>\+https|\+lite)?:(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_COLLECTION = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
MILVUS_FORMS = "milvus://HOST:19530/COLLECTION, milvus+https://HOST/COLLECTION, or milvus+lite:FILE.db/COLLECTION"
_SCHEME = lazy_pattern(r"[A-Za-z][A-Za-z0-9+.-]+://")
_GITHUB = lazy_pattern(
    r"github:(?P<owner>[A-Za-z0-9](?:[A-Za-z0-9-]{0,38}))/(?P<repository>[A-Za-z0-9._-]{1,100})"
    r"(?:@(?P<ref>[^\s#~^:?*\[\\]+))?(?:[#\s]+(?P<kind>artifact|release):(?P<name>[^\x00-\x1f]+))?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class LocalPath:
    """A file, or a folder with an index."""

    path: str

    @property
    def shown(self) -> str:
        return self.path


@dataclass(frozen=True, slots=True)
class WebAddress:
    """``url`` has no credentials. ``places``: paths below it that are tried in order; an empty one is the URL."""

    url: str
    places: tuple[str, ...]
    credentials: tuple[str, str] | None = field(default=None, repr=False)

    @property
    def shown(self) -> str:
        return without_secrets(self.url)

    @property
    def host(self) -> str:
        return urllib.parse.urlsplit(self.url).netloc


@dataclass(frozen=True, slots=True)
class GitHubAddress:
    """An Actions artifact or a release of a repository. ``ref``: the branch or commit of the artifact."""

    owner: str
    repository: str
    ref: str | None
    kind: Literal["artifact", "release"]
    name: str

    @property
    def shown(self) -> str:
        at = f"@{self.ref}" if self.ref else ""
        return f"github:{self.slug}{at}#{self.kind}:{self.name}"

    @property
    def slug(self) -> str:
        return f"{self.owner}/{self.repository}"


@dataclass(frozen=True, slots=True)
class MilvusAddress:
    """A collection of the Milvus server at ``uri``, in ``database`` (empty: the default one).

    ``lite``: ``uri`` is the path of a Milvus Lite file.
    """

    uri: str
    collection: str
    database: str = ""
    lite: bool = False

    @property
    def shown(self) -> str:
        if self.lite:
            return f"milvus+lite:{self.uri}/{self.collection}"
        scheme, _, host = self.uri.partition("://")
        within = f"{self.database}/" if self.database else ""
        return f"milvus{'+https' if scheme == 'https' else ''}://{host}/{within}{self.collection}"


Address = LocalPath | WebAddress | GitHubAddress
MILVUS_TOKEN = "ANVIL_MILVUS_TOKEN"
"""The environment variable with USER:PASSWORD or a key for a Milvus server, which the client of Milvus sends there."""


def is_remote(source: str) -> bool:
    """Whether this is an address and not a path."""
    return bool(_REMOTE.match(source.strip()))


def is_unknown(source: str) -> bool:
    """Whether it is an address of an unknown kind, such as ``s3://``, not a path, also with a Windows drive letter."""
    return bool(_SCHEME.match(source.strip())) and not is_remote(source)


def refuse_unknown(source: str) -> None:
    """Raise :class:`ConfigError` for an unknown kind of address. The message has the kind only, no password."""
    if is_unknown(source):
        raise ConfigError(f"An index cannot be fetched from {source.strip().partition(':')[0]}://. Name {FORMS}.")


def file(source: str) -> str:
    """``source``, which must be a path. Raises :class:`ConfigError` for an address."""
    if is_remote(source) or is_unknown(source):
        shown = parse(source).shown
        raise ConfigError(f"{shown} is not a file on this machine. Fetch it first: anvil pull {shown} --to FILE.")
    return source


def is_milvus(source: str) -> bool:
    """Whether this is a Milvus collection. It is searched on its server and not fetched."""
    return bool(_MILVUS.match(source.strip()))


def milvus(source: str) -> MilvusAddress:
    """The Milvus collection at an address. Raises :class:`ConfigError`, never with a credential.

    The address is ``milvus://HOST:PORT[/DATABASE]/COLLECTION``, over TLS ``milvus+https://...``, in a file of Milvus
    Lite ``milvus+lite:FILE.db/COLLECTION``.
    """
    invalid = ConfigError(
        f"That is not an address of Milvus. Write {MILVUS_FORMS}. Names have letters, digits and underscores."
    )
    match = _MILVUS.fullmatch(source.strip())
    if not match:
        raise invalid
    kind = (match["kind"] or "").lower()
    where, _, collection = match["rest"].rpartition("/")
    if kind == "+lite":
        if not where.lower().endswith(".db") or not _COLLECTION.fullmatch(collection):
            raise invalid
        return MilvusAddress(where, collection, lite=True)
    parts = split(("https:" if kind else "http:") + where)
    if parts.username or parts.password:
        raise ConfigError(f"An address of Milvus has no credentials. Set {MILVUS_TOKEN} to USER:PASSWORD or a key.")
    host, database = parts.hostname, parts.path.strip("/")
    names = [collection, database] if database else [collection]
    if not host or parts.query or parts.fragment or not all(map(_COLLECTION.fullmatch, names)):
        raise invalid
    named = f"[{host}]" if ":" in host else host
    port = parts.port or (443 if kind else 19530)  # Milvus' own port
    return MilvusAddress(f"{parts.scheme}://{named}:{port}", collection, database)


def parse(source: str) -> Address:
    """The address that ``source`` names. Raises :class:`ConfigError`, never with a credential."""
    source = source.strip()
    if is_milvus(source):
        raise ConfigError(
            "An index in Milvus is not fetched as a file. Name it as the index, to search it on its server."
        )
    if source.lower().startswith("github:"):
        return _github(source)
    if is_remote(source):
        return _web(source)
    if not source:
        raise ConfigError(f"The address of the index is empty. Name {FORMS}.")
    refuse_unknown(source)
    return LocalPath(source)


def _github(source: str) -> GitHubAddress:
    match = _GITHUB.fullmatch(source)
    if not match or match["repository"] in (".", ".."):
        shown = re.sub(r"//[^/\s]*@", "//", source)[:200]  # a whole URL after "github:" may have a token
        raise ConfigError(
            f"{shown!r} is not a place on GitHub. Write github:OWNER/REPO#artifact:NAME, "
            "github:OWNER/REPO@BRANCH#artifact:NAME or github:OWNER/REPO#release:TAG."
        )
    if not match["kind"]:
        raise ConfigError(
            f"{source} does not say what to fetch. Add artifact:NAME or release:TAG, as in {source}#release:latest."
        )
    kind: Literal["artifact", "release"] = "artifact" if match["kind"].lower() == "artifact" else "release"
    if kind == "release" and match["ref"]:
        raise ConfigError(
            f"A release is named by its tag alone. Write github:{match['owner']}/{match['repository']}"
            f"#release:{match['name']}."
        )
    return GitHubAddress(
        owner=match["owner"], repository=match["repository"], ref=match["ref"], kind=kind, name=match["name"].strip()
    )


def _web(source: str) -> WebAddress:
    parts = split(source)
    host, port = parts.hostname, parts.port
    credentials = (urllib.parse.unquote(parts.username or ""), urllib.parse.unquote(parts.password or ""))
    if not host or any(character.isspace() or ord(character) < 32 for character in source):
        raise ConfigError("The index has no valid web address. Write https://HOST/PATH, without spaces.")
    if not is_allowed(source):
        raise ConfigError(
            f"{host} is asked over https only: plain http can be read and changed on its way. Write https://."
        )
    # Put together again, without credentials and fragment. An IPv6 address loses its brackets when it is split.
    named = f"[{host}]" if ":" in host else host
    url = urllib.parse.urlunsplit(
        (parts.scheme.lower(), named if port is None else f"{named}:{port}", parts.path or "/", parts.query, "")
    )
    last = parts.path.rpartition("/")[2].lower()
    # A query may sign the one file that it is for, so nothing can be put behind its path.
    if parts.query or last.endswith((*FILES, ".json")):
        places: tuple[str, ...] = ("",)
    else:
        url, places = url if url.endswith("/") else f"{url}/", PLACES
    return WebAddress(url, places, credentials if any(credentials) else None)


def split(url: str) -> urllib.parse.SplitResult:
    """The parts of a URL; all empty if it is not valid, such as one whose port is not a number."""
    try:
        parts = urllib.parse.urlsplit(url)
        _ = parts.port  # urlsplit looks at a port only when it is asked for
    except ValueError:
        return urllib.parse.urlsplit("")
    return parts


def is_allowed(url: str) -> bool:
    """Whether a URL may be requested: over https, or over http on this machine. Text that is no URL may not."""
    parts = split(url)
    # Traffic to this machine cannot be read or changed on its way.
    return parts.scheme.lower() == "https" or (parts.scheme.lower() == "http" and is_loopback(url))


def is_loopback(url: str) -> bool:
    """Whether a URL names this machine."""
    try:
        host = urllib.parse.urlsplit(url).hostname or ""
        return host in LOOPBACK or ipaddress.IPv4Address(host).is_loopback
    except ValueError:  # another name, or no URL at all
        return False


def service(url: str, key: str) -> str:
    """``url`` of a service that gets a secret, unchanged. ``key``: the setting that it is from.

    Raises :class:`ConfigError`, which never repeats a credential, if it is not a web address, or if it is plain http to
    another machine.
    """
    parts = split(url)
    if (
        not parts.hostname
        or parts.scheme not in ("http", "https")
        or any(character.isspace() or ord(character) < 32 or character == "\\" for character in url)
    ):
        raise ConfigError(f"{key} is not a web address. Write https://HOST/PATH, without spaces.")
    if not is_allowed(url):
        raise ConfigError(
            f"{key} is {without_secrets(url)}: over plain http the key and the text can be read on their way. Write "
            "https://; plain http is for this machine, such as http://localhost:11434/v1."
        )
    return url


def without_secrets(url: str) -> str:
    """A URL for messages and logs: without credentials, query and fragment."""
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:
        return "an address that cannot be read"
    host = parts.netloc.rpartition("@")[2]
    return urllib.parse.urlunsplit((parts.scheme, host, parts.path, "", ""))


def spelled_without_secrets(url: str) -> str:
    """A URL to type again, with placeholders for its credentials and its query."""
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:
        return "https://HOST/PATH"
    _, at, host = parts.netloc.rpartition("@")
    netloc = f"NAME:PASSWORD@{host}" if at else host
    return urllib.parse.urlunsplit((parts.scheme, netloc, parts.path, "QUERY" if parts.query else "", ""))


def is_builder(text: object) -> bool:
    """Whether this names who builds an index: ``OWNER`` or ``OWNER/REPO``."""
    return isinstance(text, str) and bool(_BUILDER.fullmatch(text))
