"""Features are chosen by hiding training from itself."""

import numpy as np
import pytest
import torch

from giw.support import KNN, choose_representation
from giw.support.cells import neighbour_agreement
from giw.support.hiding import hidden_auroc
from giw.support.representation import fair_means, voted_labels


def three_islands(n=600):
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, n)
    return 10.0 * np.eye(3)[label] + rng.normal(size=(n, 3)), label


def test_features_that_separate_what_is_hidden_win():
    z, label = three_islands()
    noise = np.random.default_rng(1).normal(size=(600, 3))

    choice = choose_representation({"noise": noise, "islands": z}, label, random_state=0)

    assert choice.name == "islands"
    assert max(choice.scores["islands", False]) > 0.95
    assert abs(choice.scores["noise", False][0] - 0.5) < 0.1
    assert "islands" in choice.summary()
    assert choice.summary().count("<- chosen") == 1


def test_ties_go_to_the_earlier_features():
    z, label = three_islands()

    assert choose_representation({"a": z, "b": z.copy()}, label, random_state=0).name == "a"


def test_unit_norm_is_chosen_where_length_is_noise():
    z, label = three_islands()
    z = (z + 0.1) * np.exp(np.random.default_rng(1).normal(0, 2, (600, 1)))

    assert choose_representation({"z": z}, label, random_state=0).scorer.unit_norm


def test_without_labels_clusters_are_hidden():
    z, _ = three_islands()
    noise = np.random.default_rng(1).normal(size=(600, 3))

    assert choose_representation({"noise": noise, "z": z}, random_state=0).name in ("noise", "z")


def test_noisy_labels_do_not_choose_the_features_that_remember_the_noise():
    z, label = three_islands()
    noisy = np.random.default_rng(2).permutation(label)
    memory = 0.1 * np.eye(3)[noisy] + 0.3 * np.random.default_rng(3).normal(size=(600, 3))

    by_noise = choose_representation({"islands": z, "memory": memory}, noisy, random_state=0)

    assert by_noise.name == "islands"
    assert by_noise.scores["islands", False][0] == by_noise.scores["islands", False][1]


def test_hard_classes_are_hidden_and_random_ones_are_not():
    """Neighbours miss most labels of twenty classes, and still know far more than chance."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 20, 1_000)
    center = 1.3 * rng.normal(size=(20, 4))
    z = center[label] + rng.normal(size=(1_000, 4))
    agreement = neighbour_agreement(torch.from_numpy(z), torch.from_numpy(label), rng)

    hard = choose_representation({"z": z}, label, random_state=0)
    noise = choose_representation({"z": z}, rng.permutation(label), random_state=0)

    assert agreement < 0.5
    assert hard.scores["z", False][0] != hard.scores["z", False][1]
    assert noise.scores["z", False][0] == noise.scores["z", False][1]


def four_digits(noise, *, n=800, seed=0):
    """Two classes of two islands each, seen by a camera and by two layers of a net.

    The layers know the class of a row and how sure the net is of its label, and have forgotten
    which of the two islands it is from.
    """
    rng = np.random.default_rng(seed)
    island = rng.integers(0, 4, n)
    flipped = rng.random(n) < noise
    camera = 3 * np.eye(6)[island] + 0.7 * rng.normal(size=(n, 6)) + 1
    sure = np.exp(rng.normal(size=(n, 1))) * np.where(flipped, 0.3, 1.0)[:, None]
    known = np.eye(3)[island % 2]
    layers = {f"layer{i}": sure * (known + 0.1 * rng.normal(size=(n, 3))) for i in range(2)}
    return {"camera": camera, **layers}, np.where(flipped, 1 - island % 2, island % 2)


@pytest.mark.parametrize("noise", [0.0, 0.2, 0.4])
@pytest.mark.parametrize("seed", range(3))
def test_layers_do_not_win_by_the_confidence_they_share(noise, seed):
    """Clusters of lengths, and parts of a class whose twins carry flipped labels, mislead."""
    views, label = four_digits(noise, seed=seed)
    choice = choose_representation(views, label, random_state=seed)
    assert choice.name == "camera"
    # by what it found itself, which nobody else can see
    assert max(choice.means["camera", unit] for unit in (False, True)) == max(choice.means.values())
    if noise < 0.4:  # more of it is not trusted
        assert choice.scores["camera", True][0] > 0.95  # classes without the flipped labels


def test_neighbours_vote_flipped_labels_away():
    views, noisy = four_digits(0.3)
    _, clean = four_digits(0.0)
    kept = {name: torch.from_numpy(z) for name, z in views.items()}
    voted = voted_labels(kept, noisy)
    assert np.mean(noisy == clean) < 0.75
    assert np.mean(voted == clean) > 0.97


def test_a_row_has_no_vote_of_its_own():
    z = torch.tensor([[1.0, 0], [1, 0.1], [0, 1], [0.1, 1]])
    voted = voted_labels({"z": z}, np.array([0, 1, 1, 1]))
    assert voted.tolist() == [1, 1, 1, 1]


def test_a_row_is_compared_by_the_columns_of_others():
    """Own columns are easier by 0.3; the first row is worse by 0.1 on all others."""
    row, column = np.array([0.5, 0.6, 0.6, 0.7]), np.array([0.0, 0.1, 0.2, -0.1])
    own = np.eye(4, dtype=bool)
    area = row[:, None] + column + 0.3 * own

    np.testing.assert_allclose(fair_means(area, own), row + column.mean())


def test_two_rows_have_no_third_and_count_everything():
    area = np.array([[0.9, 0.5], [0.6, 0.7]])

    np.testing.assert_allclose(fair_means(area, np.eye(2, dtype=bool)), area.mean(axis=1))


def test_features_do_not_win_by_what_they_alone_propose():
    """Three views of islands and one that sees nothing but a length of its own."""
    rng = np.random.default_rng(0)
    z, _ = three_islands()
    views = {"first": z + rng.normal(size=z.shape), "second": z, "third": z * 2}
    alone = 50.0 * rng.integers(0, 3, (600, 1)) + 0.01 * rng.normal(size=(600, 2))

    choice = choose_representation({"alone": alone, **views}, random_state=0)

    assert choice.by_proposal["alone", False]["alone"] > 0.95
    assert choice.name != "alone"
    assert abs(choice.scores["alone", False][1] - 0.5) < 0.2


def test_hiding_an_island_is_noticed_exactly():
    z, label = three_islands()

    assert hidden_auroc(torch.from_numpy(z), label, KNN(), random_state=0) > 0.99


def test_bad_input_is_refused():
    z, label = three_islands()
    with pytest.raises(ValueError, match="empty"):
        choose_representation({})
    with pytest.raises(ValueError, match="same rows"):
        choose_representation({"a": z, "b": z[:5]}, label)
    with pytest.raises(ValueError, match="nothing to hide"):
        choose_representation({"a": np.zeros((20, 3))}, np.zeros(20))
    with pytest.raises(ValueError, match="NaN"):
        choose_representation({"a": z * np.nan}, label)
