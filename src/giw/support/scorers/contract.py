"""What the splitter asks of a scorer: learn the training features, then say how strange a point is.

A score is a number per point, *larger is stranger*. Nothing else is assumed of it: calibration
turns scores into p-values by rank, so units and shape do not matter.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from torch import Tensor


@runtime_checkable
class Scorer(Protocol):
    """How far a point lies from the training features; larger is stranger.

    ``fit`` returns a *new* fitted scorer, so that one unfitted scorer serves every fold.
    Labels are codes 0, 1, ... and optional; scorers that make no use of them ignore them. A scorer
    whose attribute ``leaves_one_out`` is True scores a training row as if it had not seen that row,
    so that training rows can calibrate without being held out.
    """

    def fit(self, z: Tensor, label: Tensor | None = None) -> Scorer:
        """Learn the training features ``z`` of shape (n, d)."""
        ...

    def score(self, z: Tensor, label: Tensor | None = None) -> Tensor:
        """Strangeness of each row of ``z``, shape (m,)."""
        ...
