"""Nets that are trained under a shift."""

from giw.nets.classifier import GIWClassifier

__all__ = ["GIWClassifier"]
