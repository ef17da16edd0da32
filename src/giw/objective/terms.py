r"""The terms of the objective: weights of a batch, estimated anew in every step, and risks.

- *Kernel mean matching* with a ridge that pulls weights towards one: the solution of one linear
  system, on any device and without waiting for it. The published programme, which has next to no
  ridge, is solved exactly: by :mod:`giw.weights`, on CUDA by its twin in torch.
- *Relative density ratios* by least squares, the model of :class:`giw.RULSIF`.
- *Class shares* from a handful of validation labels. Shares among few points are mostly noise. They
  are shrunk as far as they are noise, by the positive-part rule of James and Stein [1]_ on the
  chi-square statistic,

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

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from giw.checks import check_auto, check_positive

LOSSES_WIDER = 2.0  # losses are one-dimensional: a kernel as wide as their distances follows noise
UNSEEN = 0.5  # points that a class counts as which validation data lack


# weighs a training by a validation batch: (train_z, val_z, inside) → (n,), mean one, no gradient
Weigh = Callable[..., Tensor]


@dataclass(frozen=True)
class DynamicWeights:
    r"""Match a training batch to a validation batch by kernel mean matching.

    Parameters
    ----------
    bandwidth : {"cross", "median", "paper"} or float, default="cross"
        Width of the Gaussian kernel. "cross": the root mean squared distance of training from
        validation points, twice that for losses; scale free, and wide enough to reach from most
        training points to what validation holds and training lacks. "median": the median distance
        of the training points, scale free; where most of them are alike (a rare class) it is so
        small that the others get no weight. "paper": the published programme, solved exactly. Its
        inverse squared width γ *is* that median, under which small losses all look alike. A number
        is a width σ.
    ridge : float, default=0.003
        Squared distance of weights from one that is added to what is minimised, per training point;
        more of it shrinks all weights towards one. The published programme has its own, 1e-5 in
        all.
    upper : float, default=50.0
        Largest weight before the mean is set to one.
    """

    bandwidth: str | float = "cross"
    ridge: float = 0.003
    upper: float = 50.0

    def __post_init__(self) -> None:
        """Refuse settings that no kernel has."""
        check_auto(self.bandwidth, "bandwidth", ("cross", "median", "paper"))
        check_positive(self.ridge, "ridge")
        check_positive(self.upper, "upper")

    def __call__(
        self,
        train_z: Tensor,  # (n,) or (n, d)  representation of the training batch
        val_z: Tensor,  # (m,) or (m, d)  the same of the validation batch
        inside: Tensor | None = None,  # (m,)  how much each validation point counts, 0 to 1
    ) -> Tensor:  # (n,)  mean one, no gradient
        """Weights of the training batch."""
        settings: dict[str, Any] = vars(self)
        return dynamic_kmm(train_z, val_z, inside, **settings)


@torch.no_grad()
def dynamic_kmm(
    z_train: Tensor,  # (n,) losses, or (n, d) features
    z_val: Tensor,  # (m,) losses, or (m, d) features
    val_weight: Tensor | None = None,  # (m,)  membership, 0 to 1 or boolean
    *,
    bandwidth: str | float = "cross",
    ridge: float = 0.003,
    upper: float = 50.0,
) -> Tensor:  # (n,)
    r"""Kernel mean matching weights for one training step, without gradient and mean one.

    They minimise the distance of the two kernel means, with a ridge towards equal weights,

    .. math:: \tfrac12 w^\top K w - \kappa^\top w + \tfrac{\lambda n}2 \lVert w - 1 \rVert^2, \quad
              \kappa_i = \frac{n}{\sum_j v_j} \sum_j v_j\, k(z_i, z_j^{\rm val}),

    are then cut off at zero and ``upper``, and scaled to mean one. With ``bandwidth="paper"`` it is
    the published problem, see :func:`giw.kmm`. Settings are those of
    :class:`giw.objective.DynamicWeights`; nothing is checked and nothing waits for a device, so
    that it can be captured in a CUDA graph; ``torch.func.vmap`` solves several problems at once.
    Where nothing tells points apart, or all memberships are zero,
    weights are one. They come in the dtype of ``z_train``, or float32 where that is narrower.
    """
    x_train, x_val, member = _rows(z_train, z_val, val_weight)
    with torch.autocast(x_train.device.type, enabled=False):
        if bandwidth == "paper":
            from giw.objective.published import published_weights

            return published_weights(x_train, x_val, member, upper)
        width, apart = kernel_width(x_train, x_val, member, bandwidth)
        n, total = len(x_train), member.sum()
        x_train, x_val = x_train / width, x_val / width
        kernel, cross = gaussian(x_train, x_train), gaussian(x_train, x_val)  # (n, n), (n, m)
        share = member / or_one(total)
        gap = n * (cross @ share[:, None]) - kernel.sum(-1, keepdim=True)  # (n, 1)
        w = (1 + solved(kernel, ridge * n, gap)[:, 0]).clamp(0, upper)
        usable = (total > 0) & apart & (w.mean() > 0)
        return torch.where(usable, w / or_one(w.mean()), 1.0)


@dataclass(frozen=True)
class DynamicRelativeWeights:
    r"""Relative density ratio of a validation to a training batch by least squares.

    .. math:: w_\eta = \frac{p_{\rm val}}{\eta\, p_{\rm val} + (1 - \eta)\, p_{\rm tr}}
              \le \frac1\eta

    with the model of :class:`giw.RULSIF`, :math:`\theta_0 + \theta^\top \varphi(z)` with a Gaussian
    kernel :math:`\varphi_j` at every validation point. The squared error under the mixture in the
    denominator has its minimum in closed form [1]_; with :math:`\mu` and C the mean and covariance
    of the kernels under that mixture, the ratio is

    .. math:: 1 + (\varphi(z) - \mu)^\top (C + \lambda I)^{-1} (E_{\rm val}[\varphi] - \mu)

    where this lies between 0 and :math:`1 / \eta`. A fixed chain of operations: it can be captured
    in a CUDA graph and vectorised by ``torch.func.vmap``.

    Parameters
    ----------
    eta : float, default=0.5
        Share of validation in the denominator, 0 to below 1; more of it flattens the weights,
        0 is the ordinary ratio (uLSIF).
    bandwidth : {"median", "cross"} or float, default="median"
        Width of the Gaussian kernel; the median distance of the training points is scale free.
    ridge : float, default=0.01
        The penalty λ; a larger one pulls all weights towards one. Kernels are at most one, so it
        needs no scale.

    References
    ----------
    .. [1] Yamada, Suzuki, Kanamori, Hachiya and Sugiyama, NeurIPS 2011.
    """

    eta: float = 0.5
    bandwidth: str | float = "median"
    ridge: float = 0.01

    def __post_init__(self) -> None:
        """Refuse settings without a meaning."""
        if not 0 <= self.eta < 1:
            raise ValueError(f"eta must be at least 0 and below 1, got {self.eta}")
        check_auto(self.bandwidth, "bandwidth", ("cross", "median"))
        check_positive(self.ridge, "ridge")

    def __call__(
        self,
        train_z: Tensor,  # (n,) or (n, d)  representation of the training batch
        val_z: Tensor,  # (m,) or (m, d)  the same of the validation batch
        inside: Tensor | None = None,  # (m,)  how much each validation point counts, 0 to 1
    ) -> Tensor:  # (n,)  mean one, no gradient
        """Weights of the training batch; ones where nothing tells points apart."""
        ratio = self.ratio(train_z, val_z, inside)
        mean = ratio.mean()
        some = mean > 0 if inside is None else (mean > 0) & (inside.sum() > 0)
        return torch.where(some, ratio / or_one(mean), 1.0)

    @torch.no_grad()
    def ratio(self, train_z: Tensor, val_z: Tensor, inside: Tensor | None = None) -> Tensor:
        """The estimated relative ratio itself, (n,), between 0 and 1/η."""
        train, val, member = _rows(train_z, val_z, inside)
        with torch.autocast(train.device.type, enabled=False):
            width, apart = kernel_width(train, val, member, self.bandwidth)
            width = torch.where(apart, width, 1 + train.abs().amax())  # so that all are alike
            phi_train, phi_val = (gaussian(z / width, val / width) for z in (train, val))
            share = member / or_one(member.sum())  # (m,)
            ratio = relative_ratio(phi_train, phi_val, share, eta=self.eta, ridge=self.ridge)
            # the truth is bounded so; an estimate is not, unless one says it
            return ratio.clamp(0, 1 / self.eta if self.eta > 0 else float("inf"))


def relative_ratio(
    phi_train: Tensor,  # (n, b)
    phi_val: Tensor,  # (m, b)
    share: Tensor,  # (m,)  weights of the validation points, sum one
    *,
    eta: float,
    ridge: float,
) -> Tensor:  # (n,)
    """The least-squares ratio at the training points, as it comes: it may be negative."""
    of_val = share @ phi_val  # (b,)
    mean = eta * of_val + (1 - eta) * phi_train.mean(0)  # (b,)
    train, val = phi_train - mean, phi_val - mean
    matrix = eta * val.mT @ (share[:, None] * val) + (1 - eta) * train.mT @ train / len(train)
    return 1 + (train @ solved(matrix, ridge, (of_val - mean)[:, None]))[:, 0]


# Classes ------------------------------------------------------------------------------------------


def shrunk_shares(
    counts: Tensor,  # (c,)  points, or sums of their weights, in each class
    base: Tensor,  # (c,)  shares to shrink to, sum one; where they are zero they stay so
    size: Tensor,  # ()  points that the counts are worth
) -> Tensor:  # (c,)
    """Shares of classes, shrunk towards ``base`` as far as they are noise."""
    known = base > 0
    counts = torch.where(known, counts, 0.0)
    total = counts.sum()
    share = torch.where(total > 0, counts / or_one(total), base)
    statistic = size * ((share - base).square() / or_one(base)).sum()
    freedom = known.sum() - 1
    trust = (1 - freedom / statistic.clamp(min=1e-12)).clamp(min=0)
    return base + trust * (share - base)


def class_ratio(
    val_class: Tensor,  # (m, c)  one-hot labels of the validation points
    inside: Tensor,  # (m,)  their membership in the training support
    train_share: Tensor,  # (c,)  shares of the classes in training
) -> Tensor:  # (c,)
    """Ratio of class shares, inside points over training points, shrunk towards one.

    Classes that training lacks get ratio one.
    """
    counts = val_class.sum(0)
    unseen = torch.where(counts > 0, 0.0, UNSEEN)  # (c,)
    everyone = torch.ones_like(inside).sum()
    overall = shrunk_shares(counts + unseen, train_share, everyone)
    size = inside.sum().square() / or_one(inside.square().sum())
    share = shrunk_shares(inside @ val_class + inside.mean() * unseen, overall, size)
    return torch.where(train_share > 0, share / or_one(train_share), 1.0)


def with_class_shares(
    weight: Tensor,  # (n,)
    classes: Tensor,  # (n, c)  one-hot labels
    ratio: Tensor,  # (c,)  of :func:`class_ratio`
) -> Tensor:  # (n,)
    r"""Weights whose classes have the shares that validation labels ask for, mean one.

    .. math:: \tilde w_i \propto r(y_i)\, w_i / \bar w(y_i)

    A rare class is a hard one, so that matched losses raise it too: without the mean
    :math:`\bar w(y)` of the batch it would be raised twice. Where the ratio is one throughout,
    because labels say no more than chance would, weights stay as they are.
    """
    of_class = (weight @ classes) / or_one(classes.sum(0))  # (c,)
    shared = weight * (classes @ (ratio / or_one(of_class)))
    shared = shared / or_one(shared.mean())
    return torch.where((ratio - 1).abs().amax() > 1e-6, shared, weight)


def effective_share(weight: Tensor) -> Tensor:
    r"""Effective sample size over sample size, :math:`(\sum w)^2 / n \sum w^2`, left on its device.

    One for equal weights, 1/n where a single point carries everything, zero where none does.
    """
    return weight.sum(-1).square() / or_one(weight.shape[-1] * weight.square().sum(-1))


# Risks that weights and memberships make of per-sample losses, and of pairs of features -----------


def weighted_risk(
    train_loss: Tensor,  # (n,)  loss of each training point
    weight: Tensor,  # (n,)  its estimated p_test(x, y) / p_train(x, y)
) -> Tensor:  # ()
    r"""Importance-weighted risk, the paper's :math:`\widehat J`.

    .. math:: \frac1n \sum_i w_i \ell_i

    Weights carry no gradient. Equals the test risk on average where the training support
    covers the test support, and is smaller wherever it does not (the paper's theorems 1, 2).
    """
    if weight.shape != train_loss.shape:  # a column and a row would broadcast to a matrix
        raise ValueError(
            f"need one weight per training loss, got weight of shape {tuple(weight.shape)} "
            f"for train_loss of shape {tuple(train_loss.shape)}"
        )
    return (weight.detach() * train_loss).mean()


def generalized_risk(
    train_loss: Tensor,  # (n,)  loss of each training point
    weight: Tensor,  # (n,)  its estimated p(x, y | inside) / p_train(x, y)
    val_loss: Tensor,  # (m,)  loss of each point of a validation batch
    inside: Tensor,  # (m,)  its membership in the training support, 0 to 1
    *,
    alpha: float | Tensor,  # mean of that membership over the whole validation set
) -> Tensor:  # ()
    r"""Weighted risk inside the training support plus plain risk outside it.

    .. math:: \alpha \frac1n \sum_i w_i \ell_i + \frac1m \sum_j (1 - s_j) \ell_j

    Weights carry no gradient. They are the ratio :math:`p(x, y \mid s = 1) / p_{\rm tr}(x, y)`,
    which is what validation points inside the training support estimate, and *not*
    :math:`p_{\rm te} / p_{\rm tr}`: that one would count :math:`\alpha` twice. With everything
    inside, :math:`\alpha = 1` and this is ordinary importance weighting; with nothing inside it is
    the validation mean.
    """
    if inside.shape != val_loss.shape:
        raise ValueError(
            f"need one membership per validation loss, got inside of shape {tuple(inside.shape)} "
            f"for val_loss of shape {tuple(val_loss.shape)}"
        )
    outside = 1 - inside.to(val_loss.dtype)
    return alpha * weighted_risk(train_loss, weight) + (outside * val_loss).mean()


def contrast(
    train_z: Tensor,  # (n, d)
    val_z: Tensor,  # (m, d)
    like: Tensor,  # (n, m) bool, same class
    *,
    margin: float,
    weight: Tensor | None = None,  # (n, m), of each pair
) -> tuple[Tensor, Tensor]:  # () each
    """Mean pull over like pairs and mean push over unlike pairs; zero where there are none."""
    square = pairwise_squared_distances(train_z, val_z)  # (n, m)
    # the root has no slope at zero, and rounding none worth following near it
    apart = square > 1e-6
    distance = torch.where(apart, torch.where(apart, square, 1.0).sqrt(), 0.0)
    weight = torch.ones_like(square) if weight is None else weight
    pull = _mean_where(like, square / 2, weight)
    return pull, _mean_where(~like, (margin - distance).clamp(min=0).square() / 2, weight)


def _mean_where(chosen: Tensor, values: Tensor, weight: Tensor) -> Tensor:
    weight = torch.where(chosen, weight, 0.0)
    return (weight * values).sum() / or_one(weight.sum())


# Kernels and distances, unchecked: for inner loops -----------------------------------------------


def _rows(z_train: Tensor, z_val: Tensor, member: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Points as rows (n, d) and (m, d) and membership (m,), in float32 at least."""
    dtype = torch.promote_types(z_train.dtype, torch.float32)
    train, val = (z.detach().to(dtype) for z in (z_train, z_val))
    if train.ndim == 1:
        train, val = train[:, None], val[:, None]
    return train, val, torch.ones_like(val[:, 0]) if member is None else member.detach().to(dtype)


def cross_width(
    x_train: Tensor,  # (n, d)
    x_val: Tensor,  # (m, d)
    val_weight: Tensor,  # (m,)
) -> Tensor:  # ()
    r"""Root mean squared distance of training from validation points, twice that if d is one.

    .. math:: \frac1n \sum_i \frac{\sum_j v_j (x_i - x_j^{\rm val})^2}{\sum_j v_j}
              = \frac1n \sum_i (x_i - \bar x)^2
              + \frac{\sum_j v_j (x_j^{\rm val} - \bar x)^2}{\sum_j v_j}

    One where all points coincide.
    """
    center = x_train.mean(0)
    own = (x_train - center).square().sum(-1).mean()
    gap = (x_val - center).square().sum(-1)  # (m,)
    theirs = (val_weight * gap).sum() / or_one(val_weight.sum())
    width = (LOSSES_WIDER if x_train.shape[-1] == 1 else 1.0) * (own + theirs).sqrt()
    return or_one(width)


def kernel_width(
    x_train: Tensor, x_val: Tensor, member: Tensor, bandwidth: str | float
) -> tuple[Tensor, Tensor]:
    """Width of the kernel and whether training points differ at all, () each."""
    if bandwidth == "median":
        spread = median_pair_distance(x_train)
    else:  # the root mean squared distance of two of them
        spread = (2 * (x_train - x_train.mean(0)).square().sum() / len(x_train)).sqrt()
    # distances of equal points are rounding errors of their size: no width can be read off them
    apart = spread > 10 * torch.finfo(x_train.dtype).eps * x_train.square().mean().sqrt()
    if bandwidth == "cross":
        return cross_width(x_train, x_val, member), apart
    if bandwidth == "median":
        return torch.where(apart, spread, 1.0), apart
    return torch.full_like(spread, float(bandwidth)), apart


def gaussian(x: Tensor, y: Tensor) -> Tensor:
    """Gaussian kernel of width one, (n, m)."""
    return torch.exp(-0.5 * pairwise_squared_distances(x, y))


def or_one(x: Tensor) -> Tensor:
    """A divisor: what is not positive becomes one."""
    return torch.where(x > 0, x, 1.0)


def solved(matrix: Tensor, ridge: float, right: Tensor) -> Tensor:
    """Solution of (matrix + ridge · I) x = right, positive definite by the ridge."""
    eye = torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
    # "ex" and triangular solves do not wait for the device
    lower = torch.linalg.cholesky_ex(matrix + ridge * eye).L
    half = torch.linalg.solve_triangular(lower, right, upper=False)
    return torch.linalg.solve_triangular(lower.mT, half, upper=True)


def pairwise_squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """Squared distances of tensors (n, d) and (m, d), (n, m)."""
    if x.shape[-1] == 1:
        return (x - y.mT).square()
    # ‖x‖² + ‖y‖² − 2xᵀy loses digits far from the origin, so the origin moves to the points
    center = y.mean(0)
    x, y = x - center, y - center
    norms = x.square().sum(-1)[:, None] + y.square().sum(-1)  # (n, m)
    return (norms - 2 * (x @ y.mT)).clamp(min=0)


def median_pair_distance(x: Tensor) -> Tensor:
    """Median distance over pairs of rows of (n, d); the root mean squared one if that is zero."""
    if len(x) == 1:
        return x.new_zeros(())
    row, column = torch.triu_indices(len(x), len(x), 1, device=x.device)
    squares = pairwise_squared_distances(x, x)[row, column]  # (pairs,)
    if squares.is_cuda:  # where a sort is cheap, and a selection not deterministic
        ordered = squares.sort(-1).values
        lower, upper = ordered[(len(squares) - 1) // 2], ordered[len(squares) // 2]
    else:
        lower, upper = squares.median(-1).values, -(-squares).median(-1).values
    median = 0.5 * (lower.sqrt() + upper.sqrt())
    return torch.where(median > 0, median, squares.mean().sqrt())
