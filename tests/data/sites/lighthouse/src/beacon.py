"""Control of the beacon."""

from __future__ import annotations


class Lamp:
    """A lamp that is lit at dusk."""

    colour = "white"
    """The colour of the light."""

    def on(self, seconds: float = 1.5) -> bool:
        """Light the lamp.

        Args:
            seconds: How long it warms up.

        Returns:
            Whether it burns.
        """
        return seconds > 0


def flash(count: int, *, gap: float = 0.5) -> list[float]:
    """Times of ``count`` flashes.

    Raises:
        ValueError: ``count`` is negative.
    """
    if count < 0:
        raise ValueError(count)
    return [number * gap for number in range(count)]
