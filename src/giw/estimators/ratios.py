"""Density ratios by their names, as weights of mean one that leave enough training rows in use."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from giw.weights import (
    KLIEP,
    KMM,
    LSIF,
    RULSIF,
    ULSIF,
    ClassifierRatio,
    EffectiveSampleSizeWarning,
)

Vector = NDArray[np.float64]
RATIOS: dict[str, Callable[[], Any]] = {
    "kmm": KMM,
    "kliep": KLIEP,
    "lsif": LSIF,
    "ulsif": ULSIF,
    "rulsif": RULSIF,
    "classifier": lambda: ClassifierRatio(features="linear", ridge=0.03, balanced=True),
}


class WeightsError(ValueError):
    """Weights of a user's own making are no weights."""


def ratio_named(weights: Any) -> Any:
    """An estimator with ``fit`` and ``weight_``, or a function of (z_train, z_val, val_weight)."""
    if isinstance(weights, str):
        if weights not in RATIOS:
            raise ValueError(
                f"weights must be one of {', '.join(RATIOS)}, a function, an estimator with fit "
                f"and weigh, or None for no weights; got {weights!r}"
            )
        return RATIOS[weights]()
    if hasattr(weights, "fit") and hasattr(weights, "weigh"):
        return clone(weights)
    if callable(weights):
        return weights
    raise ValueError(f"weights must be a name, a function, an estimator or None; got {weights!r}")


def inside_ratio(
    weights: Any, z: Vector, z_target: Vector, *, least_effective: float = 0.1
) -> Vector:  # (n,)
    """Weights of training rows (n, d) towards target rows (k, d), mean one.

    Parameters
    ----------
    weights : str, estimator, function or None
        As in :class:`giw.ReweightedClassifier`.
    least_effective : float, default=0.1
        Weights are drawn towards one until so large a share of the rows is effective.
    """
    if weights is None:
        return np.ones(len(z))
    ratio = ratio_named(weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EffectiveSampleSizeWarning)  # dealt with below
        if hasattr(ratio, "weigh"):
            weight = np.asarray(ratio.fit(z, z_target).weight_, dtype=np.float64)
        else:
            weight = np.asarray(ratio(z, z_target, np.ones(len(z_target))), dtype=np.float64)
    if weight.shape != (len(z),):
        raise WeightsError(f"weights must give one weight per training point, got {weight.shape}")
    if not np.isfinite(weight).all() or weight.min() < 0 or weight.sum() <= 0:
        raise WeightsError("weights gave values that are negative, infinite, missing or all zero")
    weight = weight / weight.mean()
    # shrinking by rho leaves n / (1 + rho^2 v) effective rows
    allowed, variance = 1 / least_effective - 1, float(np.var(weight))
    rho = 1.0 if variance <= allowed else float(np.sqrt(allowed / variance))
    return 1 - rho + rho * weight
