r"""How much each class counts, from a handful of validation labels.

Shares of classes among few points are mostly noise. They are shrunk as far as they are noise,
by the positive-part rule of James and Stein [1]_ on the chi-square statistic,

.. math:: \hat p = b + \lambda (p - b), \qquad
          \lambda = \max\Big(0,\ 1 - \frac{c - 1}{X^2}\Big), \quad
          X^2 = k \sum_y \frac{(p_y - b_y)^2}{b_y} ,

twice: the shares of all validation points towards those of training, and the shares of the
points inside the training support towards the former. A class of training that no validation
point has counts as half a point of a typical membership: twenty points may well miss a class,
and a class of no weight at all is forgotten.

References
----------
.. [1] James and Stein, Proc. Fourth Berkeley Symposium 1:361-379, 1961.
"""

from __future__ import annotations

import torch
from torch import Tensor

UNSEEN = 0.5  # points that a class counts as which validation data lack


def shrunk_shares(counts: Tensor, base: Tensor, size: Tensor) -> Tensor:
    """Shares of classes, shrunk towards ``base`` as far as they are noise, (c,).

    Parameters
    ----------
    counts : Tensor of shape (c,)
        Points, or sums of their weights, in each class.
    base : Tensor of shape (c,)
        Shares to shrink to, sum one. Classes of share zero stay at zero.
    size : Tensor of shape ()
        Points that the counts are worth.
    """
    known = base > 0
    counts = torch.where(known, counts, 0.0)
    total = counts.sum()
    share = torch.where(total > 0, counts / torch.where(total > 0, total, 1.0), base)
    safe = torch.where(known, base, 1.0)
    statistic = size * ((share - base).square() / safe).sum()
    freedom = known.sum() - 1
    trust = (1 - freedom / statistic.clamp(min=1e-12)).clamp(min=0)
    return base + trust * (share - base)


def class_ratio(val_class: Tensor, inside: Tensor, train_share: Tensor) -> Tensor:
    """Ratio of class shares, inside points over training points, (c,), shrunk towards one.

    Parameters
    ----------
    val_class : Tensor of shape (m, c)
        One-hot labels of the validation points.
    inside : Tensor of shape (m,)
        Their membership in the training support.
    train_share : Tensor of shape (c,)
        Shares of the classes in training. Classes that training lacks get ratio one.
    """
    everyone = torch.tensor(float(len(inside)), device=inside.device)
    counts = val_class.sum(0)
    unseen = torch.where(counts > 0, 0.0, UNSEEN) * (len(inside) > 0)  # (c,)
    overall = shrunk_shares(counts + unseen, train_share, everyone)
    squares = inside.square().sum()
    size = inside.sum().square() / torch.where(squares > 0, squares, 1.0)
    typical = inside.sum() / max(len(inside), 1)
    share = shrunk_shares(inside @ val_class + typical * unseen, overall, size)
    known = train_share > 0
    return torch.where(known, share / torch.where(known, train_share, 1.0), 1.0)


def with_class_shares(weight: Tensor, classes: Tensor, ratio: Tensor) -> Tensor:
    r"""Weights whose classes have the shares that validation labels ask for, mean one, (n,).

    .. math:: \tilde w_i \propto r(y_i)\, w_i / \bar w(y_i)

    A rare class is a hard one, so that matched losses raise it too: without the mean
    :math:`\bar w(y)` of the batch it would be raised twice. Where the ratio is one throughout,
    because labels say no more than chance would, weights stay as they are.

    Parameters
    ----------
    weight : Tensor of shape (n,)
    classes : Tensor of shape (n, c)
        One-hot labels.
    ratio : Tensor of shape (c,)
        Of :func:`class_ratio`.
    """
    count = classes.sum(0)
    of_class = (weight @ classes) / torch.where(count > 0, count, 1.0)  # (c,)
    factor = ratio / torch.where(of_class > 0, of_class, 1.0)
    shared = weight * (classes @ factor)
    mean = shared.mean()
    shared = shared / torch.where(mean > 0, mean, 1.0)
    return torch.where((ratio - 1).abs().amax() > 1e-6, shared, weight)
