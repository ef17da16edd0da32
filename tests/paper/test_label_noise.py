"""Symmetric noise on training labels."""

import numpy as np
import pytest

from giw.paper.sample import Sample
from giw.paper.shifts import label_noise, support_shift

N_CLASSES = 5


def clean(n=20_000):
    rng = np.random.default_rng(0)
    y = rng.integers(N_CLASSES, size=n)
    sample = Sample(np.arange(n)[:, None].astype(float), y, y)
    return support_shift(
        sample, train_groups=range(5), test_groups=range(5), n_val=5, random_state=0
    )


def test_the_rate_is_the_total_probability_of_leaving_the_true_class():
    problem, truth = clean()

    noisy, noisy_truth = label_noise(problem, truth, rate=0.4, random_state=1)
    moved = noisy.train.y != problem.train.y

    np.testing.assert_array_equal(noisy_truth.flipped, moved)  # a flip never lands where it was
    n = len(moved)
    assert abs(moved.mean() - 0.4) < 4 * np.sqrt(0.24 / n)
    step = (noisy.train.y - problem.train.y)[moved] % N_CLASSES
    counts = np.bincount(step, minlength=N_CLASSES)[1:]
    np.testing.assert_allclose(counts / counts.sum(), 1 / 4, atol=4 * np.sqrt(0.19 / counts.sum()))


def test_validation_and_test_labels_stay_clean():
    problem, truth = clean(500)

    noisy, _ = label_noise(problem, truth, rate=1.0, random_state=1)

    np.testing.assert_array_equal(noisy.val.y, problem.val.y)
    np.testing.assert_array_equal(noisy.test.y, problem.test.y)
    assert (noisy.train.y != problem.train.y).all()


def test_flipped_points_weigh_nothing_and_clean_ones_the_same():
    problem, truth = clean(500)

    _, noisy = label_noise(problem, truth, rate=0.2, random_state=1)

    np.testing.assert_array_equal(noisy.weight[noisy.flipped], 0.0)
    grown = noisy.weight[~noisy.flipped] / truth.weight[~noisy.flipped]
    np.testing.assert_allclose(grown, grown[0])
    assert noisy.weight.mean() == pytest.approx(1.0)


def test_a_higher_rate_flips_a_superset():
    problem, truth = clean(500)
    _, low = label_noise(problem, truth, rate=0.2, random_state=1)
    _, high = label_noise(problem, truth, rate=0.4, random_state=1)

    assert not (low.flipped & ~high.flipped).any()


def test_no_noise_changes_nothing():
    problem, truth = clean(500)
    noisy, same = label_noise(problem, truth, rate=0.0, random_state=1)

    np.testing.assert_array_equal(noisy.train.y, problem.train.y)
    np.testing.assert_allclose(same.weight, truth.weight)


def test_wrong_rates_and_noise_upon_noise_are_refused():
    problem, truth = clean(500)
    with pytest.raises(ValueError, match=r"between 0 and 1, got 1\.5"):
        label_noise(problem, truth, rate=1.5)
    with pytest.raises(ValueError, match="apply label_noise once"):
        label_noise(*label_noise(problem, truth, rate=0.5, random_state=0), rate=0.5)
