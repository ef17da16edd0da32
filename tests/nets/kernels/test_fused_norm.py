"""Batch normalisation, shortcut and ReLU in one pass, against the three operations of torch."""

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, jvp, vmap

from giw.nets.kernels import fused_norm, norm_passes
from giw.nets.kernels.fused_norm import FusableNorm, fuse_norms
from giw.nets.models import ResNet18

CASES = pytest.mark.parametrize(
    ("shortcut", "relu"), [(False, False), (False, True), (True, False), (True, True)]
)
LAST = torch.channels_last


def wide(channels):
    return channels.view(1, -1, 1, 1)


def normed(y, stats):
    return (y - wide(stats[0])) * wide(stats[1])


def moments(y, running, *, momentum, eps):
    running_mean, running_var, batches = running
    mean, var = y.mean((0, 2, 3)), y.var((0, 2, 3), correction=0)
    m = y.numel() // y.shape[1]
    batches += 1
    running_mean.lerp_(mean, momentum)
    running_var.lerp_(var * m / (m - 1), momentum)
    return torch.stack([mean, (var + eps).rsqrt()])


def normalise(y, stats, weight, bias, shortcut, relu):
    z = normed(y, stats) * wide(weight) + wide(bias)
    z = z if shortcut is None else z + shortcut
    return z.relu() if relu else z


def sums(y, stats, t):
    return torch.stack([t.sum((0, 2, 3)), (t * normed(y, stats)).sum((0, 2, 3))])


def clipped_sums(y, stats, weight, bias, out, gradient):
    on = (normalise(y, stats, weight, bias, None, True) if out is None else out) > 0
    return sums(y, stats, gradient * on), None if out is None else gradient * on


def pull(y, stats, weight, bias, gradient, total, clip):
    on = normalise(y, stats, weight, bias, None, True) > 0 if clip else 1
    m = y.numel() // y.shape[1]
    centred = gradient * on - (wide(total[0]) + normed(y, stats) * wide(total[1])) / m
    return wide(weight * stats[1]) * centred


def push(y, stats, weight, bias, out, relu, changes, total):
    of_y, of_weight, of_bias, of_shortcut = changes
    found = pull(y, stats, weight, bias, of_y, total, False)
    found = found + normed(y, stats) * wide(of_weight) + wide(of_bias)
    found = found if of_shortcut is None else found + of_shortcut
    if not relu:
        return found
    return found * ((normalise(y, stats, weight, bias, None, True) if out is None else out) > 0)


@pytest.fixture
def kernels_by_torch(monkeypatch):
    """What kernels compute, computed by torch in whatever numbers come."""
    for function in (moments, normalise, sums, clipped_sums, pull, push):
        monkeypatch.setattr(norm_passes, function.__name__, function)
    monkeypatch.setattr(fused_norm, "suits", lambda x: not fused_norm._is_stacked(x))
    monkeypatch.setattr(fused_norm, "FLOAT", torch.float64)
    monkeypatch.setattr(norm_passes, "CHANNELS", 1)


