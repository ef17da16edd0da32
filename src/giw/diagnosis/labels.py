"""Labels given features: have they shifted, what does that cost a model, and which are wrong?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.utils import _safe_indexing as rows_at

from giw.diagnosis.data import Side
from giw.diagnosis.findings import (
    FEWEST,
    Bools,
    Finding,
    Floats,
    Ints,
    ListedRow,
    a_test,
    percent,
)
from giw.diagnosis.shift_tests import together
from giw.support.scores import row_key, rows_repeat_by_nature


class OfLabels(NamedTuple):
    """What labels say; the surprise of a row is one minus the probability of its label."""

    surprise: tuple[Floats, Floats]  # (n, 1), (m, 1), or (n, 0), (m, 0) where none is known
    test: Finding | None = None
    by_features: float = 1.0  # the p-value of the test by features alone, whatever class shares say
    suspects: tuple[ListedRow, ...] = ()
    cost: Cost | None = None


def ask_of_labels(
    train: Side,
    val: Side,
    z: tuple[Floats, Floats],  # (n, d), (m, d)
    inside: Bools,  # (m,)
    odds: tuple[Floats, Floats],  # (n,), (m inside,) of being a validation row
    classes: tuple[str, ...],
    user: tuple[Any, ...] | None,  # a model, and X, y, X_val, y_val as they came
    generator: np.random.Generator,
    *,
    mixed: bool,
) -> OfLabels:
    """Cross-fit labels of training rows and ask all that can be asked of them.

    Only validation rows inside the training support take part in the test: elsewhere training has
    no labels to compare with. Where class shares are ``mixed`` otherwise in validation, which alone
    gives equal features other labels, rows are compared at equal features and class shares.
    """
    if train.y is None or val.y is None or len(np.unique(train.y)) < 2:
        return OfLabels((np.zeros((len(train), 0)), np.zeros((len(val), 0))))
    p_train, p_val, fold = cross_fit(z[0], train.y, z[1], classes=len(classes), generator=generator)
    row, (y, is_val) = np.arange(len(val)), together(train.y, val.y)
    # the mean of all forests would have less noise than the one that has not seen a training row
    p = np.concatenate([p_train, p_val[row % len(p_val), row]])
    surprise = 1 - p[np.arange(len(y)), y][:, None]
    wrong = (p_train.argmax(axis=1) != train.y) * 1.0, (p_val.argmax(axis=2) != val.y).mean(axis=0)
    loss = wrong if user is None else wrong_by(user, train.row, val.row, fold)
    test, by_features, cost = None, 1.0, None
    if min(len(train), inside.sum()) >= FEWEST:
        used = np.concatenate([np.ones(len(train), dtype=bool), inside])
        features, is_val = np.concatenate(z)[used], is_val[used]
        f = np.column_stack([np.concatenate(wrong), np.concatenate(loss)])[used]
        hoped = expected_of(features, f, generator, ~is_val)
        # Rows of both sides say what surprise to expect, so that it does not depend on the side.
        # Sureness comes first: where training rows are few the models of different rows differ,
        # each less sure of the very rows that it lacks.
        left = surprise[used]
        for known in (np.stack([p.max(axis=1), np.square(p).sum(axis=1)], axis=1)[used], features):
            left = left - expected_of(known, left, generator)
        left = np.column_stack([left, f[:, 0] - hoped[:, 0]])
        both, weights = np.concatenate(odds), [odds[0]]
        chance = calibrated(both, is_val, np.zeros(len(both)))
        test = label_test(chance, odds[0], is_val, left, generator)
        by_features = test.p_value
        if mixed:
            chance = calibrated(both, is_val, y[used])
            weights.append((chance / (1 - chance))[~is_val])
            test = label_test(chance, weights[1], is_val, left, generator.spawn(1)[0])
        name = "A forest" if user is None else type(user[0]).__name__
        cost = cost_of_shift(loss, hoped[:, 1], weights, inside, generator, model=name)
    suspects = suspects_among(p_train, train.y, classes, train.row)
    n = len(train)
    return OfLabels((surprise[:n], surprise[n:]), test, by_features, suspects, cost)


# Models that have not seen the row ----------------------------------------------------------------


def cross_fit(
    z_train: Floats, y: Ints, z_val: Floats, *, classes: int, generator: np.random.Generator,
    folds: int = 5,
) -> tuple[Floats, Floats, Ints]:  # fmt: skip
    """Class probabilities by forests that are each fitted without one fold of the training rows.

    Those of training rows by the forest that has not seen them, (n, c), of validation rows by each
    forest, (folds, m, c), and the folds, (n,). A validation row that is a training row too is
    judged by the one forest that has not seen it.
    """
    order = generator.permutation(len(z_train))
    fold = np.empty(len(z_train), dtype=np.int64)
    fold[order[np.argsort(y[order], kind="stable")]] = np.arange(len(order)) % folds
    train = np.zeros((len(z_train), classes))
    val = np.zeros((folds, len(z_val), classes))
    for number in range(folds):
        rest, rows = fold != number, fold == number
        seed = int(generator.integers(2**31))
        forest = ExtraTreesClassifier(40, min_samples_leaf=3, max_depth=20, random_state=seed)
        forest.fit(z_train[rest], y[rest])
        if rows.any():
            train[np.ix_(rows, forest.classes_)] = forest.predict_proba(z_train[rows])
        if len(z_val):
            val[number][:, forest.classes_] = forest.predict_proba(z_val)
    twin = twins(z_train, z_val)
    also = np.flatnonzero(twin >= 0)
    val[:, also] = val[fold[twin[also]], also]
    return train, val, fold


def wrong_by(user: tuple[Any, ...], old: Ints, new: Ints, fold: Ints) -> tuple[Floats, Floats]:
    """What copies of a user's model, each fitted without one fold, get wrong, as 0 or 1."""
    model, X, y, X_val, y_val = user
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
    chance: Floats,  # (N,)
    weight: Floats,  # (n,) of training rows, which make them like validation rows
    is_val: Bools,  # (N,)
    left: Floats,  # (N, 2)
    generator: np.random.Generator,
) -> Finding:
    r"""Are labels more, or less, surprising than those of training rows with the same features?

    The surprise f of a row is one minus the probability of its label, by a model of *other*
    training rows; whether that model is wrong is a second f, which sees exchanged labels better
    where the model is unsure. With :math:`d = 1` for validation rows and 0 for training rows,
    :math:`\hat e(x)` the ``chance`` of being a validation row, and ``left`` what a regression
    :math:`\hat\mu(x)` leaves of either f, the test takes the larger of the two

    .. math:: T = \Big|\sum_i (d_i - \hat e_i) (f_i - \hat\mu_i)\Big| \Big/
              \Big(\sum_i \hat e_i (1 - \hat e_i) (f_i - \hat\mu_i)^2\Big)^{1/2} .

    If equal features get equal labels, a row's label says nothing about which side it is from.
    Then the sums have mean zero if either estimate is right [1]_, and the sides can be redrawn
    from the features alone, :math:`d^*_i \sim {\rm Bernoulli}(\hat e(x_i))`: the p-value is the
    share of redrawn sides that give a T at least as large [2]_. Where class shares differ, the
    chance depends on the label too: :func:`calibrated`.

    How much has shifted is told by what is wrong, as the mean over validation rows less that of
    training rows weighted to have their features, both after the regression.

    References
    ----------
    .. [1] Shah and Peters, Annals of Statistics 48:1514-1538, 2020.
    .. [2] Candès, Fan, Janson and Lv, JRSS B 80:551-577, 2018.
    """
    p_value = redrawn_p_value(is_val, chance, left, generator)
    share, there, here = shares(weight), left[~is_val, 1], left[is_val, 1]
    base = float(share @ there)
    error = np.sqrt(here.var(ddof=1) / len(here) + np.sum(np.square(share * (there - base))))
    return a_test("label", p_value, abs(float(here.mean()) - base), float(error))


