"""Minority classes in training, and the weights that undo them."""

import numpy as np
import pytest

from giw.paper.sample import Sample
from giw.paper.shifts import class_prior, label_noise, support_shift


def balanced(n_each=300, n_classes=4):
    y = np.repeat(np.arange(n_classes), n_each)
    sample = Sample(np.arange(len(y))[:, None].astype(float), y, y)
    return support_shift(
        sample,
        train_groups=range(n_classes),
        test_groups=range(n_classes),
        n_val=n_classes,
        test_share=1 / 3,
        random_state=0,
    )


def test_minority_classes_shrink_to_the_ratio_and_majority_classes_stay():
    problem, truth = balanced()  # 199 training points per class

    rare, _ = class_prior(problem, truth, ratio=10, minority=[1, 3], random_state=0)

    np.testing.assert_array_equal(np.bincount(rare.train.y), [199, 20, 199, 20])
    assert set(rare.train.x[:, 0]) <= set(problem.train.x[:, 0])
    assert len(set(rare.train.x[:, 0])) == len(rare.train)


def test_the_true_weight_is_the_exact_ratio_of_class_frequencies():
    problem, truth = balanced()

    rare, rare_truth = class_prior(problem, truth, ratio=10, minority=[1, 3], random_state=0)

    frequency = np.bincount(rare.train.y) / len(rare.train)
    np.testing.assert_allclose(rare_truth.weight, 0.25 / frequency[rare.train.y])


def test_noise_and_class_prior_compose_in_either_order():
    """Weights give every class the same mass again, and a flipped label none."""
    for order in ("noise first", "prior first"):
        problem, truth = balanced()
        if order == "noise first":
            problem, truth = label_noise(problem, truth, rate=0.2, random_state=1)
        problem, truth = class_prior(problem, truth, ratio=5, minority=[0, 1], random_state=2)
        if order == "prior first":
            problem, truth = label_noise(problem, truth, rate=0.2, random_state=1)

        assert truth.weight.mean() == pytest.approx(1.0)
        np.testing.assert_array_equal(truth.weight[truth.flipped], 0.0)
        mass = np.bincount(problem.train.y, weights=truth.weight) / len(problem.train)
        np.testing.assert_allclose(mass, 0.25, atol=0.06)  # noise moves the counts by chance
        assert len(truth.flipped) == len(truth.train_group) == len(problem.train)
        clean = ~truth.flipped
        np.testing.assert_array_equal(problem.train.y[clean], truth.train_group[clean])


def test_another_seed_keeps_other_rows():
    problem, truth = balanced()
    kept = [
        set(class_prior(problem, truth, ratio=10, minority=[0], random_state=s)[0].train.x[:, 0])
        for s in (0, 0, 1)
    ]

    assert kept[0] == kept[1] != kept[2]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"ratio": 0.5}, "at least 1; got 0.5"),
        ({"minority": []}, "some but not all"),
        ({"minority": range(4)}, "some but not all"),
        ({"minority": [7]}, "some but not all"),
    ],
)
def test_wrong_requests_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        class_prior(*balanced(), **{"ratio": 10, "minority": [0], **wrong})


def test_at_least_one_point_of_a_minority_class_is_left():
    rare, _ = class_prior(*balanced(), ratio=10_000, minority=[2], random_state=0)

    assert np.bincount(rare.train.y)[2] == 1