def problem(shortcut, *, channels=3, seed=0):
    """A layer with weights of its own, and what enters it."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    layer = FusableNorm(channels).double()
    fuse_norms(layer, True)
    with torch.no_grad():
        layer.weight.copy_(1 + 0.3 * draw(channels))
        layer.bias.copy_(draw(channels))
    images = [(1 + 2 * draw(4, channels, 3, 2)).contiguous(memory_format=LAST) for _ in range(2)]
    return layer, images if shortcut else images[:1]


def by_torch(layer, x, shortcut=None, *, relu):
    z = nn.BatchNorm2d.forward(layer, x)
    z = z if shortcut is None else z + shortcut
    return z.relu() if relu else z


def of_all(layer, call):
    """As a function of weight, bias and images, with running statistics that leave no trace."""

    def function(weight, bias, *images):
        buffers = {name: b.clone() for name, b in layer.named_buffers()}
        own = {"weight": weight, "bias": bias, **buffers}
        return call(own, images)

    return function


def both_roads(layer, relu):
    three = FusableNorm(layer.num_features).double()
    three.forward = lambda *images: by_torch(three, *images, relu=relu)
    return [
        of_all(layer, lambda own, images: functional_call(layer, own, images, {"relu": relu})),
        of_all(layer, lambda own, images: functional_call(three, own, images)),
    ]


@CASES
def test_values_and_running_statistics_are_those_of_torch(kernels_by_torch, shortcut, relu):
    layer, images = problem(shortcut)
    twin, _ = problem(shortcut)
    found, expected = layer(*images, relu=relu), by_torch(twin, *images, relu=relu)
    torch.testing.assert_close(found, expected)
    assert "_Norm" in found.grad_fn.name()
    for name, value in twin.named_buffers():
        torch.testing.assert_close(dict(layer.named_buffers())[name], value)


@CASES
def test_gradients_are_those_of_torch(kernels_by_torch, shortcut, relu):
    layer, images = problem(shortcut)
    fused, three = both_roads(layer, relu)
    inputs = [z.detach().clone().requires_grad_() for z in (layer.weight, layer.bias, *images)]
    back = torch.randn(images[0].shape, dtype=torch.float64)
    found, expected = (torch.autograd.grad(f(*inputs), inputs, back) for f in (fused, three))
    torch.testing.assert_close(found, expected)

    def total(*values):
        return (fused(*values) * back).sum()

    places = tuple(range(len(inputs)))
    by_func = grad(total, argnums=places)(*(z.detach() for z in inputs))
    torch.testing.assert_close(by_func, expected)


@CASES
@pytest.mark.parametrize("moved", ["all", "images", "weights"])
def test_changes_along_a_direction_are_those_of_torch(kernels_by_torch, shortcut, relu, moved):
    layer, images = problem(shortcut)
    inputs = [z.detach() for z in (layer.weight, layer.bias, *images)]
    direction = [torch.randn(z.shape, dtype=torch.float64) for z in inputs]
    chosen = {"all": slice(None), "images": slice(2, None), "weights": slice(2)}[moved]

    def along(function):
        def partly(*values):
            filled = list(inputs)
            filled[chosen] = values
            return function(*filled)

        return jvp(partly, tuple(inputs[chosen]), tuple(direction[chosen]))

    fused, three = both_roads(layer, relu)
    torch.testing.assert_close(along(fused), along(three))


def test_a_whole_net_has_the_slopes_of_torch(kernels_by_torch):
    net = ResNet18(3).double().train()
    fuse_norms(net, True)
    x = torch.rand(4, 3, 8, 8, dtype=torch.float64)
    params = {name: p.detach() for name, p in net.named_parameters()}
    direction = {name: torch.randn_like(p) for name, p in params.items()}

    def logits(moved):
        return functional_call(net, {**moved, **{k: b.clone() for k, b in net.named_buffers()}}, x)

    def energy(moved):
        return logits(moved).square().sum()

    fused = jvp(logits, (params,), (direction,)), grad(energy)(params)
    fuse_norms(net, False)
    three = jvp(logits, (params,), (direction,)), grad(energy)(params)
    torch.testing.assert_close(fused, three, rtol=1e-6, atol=1e-6)


@CASES
def test_without_a_gpu_it_is_the_three_operations_bit_for_bit(shortcut, relu):
    layer, images = problem(shortcut)
    twin, _ = problem(shortcut)
    assert torch.equal(layer(*images, relu=relu), by_torch(twin, *images, relu=relu))
    assert torch.equal(layer.running_var, twin.running_var)


@CASES
def test_until_it_is_switched_on_it_is_the_three_operations(kernels_by_torch, shortcut, relu):
    layer, images = problem(shortcut)
    fuse_norms(nn.Sequential(layer), False)
    out = layer(*images, relu=relu)
    assert torch.equal(out, by_torch(problem(shortcut)[0], *images, relu=relu))
    assert "_Norm" not in out.grad_fn.name()
    assert not any(m.fused for m in ResNet18(2).modules() if isinstance(m, FusableNorm))


def test_in_evaluation_running_statistics_serve(kernels_by_torch):
    layer, images = problem(True)
    layer.eval()
    assert torch.equal(layer(*images, relu=True), by_torch(layer, *images, relu=True))
    assert int(layer.num_batches_tracked) == 0


@CASES
def test_in_evaluation_without_gradients_one_pass_does(
    kernels_by_torch, monkeypatch, shortcut, relu
):
    layer, images = problem(shortcut)
    layer(*images)  # moves the running statistics
    layer.eval()
    before = {name: b.clone() for name, b in layer.named_buffers()}
    passes = []

    def counted(*args):
        passes.append(1)
        return normalise(*args)

    monkeypatch.setattr(norm_passes, "normalise", counted)
    with torch.no_grad():
        found = layer(*images, relu=relu)
    torch.testing.assert_close(found, by_torch(layer, *images, relu=relu))
    assert passes == [1]
    assert all(torch.equal(b, before[name]) for name, b in layer.named_buffers())


def test_trials_side_by_side_take_the_three_operations(kernels_by_torch):
    """Kernels know nothing of a dimension that vmap hides, at whatever depth."""
    layer, (x,) = problem(False)
    seen = []

    def size(weight, buffers, images):
        seen.append(fused_norm._is_stacked(images * weight.sum()))
        own = {"weight": weight, **{k: b.clone() for k, b in buffers.items()}}
        return functional_call(layer, own, images).square().sum()

    weights = torch.stack([layer.weight.detach(), 2 * layer.weight.detach()])
    buffers = dict(layer.named_buffers())
    twice = {name: torch.stack([b, b]) for name, b in buffers.items()}
    together = vmap(grad(size))(weights, twice, torch.stack([x, x]))
    assert seen == [True]
    for t, weight in enumerate(weights):
        torch.testing.assert_close(together[t], grad(size)(weight, buffers, x))
    assert seen == [True, False, False]


def test_a_gradient_of_a_gradient_is_refused(kernels_by_torch):
    layer, (x,) = problem(False)
    (first,) = torch.autograd.grad(
        layer(x, relu=True).square().sum(), layer.weight, create_graph=True
    )
    with pytest.raises(RuntimeError, match=r"no gradient of a gradient.*jvp"):
        first.sum().backward()
