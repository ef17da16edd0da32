"""The kernels of fused batch normalisation against torch: run with ``pytest -m gpu``."""

import pytest
import torch
from torch.func import functional_call, jvp

from giw.methods.virtual import losses_of, mean_gradient, moved_params, slope_along
from giw.models import ResNet18, fused_norm, initialised
from giw.models.fused_norm import FusableNorm, norms_are_fused
from giw.training import FunctionalNet
from giw.training.precision import FULL, precision_for

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
LAST = torch.channels_last
CUDA = torch.device("cuda")


def by_torch(x, weight, bias, shortcut=None, *, relu):
    z = torch.nn.functional.batch_norm(x, None, None, weight, bias, training=True)
    z = z if shortcut is None else z + shortcut
    return z.relu() if relu else z


def close(found, expected, bits):
    """Equal up to rounding of the largest number."""
    error = (found.double() - expected).abs().max() / expected.abs().max()
    assert error <= 2.0**-bits


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("shortcut", [False, True])
@pytest.mark.parametrize(
    "shape", [(5, 64, 7, 6), (2, 128, 1, 1), (300, 192, 9, 9), (64, 512, 4, 4)]
)
def test_kernels_compute_what_torch_computes_in_float64(shape, shortcut, relu):
    generator = torch.Generator("cuda").manual_seed(0)

    def draw(*size):
        return torch.randn(*size, generator=generator, device="cuda")

    layer = FusableNorm(shape[1]).cuda()
    images = [(1 + 2 * draw(*shape)).bfloat16().contiguous(memory_format=LAST) for _ in range(2)]
    images = images if shortcut else images[:1]
    inputs = (images[0], 1 + 0.3 * draw(shape[1]), draw(shape[1]), *images[1:])
    exact = [z.double() for z in inputs]

    def fused(x, weight, bias, shortcut=None):
        own = {"weight": weight, "bias": bias, **{k: b.clone() for k, b in layer.named_buffers()}}
        return functional_call(layer, own, (x, shortcut), {"relu": relu})

    def three(*values):
        return by_torch(*values, relu=relu)

    changes = [torch.randn_like(z) for z in inputs]
    for found, expected in zip(
        jvp(fused, inputs, tuple(changes)),
        jvp(three, tuple(exact), tuple(c.double() for c in changes)),
        strict=True,
    ):
        assert found.dtype == torch.bfloat16
        close(found, expected, 8)

    leaves = [z.requires_grad_() for z in inputs], [z.requires_grad_() for z in exact]
    back = torch.randn_like(images[0])
    found = torch.autograd.grad(fused(*leaves[0]), leaves[0], back)
    expected = torch.autograd.grad(three(*leaves[1]), leaves[1], back.double())
    for one, other, bits in zip(found, expected, (7, 14, 14, 8), strict=False):
        close(one, other, bits)


def test_running_statistics_move_as_torch_moves_them():
    layer, twin = FusableNorm(64).cuda(), torch.nn.BatchNorm2d(64).cuda().double()
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        x = 3 + torch.randn(40, 64, 5, 5, generator=generator)
        x = x.cuda().bfloat16().contiguous(memory_format=LAST)
        assert "_Norm" in layer(x).grad_fn.name()
        twin(x.double())
    for name, value in twin.named_buffers():
        torch.testing.assert_close(
            dict(layer.named_buffers())[name].double(), value.double(), rtol=1e-5, atol=1e-5
        )


def gradients_and_slopes(precision):
    module = initialised(lambda: ResNet18(5), 0).cuda().train()
    net = FunctionalNet(module, precision)
    generator = torch.Generator().manual_seed(0)
    x, x_val = torch.rand(2, 64, 3, 32, 32, generator=generator).cuda()
    y, y_val = torch.randint(5, (2, 64), generator=generator).cuda()
    params = net.params()
    moved = moved_params(params)
    with precision.forward(CUDA), precision.products():
        way = mean_gradient(losses_of(net, params, x_val, y_val), moved)
        mixed = precision.mixed and norms_are_fused(module)
        return torch.cat([g.flatten() for g in way.values()]), slope_along(
            losses_of(net, params, x, y), moved, way, mixed=mixed
        )


def test_a_net_rounds_no_more_with_kernels_than_without(monkeypatch):
    """Against float32: bfloat16 with fused normalisation, and with torch's own."""
    exact = gradients_and_slopes(FULL)
    mixed = precision_for("auto", ResNet18(5), CUDA)
    fused = gradients_and_slopes(mixed)
    monkeypatch.setattr(fused_norm, "suits", lambda x: False)
    monkeypatch.setitem(globals(), "norms_are_fused", lambda module: False)
    three = gradients_and_slopes(mixed)
    for one, other, truth in zip(fused, three, exact, strict=True):
        assert (one - truth).norm() <= 1.3 * (other - truth).norm()
