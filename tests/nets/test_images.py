"""Pixels on their way to a net."""

import torch

from giw.nets.images import resize_images, unit_pixels


def test_bytes_become_unit_floats_and_floats_pass():
    assert torch.equal(
        unit_pixels(torch.tensor([0, 51, 255], dtype=torch.uint8)), torch.tensor([0.0, 0.2, 1.0])
    )
    x = torch.tensor([-3.0, 7.0])
    assert unit_pixels(x) is x


def test_doubling_an_image_puts_new_pixels_at_quarters():
    """With corners not aligned, new centres fall a quarter pixel beside the old ones."""
    image = torch.tensor([[[0.0, 4.0], [0.0, 4.0]]])  # (1, 2, 2)

    row = torch.tensor([0.0, 1.0, 3.0, 4.0])

    assert torch.equal(resize_images(image, 4), row.expand(1, 4, 4))


def test_bytes_stay_bytes_rounded_and_any_leading_shape_is_kept():
    images = torch.randint(0, 256, (2, 3, 1, 28, 28), generator=torch.Generator().manual_seed(0))

    resized = resize_images(images.to(torch.uint8), 32)

    assert resized.shape == (2, 3, 1, 32, 32)
    assert resized.dtype == torch.uint8
    exact = resize_images(images.to(torch.float32), 32)
    assert (resized - exact).abs().max() <= 0.5


def test_the_right_size_is_left_alone():
    images = torch.zeros(5, 3, 32, 32, dtype=torch.uint8)

    assert resize_images(images, 32) is images
