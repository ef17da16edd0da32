r"""GIW+: half of the risk inside the training support, half of the test risk, aligned by class.

.. math:: \kappa \frac1n \sum_i w_i \ell_i
          + (1 - \kappa) \frac1m \sum_j \frac1K \sum_k \ell(T_{jk} x_j, y_j)
          + \gamma\, \big(\mathrm{pull} + \mathrm{push}\big)

Compared with the generalized risk of :mod:`giw.nets.methods.giw`:

- *Training share* :math:`\kappa`: weighted training data carry half of what is descended, however
  few validation points lie inside, and all validation points carry the other half. Both are risks
  under the labels of the test distribution; they differ in how much inside counts. The split
  decides whose losses weights match, and nothing else, so that an error of it costs little.
- *Weights* are a ratio of class shares times a ratio of losses, :math:`w = r(y)\, g(\ell)`. The
  former is shrunk towards one as far as it is noise; the latter matches the losses of each batch to
  those of validation points inside.
- *Copies*: each validation point comes K times; images are turned, stretched, sheared and shifted,
  other points are jittered along the data. The first copy is the point as it is.
- *Alignment*: in the hidden layer, copies are pulled towards training points of their class and
  pushed away from others, as in :class:`giw.nets.methods.CCSA`. A pair counts by the weight of its
  training point, so that flipped labels pull nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log
from typing import ClassVar

import torch
from torch import Tensor

from giw.checks import check_share
from giw.nets.images import warp
from giw.nets.methods.giw import GIW
from giw.nets.training import (
    Batch,
    Evidence,
    Net,
    Params,
    State,
    StepLoss,
    as_input,
    members,
    sample_losses,
)
from giw.objective import effective_share, weighted_risk
from giw.objective.terms import class_ratio, contrast, with_class_shares
from giw.support import SupportSplit

MARGIN = 1.0  # unit-norm points after ReLU are at most √2 apart
MOVES = 6  # numbers that move an image
ANGLE, STRETCH, SHEAR, SHIFT = 0.26, 1.2, 0.2, 0.1  # radians, factor, slope, half sides
SMALLEST_SIDE = 16  # below this a moved image is a blurred one


@dataclass(frozen=True)
class PlusState(State):
    """Where the numbers for copies stand, and what classes weigh."""

    phase: Tensor  # (MOVES + 1,)
    class_ratio: Tensor  # (c,)


@dataclass(frozen=True)
class GIWPlus(GIW):
    r"""Generalized importance weighting for honest and few validation points.

    Parameters
    ----------
    split_on, splitter, weigh, level
        As in :class:`giw.nets.methods.GIW`, as ``representation``, which is always the loss here.
    soft : bool, default=True
        Membership is the posterior of being inside rather than yes or no. A splitter of the
        user's own decides for itself.
    train_share : float, default=0.5
        Share :math:`\kappa` of what is descended that weighted training data carry. With less of it
        validation points count more themselves, and errors of split and weights less.
    align : float, default=1.0
        How much the alignment counts; 0 leaves it out.
    copies : int, default=4
        Copies of each validation point a step, as far as they are no more than a training batch.
        A step costs at most twice that without copies. Square images from 16 pixels on are moved.
    noise : float, default=0.1
        Largest share of the difference of two training points that is added to a copy where
        points are no images; 0 for inputs between which there is nothing, such as word numbers.
    """

    name: ClassVar[str] = "giw_plus"
    soft: bool = True
    train_share: float = 0.5
    align: float = 1.0
    copies: int = 4
    noise: float = 0.1

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        super().__post_init__()
        check_share(self.train_share, "train_share")
        if not self.copies >= 1:
            raise ValueError(f"copies must be at least 1, got {self.copies}")
        for name in ("noise", "align"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")

    def state(self, evidence: Evidence, split: SupportSplit | None) -> PlusState:
        """Where the numbers for copies start, and the ratio of class shares."""
        device = evidence.y_val.device
        generator = torch.Generator().manual_seed(evidence.random_state)
        phase = torch.rand(MOVES + 1, generator=generator).to(device)
        member = torch.ones(len(evidence.y_val)) if split is None else split.membership
        inside = torch.as_tensor(member, dtype=torch.float32, device=device)  # (m,)
        return PlusState(phase, _class_ratio(evidence, inside))

    def loss(self, net: Net, params: Params, state: PlusState, batch: Batch) -> StepLoss:
        """What one step descends."""
        n, m = len(batch.y), len(batch.y_val)
        x = as_input(batch.x)
        copies, phase = self._copies(state.phase, x, as_input(batch.x_val))
        y_copies = batch.y_val.repeat(len(copies) // m)  # (K m,)
        logits, hidden = net.with_hidden(params, torch.cat([x, copies]))
        train_loss = sample_losses(logits[:n], batch.y)  # (n,)
        copy_loss = sample_losses(logits[n:], y_copies)  # (K m,)
        weight = self._weights(state, batch, train_loss, copy_loss[:m])
        risk = self.train_share * weighted_risk(train_loss, weight)
        risk = risk + (1 - self.train_share) * copy_loss.mean()
        if self.align > 0:
            z, z_copies = hidden.float().split([n, len(copies)])
            like = batch.y[:, None] == y_copies  # (n, K m)
            pull, push = contrast(z, z_copies, like, margin=MARGIN, weight=weight[:, None])
            risk = risk + self.align * (pull + push)
        return risk, replace(state, phase=phase), {"effective_share": effective_share(weight)}

    @torch.no_grad()
    def _weights(
        self,
        state: PlusState,
        batch: Batch,
        train_loss: Tensor,  # (n,)
        val_loss: Tensor,  # (m,)
    ) -> Tensor:  # (n,)  mean one
        """Losses matched as in GIW, with the class shares that validation labels ask for."""
        weight = self.weigh(train_loss.detach().float(), val_loss.detach().float(), batch.inside)
        with torch.autocast(weight.device.type, enabled=False):
            classes = members(batch.y, len(state.class_ratio))
            return with_class_shares(weight, classes, state.class_ratio)

    @torch.no_grad()
    def _copies(self, phase: Tensor, x: Tensor, x_val: Tensor) -> tuple[Tensor, Tensor]:
        """Copies of the validation points, (K m, ...), and the phase after them.

        One round after the other, of which the first is as it is where there are more.
        """
        n, m = len(x), len(x_val)
        images = x_val.ndim == 4 and x_val.shape[2] == x_val.shape[3] >= SMALLEST_SIDE
        # where a step has no room for a second round, points are many, and no image is moved
        if not (n >= 2 * m if images else self.noise > 0):
            return x_val, phase
        rounds = max(1, min(self.copies, n // m))
        plain = m if rounds > 1 else 0  # a single round is all there is to regularise with
        uniform, phase = even_uniforms(phase, rounds * m)  # (K m, 7)
        uniform = uniform[plain:]
        copied = x_val.repeat(rounds, *[1] * (x_val.ndim - 1))[plain:]
        if images:
            copied = moved_images(copied, uniform)
        else:
            # batches come in random order, so that neighbours are random pairs
            row = torch.arange(plain, rounds * m, device=x.device)
            copied = jittered(copied, x[(row + 1) % n] - x[(row + 2) % n],
                              self.noise * uniform[:, MOVES])  # fmt: skip
        return torch.cat([x_val[:plain], copied]), phase


@dataclass(frozen=True)
class PooledPlus(GIWPlus):
    """GIW+ without weights: Pooled with copies and alignment.

    Parameters
    ----------
    copies, noise, align, train_share
        As in :class:`GIWPlus`; its other parameters have no effect here.
    """

    name: ClassVar[str] = "pooled_plus"

    def split(self, evidence: Evidence) -> SupportSplit | None:
        """No split."""
        return None

    def _weights(
        self, state: PlusState, batch: Batch, train_loss: Tensor, val_loss: Tensor
    ) -> Tensor:
        return torch.ones_like(train_loss).detach()


def _class_ratio(evidence: Evidence, inside: Tensor) -> Tensor:
    """Ratio of class shares, inside points over training points, shrunk as far as it is noise."""
    if evidence.logits is None:
        raise ValueError("class shares need the number of classes: Evidence(logits=...)")
    n_classes = evidence.logits(evidence.x_val[:1]).shape[1]
    of_train = members(evidence.y_train, n_classes)  # (n, c)
    train_share = of_train.mean(0)
    if evidence.weight is not None:
        train_share = evidence.weight.float() @ of_train / evidence.weight.sum()
    return class_ratio(members(evidence.y_val, n_classes), inside, train_share)


def even_uniforms(phase: Tensor, count: int) -> tuple[Tensor, Tensor]:
    r"""Numbers of copies, (count, d), evenly spread over the cube, and the phase after them, (d,).

    They come from the additive recurrence :math:`u_{j+1} = \{u_j + a\}` with powers of the root of
    :math:`x^{d + 1} = x + 1`, upside down: the same on every device, and all its state is a point.
    """
    d, root = phase.shape[-1], 1.5
    for _ in range(60):
        root = (1 + root) ** (1 / (d + 1))
    # computed where it is needed: a copy from the host could not be captured in a CUDA graph
    power = torch.arange(1, d + 1, dtype=torch.float64, device=phase.device)
    step = (torch.pow(root, -power) % 1).to(phase.dtype)
    ahead = torch.arange(1, count + 1, dtype=phase.dtype, device=phase.device)
    points = (phase + ahead[:, None] * step) % 1
    return points, points[-1]


def moved_images(x: Tensor, uniform: Tensor) -> Tensor:
    """Turn, stretch, shear and shift each image by its own numbers.

    Parameters
    ----------
    x : Tensor of shape (n, channels, side, side)
    uniform : Tensor of shape (n, MOVES or more)
        Between 0 and 1; one half moves nothing.
    """
    u = 2 * uniform - 1  # (n, 6)
    cos, sin = (ANGLE * u[:, 0]).cos(), (ANGLE * u[:, 0]).sin()
    wide, high = (log(STRETCH) * u[:, 1]).exp(), (log(STRETCH) * u[:, 2]).exp()
    shear = SHEAR * u[:, 3]
    # rotation times shear times stretch, written out
    linear = torch.stack(
        [cos * wide, (cos * shear - sin) * high, sin * wide, (sin * shear + cos) * high], -1
    ).unflatten(-1, (2, 2))
    return warp(x, torch.cat([linear, SHIFT * u[:, 4:6, None]], -1))


def jittered(x: Tensor, direction: Tensor, amount: Tensor) -> Tensor:
    """Noise along the data: each point plus its amount of a difference of two others."""
    return x + amount.reshape(-1, *[1] * (x.ndim - 1)) * direction
