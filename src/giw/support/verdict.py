r"""Which case of support shift is this? Bounds in both directions, and a verdict if they allow one.

====== ========================== ==========================
case   validation outside training training outside validation
====== ========================== ==========================
(i)    no                         no
(ii)   no                         yes
(iii)  yes                        no
(iv)   yes                        yes
====== ========================== ==========================

"Yes" and "no" are claims about shares of distributions, above or below a materiality threshold.
That training has something which the test distribution has *never* cannot be proved by a sample,
only that the test distribution visits those cells at a negligible rate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from giw.support.mixture import Assumptions, split_mixture

ORDINARY = 0.2  # p-values above this are hardly ever from outside
FURTHER = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
CASES = {(False, False): "i", (False, True): "ii", (True, False): "iii", (True, True): "iv"}


@dataclass(frozen=True)
class CaseVerdict:
    """What the bounds allow to say.

    Attributes
    ----------
    case : {"i", "ii", "iii", "iv", "cannot tell"}
    possible : tuple of str
        Cases that the bounds leave open.
    val_outside : tuple of two floats
        Lower and upper bound of the share of the test distribution outside the training support.
    train_outside : tuple of two floats
        Lower and upper bound of the share of the training distribution in cells that the test
        distribution visits at a negligible rate.
    materiality : float
        Shares below it count as none.
    points_needed : int or None
        About how many validation points would decide, if the next ones look like these; the
        present number where the case is decided, None where more of the same would not decide.
    """

    case: str
    possible: tuple[str, ...]
    val_outside: tuple[float, float]
    train_outside: tuple[float, float]
    materiality: float
    points_needed: int | None
    points: int

    def summary(self) -> str:
        """The verdict in a few lines of plain text."""
        low, high = self.val_outside
        train_low, train_high = self.train_outside
        open_cases = " or ".join(f"({case})" for case in self.possible)
        lines = [
            f"case {open_cases}" if len(self.possible) == 1 else f"cannot tell: {open_cases}",
            f"validation outside training: {low:.3f} to {high:.3f} of the test distribution",
            f"training outside validation: {train_low:.3f} to {train_high:.3f} of the training "
            "distribution (by cell: never proved, only bounded)",
            f"shares below {self.materiality:g} count as none",
        ]
        if self.case == "cannot tell":
            lines.append(
                f"about {self.points_needed} validation points would decide (now {self.points})"
                if self.points_needed
                else "more points of the same kind would not decide: set another materiality or "
                "use features that separate better"
            )
        return "\n".join(lines)


def which_case(
    p_value: NDArray[np.float64],  # (m,)
    calibration_count: NDArray[np.int64],  # (m,)
    label_unseen: NDArray[np.bool_],  # (m,)
    cell: NDArray[np.int64],  # (m,)
    train_cell_share: NDArray[np.float64],  # (c,)
    *,
    assumptions: Assumptions | None = None,
    materiality: float = 0.1,
    negligible: float = 0.1,
    confidence: float = 0.95,
    look_ahead: bool = True,
) -> CaseVerdict:
    r"""Bound both directions and name the case if the bounds allow it.

    Each direction may err with probability (1 − ``confidence``) / 2 on either side.

    Parameters
    ----------
    p_value, calibration_count, label_unseen, cell : arrays of shape (m,)
        As in :class:`giw.SupportSplit`.
    train_cell_share : array of shape (c,)
        Share of the training distribution in each cell.
    assumptions : Assumptions, optional
        As in :class:`giw.SupportSplit`.
    materiality : float, default=0.1
        Shares below it count as none; less of it needs more validation points.
    negligible : float, default=0.1
        The test distribution is absent from a set of cells where it visits them at less than so
        much of the training rate.
    confidence : float, default=0.95
    look_ahead : bool, default=True
        Also work out how many points would decide, which takes most of the time.
    """
    for name, value in (("materiality", materiality), ("negligible", negligible)):
        if not 0 < value < 1:
            raise ValueError(f"{name} must lie between 0 and 1, got {value}")
    if not 0.5 < confidence < 1:
        raise ValueError(f"confidence must lie between 0.5 and 1, got {confidence}")
    rank = np.rint(p_value * (calibration_count + 1)).astype(np.int64)
    share = np.asarray(train_cell_share, dtype=np.float64)
    seen = ~label_unseen
    ordinary = np.bincount(cell[seen & (p_value > ORDINARY)], minlength=len(share))  # (c,)

    def bounds(times: int) -> tuple[tuple[float, float], tuple[float, float]]:
        """Both pairs of bounds, had every point been seen so many times."""
        low, high = split_mixture(
            np.repeat(rank, times),
            np.repeat(calibration_count, times),
            np.repeat(label_unseen, times),
            assumptions=assumptions,
            confidence=confidence,
        ).interval
        train = _train_outside(
            ordinary * times, len(cell) * times, share, negligible, (1 - confidence) / 2
        )
        return (1 - high, 1 - low), train

    val_outside, train_outside = bounds(1)
    possible = _possible(val_outside, train_outside, materiality)
    needed = len(cell) if len(possible) == 1 else None
    for times in FURTHER if needed is None and look_ahead else ():
        if len(_possible(*bounds(times), materiality)) == 1:
            needed = times * len(cell)
            break
    return CaseVerdict(
        case=possible[0] if len(possible) == 1 else "cannot tell",
        possible=possible,
        val_outside=val_outside,
        train_outside=train_outside,
        materiality=float(materiality),
        points_needed=needed,
        points=len(cell),
    )


def _possible(
    val_outside: tuple[float, float], train_outside: tuple[float, float], materiality: float
) -> tuple[str, ...]:
    """Cases on the right side of both pairs of bounds."""

    def answers(bound: tuple[float, float]) -> list[bool]:
        low, high = bound
        return [True] if low >= materiality else [False] if high < materiality else [False, True]

    return tuple(CASES[v, t] for v in answers(val_outside) for t in answers(train_outside))


def _train_outside(
    ordinary: NDArray[np.int64],  # (c,) validation points in each cell that look ordinary there
    m: int,
    share: NDArray[np.float64],  # (c,)
    negligible: float,
    error: float,
) -> tuple[float, float]:
    """Bounds of the training share in cells that the test distribution leaves (nearly) empty.

    Inside points look ordinary with probability 1 − ``ORDINARY``, outside points hardly ever, so
    ordinary points count the inside points of each cell.
    """
    cells, looks = len(share), 1 - ORDINARY
    least = np.array([_binomial_lower(k, m, error / cells) for k in ordinary]) / looks
    visited = least > negligible * share
    upper = float(share[~visited].sum())
    # the emptiest cells together; every union of cells was a candidate, so all 2^c are paid for
    order = np.argsort(ordinary / np.maximum(share, 1e-12), kind="stable")
    lower = 0.0
    for size in range(1, cells + 1):
        union = order[:size]
        most = _binomial_upper(int(ordinary[union].sum()), m, error / 2.0**cells) / looks
        mass = float(share[union].sum())
        if most <= negligible * mass:
            lower = max(lower, mass)
    return min(lower, upper), upper


def _binomial_lower(k: int, m: int, error: float) -> float:
    return float(beta.ppf(error, k, m - k + 1)) if k > 0 else 0.0


def _binomial_upper(k: int, m: int, error: float) -> float:
    return float(beta.isf(error, k + 1, m - k)) if k < m else 1.0
