"""Drift of rows without labels, against the validation rows that a model keeps."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from giw.diagnosis.drift import drift
from giw.estimators.limits import Reference


def table(rng, rows, *, at=0.0, towns=("Rome", "Oslo")):
    frame = pd.DataFrame(rng.normal(size=(rows, 3)), columns=["a", "b", "c"])
    frame["a"] += at
    return frame.assign(town=rng.choice(towns, rows))


def test_alarms_without_drift_are_as_rare_as_the_level():
    """Validation differs from training, which is no drift: new rows are like validation."""
    rng = np.random.default_rng(0)
    p_value = []
    for _ in range(60):
        kept = Reference.of(table(rng, 100), table(rng, 40, at=1.0))
        p_value.append(drift(kept, table(rng, 60, at=1.0), level=0.05).p_value)
    assert np.mean(np.array(p_value) <= 0.05) <= 0.1
    assert np.mean(np.array(p_value) <= 0.5) <= 0.6


@pytest.mark.parametrize("coarse", [False, True])
def test_the_training_rows_themselves_raise_no_alarm(coarse):
    """Each is nearest to itself, which says nothing of where rows come from now."""
    rng = np.random.default_rng(4)

    def rows(count):
        if coarse:  # most rows repeat others
            return pd.DataFrame(rng.integers(0, 4, size=(count, 3)), columns=["a", "b", "c"])
        return table(rng, count)

    p_value = []
    for _ in range(10):
        train = rows(300)
        kept = Reference.of(train, rows(100))
        p_value += [drift(kept, new).p_value for new in (train, train[:60])]
    assert np.mean(np.array(p_value) <= 0.1) <= 0.1


def test_a_column_that_moves_is_found_and_named():
    rng = np.random.default_rng(1)
    kept = Reference.of(table(rng, 300), table(rng, 100))
    found = drift(kept, table(rng, 200, at=1.5))
    assert found.found
    assert [column.column for column in found.columns if "(" not in column.column] == ["a"]
    assert "a: median" in found.summary()
    moved = next(column for column in found.columns if column.column == "a")
    assert moved.now - moved.before == pytest.approx(1.5, abs=0.4)
    assert not drift(kept, table(rng, 200)).found


def test_a_category_that_neither_table_has_is_found():
    rng = np.random.default_rng(2)
    kept = Reference.of(table(rng, 300), table(rng, 100, towns=("Rome", "Lima")))
    assert not drift(kept, table(rng, 200, towns=("Rome", "Lima"))).found
    new = pd.concat([table(rng, 180, towns=("Rome", "Lima")), table(rng, 20, towns=("Bonn",))])
    found = drift(kept, new)
    assert found.found
    assert {*range(180, 200)} <= set(found.outside)


def test_expected_accuracy_follows_how_sure_the_model_is():
    rng = np.random.default_rng(3)
    kept = Reference.of(table(rng, 300), table(rng, 100))
    new = table(rng, 200)
    left_out = np.full(100, 0.8), np.repeat([True, False], [78, 22])
    found = drift(kept, new, confidence=np.full(200, 0.7), left_out=left_out)
    low, high = found.expected_accuracy
    share = len(found.outside) / 200
    least, most = binomtest(78, 100).proportion_ci()  # a tenth less sure, a tenth less right
    assert low == pytest.approx((1 - share) * (least - 0.1))
    assert high == pytest.approx((1 - share) * (most - 0.1) + share)
    assert found.left_out_accuracy == 0.78


def test_too_few_rows_are_refused():
    rng = np.random.default_rng(4)
    kept = Reference.of(table(rng, 300), table(rng, 100))
    with pytest.raises(ValueError, match="at least 8 new rows"):
        drift(kept, table(rng, 5))
