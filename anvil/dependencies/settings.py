"""The table ``[deps]`` of the configuration."""

from __future__ import annotations

from dataclasses import dataclass, field

from anvil.dependencies.ecosystems import ECOSYSTEMS
from anvil.errors import ConfigError
from anvil.settings import index_url
from anvil.settings.schema import within


@dataclass(frozen=True, slots=True)
class DepsOptions:
    """Where ``anvil deps`` finds packages and their documentation."""

    pypi_url: str = "https://pypi.org/simple/"
    """The index of Python packages (the simple API). The environment's own setting goes first: ``UV_DEFAULT_INDEX``,
    ``UV_INDEX_URL`` or ``PIP_INDEX_URL``."""
    npm_url: str = "https://registry.npmjs.org/"
    """The registry of npm packages. The environment's own setting goes first: ``NPM_CONFIG_REGISTRY``."""
    max_fetch_bytes: int = 500_000_000
    """Bytes that are fetched from one repository. Pages alone are fetched, if its server can send a part."""
    max_package_bytes: int = 50_000_000
    """Bytes of a package's archive in which documentation is searched. A larger one is not downloaded."""
    allow_private_urls: bool = field(default=False, metadata={"instead": "set ANVIL_DEPS_ALLOW_PRIVATE_URLS=true"})
    """Whether packages may name servers of this machine and its network, and repositories by ``file://``. An error in a
    file not named with ``--config``."""

    def __post_init__(self) -> None:
        within("deps.max_fetch_bytes", self.max_fetch_bytes, 1)
        within("deps.max_package_bytes", self.max_package_bytes, 1)
        for key in (f"{ecosystem}_url" for ecosystem in ECOSYSTEMS):
            if not index_url.is_allowed(getattr(self, key)):
                raise ConfigError(f"deps.{key} must be an https address, such as https://HOST/PATH/.")
