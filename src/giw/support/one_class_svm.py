"""The published split: a one-class support vector machine with a very narrow kernel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import OneClassSVM

from giw.support.scores import Matrix, on_host, unit_norm

#: ``score_samples`` above which a point counts as inside: the paper's text, and the authors' code.
PUBLISHED_THRESHOLDS = {"text": 0.4, "code": 1e-4}
CACHE = 2_000  # MiB of kernel rows at most; a row that was thrown away costs n distances again


def one_class_svm(z: Matrix, *, gamma: float = 10_000.0, nu: float = 0.5) -> OneClassSVM:
    r"""One-class SVM on unit-norm features [1]_; a point is inside above a threshold.

    .. math:: \sum_i a_i \exp(-\gamma \lVert z - z_i \rVert^2) > t

    With the published :math:`\gamma = 10{,}000` a training row counts only within a distance of
    about 0.03, so the score recognises copies of training points and hardly anything else. Fitting
    takes time quadratic in the number of rows.

    References
    ----------
    .. [1] Fang, Lu, Niu and Sugiyama, Generalizing Importance Weighting to A Universal Solver for
       Distribution Shift Problems, NeurIPS 2023.
    """
    room = min(CACHE, 1 + 4 * len(z) ** 2 // 2**20)  # for all of the kernel, in MiB
    machine = OneClassSVM(kernel="rbf", gamma=gamma, nu=nu, cache_size=room)
    # its fit draws a number that it has no use for, by default from numpy's global stream
    machine.random_state = 0
    return machine.fit(unit_rows(z))


def unit_rows(z: Matrix) -> NDArray[np.float64]:
    """Rows of unit norm in double precision, on the host."""
    return np.asarray(unit_norm(on_host(z).astype(np.float64)))


def threshold_of(threshold: float | str | None) -> float:
    """A published threshold by name, the paper's if none is given, or a number as it is."""
    if threshold is None or isinstance(threshold, str):
        if (threshold or "text") not in PUBLISHED_THRESHOLDS:
            raise ValueError(
                f"no threshold is called {threshold!r}; the published ones are "
                f"{PUBLISHED_THRESHOLDS}, or pass a number"
            )
        return PUBLISHED_THRESHOLDS[threshold or "text"]
    return float(threshold)
