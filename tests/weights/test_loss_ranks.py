import torch
from hypothesis import given
from hypothesis import strategies as st

from giw.weights.loss_ranks import (
    BINS,
    at_points,
    loss_histogram,
    loss_nodes,
    moved_histogram,
    node_ranks,
    one_hot,
)


def loss_of(probability):
    return -torch.as_tensor(probability, dtype=torch.float32).log()


def ranks(train, train_label, points, label, n_classes=2):
    histogram = loss_histogram(loss_nodes(train), one_hot(train_label, n_classes))
    return at_points(node_ranks(histogram), loss_nodes(points), one_hot(label, n_classes))


def test_a_loss_falls_to_the_two_nodes_beside_it():
    """A probability of the label of 1 - 2.25 / BINS lies a quarter of the way past node two."""
    nodes = loss_nodes(loss_of([1.0, 1 - 2.25 / BINS, 1e-30]))
    assert nodes.sum(1).tolist() == [1.0, 1.0, 1.0]
    assert nodes[0, 0] == nodes[2, BINS] == 1
    torch.testing.assert_close(nodes[1, 2:4], torch.tensor([0.75, 0.25]), rtol=0, atol=1e-4)


def test_ranks_are_shares_of_smaller_losses_within_the_class():
    """Class 0 has losses at four nodes; class 1 has all of its at one, and shares the middle."""
    train = loss_of(1 - torch.tensor([8, 16, 24, 32, 40, 40]) / BINS)
    label = torch.tensor([0, 0, 0, 0, 1, 1])
    points, of = (
        loss_of(1 - torch.tensor([8, 16, 32, 40, 40]) / BINS),
        torch.tensor([0, 0, 0, 1, 0]),
    )
    expected = torch.tensor([1 / 8, 3 / 8, 7 / 8, 1 / 2, 1.0])
    torch.testing.assert_close(ranks(train, label, points, of), expected, atol=1e-5, rtol=0)


def test_points_of_the_training_distribution_have_mean_rank_one_half():
    losses = torch.rand(4000, generator=torch.Generator().manual_seed(0)).mul(5).square()
    label = torch.arange(4000) % 2
    assert abs(ranks(losses, label, losses, label).mean() - 0.5) < 1e-3


def test_a_class_never_seen_has_rank_one_half():
    found = ranks(loss_of([0.5]), torch.tensor([0]), loss_of([0.9, 0.1]), torch.tensor([1, 1]))
    assert found.tolist() == [0.5, 0.5]


def test_the_histogram_forgets_by_its_window():
    old, new = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    once = moved_histogram(old, new, window=4)
    torch.testing.assert_close(once, torch.tensor([[0.75, 0.25]]))
    torch.testing.assert_close(
        moved_histogram(once, new, window=4), torch.tensor([[0.5625, 0.4375]])
    )


@given(st.lists(st.floats(0, 50), min_size=2, max_size=30))
def test_larger_losses_never_rank_lower(losses):
    train = torch.tensor(losses)
    zeros = torch.zeros(len(losses), dtype=torch.long)
    found = ranks(train, zeros, train.sort().values, zeros, n_classes=1)
    assert (found.diff() >= -1e-5).all()
    assert ((found >= 0) & (found <= 1)).all()
