import pytest
import torch
from torch.func import vmap

from giw.weights import quadratic
from giw.weights.quadratic import accelerated_gradient, sum_bounds


def a_problem(*shape, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    x, other = (3 * torch.rand(*shape, 1, generator=generator, dtype=dtype) for _ in range(2))
    kernel = torch.exp(-((x - x.mT) ** 2)) + 1e-3 * torch.eye(shape[-1], dtype=dtype)
    return kernel, torch.exp(-((x - other.mT) ** 2)).sum(-1)


def solved(kernel, kappa, upper=3.0, n_steps=40):
    bounds = sum_bounds(kappa.shape[-1])
    return accelerated_gradient(kernel, kappa, upper=upper, bounds=bounds, n_steps=n_steps)


@pytest.mark.parametrize("shape", [(1,), (12,), (3, 12), (2, 3, 12)])
def test_both_roads_take_the_same_steps(shape, monkeypatch):
    kernel, kappa = a_problem(*shape)
    on_host = solved(kernel, kappa)
    monkeypatch.setattr(quadratic, "suits_host", lambda *_: False)
    torch.testing.assert_close(on_host, solved(kernel, kappa), rtol=1e-10, atol=1e-10)
    assert on_host.dtype == torch.float64
    assert shape == (1,) or on_host.std() > 0.1  # there was something to find


def test_vmap_maps_what_it_is_told_to_and_repeats_the_rest():
    kernel, kappa = a_problem(3, 12)
    together = solved(kernel, kappa)
    torch.testing.assert_close(vmap(solved)(kernel, kappa), together)
    other = vmap(solved, in_dims=(None, 1))(kernel[0], kappa.T)
    torch.testing.assert_close(other, solved(kernel[:1].expand(3, 12, 12), kappa))
    nested = vmap(vmap(solved))(kernel[None], kappa[None])
    torch.testing.assert_close(nested[0], together)


def test_who_asks_for_a_gradient_gets_one():
    kernel, kappa = a_problem(8)
    kappa.requires_grad_()
    solved(kernel, kappa).sum().backward()
    assert kappa.grad.abs().max() > 0
    with torch.no_grad():
        assert not solved(kernel, kappa).requires_grad
