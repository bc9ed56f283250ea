"""Registries of packages: their addresses, credentials and policy, and requests to them.

Their answers are read in ``npm_ecosystem`` and ``python_ecosystem``. A host that the user's environment names may be in
a private network. A host from a configuration file, which comes with a checkout, must be public, and so must hosts that
packages name.
"""

from __future__ import annotations

import os
import re
import urllib.parse
from collections.abc import Mapping
from typing import Any

from anvil.dependencies.ecosystems import ECOSYSTEMS, Ecosystem, Registry
from anvil.dependencies.settings import DepsOptions
from anvil.errors import ConfigError, FetchError, NotFound, Unreachable
from anvil.formats.data_formats import json_object
from anvil.http.allowed_servers import DependencyPolicy, host_of
from anvil.http.client import HttpClient, Limits, basic_authorization, login_in_netrc, origin
from anvil.settings import index_url
from anvil.settings.configuration import variable

LIMITS = Limits(answer=20, whole=120, small=64_000_000)
"""Limits of requests for metadata. The list of files of a package with thousands of releases has 30 MB."""


def registries(options: DepsOptions) -> dict[Ecosystem, Registry]:
    """The registry of each ecosystem. Raises :class:`ConfigError` if an address cannot be used."""
    return {ecosystem: _registry(ecosystem, options) for ecosystem in ECOSYSTEMS}


def variables(ecosystem: Ecosystem) -> tuple[str, ...]:
    """The environment variables that name a registry; the first that is set counts."""
    return variable(f"deps.{ecosystem}_url"), *ECOSYSTEMS[ecosystem].variables


def _registry(ecosystem: Ecosystem, options: DepsOptions) -> Registry:
    key = f"{ecosystem}_url"
    configured: str = getattr(options, key)
    is_default = configured == getattr(DepsOptions(), key)
    name = next((name for name in variables(ecosystem) if os.environ.get(name)), None)
    url = (os.environ[name] if name else configured).strip()
    if not index_url.is_allowed(url):
        raise ConfigError(f"{name or f'deps.{key}'} must be an https address, such as https://HOST/PATH/.")
    parts = urllib.parse.urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    bare = urllib.parse.urlunsplit((parts.scheme, host, parts.path.rstrip("/") + "/", "", ""))
    is_trusted = name is not None or is_default
    login = login_in_netrc(bare) if is_trusted else None
    if parts.username:
        login = urllib.parse.unquote(parts.username), urllib.parse.unquote(parts.password or "")
    return Registry(bare, is_trusted, {origin(bare): basic_authorization(*login)} if login else {})


def policy(options: DepsOptions, registries: Mapping[Ecosystem, Registry]) -> DependencyPolicy:
    """The policy for all requests of ``anvil deps``."""
    trusted = [host_of(registry.url) for registry in registries.values() if registry.is_trusted]
    return DependencyPolicy(trusted, options.allow_private_urls)


def get(http: HttpClient, url: str, what: str, accept: str) -> tuple[str, str, str]:
    """(text, content type, address after redirects) of the reply at ``url``. ``what``: its name in errors.

    Raises :class:`NotFound` if the registry does not have it, and :class:`FetchError`.
    """
    with http.get(url, {"Accept": accept}) as reply:
        if reply.status in (404, 410):
            raise NotFound(f"{reply.host} has no {what}.")
        if reply.status in (401, 403):
            raise FetchError(f"{reply.host} does not show {what} (status {reply.status}). Check the credentials.")
        if reply.status == 429:
            seconds = reply.headers.get("retry-after", "")
            when = f"in {seconds} s" if re.fullmatch(r"\d{1,5}", seconds) else "later"
            raise Unreachable(f"{reply.host} limits the number of requests. Try again {when}.")
        if reply.status != 200:
            raise FetchError(f"{reply.host} answered with status {reply.status} when asked for {what}.")
        return reply.text(), reply.headers.get("content-type", ""), reply.url


def object_of(text: str, url: str) -> dict[str, Any]:
    """The JSON object in a reply. Raises :class:`FetchError` if it is something else. ``url``: where it is from."""
    value = json_object(text)
    if value is None:
        raise FetchError(f"{host_of(url)} sent something else than a JSON object.")
    return value
