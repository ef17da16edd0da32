"""Images as nets take them, moved about each by its own numbers."""

from math import pi

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from giw.nets.images import Augmentation, affine_maps, resize_images, warp
from giw.nets.methods.giw_plus import MOVES, even_uniforms, jittered, moved_images
from giw.nets.models import as_input

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


def test_bytes_become_unit_floats_and_floats_pass():
    assert torch.equal(
        as_input(torch.tensor([0, 51, 255], dtype=torch.uint8)), torch.tensor([0.0, 0.2, 1.0])
    )
    x = torch.tensor([-3.0, 7.0])
    assert as_input(x) is x


def test_doubling_an_image_puts_new_pixels_at_quarters():
    """With corners not aligned, new centres fall a quarter pixel beside the old ones."""
    image = torch.tensor([[[0.0, 4.0], [0.0, 4.0]]])  # (1, 2, 2)

    row = torch.tensor([0.0, 1.0, 3.0, 4.0])

    assert torch.equal(resize_images(image, 4), row.expand(1, 4, 4))


def test_resized_bytes_stay_bytes_rounded_and_any_leading_shape_is_kept():
    pixels = torch.randint(0, 256, (2, 3, 1, 28, 28), generator=generator())

    resized = resize_images(pixels.to(torch.uint8), 32)

    assert resized.shape == (2, 3, 1, 32, 32)
    assert resized.dtype == torch.uint8
    assert (resized - resize_images(pixels.to(torch.float32), 32)).abs().max() <= 0.5
    assert resize_images(resized, 32) is resized


def test_movements_by_hand():
    x = images()
    close(warp(x, maps()), x)
    close(warp(x, maps(angle=pi / 2)), torch.rot90(x, 1, (2, 3)))  # counter-clockwise
    close(warp(x, maps(mirror=(-1.0, 1.0))), x.flip(3))
    close(warp(x, maps(mirror=(1.0, -1.0))), x.flip(2))


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


@pytest.mark.parametrize(
    "recipe",
    [
        Augmentation(rotations=(10.0, 10.0), translate=0.1, scale=(0.9, 1.1)),
        Augmentation(rotations=(10.0,), crop_padding=4, flip_horizontal=True, flip_vertical=True),
    ],
)
@given(seed=st.integers(0, 1000))
@settings(deadline=None, max_examples=10)
def test_draws_fill_what_the_recipe_says_and_no_more(recipe, seed):
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
    assert torch.equal(drawn, recipe.draw(500, 32, generator=generator(seed)))


def test_half_of_the_images_are_mirrored_each_way_and_crops_are_by_whole_pixels():
    recipe = Augmentation(flip_horizontal=True, flip_vertical=True, crop_padding=4)
    drawn = recipe.draw(4000, 32, generator=generator())
    linear = drawn[:, :, :2]

    for axis in range(2):
        assert abs((linear[:, axis, axis] < 0).float().mean() - 0.5) < 0.04
    pixels = torch.linalg.solve(linear, -drawn[:, :, 2]) * 16
    close(pixels, pixels.round())
    assert set(pixels.round().int().flatten().tolist()) == set(range(-4, 5))


@pytest.mark.parametrize(
    "wrong", [{"scale": (0.0, 1.0)}, {"scale": (1.2, 1.0)}, {"translate": -1.0}]
)
def test_impossible_recipes_are_refused(wrong):
    with pytest.raises(ValueError, match=r"scale goes|must not be negative"):
        Augmentation(**wrong)


def test_numbers_of_copies_are_even_and_go_on_where_they_stopped():
    golden, _ = even_uniforms(torch.zeros(1), 1)
    assert golden.item() == pytest.approx((5**0.5 - 1) / 2)
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


def test_one_half_leaves_a_copy_where_it_is_and_each_number_moves_it_in_its_own_way():
    x = torch.zeros(1, 1, 17, 17)
    x[..., 5:9, 4:14] = 1
    still = torch.full((1, MOVES), 0.5)
    close(moved_images(x, still), x)
    seen = []
    for k in range(MOVES):
        seen.append(moved_images(x, still.index_fill(1, torch.tensor([k]), 1.0)))
        assert (seen[-1] - x).abs().max() > 0.1
        assert all((seen[-1] - other).abs().max() > 0.05 for other in seen[:-1])


def test_a_copy_is_shifted_by_a_twentieth_of_the_side():
    x = torch.zeros(1, 1, 20, 20)
    x[0, 0, 10, 10] = 1
    uniform = torch.full((1, MOVES), 0.5)
    uniform[0, 4] = 1.0
    assert moved_images(x, uniform)[0, 0, 10].argmax() == 9


def test_noise_by_hand():
    x, direction = torch.tensor([[1.0, 2.0], [0.0, 4.0]]), torch.tensor([[3.0, 0.0], [2.0, 2.0]])
    found = jittered(x, direction, torch.tensor([0.0, 0.1]))
    torch.testing.assert_close(found, torch.tensor([[1.0, 2.0], [0.2, 4.2]]))
