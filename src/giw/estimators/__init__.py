"""The scikit-learn face."""

from giw.estimators.giw_classifier import GIWClassifier

__all__ = ["GIWClassifier"]
