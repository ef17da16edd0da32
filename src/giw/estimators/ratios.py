"""A density ratio by its name, at training points and, cross-fitted, at validation points."""

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
    "classifier": ClassifierRatio,
}


def ratio_named(weights: Any) -> Any:
    """An estimator with ``fit`` and ``weigh``, or a function of (z_train, z_val, val_weight)."""
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


def fit_ratio(
    ratio: Any,
    z: Vector,  # (n, d)
    z_val: Vector,  # (m, d)
    inside: Vector,  # (m,)
    fold: NDArray[np.int64],  # (n,)
    val_fold: NDArray[np.int64],  # (m,)
) -> tuple[Vector, Vector | None]:
    """Mean-one weights at training points, and at validation points left out of the fit.

    The second is None for a plain function, which cannot weigh points that it was not fitted to.
    """
    with warnings.catch_warnings():
        # few effective points are dealt with by the caller: weights are shrunk, and it says so
        warnings.simplefilter("ignore", EffectiveSampleSizeWarning)
        if not hasattr(ratio, "weigh"):
            return _checked(ratio(z, z_val, inside), len(z)), None
        weight = _checked(clone(ratio).fit(z, z_val, inside).weight_, len(z))
        left_out = np.ones(len(z_val))
        for k in np.unique(val_fold):
            keep, mine = val_fold != k, val_fold == k
            if inside[keep].sum() > 0 and (fold != k).any():
                rest = clone(ratio).fit(z[fold != k], z_val[keep], inside[keep])
                left_out[mine] = rest.weigh(z_val[mine])
    return weight, left_out


def _checked(weight: Any, n: int) -> Vector:
    """Weights of a user's own making may be on any scale, but not negative."""
    values = np.asarray(weight, dtype=np.float64)
    if values.shape != (n,):
        raise ValueError(f"weights must give one weight per training point, got {values.shape}")
    if not np.isfinite(values).all() or values.min() < 0 or values.sum() <= 0:
        raise ValueError("weights gave values that are negative, infinite, missing or all zero")
    return values / values.mean()
