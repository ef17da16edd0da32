import torch
from hypothesis import given
from hypothesis import strategies as st

from giw.nets.training import members as one_hot
from giw.objective.terms import class_ratio, shrunk_shares


def test_shares_are_shrunk_by_the_chi_square_statistic():
    """30 and 10 of 40 against halves: X² = 40 · 2 · 0.0625 / 0.5 = 10, so nine tenths stay."""
    found = shrunk_shares(torch.tensor([30.0, 10.0]), torch.tensor([0.5, 0.5]), torch.tensor(40.0))
    torch.testing.assert_close(found, torch.tensor([0.725, 0.275]))


def test_noise_is_shrunk_to_nothing():
    """5 and 3 of 8: X² = 0.5 is less than its one degree of freedom."""
    base = torch.tensor([0.5, 0.5])
    found = shrunk_shares(torch.tensor([5.0, 3.0]), base, torch.tensor(8.0))
    torch.testing.assert_close(found, base)


def test_a_large_sample_gives_the_ratio_of_frequencies():
    label = torch.arange(10_000) % 2
    ratio = class_ratio(one_hot(label, 2), torch.ones(10_000), torch.tensor([0.9, 0.1]))
    torch.testing.assert_close(ratio, torch.tensor([0.5 / 0.9, 5.0]), rtol=1e-3, atol=0)


def test_a_class_that_training_lacks_has_ratio_one_and_takes_nothing_from_others():
    label = torch.arange(300) % 3
    ratio = class_ratio(one_hot(label, 3), torch.ones(300), torch.tensor([0.5, 0.5, 0.0]))
    torch.testing.assert_close(ratio, torch.ones(3))


def test_a_class_that_validation_points_miss_keeps_some_weight():
    """Twelve, eight and none, where training has thirds: half a point stands for the third.

    Shares 12, 8 and ½ of 20.5; X² = 20 · 3 · Σ (p - ⅓)², two degrees of freedom.
    """
    label, third = torch.tensor([0] * 12 + [1] * 8), torch.full((3,), 1 / 3)
    share = torch.tensor([12, 8, 0.5]) / 20.5
    trust = 1 - 2 / (20 * 3 * (share - third).square().sum())
    expected = (third + trust * (share - third)) / third
    found = class_ratio(one_hot(label, 3), torch.ones(20), third)
    torch.testing.assert_close(found, expected)
    assert 0.25 < found[2] < 0.4
    # half as surely inside, all of them: the same shares
    torch.testing.assert_close(class_ratio(one_hot(label, 3), 0.5 * torch.ones(20), third), found)


def test_classes_that_all_were_seen_count_as_they_are():
    label = torch.tensor([0] * 30 + [1] * 9 + [2])
    found = class_ratio(one_hot(label, 3), torch.ones(40), torch.tensor([0.2, 0.3, 0.5]))
    by_hand = shrunk_shares(
        torch.tensor([30.0, 9.0, 1.0]), torch.tensor([0.2, 0.3, 0.5]), torch.tensor(40.0)
    )
    torch.testing.assert_close(found, by_hand / torch.tensor([0.2, 0.3, 0.5]))


def test_few_inside_points_borrow_from_all_validation_points():
    """All points say five to five where training has nine to one; one inside point adds nothing."""
    label, inside = torch.arange(40) % 2, torch.zeros(40)
    inside[0] = 1
    ratio = class_ratio(one_hot(label, 2), inside, torch.tensor([0.9, 0.1]))
    assert ratio[1] > 4.5
    everyone = class_ratio(one_hot(label, 2), torch.ones(40), torch.tensor([0.9, 0.1]))
    torch.testing.assert_close(ratio, everyone)


@given(st.lists(st.integers(0, 2), min_size=1, max_size=20))
def test_the_mean_ratio_over_training_is_one(labels):
    share = torch.tensor([0.6, 0.3, 0.1])
    label = torch.tensor(labels, dtype=torch.long)
    ratio = class_ratio(one_hot(label, 3), torch.ones(len(labels)), share)
    assert abs(float(ratio @ share) - 1) < 1e-5
    assert (ratio >= 0).all()
