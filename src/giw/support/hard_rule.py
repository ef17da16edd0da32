"""Inside or outside, yes or no: by the calibrated level, or by a threshold of one's own."""

from __future__ import annotations

from torch import Tensor

from giw.support.scorers import PUBLISHED_THRESHOLDS


def as_threshold(threshold: float | str | None) -> float | None:
    """A number for a threshold that may have a name; None where there is none."""
    if isinstance(threshold, str):
        if threshold not in PUBLISHED_THRESHOLDS:
            raise ValueError(
                f"no threshold is called {threshold!r}; the published ones are "
                f"{PUBLISHED_THRESHOLDS}, or pass a number"
            )
        return PUBLISHED_THRESHOLDS[threshold]
    return None if threshold is None else float(threshold)


def calibrated_rule(
    p_value: Tensor,  # (m,)
    posterior: Tensor,  # (m,)
    *,
    level: float,
    least_posterior: float,
) -> tuple[Tensor, str]:
    """Which points are inside by p-value and posterior, and the rule in words."""
    inside = p_value > level  # never where the label is unseen: p is 0 there
    rule = f"p > {level:g}"
    if least_posterior > 0:
        inside = inside & (posterior > least_posterior)
        rule += f" and posterior > {least_posterior:g}"
    return inside, rule


def threshold_rule(
    score: Tensor,  # (m,)
    seen: Tensor,  # (m,) bool, False where the label alone puts a point outside
    *,
    threshold: float,
) -> tuple[Tensor, str]:
    """Which points are inside by a threshold on minus their score, and the rule in words."""
    return (-score > threshold) & seen, f"score_samples > {threshold:g}"


def sampling_interval(inside: int, m: int) -> tuple[float, tuple[float, float]]:
    """Share and exact binomial interval of a rule that knows nothing of its own errors."""
    from scipy.stats import beta

    low = float(beta.ppf(0.025, inside, m - inside + 1)) if inside else 0.0
    high = float(beta.ppf(0.975, inside + 1, m - inside)) if inside < m else 1.0
    return inside / m, (low, high)
