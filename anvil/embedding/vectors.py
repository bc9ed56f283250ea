"""The vectors of texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Vector: TypeAlias = "NDArray[np.float32]"
"""float32; (dimensions,) for one text, (n, dimensions) for n texts."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors of a list of texts, row for row."""

    vectors: Vector
    """(n, dimensions) float32, rows of unit length; rows that failed are zeros."""
    failed: Mapping[int, str]
    """Row to reason. A failure never loses the other rows."""
    cached: frozenset[int] = frozenset()
    """Rows that were not computed now: the user's cache had them."""
