"""Problems to choose constants on: the test images stay out of sight.

A part of the training pool plays the test sample; training and validation points are drawn from
the rest. What is chosen here has never seen a test image.
"""

from __future__ import annotations

import numpy as np

from giw.paper.readers import Sample

SEED = 20_230_923  # of the one cut that all trials share
SHARE = 1 / 6  # of the pool that plays the test sample: 10,000 of MNIST's 60,000


def development_samples(pool: Sample) -> tuple[Sample, Sample]:
    """A training pool and a test sample, both from a training pool and disjoint."""
    order = np.random.default_rng(SEED).permutation(len(pool))
    n_test = round(SHARE * len(pool))
    return pool.take(np.sort(order[n_test:])), pool.take(np.sort(order[:n_test]))
