"""Types for the vectors of texts."""

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
    """The vectors of a list of texts, one row for each text."""

    vectors: Vector
    """(n, dimensions) float32, rows of unit length. Rows that failed are zeros."""
    failed: Mapping[int, str]
    """Row -> reason of its failure. The other rows are valid."""
    cached: frozenset[int] = frozenset()
    """Rows from the user's cache, which were not computed now."""
