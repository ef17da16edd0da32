import numpy as np
from numpy.testing import assert_array_equal

from giw.diagnosis.features import as_features
from giw.tables import Encoder, Table


def test_rows_are_seen_as_everywhere_else_and_features_know_their_column():
    town = np.empty(3, dtype=object)
    town[:] = ["a", "b", "a"]
    table = Table({"age": np.arange(3.0), "town": town})
    found = as_features(table, table)

    assert found.columns == ["age", *["town"] * 4]
    assert found.names[:3] == ["age", "town=a", "town=b"]
    assert_array_equal(found.z_train, Encoder().fit(table, table).transform(table))
    assert_array_equal(found.raw_val[:, 0], [0, 1, 2])
