"""A validation sample, split: which points lie inside the training support, and how sure we are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from giw.checks import Array
from giw.support.lists import benjamini_hochberg
from giw.support.mixture import Assumptions
from giw.support.verdict import CaseVerdict, which_case


@dataclass(frozen=True)
class SupportSplit:
    """Validation points inside and outside the training support.

    Two shares are told apart. ``alpha`` is the mean of the membership that the objective uses,
    and the objective is coherent with no other number. ``support_share`` estimates the share of
    the *test distribution* inside the support and has an interval.

    Attributes
    ----------
    inside : bool array of shape (m,)
        The hard rule: p-value above ``level``, and a label that training has seen.
    p_value : array of shape (m,)
        Conformal p-value of "this point is like held-out training points of its cell"; 0 where
        the label was never seen.
    posterior : array of shape (m,)
        Probability of being inside.
    score : array of shape (m,)
        How strange each point is to the training features; larger is stranger.
    membership : array of shape (m,)
        What the objective uses: ``inside`` as 0 and 1, or ``posterior``.
    alpha : float
        Mean of ``membership``.
    support_share : float
        Estimated share of the test distribution inside the training support.
    support_share_interval : tuple of two floats
        Its 95 % interval.
    cell : int array of shape (m,)
        The cell in which each point was calibrated.
    calibration_count : int array of shape (m,)
        Calibration rows that each point was ranked among.
    calibration_score : array of shape (r,)
        Scores of the held-out training rows.
    label_unseen : bool array of shape (m,)
        True where the label alone puts a point outside.
    level : float
        Largest p-value that is called outside.
    soft : bool
        Whether ``membership`` is the posterior.
    rule : str
        The hard rule in words.
    train_cell_share : array of shape (c,)
        Share of the training distribution in each cell.
    assumptions : Assumptions
        What the interval of the share rests on, as training data showed it.
    """

    inside: Array
    p_value: Array
    posterior: Array
    score: Array
    membership: Array
    alpha: float
    support_share: float
    support_share_interval: tuple[float, float]
    cell: Array
    calibration_count: Array
    calibration_score: Array
    label_unseen: Array
    level: float
    soft: bool
    rule: str
    train_cell_share: Array
    assumptions: Assumptions = field(default_factory=Assumptions)

    @property
    def leak(self) -> float:
        r"""Estimated share of the test distribution that lies outside and is counted as inside.

        The generalized risk misses exactly this part: :math:`J_G - R = -E_{\rm te}[s\, \ell\,;\,
        x \text{ outside}]`, the leak times the mean loss on it. It is zero, and the objective
        consistent, if and only if the membership vanishes outside the training support.
        """
        return float((self.membership * (1 - self.posterior)).mean())

    def outside_list(self, fdr: float = 0.1) -> NDArray[np.int64]:
        """Indices of outside points to show to people, the strangest first.

        At most a share ``fdr`` of the list lies inside, on average (Benjamini-Hochberg).
        """
        return benjamini_hochberg(_numpy(self.p_value), fdr=fdr)

    def verdict(
        self, *, materiality: float = 0.1, negligible: float = 0.1, confidence: float = 0.95
    ) -> CaseVerdict:
        """Case (i) to (iv) where the bounds allow one; see :func:`giw.support.which_case`."""
        return which_case(
            _numpy(self.p_value),
            _numpy(self.calibration_count),
            _numpy(self.label_unseen),
            _numpy(self.cell),
            _numpy(self.train_cell_share),
            assumptions=self.assumptions,
            materiality=materiality,
            negligible=negligible,
            confidence=confidence,
        )

    def __len__(self) -> int:
        """Number of validation points."""
        return len(self.inside)

    def summary(self) -> str:
        """The split in a few lines of plain text."""
        m, inside, unseen = len(self), int(self.inside.sum()), int(self.label_unseen.sum())
        low, high = self.support_share_interval
        lines = [
            f"{inside} of {m} validation points inside the training support ({self.rule})",
            f"alpha = {self.alpha:.3f}, the mean "
            + ("posterior of being inside" if self.soft else "of the hard membership"),
            f"support share {self.support_share:.3f}, 95 % interval {low:.3f} to {high:.3f}: "
            "the part of the test distribution that training covers",
            f"leak {self.leak:.3f}: estimated part of the test distribution that lies outside and "
            "is counted as inside, which the objective misses",
            f"{len(self.calibration_score)} held-out training rows, "
            f"{len(set(self.cell.tolist()))} cells in use, "
            f"the smallest with {int(self.calibration_count.min())} rows",
        ]
        if self.assumptions.hidden_auroc is not None:
            lines.append(
                f"parts of training hidden from the rest: AUROC {self.assumptions.hidden_auroc:.3f}"
                ", the nearer to 0.5 the less can be said about the share"
            )
        if unseen:
            lines.insert(1, f"{unseen} of them outside by label: training never saw it")
        return "\n".join(lines)


def _numpy(values: Array) -> NDArray[Any]:
    return values.cpu().numpy() if isinstance(values, Tensor) else values
