"""Ranks among held-out rows of the same cell."""

import numpy as np
import torch

from giw.support.calibration import Fold, conformal_rank, folds_of
from giw.support.scorers import KNN


def fold(score, cell):
    return Fold(KNN(), KNN(), *[torch.tensor(v) for v in ([0], [0], score, cell)])


def test_the_rank_counts_rows_at_least_as_strange_in_the_same_cell():
    held_out = fold([1.0, 2.0, 3.0, 100.0], [0, 0, 0, 1])
    score, cell = torch.tensor([0.5, 2.0, 9.0, 9.0]), torch.tensor([0, 0, 0, 1])

    rank, count = conformal_rank([held_out], [score], [cell])

    assert rank.tolist() == [4, 3, 1, 2]
    assert count.tolist() == [3, 3, 3, 1]


def test_folds_add_up_each_with_its_own_score():
    folds = [fold([1.0, 2.0], [0, 0]), fold([10.0, 20.0], [0, 0])]

    rank, count = conformal_rank(
        folds, [torch.tensor([1.5]), torch.tensor([15.0])], [torch.tensor([0])] * 2
    )

    assert (rank.item(), count.item()) == (3, 4)


def test_ranks_of_exchangeable_points_are_uniform():
    """Among 19 rows every rank from 1 to 20 has probability 1/20, exactly: try all 20 places."""
    values = torch.arange(20.0)
    ranks = []
    for out in range(20):
        rest = torch.cat([values[:out], values[out + 1 :]])
        rank, _ = conformal_rank(
            [fold(rest.tolist(), [0] * 19)], [values[out : out + 1]], [torch.tensor([0])]
        )
        ranks.append(rank.item())

    assert sorted(ranks) == list(range(1, 21))


def test_one_fold_holds_out_a_share_and_never_everything():
    rng = np.random.default_rng(0)

    assert [
        len(part) for part in folds_of(100, count=1, share=0.25, most=3_000, generator=rng)
    ] == [25]
    assert len(folds_of(100, count=1, share=0.25, most=10, generator=rng)[0]) == 10
    assert len(folds_of(2, count=1, share=0.99, most=10, generator=rng)[0]) == 1


def test_many_folds_use_every_row_once():
    parts = folds_of(13, count=5, share=0.25, most=10, generator=np.random.default_rng(0))

    assert sorted(np.concatenate(parts)) == list(range(13))
