import pytest
import torch

from giw.objective import weighted_risk


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
