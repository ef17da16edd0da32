import pytest
import torch
from benchmarks.loss_shapes import loss_shapes
from numpy.testing import assert_allclose
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import vmap

from giw.objective import DynamicWeights, dynamic_kmm, effective_share
from giw.objective.terms import cross_width
from giw.weights import kmm

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


@pytest.mark.parametrize("shape", SHAPES)
def test_weights_solve_the_ridged_problem_where_no_bound_binds(shape):
    """The gradient of what is minimised is zero: K w − κ + λ n (w − 1), for losses and width 2."""
    train, val = (part / 2 for part in batch(shape, torch.float64))
    kernel = torch.exp(-((train[:, None] - train) ** 2) / 2)
    kappa = 256 * torch.exp(-((train[:, None] - val) ** 2) / 2).mean(1)

    w = dynamic_kmm(2 * train, 2 * val, bandwidth=2.0, ridge=0.5, upper=1e9)

    minimiser = torch.linalg.solve(kernel + 128 * torch.eye(256), kappa + 128)
    assert minimiser.min() > 0
    torch.testing.assert_close(w, minimiser / minimiser.mean())


def test_two_points_by_hand():
    """Kernels vanish between points this far apart: (1 + 2 λ) w = κ + 2 λ, κ = (2, 0)."""
    weight = dynamic_kmm(torch.tensor([0.0, 9.0]), torch.tensor([0.0]), bandwidth=0.1, ridge=0.25)

    torch.testing.assert_close(weight, torch.tensor([5 / 3, 1 / 3]))  # (2.5, 0.5) / 1.5, mean one


def test_a_larger_ridge_shrinks_weights_towards_one():
    found = [dynamic_kmm(*batch("two_modes"), ridge=ridge) for ridge in (1e-3, 1e-1, 1e1)]
    share = [float(effective_share(w)) for w in found]
    assert share == sorted(share)
    torch.testing.assert_close(found[-1], torch.ones(256), rtol=0, atol=0.05)


@pytest.mark.filterwarnings("ignore::giw.weights.EffectiveSampleSizeWarning")
@pytest.mark.parametrize("shape", SHAPES)
def test_the_published_width_is_solved_exactly(shape):
    train, val = batch(shape)
    member = torch.linspace(0, 1, 20)

    w = dynamic_kmm(train, val, member, bandwidth="paper")

    exact = kmm(train, val, val_weight=member, bandwidth="paper", ridge=1e-5)
    torch.testing.assert_close(w, exact, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("bandwidth", ["cross", "median", "paper", 0.5])
@pytest.mark.parametrize("d", [1, 3])
def test_weighing_reads_no_value_on_the_host(bandwidth, d):
    with FakeTensorMode():
        train, val, member = torch.rand(32, d), torch.rand(9, d), torch.rand(9)

        w = dynamic_kmm(train, val, member, bandwidth=bandwidth)

    assert w.shape == (32,)
    assert w.dtype == torch.float32


@pytest.mark.parametrize("rule", ["cross", "paper"])
def test_training_losses_that_are_not_numbers_leave_equal_weights(rule):
    train, val = batch("same")
    train[3] = torch.nan

    assert (dynamic_kmm(train, val, bandwidth=rule) == 1).all()


@pytest.mark.parametrize("bandwidth", ["cross", "paper"])
def test_vmap_maps_what_it_is_told_to_and_repeats_the_rest(bandwidth):
    train = torch.stack([batch("same")[0], batch("larger")[0]])
    val = batch("larger")[1]

    def weigh(x, y):
        return dynamic_kmm(x, y, bandwidth=bandwidth)

    together = vmap(weigh, in_dims=(1, None))(train.T, val)

    for x, w in zip(train, together, strict=True):
        torch.testing.assert_close(w, weigh(x, val), rtol=1e-3, atol=1e-3)
    nested = vmap(vmap(weigh, in_dims=(0, None)), in_dims=(0, None))(train[None], val)
    torch.testing.assert_close(nested[0], together, rtol=1e-3, atol=1e-3)


def test_vmap_over_trials_is_each_trial_alone():
    train = torch.stack([batch("same")[0], batch("larger")[0]])
    val = torch.stack([batch("same")[1], batch("larger")[1]])
    member = torch.rand(2, 20, generator=torch.Generator().manual_seed(0))

    together = vmap(dynamic_kmm)(train, val, member)

    for t in range(2):
        alone = dynamic_kmm(train[t], val[t], member[t])
        torch.testing.assert_close(together[t], alone, rtol=1e-3, atol=1e-3)
    columns = vmap(dynamic_kmm)(train[..., None], val[..., None], member)
    torch.testing.assert_close(columns, together, rtol=1e-3, atol=1e-3)


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


def test_cross_width_is_the_root_mean_squared_distance():
    generator = torch.Generator().manual_seed(0)
    train = torch.rand(30, 3, generator=generator, dtype=torch.float64)
    val = 5 + torch.rand(7, 3, generator=generator, dtype=torch.float64)
    member = torch.rand(7, generator=generator, dtype=torch.float64)

    squares = (train[:, None] - val).square().sum(-1)  # (30, 7)
    expected = ((squares * member).sum() / (30 * member.sum())).sqrt()

    torch.testing.assert_close(cross_width(train, val, member), expected)
    one = cross_width(train[:, :1], val[:, :1], torch.ones_like(member))  # losses: twice as wide
    squares = (train[:, :1] - val[:, 0]).square().mean()
    torch.testing.assert_close(one, 2 * squares.sqrt())


def test_cross_width_of_points_that_coincide_or_of_no_members_is_positive():
    same = torch.full((5, 1), 0.3)

    assert cross_width(same, same[:2], torch.ones(2)) == 1
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

    assert 0.25 < share["cross"] < 0.6
    assert share["median"] < 0.1


def test_scaling_losses_changes_nothing():
    train, val = batch("larger", torch.float64)

    torch.testing.assert_close(
        dynamic_kmm(1e3 * train, 1e3 * val), dynamic_kmm(train, val), rtol=1e-6, atol=1e-6
    )


def test_points_that_look_like_inside_validation_points_weigh_more():
    train = torch.cat([torch.full((50,), 0.1), torch.full((50,), 2.0)])
    weight = DynamicWeights()(train, torch.tensor([0.1, 0.12, 2.0]), torch.tensor([1.0, 1.0, 0.0]))
    assert weight[:50].mean() > 1.5
    assert weight[50:].mean() < 0.5


def test_the_published_rule_goes_flat_on_small_losses():
    generator = torch.Generator().manual_seed(1)
    train, val = torch.rand(40, generator=generator), torch.rand(6, generator=generator) * 0.3
    flat = DynamicWeights(bandwidth="paper")(train * 1e-3, val * 1e-3)
    torch.testing.assert_close(flat, torch.ones(40), atol=0.05, rtol=0)


@pytest.mark.parametrize(
    "setting", [{"bandwidth": "wide"}, {"bandwidth": -1.0}, {"ridge": 0.0}, {"upper": float("nan")}]
)
def test_settings_without_a_meaning_are_refused(setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        DynamicWeights(**setting)


def test_effective_share_by_hand():
    assert effective_share(torch.ones(7)).item() == pytest.approx(1.0)
    assert effective_share(torch.tensor([4.0, 0, 0, 0])).item() == pytest.approx(0.25)
    assert effective_share(torch.tensor([1.0, 3.0])).item() == pytest.approx(16 / 20)
    assert effective_share(torch.zeros(3)).item() == 0
