"""The kernels of fused batch normalisation against torch: run with ``pytest -m gpu``."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.func import functional_call, jvp

from giw.nets.kernels.fused_norm import FusableNorm, fuse_norms
from giw.nets.kernels.precision import precision_for
from giw.nets.methods import GIW, MWNet, Reweight, TrainOnly
from giw.nets.methods.meta_gradient import (
    goes_forward_mixed,
    losses_of,
    mean_gradient,
    moved_params,
    slope_along,
)
from giw.nets.models import ResNet18, initialised
from giw.nets.training import FunctionalNet, Tensors, TrainingConfig, train

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
    fuse_norms(layer, True)
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
    fuse_norms(layer, True)
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


def gradients_and_slopes(precision, *, fused):
    module = initialised(lambda: ResNet18(5), 0).cuda().train()
    fuse_norms(module, fused)
    net = FunctionalNet(module, precision)
    generator = torch.Generator().manual_seed(0)
    x, x_val = torch.rand(2, 64, 3, 32, 32, generator=generator).cuda()
    y, y_val = torch.randint(5, (2, 64), generator=generator).cuda()
    params = net.params()
    moved = moved_params(params)
    assert goes_forward_mixed(net) == fused
    with precision.forward(CUDA), precision.products():
        way = mean_gradient(losses_of(net, params, x_val, y_val), moved)
        slopes = slope_along(losses_of(net, params, x, y), moved, way, mixed=fused)
    return torch.cat([g.flatten() for g in way.values()]), slopes


def test_a_net_rounds_no_more_with_kernels_than_without():
    """Against float32: bfloat16 with fused normalisation, and with torch's own.

    Gradients round alike. Slopes of the net with kernels are bfloat16 all the way, the others'
    only in their direction.
    """
    exact = gradients_and_slopes(precision_for("float32", ResNet18(5), CUDA), fused=False)
    mixed = precision_for("auto", ResNet18(5), CUDA)
    on, off = (gradients_and_slopes(mixed, fused=fused) for fused in (True, False))
    for one, other, truth, factor in zip(on, off, exact, (1.2, 3.0), strict=True):
        assert (one - truth).norm() <= factor * (other - truth).norm()


@pytest.mark.parametrize("method", [TrainOnly(), GIW(), Reweight(), MWNet()], ids=lambda m: m.name)
def test_training_with_kernels_is_training_without_up_to_rounding(method):
    """A few small steps on noise: what rounding does to them has no time to grow."""
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(3, (160,), generator=generator).cuda()
    x = torch.randint(256, (160, 3, 16, 16), generator=generator, dtype=torch.uint8).cuda()
    data = Tensors(x[:128], y[:128], x[128:], y[128:])
    config = TrainingConfig(epochs=2, pretrain_epochs=1, batch_size=64, learning_rate=2e-5)
    module = initialised(lambda: ResNet18(3), 0).cuda()
    on, off = (
        train(method, module, data, replace(config, fused_norm=fused)) for fused in (True, False)
    )
    np.testing.assert_allclose(on.history["loss"], off.history["loss"], rtol=0.05)
    for name, value in off.module.named_buffers():
        found = dict(on.module.named_buffers())[name]
        if name.endswith("num_batches_tracked"):
            assert int(found) == int(value) > 0
        else:
            torch.testing.assert_close(found, value, rtol=0.05, atol=0.05)
