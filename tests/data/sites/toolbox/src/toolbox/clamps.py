"""Clamps that hold two pieces together while the glue dries."""


class Clamp:
    """A screw clamp made of beech.

    The spindle is waxed once a year, so that glue does not stick to it.
    """

    def tighten(self, turns: int) -> float:
        """Turn the spindle, and say how hard it presses.

        Args:
            turns: how many turns of the handle; more than nine crack the jaw.

        Returns:
            The pressure in newtons.
        """
        return turns * 350.0


def release(clamp: Clamp) -> None:
    """Open a clamp slowly, lest the veneer jumps off; then go on to [toolbox.saws.sharpen][]."""
    clamp.tighten(0)
