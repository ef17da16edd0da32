"""How many equally weighted points a set of weights is worth."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giw.checks import as_array, callers_level

FEWEST_EFFECTIVE = 0.05  # share of the training points below which a warning is due


class EffectiveSampleSizeWarning(UserWarning):
    """Few training points carry almost all of the weight."""


def effective_sample_size(weight: Any) -> float:
    r"""Number of equally weighted points with the same variance of a weighted mean (Kish [1]_).

    .. math:: \frac{(\sum_i w_i)^2}{\sum_i w_i^2}

    Parameters
    ----------
    weight : array-like of shape (n,)
        Not negative and not all zero; the scale does not matter.

    Returns
    -------
    float
        Between one, all weight on one point, and n, all weights equal.

    References
    ----------
    .. [1] Kish, Survey Sampling, Wiley, 1965.
    """
    w = as_array(weight, "weight")
    if w.ndim != 1 or w.size == 0:
        raise ValueError(f"weight must have shape (n,) with n ≥ 1, got {w.shape}")
    if (w < 0).any() or not (w > 0).any():
        raise ValueError(
            f"weight must not be negative nor all zero, got {w.min():.3g} to {w.max():.3g}"
        )
    w = w.astype(np.float64) / w.max()  # squares of tiny or huge weights leave the range of floats
    return float(w.sum() ** 2 / np.square(w).sum())


def warn_if_few(weight: NDArray[np.float64], what: str) -> None:
    """Explain a collapse of the weights onto few training points."""
    n, effective = len(weight), effective_sample_size(weight)
    if effective >= FEWEST_EFFECTIVE * n:
        return
    warnings.warn(
        f"{what}: the effective sample size is {effective:.1f} of {n} training points "
        f"(under {FEWEST_EFFECTIVE:.0%}): few points carry almost all of the weight, and a "
        "weighted mean is about as noisy as a mean of that many points. The validation data "
        "lie where training data are rare or absent: look at giw.SupportSplitter for the part "
        "outside, or use a wider bandwidth, a larger ridge or a lower upper bound",
        EffectiveSampleSizeWarning,
        stacklevel=callers_level(),
    )
