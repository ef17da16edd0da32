import numpy as np
from numpy.testing import assert_allclose

from giw.diagnosis.labels import CrossFitted, cross_fit, suspects_among, twins

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(500, 2)) + 4 * np.repeat([0, 1], 250)[:, None]
TRUE = np.repeat([0, 1], 250)
Z_VAL = Z[::5] + 0.01


def looked(label):
    fitted = cross_fit(Z, label, Z_VAL, classes=2, generator=np.random.default_rng(1))
    return suspects_among(fitted, label, names=["no", "yes"], row_numbers=np.arange(1000, 1500))


def test_clean_labels_raise_no_suspicion():
    assert looked(TRUE) == ()


def test_flipped_labels_are_listed():
    flipped = np.random.default_rng(2).random(500) < 0.15
    suspects = looked(np.where(flipped, 1 - TRUE, TRUE))

    assert len(suspects) > 20
    assert all(s.line == s.row + 2 for s in suspects)
    assert all(flipped[s.row - 1000] for s in suspects)
    assert all({s.label, s.likely} == {"no", "yes"} for s in suspects)


def test_a_validation_row_that_is_a_training_row_is_judged_by_the_forest_without_it():
    label = np.random.default_rng(4).integers(0, 2, 500)
    both = np.concatenate([Z[:50], Z_VAL[:20]])
    fitted = cross_fit(Z, label, both, classes=2, generator=np.random.default_rng(1))
    for forest in fitted.val:
        assert_allclose(forest[:50], fitted.train[:50])
    assert np.ptp(fitted.val[:, 50:], axis=0).max() > 0


def test_twins_are_found_where_something_is_measured():
    assert twins(Z, np.concatenate([Z[[7, 3]], Z_VAL[:1]])).tolist() == [7, 3, -1]
    categories = np.arange(40.0)[:, None] % 3
    assert twins(categories, categories[:2]).tolist() == [-1, -1]
    assert len(twins(Z, Z[:0])) == 0


def test_a_row_never_votes_for_itself():
    """Random labels of far points: only a model that has seen them could be right."""
    z = 100.0 * np.arange(200)[:, None]
    label = np.random.default_rng(3).integers(0, 2, 200)
    fitted = cross_fit(z, label, z[:0], classes=2, generator=np.random.default_rng(4))
    right = (fitted.train.argmax(axis=1) == label).mean()
    assert 0.35 < right < 0.65


def test_probabilities_add_up_to_one():
    fitted = cross_fit(Z, TRUE, Z_VAL, classes=3, generator=np.random.default_rng(0))
    assert fitted.train.shape == (500, 3)
    assert_allclose(fitted.train.sum(axis=1), 1)
    assert_allclose(fitted.val.sum(axis=2), 1)
    assert not fitted.train[:, 2].any()  # a class that only validation has


def test_surprise_and_wrong_by_hand():
    fitted = CrossFitted(
        fold=np.array([0, 1]),
        train=np.array([[0.9, 0.1], [0.4, 0.6]]),
        val=np.array([[[0.8, 0.2], [0.3, 0.7]], [[0.4, 0.6], [0.9, 0.1]]]),
    )
    surprise = fitted.surprise(np.array([0, 0]), np.array([1, 1]))
    wrong = fitted.wrong(np.array([0, 0]), np.array([1, 1]))

    assert_allclose(surprise[0], [0.1, 0.6])
    assert_allclose(surprise[1], [0.8, 0.9])  # the first row by the first model, and so on
    assert_allclose(wrong[0], [0, 1])
    assert_allclose(wrong[1], [0.5, 0.5])
