"""Class-prior shift: some classes are rare in training."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from giw.checks import as_generator
from giw.paper.shift.problem import ShiftProblem, Truth, mean_one


def class_prior(
    problem: ShiftProblem,
    truth: Truth,
    *,
    ratio: float,
    minority: Collection[int],
    random_state: int | np.random.Generator | None = None,
) -> tuple[ShiftProblem, Truth]:
    r"""Thin out the minority classes of the training sample.

    Every minority class is cut to :math:`1 / \rho` of the mean size of a majority class (at least
    one point, at most all it has), so that the ratio per class is :math:`\rho` up to rounding.
    A class of which a share :math:`k_y` is kept has its true weight multiplied by
    :math:`1 / k_y`, up to the common factor that keeps the mean at one. Where labels are noisy,
    classes are those of the labels as training shows them, which keeps this exact.

    Parameters
    ----------
    problem, truth : ShiftProblem and Truth
        From :func:`~giw.paper.shift.support_shift` or another shift; both come back changed.
    ratio : float
        Size of a majority class over that of a minority class, at least 1.
    minority : collection of int
        The classes to thin out; some but not all.
    random_state : int, generator or None
    """
    if not (np.isfinite(ratio) and ratio >= 1):
        raise ValueError(f"ratio is majority over minority size, at least 1; got {ratio}")
    rare = np.unique(np.asarray(list(minority), dtype=np.int64))
    y = problem.train.y
    size = np.bincount(y, minlength=problem.n_classes)  # (c,)
    common = np.setdiff1d(np.flatnonzero(size), rare)
    if len(rare) == 0 or rare.min() < 0 or rare.max() >= problem.n_classes or len(common) == 0:
        raise ValueError(
            f"minority must name some but not all of the classes 0 to {problem.n_classes - 1} "
            f"seen in training, got {sorted(minority)}"
        )
    target = max(1, round(float(size[common].mean()) / ratio))
    kept = size.copy()
    kept[rare] = np.minimum(size[rare], target)

    order = as_generator(random_state).permutation(len(y))
    rows = np.sort(np.concatenate([order[y[order] == c][: kept[c]] for c in np.flatnonzero(size)]))
    weight = None
    if truth.weight is not None:
        grown = size / np.maximum(kept, 1)  # (c,): one over the share kept
        weight = mean_one(truth.weight[rows] * grown[y[rows]])
    return (
        replace(problem, train=problem.train.take(rows)),
        replace(
            truth,
            weight=weight,
            flipped=truth.flipped[rows],
            train_group=None if truth.train_group is None else truth.train_group[rows],
        ),
    )
