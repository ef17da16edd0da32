"""Each image moves by its own draw."""

from math import pi

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from giw.nets.augmentation import (
    CIFAR_AUGMENTATION,
    MNIST_AUGMENTATION,
    Augmentation,
    affine_maps,
    warp,
)

SIDE = 8


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def images(n=1, channels=2, seed=0):
    return torch.rand(n, channels, SIDE, SIDE, generator=generator(seed))


def maps(angle=0.0, scale=1.0, mirror=(1.0, 1.0), shift=(0.0, 0.0)):
    return affine_maps(*(torch.tensor([v], dtype=torch.float32) for v in (angle, scale)),
                       torch.tensor([mirror]), torch.tensor([shift]))  # fmt: skip


def close(a, b):
    torch.testing.assert_close(a, b, rtol=0, atol=1e-5)


def test_no_movement_is_the_identity():
    close(warp(images(), maps()), images())
    close(Augmentation()(images(), generator=generator()), images())


def test_a_quarter_turn_is_counter_clockwise():
    close(warp(images(), maps(angle=pi / 2)), torch.rot90(images(), 1, (2, 3)))


def test_mirrors_flip_the_axis_they_name():
    close(warp(images(), maps(mirror=(-1.0, 1.0))), images().flip(3))
    close(warp(images(), maps(mirror=(1.0, -1.0))), images().flip(2))


def test_a_shift_by_whole_pixels_moves_them_right_and_down_and_leaves_black():
    x = images()
    moved = warp(x, maps(shift=(2 * 3 / SIDE, 2 * 1 / SIDE)))

    close(moved[:, :, 1:, 3:], x[:, :, :-1, :-3])
    assert moved[:, :, 0].abs().max() < 1e-5
    assert moved[:, :, :, :3].abs().max() < 1e-5


def test_magnification_by_two_shows_the_middle_half():
    plateau = torch.zeros(1, 1, SIDE, SIDE)
    plateau[:, :, 2:6, 2:6] = 1.0

    close(warp(plateau, maps(scale=2.0))[:, :, 1:-1, 1:-1], torch.ones(1, 1, 6, 6))


def test_movements_compose_in_the_order_mirror_rotate_scale_shift():
    x = images()
    together = maps(angle=pi / 2, mirror=(-1.0, 1.0), shift=(2 / SIDE, 0.0))

    one_by_one = warp(x, maps(mirror=(-1.0, 1.0)))
    one_by_one = warp(one_by_one, maps(angle=pi / 2))
    close(warp(x, together), warp(one_by_one, maps(shift=(2 / SIDE, 0.0))))


@pytest.mark.parametrize("recipe", [MNIST_AUGMENTATION, CIFAR_AUGMENTATION])
@given(seed=st.integers(0, 1000))
@settings(deadline=None, max_examples=10)
def test_draws_stay_within_what_the_paper_says(recipe, seed):
    drawn = recipe.draw(500, 32, generator=generator(seed))  # (n, 2, 3)
    linear = drawn[:, :, :2]

    shrink = torch.linalg.det(linear).abs().sqrt()  # one over the scale
    assert ((1 / shrink >= recipe.scale[0] - 1e-4) & (1 / shrink <= recipe.scale[1] + 1e-4)).all()
    # The mirror multiplies rows, so that the angle can be read off either row up to signs.
    angle = torch.atan2(linear[:, 0, 1].abs(), linear[:, 0, 0].abs()) * 180 / pi
    assert angle.max() <= sum(recipe.rotations) + 1e-3
    assert angle.max() > 0.7 * sum(recipe.rotations)
    shift = torch.linalg.solve(linear, -drawn[:, :, 2]) / 2  # as a share of the side
    assert shift.abs().max() <= recipe.translate + recipe.crop_padding / 32 + 1e-4
    assert shift.abs().max() > 0.9 * (recipe.translate + recipe.crop_padding / 32)


def test_cifar_mirrors_half_of_the_images_each_way_and_crops_by_whole_pixels():
    drawn = CIFAR_AUGMENTATION.draw(4000, 32, generator=generator())
    linear = drawn[:, :, :2]

    for axis in range(2):
        assert abs((linear[:, axis, axis] < 0).float().mean() - 0.5) < 0.04
    pixels = torch.linalg.solve(linear, -drawn[:, :, 2]) * 16
    close(pixels, pixels.round())
    assert set(pixels.round().int().flatten().tolist()) == set(range(-4, 5))


def test_each_image_has_its_own_draw_and_a_seed_gives_the_same_again():
    x = images().expand(6, -1, -1, -1)

    moved = MNIST_AUGMENTATION(x, generator=generator(3))

    assert torch.equal(moved, MNIST_AUGMENTATION(x, generator=generator(3)))
    assert all(not torch.equal(moved[0], other) for other in moved[1:])
    assert moved.shape == x.shape


def test_the_global_seed_is_left_alone():
    before = torch.get_rng_state()
    CIFAR_AUGMENTATION(images(3), generator=generator())

    assert torch.equal(torch.get_rng_state(), before)


def test_trials_can_be_stacked():
    x, drawn = images(6), MNIST_AUGMENTATION.draw(6, SIDE, generator=generator())

    stacked = torch.vmap(warp)(x.reshape(2, 3, 2, SIDE, SIDE), drawn.reshape(2, 3, 2, 3))

    close(stacked.flatten(0, 1), warp(x, drawn))


@pytest.mark.parametrize(
    "wrong", [{"scale": (0.0, 1.0)}, {"scale": (1.2, 1.0)}, {"translate": -1.0}]
)
def test_impossible_recipes_are_refused(wrong):
    with pytest.raises(ValueError, match=r"scale goes|must not be negative"):
        Augmentation(**wrong)


def test_images_that_are_not_square_are_refused():
    with pytest.raises(ValueError, match="need square images"):
        Augmentation()(torch.zeros(1, 1, 4, 5), generator=generator())
