"""Weights estimated anew in every training step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from giw.checks import check_positive
from giw.objective.in_step_weights import BANDWIDTHS, dynamic_kmm


class Weigh(Protocol):
    """A way to weigh a training batch by a validation batch."""

    def __call__(self, train_z: Tensor, val_z: Tensor, inside: Tensor | None = None) -> Tensor:
        """Weights of the training batch, (n,), mean one, without gradient."""
        ...


@dataclass(frozen=True)
class DynamicWeights:
    r"""Match a training batch to a validation batch by kernel mean matching.

    Parameters
    ----------
    bandwidth : {"cross", "median", "paper"} or float, default="cross"
        Width of the Gaussian kernel: from the mean squared distance of training from validation
        points (:func:`giw.objective.cross_width`), the median distance of training points
        (:math:`\gamma = 1 / 2\,\mathrm{median}^2`), the published rule
        (:math:`\gamma = \mathrm{median}`, under which small losses all look alike), or a number.
        The first two are scale free.
    ridge : float, default=1e-5
        Added to the kernel's diagonal; more of it evens the weights out.
    upper : float, default=50.0
        Largest weight before the mean is set to one.
    """

    bandwidth: str | float = "cross"
    ridge: float = 1e-5
    upper: float = 50.0

    def __post_init__(self) -> None:
        """Refuse settings that no kernel has."""
        if isinstance(self.bandwidth, str):
            if self.bandwidth not in BANDWIDTHS:
                raise ValueError(
                    f"bandwidth must be one of {', '.join(BANDWIDTHS)} or a positive number, "
                    f"got {self.bandwidth!r}"
                )
        else:
            check_positive(self.bandwidth, "bandwidth")
        check_positive(self.ridge, "ridge")
        check_positive(self.upper, "upper")

    def __call__(
        self,
        train_z: Tensor,  # (n,) or (n, d)  representation of the training batch
        val_z: Tensor,  # (m,) or (m, d)  the same of the validation batch
        inside: Tensor | None = None,  # (m,)  how much each validation point counts, 0 to 1
    ) -> Tensor:  # (n,)  mean one, no gradient
        """Weights of the training batch."""
        with torch.no_grad():
            return dynamic_kmm(
                as_columns(train_z),
                as_columns(val_z),
                None if inside is None else inside.to(train_z.dtype),
                bandwidth=self.bandwidth,
                ridge=self.ridge,
                upper=self.upper,
            )


def effective_share(weight: Tensor) -> Tensor:
    r"""Effective sample size over sample size, :math:`(\sum w)^2 / n \sum w^2`, left on its device.

    One for equal weights, 1/n where a single point carries everything, zero where none does.
    """
    squares = weight.shape[-1] * weight.square().sum(-1)
    return weight.sum(-1).square() / torch.where(squares > 0, squares, 1.0)


def as_columns(z: Tensor) -> Tensor:
    """Losses (n,) as points of one feature (n, 1); features as they are; no gradient."""
    return z.detach()[:, None] if z.ndim == 1 else z.detach()
