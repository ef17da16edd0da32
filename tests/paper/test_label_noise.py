"""Symmetric noise on training labels."""

import numpy as np

from giw.paper.shifts import Sample, label_noise

N_CLASSES = 5


def clean(n=500):
    y = np.random.default_rng(0).integers(N_CLASSES, size=n)
    return Sample(np.arange(n)[:, None], y, y, tuple("01234"))


def test_the_rate_is_the_total_probability_of_leaving_the_true_class():
    train = clean(20_000)

    noisy = label_noise(train, rate=0.4, random_state=1)
    moved = noisy.y != train.y

    assert abs(moved.mean() - 0.4) < 4 * np.sqrt(0.24 / len(train))
    step = (noisy.y - train.y)[moved] % N_CLASSES
    counts = np.bincount(step, minlength=N_CLASSES)[1:]
    np.testing.assert_allclose(counts / counts.sum(), 1 / 4, atol=4 * np.sqrt(0.19 / counts.sum()))


def test_a_flip_never_lands_where_it_was():
    assert (label_noise(clean(), rate=1.0, random_state=1).y != clean().y).all()


def test_a_higher_rate_flips_a_superset_to_the_same_labels():
    low, high = (label_noise(clean(), rate=rate, random_state=1).y for rate in (0.2, 0.4))
    moved = low != clean().y

    np.testing.assert_array_equal(low[moved], high[moved])


def test_no_noise_changes_nothing():
    np.testing.assert_array_equal(label_noise(clean(), rate=0.0, random_state=1).y, clean().y)
