"""Training labels that a model of the other training rows contradicts: hints, not proofs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta
from sklearn.ensemble import ExtraTreesClassifier

from giw.support.neighbours import row_key, rows_repeat_by_nature

FOLDS = 5
TREES = 40
CONFIDENT = 0.5  # share of the rows, the most confident ones, in which noise is looked for
CLEAR = 0.5  # lead in probability of another label that makes a row a suspect
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Suspect:
    """A training row whose label is contradicted."""

    row: int
    label: str
    likely: str
    probability: float  # of the likely label


@dataclass(frozen=True)
class LabelNoise:
    """Disagreement where the model is confident, in training and in validation.

    Attributes
    ----------
    train, val : float
        Share of labels that differ from the model's, among rows of which it is most confident.
        Classes that overlap do so where it is not confident; noise is everywhere.
    train_interval, val_interval : tuples of two floats
        95 % intervals (Clopper-Pearson); ``val`` is over rows inside the training support.
    val_rows : int
        Validation rows behind ``val``.
    suspects : tuple of Suspect
        The clearest cases, the clearest first.
    n_suspects : int
        All training rows where another label leads by 50 points.
    rows : int
        Training rows that were looked at.
    """

    train: float
    train_interval: tuple[float, float]
    val: float
    val_interval: tuple[float, float]
    val_rows: int
    suspects: tuple[Suspect, ...]
    n_suspects: int
    rows: int


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """Class probabilities from models that have not seen the row.

    Attributes
    ----------
    train : array of shape (n, c)
    val : array of shape (folds, m, c)
        From each of the models, none of which has seen validation rows.
    """

    train: Floats
    val: Floats

    def surprise(self, label_train: Ints, label_val: Ints) -> tuple[Floats, Floats]:
        """One minus the probability of the row's own label, (n,) and (m,).

        Each row is judged by one model. The mean of all that have not seen a validation row would
        have less noise than the one that has not seen a training row.
        """
        train, val = np.arange(len(label_train)), np.arange(len(label_val))
        model = val % len(self.val)
        return 1 - self.train[train, label_train], 1 - self.val[model, val, label_val]

    def wrong(self, label_train: Ints, label_val: Ints) -> tuple[Floats, Floats]:
        """Whether the likeliest label is another, (n,) and, on average over the models, (m,)."""
        train, val = self.train.argmax(axis=1), self.val.argmax(axis=2)  # (n,), (folds, m)
        return (train != label_train).astype(float), (val != label_val).mean(axis=0)


def cross_fit(
    z_train: Floats,
    label_train: Ints,
    z_val: Floats,
    *,
    classes: int,
    generator: np.random.Generator,
) -> CrossFitted:
    """Fit forests to training labels, each without one fold, and predict what it has not seen.

    A validation row that is a training row too is judged by the one forest that has not seen it.
    """
    order = generator.permutation(len(z_train))
    fold = np.empty(len(z_train), dtype=np.int64)
    fold[order[np.argsort(label_train[order], kind="stable")]] = np.arange(len(order)) % FOLDS
    train = np.zeros((len(z_train), classes))
    val = np.zeros((FOLDS, len(z_val), classes))
    for number in range(FOLDS):
        rest, rows = fold != number, fold == number
        seed = int(generator.integers(2**31))
        forest = ExtraTreesClassifier(TREES, min_samples_leaf=3, max_depth=20, random_state=seed)
        forest.fit(z_train[rest], label_train[rest])
        columns = forest.classes_
        if rows.any():
            train[np.ix_(rows, columns)] = forest.predict_proba(z_train[rows])
        if len(z_val):
            val[number][:, columns] = forest.predict_proba(z_val)
    twin = twins(z_train, z_val)
    also = np.flatnonzero(twin >= 0)
    val[:, also] = val[fold[twin[also]], also]
    return CrossFitted(train, val)


def twins(z_train: Floats, z_val: Floats) -> Ints:
    """The training row that a validation row is a copy of, or -1, (m,).

    Where no column measures anything, rows repeat by nature, and none is a copy.
    """
    both = np.concatenate([z_train, z_val])
    if not len(z_val) or rows_repeat_by_nature(both):
        return np.full(len(z_val), -1)
    _, first, code = np.unique(row_key(both), return_index=True, return_inverse=True)
    place = first[code[len(z_train) :]]
    return np.where(place < len(z_train), place, -1)


def look_for_noise(
    fitted: CrossFitted,
    label_train: Ints,
    label_val: Ints,  # of the validation rows inside the training support
    *,
    names: Sequence[str],
    row_numbers: Ints,
    most: int = 20,
) -> LabelNoise:
    """Count disagreement among confident rows and list the clearest suspects.

    Parameters
    ----------
    fitted : CrossFitted
        With as many validation rows as ``label_val``.
    label_train, label_val : arrays of shape (n,) and (m,)
        Codes.
    names : list of str
        What the codes mean.
    row_numbers : array of shape (n,)
        Where the rows stand in the user's table.
    most : int, default=20
        Suspects to list.
    """
    probability = fitted.train  # (n, c)
    best, confidence = probability.argmax(axis=1), probability.max(axis=1)
    cut = float(np.quantile(confidence, 1 - CONFIDENT))
    sure = confidence >= cut
    wrong = best != label_train
    val_probability = fitted.val.mean(axis=0)  # (m, c)
    val_sure = val_probability.max(axis=1) >= cut if len(label_val) else np.zeros(0, dtype=bool)
    val_wrong = val_probability.argmax(axis=1) != label_val if len(label_val) else val_sure
    lead = confidence - probability[np.arange(len(best)), label_train]
    suspects = np.flatnonzero(lead >= CLEAR)
    suspects = suspects[np.argsort(-lead[suspects], kind="stable")]
    train_share, train_interval = _share(int((wrong & sure).sum()), int(sure.sum()))
    val_share, val_interval = _share(int((val_wrong & val_sure).sum()), int(val_sure.sum()))
    return LabelNoise(
        train=train_share,
        train_interval=train_interval,
        val=val_share,
        val_interval=val_interval,
        val_rows=int(val_sure.sum()),
        suspects=tuple(
            Suspect(
                int(row_numbers[j]),
                names[label_train[j]],
                names[int(best[j])],
                float(confidence[j]),
            )
            for j in suspects[:most]
        ),
        n_suspects=len(suspects),
        rows=len(label_train),
    )


def _share(k: int, n: int) -> tuple[float, tuple[float, float]]:
    """A share with its exact binomial interval; nothing is known of no rows."""
    if n == 0:
        return 0.0, (0.0, 1.0)
    low = float(beta.ppf(0.025, k, n - k + 1)) if k else 0.0
    high = float(beta.ppf(0.975, k + 1, n - k)) if k < n else 1.0
    return k / n, (low, high)
