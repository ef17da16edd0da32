"""Kernels of fused batch normalisation, run by Triton's interpreter, beside torch in float64."""

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, jvp, vmap

from giw.nets.kernels import fused_norm
from giw.nets.kernels.fused_norm import FusableNorm, fuse_norms

pytestmark = pytest.mark.kernels
LAST = torch.channels_last
CASES = pytest.mark.parametrize(
    ("shortcut", "relu"), [(False, False), (False, True), (True, False), (True, True)]
)
SHAPES = pytest.mark.parametrize("shape", [(5, 64, 7, 3), (9, 128, 1, 1), (7, 64, 13, 11)])


@pytest.fixture
def in_float32(monkeypatch):
    """Kernels compute in float32 whatever they read: without sixteen bits their rules are exact."""
    monkeypatch.setattr(fused_norm, "suits", lambda x: not fused_norm._is_stacked(x))


def problem(shape, shortcut):
    """A layer with weights of its own, and what enters it."""
    generator = torch.Generator().manual_seed(0)
    layer = FusableNorm(shape[1])
    fuse_norms(layer, True)
    with torch.no_grad():
        layer.weight.copy_(1 + 0.3 * torch.randn(shape[1], generator=generator))
        layer.bias.copy_(torch.randn(shape[1], generator=generator))
    images = [1 + 2 * torch.randn(shape, generator=generator) for _ in range(2)]
    images = [z.contiguous(memory_format=LAST) for z in images]
    return layer, images if shortcut else images[:1]


def by_torch(x, weight, bias, shortcut=None, *, relu):
    z = nn.functional.batch_norm(x, None, None, weight, bias, training=True)
    z = z if shortcut is None else z + shortcut
    return z.relu() if relu else z


def fused(layer, relu):
    """The layer as a function of images, weight, bias and shortcut."""

    def function(x, weight, bias, shortcut=None):
        own = {"weight": weight, "bias": bias, **{k: b.clone() for k, b in layer.named_buffers()}}
        return functional_call(layer, own, (x, shortcut), {"relu": relu})

    return function


