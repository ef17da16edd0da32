"""How many equally weighted points a set of weights is worth."""

from __future__ import annotations

import warnings
from typing import Any

from torch import Tensor

from giw.checks import as_tensor, callers_level

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
    w = as_tensor(weight, "weight")
    if w.ndim != 1 or w.numel() == 0:
        raise ValueError(f"weight must have shape (n,) with n ≥ 1, got {tuple(w.shape)}")
    if bool((w < 0).any()) or not bool((w > 0).any()):
        raise ValueError(
            f"weight must not be negative nor all zero, got {w.min():.3g} to {w.max():.3g}"
        )
    w = w.double() / w.max()  # squares of tiny or huge weights would leave the range of floats
    return float(w.sum().square() / w.square().sum())


def warn_if_few(weight: Tensor, what: str) -> None:
    """Explain a collapse of the weights onto few training points, by the smallest of a batch."""
    w = weight.double()
    effective = float((w.sum(-1).square() / w.square().sum(-1)).min())
    warn_of(effective, w.shape[-1], what)


def warn_of(effective: float, n: int, what: str) -> None:
    """Warn if the effective sample size is under five per cent of the training points."""
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


def mean_one(weight: Tensor) -> Tensor:
    """Rescale to mean one over the last dimension."""
    return weight / weight.mean(-1, keepdim=True)
