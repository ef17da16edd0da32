import pytest
import torch

from giw.data.vicinity import (
    BENDS,
    MOVES,
    are_images,
    even_uniforms,
    jittered,
    mixed,
    moved_images,
    recurrence,
    waves,
)


def test_the_recurrence_in_one_dimension_is_the_golden_ratio():
    assert recurrence(1).tolist() == pytest.approx([(5**0.5 - 1) / 2])


def test_numbers_are_even_and_go_on_where_they_stopped():
    phase = torch.tensor([0.3, 0.7, 0.1])
    whole, end = even_uniforms(phase, 4000)
    half, middle = even_uniforms(phase, 2000)
    rest, _ = even_uniforms(middle, 50)
    torch.testing.assert_close(rest, whole[2000:2050], atol=1e-3, rtol=0)
    torch.testing.assert_close(half, whole[:2000])
    assert torch.equal(end, whole[-1])
    for column in whole.T:
        counts = torch.histc(column, 20, 0, 1)
        assert (counts - 200).abs().max() <= 8
    assert torch.corrcoef(whole.T).fill_diagonal_(0).abs().max() < 0.02


def test_one_half_leaves_an_image_where_it_is():
    x = torch.rand(3, 2, 16, 16)
    torch.testing.assert_close(moved_images(x, torch.full((3, MOVES), 0.5)), x, atol=1e-5, rtol=0)


def test_each_number_moves_the_image_in_its_own_way():
    x = torch.zeros(1, 1, 17, 17)
    x[..., 5:9, 4:14] = 1
    seen = []
    for k in range(MOVES):
        uniform = torch.full((1, MOVES), 0.5)
        uniform[0, k] = 1.0
        seen.append(moved_images(x, uniform))
        assert (seen[-1] - x).abs().max() > 0.1
    for a in range(MOVES):
        for b in range(a):
            assert (seen[a] - seen[b]).abs().max() > 0.05


def test_a_shift_is_a_twentieth_of_the_side():
    x = torch.zeros(1, 1, 20, 20)
    x[0, 0, 10, 10] = 1
    uniform = torch.full((1, MOVES), 0.5)
    uniform[0, 4] = 1.0
    assert moved_images(x, uniform)[0, 0, 10].argmax() == 9


def test_mixing_and_noise_by_hand():
    x, other = torch.tensor([[1.0, 2.0], [0.0, 4.0]]), torch.tensor([[3.0, 0.0], [2.0, 2.0]])
    share = torch.tensor([1.0, 0.5])
    torch.testing.assert_close(mixed(x, other, share), torch.tensor([[1.0, 2.0], [1.0, 3.0]]))
    amount = torch.tensor([0.0, 0.1])
    found = jittered(x, other, torch.zeros_like(other), amount)
    torch.testing.assert_close(found, torch.tensor([[1.0, 2.0], [0.2, 4.2]]))


def test_only_square_and_not_too_small_images_are_moved():
    assert are_images(torch.zeros(2, 1, 32, 32))
    assert not are_images(torch.zeros(2, 1, 32, 30))
    assert not are_images(torch.zeros(2, 1, 8, 8))
    assert not are_images(torch.zeros(2, 64))


def test_waves_by_hand_and_none_at_one_half():
    """Rows swing along x by sin(pi y), columns along y by sin(pi x + pi / 2)."""
    found = waves(torch.tensor([[1.0, 0.75, 0.0, 0.25]]), 4, bend=0.2)[0]
    center = torch.tensor([-0.75, -0.25, 0.25, 0.75])
    torch.testing.assert_close(found[..., 0], 0.2 * (torch.pi * center).sin()[:, None].expand(4, 4))
    torch.testing.assert_close(found[..., 1], 0.1 * (torch.pi * center).cos().expand(4, 4))
    assert not waves(torch.full((3, BENDS), 0.5), 16, bend=0.2).any()


def test_a_bent_image_keeps_its_place_and_loses_its_straight_lines():
    x = torch.zeros(1, 1, 32, 32)
    x[..., 15:17] = 1  # an upright line
    uniform = torch.full((1, MOVES), 0.5)
    offset = waves(torch.tensor([[1.0, 0.5, 0.0, 0.0]]), 32, bend=0.2)
    column = (moved_images(x, uniform, offset)[0, 0] * torch.arange(32)).sum(1)
    column = column / moved_images(x, uniform, offset)[0, 0].sum(1)
    middle = 15.5 - 16 * 0.2 * (torch.pi * (2 * torch.arange(32) + 1 - 32) / 32).sin()
    torch.testing.assert_close(column, middle, atol=0.1, rtol=0)
