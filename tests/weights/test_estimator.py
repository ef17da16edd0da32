"""What every ratio estimator promises, whatever it is made of."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.base import clone
from tests.cases.gaussian_pairs import gaussian_pair, noiseless_pair

import giw
from giw.weights import EffectiveSampleSizeWarning

FUNCTIONS = {
    "kmm": (giw.kmm, giw.KMM),
    "ulsif": (giw.ulsif, giw.ULSIF),
    "rulsif": (giw.rulsif, giw.RULSIF),
    "lsif": (giw.lsif, giw.LSIF),
    "kliep": (giw.kliep, giw.KLIEP),
    "classifier_ratio": (giw.classifier_ratio, giw.ClassifierRatio),
}
every_function = pytest.mark.parametrize(
    "weights", [f for f, _ in FUNCTIONS.values()], ids=list(FUNCTIONS)
)
every_class = pytest.mark.parametrize(
    "estimator", [c for _, c in FUNCTIONS.values()], ids=list(FUNCTIONS)
)
both = pytest.mark.parametrize(("weights", "estimator"), FUNCTIONS.values(), ids=list(FUNCTIONS))


def check(weight, n):
    assert weight.shape == (n,)
    assert np.isfinite(weight).all()
    assert (weight >= 0).all()
    assert_allclose(weight.mean(), 1.0, rtol=1e-6)


@every_function
@pytest.mark.parametrize("d", [1, 10])
def test_weights_are_nearer_to_the_true_ratio_than_equal_weights(weights, d):
    pair = gaussian_pair(0, n=400, m=100, d=d)

    weight = weights(pair.train, pair.val)

    check(weight, 400)
    assert pair.reduction(weight) > 0.15


@every_function
@pytest.mark.parametrize("shift", [-0.5, 0.5])
def test_a_shifted_gaussian_without_sampling_noise(weights, shift):
    """From N(0, 1) to N(m, 1) the ratio is w(x) = exp(m x − m² / 2)."""
    pair = noiseless_pair(shift)

    assert pair.reduction(weights(pair.train, pair.val)) > 0.8


@every_function
def test_identical_samples_give_weights_of_one(weights):
    x = np.random.default_rng(0).normal(size=(60, 3))

    assert_allclose(weights(x, x), np.ones(60), atol=1e-5)
    assert_allclose(weights(x, x[::-1]), np.ones(60), atol=1e-5)


@every_function
def test_weights_follow_the_training_points_and_not_the_order_of_validation_points(weights):
    pair = gaussian_pair(1, n=120, m=30, d=2)
    order = np.random.default_rng(0).permutation(120)
    expected = weights(pair.train, pair.val)

    assert_allclose(weights(pair.train[order], pair.val), expected[order], atol=1e-5)
    assert_allclose(weights(pair.train, pair.val[::-1]), expected, atol=1e-5)


@every_function
@settings(deadline=None, max_examples=5)
@given(
    scale=st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=2),
    origin=st.lists(st.floats(-100, 100), min_size=2, max_size=2),
)
def test_units_and_origin_of_each_feature_do_not_matter(weights, scale, origin):
    pair = gaussian_pair(2, n=80, m=25, d=2)
    train, val = ((x + origin) * scale for x in (pair.train, pair.val))

    assert_allclose(weights(train, val), weights(pair.train, pair.val), atol=1e-4)


@every_function
def test_numpy_and_torch_agree(torch, weights):
    pair = gaussian_pair(3, n=80, m=25, d=2)

    by_torch = weights(torch.as_tensor(pair.train), torch.as_tensor(pair.val))

    assert isinstance(by_torch, torch.Tensor)
    assert_allclose(by_torch.numpy(), weights(pair.train, pair.val), rtol=1e-9)


@every_function
def test_single_precision_comes_back_and_hardly_matters(weights):
    pair = gaussian_pair(3, n=80, m=25, d=2)

    single = weights(pair.train.astype(np.float32), pair.val.astype(np.float32))

    assert single.dtype == np.float32
    assert_allclose(single, weights(pair.train, pair.val), atol=1e-2)


@every_function
def test_a_validation_point_of_weight_zero_counts_for_nothing(weights):
    pair = gaussian_pair(4, n=80, m=25, d=2)
    member = np.arange(25) < 15

    assert_allclose(
        weights(pair.train, pair.val, val_weight=member),
        weights(pair.train, pair.val[:15]),
        atol=1e-6,
    )


@every_function
def test_soft_membership_moves_weights_towards_the_members(weights):
    pair = gaussian_pair(5, n=200, m=60, shift=0.0)
    right = (pair.val[:, 0] > 0).astype(float)

    weight = weights(pair.train, pair.val, val_weight=0.1 + 0.9 * right)

    assert (weight * pair.train[:, 0]).mean() > 0.15


@both
def test_the_function_is_the_estimator(weights, estimator):
    pair = gaussian_pair(6, n=80, m=25, d=2)
    fitted = estimator().fit(pair.train, pair.val)

    assert_allclose(fitted.weight_, weights(pair.train, pair.val))
    assert_allclose(fitted.weigh(pair.train), fitted.weight_, atol=1e-6)


@every_class
def test_new_points_are_weighed_by_where_they_lie(estimator):
    pair = gaussian_pair(7, n=300, m=100)
    fitted = estimator().fit(pair.train, pair.val)

    low, high = fitted.weigh(np.array([[-1.5], [1.5]]))

    assert 0 <= low < 1 < high
    with pytest.raises(ValueError, match="x_new has 2 features"):
        fitted.weigh(np.zeros((3, 2)))


@every_class
def test_estimators_can_be_cloned_and_pickled(estimator):
    pair = gaussian_pair(7, n=40, m=20)
    fitted = pickle.loads(pickle.dumps(clone(estimator()).fit(pair.train, pair.val)))

    assert_allclose(fitted.weigh(pair.train), fitted.weight_, atol=1e-6)


@every_class
def test_weighing_before_fitting_is_refused(estimator):
    with pytest.raises(ValueError, match="not fitted"):
        estimator().weigh([[0.0]])


# bad input: a right answer or a clear refusal


def two_sides(pair):
    return pair.train, pair.val


def only_validation_varies(pair):
    more = np.random.default_rng(0).normal(size=len(pair.val))
    return np.c_[pair.train, np.zeros(len(pair.train))], np.c_[pair.val, more]


ODD = {
    "far apart": two_sides(gaussian_pair(0, n=50, m=20, d=2, shift=100)),
    "a column that only validation varies": only_validation_varies(gaussian_pair(8, n=60, m=20)),
    "one validation point": two_sides(gaussian_pair(10, n=40, m=1, d=2)),
    "two validation points": two_sides(gaussian_pair(10, n=40, m=2, d=2)),
    "more features than points": two_sides(gaussian_pair(11, n=12, m=8, d=40)),
}


@every_function
@pytest.mark.filterwarnings("ignore::giw.weights.EffectiveSampleSizeWarning")
@pytest.mark.parametrize("name", ODD)
def test_odd_samples_give_numbers(weights, name):
    train, val = ODD[name]
    check(weights(train, val), len(train))


@every_function
def test_constant_columns_change_nothing(weights):
    pair = gaussian_pair(8, n=60, m=20)
    train, val = (np.c_[x, np.full(len(x), 7.7)] for x in (pair.train, pair.val))

    assert_allclose(weights(train, val), weights(pair.train, pair.val), atol=1e-2)


@every_function
def test_one_point_and_equal_points_weigh_one(weights):
    assert_allclose(weights(np.ones((8, 2)), np.ones((5, 2))), np.ones(8), atol=1e-6)
    assert_allclose(weights([[1.0]], [[0.0], [2.0], [1.0], [4.0]]), [1.0], atol=1e-6)


@every_function
def test_duplicated_rows_give_equal_weights_to_equal_points(weights):
    pair = gaussian_pair(9, n=30, m=20)

    weight = weights(np.repeat(pair.train, 2, axis=0), np.repeat(pair.val, 3, axis=0))

    check(weight, 60)
    assert_allclose(weight[::2], weight[1::2], atol=1e-5)


@every_function
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_missing_values_are_refused(weights, bad):
    pair = gaussian_pair(12, n=10, m=5)
    pair.train[3] = bad

    with pytest.raises(ValueError, match="x_train holds 1 NaN or infinite"):
        weights(pair.train, pair.val)
    with pytest.raises(ValueError, match="x_val holds 1 NaN or infinite"):
        weights(pair.val, pair.train)


@every_function
def test_input_that_does_not_fit_is_refused(weights):
    with pytest.raises(ValueError, match="2 features and x_val has 3"):
        weights(np.zeros((4, 2)), np.zeros((4, 3)))
    with pytest.raises(ValueError, match="x_val is empty"):
        weights(np.zeros((4, 2)), np.zeros((0, 2)))
    with pytest.raises(ValueError, match="need one val_weight per validation point"):
        weights(np.zeros((4, 2)), np.zeros((3, 2)), val_weight=[1.0])
    with pytest.raises(ValueError, match="val_weight is zero for every"):
        weights(np.zeros((4, 2)), np.zeros((3, 2)), val_weight=np.zeros(3))
    with pytest.raises(ValueError, match="must lie between 0 and 1"):
        weights(np.zeros((4, 2)), np.zeros((3, 2)), val_weight=[2.0, 0.0, 0.0])


@every_function
def test_impossible_penalties_are_refused(weights):
    with pytest.raises(ValueError, match="ridge must be"):
        weights(np.zeros((4, 2)), np.zeros((3, 2)), ridge=-1.0)
    with pytest.raises(ValueError, match="ridge must be"):
        weights(np.zeros((4, 2)), np.zeros((3, 2)), ridge="strong")


@every_class
@pytest.mark.parametrize("bad", [0, 2.5, None])
def test_impossible_numbers_of_centers_are_refused(estimator, bad):
    if estimator is not giw.KMM:  # which has none
        with pytest.raises(ValueError, match="n_centers must be a whole number of at least 1, got"):
            estimator(n_centers=bad).fit(np.zeros((4, 2)), np.zeros((3, 2)))


def test_a_collapse_of_the_weights_warns():
    rng = np.random.default_rng(0)
    with pytest.warns(EffectiveSampleSizeWarning, match="ClassifierRatio: the effective sample"):
        giw.classifier_ratio(rng.normal(size=500), rng.normal(size=50) * 0.01 + 4, ridge=1e-6)
