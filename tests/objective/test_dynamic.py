import pytest
import torch

from giw.objective import DynamicWeights, effective_share


def test_weights_average_one_and_carry_no_gradient():
    loss = torch.rand(64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    weight = DynamicWeights()(loss, torch.tensor([0.2, 0.3, 0.25]))
    assert weight.mean().item() == pytest.approx(1.0, abs=1e-5)
    assert (weight >= 0).all()
    assert not weight.requires_grad


def test_points_that_look_like_inside_validation_points_weigh_more():
    train = torch.cat([torch.full((50,), 0.1), torch.full((50,), 2.0)])
    weight = DynamicWeights()(train, torch.tensor([0.1, 0.12, 2.0]), torch.tensor([1.0, 1.0, 0.0]))
    assert weight[:50].mean() > 1.5
    assert weight[50:].mean() < 0.5


def test_hidden_representations_are_matched_too():
    train = torch.tensor([[1.0, 0.0]] * 20 + [[0.0, 1.0]] * 20)
    weight = DynamicWeights()(train, torch.tensor([[1.0, 0.0]] * 3))
    assert weight[:20].mean() > 1.5


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e3])
def test_the_median_rule_does_not_feel_the_scale_of_the_losses(scale):
    generator = torch.Generator().manual_seed(1)
    train, val = torch.rand(40, generator=generator), torch.rand(6, generator=generator) * 0.3
    torch.testing.assert_close(
        DynamicWeights()(train * scale, val * scale), DynamicWeights()(train, val),
        rtol=1e-2, atol=1e-2,
    )  # fmt: skip


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
