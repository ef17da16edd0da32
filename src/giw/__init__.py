"""Generalized importance weighting: train where training data and the real world part ways."""

from giw.support import SupportSplit, SupportSplitter

__version__ = "0.1.0"

__all__ = ["SupportSplit", "SupportSplitter", "__version__"]
