"""Features are chosen by hiding training from itself."""

import numpy as np
import pytest
import torch

from giw.support import KNN, choose_representation
from giw.support.hiding import hidden_auroc


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
