import numpy as np
import pytest

import giw
from giw.diagnosis.data import read
from giw.diagnosis.outside import explain_outside, unusual_distance

RNG = np.random.default_rng(0)
TRAIN = RNG.normal(size=(300, 4))


def test_the_feature_that_was_moved_is_blamed():
    point = np.zeros((1, 4))
    point[0, 2] = 8
    excess = unusual_distance(TRAIN, point, np.random.default_rng(0))[0]

    assert excess.argmax() == 2
    assert excess[2] > 0.9 * excess.sum()


def test_an_ordinary_row_has_nothing_unusual():
    assert unusual_distance(TRAIN, np.zeros((1, 4)), np.random.default_rng(0)).sum() < 0.1


def test_reasons_are_told_in_the_units_of_the_user():
    val = np.zeros((2, 4))
    val[1, 0] = 12_345
    data = read(TRAIN, ["no", "yes"] * 150, val, ["no", "yes"], ["income", "b", "c", "d"])
    rows, blamed = explain_outside(
        data, data.train, data.val.at([1]), np.array([0.003]), np.array([False]),
        np.random.default_rng(0),
    )  # fmt: skip

    assert blamed[0] == ("income", pytest.approx(1, abs=0.01))
    assert (rows[0].row, rows[0].line) == (1, 3)
    assert (rows[0].column, rows[0].value) == ("income", "12345")
    assert rows[0].label == "yes"
    assert rows[0].text.startswith("income 12,345 (usually -2.")
    assert rows[0].columns == ("income",)


def test_what_training_never_has_is_the_first_reason():
    """A value beside a constant is one unit away, which distances hardly feel."""
    rng = np.random.default_rng(1)
    X, X_val = rng.normal(size=(300, 6)), rng.normal(size=(60, 6))
    X[:, 3], X_val[:, 3] = 1.0, 1.0
    X_val[:20, 3] = 1.5
    found = giw.diagnose(X, None, X_val)
    assert {row.row for row in found.outside_rows} == set(range(20))
    assert {(row.column, row.value) for row in found.outside_rows} == {("x3", "1.5")}
    assert found.recommendation.answer.startswith("Column 'x3' is 1 in every training row and")
