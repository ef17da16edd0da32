"""Clean samples, before any shift."""

from giw.data.digits import digits
from giw.data.four_squares import four_squares
from giw.data.sample import Sample

__all__ = ["Sample", "digits", "four_squares"]
