import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from giw.checks import (
    as_array,
    as_generator,
    as_labels,
    as_members,
    as_row_pair,
    as_rows,
    check_positive,
    like_input,
)


@given(arrays(np.float64, (3, 2), elements=st.floats(-1e9, 1e9)))
@settings(deadline=None, max_examples=30)
def test_numpy_goes_through_unchanged(x):
    assert as_array(x, "x") is x
    assert like_input(x, x) is x


def test_tensors_come_in_and_go_out(torch):
    x = torch.arange(3.0, requires_grad=True)
    found = like_input(as_array(x, "x"), x)
    assert isinstance(found, torch.Tensor)
    np.testing.assert_array_equal(found, [0, 1, 2])
    assert as_array(torch.zeros(2, dtype=torch.bfloat16), "x").dtype == np.float32
    with pytest.raises(ValueError, match="complex"):
        as_array(torch.tensor([1j]), "x")


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (np.zeros(2, np.float32), np.float32),
        (np.zeros(2, np.float16), np.float32),
        (np.zeros(2, np.int8), np.float64),
        (np.array([True, False]), np.float64),
        ([1, 2.5], np.float64),
        (np.array([1, 2.5], dtype=object), np.float64),
        (pd.Series([1.0, 2.0]), np.float64),
        (np.arange(6.0)[::-2], np.float64),
        (np.arange(3.0).astype(">f8"), np.float64),
    ],
)
def test_numbers_of_every_kind_become_floats(value, dtype):
    assert as_array(value, "x").dtype == dtype


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([1.0, np.nan], r"x holds 1 NaN or infinite values of 2 \(the first at index \(1,\)\)"),
        (np.array([[1, 2], [np.inf, -np.inf]]), r"2 NaN or infinite values of 4 .*index \(1, 0\)"),
        (np.array(["a", "b"]), "must hold numbers"),
        (np.array(["1", "2"]), "must hold numbers"),
        (np.array(["1", 2], dtype=object), "must hold numbers"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "must hold numbers"),
        (np.array([object(), 1], dtype=object), "must hold numbers"),
        (np.array([1j]), "complex"),
    ],
)
def test_what_is_no_finite_number_is_refused(value, words):
    with pytest.raises(ValueError, match=words):
        as_array(value, "x")


def test_a_sum_too_large_for_a_float_is_no_fault():
    assert as_array(np.full(2, 3e38, np.float32), "x").sum(dtype=np.float64) > 5e38


def test_one_dimension_is_one_feature():
    assert as_rows([1.0, 2.0, 3.0], "x").shape == (3, 1)


@pytest.mark.parametrize("value", [np.zeros((0, 2)), np.zeros((2, 0)), 3.0, np.zeros((2, 2, 2))])
def test_points_that_are_no_matrix_are_refused(value):
    with pytest.raises(ValueError, match=r"x (must have shape|is empty)"):
        as_rows(value, "x")


def test_leading_dimensions_are_welcome_where_asked_for():
    assert as_rows(np.zeros((4, 2, 3)), "x", batched=True).shape == (4, 2, 3)


def test_a_pair_shares_dtype():
    train, val = as_row_pair(np.zeros((2, 3), np.float32), np.zeros((1, 3)))
    assert train.dtype == val.dtype == np.float64


@pytest.mark.parametrize(
    ("train", "val", "words"),
    [
        (np.zeros((2, 3)), np.zeros((2, 4)), "3 features and x_val has 4"),
        (np.zeros((5, 2, 3)), np.zeros((4, 2, 3)), "leading dimensions differ"),
    ],
)
def test_a_pair_that_does_not_fit_is_refused(train, val, words):
    with pytest.raises(ValueError, match=words):
        as_row_pair(train, val, batched=True)


def test_membership_defaults_to_one_and_must_be_a_share():
    assert as_members(None, (3,)).tolist() == [1, 1, 1]
    assert as_members([True, False], (2,)).tolist() == [1, 0]
    with pytest.raises(ValueError, match="between 0 and 1"):
        as_members([0.5, 2.0], (2,))
    with pytest.raises(ValueError, match=r"shape \(2,\), got \(3,\)"):
        as_members([1, 1, 1], (2,))
    with pytest.raises(ValueError, match="zero for every validation point"):
        as_members([0, 0], (2,))


@pytest.mark.parametrize("labels", [["u", "v"], [1, 2], [True, False], [[1], [2]], ("u", "v")])
def test_labels_of_any_kind_are_welcome(labels):
    assert as_labels(labels, 2, "y").shape == (2,)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([1, 2, 3], r"y of shape \(2,\), got \(3,\)"),
        ([[0, 1], [1, 0]], "argmax"),
        ([1.0, np.nan], "1 missing labels"),
        ([None, "a"], "1 missing labels"),
    ],
)
def test_labels_that_do_not_fit_are_refused(labels, words):
    with pytest.raises(ValueError, match=words):
        as_labels(labels, 2, "y")


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), "1", True, None])
def test_only_positive_finite_numbers_are_positive(value):
    with pytest.raises(ValueError, match="size must be"):
        check_positive(value, "size")


def test_seeds_of_every_kind_make_generators():
    assert as_generator(3).random() == as_generator(np.int64(3)).random()
    assert as_generator(None).random() != as_generator(None).random()
    generator = np.random.default_rng(0)
    assert as_generator(generator) is generator
    assert isinstance(as_generator(np.random.RandomState(0)), np.random.Generator)


@pytest.mark.parametrize("value", [-1, "seed", 1.5, True])
def test_what_is_no_seed_is_refused(value):
    with pytest.raises(ValueError, match="random_state"):
        as_generator(value)
