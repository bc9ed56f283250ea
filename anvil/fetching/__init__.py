"""An index from where it is published to a verified file on this machine."""

from anvil.fetching.http import Limits
from anvil.fetching.obtaining import Fetched, cached_path, fetch

__all__ = ["Fetched", "Limits", "cached_path", "fetch"]
