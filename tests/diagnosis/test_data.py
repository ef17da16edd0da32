import numpy as np
from numpy.testing import assert_array_equal

from giw.diagnosis.data import read
from giw.tables import Encoder, Table


def test_rows_are_seen_as_everywhere_else_and_features_know_their_column():
    town = np.empty(3, dtype=object)
    town[:] = ["a", "b", "a"]
    table = Table({"age": np.arange(3.0), "town": town})
    found = read(table, None, table, None)

    assert found.columns == ["age", *["town"] * 4]
    assert_array_equal(found.z_train, Encoder().fit(table, table).transform(table))
    assert found.labels.train is None
