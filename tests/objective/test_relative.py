import numpy as np
import pytest
import torch
from torch.func import vmap

import giw
from giw.objective import DynamicRelativeWeights
from giw.objective.terms import relative_ratio


def two_batches(n=40, m=6, d=None, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shape = () if d is None else (d,)
    return (
        torch.randn(n, *shape, generator=generator),
        0.5 + 0.5 * torch.randn(m, *shape, generator=generator),
    )


def test_indicator_features_give_the_relative_ratio_of_frequencies():
    """On a finite set the ratio is q / (η q + (1 − η) p); a strong ridge makes it one."""
    train = torch.eye(3).double()[[0, 0, 1, 1, 1, 1, 2, 2]]  # p = 1/4, 1/2, 1/4
    val = torch.eye(3).double()[[0, 1, 2, 2]]  # q = 1/4, 1/4, 1/2
    even = torch.full((4,), 0.25).double()
    for eta, expected in [(0.5, [1.0, 2 / 3, 4 / 3]), (0.0, [1.0, 0.5, 2.0])]:
        ratio = relative_ratio(train, val, even, eta=eta, ridge=1e-9)
        torch.testing.assert_close(ratio[[0, 2, 6]], torch.tensor(expected).double())
    flat = relative_ratio(train, val, even, eta=0.5, ridge=1e6)
    torch.testing.assert_close(flat, torch.ones(8).double())


@pytest.mark.parametrize("d", [None, 3])
@pytest.mark.parametrize("eta", [0.0, 0.3])
def test_weights_obey_the_closed_form(d, eta):
    """(H + λP) θ = h with the constant among the features, solved as it stands."""
    train, val = two_batches(d=d)
    weigh = DynamicRelativeWeights(eta=eta, bandwidth=0.8, ridge=0.2)
    x, y = (z.double().reshape(len(z), -1).numpy() for z in (train, val))
    phi, phi_val = (
        np.c_[np.ones(len(a)), np.exp(-((a[:, None] - y) ** 2).sum(-1) / (2 * 0.8**2))]
        for a in (x, y)
    )
    matrix = eta * phi_val.T @ phi_val / len(y) + (1 - eta) * phi.T @ phi / len(x)
    penalty = 0.2 * np.diag(np.arange(len(y) + 1) > 0)
    theta = np.linalg.solve(matrix + penalty, phi_val.mean(0))
    ratio = (phi @ theta).clip(0, 1 / eta if eta else np.inf)
    np.testing.assert_allclose(weigh.ratio(train, val), ratio, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(weigh(train, val), ratio / ratio.mean(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("d", [None, 3])
def test_it_is_rulsif_inside_a_step(d):
    train, val = two_batches(d=d)
    inside = torch.linspace(0.2, 1, len(val))
    apart = giw.rulsif(
        train,
        val,
        eta=0.3,
        bandwidth=0.8,
        ridge=0.2,
        standardize=False,
        raw=True,
        val_weight=inside,
    )
    within = DynamicRelativeWeights(eta=0.3, bandwidth=0.8, ridge=0.2).ratio(train, val, inside)
    torch.testing.assert_close(within, apart.clamp(max=1 / 0.3), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("eta", [0.1, 0.5, 0.9])
def test_the_ratio_is_bounded_by_one_over_eta(eta):
    ratio = DynamicRelativeWeights(eta=eta).ratio(*two_batches())
    assert 0 <= ratio.min() < ratio.max() <= 1 / eta


def test_the_bound_is_kept_where_least_squares_overshoots():
    """Narrow kernels and next to no ridge, at an edge of the training data."""
    train, val = torch.linspace(0, 1, 50), torch.tensor([0.95, 1.0, 1.05, 1.1])
    phi_train, phi_val = (
        torch.exp(-(z[:, None] - val).square() / (2 * 0.05**2)) for z in (train, val)
    )
    even = torch.full((4,), 0.25)
    assert relative_ratio(phi_train, phi_val, even, eta=0.9, ridge=1e-4).max() > 1.01 / 0.9
    weigh = DynamicRelativeWeights(eta=0.9, ridge=1e-4, bandwidth=0.05)
    assert weigh.ratio(train, val).max() == pytest.approx(1 / 0.9)


def test_a_membership_of_zero_is_a_point_that_is_not_averaged_over():
    train = torch.cat([torch.full((50,), 0.1), torch.full((50,), 2.0)])
    weigh = DynamicRelativeWeights()
    weight = weigh(train, torch.tensor([0.1, 0.12, 2.0]), torch.tensor([1.0, 1.0, 0.0]))
    assert weight[:50].mean() > 1.5
    assert weight[50:].mean() < 0.5


@pytest.mark.parametrize(
    ("train", "val", "inside"),
    [
        (torch.full((10,), 0.3), torch.tensor([0.3, 0.9]), None),  # constant losses
        (0.3 + 3e-8 * torch.arange(10.0), torch.tensor([0.3, 0.9]), None),  # up to rounding
        (torch.linspace(0, 1, 10), torch.tensor([0.2, 0.4]), torch.zeros(2)),  # nothing inside
        (torch.linspace(0, 1, 10), torch.tensor([1e6, 1e6]), None),  # nothing near
    ],
)
def test_where_nothing_tells_points_apart_weights_are_one(train, val, inside):
    torch.testing.assert_close(DynamicRelativeWeights()(train, val, inside), torch.ones(10))


def test_weights_average_one_carry_no_gradient_and_do_not_feel_the_scale():
    train, val = two_batches()
    weight = DynamicRelativeWeights()(train.requires_grad_(), val)
    assert not weight.requires_grad
    assert weight.mean().item() == pytest.approx(1.0, abs=1e-5)
    torch.testing.assert_close(
        DynamicRelativeWeights()(1e-3 * train, 1e-3 * val), weight, rtol=1e-3, atol=1e-4
    )


def test_more_eta_means_evener_weights():
    train, val = two_batches()
    spread = [DynamicRelativeWeights(eta=eta)(train, val).std() for eta in (0.0, 0.3, 0.6, 0.9)]
    assert sorted(spread, reverse=True) == spread


def test_batches_side_by_side_are_weighed_as_each_alone():
    pairs = [two_batches(seed=seed) for seed in range(3)]
    train, val = (torch.stack(part) for part in zip(*pairs, strict=True))
    together = vmap(DynamicRelativeWeights())(train, val)
    alone = torch.stack([DynamicRelativeWeights()(*pair) for pair in pairs])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "setting",
    [{"eta": 1.0}, {"eta": -0.1}, {"bandwidth": "paper"}, {"bandwidth": 0.0}, {"ridge": 0.0}],
)
def test_settings_without_a_meaning_are_refused(setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        DynamicRelativeWeights(**setting)
