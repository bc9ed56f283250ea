"""An index from where it is published to a verified file on this machine."""

from anvil.backends.fetch.fetch_index import cached_path, fetch
from anvil.backends.fetch.http_client import Limits
from anvil.backends.fetch.result import FetchResult

__all__ = ["FetchResult", "Limits", "cached_path", "fetch"]
