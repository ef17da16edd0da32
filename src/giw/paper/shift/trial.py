"""Named seeds of a trial, so that methods can be compared in pairs."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np


@dataclass(frozen=True)
class TrialSeeds:
    """Independent integer seeds, one for each thing that is random in a trial."""

    draw: int  # training, validation and test rows
    noise: int  # flipped labels
    prior: int  # rows that class-prior shift keeps
    init: int  # initial parameters of a net
    batches: int  # order of mini-batches
    augmentation: int  # random transformations of images
    split: int  # folds of the support split


def trial_seeds(random_state: int, trial: int) -> TrialSeeds:
    """Seeds of one trial, the same for every method.

    Parameters
    ----------
    random_state : int
        Seed of the whole experiment.
    trial : int
        Number of the trial, from 0. Seeds of different trials are independent streams, and a
        trial's seeds do not depend on how many trials there are.
    """
    if random_state < 0 or trial < 0:
        raise ValueError(f"need random_state ≥ 0 and trial ≥ 0, got {random_state} and {trial}")
    children = np.random.SeedSequence(random_state, spawn_key=(trial,)).spawn(
        len(fields(TrialSeeds))
    )
    return TrialSeeds(*(int(child.generate_state(1)[0]) for child in children))
