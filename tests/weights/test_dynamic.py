import numpy as np
import pytest
import torch
from benchmarks.loss_shapes import loss_shapes
from numpy.testing import assert_allclose
from torch.func import vmap

from giw.weights import cross_width, dynamic_kmm, kmm

SHAPES = loss_shapes()


def batch(shape, dtype=torch.float32):
    train, val = SHAPES[shape]
    return torch.as_tensor(train, dtype=dtype), torch.as_tensor(val, dtype=dtype)


@pytest.mark.parametrize("bandwidth", ["cross", "median", "paper", 0.5])
@pytest.mark.parametrize("shape", SHAPES)
def test_weights_have_mean_one_and_are_not_negative(shape, bandwidth):
    w = dynamic_kmm(*batch(shape), bandwidth=bandwidth)

    assert w.shape == (256,)
    assert w.dtype == torch.float32
    assert w.min() >= 0
    assert_allclose(w.mean(), 1.0, rtol=1e-6)


def test_many_steps_reach_the_weights_of_the_exact_solver():
    """With a ridge that determines the minimiser the two roads meet."""
    train, val = batch("larger", torch.float64)

    steps = dynamic_kmm(train, val, bandwidth="median", ridge=1.0, n_steps=3_000)

    exact = kmm(train, val, ridge=1.0, tolerance=1e-9)
    torch.testing.assert_close(steps, exact, rtol=1e-3, atol=1e-3)


def test_vmap_over_trials_is_each_trial_alone():
    train = torch.stack([batch("same")[0], batch("larger")[0]])
    val = torch.stack([batch("same")[1], batch("larger")[1]])
    member = torch.rand(2, 20, generator=torch.Generator().manual_seed(0))

    together = vmap(dynamic_kmm)(train, val, member)

    for t in range(2):
        alone = dynamic_kmm(train[t], val[t], member[t])
        torch.testing.assert_close(together[t], alone, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(dynamic_kmm(train, val, member), together, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(
        dynamic_kmm(train[..., None], val[..., None], member), together, rtol=1e-3, atol=1e-3
    )


def test_features_of_several_dimensions():
    rng = np.random.default_rng(0)
    train = torch.as_tensor(rng.normal(size=(2, 64, 5)), dtype=torch.float32)
    val = torch.as_tensor(rng.normal(size=(2, 10, 5)), dtype=torch.float32)

    w = dynamic_kmm(train, val)

    assert w.shape == (2, 64)
    torch.testing.assert_close(w[1], dynamic_kmm(train[1], val[1]), rtol=1e-3, atol=1e-3)


def test_no_gradient_flows_and_no_input_is_changed():
    train, val = batch("same")
    train.requires_grad_()
    before = train.detach().clone()

    w = dynamic_kmm(train, val)

    assert not w.requires_grad
    torch.testing.assert_close(train.detach(), before, rtol=0, atol=0)


def test_nothing_inside_gives_weights_of_one():
    train, val = batch("larger")

    assert (dynamic_kmm(train, val, torch.zeros(20)) == 1).all()


@pytest.mark.parametrize("value", [0.0, 2.3025, 1e-30, 1e30])
def test_constant_losses_give_weights_of_one(value):
    train = torch.full((64,), value)

    assert (dynamic_kmm(train, torch.rand(5)) == 1).all()


@pytest.mark.parametrize("bandwidth", ["median", "paper", 0.5])
def test_validation_losses_out_of_reach_of_the_kernel_still_give_numbers(bandwidth):
    train, _ = batch("same")

    w = dynamic_kmm(train, torch.full((4,), 1e4), bandwidth=bandwidth)

    assert torch.isfinite(w).all()
    assert_allclose(w.mean(), 1.0, rtol=1e-5)


def test_a_point_with_no_membership_counts_for_nothing():
    train, val = batch("larger", torch.float64)
    member = torch.ones(20)
    member[10:] = 0

    torch.testing.assert_close(dynamic_kmm(train, val, member), dynamic_kmm(train, val[:10]))


def test_half_precision_comes_back_as_single():
    train, val = batch("same")

    assert dynamic_kmm(train.half(), val.half()).dtype == torch.float32


def test_larger_validation_losses_weigh_larger_training_losses_more():
    train, val = batch("larger")
    w = dynamic_kmm(train, val)

    assert (w * train).mean() > 1.5 * train.mean()


def test_an_unknown_bandwidth_is_refused():
    with pytest.raises(ValueError, match="bandwidth must be one of"):
        dynamic_kmm(*batch("same"), bandwidth="silverman")


def test_cross_width_is_the_root_mean_squared_distance():
    generator = torch.Generator().manual_seed(0)
    train = torch.rand(2, 30, 3, generator=generator, dtype=torch.float64)
    val = 5 + torch.rand(2, 7, 3, generator=generator, dtype=torch.float64)
    member = torch.rand(2, 7, generator=generator, dtype=torch.float64)

    squares = (train[:, :, None] - val[:, None]).square().sum(-1)  # (2, 30, 7)
    expected = ((squares * member[:, None]).sum((1, 2)) / (30 * member.sum(1))).sqrt()

    torch.testing.assert_close(cross_width(train, val, member)[:, 0, 0], expected)
    one = cross_width(train[..., :1], val[..., :1])[:, 0, 0]  # losses: twice as wide
    squares = (train[:, :, None, 0] - val[:, None, :, 0]).square().mean((1, 2))
    torch.testing.assert_close(one, 2 * squares.sqrt())


def test_cross_width_of_points_that_coincide_or_of_no_members_is_positive():
    same = torch.full((5, 1), 0.3)

    assert cross_width(same, same[:2]) == 1
    assert cross_width(torch.arange(4.0)[:, None], same, torch.zeros(5)) > 0


def test_a_rare_class_gets_its_weight_although_most_losses_are_alike():
    """Three of 256 losses are large and half of validation's: the median distance sees neither."""
    generator = torch.Generator().manual_seed(0)
    rare = torch.arange(256) < 3
    train = torch.where(rare, 1.5 + torch.rand(256, generator=generator), 1e-3)
    train = train + 1e-3 * torch.rand(256, generator=generator)
    val = torch.where(torch.arange(20) < 10, 2.0, 1e-3) + 1e-3 * torch.rand(20, generator=generator)

    share = {
        rule: dynamic_kmm(train, val, bandwidth=rule)[rare].sum() / 256
        for rule in ("cross", "median")
    }

    assert 0.4 < share["cross"] < 0.6
    assert share["median"] < 0.1


def test_scaling_losses_changes_nothing():
    train, val = batch("larger", torch.float64)

    torch.testing.assert_close(
        dynamic_kmm(1e3 * train, 1e3 * val), dynamic_kmm(train, val), rtol=1e-6, atol=1e-6
    )
