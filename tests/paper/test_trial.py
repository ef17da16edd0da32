"""One integer gives every trial its own independent seeds."""

from dataclasses import astuple

from giw.paper.shifts import trial_seeds


def test_seeds_are_a_function_of_experiment_and_trial_alone():
    assert trial_seeds(3, 5) == trial_seeds(3, 5)
    assert trial_seeds(3, 5) != trial_seeds(3, 6)
    assert trial_seeds(3, 5) != trial_seeds(5, 3)


def test_no_two_seeds_coincide():
    seeds = [seed for r in range(5) for t in range(20) for seed in astuple(trial_seeds(r, t))]

    assert len(set(seeds)) == len(seeds)
    assert all(isinstance(seed, int) and 0 <= seed < 2**32 for seed in seeds)
