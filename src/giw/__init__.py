"""Generalized importance weighting: train where training data and the real world part ways."""

__version__ = "0.1.0"
