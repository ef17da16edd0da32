"""The split as a user meets it."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import IsolationForest

import giw


def islands(n, rng, *, at=(0.0, 10.0), width=1.0):
    """Points on square islands of the plane; the label is the island."""
    label = rng.integers(0, len(at), n)
    return np.asarray(at)[label][:, None] + width * rng.uniform(-0.5, 0.5, (n, 2)), label


@pytest.fixture(scope="module")
def trained():
    z, y = islands(600, np.random.default_rng(0))
    return giw.SupportSplitter(random_state=0).fit(z, y)


def test_islands_inside_and_outside_are_told_apart(trained):
    rng = np.random.default_rng(1)
    near, _ = islands(200, rng)
    far, _ = islands(100, rng, at=(50.0,))

    split = trained.split(np.concatenate([near, far]))

    assert split.inside[:200].mean() > 0.9
    assert not split.inside[200:].any()
    assert split.posterior[:200].mean() > 0.9
    assert split.posterior[200:].max() < 0.05
    assert abs(split.support_share - 2 / 3) < 0.08
    low, high = split.support_share_interval
    assert low < 2 / 3 < high


def test_without_hidden_parts_the_same_points_are_inside(trained):
    rng = np.random.default_rng(0)
    quick = giw.SupportSplitter(hide_parts=False, random_state=0).fit(*islands(600, rng))
    points = np.concatenate([islands(60, rng)[0], islands(30, rng, at=(50.0,))[0]])
    split, full = quick.split(points), trained.split(points)
    np.testing.assert_array_equal(split.p_value, full.p_value)
    assert split.assumptions.hidden_auroc is None
    assert full.assumptions.hidden_auroc is not None


def test_points_in_doubt_join_the_likelier_side():
    rng = np.random.default_rng(2)
    z = rng.normal(size=(2_000, 2))
    near, far = rng.normal(size=(100, 2)), rng.normal((3.2, 0), 1, (200, 2))
    by_level = giw.SupportSplitter(random_state=0).fit(z).split(np.concatenate([near, far]))
    leaning = giw.SupportSplitter(least_posterior=0.5, random_state=0).fit(z)
    by_both = leaning.split(np.concatenate([near, far]))

    assert (by_both.inside == (by_level.inside & (by_level.posterior > 0.5))).all()
    assert by_both.inside[100:].mean() < 0.7 * by_level.inside[100:].mean()
    assert by_both.alpha == by_both.inside.mean()
    assert by_both.rule == "p > 0.05 and posterior > 0.5"
    assert (leaning.split(near).inside == (leaning.split(near).p_value > 0.05)).mean() > 0.97


def test_all_inside_and_all_outside(trained):
    rng = np.random.default_rng(2)

    everything = trained.split(islands(200, rng)[0])
    nothing = trained.split(islands(200, rng, at=(50.0,))[0])

    assert everything.support_share > 0.93
    assert everything.support_share_interval[1] == 1.0
    assert nothing.support_share < 0.02
    assert nothing.support_share_interval[0] == 0.0
    assert nothing.alpha == 0.0


@pytest.mark.parametrize(
    ("calibration", "tolerance"),
    [("leave_one_out", 0.01), ("hold_out", 0.01), ("cross_fit", 0.03)],
)
def test_false_outside_rate_is_the_level(calibration, tolerance):
    """Exchangeable points fall outside at the level: mean over 20 draws of 500 points."""
    rates = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        z, y = islands(800, rng)
        splitter = giw.SupportSplitter(calibration=calibration, random_state=seed).fit(z, y)
        rates.append(1 - splitter.split(islands(500, rng)[0]).inside.mean())

    assert abs(np.mean(rates) - 0.05) < tolerance


def test_cells_keep_the_level_when_only_the_sparse_class_remains():
    """One island is ten times wider, so its points are strange overall and ordinary in its cell."""
    rng = np.random.default_rng(3)
    narrow, wide = islands(1_500, rng, at=(0.0,))[0], islands(300, rng, at=(50.0,), width=10.0)[0]
    z, y = np.concatenate([narrow, wide]), np.repeat([0, 1], [1_500, 300])
    val = islands(400, rng, at=(50.0,), width=10.0)[0]

    by_cell = giw.SupportSplitter(random_state=0).fit(z, y).split(val)
    overall = giw.SupportSplitter(cells="none", random_state=0).fit(z, y).split(val)

    assert 1 - by_cell.inside.mean() < 0.08
    assert 1 - overall.inside.mean() > 0.15
    assert by_cell.support_share > 0.93


def test_clusters_do_the_same_without_labels():
    rng = np.random.default_rng(3)
    narrow, wide = islands(1_500, rng, at=(0.0,))[0], islands(300, rng, at=(50.0,), width=10.0)[0]
    splitter = giw.SupportSplitter(n_clusters=2, random_state=0)
    splitter.fit(np.concatenate([narrow, wide]))

    assert splitter.cells_ == "cluster"
    assert 1 - splitter.split(islands(400, rng, at=(50.0,), width=10.0)[0]).inside.mean() < 0.08


def test_noisy_labels_make_way_for_clusters(trained):
    z, _ = islands(600, np.random.default_rng(0))
    coin = np.random.default_rng(1).integers(0, 2, 600)

    assert trained.cells_ == "class"
    assert giw.SupportSplitter(random_state=0).fit(z, coin).cells_ == "cluster"


def test_a_label_never_seen_is_outside_whatever_x_says(trained):
    z, y = islands(40, np.random.default_rng(4))
    y = y.copy()
    y[:10] = 7

    split = trained.split(z, y)

    assert not split.inside[:10].any()
    assert (split.p_value[:10] == 0).all()
    assert (split.posterior[:10] == 0).all()
    assert split.label_unseen.tolist() == [True] * 10 + [False] * 30
    assert split.support_share_interval[0] < 0.75 < split.support_share_interval[1]
    assert "outside by label" in split.summary()


def test_alpha_is_the_mean_of_the_membership_in_use():
    z, y = islands(600, np.random.default_rng(0))
    rng = np.random.default_rng(5)
    val = np.concatenate([islands(50, rng)[0], islands(30, rng, at=(12.0,))[0]])

    hard = giw.SupportSplitter(random_state=0).fit(z, y).split(val)
    soft = giw.SupportSplitter(membership="soft", random_state=0).fit(z, y).split(val)

    assert hard.alpha == hard.inside.mean() == hard.membership.mean()
    np.testing.assert_array_equal(hard.membership, hard.inside.astype(float))
    assert soft.alpha == pytest.approx(soft.posterior.mean())
    np.testing.assert_array_equal(soft.membership, soft.posterior)


@pytest.mark.parametrize("calibration", ["leave_one_out", "hold_out"])
def test_copies_of_training_points_earn_nothing(calibration):
    """Copies get the p-values that fresh points get, not better ones."""
    rng = np.random.default_rng(6)
    z, y = islands(2_000, rng)
    fresh, _ = islands(2_000, rng)
    splitter = giw.SupportSplitter(calibration=calibration, random_state=0).fit(z, y)

    copies, honest = splitter.split(z), splitter.split(fresh)

    assert abs(copies.p_value.mean() - 0.5) < 0.03
    assert abs(honest.p_value.mean() - 0.5) < 0.03
    assert abs(copies.inside.mean() - honest.inside.mean()) < 0.03


def test_a_copied_outlier_of_the_training_set_is_still_an_outlier():
    rng = np.random.default_rng(7)
    z, y = islands(400, rng)
    z[0] = 99.0

    assert not giw.SupportSplitter(random_state=0).fit(z, y).split(z[:1]).inside[0]


def test_given_calibration_rows_leave_all_training_rows_as_reference():
    rng = np.random.default_rng(8)
    z, y = islands(300, rng)
    held_out, y_held_out = islands(100, rng)
    splitter = giw.SupportSplitter(random_state=0).fit(z, y, held_out, y_held_out)

    split = splitter.split(islands(50, rng)[0])

    assert len(splitter.folds_) == 1
    assert len(splitter.folds_[0].nearest.reference) == 300
    assert len(split.calibration_score) == 100


def test_the_published_rule_recognises_copies_only():
    rng = np.random.default_rng(9)
    z = rng.normal(size=(300, 20))
    fresh = rng.normal(size=(50, 20))
    recipe = giw.SupportSplitter(giw.support.OSVM(nu=0.99), threshold="text").fit(z)

    split = recipe.split(np.concatenate([z[:50], fresh]))

    assert split.inside[:50].all()
    assert not split.inside[50:].any()
    assert split.support_share == split.alpha == 0.5
    assert split.rule == "score_samples > 0.4"


@pytest.mark.parametrize("name", ["text", "code"])
def test_both_published_thresholds_have_names(name):
    z = np.random.default_rng(0).normal(size=(60, 5))
    split = giw.SupportSplitter("osvm", threshold=name).fit(z).split(z[:5])

    assert split.rule.endswith({"text": "0.4", "code": "0.0001"}[name])
    np.testing.assert_array_equal(split.inside, -split.score > {"text": 0.4, "code": 1e-4}[name])


def test_any_scikit_learn_detector_is_calibrated_the_same_way():
    rng = np.random.default_rng(10)
    z, y = islands(600, rng)
    forest = IsolationForest(n_estimators=30, random_state=0)
    splitter = giw.SupportSplitter(forest, random_state=0).fit(z, y)

    assert splitter.split(islands(300, rng)[0]).inside.mean() > 0.85
    assert not splitter.split(islands(20, rng, at=(50.0,))[0]).inside.any()


def test_numpy_in_numpy_out_and_torch_in_torch_out(trained):
    z, y = islands(600, np.random.default_rng(0))
    val = islands(20, np.random.default_rng(1))[0]
    by_torch = giw.SupportSplitter(random_state=0).fit(torch.from_numpy(z), torch.from_numpy(y))

    ours, theirs = trained.split(val), by_torch.split(torch.from_numpy(val))

    for name in ("inside", "p_value", "posterior", "score", "membership", "cell"):
        assert isinstance(getattr(ours, name), np.ndarray)
        assert isinstance(getattr(theirs, name), torch.Tensor)
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name).numpy())
    assert ours.alpha == theirs.alpha
    assert isinstance(ours.alpha, float)


def test_the_same_seed_gives_the_same_split():
    z, y = islands(600, np.random.default_rng(0))
    val = islands(20, np.random.default_rng(1))[0]
    first, second = (
        giw.SupportSplitter(random_state=3).fit(z, y).split(val).p_value for _ in range(2)
    )

    np.testing.assert_array_equal(first, second)


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 2**31), scale=st.sampled_from([1e-3, 1.0, 1e4]), shift=st.floats(-9, 9))
def test_units_and_origin_of_the_features_do_not_matter(seed, scale, shift):
    rng = np.random.default_rng(seed)
    z, y = islands(200, rng)
    val = islands(15, rng, at=(0.0, 0.8))[0]

    plain = giw.SupportSplitter(random_state=0).fit(z, y).split(val)
    moved = giw.SupportSplitter(random_state=0).fit(scale * (z + shift), y)
    moved_split = moved.split(scale * (val + shift))

    np.testing.assert_array_equal(plain.p_value, moved_split.p_value)


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 2**31))
def test_permuting_validation_points_permutes_the_split(seed):
    rng = np.random.default_rng(seed)
    z, y = islands(200, rng)
    splitter = giw.SupportSplitter(random_state=0).fit(z, y)
    val = islands(30, rng, at=(0.0, 0.8))[0]
    order = rng.permutation(30)

    split, permuted = splitter.split(val), splitter.split(val[order])

    np.testing.assert_allclose(split.p_value[order], permuted.p_value)
    np.testing.assert_allclose(split.posterior[order], permuted.posterior)
    assert split.support_share == permuted.support_share


@pytest.mark.parametrize("m", [1, 20])
def test_few_validation_points_get_a_wide_interval(trained, m):
    split = trained.split(islands(m, np.random.default_rng(1))[0])
    low, high = split.support_share_interval

    assert high == 1.0
    assert low < 0.95
    assert "of " + str(m) + " validation points" in split.summary()


def test_one_point_far_away_is_outside_and_leaves_the_verdict_open(trained):
    split = trained.split(np.full((1, 2), 100.0))

    assert not split.inside.any()
    assert split.alpha == 0.0
    assert split.support_share_interval[0] == 0.0
    assert split.verdict().case == "cannot tell"


def test_one_class_only():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(200, 3))

    split = giw.SupportSplitter(random_state=0).fit(z, np.zeros(200)).split(z[:3] + 100)

    assert not split.inside.any()


def test_some_constant_features_and_repeated_rows_do_no_harm():
    rng = np.random.default_rng(0)
    z = np.concatenate([rng.integers(0, 3, (300, 2)), np.ones((300, 2))], axis=1)

    split = giw.SupportSplitter(random_state=0).fit(z).split(np.array([z[0], [9, 9, 1, 1]]))

    assert split.inside.tolist() == [True, False]


Z = np.random.default_rng(0).normal(size=(100, 4))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: giw.SupportSplitter().fit(np.ones((50, 3))), "collapsed"),
        (lambda: giw.SupportSplitter().fit(np.zeros((50, 3))), "collapsed"),
        (lambda: giw.SupportSplitter().fit(np.full((50, 3), np.nan)), "NaN"),
        (lambda: giw.SupportSplitter().fit(Z).split(np.full((3, 4), np.nan)), "NaN"),
        (lambda: giw.SupportSplitter().fit(Z, z_calibration=Z * np.nan), "NaN"),
        (lambda: giw.SupportSplitter().fit(Z).split(np.full((3, 4), np.inf)), "z_val"),
        (lambda: giw.SupportSplitter().fit(np.empty((0, 3))), "empty"),
        (lambda: giw.SupportSplitter().fit(Z[:10]), "at least 19"),
        (lambda: giw.SupportSplitter().fit(Z[:1]), "at least 19"),
        (lambda: giw.SupportSplitter().fit(Z, np.zeros(5)), "one label per point"),
        (lambda: giw.SupportSplitter().fit(Z, z_calibration=Z[:50, :2]), "same columns"),
        (lambda: giw.SupportSplitter().fit(Z, z_calibration=Z[:5]), "at least 19"),
        (lambda: giw.SupportSplitter().fit(Z).split(Z[:, :2]), "same columns"),
        (lambda: giw.SupportSplitter().fit(Z).split(Z[:0]), "empty"),
        (lambda: giw.SupportSplitter().fit(Z).split(Z, np.zeros(100)), "both or neither"),
        (lambda: giw.SupportSplitter().split(Z), "call fit"),
        (lambda: giw.SupportSplitter(level=1.5).fit(Z), "between 0 and 1"),
        (lambda: giw.SupportSplitter(level=-1).fit(Z), "positive"),
        (lambda: giw.SupportSplitter(least_posterior=1).fit(Z), "less than 1"),
        (lambda: giw.SupportSplitter(calibration_share=1).fit(Z), "between 0 and 1"),
        (lambda: giw.SupportSplitter(membership="fuzzy").fit(Z), "hard"),
        (lambda: giw.SupportSplitter(cells="class").fit(Z), "needs y_train"),
        (lambda: giw.SupportSplitter(calibration="none").fit(Z), "leave_one_out"),
        (lambda: giw.SupportSplitter("osvm", calibration="leave_one_out").fit(Z), "hold_out"),
        (lambda: giw.SupportSplitter(threshold="book").fit(Z), "published ones"),
        (lambda: giw.SupportSplitter("lof").fit(Z), "choose from"),
    ],
)
def test_bad_input_is_refused_with_a_way_out(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.gpu
def test_cuda_in_cuda_out():
    z, y = islands(600, np.random.default_rng(0))
    val = islands(20, np.random.default_rng(1))[0]
    on_cuda = giw.SupportSplitter(random_state=0).fit(torch.from_numpy(z).cuda(), y)

    split = on_cuda.split(torch.from_numpy(val).cuda())

    assert split.inside.device.type == split.posterior.device.type == "cuda"
    expected = giw.SupportSplitter(random_state=0).fit(z, y).split(val)
    np.testing.assert_allclose(split.p_value.cpu().numpy(), expected.p_value)


@pytest.mark.parametrize("unit", [1e30, 1e-30])
def test_numbers_whose_squares_do_not_fit_are_refused(unit):
    """Distances overflowed or vanished, and every point was called outside without a word."""
    z = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
    with pytest.raises(ValueError, match="whose squares float32 cannot hold; divide"):
        giw.SupportSplitter().fit(unit * z)
    assert (
        float(giw.SupportSplitter(random_state=0).fit(unit * z.double()).split(unit * z).alpha)
        > 0.8
    )


def test_columns_of_frames_are_matched_by_name():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal([0, 10], size=(60, 2)), columns=["a", "b"])
    splitter = giw.SupportSplitter(random_state=0).fit(frame[:50])
    assert splitter.split(frame[50:]).alpha == splitter.split(frame[50:].to_numpy()).alpha
    with pytest.raises(
        ValueError, match=r"in another order; pass z_val\[list\(z_train.columns\)\]"
    ):
        splitter.split(frame[["b", "a"]])
    with pytest.raises(ValueError, match=r"z_val lacks \['a'\] and also has \['c'\]"):
        splitter.split(frame.rename(columns={"a": "c"}))
