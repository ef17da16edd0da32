"""Scores read off one matrix of distances are those of a scorer fitted anew."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from giw.support import KNN
from giw.support.hiding import (
    area_under_curve,
    hidden_aurocs,
    pairwise_distance,
    score_from_distances,
)
from giw.support.scorers.unit_norm import unit_norm


@pytest.mark.parametrize("scorer", [KNN(), KNN(k=1, relative=0), KNN(k=3, unit_norm=True)])
@pytest.mark.parametrize("copies", [0, 5])
def test_both_roads_give_the_same_scores(scorer, copies):
    rng = np.random.default_rng(0)
    z = torch.from_numpy(rng.normal(size=(300, 4)))
    z[100 : 100 + copies] = z[200 : 200 + copies]  # asked rows that are copies of known ones
    asked, known = torch.arange(90, 130), torch.from_numpy(rng.permutation(np.arange(130, 300)))

    distance = pairwise_distance(unit_norm(z) if scorer.unit_norm else z)
    by_matrix = score_from_distances(distance, known, asked, scorer)

    torch.testing.assert_close(by_matrix, replace(scorer).fit(z[known]).score(z[asked]))


def test_repeated_rows_have_a_score_on_both_roads():
    z = torch.zeros(60, 2, dtype=torch.float64)
    z[50:] = torch.arange(20, dtype=torch.float64).reshape(10, 2)
    known, asked = torch.arange(0, 55), torch.arange(55, 60)

    by_matrix = score_from_distances(pairwise_distance(z), known, asked, KNN())

    assert by_matrix.isfinite().all()
    torch.testing.assert_close(by_matrix, KNN().fit(z[known]).score(z[asked]))


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=20),
    st.lists(st.integers(0, 5), min_size=1, max_size=20),
)
def test_the_area_is_that_of_scikit_learn(low, high):
    area = area_under_curve(torch.tensor(low, dtype=torch.double), torch.tensor(high).double())

    expected = roc_auc_score([0] * len(low) + [1] * len(high), low + high)
    assert float(area) == pytest.approx(expected)


def test_an_island_is_found_and_a_random_part_is_not():
    rng = np.random.default_rng(1)
    island = rng.integers(0, 2, 400)
    z = torch.from_numpy(20.0 * island[:, None] + rng.normal(size=(400, 2)))
    random_part = rng.permutation(island)

    by_island, by_chance = hidden_aurocs(z, [island, random_part], KNN(), random_state=0)

    assert by_island > 0.99
    assert abs(by_chance - 0.5) < 0.1


def test_too_few_rows_are_refused():
    with pytest.raises(ValueError, match="5 rows are too few"):
        hidden_aurocs(torch.rand(5, 2), [np.array([0, 0, 0, 1, 1])], KNN())
