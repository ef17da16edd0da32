import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import giw
from giw.nets.methods import GIW
from giw.objective import DynamicWeights

TRAIN = torch.tensor([0.1, 0.4, 0.9, 1.6])
VAL = torch.tensor([0.2, 0.5, 3.0])


def test_gradient_reaches_outside_points_and_weighted_training_points_only():
    train, val = TRAIN.clone().requires_grad_(), VAL.clone().requires_grad_()
    objective = giw.GIWObjective(alpha=2 / 3)
    objective(train, val, inside=np.array([True, True, False])).backward()
    torch.testing.assert_close(train.grad, 2 / 3 * objective.weight_ / 4)
    torch.testing.assert_close(val.grad, torch.tensor([0.0, 0.0, 1 / 3]))


def test_weights_are_those_of_the_method():
    assert giw.GIWObjective(alpha=0.5).weigh == DynamicWeights() == GIW().weigh


def test_everything_inside_is_importance_weighting():
    objective = giw.GIWObjective(alpha=1.0)
    risk = objective(TRAIN, VAL, inside=[True] * 3)
    torch.testing.assert_close(risk, (objective.weight_ * TRAIN).mean())


def test_nothing_inside_is_the_validation_mean():
    risk = giw.GIWObjective(alpha=0.0)(TRAIN, VAL, inside=[False] * 3)
    torch.testing.assert_close(risk, VAL.mean())


def test_a_posterior_enters_both_terms():
    posterior = torch.tensor([1.0, 0.5, 0.0])
    objective = giw.GIWObjective(alpha=0.5)
    risk = objective(TRAIN, VAL, inside=posterior)
    expected = 0.5 * (objective.weight_ * TRAIN).mean() + (0.5 * 0.5 + 3.0) / 3
    torch.testing.assert_close(risk, expected)


def test_weights_can_come_from_another_representation():
    z_train = torch.tensor([[0.0], [0.0], [5.0], [5.0]])
    z_val = torch.tensor([[0.0], [0.0], [5.0]])
    objective = giw.GIWObjective(alpha=2 / 3)
    objective(TRAIN, VAL, inside=[1, 1, 0], train_z=z_train, val_z=z_val)
    assert (objective.weight_[:2] > 1.5).all()
    assert (objective.weight_[2:] < 0.5).all()


@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=30),
    st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1)), min_size=1, max_size=8),
)
@settings(deadline=None, max_examples=100)
def test_the_risk_is_never_nan_whatever_the_losses(train, val):
    inside = torch.tensor([s for _, s in val])
    alpha = min(max(float(inside.mean()), 1e-6), 1 - 1e-6)
    risk = giw.GIWObjective(alpha=alpha)(
        torch.tensor(train), torch.tensor([v for v, _ in val]), inside=inside
    )
    assert torch.isfinite(risk)


@pytest.mark.parametrize(
    ("train", "val", "inside", "words"),
    [
        (TRAIN.mean(), VAL, [1, 1, 0], 'reduction="none"'),
        (TRAIN[:, None], VAL, [1, 1, 0], "shape"),
        (TRAIN[:0], VAL, [1, 1, 0], "n > 0"),
        (TRAIN, VAL[:0], [], "n > 0"),
        (TRAIN, VAL, [1, 0], r"shape \(3,\), got \(2,\)"),
        (TRAIN, VAL, [1, 0, 2], "between 0 and 1"),
        (TRAIN, VAL, [1, 0, float("nan")], "between 0 and 1, got nan"),
        (TRAIN, VAL, None, "got None; pass split.inside"),
        (TRAIN.long(), VAL, [1, 1, 0], "floats"),
        (TRAIN.double() * float("nan"), VAL, [1, 1, 0], "4 NaN or infinite"),
    ],
)
def test_bad_input_is_named(train, val, inside, words):
    with pytest.raises(ValueError, match=words):
        giw.GIWObjective(alpha=0.5)(train, val, inside=inside)


@pytest.mark.parametrize(
    ("train_z", "val_z", "words"),
    [
        (torch.ones(4, 2, 2), torch.ones(3, 2, 2), r"flatten each point first: train_z.flatten"),
        (torch.ones(5, 2), torch.ones(3, 2), r"train_z must hold one row per loss, shape \(4, d\)"),
        (torch.ones(4, 2), torch.ones(2, 2), r"val_z must hold one row per loss, shape \(3, d\)"),
        (torch.ones(4, 2), torch.ones(3, 1), "need the same features"),
        (torch.full((4, 2), float("nan")), torch.ones(3, 2), "train_z holds 8 NaN"),
        (torch.ones(4, 2).numpy(), torch.ones(3, 2), "train_z must be a tensor of floats, got nd"),
    ],
)
def test_a_representation_has_one_finite_row_per_loss(train_z, val_z, words):
    """NaN in it gave equal weights without a word, other shapes an error deep in torch."""
    with pytest.raises(ValueError, match=words):
        giw.GIWObjective(alpha=0.5)(TRAIN, VAL, inside=[1, 1, 0], train_z=train_z, val_z=val_z)


@pytest.mark.parametrize("alpha", [-0.1, 1.1, float("nan"), None, "a"])
def test_alpha_is_a_share(alpha):
    with pytest.raises(ValueError, match="between 0 and 1"):
        giw.GIWObjective(alpha=alpha)


@pytest.mark.parametrize(("alpha", "inside"), [(0.0, [1, 0, 0]), (1.0, [1, 1, 0])])
def test_an_alpha_that_contradicts_the_membership_is_refused(alpha, inside):
    with pytest.raises(ValueError, match="is not the mean of this membership"):
        giw.GIWObjective(alpha=alpha)(TRAIN, VAL, inside=inside)


def test_one_representation_without_the_other_is_refused():
    with pytest.raises(ValueError, match="come together"):
        giw.GIWObjective(alpha=0.5)(TRAIN, VAL, inside=[1, 1, 0], train_z=TRAIN)
