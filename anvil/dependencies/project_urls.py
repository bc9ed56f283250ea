"""Addresses of the repository and the documentation site of a package, from its metadata, which is not trusted."""

from __future__ import annotations

import itertools
import re
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

HOSTS = ("github.com", "gitlab.com", "codeberg.org", "bitbucket.org", "git.sr.ht", "gitea.com")
"""Git hosts where the first two parts of a path are a repository."""
_SOURCE = tuple(
    """
    source repository sourcecode github gitlab code homepage home changelog issues tracker bugtracker issuetracker
    documentation docs download
    """.split()  # noqa: SIM905 - a list of quoted words is not read
)
"""Labels of addresses that may be the repository, most certain first."""
_DOCUMENTATION = ("documentation", "docs", "doc", "readthedocs", "homepage", "home")
_SCP = re.compile(r"(?:git\+)?(?:ssh://)?git@([\w.-]+)[:/](.+)")
_SHORT = re.compile(r"(?:(github|gitlab|bitbucket):)?([\w.-]+)/([\w.-]+)")
_SHORT_HOSTS = {None: "github.com", "github": "github.com", "gitlab": "gitlab.com", "bitbucket": "bitbucket.org"}
_VERSIONED = re.compile(r"(?:v?\d+(?:\.\d+)*(?:\.x)?|latest|stable|main|master|dev)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ProjectUrls:
    """The addresses of a package. ``repository``: for git. ``directory``: the package's folder in the repository.
    ``documentation``: sites, most certain first."""

    repository: str | None = None
    directory: str | None = None
    documentation: tuple[str, ...] = ()


def of_python(urls: Iterable[tuple[str, str]]) -> ProjectUrls:
    """Addresses of a Python package. ``urls``: (label, address) of ``Project-URL``, ``Home-page``, ``Download-URL``."""
    labelled = [(re.sub(r"[^a-z]", "", label.lower()), address.strip()) for label, address in urls]
    by_label = (url for wanted in _SOURCE for label, url in labelled if label == wanted)
    in_order = itertools.chain(by_label, (url for _, url in labelled))
    repository = next(filter(None, map(repository_at, in_order)), None)
    sites = [url for wanted in _DOCUMENTATION for label, url in labelled if label == wanted and _is_site(url)]
    return ProjectUrls(repository, None, tuple(dict.fromkeys(sites)))


def of_npm(package: Mapping[str, Any]) -> ProjectUrls:
    """The addresses of an npm package, from its ``package.json``."""
    repository, homepage = package.get("repository"), package.get("homepage")
    table = repository if isinstance(repository, dict) else {"url": repository}
    url, directory = table.get("url"), table.get("directory")
    repository_url = repository_at(url) if isinstance(url, str) else None
    if repository_url is None and isinstance(homepage, str):
        repository_url = repository_at(homepage)
    inside = directory.strip("/") if isinstance(directory, str) and ".." not in directory.split("/") else None
    sites = (homepage,) if isinstance(homepage, str) and _is_site(homepage) else ()
    return ProjectUrls(repository_url, inside or None, sites)


def repository_at(address: str) -> str | None:
    """The address for git of a repository: ``https://github.com/o/r`` for one of its pages, for
    ``git+ssh://git@github.com/o/r.git`` and for ``github:o/r``. None if the address is not known to be a repository's.
    """
    address = address.strip()
    if match := _SCP.fullmatch(address):
        address = f"https://{match[1]}/{match[2]}"
    elif (match := _SHORT.fullmatch(address)) and "." not in match[2]:
        return f"https://{_SHORT_HOSTS[match[1]]}/{match[2]}/{match[3].removesuffix('.git')}"
    named = address.startswith("git+") or address.partition("#")[0].rstrip("/").endswith(".git")
    if address.startswith("git://"):  # which has no encryption
        address = f"https://{address.removeprefix('git://')}"
    try:
        parts = urllib.parse.urlsplit(address.removeprefix("git+"))
        host, port = (parts.hostname or "").removeprefix("www."), parts.port
    except ValueError:
        return None
    scheme = "https" if parts.scheme in ("http", "ssh", "git") and host in HOSTS else parts.scheme
    path = [name for name in parts.path.split("/") if name]
    are_names = all(re.fullmatch(r"[\w.~@-]{1,100}", name) for name in path[:2])
    if not host or len(path) < (1 if named else 2) or not are_names:
        return None
    where = f"{scheme}://{host}{f':{port}' if port else ''}"
    if host in HOSTS:
        if host == "gitlab.com":  # it has groups in groups; in the path of a page, "-" follows the repository
            path = path[: path.index("-")] if "-" in path else path
            return f"{where}/{'/'.join(path)}".removesuffix(".git")
        return f"{where}/{path[0]}/{path[1].removesuffix('.git')}"
    return f"{where}/{'/'.join(path)}" if named else None


def named_by_user(text: str) -> str:
    """The address for git of a repository that a user names: ``OWNER/REPO`` at GitHub, a page of a git host, or
    ``git@HOST:PATH``, which stays SSH because the user chose it. Another text is returned as it is."""
    text = text.strip()
    if match := re.fullmatch(r"(git@[\w.-]+):([^/].*)", text):
        return f"ssh://{match[1]}/{match[2]}"
    if text.startswith(HOSTS):
        text = f"https://{text}"
    is_short = _SHORT.fullmatch(text) and text[0].isalnum()
    is_page = text.startswith(tuple(f"https://{host}/" for host in HOSTS))
    return (repository_at(text) if is_short or is_page else None) or text


def github_slug(repository: str) -> str | None:
    """``OWNER/REPO`` of a repository at GitHub; None for one elsewhere."""
    match = re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?", repository)
    return match[1] if match else None


def versioned(site: str, version: str) -> Iterator[str]:
    """The addresses where a site may have the documentation of this version, most exact first."""
    parts = urllib.parse.urlsplit(site)
    path = [name for name in parts.path.split("/") if name]
    at = next((index for index, name in enumerate(path) if _VERSIONED.fullmatch(name)), None)
    folders = path[:at] if at is not None else ([] if any("." in name for name in path) else path)
    numbers = version.split(".")
    minor = ".".join(numbers[:2])
    forms = dict.fromkeys([version, f"v{version}", minor, f"v{minor}"])
    if at is None and parts.hostname and parts.hostname.endswith((".readthedocs.io", ".rtfd.io")):
        folders = folders[:1] or ["en"]  # Read the Docs has the language in front of the version
    for form in forms:
        yield urllib.parse.urlunsplit((parts.scheme, parts.netloc, "/" + "/".join([*folders, form]) + "/", "", ""))


def _is_site(address: str) -> bool:
    """Whether an address can be a documentation site: over https, and not the page of a repository or a registry."""
    try:
        parts = urllib.parse.urlsplit(address)
        host = (parts.hostname or "").removeprefix("www.")
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(host) and host not in (*HOSTS, "pypi.org", "npmjs.com")
