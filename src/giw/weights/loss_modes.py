r"""Two modes of training losses, and how much each of them counts.

Labels that contradict what the net has learnt have large losses, all others small ones: flipped
labels make a mode of their own. Where the modes part is read off the training losses, of which
there are thousands, by Otsu's threshold [1]_. The handful of validation points is asked one number
only: how many of them lie in the upper mode, beside how many were expected from their classes,

.. math:: r_{\rm high} = \frac{O + a}{E + a}, \qquad O = \sum_j s_j h_j, \quad
          E = \sum_j s_j\, p_{\rm tr}({\rm high} \mid y_j) ,

and likewise for the lower mode. The prior count a is all the shrinkage there is: where far fewer
than a are expected, both ratios stay near one, whatever is observed.

References
----------
.. [1] Otsu, IEEE Trans. Systems, Man and Cybernetics 9:62-66, 1979.
"""

from __future__ import annotations

import torch
from torch import Tensor

from giw.weights.loss_histogram import BINS

PRIOR_COUNT = 0.5
EDGE = 0.1  # width of the ramp from one mode to the other, of the range of 0 to 1


def otsu_threshold(histogram: Tensor) -> Tensor:
    """Where two modes part with the least variance within them, between 0 and 1, ().

    Parameters
    ----------
    histogram : Tensor of shape (c, BINS + 1)
        Of losses; classes are taken together.
    """
    share = histogram.sum(0)  # (nodes,)
    place = torch.arange(BINS + 1, device=share.device) / BINS
    below, total = share.cumsum(0)[:-1], share.sum()
    mass = (share * place).cumsum(0)
    spread = (mass[-1] * below / total.clamp(min=1e-12) - mass[:-1]).square()
    between = spread / (below * (total - below)).clamp(min=1e-9)  # (nodes - 1,)
    # a gap without losses leaves a range of equals; its middle is the safest place
    best = (between >= between.max() * (1 - 1e-4)).to(place)
    return (best * (place[:-1] + 0.5 / BINS)).sum() / best.sum()


def high_share(threshold: Tensor) -> Tensor:
    """How far each node belongs to the upper mode, (BINS + 1,), a ramp around the threshold."""
    place = torch.arange(BINS + 1, device=threshold.device) / BINS
    return ((place - threshold) / EDGE + 0.5).clamp(0, 1)


def mode_counts(
    histogram: Tensor,  # (c, BINS + 1)  of training losses
    val_nodes: Tensor,  # (m, BINS + 1)  where validation losses fall
    val_classes: Tensor,  # (m, c)  their labels, one-hot
    inside: Tensor,  # (m,)  their membership in the training support
) -> Tensor:  # (2, 2)
    """Inside points in the lower and the upper mode: observed, and expected from their classes."""
    mode = high_share(otsu_threshold(histogram))  # (nodes,)
    of_class = (histogram @ mode) / histogram.sum(-1).clamp(min=1e-12)  # (c,)
    high = torch.stack([val_nodes @ mode, val_classes @ of_class])  # (2, m)
    return torch.stack([(inside * (1 - high)).sum(-1), (inside * high).sum(-1)], -1)


def moved_counts(counts: Tensor, batch: Tensor, *, window: float) -> Tensor:
    """Counts that forget, as if the whole validation set were in every batch.

    A batch without an inside point changes nothing.
    """
    total, found = counts[0].sum(), batch[0].sum()
    scaled = batch * total / torch.where(found > 0, found, 1.0)
    return torch.where(found > 0, counts + (scaled - counts) / window, counts)


def mode_ratio(counts: Tensor, *, doubt: float = PRIOR_COUNT) -> Tensor:
    """Ratio of validation to training for the lower and the upper mode, (2,), shrunk to one.

    Parameters
    ----------
    counts : Tensor of shape (2, 2)
        Of :func:`mode_counts`.
    doubt : float
        Prior count of a mode that has fewer validation points than expected; less of it empties
        such a mode sooner. A mode that has more is always shrunk by ``PRIOR_COUNT``: one hard
        point among few would otherwise lift a rare mode to any height.
    """
    observed, expected = counts
    prior = torch.where(observed < expected, doubt, PRIOR_COUNT)
    return (observed + prior) / (expected + prior)
