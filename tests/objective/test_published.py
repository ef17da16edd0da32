"""The published programme by torch operations, as GPUs solve it, forced on the CPU."""

from functools import partial

import numpy as np
import pytest
import torch
from benchmarks.loss_shapes import loss_shapes
from tests.cases.mean_matching import gaussian_kernel, minimum_by_cvxopt
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import vmap

from giw.objective import dynamic_kmm
from giw.objective.published import InNumpy, in_torch
from giw.weights.samples import median_distance

SHAPES = loss_shapes()


def problem(kind, scale=1.0):
    """Training and validation points and membership."""
    member = np.linspace(0, 1, 20)
    if kind == "young net":  # without the safeguard of the corrector this takes over sixty steps
        rng = np.random.default_rng(31)
        train, val = (2.3 + 0.015 * rng.normal(size=(size, 1)) for size in (256, 40))
        val[:4] += 0.25
        member = np.ones(40)
    elif kind in SHAPES:
        train, val = (part[:, None] for part in SHAPES[kind])
    else:
        rng = np.random.default_rng(0)
        train, val = rng.normal(size=(64, kind)), rng.normal(size=(20, kind)) + 0.5
    return torch.as_tensor(scale * train), torch.as_tensor(scale * val), torch.as_tensor(member)


@pytest.mark.parametrize("scale", [0.01, 1.0, 10.0])
@pytest.mark.parametrize("kind", [*SHAPES, "young net", 5, 50])
def test_weights_are_those_of_independent_solvers(kind, scale):
    train, val, member = problem(kind, scale)
    points, share = train.numpy(), member.numpy()
    gamma = median_distance(points)
    kernel = gaussian_kernel(points, points, gamma=gamma)
    kappa = len(points) * gaussian_kernel(points, val.numpy(), gamma=gamma) @ share / share.sum()
    exact = minimum_by_cvxopt(kernel, kappa, ridge=1e-5, upper=50.0, tolerance=1e-12)
    exact = exact / exact.mean()

    w = in_torch(train, val, member, 50.0)

    for expected in (exact, InNumpy.apply(train, val, member, 50.0).numpy()):
        if expected.std() > 0.01:
            assert np.corrcoef(w, expected)[0, 1] >= 0.999
        else:
            np.testing.assert_allclose(w, expected, atol=1e-3)


def test_problems_side_by_side_are_each_alone():
    """Some are solved after six steps and rest while others go on."""
    parts = [torch.stack(part) for part in zip(*map(problem, SHAPES), strict=True)]

    together = vmap(partial(in_torch, upper=50.0))(*parts)

    for found, *one in zip(together, *parts, strict=True):
        torch.testing.assert_close(found, in_torch(*one, 50.0), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("value", ["alike", "nan", "nothing inside", "upper"])
def test_weights_are_one_where_nothing_tells_points_apart(value):
    train, val, member = problem("same")
    if value == "alike":
        train = torch.full_like(train, 2.3025)
    if value == "nan":
        train[3] = torch.nan
    if value == "nothing inside":
        member = torch.zeros(len(val))
    upper = 1.0 if value == "upper" else 50.0

    assert (in_torch(train.float(), val.float(), member, upper) == 1).all()
    assert (in_torch(train[:1], val, member, upper) == 1).all()


def test_tensors_without_numbers_are_weighed_without_a_gradient():
    with FakeTensorMode():
        train = torch.rand(32, requires_grad=True)

        w = dynamic_kmm(train, torch.rand(9), torch.rand(9), bandwidth="paper")

    assert w.shape == (32,)
    assert w.dtype == torch.float32
    assert not w.requires_grad
