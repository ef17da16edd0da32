"""What a method sees, and apart from it the truth that it must not see."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from giw.paper.readers.sample import Sample


@dataclass(frozen=True, eq=False)
class ShiftProblem:
    """Training, validation and test samples of one trial.

    Nothing here says which points are inside the training support, what the true weights are or
    which labels were flipped; that is kept in :class:`Truth`. Groups are set to zero on the way
    in, because comparing them tells inside from outside; :class:`Truth` has them.
    """

    train: Sample
    val: Sample
    test: Sample

    def __post_init__(self) -> None:
        for name in ("train", "val", "test"):
            sample: Sample = getattr(self, name)
            if len(sample) == 0:
                raise ValueError(f"the {name} sample is empty; every part needs at least one point")
            if sample.classes != self.train.classes:
                raise ValueError(f"{name} has classes {sample.classes}, train {self.train.classes}")
            if sample.x.shape[1:] != self.train.x.shape[1:]:
                raise ValueError(
                    f"points of {name} have shape {sample.x.shape[1:]}, those of train "
                    f"{self.train.x.shape[1:]}; all three need the same"
                )
            object.__setattr__(self, name, sample.without_groups())

    @property
    def n_classes(self) -> int:
        """Number of classes of the task."""
        return self.train.n_classes


@dataclass(frozen=True, eq=False)
class Truth:
    r"""What only an evaluation may know about a :class:`ShiftProblem`.

    Parameters
    ----------
    inside : array of bool of shape (m,)
        Does the validation point lie in a group that training has?
    weight : array of shape (n,) or None
        True :math:`w = p(x, y \mid s = 1) / p_{\rm tr}(x, y)` at the training points, where
        :math:`s = 1` says that a validation-distributed point lies inside; mean one. ``None``
        where nothing is inside.
    flipped : array of bool of shape (n,)
        Was this training label flipped?
    support_share : float or None
        Share of the *distribution* that validation points are drawn from that lies inside; the
        share of this very draw is :attr:`alpha`. The two agree for stratified draws.
    train_group, val_group, test_group : arrays of integers or None
        Group of each point, for accuracies by group.
    """

    inside: NDArray[np.bool_]  # (m,)
    weight: NDArray[np.float64] | None  # (n,)
    flipped: NDArray[np.bool_]  # (n,)
    support_share: float | None = None
    train_group: NDArray[np.int64] | None = None  # (n,)
    val_group: NDArray[np.int64] | None = None  # (m,)
    test_group: NDArray[np.int64] | None = None

    @property
    def alpha(self) -> float:
        """Mean membership of the validation sample at hand, the α of the objective."""
        return float(np.mean(self.inside))


def mean_one(weight: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Scale to mean one; None where all weight is gone."""
    total = weight.mean()
    return weight / total if total > 0 else None
