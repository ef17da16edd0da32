"""Two groups of p-values."""

import numpy as np

from giw.support.mixture import split_mixture


def uniform(m, count):
    """Evenly spaced ranks: no sampling noise."""
    return np.clip(np.ceil((np.arange(m) + 0.5) / m * (count + 1)), 1, count + 1).astype(int)


def estimate(rank, count, unseen=None):
    unseen = np.zeros(len(rank), dtype=bool) if unseen is None else unseen
    return split_mixture(rank, np.full(len(rank), count), unseen)


def test_uniform_p_values_mean_everything_is_inside():
    result = estimate(uniform(200, 999), 999)

    assert result.share > 0.97
    assert result.interval[1] == 1.0
    assert result.posterior.min() > 0.3


def test_smallest_p_values_mean_everything_is_outside():
    result = estimate(np.ones(200, dtype=int), 999)

    assert result.share == 0.0
    assert result.posterior.max() < 0.01


def test_two_clean_groups_give_their_share():
    rank = np.concatenate([uniform(80, 999), np.ones(120, dtype=int)])

    result = estimate(rank, 999)

    assert abs(result.share - 0.4) < 0.03
    assert result.interval[0] < 0.4 < result.interval[1]
    assert result.posterior[80:].max() < 0.05


def test_the_posterior_grows_with_the_p_value():
    rank = np.concatenate([uniform(40, 999), np.arange(1, 41)])
    result = estimate(rank, 999)
    order = np.argsort(rank)

    assert (np.diff(result.posterior[order]) >= -1e-12).all()


def test_more_points_narrow_the_interval():
    widths = []
    for m in (20, 200, 2_000):
        rank = np.concatenate([uniform(m // 2, 999), np.ones(m // 2, dtype=int)])
        low, high = estimate(rank, 999).interval
        widths.append(high - low)

    assert widths[0] > widths[1] > widths[2]


def test_one_point_says_little():
    low, high = estimate(np.array([500]), 999).interval

    assert low < 0.2
    assert high == 1.0


def test_unseen_labels_count_as_outside_for_certain():
    rank = np.concatenate([uniform(100, 999), uniform(100, 999)])
    unseen = np.repeat([False, True], 100)

    result = estimate(rank, 999, unseen)

    assert abs(result.share - 0.5) < 0.05
    assert (result.posterior[unseen] == 0).all()


def test_only_unseen_labels():
    result = estimate(uniform(30, 999), 999, np.ones(30, dtype=bool))

    assert result.share < 0.05
    assert (result.posterior == 0).all()
