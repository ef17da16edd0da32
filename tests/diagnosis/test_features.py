import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from giw.diagnosis.features import as_features, scaled
from giw.tables import Table

RNG = np.random.default_rng(0)


def test_training_rows_have_unit_spread_and_validation_rows_the_same_unit():
    x = np.tile([[0.0], [10.0]], (500, 1))
    z, z_val = scaled(x, np.array([[5.0], [20.0]]))

    assert_allclose(np.unique(z), [-1, 1])
    assert_allclose(z_val[:, 0], [0, 3])


def test_one_huge_value_does_not_flatten_the_others():
    x = RNG.normal(size=(1000, 1))
    without = scaled(x, x)[0][1:]
    x[0] = 999_999
    assert_allclose(scaled(x, x)[0][1:].std(), without.std(), rtol=0.05)


def test_a_feature_that_is_constant_in_training_keeps_its_unit():
    z, z_val = scaled(np.full((50, 1), 7.0), np.array([[9.0]]))

    assert not z.any()
    assert_allclose(z_val, [[2.0]])


def test_a_rare_category_still_has_a_finite_unit():
    x = np.zeros((1000, 1))
    x[0] = 1  # rarer than what is trimmed
    assert_allclose(scaled(x, x)[0].std(), 1, rtol=0.01)


@settings(deadline=None, max_examples=30)
@given(st.floats(1e-6, 1e6), st.floats(-1e3, 1e3))
def test_units_and_origin_of_the_user_do_not_matter(unit, steps):
    x, x_val = np.random.default_rng(1).normal(size=(2, 60, 2))
    origin = unit * steps
    for one, other in zip(scaled(x, x_val), scaled(unit * x + origin, unit * x_val + origin),
                          strict=True):  # fmt: skip
        assert_allclose(one, other, atol=1e-4)


def test_arrays_tensors_and_images_are_taken():
    images = RNG.normal(size=(6, 1, 2, 2))
    for value in (images, torch.as_tensor(images), images.reshape(6, 4)):
        found = as_features(value, value)
        assert found.names == ["x0", "x1", "x2", "x3"]
        assert_allclose(found.raw_train, images.reshape(6, 4))


def test_tables_are_encoded_and_features_know_their_column():
    town = np.empty(3, dtype=object)
    town[:] = ["a", "b", "a"]
    table = Table({"age": np.arange(3.0), "town": town})
    found = as_features(table, table)

    assert found.columns == ["age", *["town"] * 4]
    assert found.names[:3] == ["age", "town=a", "town=b"]


def test_a_table_beside_an_array_is_refused():
    with pytest.raises(ValueError, match="both be tables or both be arrays"):
        as_features(Table({"a": np.ones(3)}), np.ones((3, 1)))


def test_names_must_match_the_columns():
    assert as_features(np.eye(2), np.eye(2), ["a", "b"]).columns == ["a", "b"]
    with pytest.raises(ValueError, match="one feature name per column, 2, got 1"):
        as_features(np.eye(2), np.eye(2), ["a"])
