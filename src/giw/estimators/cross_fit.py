"""Losses of every point under two models that have not seen it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.linear_model import LogisticRegression, Ridge

from giw.estimators.folds import stratified_folds
from giw.estimators.rows import rows_of, stacked
from giw.estimators.static_weights import sample_weights, shrunk
from giw.estimators.weighted_fit import (
    fit_plain,
    fit_weighted,
    label_loss,
    quicker_copy,
    residual,
    residual_loss,
)

Vector = NDArray[np.float64]
FOLDS, FOLDS_OF_MANY, MANY = 5, 2, 5_000  # from so many training rows on, time matters more
FEWEST_ROWS = 1_000  # training rows that a fold's model may see, however small a share that is
SHARE, SHARE_OF_MANY = 5, 10  # one training row in so many is seen by a fold's model


@dataclass(frozen=True)
class CrossFit:
    """Losses under a pooled model (half training, half validation data) and a validation model.

    Each point is judged by the models of its fold, which saw no point of the fold, so that losses
    of training and of validation points may be compared. The validation model is the estimator's
    own or a linear one, whichever finds left-out validation points likelier: boosted trees with
    twenty rows to a leaf learn nothing from thirty rows, and would judge all labels alike.
    """

    train: Vector  # (n, 2) under the pooled model, under the validation model
    val: Vector  # (m, 2)
    rival: Vector  # (m,) under a pooled model of the kind that the validation model is
    fold: NDArray[np.int64]  # (n,)
    val_fold: NDArray[np.int64]  # (m,)


def cross_fit(
    estimator: BaseEstimator,
    X: Any,
    y: NDArray[Any],
    X_val: Any,
    y_val: NDArray[Any],
    z: tuple[Vector, Vector],
    generator: np.random.Generator,
) -> CrossFit | None:
    """Fit the models in turn without each fold; None where a fold would leave nothing over.

    ``z`` are both tables as numbers in comparable units, for the linear model. A model sees at most
    a fifth of the training rows (or a thousand), a tenth of many, so that the folds together cost
    less than one fit to everything.
    """
    n, m = len(y), len(y_val)
    folds = min(FOLDS if n < MANY else FOLDS_OF_MANY, m, n)
    if folds < 2:
        return None
    if n >= MANY:
        estimator = quicker_copy(estimator)
    seen = max(FEWEST_ROWS, n // (SHARE if n < MANY else SHARE_OF_MANY))
    classifies = is_classifier(estimator)
    judge = label_loss if classifies else residual
    strata, val_strata = (y, y_val) if classifies else (np.zeros(n), np.zeros(m))
    fold = stratified_folds(strata, folds, generator)
    val_fold = stratified_folds(val_strata, folds, generator)
    linear = LogisticRegression(max_iter=300) if classifies else Ridge()
    train, val = np.zeros((n, 3)), np.zeros((m, 4))
    for k in range(folds):
        mine, val_mine = fold == k, val_fold == k
        rest = np.flatnonzero(~mine)
        rest = np.sort(generator.permutation(rest)[:seen])
        x_k, y_k = rows_of(X_val, ~val_mine), y_val[~val_mine]
        half = (len(rest) + len(y_k)) / 2
        weight = np.r_[np.full(len(rest), half / len(rest)), np.full(len(y_k), half / len(y_k))]
        both, labels = stacked(rows_of(X, rest), x_k), np.concatenate([y[rest], y_k])
        pooled = fit_weighted(estimator, both, labels, weight)
        alone = fit_plain(estimator, x_k, y_k)
        line = fit_plain(linear, z[1][~val_mine], y_k)
        tables = ((X, X_val), (X, X_val), z)
        for j, (model, (a, b)) in enumerate(zip((pooled, alone, line), tables, strict=True)):
            train[mine, j] = judge(model, rows_of(a, mine), y[mine])
            val[val_mine, j] = judge(model, rows_of(b, val_mine), y_val[val_mine])
        pooled_line = fit_weighted(linear, np.vstack([z[0][rest], z[1][~val_mine]]), labels, weight)
        val[val_mine, 3] = judge(pooled_line, z[1][val_mine], y_val[val_mine])
    if not classifies:
        # the smallest typical miss: one unit for all, so that they can be compared
        scale = float(max(np.median(np.abs(val[:, :3]), axis=0).min() * 1.4826, 1e-12))
        train, val = residual_loss(train, scale), residual_loss(val, scale)
    second = 2 if val[:, 2].mean() < val[:, 1].mean() else 1
    rival = val[:, 3] if second == 2 else val[:, 0]
    return CrossFit(train[:, [0, second]], val[:, [0, second]], rival, fold, val_fold)


def refined(
    estimator: BaseEstimator,
    X: Any,
    y: NDArray[Any],
    X_val: Any,
    y_val: NDArray[Any],
    found: CrossFit,
    *,
    by_fold: dict[int, Vector],
    trust: float,
    inside: Vector,
    share: float,
) -> CrossFit:
    """Losses under reweighted models in place of pooled ones: a second, sharper look.

    The pooled model believed wrong labels as much as right ones. Each fold's reweighted model
    takes its weights from a ratio fitted without the fold, so that its points stay unseen; only
    the numbers ``trust`` and ``share`` come from all points.
    """
    if not is_classifier(estimator):
        return found  # residuals of the validation model set the unit; there is no second one
    train, val = found.train.copy(), found.val.copy()
    for k, ratio in by_fold.items():
        rest, val_rest = found.fold != k, found.val_fold != k
        weight = shrunk(ratio[rest] / ratio[rest].mean(), trust)
        ours, theirs = sample_weights(weight, inside[val_rest], share)
        both = np.concatenate([ours, theirs])
        counts = both > 0
        points = rows_of(stacked(rows_of(X, rest), rows_of(X_val, val_rest)), counts)
        labels = np.concatenate([y[rest], y_val[val_rest]])[counts]
        model = fit_weighted(estimator, points, labels, both[counts])
        train[~rest, 0] = label_loss(model, rows_of(X, ~rest), y[~rest])
        val[~val_rest, 0] = label_loss(model, rows_of(X_val, ~val_rest), y_val[~val_rest])
    return replace(found, train=train, val=val)
