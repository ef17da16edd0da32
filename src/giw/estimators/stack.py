r"""Left-out predictions of candidates, and the weights of their mean.

Of classes it is the one that :class:`giw.ReweightedClassifier` describes. Candidates are calibrated
because a model that is sure of itself where the tables differ would outvote the others. For the
prior :math:`c\,\pi` see :func:`prior_rows`. Of numbers the stack is the mean
:math:`\sum_k a_k f_k(x)` and its weights minimise

.. math:: \sum_j v_j \Big(y_j - \sum_k a_k f_k(x_j)\Big)^2 \Big/ s^2 + c \sum_k (a_k - \pi_k)^2 ,

with :math:`f_k` from fits without the fold of validation row j, and :math:`s^2` the smallest mean
squared error of a candidate. Both problems are convex.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.optimize import nnls
from sklearn.model_selection import GroupKFold

from giw.estimators.candidates import TRAINING, Candidate, StepsAside, Tables, WeightsError
from giw.estimators.fitting import predictions
from giw.estimators.inputs import rows_of

Vector = NDArray[np.float64]


def stack_weights(
    left_out_loss: Vector,  # (q, m)
    *,
    prior: Vector,  # (q,)
    strength: float,
    weight: Vector | None = None,  # (m,)
    steps: int = 200,
) -> Vector:  # (q,)
    r"""Weights of a mixture by left-out log-losses; expectation and maximisation in turn.

    Parameters
    ----------
    left_out_loss : array of shape (q, m)
        :math:`-\log p_k(y_j \mid x_j)`.
    prior : array of shape (q,)
        Weights before any validation row is asked; they sum to one.
    strength : float
        The prior counts like so many validation rows.
    weight : array of shape (m,), optional
        Of the validation rows, mean one.
    """
    likelihood = np.exp(left_out_loss.min(axis=0) - left_out_loss)  # (q, m), at most one
    each = np.ones(likelihood.shape[1]) if weight is None else weight
    found = prior.copy()
    for _ in range(steps):
        part = found[:, None] * likelihood
        found = (part / part.sum(axis=0)) @ each + strength * prior
        found = found / found.sum()
    return found


def calibrated(probability: Vector, power: Vector) -> Vector:
    """Probabilities of candidates, (q, k, c), to a power each, (q,), and scaled to sum to one."""
    raised = np.log(probability) * power[:, None, None]
    raised = np.exp(raised - raised.max(axis=2, keepdims=True))
    return raised / raised.sum(axis=2, keepdims=True)


def calibration_powers(
    left_out: Vector,  # (q, m, c)
    y: NDArray[np.int64],  # (m,) columns of the labels
    *,
    strength: float,
    weight: Vector | None = None,  # (m,)
    steps: int = 33,
) -> Vector:  # (q,)
    """The power of each candidate that makes labels of left-out rows most likely.

    Parameters
    ----------
    strength : float
        What the squared logarithm of a power costs is half of it; with more of it powers are
        nearer to one.
    steps : int, default=33
        Powers that are tried, from 1/20 to 3.
    """
    each = np.ones(len(y)) if weight is None else weight
    # one is among them, so that candidates stay as they are where no row says otherwise
    tried = np.r_[1.0, np.geomspace(0.05, 3.0, steps)]
    rows = np.arange(len(y))
    loss = np.stack([
        -np.log(calibrated(left_out, np.full(len(left_out), b))[:, rows, y]) @ each
        + strength / 2 * np.log(b) ** 2
        for b in tried
    ])  # fmt: skip
    return tried[loss.argmin(axis=0)]


def mean_weights(
    left_out: Vector,  # (q, m) predicted numbers
    y: Vector,  # (m,)
    *,
    prior: Vector,  # (q,)
    strength: float,
    weight: Vector | None = None,  # (m,)
) -> Vector:  # (q,)
    """Weights of a mean of predicted numbers by left-out squared error; not negative, sum one."""
    each = np.ones(len(y)) if weight is None else weight
    error = np.square(left_out - y) @ each / each.sum()
    unit = np.sqrt(each / max(float(error.min()), 1e-12 * float(np.var(y)) + 1e-300))
    pull = np.sqrt(strength) * np.eye(len(prior))
    sum_to_one = 1e3 * (np.sqrt(strength) + np.linalg.norm((left_out - y) * unit))
    # the rows of one least-squares problem: errors, the prior, and the sum as a heavy row
    rows = np.vstack([((left_out - y) * unit).T, pull, np.full((1, len(prior)), sum_to_one)])
    found = nnls(rows, np.r_[np.zeros(len(y)), pull @ prior, sum_to_one])[0]
    return found / found.sum()


def difference(loss: Vector, is_val: NDArray[np.bool_], weight: Vector) -> float:
    r"""How plain it is that validation rows differ from training rows, 0 to 1.

    It is :math:`1 - e^{-z^2 / 2}`, with z the difference of mean losses in standard errors. The
    exponential is the likelihood of no difference beside that of the difference which was found.

    Parameters
    ----------
    loss : array of shape (n + m,)
        Of fits to training rows that have not seen the row.
    is_val : bool array of shape (n + m,)
        Which of them are validation rows.
    weight : array of shape (n + m,)
        Sample weights.
    """
    (mean, square), (val_mean, _) = (
        np.average(np.stack([loss[side], loss[side] ** 2]), axis=1, weights=weight[side])
        for side in (~is_val, is_val)
    )
    variance = max(square - mean**2, 1e-12) * (1 / is_val.sum() + 1 / (~is_val).sum())
    return float(-np.expm1(-((val_mean - mean) ** 2) / (2 * variance)))


def prior_rows(
    candidates: Sequence[Candidate],
    unlike: float,
    rows: int,
    classes: int | None,
    *,
    a_class: float = 10.0,
) -> Vector:  # (q,)
    r"""How many validation rows each candidate has on its side before any is asked.

    Where the tables plainly differ, half a row each: Jeffreys' prior of a mixture. Where they are
    alike, as many rows as there are candidates, shared by those that are right then. With m
    validation rows in c classes, the tables count as alike by

    .. math:: (1 - e) \, \frac{a c}{m + a c} ,

    because fewer rows a class cannot tell which candidate to believe. Of numbers, whose squared
    errors vary more, it is four rows for each candidate either way, and c is one.

    Parameters
    ----------
    unlike : float
        The evidence e that the tables differ, see :func:`difference`.
    rows : int
        m.
    classes : int or None
        c, or None for numbers.
    a_class : float, default=10
        Rows a class, a, at which no evidence of a difference counts half.
    """
    prior = np.array([c.prior for c in candidates], dtype=np.float64)
    prior = prior / prior.mean()
    if_alike = prior * [getattr(c, "if_alike", False) for c in candidates]
    few = a_class * (classes or 1)
    alike = (1 - unlike) * few / (rows + few) if if_alike.any() else 0.0
    else_, then = (4.0, 4.0) if classes is None else (0.5, 1.0)  # rows for each candidate
    found = (1 - alike) * else_ * prior
    return found + alike * then * len(prior) * if_alike / if_alike.sum() if alike else found


@dataclass(frozen=True)
class Mixture:
    """Weights and, of classes, powers of the candidates."""

    share: Vector  # (q,)
    power: Vector  # (q,)

    def mix(self, prediction: Vector) -> Vector:
        """The stack of predictions, (q, k, c) or (q, k)."""
        if prediction.ndim == 3:
            prediction = calibrated(prediction, self.power)
        return np.tensordot(self.share, prediction, axes=1)


def settled(
    counts: Vector,  # (q,) rows on the side of each candidate, by :func:`prior_rows`
    left_out: Vector,  # (q, m, c) probabilities, or (q, m) numbers
    y: NDArray[Any],  # (m,) columns of the labels, or numbers
    weight: Vector | None = None,  # (m,)
) -> Mixture:
    """The stack by left-out predictions, of classes or of numbers."""
    one, strength = np.ones(len(counts)), float(counts.sum())
    prior = counts / strength
    if not len(y):
        return Mixture(prior, one)
    if left_out.ndim == 2:
        share = mean_weights(left_out, y, prior=prior, strength=strength, weight=weight)
        return Mixture(share, one)
    power = calibration_powers(left_out, y, strength=float(len(counts)), weight=weight)
    loss = -np.log(calibrated(left_out, power)[:, np.arange(len(y)), y])
    share = stack_weights(loss, prior=prior, strength=strength, weight=weight)
    return Mixture(share, power)


def folds_of(
    label: NDArray[Any], folds: int, generator: np.random.Generator, groups: Any = None
) -> NDArray[np.int64]:
    """Folds that every class spreads over, or that keep the rows of a group together, (m,)."""
    fold = np.empty(len(label), dtype=np.int64)
    if groups is not None:
        for k, (_, rows) in enumerate(GroupKFold(folds).split(label, groups=np.asarray(groups))):
            fold[rows] = k
        return fold
    order = generator.permutation(len(label))
    fold[order[np.argsort(label[order], kind="stable")]] = np.arange(len(label)) % folds
    return fold


@dataclass(frozen=True)
class LeftOut:
    """What fits without each fold predict for the fold."""

    names: tuple[str, ...]
    prediction: Vector  # (q, m, c) probabilities, or (q, m) numbers
    loss: Vector  # (q, m) log-loss or squared error
    judged: Vector | None  # (n + m,) losses under fits to training rows that have not seen the row
    fold: NDArray[np.int64]  # (m,)
    notes: tuple[str, ...]
    unlike: float  # evidence that the tables differ, 0 to 1
    y: NDArray[Any]  # (m,) labels
    mixed: Vector  # (m, c) or (m,) the stack, by weights without the fold
    mixture: Mixture  # by all rows


def leave_out(
    candidates: Sequence[Candidate],
    data: Tables,
    generator: np.random.Generator,
    *,
    groups: Any = None,
    n_folds: int = 4,
    fold_rows: int = 3_000,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> LeftOut | None:
    """Predict every validation row by fits without its fold; none where there are no two folds.

    Folds are of training and validation rows; on many rows fits see ``fold_rows`` training rows.
    Candidates that need losses come second; the losses are those of fits to training rows alone,
    which have seen no validation label that another fit leaves out.
    """
    m = int(data.is_val.sum())
    n = len(data.is_val) - m
    most = n_folds if n <= 5 * fold_rows else min(n_folds, 3)
    folds = min(most, m if groups is None else len(np.unique(groups)))
    if folds < 2:
        return None
    strata = np.zeros(n + m) if data.classes is None else data.label
    fold = np.r_[folds_of(strata[:n], folds, generator),
                 folds_of(strata[n:], folds, generator, groups)]  # fmt: skip
    sample = np.ones(n + m, dtype=bool)
    if n > fold_rows:
        sample[:n] = False
        sample[generator.permutation(n)[:fold_rows]] = True
        data = replace(data, many=n / fold_rows)
    second = [c for c in candidates if getattr(c, "uses_losses", False)]
    first = {TRAINING.name: TRAINING} | {c.name: c for c in candidates if c not in second}

    def each_fold(some: Sequence[Candidate], data: Tables, name: str) -> dict[str, Any]:
        """Left-out predictions of validation rows, and of all rows by training alone."""
        asked = [data.is_val | (c.name == TRAINING.name) for c in some]
        tasks = [(_one_fold, c, data, sample & (fold != k), rows & (fold == k))
                 for c, rows in zip(some, asked, strict=True) for k in range(folds)]  # fmt: skip
        results = iter(run_all(tasks, n_jobs=n_jobs, verbose=verbose, name=name))
        return {c.name: _gathered([next(results) for _ in range(folds)], fold, rows)
                for c, rows in zip(some, asked, strict=True)}  # fmt: skip

    found = each_fold([*first.values()], data, "folds")
    judged, unlike = None, 1.0
    if not isinstance(found[TRAINING.name], str):
        judged = _loss(found[TRAINING.name], data)
        if data.classes is None:
            judged = _comparable(judged, data.is_val)
        unlike = difference(judged, data.is_val, data.weight)
    found |= each_fold(second, replace(data, loss=judged), "folds, weighted")
    kept = [c.name for c in candidates if not isinstance(found[c.name], str)]
    notes = [f"{c.name} steps aside: {found[c.name]}" for c in candidates if c.name not in kept]
    if not kept:
        raise ValueError("no candidate could be fitted: " + "; ".join(notes))
    prediction = np.stack([found[name][data.is_val] for name in kept])
    loss = np.stack([_loss(found[name], data)[data.is_val] for name in kept])
    y, weight, fold = data.label[n:], data.weight[n:], fold[n:]
    code = y if data.classes is None else np.searchsorted(data.classes, y)
    classes = None if data.classes is None else len(data.classes)
    counts = prior_rows([c for c in candidates if c.name in kept], unlike, m, classes)
    mixed = np.zeros_like(prediction[0])
    for k in range(folds):
        mine, rest = fold == k, fold != k
        others = settled(counts, prediction[:, rest], code[rest], weight[rest])
        mixed[mine] = others.mix(prediction[:, mine])
    return LeftOut(tuple(kept), prediction, loss, judged, fold, tuple(notes), unlike, y, mixed,
                   settled(counts, prediction, code, weight))  # fmt: skip


def run_all(
    tasks: Sequence[tuple[Any, ...]], *, n_jobs: int | None, verbose: bool, name: str
) -> list[Any]:
    """Results of (function, argument, ...) in order, by joblib, with a progress bar if wanted."""
    calls = (delayed(function)(*arguments) for function, *arguments in tasks)
    if not verbose:
        return list(Parallel(n_jobs)(calls))
    from rich.progress import track

    try:
        parallel = Parallel(n_jobs, return_as="generator")
    except ValueError:  # Ray's backend tells of nothing before all is done
        return list(Parallel(n_jobs)(calls))
    return list(track(parallel(calls), description=name, total=len(tasks)))


def _gathered(results: Sequence[Any], fold: NDArray[np.int64], rows: NDArray[np.bool_]) -> Any:
    """Predictions of all folds at their rows, or the first reason why there are none."""
    reasons = [result for result in results if isinstance(result, str)]
    if reasons:
        return reasons[0]
    found = np.zeros((len(fold), *results[0].shape[1:]))
    for k, result in enumerate(results):
        found[rows & (fold == k)] = result
    return found


def _one_fold(
    candidate: Candidate, data: Tables, seen: NDArray[np.bool_], asked: NDArray[np.bool_]
) -> Any:
    model = fit_candidate(candidate, data.only(np.flatnonzero(seen)))
    if isinstance(model, str):
        return model
    return predictions(model, rows_of(data.rows, asked), data.classes, limits=data.limits)


def fit_candidate(candidate: Candidate, data: Tables) -> Any:
    """A fitted model, or the reason why there is none."""
    try:
        return candidate.fit(data)
    except WeightsError:  # a mistake in what was asked for
        raise
    except StepsAside as reason:
        return str(reason)
    except Exception as error:  # a base may fail in any way; the other candidates go on
        return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def _loss(prediction: Vector, data: Tables) -> Vector:
    """Log-losses or squared errors at all rows, (n + m,)."""
    if data.classes is None:
        return np.square(prediction - data.label)
    mine = prediction[np.arange(len(prediction)), np.searchsorted(data.classes, data.label)]
    return -np.log(np.maximum(mine, 1e-12))


def _comparable(judged: Vector, is_val: NDArray[np.bool_]) -> Vector:
    r"""Squared errors as :math:`\log(1 + r^2 / s^2)`, s the typical error of validation rows."""
    scale = max(float(np.median(judged[is_val])) * 2.2, 1e-300)
    return np.log1p(judged / scale)
