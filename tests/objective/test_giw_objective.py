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
    objective = giw.GIWObjective(np.array([True, True, False]))
    objective(train, val).backward()
    torch.testing.assert_close(train.grad, 2 / 3 * objective.weight_ / 4)
    torch.testing.assert_close(val.grad, torch.tensor([0.0, 0.0, 1 / 3]))


def test_weights_are_those_of_the_method():
    assert giw.GIWObjective([1, 0]).weigh == DynamicWeights() == GIW().weigh


def test_everything_inside_is_importance_weighting():
    objective = giw.GIWObjective([True] * 3)
    risk = objective(TRAIN, VAL)
    torch.testing.assert_close(risk, (objective.weight_ * TRAIN).mean())


def test_nothing_inside_is_the_validation_mean():
    risk = giw.GIWObjective([False] * 3)(TRAIN, VAL)
    torch.testing.assert_close(risk, VAL.mean())


def test_a_posterior_enters_both_terms():
    posterior = torch.tensor([1.0, 0.5, 0.0])
    objective = giw.GIWObjective(posterior)
    risk = objective(TRAIN, VAL)
    expected = 0.5 * (objective.weight_ * TRAIN).mean() + (0.5 * 0.5 + 3.0) / 3
    torch.testing.assert_close(risk, expected)


def test_weights_can_come_from_another_representation():
    z_train = torch.tensor([[0.0], [0.0], [5.0], [5.0]])
    z_val = torch.tensor([[0.0], [0.0], [5.0]])
    objective = giw.GIWObjective([1, 1, 0])
    objective(TRAIN, VAL, train_z=z_train, val_z=z_val)
    assert (objective.weight_[:2] > 1.5).all()
    assert (objective.weight_[2:] < 0.5).all()


@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=30),
    st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1)), min_size=1, max_size=8),
)
@settings(deadline=None, max_examples=100)
def test_the_risk_is_never_nan_whatever_the_losses(train, val):
    inside, val_loss = [s for _, s in val], torch.tensor([v for v, _ in val])
    risk = giw.GIWObjective(inside)(torch.tensor(train), val_loss)
    assert torch.isfinite(risk)


def test_a_batch_has_the_membership_of_its_rows_and_the_alpha_of_all():
    member = torch.tensor([1.0, 0.2, 0.0, 0.4, 0.9])
    rows = torch.tensor([4, 0, 2])
    objective = giw.GIWObjective(member)
    risk = objective(TRAIN, VAL, rows)
    expected = 0.5 * (objective.weight_ * TRAIN).mean() + (VAL * (1 - member[rows])).mean()
    torch.testing.assert_close(risk, expected)
    same = DynamicWeights()(TRAIN, VAL, member[rows])
    torch.testing.assert_close(objective.weight_, same)


def test_alpha_comes_from_the_split():
    x = np.random.default_rng(0).normal(size=(200, 2))
    split = giw.SupportSplitter(random_state=0).fit(x).split(np.r_[x[:5], x[:5] + 50])
    assert giw.GIWObjective(split).alpha == pytest.approx(split.alpha)
    with pytest.raises(TypeError, match=r"giw\.GIWObjective\(split\)"):
        giw.GIWObjective(alpha=0.5)


@pytest.mark.parametrize(
    ("train", "val", "index", "words"),
    [
        (TRAIN.mean(), VAL, None, 'reduction="none"'),
        (TRAIN[:, None], VAL, None, "shape"),
        (TRAIN[:0], VAL, None, "n > 0"),
        (TRAIN, VAL[:0], [], "n > 0"),
        (TRAIN, VAL[:2], None, "3 validation points and this batch 2; pass val_index"),
        (TRAIN, VAL, [1, 0], r"shape \(3,\), got torch.int64 of shape \(2,\)"),
        (TRAIN, VAL, [0, 1, 3], "between 0 and 2, .*got 0 to 3"),
        (TRAIN, VAL, [-1, 1, 2], "between 0 and 2, .*got -1 to 2"),
        (TRAIN, VAL, [True, False, True], "whole numbers"),
        (TRAIN.long(), VAL, None, "floats"),
        (TRAIN.double() * float("nan"), VAL, None, "4 NaN or infinite"),
    ],
)
def test_bad_input_is_named(train, val, index, words):
    with pytest.raises(ValueError, match=words):
        giw.GIWObjective([1, 1, 0])(train, val, index)


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
        giw.GIWObjective([1, 1, 0])(TRAIN, VAL, train_z=train_z, val_z=val_z)


@pytest.mark.parametrize("split", [[1, 0, 2], [-0.1], [1, float("nan")], [], [[1.0]], "a", 0.5])
def test_memberships_are_shares_one_for_each_point(split):
    with pytest.raises(ValueError, match=r"one (number|membership)"):
        giw.GIWObjective(split)


def test_one_representation_without_the_other_is_refused():
    with pytest.raises(ValueError, match="come together"):
        giw.GIWObjective([1, 1, 0])(TRAIN, VAL, train_z=TRAIN)
