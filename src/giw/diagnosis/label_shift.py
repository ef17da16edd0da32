"""Do equal features get other labels? Asked by redrawing which rows are validation rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import LogisticRegression

from giw.diagnosis.membership import BLOCKS, TREES
from giw.diagnosis.shift_tests import AT_A_TIME, DRAWS, FEWEST, ShiftTest, as_test

MOST_ODDS = 20.0  # a training row counts for at most so many in the size of the effect

Floats = NDArray[np.float64]


def label_test(
    z_train: Floats,
    z_val: Floats,
    odds: tuple[Floats, Floats],
    surprise: tuple[Floats, Floats],
    wrong: tuple[Floats, Floats],
    generator: np.random.Generator,
) -> ShiftTest | None:
    r"""Are labels more, or less, surprising than those of training rows with the same features?

    ``surprise`` :math:`f` is one minus the probability that a model fitted to *other* training rows
    gives to a row's label, ``wrong`` whether that model would have said another. With :math:`d = 1`
    for validation rows and 0 for training rows, :math:`\hat e(x)` the chance of being a validation
    row and :math:`\hat\mu(x)` a regression of the surprise on the features, both from rows other
    than the one they are asked about, the test takes

    .. math:: T = \sum_i (d_i - \hat e(x_i)) (f_i - \hat\mu(x_i)) .

    If equal features get equal labels, a row's label says nothing about which side it is from.
    Then T has mean zero if either of the two estimates is right [1]_, and the sides can be redrawn
    from the features alone, :math:`d^*_i \sim {\rm Bernoulli}(\hat e(x_i))`: the p-value is the
    share of redrawn sides that give a T at least as large [2]_. No variance is estimated, and the
    few validation rows, whose surprises are mostly small and seldom large, need not be many enough
    for a normal distribution.

    How much has shifted is told by what is wrong, as the mean over validation rows less that of
    training rows weighted to have their features, both after the regression. Only rows inside the
    training support belong here: elsewhere training has no labels to compare with.

    Parameters
    ----------
    z_train, z_val : arrays of shape (n, d) and (m, d)
    odds : two arrays of shape (n,) and (m,)
        Of being a validation row, from :func:`giw.diagnosis.membership.odds_of_membership`.
    surprise, wrong : two arrays each, of shape (n,) and (m,)
    generator : numpy generator

    References
    ----------
    .. [1] Shah and Peters, Annals of Statistics 48:1514-1538, 2020.
    .. [2] Candès, Fan, Janson and Lv, JRSS B 80:551-577, 2018.
    """
    n, m = len(z_train), len(z_val)
    if m < FEWEST or n < FEWEST:
        return None
    f_train, f_val = (np.stack(side, axis=1) for side in zip(surprise, wrong, strict=True))
    expected, expected_val = _expected(z_train, f_train, z_val, generator)
    here, there = f_val - expected_val, f_train - expected  # (m, 2), (n, 2)
    is_val = np.repeat([0.0, 1.0], [n, m])
    chance = calibrated(np.concatenate(odds), is_val)
    left = np.concatenate([there[:, 0], here[:, 0]])  # (n + m,)
    p_value = redrawn_p_value(is_val, chance, left, generator)

    share = np.minimum(odds[0], MOST_ODDS * odds[0].mean())
    share = share / share.sum()
    base = float(share @ there[:, 1])
    effect = abs(float(here[:, 1].mean()) - base)
    error = np.sqrt(here[:, 1].var(ddof=1) / m + np.sum(np.square(share * (there[:, 1] - base))))
    return as_test("label", effect, float(error), p_value)


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
    """Share of redrawn memberships that go with ``left`` at least as closely, in both directions.

    The memberships as they are count as one of the draws, so that the level holds exactly where
    ``chance`` is right.
    """
    seen = abs(float((is_val - chance) @ left))
    at_least = 1
    for _ in range(DRAWS // AT_A_TIME):
        redrawn = generator.random((AT_A_TIME, len(left))) < chance
        at_least += int((np.abs(redrawn @ left - chance @ left) >= seen - 1e-12).sum())
    return at_least / (1 + DRAWS)


def _expected(
    z_train: Floats, f_train: Floats, z_val: Floats, generator: np.random.Generator
) -> tuple[Floats, Floats]:
    """What training rows with the same features have, by rows of other blocks, (n, k), (m, k).

    A validation row is asked of one model, as a training row is: the mean of all would have less
    noise, and the two sides could be told apart by that.
    """
    n, m = len(z_train), len(z_val)
    block, val_block = generator.permutation(n) % BLOCKS, generator.permutation(m) % BLOCKS
    expected, expected_val = np.empty((n, f_train.shape[1])), np.empty((m, f_train.shape[1]))
    # of few features all, or trees are too coarse
    tried = min(1.0, max(0.3, 10 / z_train.shape[1]))
    for number in range(BLOCKS):
        rest, rows, val_rows = block != number, block == number, val_block == number
        seed = int(generator.integers(2**31))
        # a least size of leaves would make these trees give up: they try one random cut per feature
        forest = ExtraTreesRegressor(
            TREES, min_samples_split=10, max_depth=14, max_features=tried, random_state=seed
        )
        forest.fit(z_train[rest], f_train[rest])
        if rows.any():
            expected[rows] = forest.predict(z_train[rows])
        if val_rows.any():
            expected_val[val_rows] = forest.predict(z_val[val_rows])
    return expected, expected_val
