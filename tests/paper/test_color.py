"""Red in training, three colors in the test distribution."""

import numpy as np

from giw.paper.shifts import Sample, color_shift


def grey(n=400):
    """Images whose pixels spell their row number; class sizes are unequal."""
    rng = np.random.default_rng(0)
    y = np.minimum(rng.integers(12, size=n), 9)  # class 9 three times as large
    number = np.arange(1, n + 1, dtype=np.uint16)
    pixels = np.stack([number // 256, number % 256], -1).astype(np.uint8)
    return Sample(pixels.reshape(n, 1, 1, 2), y, y, tuple("0123456789"))


def rows(sample):
    pixels = sample.x.sum(axis=1)[:, 0].astype(int)  # only one channel is not zero
    return set(pixels[:, 0] * 256 + pixels[:, 1])


def color(sample):
    return sample.x.any(axis=(2, 3)).argmax(axis=1)


def shifted(**options):
    return color_shift(grey(), test=grey(90), **{"random_state": 0, **options})


def test_training_is_red_and_the_rest_evenly_colored():
    problem, truth = shifted()

    assert not problem.train.x[:, 1:].any()
    np.testing.assert_array_equal(np.bincount(color(problem.val)), [7, 7, 6])
    np.testing.assert_array_equal(np.bincount(color(problem.test)), [30, 30, 30])
    np.testing.assert_array_equal(truth.inside, color(problem.val) == 0)
    assert truth.alpha == 0.35
    np.testing.assert_array_equal(np.bincount(problem.val.y), [2] * 10)


def test_honest_validation_images_are_no_training_images_in_any_color():
    problem, _ = shifted()

    assert not rows(problem.val) & rows(problem.train)
    assert len(rows(problem.val) | rows(problem.train)) == 400
    assert rows(shifted(random_state=1)[0].val) != rows(problem.val)


def test_published_validation_stays_in_training_and_is_the_same_for_every_seed():
    first, _ = shifted(protocol="published", random_state=1)
    second, _ = shifted(protocol="published", random_state=2)

    assert rows(first.val) <= rows(first.train)
    np.testing.assert_array_equal(first.val.x, second.val.x)


def test_colors_do_not_follow_the_digit():
    """Over many draws every digit is red as often as any other."""
    red = np.zeros(10)
    for seed in range(200):
        problem, truth = shifted(random_state=seed)
        red += np.bincount(problem.val.y[truth.inside], minlength=10)

    np.testing.assert_allclose(red / 400, 0.35, atol=0.1)