@CASES
@SHAPES
def test_values_gradients_and_slopes_are_those_of_torch(shape, shortcut, relu, in_float32):
    layer, images = problem(shape, shortcut)
    inputs = [z.detach() for z in (images[0], layer.weight, layer.bias, *images[1:])]
    exact = [z.double() for z in inputs]
    generator = torch.Generator().manual_seed(1)
    changes = [torch.randn(z.shape, generator=generator) for z in inputs]
    found = jvp(fused(layer, relu), tuple(inputs), tuple(changes))
    expected = jvp(
        lambda *z: by_torch(*z, relu=relu), tuple(exact), tuple(c.double() for c in changes)
    )
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other.float(), rtol=1e-4, atol=1e-4)
    for z in (*inputs, *exact):
        z.requires_grad_()
    out, back = fused(layer, relu)(*inputs), changes[0]
    assert "_Norm" in out.grad_fn.name()  # it was the kernels
    found = torch.autograd.grad(out, inputs, back)
    expected = torch.autograd.grad(by_torch(*exact, relu=relu), exact, back.double())
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other.float(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("mean", [0, 100, 1_000])
def test_a_variance_keeps_its_digits_far_from_zero(mean, in_float32):
    """Of the mean's square, which sums of y and y² would leave, float32 holds seven digits."""
    layer, (x,) = problem((7, 64, 13, 11), False)
    x = mean + (x - 1) / 2
    layer.momentum = 1.0
    found = layer(x)
    exact = x.double()
    torch.testing.assert_close(layer.running_var.double(), exact.var((0, 2, 3)), rtol=1e-4, atol=0)
    torch.testing.assert_close(
        layer.running_mean.double(), exact.mean((0, 2, 3)), rtol=1e-6, atol=1e-6
    )
    expected = by_torch(exact, layer.weight.double(), layer.bias.double(), relu=False)
    assert (found - expected).abs().max() <= 1e-3


def test_an_outlier_where_counting_starts_costs_no_digits(in_float32):
    layer, (x,) = problem((7, 64, 13, 11), False)
    x[0, :, 0, 0] = 1_000
    layer.momentum = 1.0
    layer(x)
    torch.testing.assert_close(
        layer.running_var.double(), x.double().var((0, 2, 3)), rtol=1e-3, atol=0
    )


def test_running_statistics_move_as_torch_moves_them():
    layer, twin = FusableNorm(64), nn.BatchNorm2d(64).double()
    fuse_norms(layer, True)
    for seed in range(3):
        x = 3 + torch.randn(10, 64, 5, 5, generator=torch.Generator().manual_seed(seed))
        x = x.bfloat16().contiguous(memory_format=LAST)
        assert "_Norm" in layer(x).grad_fn.name()
        twin(x.double())
    for name, value in twin.named_buffers():
        found = dict(layer.named_buffers())[name]
        torch.testing.assert_close(found.double(), value.double(), rtol=1e-5, atol=1e-5)


@CASES
def test_sixteen_bits_cost_no_more_than_their_rounding(shortcut, relu):
    layer, images = problem((5, 64, 7, 6), shortcut)
    images = [z.bfloat16() for z in images]
    inputs = [
        z.detach().requires_grad_() for z in (images[0], layer.weight, layer.bias, *images[1:])
    ]
    exact = [z.detach().double().requires_grad_() for z in inputs]
    out, expected = fused(layer, relu)(*inputs), by_torch(*exact, relu=relu)
    assert out.dtype == torch.bfloat16
    back = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).bfloat16()
    pairs = [
        (out, expected),
        *zip(
            torch.autograd.grad(out, inputs, back),
            torch.autograd.grad(expected, exact, back.double()),
            strict=True,
        ),
    ]
    # the interpreter cuts bits off where a GPU rounds to the nearest: one bit more is lost
    for (one, other), bits in zip(pairs, (7, 6, 14, 14, 7), strict=False):
        assert (one.double() - other).abs().max() <= 2.0**-bits * other.abs().max()


def test_switched_off_or_in_evaluation_it_is_the_three_operations():
    layer, (x, other) = problem((5, 64, 7, 6), True)
    for prepare in (lambda: fuse_norms(layer, False), lambda: fuse_norms(layer.eval(), True)):
        prepare()
        found = layer(x.bfloat16(), other.bfloat16(), relu=True)
        assert "_Norm" not in found.grad_fn.name()
        z = nn.BatchNorm2d.forward(layer, x.bfloat16()) + other.bfloat16()
        assert torch.equal(found, z.relu())


def test_trials_side_by_side_take_the_three_operations(in_float32):
    """Kernels know nothing of a dimension that vmap hides, at whatever depth."""
    layer, (x,) = problem((5, 64, 3, 3), False)
    seen = []

    def size(weight, buffers, images):
        seen.append(fused_norm.suits(images * weight.sum()))
        own = {"weight": weight, **{name: b.clone() for name, b in buffers.items()}}
        return functional_call(layer, own, images).square().sum()

    weights = torch.stack([layer.weight.detach(), 2 * layer.weight.detach()])
    buffers = dict(layer.named_buffers())
    twice = {name: torch.stack([b, b]) for name, b in buffers.items()}
    together = vmap(grad(size))(weights, twice, torch.stack([x, x]))
    alone = torch.stack([grad(size)(weight, buffers, x) for weight in weights])
    assert seen == [False, True, True]
    torch.testing.assert_close(together, alone, rtol=1e-3, atol=1e-3)


def test_a_gradient_of_a_gradient_is_refused():
    layer, (x,) = problem((2, 64, 3, 3), False)
    loss = layer(x.bfloat16(), relu=True).float().square().sum()
    (first,) = torch.autograd.grad(loss, layer.weight, create_graph=True)
    with pytest.raises(RuntimeError, match=r"no gradient of a gradient.*jvp"):
        first.sum().backward()
