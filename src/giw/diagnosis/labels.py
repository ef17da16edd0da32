"""Labels given features: have they shifted, what does that cost a model, and which are wrong?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.utils import _safe_indexing as rows_at

from giw.diagnosis.findings import Finding, a_test, percent
from giw.diagnosis.membership import BLOCKS
from giw.diagnosis.shift_tests import AT_A_TIME, DRAWS, FEWEST
from giw.support.scores import row_key, rows_repeat_by_nature

FOLDS = 5  # models of training labels, each without one part of the rows
CLEAR = 0.5  # lead in probability of another label that makes a row a suspect
MOST_ODDS = 20.0  # a training row counts for at most so many in the size of the effect
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """Class probabilities from models that have not seen the row.

    Attributes
    ----------
    train : array of shape (n, c)
    val : array of shape (folds, m, c)
        From each of the models, none of which has seen validation rows.
    fold : array of shape (n,)
        Which of the models has not seen a training row.
    """

    train: Floats
    val: Floats
    fold: Ints

    def surprise(self, label_train: Ints, label_val: Ints) -> tuple[Floats, Floats]:
        """One minus the probability of the row's own label, (n,) and (m,).

        Each row is judged by one model. The mean of all that have not seen a validation row would
        have less noise than the one that has not seen a training row.
        """
        train, val = np.arange(len(label_train)), np.arange(len(label_val))
        model = val % len(self.val)
        return 1 - self.train[train, label_train], 1 - self.val[model, val, label_val]

    def sureness(self) -> tuple[Floats, Floats]:
        """The largest probability and the sum of all squared, by that model, (n, 2) and (m, 2)."""
        val = np.arange(self.val.shape[1])
        train, own = (
            np.stack([p.max(axis=1), np.square(p).sum(axis=1)], axis=1)
            for p in (self.train, self.val[val % len(self.val), val])
        )
        return train, own

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
        forest = ExtraTreesClassifier(40, min_samples_leaf=3, max_depth=20, random_state=seed)
        forest.fit(z_train[rest], label_train[rest])
        if rows.any():
            train[np.ix_(rows, forest.classes_)] = forest.predict_proba(z_train[rows])
        if len(z_val):
            val[number][:, forest.classes_] = forest.predict_proba(z_val)
    twin = twins(z_train, z_val)
    also = np.flatnonzero(twin >= 0)
    val[:, also] = val[fold[twin[also]], also]
    return CrossFitted(train, val, fold)


def wrong_by(
    model: Any, X: Any, y: Any, X_val: Any, y_val: Any, rows: tuple[Ints, Ints], fold: Ints
) -> tuple[Floats, Floats]:
    """What copies of a user's model, each fitted without one fold, get wrong, as 0 or 1."""
    old, new = rows
    wrong, wrong_val = np.zeros(len(old)), np.zeros(len(new))
    (labels, labels_val), X_new = (np.asarray(side) for side in (y, y_val)), rows_at(X_val, new)
    for number in np.unique(fold):
        rest, here = old[fold != number], fold == number
        fitted = clone(model).fit(rows_at(X, rest), labels[rest])
        wrong[here] = fitted.predict(rows_at(X, old[here])) != labels[old[here]]
        wrong_val += (fitted.predict(X_new) != labels_val[new]) / len(np.unique(fold))
    return wrong, wrong_val


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


# Have labels shifted? -----------------------------------------------------------------------------


def label_test(
    odds: tuple[Floats, Floats],
    left: tuple[Floats, Floats],
    generator: np.random.Generator,
) -> Finding | None:
    r"""Are labels more, or less, surprising than those of training rows with the same features?

    The surprise f of a row is one minus the probability of its label, by a model of *other*
    training rows; whether that model is wrong is a second f, which sees exchanged labels better
    where the model is unsure. With :math:`d = 1` for validation rows and 0 for training rows,
    :math:`\hat e(x)` the chance of being a validation row, from ``odds``, and :math:`\hat\mu(x)`
    a regression of f on the features, the test takes the larger of the two

    .. math:: T = \Big|\sum_i (d_i - \hat e_i) (f_i - \hat\mu_i)\Big| \Big/
              \Big(\sum_i \hat e_i (1 - \hat e_i) (f_i - \hat\mu_i)^2\Big)^{1/2} .

    If equal features get equal labels, a row's label says nothing about which side it is from.
    Then the sums have mean zero if either estimate is right [1]_, and the sides can be redrawn
    from the features alone, :math:`d^*_i \sim {\rm Bernoulli}(\hat e(x_i))`: the p-value is the
    share of redrawn sides that give a T at least as large [2]_. No variance is estimated, and the
    few validation rows, whose surprises are mostly small and seldom large, need not be many enough
    for a normal distribution.

    How much has shifted is told by what is wrong, as the mean over validation rows less that of
    training rows weighted to have their features, both after the regression. Only rows inside the
    training support belong here: elsewhere training has no labels to compare with.

    Parameters
    ----------
    odds : arrays of shape (n,) and (m,)
    left : arrays of shape (n, 2) and (m, 2)
        What the regression leaves of the surprise, and of whether a label is wrong.
    generator : numpy generator

    References
    ----------
    .. [1] Shah and Peters, Annals of Statistics 48:1514-1538, 2020.
    .. [2] Candès, Fan, Janson and Lv, JRSS B 80:551-577, 2018.
    """
    (n, _), (m, _) = (side.shape for side in left)
    if min(n, m) < FEWEST:
        return None
    is_val = np.repeat([0.0, 1.0], [n, m])
    chance = calibrated(np.concatenate(odds), is_val)
    p_value = redrawn_p_value(is_val, chance, np.concatenate(left), generator)
    (there, here), share = (side[:, 1] for side in left), shares(odds[0])
    base = float(share @ there)
    effect = abs(float(here.mean()) - base)
    error = np.sqrt(here.var(ddof=1) / m + np.sum(np.square(share * (there - base))))
    return a_test("label", effect, float(error), p_value, rows=(n, m))


