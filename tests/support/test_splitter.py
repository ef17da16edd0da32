"""The split as a user meets it."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import OneClassSVM

import giw
from giw.support import KNN


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
    split = trained.split(np.concatenate([islands(200, rng)[0], islands(100, rng, at=(50.0,))[0]]))
    assert split.inside[:200].mean() > 0.9
    assert not split.inside[200:].any()
    assert split.alpha == split.inside.mean()
    assert list(split.p_values) == ["input"]
    assert_array_equal(split.p_values["input"], split.p_value)


@pytest.mark.parametrize("names", [("a",), ("a", "b")])
def test_false_outside_rate_is_the_level(names):
    """Exchangeable points fall outside at the level: mean over 20 draws of 400 points."""
    rates = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        z, y = islands(800, rng)
        new = islands(400, rng)[0]
        splitter = giw.SupportSplitter(random_state=seed)
        splitter.fit({name: z**power for power, name in enumerate(names, 1)}, y)
        split = splitter.split({name: new**power for power, name in enumerate(names, 1)})
        rates.append(1 - split.inside.mean())
    assert abs(np.mean(rates) - 0.05) < 0.012


def test_p_values_of_inside_points_are_evenly_spread():
    """The combined p-value too: above the level it is a rank."""
    p_values = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        z, new = rng.normal(size=(500, 3)), rng.normal(size=(300, 3))
        splitter = giw.SupportSplitter(random_state=seed).fit({"a": z, "b": z[:, :2]})
        p_values.append(splitter.split({"a": new, "b": new[:, :2]}).p_value)
    shares = np.histogram(np.concatenate(p_values), bins=5, range=(0, 1))[0] / 3_000
    assert_allclose(shares, 0.2, atol=0.035)


def test_what_one_representation_sees_is_outside_whatever_the_others_say():
    rng = np.random.default_rng(0)
    grey, color = rng.normal(size=(600, 8)), np.tile([1.0, 0.0, 0.0], (600, 1))
    color = color + 0.01 * rng.normal(size=color.shape)
    new, green = rng.normal(size=(100, 8)), np.tile([0.0, 1.0, 0.0], (100, 1))
    splitter = giw.SupportSplitter(random_state=0).fit({"grey": grey, "color": color})

    split = splitter.split({"grey": new, "color": green})

    assert not split.inside.any()
    assert (split.p_values["grey"] > 0.05).mean() > 0.8
    assert (split.p_values["color"] < 0.01).all()
    assert set(split.p_values) == {"grey", "grey, unit norm", "color", "color, unit norm"}


def test_the_same_class_that_is_rare_in_training_is_judged_among_its_own():
    """One island is ten times wider, so its points are strange overall and ordinary in its cell."""
    rng = np.random.default_rng(3)
    narrow, wide = islands(1_500, rng, at=(0.0,))[0], islands(300, rng, at=(50.0,), width=10.0)[0]
    z, y = np.concatenate([narrow, wide]), np.repeat(["a", "b"], [1_500, 300])
    val = islands(400, rng, at=(50.0,), width=10.0)[0]
    plain = KNN(relative=0.0)

    def share_outside(**settings):  # few points at a time, so that none says what is usual
        splitter = giw.SupportSplitter(plain, random_state=0, **settings).fit(z, y)
        return 1 - np.mean([splitter.split(part).inside for part in np.split(val, 100)])

    assert share_outside() < 0.1
    assert share_outside(cells="none") > 0.15


def test_what_is_inside_may_be_shifted():
    """A twentieth of training lies on a wider island, and three quarters of validation."""
    together, alone = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        narrow, few = islands(1_900, rng, at=(0.0,))[0], islands(50, rng, at=(0.0,))[0]
        wide, many = (islands(n, rng, at=(50.0,), width=9.0)[0] for n in (100, 150))
        splitter = giw.SupportSplitter(KNN(relative=0.0), random_state=0)
        splitter.fit(np.concatenate([narrow, wide]))
        val = np.concatenate([few, many])
        together.append(1 - splitter.split(val).inside.mean())
        alone.append(1 - np.mean([splitter.split(point[None]).inside for point in val]))
    assert np.mean(alone) > 0.5
    assert np.mean(together) < 0.35


def test_points_are_ranked_among_held_out_rows_of_their_label():
    """Class b is far wider and rare in training, and a net has seen all but the held-out rows."""
    rng = np.random.default_rng(0)

    def draw(n, share):
        y = (rng.random(n) < share).astype(int)
        return rng.normal(size=(n, 4)) * np.where(y, 3.0, 1.0)[:, None], y

    (z, y), (held, y_held), (val, y_val) = draw(2_000, 0.1), draw(1_000, 0.1), draw(400, 0.9)
    splitter = giw.SupportSplitter(random_state=0)
    splitter.fit(z, y, held_out=held, y_held_out=y_held)
    few = [slice(i, i + 4) for i in range(0, 400, 4)]
    known = np.mean([splitter.split(val[i], y_val[i]).inside for i in few])
    unknown = np.mean([splitter.split(val[i]).inside for i in few])
    assert 1 - known < 0.12
    assert 1 - unknown > 0.15


def test_a_label_that_training_never_has_is_outside_by_definition(trained):
    z, y = islands(50, np.random.default_rng(5))
    split = trained.split(z, np.where(np.arange(50) < 10, 7, y))
    assert (split.p_value[:10] == 0).all()
    assert not split.inside[:10].any()
    assert (split.p_values["label"] == np.where(np.arange(50) < 10, 0, 1)).all()
    assert split.inside[10:].mean() > 0.8


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1_000), discrete=st.booleans())
def test_the_order_of_training_rows_does_not_matter(seed, discrete):
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 4, (120, 2)).astype(float) if discrete else rng.normal(size=(120, 2))
    y, new = rng.integers(0, 2, 120), rng.normal(size=(30, 2))
    order = rng.permutation(120)
    splits = [
        giw.SupportSplitter(most_held_out=60, random_state=0).fit(a, b).split(new)
        for a, b in ((z, y), (z[order], y[order]))
    ]
    assert_allclose(splits[0].p_value, splits[1].p_value, atol=1e-12)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1_000), copies=st.integers(1, 5))
def test_constant_columns_change_nothing(seed, copies):
    rng = np.random.default_rng(seed)
    z, new = rng.normal(size=(100, 3)), rng.normal(size=(20, 3))

    def wide(x):
        return np.hstack([x, np.full((len(x), copies), 7.0)])

    plain = giw.SupportSplitter(random_state=0).fit(z).split(new)
    constant = giw.SupportSplitter(random_state=0).fit(wide(z)).split(wide(new))
    # the same rows are held out, as all of them are
    assert_allclose(plain.p_value, constant.p_value, atol=1e-12)


def test_a_point_that_leaves_a_constant_column_is_outside():
    rng = np.random.default_rng(0)
    z = np.hstack([rng.normal(size=(200, 2)), np.zeros((200, 3))])
    new = np.hstack([np.zeros((1, 2)), [[0.0, 9.0, 0.0]]])
    assert not giw.SupportSplitter(random_state=0).fit(z).split(new).inside[0]


def test_oversampled_training_rows_count_once():
    rng = np.random.default_rng(0)
    z, new = rng.normal(size=(300, 3)), rng.normal(size=(200, 3))
    once = giw.SupportSplitter(random_state=0).fit(z).split(new)
    often = giw.SupportSplitter(random_state=0).fit(np.repeat(z, 5, axis=0)).split(new)
    assert_allclose(once.p_value, often.p_value)


def test_validation_rows_that_training_has_too_are_judged_without_their_copy():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(400, 3))
    z[0] = 40.0  # a lone training row; its copy in validation is as strange
    split = giw.SupportSplitter(random_state=0).fit(z).split(z[:200])
    assert not split.inside[0]
    assert abs((1 - split.inside[1:]).mean() - 0.05) < 0.04


def test_rows_of_categories_repeat_by_nature():
    """Two codes in nine of ten rows: a new row of the common kind is as ordinary as can be."""
    rng = np.random.default_rng(0)
    z = rng.choice([0.0, 1.0], size=(500, 3), p=[0.9, 0.1])
    split = giw.SupportSplitter(random_state=0).fit(z).split([[0.0, 0.0, 0.0], [5.0, 5.0, 5.0]])
    assert split.p_value[0] > 0.5
    assert not split.inside[1]


def test_held_out_rows_say_what_is_ordinary_where_a_net_has_seen_the_others():
    """Features that shrank seen rows to a point: without held-out rows all new ones are strange."""
    rng = np.random.default_rng(0)
    seen, held_out, new = 0.01 * rng.normal(size=(300, 2)), *rng.normal(size=(2, 200, 2))
    naive = giw.SupportSplitter(random_state=0).fit(seen).split(new)
    fair = giw.SupportSplitter(random_state=0).fit(seen, held_out=held_out).split(new)
    assert naive.inside.mean() < 0.1
    assert fair.inside.mean() > 0.88


def test_one_validation_row_is_enough(trained):
    assert trained.split([[0.0, 0.0]]).inside.tolist() == [True]
    assert trained.split([[5.0, 5.0]]).inside.tolist() == [False]


def test_with_few_training_rows_the_strangest_is_outside_and_a_warning_says_so():
    z = np.linspace(0, 1, 8)[:, None]
    with pytest.warns(UserWarning, match="8 training rows to compare with cannot give a p-value"):
        splitter = giw.SupportSplitter(random_state=0).fit(z)
    assert splitter.split([[0.5], [100.0]]).inside.tolist() == [True, False]


def test_one_training_row_is_refused():
    with pytest.raises(ValueError, match="at least 2 different"):
        giw.SupportSplitter().fit([[1.0]])


def test_all_rows_equal_is_no_crash():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        split = giw.SupportSplitter(random_state=0).fit(np.zeros((50, 2))).split([[0, 0], [1, 1]])
    assert split.inside.tolist() == [True, False]


def test_tensors_come_back_as_tensors(torch):
    rng = np.random.default_rng(0)
    z, new = rng.normal(size=(100, 2)), rng.normal(size=(10, 2))
    array = giw.SupportSplitter(random_state=0).fit(z).split(new)
    tensor = giw.SupportSplitter(random_state=0).fit(torch.as_tensor(z)).split(torch.as_tensor(new))
    assert isinstance(tensor.inside, torch.Tensor)
    assert tensor.inside.dtype == torch.bool
    assert isinstance(tensor.p_values["input"], torch.Tensor)
    assert_allclose(tensor.p_value.numpy(), array.p_value, rtol=1e-6)


def test_an_embedding_of_ones_own_is_one_more_representation():
    rng = np.random.default_rng(0)
    z = np.hstack([rng.normal(size=(300, 20)), 0.01 * rng.normal(size=(300, 1))])
    new = np.hstack([rng.normal(size=(50, 20)), np.full((50, 1), 1.0)])  # hidden among the others
    plain = giw.SupportSplitter(random_state=0).fit(z).split(new)
    with_eye = giw.SupportSplitter(embed=lambda x: x[:, -1:], random_state=0).fit(z).split(new)
    assert plain.inside.mean() > 0.7
    assert not with_eye.inside.any()
    assert "embedding" in with_eye.p_values


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda z: giw.SupportSplitter(level=2).fit(z), "level must lie between 0 and 1"),
        (lambda z: giw.SupportSplitter("nearest").fit(z), "scorer must be 'knn', 'osvm'"),
        (lambda z: giw.SupportSplitter(cells="k").fit(z), "cells must be 'auto' or 'none'"),
        (lambda z: giw.SupportSplitter().split(z), "call fit"),
        (lambda z: giw.SupportSplitter().fit(z).split(z[:, :1]), "both need the same"),
        (lambda z: giw.SupportSplitter().fit(z).split(z, z[:, 0]), "fit saw no y"),
        (lambda z: giw.SupportSplitter().fit({"a": z, "b": z[1:]}), "the same rows"),
        (lambda z: giw.SupportSplitter().fit(z * np.nan), "NaN or infinite"),
        (lambda z: giw.SupportSplitter().fit(z[:, :, None]), "flatten each point first"),
        (lambda z: giw.SupportSplitter("osvm", threshold="book").fit(z).split(z), "no threshold"),
    ],
)
def test_what_cannot_be_split_is_refused_in_words(call, said):
    with pytest.raises(ValueError, match=said):
        call(np.random.default_rng(0).normal(size=(60, 2)))


def table(rng, n, hospitals=("a", "b", "c")):
    return pd.DataFrame(
        {
            "age": rng.normal(50, 10, n),
            "hospital": rng.choice(hospitals, n),
            "code": rng.integers(0, 20 * n, n).astype(str),  # nearly every row has its own
            "weight": rng.normal(70, 5, n),
        }
    )


def test_a_new_hospital_is_outside_and_a_new_code_among_thousands_is_not():
    rng = np.random.default_rng(0)
    X, Xv = table(rng, 500), table(rng, 60)
    Xv.loc[:9, "hospital"] = "d"
    split = giw.SupportSplitter(random_state=0).fit(X).split(Xv)
    assert not split.inside[:10].any()
    assert split.inside[10:].mean() > 0.85
    assert (split.p_values["levels"][:10] < 0.01).all()
    assert (split.p_values["levels"][10:] > 0.05).all()


def test_a_value_missing_where_training_has_none_is_outside():
    rng = np.random.default_rng(0)
    X, Xv = table(rng, 500), table(rng, 60)
    Xv.loc[:4, "weight"] = np.nan
    Xv.loc[5:9, "hospital"] = None
    split = giw.SupportSplitter(random_state=0).fit(X).split(Xv)
    assert not split.inside[:10].any()
    X.loc[::4, "weight"], X.loc[1::4, "hospital"] = np.nan, None
    known = giw.SupportSplitter(random_state=0).fit(X).split(Xv)
    assert known.inside[:10].mean() > 0.5


def test_rows_with_unseen_levels_leave_the_others_what_is_left_of_the_level():
    """Four of a hundred training rows have a level of their own; all in all five are outside."""
    rates = []
    for seed in range(15):
        rng = np.random.default_rng(seed)

        def draw(n, rng=rng):
            number = rng.normal(size=n)
            own = rng.random(n) < 0.04
            fresh = rng.integers(10**9, size=n).astype(str)
            return pd.DataFrame({"x": number, "code": np.where(own, fresh, "usual")})

        splitter = giw.SupportSplitter(random_state=0).fit(draw(1_000))
        rates.append(1 - splitter.split(draw(500)).inside.mean())
    assert abs(np.mean(rates) - 0.05) < 0.015


def test_an_unseen_level_is_no_stranger_than_those_that_training_rows_have_alone():
    """Forty columns with rare levels: in some of them validation alone happens to have one."""
    p_value = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        rows = {f"c{j}": rng.choice(list("abcdef"), 900, p=[0.497, 0.5, *[0.00075] * 4])
                for j in range(40)}  # fmt: skip
        frame = pd.DataFrame(rows)
        splitter = giw.SupportSplitter(random_state=0).fit(frame[:600])
        p_value.append(splitter.split(frame[600:]).p_values["levels"])
    p_value = np.concatenate(p_value)
    assert (p_value < 1).mean() > 0.05
    for level in (0.01, 0.03, 0.06):
        assert (p_value <= level).mean() <= 1.4 * level


# the published rule recognises copies and hardly anything else


def test_copies_are_inside_and_their_neighbours_are_not():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(200, 6))
    split = giw.SupportSplitter("osvm").fit(z).split(np.concatenate([z[:20], z[:20] + 0.3]))
    assert split.inside[:20].mean() > 0.9
    assert not split.inside[20:].any()


def test_the_thresholds_are_those_of_the_text_and_of_the_code():
    rng = np.random.default_rng(0)
    z, new = rng.normal(size=(100, 3)), rng.normal(size=(50, 3))
    z, new = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (z, new))
    score = OneClassSVM(gamma=10_000).fit(z).score_samples(new)
    for threshold, value in (("text", 0.4), ("code", 1e-4), (0.01, 0.01)):
        split = giw.SupportSplitter("osvm", threshold=threshold).fit(z).split(new)
        assert_array_equal(split.inside, score > value)
        assert_allclose(split.score, score)