def shares(odds: Floats, most: float = 20.0) -> Floats:
    """Weights of training rows that sum to one; a row counts for at most ``most`` rows."""
    share = np.minimum(odds, most * odds.mean())
    return share / share.sum()


def calibrated(odds: Floats, is_val: Bools, label: NDArray[Any]) -> Floats:
    r"""Chances of being a validation row: logistic in the log odds, never falling in them, (n,).

    Odds of a model that learnt noise are too far from even; asked about rows that it has not seen,
    the slope tells by how much. Every ``label`` has an intercept of its own: if only class shares
    differ, a row's side depends on its label and on nothing else, and if only the features do, on
    its features and on nothing else.
    """
    classes, code = np.unique(label, return_inverse=True)
    log_odds, own = np.log(odds), np.eye(len(classes))[code][:, 1:]  # (n,), (n, c - 1)
    if np.ptp(log_odds) >= 1e-9:
        known = np.column_stack([(log_odds - log_odds.mean()) / log_odds.std(), own])
        rule = LogisticRegression(C=10.0).fit(known, is_val)
        if rule.coef_[0, 0] > 0:
            return np.asarray(rule.predict_proba(known)[:, 1], dtype=np.float64)
    return (np.bincount(code, is_val) / np.bincount(code))[code]


def redrawn_p_value(
    is_val: Bools, chance: Floats, left: Floats, generator: np.random.Generator, draws: int = 2_000
) -> float:
    """Share of redrawn memberships that go with a column of ``left`` (N, k) at least as closely.

    In both directions, each sum in units of its own spread. The memberships as they are count as
    one of the draws, so that the level holds exactly where ``chance`` is right.
    """
    spread = np.sqrt(chance * (1 - chance) @ np.square(left))
    left = left / np.where(spread > 0, spread, 1.0)
    seen, expected = np.abs((is_val - chance) @ left).max(), chance @ left
    at_least = 1
    for _ in range(draws // 100):
        redrawn = generator.random((100, len(left))) < chance
        at_least += int((np.abs(redrawn @ left - expected).max(axis=1) >= seen - 1e-9).sum())
    return at_least / (1 + draws)


def expected_of(
    z: Floats,  # (N, d)
    f: Floats,  # (N, k)
    generator: np.random.Generator,
    learn: Bools | bool = True,  # (N,)
    blocks: int = 5,
) -> Floats:  # (N, k)
    """What rows with the same features have, by other rows; of those in ``learn``."""
    block = generator.permutation(len(z)) % blocks
    expected = np.empty(f.shape)
    tried = min(1.0, max(0.3, 10 / z.shape[1]))  # of few features all, or trees are too coarse
    for number in range(blocks):
        rest, rows = (block != number) & learn, block == number
        # a least size of leaves would make these trees give up: they try one random cut per feature
        forest = ExtraTreesRegressor(
            30, min_samples_split=10, max_depth=14, max_features=tried,
            random_state=int(generator.integers(2**31)),
        ).fit(z[rest], f[rest].squeeze())  # fmt: skip
        if rows.any():
            expected[rows] = forest.predict(z[rows]).reshape(-1, f.shape[1])
    return expected


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
        "covariate": features that training has seen and that are harder; "class prior": class
        shares, where they differ; "concept": labels given features; "outside": features that
        training has not. Each with its 95 % interval; they add up to ``val`` less ``train``.
    """

    model: str
    train: float
    val: float
    parts: tuple[tuple[str, float, float, float], ...]


def cost_of_shift(
    loss: tuple[Floats, Floats],  # (n,), (m,)
    expected: Floats,  # (n + m inside,)
    weights: Sequence[Floats],  # (n,) by features, and by features and class shares if they differ
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

    Where class shares differ, the second one is divided once more, at the training loss at the
    features and class shares of inside rows. Intervals are those of rows drawn again; weights and
    regression stay as they are.

    References
    ----------
    .. [1] Cai, Namkoong and Yadlowsky, Diagnosing model performance under distribution shift, 2023.
    """
    n, m = (len(side) for side in loss)
    hoped = np.zeros(m)
    hoped[inside] = expected[n:]

    def parts(counts: Floats, counts_val: Floats) -> Floats:  # (draws, n), (draws, m) → (k, draws)
        base, within = counts @ loss[0] / n, counts_val @ inside
        steps = [within * base]
        for share in map(shares, weights):
            there = counts @ (share * (loss[0] - expected[:n])) / np.maximum(counts @ share, 1e-12)
            steps.append(within * there + counts_val @ hoped)
        here, outside = (counts_val @ (loss[1] * side) for side in (inside, ~inside))
        differences = [after - before for before, after in pairwise([*steps, here])]
        return np.stack([*differences, outside - (m - within) * base]) / m

    told = parts(np.ones((1, n)), np.ones((1, m)))[:, 0]
    drawn = np.concatenate([
        parts(*(generator.multinomial(k, np.full(k, 1 / k), 100).astype(float) for k in (n, m)))
        for _ in range(draws // 100)
    ], axis=1)  # fmt: skip
    ends = np.quantile(drawn, [0.025, 0.975], axis=1)
    kinds = ["covariate", *["class prior"] * (len(weights) - 1), "concept", "outside"]
    named = zip(kinds, *np.stack([told, *ends]).tolist(), strict=True)
    return Cost(model, float(loss[0].mean()), float(loss[1].mean()), tuple(named))


# Which training labels are wrong? -----------------------------------------------------------------


def suspects_among(
    p: Floats, y: Ints, names: tuple[str, ...], row: Ints, clear: float = 0.5
) -> tuple[ListedRow, ...]:
    """Training rows where another label leads by ``clear`` in probability, the clearest first.

    Their probabilities are ``p`` (n, c), and their numbers in the user's table ``row``.
    """
    best, most = p.argmax(axis=1), p.max(axis=1)
    lead = most - p[np.arange(len(y)), y]
    listed = []
    for j in sorted(np.flatnonzero(lead >= clear), key=lambda j: -lead[j]):
        own, likely, chance, place = names[y[j]], names[best[j]], float(most[j]), int(row[j])
        text = f"label {own}, likelier {likely} ({percent(chance)})"
        of_row = ("training", place, place + 2, None, "(label)", own, own, likely, chance, text)
        listed.append(ListedRow(*of_row))
    return tuple(listed)
