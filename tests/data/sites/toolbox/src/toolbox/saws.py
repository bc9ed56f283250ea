"""Saws, with their teeth counted."""

KERF = 1.2
"""Width of the cut in millimetres, set by the bend of the teeth."""


def sharpen(strokes: int = 3) -> int:
    """File each tooth with the same number of strokes, beginning at the toe."""
    return strokes
