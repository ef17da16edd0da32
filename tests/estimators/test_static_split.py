import numpy as np

from giw.estimators.static_split import some_rows


def test_a_sample_stands_for_many_rows_and_has_some_of_every_class():
    label = np.zeros(30_000, dtype=int)
    label[[5, 17]] = 1
    label[100:200] = 2
    rows = some_rows(label, np.random.default_rng(0))
    assert len(np.unique(rows)) == len(rows)
    assert 10_000 <= len(rows) <= 10_060
    assert np.bincount(label[rows])[1] == 2
    assert np.bincount(label[rows])[2] >= 20
    np.testing.assert_array_equal(some_rows(label[:9_000], np.random.default_rng(0)), range(9_000))
