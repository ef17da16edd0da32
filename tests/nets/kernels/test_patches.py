"""The derivative rules around the Triton kernels, tried without them: torch does the moving."""

import pytest
import torch
from torch.func import grad, vjp, vmap

from giw.nets.kernels import patches


@pytest.fixture
def kernels_by_torch(monkeypatch):
    """Each operation's forward pass, written with torch's own operations."""

    def cut(x, k):
        return patches.cut_patches(x, k).contiguous()

    def paste(rows, k, height, width):
        c = rows.shape[-1] // (k * k)
        with torch.enable_grad():
            x = torch.zeros(len(rows), height, width, c, requires_grad=True)
            return torch.autograd.grad(patches.cut_patches(x, k), x, rows)[0]

    monkeypatch.setattr(patches._Cut, "forward", staticmethod(cut))
    monkeypatch.setattr(patches._Paste, "forward", staticmethod(paste))


def slopes(cut, x, weight, direction):
    """Derivative of each image's output along a direction of both, as meta-learning takes it."""

    def outputs(z):
        return (cut(z["x"], 3) @ z["weight"]).sin().sum((1, 2, 3))  # (n,)

    z = {"x": x, "weight": weight}
    value, pull, *_ = vjp(outputs, z)
    _, push, *_ = vjp(lambda u: pull(u)[0], torch.zeros_like(value))
    return push(direction)[0]


def test_gradients_of_gradients_are_those_of_torch(kernels_by_torch):
    """The column of ones is constant: it has no part in any derivative by the image."""
    generator = torch.Generator().manual_seed(0)
    x, dx = torch.randn(2, 4, 9, 7, 2, generator=generator)
    weight, dw = torch.randn(2, 18 + patches.beside(18), 5, generator=generator)
    direction = {"x": dx, "weight": dw}
    torch.testing.assert_close(
        slopes(patches._Cut.apply, x, weight, direction),
        slopes(patches.cut_patches, x, weight, direction),
    )


def test_trials_are_more_rows(kernels_by_torch):
    x = torch.randn(3, 4, 9, 7, 2, generator=torch.Generator().manual_seed(1))

    def curve(cut):
        return lambda z: grad(lambda q: cut(q, 3).pow(3).sum())(z).square().sum()

    torch.testing.assert_close(
        vmap(grad(curve(patches._Cut.apply)))(x), vmap(grad(curve(patches.cut_patches)))(x)
    )
