import torch
from hypothesis import given
from hypothesis import strategies as st

from giw.weights.loss_histogram import (
    BINS,
    at_points,
    loss_histogram,
    loss_nodes,
    moved_histogram,
    one_hot,
)


def loss_of(probability):
    return -torch.as_tensor(probability, dtype=torch.float32).log()


def test_a_loss_falls_to_the_two_nodes_beside_it():
    """A probability of the label of 1 - 2.25 / BINS lies a quarter of the way past node two."""
    nodes = loss_nodes(loss_of([1.0, 1 - 2.25 / BINS, 1e-30]))
    assert nodes.sum(1).tolist() == [1.0, 1.0, 1.0]
    assert nodes[0, 0] == nodes[2, BINS] == 1
    torch.testing.assert_close(nodes[1, 2:4], torch.tensor([0.75, 0.25]), rtol=0, atol=1e-4)


def test_a_histogram_has_the_shares_of_classes_and_losses():
    losses, label = loss_of([1.0, 1.0, 0.5, 1e-30]), torch.tensor([0, 0, 1, 1])
    found = loss_histogram(loss_nodes(losses), one_hot(label, 3))
    expected = torch.zeros(3, BINS + 1)
    expected[0, 0], expected[1, BINS // 2], expected[1, BINS] = 0.5, 0.25, 0.25
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_values_are_read_off_at_each_points_class_and_loss():
    values = torch.stack([torch.arange(BINS + 1.0), -torch.arange(BINS + 1.0)])
    losses, label = loss_of([1.0, 1 - 2.25 / BINS, 0.5]), torch.tensor([0, 1, 0])
    found = at_points(values, loss_nodes(losses), one_hot(label, 2))
    torch.testing.assert_close(found, torch.tensor([0.0, -2.25, BINS / 2]), atol=1e-3, rtol=0)


def test_the_histogram_forgets_by_its_window():
    old, new = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    once = moved_histogram(old, new, window=4)
    torch.testing.assert_close(once, torch.tensor([[0.75, 0.25]]))
    torch.testing.assert_close(
        moved_histogram(once, new, window=4), torch.tensor([[0.5625, 0.4375]])
    )


@given(st.lists(st.floats(0, 100), min_size=1, max_size=30))
def test_nothing_is_lost_and_nothing_is_negative(losses):
    nodes = loss_nodes(torch.tensor(losses))
    assert (nodes >= 0).all()
    torch.testing.assert_close(nodes.sum(1), torch.ones(len(losses)), atol=1e-4, rtol=0)
