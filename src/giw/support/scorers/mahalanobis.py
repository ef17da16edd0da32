"""Distance from the mean in units of the spread, overall or to the nearest class."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class Mahalanobis:
    r"""Mahalanobis distance, :math:`\min_c \sqrt{(z - \mu_c)^\top \Sigma^{-1} (z - \mu_c)}`.

    One mean for all rows, or one per class with the covariance that the classes share. Good where
    the support is one cloud (or one per class), blind to holes in it.

    Parameters
    ----------
    per_class : bool, default=False
        Measure from the nearest class mean; needs labels.
    shrinkage : float, default=0.01
        The covariance becomes :math:`(1 - \lambda) \Sigma + \lambda\, {\rm tr}(\Sigma)/d\, I`;
        more of it trusts directions in which training hardly varies less.

    References
    ----------
    .. [1] Lee, Lee, Lee and Shin, A simple unified framework for detecting out-of-distribution
       samples and adversarial attacks, NeurIPS 2018.
    """

    per_class: bool = False
    shrinkage: float = 0.01
    means: Tensor | None = None  # (c, d)
    whiten: Tensor | None = None  # (d, d)

    def __post_init__(self) -> None:
        if not 0 < self.shrinkage <= 1:
            raise ValueError(f"shrinkage must lie above 0 and at most 1, got {self.shrinkage}")

    def fit(self, z: Tensor, label: Tensor | None = None) -> Mahalanobis:
        """Means, and the inverse square root of the shared covariance, in double precision."""
        if self.per_class and label is None:
            raise ValueError("Mahalanobis(per_class=True) needs y_train")
        z = z.double()
        if label is None or not self.per_class:
            label = torch.zeros(len(z), dtype=torch.long, device=z.device)
        code = label.unique(return_inverse=True)[1]  # (n,)
        means = torch.stack([z[code == c].mean(dim=0) for c in range(int(code.max()) + 1)])
        rest = z - means[code]
        covariance = rest.T @ rest / len(z)  # (d, d)
        level = covariance.diagonal().mean()
        eye = torch.eye(z.shape[1], dtype=z.dtype, device=z.device)
        if level <= 0:  # every class is a single point: plain distance to it
            return replace(self, means=means, whiten=eye)
        shrunk = (1 - self.shrinkage) * covariance + self.shrinkage * level * eye
        values, vectors = torch.linalg.eigh(shrunk)
        return replace(self, means=means, whiten=vectors * values.rsqrt())

    def score(self, z: Tensor, label: Tensor | None = None) -> Tensor:
        """Distance to the nearest mean, (m,)."""
        if self.means is None or self.whiten is None:
            raise ValueError("this scorer has seen no training features; call fit(z) first")
        near = torch.cdist(z.double() @ self.whiten, self.means @ self.whiten)  # (m, c)
        return near.min(dim=1).values.to(z.dtype)
