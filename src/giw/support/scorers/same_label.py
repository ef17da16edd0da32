"""Strange for its label: a point is compared with training rows of the same label only."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from giw.support.scorers.contract import Scorer


@dataclass(frozen=True)
class SameLabel:
    """One scorer per label; a point is scored by the one of its own label.

    This asks whether (x, y) is inside rather than x: an ordinary image under a label that such
    images never had in training is strange.
    """

    scorer: Scorer
    of_label: dict[int, Scorer] = field(default_factory=dict)

    @property
    def leaves_one_out(self) -> bool:
        """Whatever the scorer within can do."""
        return bool(getattr(self.scorer, "leaves_one_out", False))

    def fit(self, z: Tensor, label: Tensor | None = None) -> SameLabel:
        """Fit a scorer on the rows of each label."""
        if label is None:
            raise ValueError("same_label=True needs y_train")
        of_label = {int(v): self.scorer.fit(z[label == v]) for v in label.unique()}
        return replace(self, of_label=of_label)

    def score(self, z: Tensor, label: Tensor | None = None) -> Tensor:
        """Score among rows of the same label; the least one where the label has no rows, (m,)."""
        if label is None:
            raise ValueError("same_label=True needs a label for every point: y_val, y_calibration")
        if not self.of_label:
            raise ValueError("this scorer has seen no training features; call fit(z, label) first")
        score = z.new_zeros(len(z))
        for value in label.unique():
            mine = label == value
            scorer = self.of_label.get(int(value))
            scorers = [scorer] if scorer is not None else list(self.of_label.values())
            score[mine] = torch.stack([s.score(z[mine]) for s in scorers]).min(dim=0).values
        return score
