"""Distances, units, folds and rows in pieces."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import giw
from giw.tables import chunks
from giw.weights import samples as module
from giw.weights.ratio import fold_numbers, held_out_values
from giw.weights.samples import (
    Samples,
    common_units,
    evenly_spread,
    median_distance,
    pair_squares,
)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Several blocks even of a few rows."""
    monkeypatch.setattr(chunks, "BLOCK", 100)
    monkeypatch.setattr(module, "BLOCK", 100)


def samples(n=3_500, m=700, d=3):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)) * [1, 10, 0.1] + 5, rng.normal(size=(m, d)) * [1, 10, 0.1] + 5.5


@pytest.mark.parametrize("estimator", [giw.ULSIF(), giw.RULSIF(), giw.RULSIF(raw=True, eta=0.4)])
@pytest.mark.parametrize("val_in_chunks", [False, True])
def test_weights_and_choices_of_chunks_are_those_in_memory(estimator, val_in_chunks):
    """More rows than choose the bandwidth, uneven pieces, soft membership with zeros in it."""
    x, v = samples()
    member = np.random.default_rng(1).random(len(v)).round(1)
    whole = estimator.fit(x, v, member)
    expected, width, ridge = whole.weight_, whole.bandwidth_, whole.ridge_
    new = whole.weigh(x[:50] + 0.1)

    pieces = np.split(x, [3, 1_000, 1_033, 2_900])
    val = np.split(v, [1, 640]) if val_in_chunks else v
    found = estimator.fit(lambda: iter(pieces), val, member)

    assert_allclose([found.bandwidth_, found.ridge_], [width, ridge], rtol=1e-12)
    assert_allclose(found.weight_, expected, rtol=1e-8, atol=1e-8)
    assert_allclose(found.weigh(x[:50] + 0.1), new, rtol=1e-8, atol=1e-8)


@settings(max_examples=15, deadline=None)
@given(cuts=st.sets(st.integers(1, 399), max_size=6))
def test_where_the_pieces_end_changes_no_bit(cuts):
    x, v = samples(400, 60)
    pieces = np.split(x, sorted(cuts))
    a, b = (giw.ulsif(given, v, bandwidth=1.0, ridge=0.1) for given in ([x], pieces))
    assert np.array_equal(a, b)


def test_torch_pieces_and_the_function(torch):
    x, v = samples(300, 40)
    found = giw.rulsif([torch.as_tensor(x[:200]), torch.as_tensor(x[200:])], torch.as_tensor(v))
    assert_allclose(found, giw.rulsif(x, v), rtol=1e-8)


def test_estimators_that_need_everything_say_so():
    x, v = samples(60, 30)
    with pytest.raises(ValueError, match=r"KLIEP needs all data in memory; giw\.ULSIF"):
        giw.KLIEP().fit([x], v)
    with pytest.raises(ValueError, match="x_train has 3 features and x_val has 2"):
        giw.ulsif([x], [v[:, :2]])


def test_units_are_those_of_both_samples_counting_the_same():
    """Far from zero, where squares of the numbers themselves would lose all digits."""
    x, v = (part + 1e7 for part in samples(350, 50))
    share = np.linspace(0.1, 1, 50)
    share /= share.sum()

    units = common_units(x, v, share, standardize=True)

    middle = 0.5 * (x.mean(0) + share @ v)
    variance = 0.5 * (np.square(x - middle).mean(0) + share @ np.square(v - middle))
    assert_allclose(units.mean_, middle, rtol=1e-14)
    assert_allclose(units.scale_, np.sqrt(variance), rtol=1e-7)


def test_folds_are_of_equal_size():
    x = np.random.default_rng(0).normal(size=(103, 2))

    assert np.bincount(fold_numbers(x, 5)).tolist() == [21, 21, 21, 20, 20]


def test_folds_follow_the_points_not_their_order():
    x, order = np.random.default_rng(0).normal(size=(100, 2)), np.random.default_rng(1)
    order = order.permutation(100)

    assert (fold_numbers(x[order], 5) == fold_numbers(x, 5)[order]).all()


def test_neighbours_share_a_fold_as_often_as_chance_has_it():
    """Dealt out in turn they never would, and what is held out would be known already."""
    fold = fold_numbers(np.arange(1_000.0)[:, None], 5)

    assert 0.15 < (fold[1:] == fold[:-1]).mean() < 0.25


def test_points_held_out_take_no_part_in_the_fit():
    """A "fit" that returns the sums over what it is given: all but the point's own fold."""
    x, v = (part[:, :1] for part in samples(23, 12))
    both = Samples.of(x, v, None, False)

    def sums(phi, phi_val, share, *, ridge, start):
        assert_allclose(share.sum(), 1)
        assert (start is None) == (ridge == 1.0)  # the first of the path
        return np.array([phi[:, 1].sum() if ridge == 1.0 else (share > 0) @ phi_val[:, 1], 0])

    at_train, at_val = held_out_values(np.asarray, both, [1.0, 0.1], sums, most_folds=5)

    fold, fold_val = fold_numbers(both.train, 5), fold_numbers(both.val, 5)
    rest, rest_val = (
        np.array([points[of != number].sum() for number in range(5)])
        for points, of in ((both.train[:, 0], fold), (both.val[:, 0], fold_val))
    )
    assert_allclose(at_train, [rest[fold], rest_val[fold]])
    assert_allclose(at_val, [rest[fold_val], rest_val[fold_val]])


# distances: a ratio hardly feels the kernel's width


def test_distances_of_a_right_triangle():
    x, y = np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 0.0]])

    assert_allclose(pair_squares(x, y), [[25.0, 0.0]])


def test_far_from_the_origin_distances_keep_their_digits():
    x = np.array([[1e6, 0.0], [1e6 + 1, 0.0]])

    assert_allclose(pair_squares(x, x), [[0, 1], [1, 0]], atol=1e-6)


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ([0.0, 1.0, 5.0], 4.0),  # 1, 4 and 5 apart
        ([0.0, 1.0, 3.0, 7.0], 3.5),  # 1, 2, 3, 4, 6 and 7: the mean of the middle two
        ([0.0, 0.0, 0.0, 0.0, 1.0], np.sqrt(0.4)),  # six of ten are zero: the root mean square
        ([[1.0, 2.0]] * 4, 0.0),
        ([1.0], 0.0),
    ],
)
def test_the_median_distance_by_hand(x, expected):
    assert_allclose(median_distance(x), expected)


def test_a_sample_of_many_points_gives_nearly_their_median():
    """Between standard normals the distance is √2·|z|, with median √2 · 0.6745."""
    x = np.random.default_rng(0).normal(size=20_000)

    assert_allclose(median_distance(x), np.sqrt(2) * 0.6745, rtol=0.01)


def test_some_rows_evenly_spread_do_not_depend_on_their_order():
    x = np.random.default_rng(0).normal(size=1_000)
    shuffled = np.random.default_rng(1).permutation(x)

    assert_allclose(x[evenly_spread(x, 70)], shuffled[evenly_spread(shuffled, 70)])
    assert len(evenly_spread(x, 70)) == 70
