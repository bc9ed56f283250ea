"""Where an index may come from, written as one string: a path, an ``https`` address, or a place on GitHub.

Text in, values out. What is shown of an address never holds its credentials or its query, which may be a signature.
"""

from __future__ import annotations

import ipaddress
import re
import urllib.parse
from dataclasses import dataclass, field
from typing import Literal

from anvil.errors import ConfigError

FORMS = "a path, https://HOST/..., or github:OWNER/REPO with artifact:NAME or release:TAG"
FILES = (".db", ".sqlite", ".sqlite3")
"""Endings of an address that names an index itself rather than a folder with one."""
PLACES = ("index.json", "anvil/index.json", "index.db", "anvil/index.db")
"""Where an index is looked for below a folder or a site, in this order."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")
_REMOTE = re.compile(r"(https?://|github:|milvus(\+https|\+lite)?:)", re.IGNORECASE)
_MILVUS = re.compile(r"milvus(?P<kind>\+https|\+lite)?:(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_COLLECTION = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
MILVUS_FORMS = "milvus://HOST:19530/COLLECTION, milvus+https://HOST/COLLECTION, or milvus+lite:FILE.db/COLLECTION"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_GITHUB = re.compile(
    r"github:(?P<owner>[A-Za-z0-9](?:[A-Za-z0-9-]{0,38}))/(?P<repository>[A-Za-z0-9._-]{1,100})"
    r"(?:@(?P<ref>[^\s#~^:?*\[\\]+))?(?:[#\s]+(?P<kind>artifact|release):(?P<name>[^\x00-\x1f]+))?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class LocalPath:
    """A file, or a folder that holds an index."""

    path: str

    @property
    def shown(self) -> str:
        return self.path


@dataclass(frozen=True, slots=True)
class WebAddress:
    """``url`` is without credentials; ``places`` are what is tried below it, in order, an empty one for itself."""

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
    """An Actions artifact or a release of a repository; ``ref`` narrows artifacts to a branch or a commit."""

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
    """A collection of a Milvus server at ``uri``, in ``database`` (empty: the default one); or, with ``lite``, of the
    Milvus Lite file that ``uri`` is the path of."""

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


def is_remote(source: str) -> bool:
    """Whether this names something that lies elsewhere, rather than a path."""
    return bool(_REMOTE.match(source.strip()))


def is_unknown(source: str) -> bool:
    """Whether this is an address of a kind that is not known, such as ``s3://`` or a slip in ``https://``. Paths never
    are, nor those that begin with the letter of a Windows drive."""
    return bool(_SCHEME.match(source.strip())) and not is_remote(source)


def refuse_unknown(source: str) -> None:
    """Raise :class:`ConfigError` for what :func:`is_unknown`; it names the kind alone, since a password may follow."""
    if is_unknown(source):
        raise ConfigError(f"An index cannot be fetched from {source.strip().partition(':')[0]}://. Name {FORMS}.")


def file(source: str) -> str:
    """``source``, which must be the path of a file here. Raises :class:`ConfigError` for what lies elsewhere."""
    if is_remote(source) or is_unknown(source):
        shown = parse(source).shown
        raise ConfigError(f"{shown} is not a file on this machine. Fetch it first: anvil pull {shown} --to FILE.")
    return source


def is_milvus(source: str) -> bool:
    """Whether this names a collection in Milvus, which is asked where it is and not fetched."""
    return bool(_MILVUS.match(source.strip()))


def milvus(source: str) -> MilvusAddress:
    """The collection that ``source`` spells: ``milvus://HOST:PORT[/DATABASE]/COLLECTION``, over TLS
    ``milvus+https://...``, in a file of Milvus Lite ``milvus+lite:FILE.db/COLLECTION`` or
    ``milvus:///FILE.db/COLLECTION``. Raises :class:`ConfigError`, which never repeats a credential.
    """
    found = _MILVUS.fullmatch(source.strip())
    if not found:
        raise ConfigError(f"That is not an address of Milvus. Write {MILVUS_FORMS}.")
    kind, rest = (found["kind"] or "").lower(), found["rest"]
    where, _, collection = rest.rpartition("/")
    if not _COLLECTION.fullmatch(collection):
        raise ConfigError(
            f"An address of Milvus ends in the collection's name, of letters, digits and underscores: {MILVUS_FORMS}."
        )
    if kind == "+lite" or (not kind and where.startswith("///")):
        file = where[2:] if where.startswith("///") else where
        if not file.lower().endswith(".db"):
            raise ConfigError(f"A file of Milvus Lite ends in .db. Write {MILVUS_FORMS}.")
        return MilvusAddress(file, collection, lite=True)
    try:
        parts = urllib.parse.urlsplit(("https:" if kind else "http:") + where)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urllib.parse.urlsplit("")
    if parts.username or parts.password:
        raise ConfigError("An address of Milvus has no credentials. Set ANVIL_MILVUS_TOKEN to USER:PASSWORD or a key.")
    database = parts.path.strip("/")
    if not host or parts.query or parts.fragment or (database and not _COLLECTION.fullmatch(database)):
        raise ConfigError(f"That is not an address of Milvus. Write {MILVUS_FORMS}.")
    named = f"[{host}]" if ":" in host else host
    port = port or (443 if kind else 19530)
    return MilvusAddress(f"{parts.scheme}://{named}:{port}", collection, database)


def parse(source: str) -> Address:
    """The address that ``source`` spells. Raises :class:`ConfigError`, which never repeats a credential."""
    source = source.strip()
    if is_milvus(source):
        raise ConfigError("An index in Milvus is asked where it is, with --index; it is not fetched as a file.")
    if source.lower().startswith("github:"):
        return _github(source)
    if is_remote(source):
        return _web(source)
    if not source:
        raise ConfigError(f"An index cannot be fetched from nowhere. Name {FORMS}.")
    refuse_unknown(source)
    return LocalPath(source)


def _github(source: str) -> GitHubAddress:
    found = _GITHUB.fullmatch(source)
    if not found or found["repository"] in (".", ".."):
        raise ConfigError(
            f"{source[:200]!r} is not a place on GitHub. Write github:OWNER/REPO#artifact:NAME, "
            "github:OWNER/REPO@BRANCH#artifact:NAME or github:OWNER/REPO#release:TAG."
        )
    if not found["kind"]:
        raise ConfigError(
            f"{source} does not say what to fetch. Add artifact:NAME or release:TAG, as in {source}#release:latest."
        )
    kind: Literal["artifact", "release"] = "artifact" if found["kind"].lower() == "artifact" else "release"
    if kind == "release" and found["ref"]:
        raise ConfigError(
            f"A release is named by its tag alone. Write github:{found['owner']}/{found['repository']}"
            f"#release:{found['name']}."
        )
    return GitHubAddress(
        owner=found["owner"], repository=found["repository"], ref=found["ref"], kind=kind, name=found["name"].strip()
    )


def _web(source: str) -> WebAddress:
    try:
        parts = urllib.parse.urlsplit(source)
        host, port = parts.hostname, parts.port
        credentials = (urllib.parse.unquote(parts.username or ""), urllib.parse.unquote(parts.password or ""))
    except ValueError:
        host, port, credentials = None, None, ("", "")
    if not host or any(each.isspace() or ord(each) < 32 for each in source):
        raise ConfigError("That is not a web address. Write https://HOST/PATH, without spaces.")
    if not is_allowed(source):
        raise ConfigError(
            f"{host} is asked over https only: plain http can be read and changed on its way. Write https://."
        )
    named = f"[{host}]" if ":" in host else host
    url = urllib.parse.urlunsplit(
        (parts.scheme.lower(), named if port is None else f"{named}:{port}", parts.path or "/", parts.query, "")
    )
    last = parts.path.rpartition("/")[2].lower()
    if parts.query or last.endswith((*FILES, ".json")):
        places: tuple[str, ...] = ("",)
    else:
        url, places = url if url.endswith("/") else f"{url}/", PLACES
    return WebAddress(url, places, credentials if any(credentials) else None)


def is_allowed(url: str) -> bool:
    """Whether a URL is asked at all: over https, or over http on this machine. What is no URL is not."""
    try:
        parts = urllib.parse.urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme.lower() == "https" or (parts.scheme.lower() == "http" and is_loopback(url))


def is_loopback(url: str) -> bool:
    """Whether a URL names this machine."""
    try:
        host = urllib.parse.urlsplit(url).hostname or ""
        return host in LOOPBACK or ipaddress.IPv4Address(host).is_loopback
    except ValueError:  # another name, or no URL at all
        return False


def service(url: str, key: str) -> str:
    """``url`` of a service that is sent a secret, as it stands; ``key`` is what set it. Raises :class:`ConfigError`,
    which never repeats a credential: no web address, or one over plain http that is not this machine's."""
    try:
        parts = urllib.parse.urlsplit(url)
        sound = bool(parts.hostname) and parts.scheme in ("http", "https") and (parts.port or 1) > 0
    except ValueError:
        sound = False
    if not sound or any(each.isspace() or ord(each) < 32 or each == "\\" for each in url):
        raise ConfigError(f"{key} is not a web address. Write https://HOST/PATH, without spaces.")
    if not is_allowed(url):
        raise ConfigError(
            f"{key} is {without_secrets(url)}: over plain http the key and the text can be read on their way. Write "
            "https://; plain http is for this machine, such as http://localhost:11434/v1."
        )
    return url


def without_secrets(url: str) -> str:
    """A URL as it may be shown and logged: no credentials, no query, no fragment."""
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:
        return "an address that cannot be read"
    host = parts.netloc.rpartition("@")[2]
    return urllib.parse.urlunsplit((parts.scheme, host, parts.path, "", ""))


def spelled_without_secrets(url: str) -> str:
    """A URL as one may type it again: words stand where its credentials and its query stood."""
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:
        return "https://HOST/PATH"
    _, at, host = parts.netloc.rpartition("@")
    netloc = f"NAME:PASSWORD@{host}" if at else host
    return urllib.parse.urlunsplit((parts.scheme, netloc, parts.path, "QUERY" if parts.query else "", ""))
