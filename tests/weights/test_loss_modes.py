import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from giw.weights.loss_histogram import BINS, loss_histogram, loss_nodes, one_hot
from giw.weights.loss_modes import high_share, mode_counts, mode_ratio, moved_counts, otsu_threshold


def histogram_of(places):
    """Losses whose labels have probability one minus each place, all of one class."""
    losses = -torch.log1p(-torch.as_tensor(places, dtype=torch.float32).clamp(max=0.9999))
    classes = one_hot(torch.zeros(len(losses), dtype=torch.long), 1)
    return loss_histogram(loss_nodes(losses), classes)


def test_two_lumps_part_in_the_middle_of_the_gap():
    assert otsu_threshold(histogram_of([0.1] * 6 + [0.9] * 4)) == pytest.approx(0.5, abs=0.02)
    assert otsu_threshold(histogram_of([0.0] * 9 + [0.4])) == pytest.approx(0.2, abs=0.02)


def test_the_threshold_is_otsus():
    """The best of all thresholds by variance within, tried one by one."""
    generator = torch.Generator().manual_seed(0)
    low = 0.3 * torch.rand(300, generator=generator)
    high = 0.45 + 0.5 * torch.rand(90, generator=generator)
    share = histogram_of(torch.cat([low, high])).sum(0)
    place = torch.arange(BINS + 1) / BINS

    def within(k):
        parts = []
        for part in (slice(0, k + 1), slice(k + 1, None)):
            mass = share[part].sum()
            mean = (share[part] * place[part]).sum() / mass
            parts.append((share[part] * (place[part] - mean).square()).sum())
        return float(sum(parts))

    found = int(otsu_threshold(share[None]) * BINS)
    assert within(found) == pytest.approx(min(map(within, range(5, BINS - 2))), rel=1e-2)


def test_constant_losses_have_a_threshold_all_the_same():
    assert 0 <= otsu_threshold(histogram_of([0.0] * 5)) <= 1
    assert 0 <= otsu_threshold(torch.zeros(1, BINS + 1)) <= 1


def test_the_upper_mode_starts_on_a_ramp_around_the_threshold():
    high = high_share(torch.tensor(0.5))
    assert high[0] == 0
    assert high[BINS] == 1
    assert high[BINS // 2] == pytest.approx(0.5)
    assert (high.diff() >= 0).all()


def counts_of(places, expected, inside=None):
    """Validation losses at places, in a class of which a share is in the upper mode."""
    histogram = torch.zeros(1, BINS + 1)
    histogram[0, 0], histogram[0, BINS] = 1 - expected, expected
    losses = -torch.log1p(-torch.tensor(places).clamp(max=0.9999))
    classes = torch.ones(len(places), 1)
    inside = torch.ones(len(places)) if inside is None else torch.tensor(inside)
    return mode_counts(histogram, loss_nodes(losses), classes, inside)


def test_ratios_are_observed_over_expected_with_half_a_point_more_on_both_sides():
    """Seven inside points, none in an upper mode that holds 40 % of training."""
    counts = counts_of([0.0] * 7, 0.4)
    torch.testing.assert_close(counts, torch.tensor([[7.0, 0.0], [4.2, 2.8]]))
    torch.testing.assert_close(mode_ratio(counts), torch.tensor([7.5 / 4.7, 0.5 / 3.3]))


def test_less_doubt_empties_a_mode_that_lacks_points_and_lifts_none():
    lacking = counts_of([0.0] * 7, 0.4)
    torch.testing.assert_close(mode_ratio(lacking, doubt=0.1)[1], torch.tensor(0.1 / 2.9))
    assert mode_ratio(lacking, doubt=0.0)[1] == 0
    crowded = counts_of([0.0] * 6 + [0.99], 0.01)
    torch.testing.assert_close(mode_ratio(crowded, doubt=0.0)[1], torch.tensor(1.5 / 0.57))
    torch.testing.assert_close(mode_ratio(torch.zeros(2, 2), doubt=0.0), torch.ones(2))


def test_points_outside_do_not_count():
    counts = counts_of([0.0, 0.99], 0.5, inside=[1.0, 0.0])
    torch.testing.assert_close(counts, torch.tensor([[1.0, 0.0], [0.5, 0.5]]))


def test_where_few_are_expected_nothing_is_concluded():
    found = mode_ratio(counts_of([0.0] * 8, 0.02))
    torch.testing.assert_close(found, torch.ones(2), atol=0.25, rtol=0)
    torch.testing.assert_close(mode_ratio(counts_of([0.0], 0.3, [0.0])), torch.ones(2))


def test_expectations_are_those_of_each_points_class():
    histogram = torch.zeros(2, BINS + 1)
    histogram[0, 0], histogram[1, 0], histogram[1, BINS] = 0.5, 0.125, 0.375
    nodes, classes = loss_nodes(torch.zeros(2)), torch.eye(2)
    counts = mode_counts(histogram, nodes, classes, torch.ones(2))
    torch.testing.assert_close(counts[1], torch.tensor([1.25, 0.75]))


def test_running_counts_stand_for_the_whole_validation_set():
    whole = torch.tensor([[6.0, 2.0], [4.0, 4.0]])
    batch = torch.tensor([[1.0, 0.0], [0.5, 0.5]])  # one of eight points
    found = moved_counts(whole, batch, window=4)
    torch.testing.assert_close(found, torch.tensor([[6.5, 1.5], [4.0, 4.0]]))
    torch.testing.assert_close(moved_counts(whole, torch.zeros(2, 2), window=4), whole)


@given(st.lists(st.tuples(st.floats(0, 0.999), st.floats(0, 1)), min_size=1, max_size=30))
def test_ratios_are_positive_and_bounded_by_the_points_there_are(rows):
    places, inside = [row[0] for row in rows], [row[1] for row in rows]
    found = mode_ratio(counts_of(places, 0.3, inside))
    assert (found > 0).all()
    assert (found <= 2 * len(rows) + 1.01).all()
