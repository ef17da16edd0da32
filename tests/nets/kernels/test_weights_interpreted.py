"""The kernel that solves for in-step weights, run by Triton's interpreter."""

import pytest
import torch
from torch.func import vmap

from giw.nets.kernels.loss_weights import fused_loss_weights
from giw.objective import dynamic_kmm, in_step_weights

pytestmark = pytest.mark.kernels


def both(*args, weigh=dynamic_kmm, monkeypatch, **settings):
    """By the kernel, and without it."""
    answers = []

    def noted(*args, **settings):
        answers.append(fused_loss_weights(*args, **settings))
        return answers[-1]

    with monkeypatch.context() as patch:
        assert in_step_weights._asked_first == [fused_loss_weights]
        patch.setattr(in_step_weights, "_asked_first", [noted])
        found = weigh(*args, **settings)
        patch.setattr(in_step_weights, "_asked_first", [])
        plain = weigh(*args, **settings)
    assert len(answers) == 1
    assert answers[0] is not None
    return found, plain


@pytest.mark.parametrize("bandwidth", ["cross", "median", 0.5])
@pytest.mark.parametrize(("n", "scale"), [(2, 1.0), (37, 1e-3), (255, 1.0), (256, 30.0)])
def test_weights_are_those_of_the_plain_road(n, scale, bandwidth, monkeypatch):
    generator = torch.Generator().manual_seed(n)
    losses = scale * torch.rand(n, generator=generator).pow(3)
    val, member = scale * torch.rand(20, generator=generator), torch.rand(20, generator=generator)
    settings = {"bandwidth": bandwidth, "monkeypatch": monkeypatch}
    found, plain = both(losses, val, member, **settings)
    torch.testing.assert_close(found, plain, rtol=2e-3, atol=2e-3)
    assert found.mean() == pytest.approx(1, abs=1e-5)


def test_trials_side_by_side_and_batches_with_nothing_to_match(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    x, v = torch.rand(3, 21, generator=generator).square(), torch.rand(3, 7, generator=generator)
    member = torch.tensor([[1.0] * 7, [0.0] * 7, [1, 0, 1, 0, 1, 0, 0.5]])
    x[2] = 1.5  # losses that are all alike
    found, plain = both(x, v, member, weigh=vmap(dynamic_kmm), monkeypatch=monkeypatch)
    torch.testing.assert_close(found, plain, rtol=2e-3, atol=2e-3)
    assert torch.equal(found[1:], torch.ones(2, 21))
    assert found[0].std() > 0.1
