import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from giw.objective import generalized_risk, weighted_risk

positive = st.floats(0.01, 10.0)
losses = st.lists(positive, min_size=1, max_size=8).map(
    lambda v: torch.tensor(v, dtype=torch.float64)
)


def test_by_hand():
    risk = generalized_risk(
        torch.tensor([1.0, 3.0]),
        torch.tensor([0.5, 1.5]),
        torch.tensor([10.0, 2.0, 4.0, 6.0]),
        torch.tensor([1.0, 0.0, 0.5, 1.0]),
        alpha=0.625,
    )
    inside = 0.625 * (0.5 * 1 + 1.5 * 3) / 2
    outside = (0 * 10 + 1 * 2 + 0.5 * 4 + 0 * 6) / 4
    assert risk.item() == pytest.approx(inside + outside)


@given(losses, losses)
@settings(deadline=None, max_examples=50)
def test_everything_inside_is_importance_weighting(train_loss, val_loss):
    weight = torch.linspace(0.5, 1.5, len(train_loss), dtype=torch.float64)
    risk = generalized_risk(train_loss, weight, val_loss, torch.ones_like(val_loss), alpha=1.0)
    torch.testing.assert_close(risk, weighted_risk(train_loss, weight))


@given(losses, losses)
@settings(deadline=None, max_examples=50)
def test_nothing_inside_is_the_validation_mean(train_loss, val_loss):
    weight = torch.ones_like(train_loss)
    risk = generalized_risk(train_loss, weight, val_loss, torch.zeros_like(val_loss), alpha=0.0)
    torch.testing.assert_close(risk, val_loss.mean())


def test_boolean_membership_means_the_same_as_zero_and_one():
    train_loss, weight, val_loss = torch.rand(5), torch.rand(5), torch.rand(4)
    inside = torch.tensor([True, False, True, False])
    torch.testing.assert_close(
        generalized_risk(train_loss, weight, val_loss, inside, alpha=0.5),
        generalized_risk(train_loss, weight, val_loss, inside.float(), alpha=0.5),
    )


def test_validation_batches_average_to_the_whole_set():
    """α belongs to the whole set, so the mean over equal batches is the risk of the whole."""
    train_loss, weight = torch.rand(6, dtype=torch.float64), torch.rand(6, dtype=torch.float64)
    val_loss = torch.rand(8, dtype=torch.float64)
    inside = torch.tensor([1, 0, 0, 1, 1, 1, 0, 0], dtype=torch.float64)
    alpha = inside.mean()
    whole = generalized_risk(train_loss, weight, val_loss, inside, alpha=alpha)
    halves = [
        generalized_risk(train_loss, weight, val_loss[part], inside[part], alpha=alpha)
        for part in (slice(0, 4), slice(4, 8))
    ]
    torch.testing.assert_close(whole, torch.stack(halves).mean())


def test_membership_of_another_shape_is_refused():
    with pytest.raises(ValueError, match="one membership per validation loss"):
        generalized_risk(torch.ones(2), torch.ones(2), torch.ones(3), torch.ones(2), alpha=0.5)


# ordinary importance weighting


def test_weighted_mean_by_hand():
    risk = weighted_risk(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([3.0, 0.0, 0.5]))
    assert risk.item() == pytest.approx((3 + 0 + 2) / 3)


def test_integer_weights_equal_repeated_samples():
    loss, weight = torch.tensor([0.3, 1.1, 2.0, 0.7]), torch.tensor([2.0, 0.0, 1.0, 1.0])
    repeated = loss.repeat_interleave(weight.long())
    torch.testing.assert_close(weighted_risk(loss, weight), repeated.mean())


def test_no_gradient_flows_through_weights():
    loss = torch.tensor([1.0, 2.0], requires_grad=True)
    weight = torch.tensor([0.5, 1.5], requires_grad=True)
    weighted_risk(loss, weight).backward()
    torch.testing.assert_close(loss.grad, torch.tensor([0.25, 0.75]))
    assert weight.grad is None


def test_a_column_of_weights_is_refused_because_it_would_broadcast():
    with pytest.raises(ValueError, match=r"shape \(3, 1\) for train_loss of shape \(3,\)"):
        weighted_risk(torch.ones(3), torch.ones(3, 1))
