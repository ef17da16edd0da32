import pytest
import torch

from giw.nets.validation_augmentation import (
    MOVES,
    are_images,
    even_uniforms,
    jittered,
    moved_images,
    recurrence,
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


def test_noise_by_hand():
    x, other = torch.tensor([[1.0, 2.0], [0.0, 4.0]]), torch.tensor([[3.0, 0.0], [2.0, 2.0]])
    amount = torch.tensor([0.0, 0.1])
    found = jittered(x, other, torch.zeros_like(other), amount)
    torch.testing.assert_close(found, torch.tensor([[1.0, 2.0], [0.2, 4.2]]))


def test_only_square_and_not_too_small_images_are_moved():
    assert are_images(torch.zeros(2, 1, 32, 32))
    assert not are_images(torch.zeros(2, 1, 32, 30))
    assert not are_images(torch.zeros(2, 1, 8, 8))
    assert not are_images(torch.zeros(2, 64))