def shares(odds: Floats) -> Floats:
    """Weights of training rows that sum to one."""
    share = np.minimum(odds, MOST_ODDS * odds.mean())
    return share / share.sum()


def calibrated(odds: Floats, is_val: Floats) -> Floats:
    """Chances of being a validation row: logistic in the log odds, never falling in them, (n,).

    Odds of a model that learnt noise are too far from even; asked about rows that it has not seen,
    the slope tells by how much. Where it is not above zero, all rows have the same chance.
    """
    log_odds = np.log(odds)
    constant = np.full(len(is_val), is_val.mean())
    if np.ptp(log_odds) < 1e-9:
        return constant
    scaled = ((log_odds - log_odds.mean()) / log_odds.std())[:, None]
    rule = LogisticRegression(C=10.0).fit(scaled, is_val)
    if rule.coef_[0, 0] <= 0:
        return constant
    return np.asarray(rule.predict_proba(scaled)[:, 1], dtype=np.float64)


def redrawn_p_value(
    is_val: Floats, chance: Floats, left: Floats, generator: np.random.Generator
) -> float:
    """Share of redrawn memberships that go with a column of ``left`` (N, k) at least as closely.

    In both directions, each sum in units of its own spread. The memberships as they are count as
    one of the draws, so that the level holds exactly where ``chance`` is right.
    """
    spread = np.sqrt(chance * (1 - chance) @ np.square(left))
    left = left / np.where(spread > 0, spread, 1.0)
    seen, expected = np.abs((is_val - chance) @ left).max(), chance @ left
    at_least = 1
    for _ in range(DRAWS // AT_A_TIME):
        redrawn = generator.random((AT_A_TIME, len(left))) < chance
        at_least += int((np.abs(redrawn @ left - expected).max(axis=1) >= seen - 1e-9).sum())
    return at_least / (1 + DRAWS)


def expected_of(
    z: Floats,  # (N, d)
    f: Floats,  # (N, k)
    generator: np.random.Generator,
    learn: Bools | None = None,  # (N,)
) -> Floats:  # (N, k)
    """What rows with the same features have, by other rows; of those in ``learn``, if given."""
    block = generator.permutation(len(z)) % BLOCKS
    expected = np.empty(f.shape)
    tried = min(1.0, max(0.3, 10 / z.shape[1]))  # of few features all, or trees are too coarse
    for number in range(BLOCKS):
        rest = (block != number) & (True if learn is None else learn)
        # a least size of leaves would make these trees give up: they try one random cut per feature
        forest = ExtraTreesRegressor(
            30, min_samples_split=10, max_depth=14, max_features=tried,
            random_state=int(generator.integers(2**31)),
        ).fit(z[rest], f[rest].squeeze())  # fmt: skip
        if (block == number).any():
            expected[block == number] = forest.predict(z[block == number]).reshape(-1, f.shape[1])
    return expected


def unexplained(
    z: Floats,  # (N, d)
    sure: Floats,  # (N, 2)
    surprise: Floats,  # (N,)
    generator: np.random.Generator,
) -> Floats:  # (N,)
    """What is left of the surprise after the models' own sureness and the features.

    Rows of both sides say what to expect, so that it does not depend on which side a row is from.
    Sureness comes first: where training rows are few the models of different rows differ, each
    less sure of the very rows that it lacks.
    """
    left = surprise[:, None]
    for features in (sure, z):
        left = left - expected_of(features, left, generator)
    return left[:, 0]


# What it costs ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """Why a model's error rate differs between the two tables.

    Attributes
    ----------
    model : str
    train, val : float
        Error rate of models that have not seen the row, in training and in validation.
    parts : tuple of (str, float, float, float)
        "covariate": features that training has seen and that are harder; "concept": labels given
        features; "outside": features that training has not. Each with its 95 % interval; they add
        up to ``val`` less ``train``.
    """

    model: str
    train: float
    val: float
    parts: tuple[tuple[str, float, float, float], ...]


def cost_of_shift(
    loss: tuple[Floats, Floats],  # (n,), (m,)
    expected: tuple[Floats, Floats],  # (n,), (m inside,)
    odds: Floats,  # (n,)
    inside: Bools,  # (m,)
    generator: np.random.Generator,
    *,
    model: str,
    draws: int = 1_000,
) -> Cost:
    r"""Decompose a difference of mean losses, in the order of [1]_.

    With a share :math:`s` of validation inside the training support and
    :math:`a` the training loss at the features of inside rows, weighted and corrected by a
    regression, the parts are

    .. math:: s\,(a - \ell_{\rm train}), \qquad s\,(\ell_{\rm inside} - a), \qquad
              (1 - s)(\ell_{\rm outside} - \ell_{\rm train}) .

    Intervals are those of rows drawn again; weights and regression stay as they are.

    References
    ----------
    .. [1] Cai, Namkoong and Yadlowsky, Diagnosing model performance under distribution shift, 2023.
    """
    n, m = (len(side) for side in loss)
    there = shares(odds) * n * (loss[0] - expected[0])  # (n,)
    hoped = np.zeros(m)
    hoped[inside] = expected[1]

    def parts(counts: Floats, counts_val: Floats) -> Floats:  # (draws, n), (draws, m) → (3, draws)
        weight, base = counts @ shares(odds) * n, counts @ loss[0] / n
        correction = counts @ there / np.maximum(weight, 1e-12)
        within = counts_val @ inside
        a = within * correction + counts_val @ hoped
        here = counts_val @ (loss[1] * inside)
        outside = counts_val @ (loss[1] * ~inside)
        return np.stack([a - within * base, here - a, outside - (m - within) * base]) / m

    told = parts(np.ones((1, n)), np.ones((1, m)))[:, 0]
    drawn = np.concatenate([
        parts(*(generator.multinomial(k, np.full(k, 1 / k), 100).astype(float) for k in (n, m)))
        for _ in range(draws // 100)
    ], axis=1)  # fmt: skip
    low, high = np.quantile(drawn, [0.025, 0.975], axis=1)
    named = zip(("covariate", "concept", "outside"), told, low, high, strict=True)
    rows = tuple((name, float(v), float(a), float(b)) for name, v, a, b in named)
    return Cost(model, float(loss[0].mean()), float(loss[1].mean()), rows)


# Which training labels are wrong? -----------------------------------------------------------------


@dataclass(frozen=True)
class ListedRow:
    """A validation row outside the training support, or a training row likely to be mislabelled.

    Attributes
    ----------
    table : {"validation", "training"}
    row, line : int
        Its place in the table, from 0, and as a spreadsheet counts it: names are in line 1.
    p_value : float or None
        Of a row outside: how often a training row is as far from the others as this one.
    column, value : str
        What did it, and what stands there.
    label, likely : str or None
        Its label, and the likelier one where that label is likely wrong.
    probability : float or None
        Of the likelier label.
    text : str
        Why it is listed.
    columns : tuple of str
        All columns that did it, the strongest first.
    """

    table: str
    row: int
    line: int
    p_value: float | None
    column: str
    value: str
    label: str | None
    likely: str | None
    probability: float | None
    text: str
    columns: tuple[str, ...] = ()


def suspects_among(
    fitted: CrossFitted, label: Ints, *, names: Sequence[str], row_numbers: Ints
) -> tuple[ListedRow, ...]:
    """Training rows where another label leads by 50 points, the clearest first.

    Labels are codes whose meaning ``names`` says; ``row_numbers`` are those of the user's table.
    """
    best, confidence = fitted.train.argmax(axis=1), fitted.train.max(axis=1)
    lead = confidence - fitted.train[np.arange(len(best)), label]
    clear = np.flatnonzero(lead >= CLEAR)

    def listed(j: int) -> ListedRow:
        row, own, likely = int(row_numbers[j]), names[label[j]], names[best[j]]
        chance = float(confidence[j])
        text = f"label {own}, likelier {likely} ({percent(chance)})"
        return ListedRow("training", row, row + 2, None, "(label)", own, own, likely, chance, text)

    return tuple(map(listed, clear[np.argsort(-lead[clear], kind="stable")]))
