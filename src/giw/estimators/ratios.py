"""A density ratio by its name, at training points and, cross-fitted, at validation points."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass(frozen=True)
class FittedRatio:
    """Mean-one weights, and what a fit without each fold says about the fold."""

    weight: Vector  # (n,) at training points
    left_out: Vector | None  # (m,) at validation points left out of the fit
    by_fold: dict[int, Vector]  # fold → (n,) at training points, fitted without the fold


def fit_ratio(
    ratio: Any,
    z: Vector,  # (n, d)
    z_val: Vector,  # (m, d)
    inside: Vector,  # (m,)
    fold: NDArray[np.int64],  # (n,)
    val_fold: NDArray[np.int64],  # (m,)
) -> FittedRatio:
    """Fit a ratio to everything, and again without each fold.

    A plain function cannot weigh points that it was not fitted to: it has no ``left_out``.
    """
    with warnings.catch_warnings():
        # few effective points are dealt with by the caller: weights are shrunk, and it says so
        warnings.simplefilter("ignore", EffectiveSampleSizeWarning)
        if not hasattr(ratio, "weigh"):
            return FittedRatio(_checked(ratio(z, z_val, inside), len(z)), None, {})
        weight = _checked(clone(ratio).fit(z, z_val, inside).weight_, len(z))
        left_out, by_fold = np.ones(len(z_val)), {}
        for k in np.unique(val_fold):
            keep, mine = val_fold != k, val_fold == k
            if inside[keep].sum() > 0 and (fold != k).any():
                rest = clone(ratio).fit(z[fold != k], z_val[keep], inside[keep])
                left_out[mine] = rest.weigh(z_val[mine])
                by_fold[int(k)] = np.asarray(rest.weigh(z), dtype=np.float64)
    return FittedRatio(weight, left_out, by_fold)


def _checked(weight: Any, n: int) -> Vector:
    """Weights of a user's own making may be on any scale, but not negative."""
    values = np.asarray(weight, dtype=np.float64)
    if values.shape != (n,):
        raise ValueError(f"weights must give one weight per training point, got {values.shape}")
    if not np.isfinite(values).all() or values.min() < 0 or values.sum() <= 0:
        raise ValueError("weights gave values that are negative, infinite, missing or all zero")
    return values / values.mean()
