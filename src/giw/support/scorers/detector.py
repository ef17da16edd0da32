"""Any scikit-learn outlier detector as a scorer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor


@dataclass(frozen=True)
class Detector:
    """A scikit-learn outlier detector: anything with ``fit`` and ``score_samples``.

    Parameters
    ----------
    estimator : scikit-learn outlier detector
        For example ``IsolationForest(random_state=0)``. ``LocalOutlierFactor`` needs
        ``novelty=True``. It is cloned, never changed.
    """

    estimator: Any
    fitted: Any = None

    def __post_init__(self) -> None:
        if not (hasattr(self.estimator, "fit") and hasattr(self.estimator, "score_samples")):
            hint = "; give it novelty=True" * hasattr(self.estimator, "novelty")
            raise ValueError(
                f"a detector needs fit and score_samples, got {self.estimator!r}{hint}"
            )

    def fit(self, z: Tensor, label: Tensor | None = None) -> Detector:
        """Fit a clone on the CPU."""
        return replace(self, fitted=clone(self.estimator).fit(z.cpu().numpy()))

    def score(self, z: Tensor, label: Tensor | None = None) -> Tensor:
        """Minus ``score_samples``, (m,): scikit-learn's larger is more normal."""
        if self.fitted is None:
            raise ValueError("this scorer has seen no training features; call fit(z) first")
        normality = np.asarray(self.fitted.score_samples(z.cpu().numpy()), dtype=np.float64)
        return torch.from_numpy(-normality).to(z)
