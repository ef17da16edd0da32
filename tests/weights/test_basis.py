import torch

from giw.weights.basis import fold_numbers


def points(n=100, d=2):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_folds_are_of_equal_size():
    assert fold_numbers(points(103), 5).bincount().tolist() == [21, 21, 21, 20, 20]


def test_folds_follow_the_points_not_their_order():
    x = points()
    order = torch.randperm(100, generator=torch.Generator().manual_seed(1))

    assert (fold_numbers(x[order], 5) == fold_numbers(x, 5)[order]).all()


def test_neighbours_share_a_fold_as_often_as_chance_has_it():
    """Dealt out in turn they never would, and what is held out would be known already."""
    x = torch.arange(1_000.0)[:, None]

    fold = fold_numbers(x, 5)

    assert 0.15 < (fold[1:] == fold[:-1]).double().mean() < 0.25
