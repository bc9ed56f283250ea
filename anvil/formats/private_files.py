"""Files that no page may show: hidden ones, and keys."""

from __future__ import annotations

import re

_KEYS = re.compile(r"^id_(?:rsa|dsa|ecdsa|ed25519)$|\.(?:pem|key|p12|pfx|jks|keystore|kdbx)$", re.IGNORECASE)


def is_private(path: str) -> bool:
    """Whether a page may never show this file of its repository through a link or an include: hidden names (except
    ``.github``), and keys."""
    names = path.split("/")
    return any(name[:1] == "." and name != ".github" for name in names) or _KEYS.search(names[-1]) is not None
