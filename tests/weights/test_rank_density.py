import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from giw.weights.rank_density import STEPS, density_at, rank_density

GRID = torch.linspace(0, 1, STEPS + 1)


def test_no_point_leaves_the_density_near_uniform_and_no_weight_is_no_point():
    prior = rank_density(torch.empty(0))
    assert (prior > 0.5).all()
    assert (prior < 1.5).all()
    torch.testing.assert_close(rank_density(torch.tensor([0.1, 0.2]), torch.zeros(2)), prior)


def test_evenly_spread_ranks_give_a_uniform_density():
    even = rank_density((torch.arange(200) + 0.5) / 200)
    torch.testing.assert_close(even, torch.ones(STEPS + 1), atol=0.08, rtol=0)


@pytest.mark.parametrize("mirrored", [False, True])
def test_many_points_in_the_lower_sixty_percent_give_the_ratio_of_forty_percent_flipped(mirrored):
    """Flipped labels take the upper 40 % of ranks: the truth is 1 / 0.6 below and 0 above."""
    rank = 0.6 * (torch.arange(500) + 0.5) / 500
    density = rank_density(1 - rank if mirrored else rank)
    density = density.flip(0) if mirrored else density
    low = density_at(density, torch.tensor([0.1, 0.5]))
    torch.testing.assert_close(low, torch.full((2,), 1 / 0.6), rtol=0.06, atol=0)
    assert density_at(density, torch.tensor([0.7, 0.9])).max() < 0.1


def test_fewer_points_stay_closer_to_uniform():
    distance = []
    for count in (2, 7, 20, 100):
        rank = 0.6 * (torch.arange(count) + 0.5) / count
        distance.append(float((rank_density(rank) - 1).abs().mean()))
    assert distance == sorted(distance)
    assert distance[0] < 0.25 < 0.4 < distance[-1]


def test_a_point_of_half_weight_is_half_a_point():
    one = rank_density(torch.tensor([0.1, 0.3]))
    halves = rank_density(torch.tensor([0.1, 0.1, 0.3, 0.3]), torch.full((4,), 0.5))
    torch.testing.assert_close(one, halves)


@given(st.lists(st.floats(0, 1), max_size=40))
def test_a_density_is_positive_bounded_and_has_mean_one(rank):
    density = rank_density(torch.tensor(rank))
    assert (density > 0).all()
    assert (density <= 1 / 0.3 + 0.1).all()
    assert torch.trapezoid(density, GRID) == pytest.approx(1, abs=1e-4)


@given(st.permutations([0.05, 0.2, 0.21, 0.6, 0.9]))
def test_the_order_of_points_does_not_matter(rank):
    expected = rank_density(torch.tensor([0.05, 0.2, 0.21, 0.6, 0.9]))
    torch.testing.assert_close(rank_density(torch.tensor(rank)), expected)
