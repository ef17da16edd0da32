r"""GIW+: generalized importance weighting with steady weights and a tempered validation term.

.. math:: \kappa \alpha \frac1n \sum_i w_i \ell_i
          + \frac1m \sum_j (1 - \kappa s_j)\, \frac1K \sum_k
          \big[\lambda_{jk}\, \ell(\tilde x_{jk}, y_j)
          + \kappa (1 - \lambda_{jk})\, w_{i(jk)}\, \ell(\tilde x_{jk}, y_{i(jk)})\big] , \qquad
          \tilde x_{jk} = \lambda_{jk}\, T_{jk} x_j + (1 - \lambda_{jk})\, x_{i(jk)}

The generalized risk of :mod:`giw.methods.giw` with five things changed:

- *Weights* are a ratio of class shares times a density of loss ranks within the class,
  :math:`w = r(y)\, g(q_y(\ell))`. r and g are estimated once, on the pretrained net, from
  validation points inside the support and training rows that the net has not seen either: no
  side is flattered. Both are shrunk towards one by how little they are sure of. Ranks are read
  off a histogram of training losses over a window of steps.
- *Soft split*: :math:`s_j` is the posterior of being inside, in both terms.
- *Handover* :math:`\kappa`: weighted training data carry only a share of the risk inside; the
  validation points inside carry the rest themselves. The risk is the same for every
  :math:`\kappa`, and a split in error costs less.
- *Copies*: each validation point comes K times, moved about where it is an image, jittered
  along the data where it is not, and mixed with training points, whose labels count by
  their weights and the handover. The first copy is the point as it is.
- *Averages* of the parameters predict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from giw.data.vicinity import MOVES, are_images, even_uniforms, jittered, mixed, moved_images
from giw.methods.averaging import first_averages, moved_averages
from giw.methods.giw import GIW
from giw.objective import effective_share, generalized_risk
from giw.support import SupportSplit
from giw.training import OWN, Batch, Evidence, Logs, Net, Params, as_input, sample_losses
from giw.weights.class_ratio import class_ratio
from giw.weights.loss_ranks import (
    at_points,
    loss_histogram,
    loss_nodes,
    moved_histogram,
    node_ranks,
    one_hot,
)
from giw.weights.rank_density import density_at, rank_density

WEIGHTS = ("steady", "batch", "uniform")
HISTOGRAM, CLASSES, DENSITY = f"{OWN}histogram", f"{OWN}class_ratio", f"{OWN}rank_density"
PHASE, STEP = f"{OWN}phase", f"{OWN}step"
FEWEST_UNSEEN = 50  # training rows kept back that can stand for all


class Copies(NamedTuple):
    """Copies of the validation points of a batch, one round after the other."""

    x: Tensor  # (K m, ...)
    share: Tensor  # (K m,)  of the validation point in its copy
    partner: Tensor  # (K m,)  row of the training point that has the rest
    phase: Tensor  # state of the numbers they were drawn from


@dataclass(frozen=True)
class GIWPlus(GIW):
    """Generalized importance weighting for honest and few validation points.

    Parameters
    ----------
    representation, split_on, splitter, weigh, level, least_posterior
        As in :class:`giw.methods.GIW`; the default splitter is soft. The first and the last are
        used where ``weights="batch"``.
    weights : {"steady", "batch", "uniform"}, default="steady"
        By ranks of losses over a window of steps; by matching each batch, as GIW does; or none.
    soft : bool, default=True
        Membership is the posterior of being inside rather than yes or no. A splitter of the
        user's own decides for itself.
    handover : float, default=0.8
        Share of the risk inside the training support that weighted training data carry.
    copies : int, default=4
        Copies of each validation point a step, as far as they are no more than a training batch.
    mix : float, default=0.5
        Largest share of a training point in a copy; 0 mixes nothing.
    augment : bool, default=True
        Move copies about where points are images.
    noise : float, default=0.1
        Largest amount of the difference of two training points that is added to a copy where
        points are no images.
    average : float, default=0.999
        How much of the averaged parameters stays in a step; 0 predicts by the last ones.
    window : float, default=50
        Batches that the histogram of losses remembers.
    upper : float, default=20
        Largest weight.
    """

    name: ClassVar[str] = "giw_plus"
    weights: str = "steady"
    soft: bool = True
    handover: float = 0.8
    copies: int = 4
    mix: float = 0.5
    augment: bool = True
    noise: float = 0.1
    average: float = 0.999
    window: float = 50.0
    upper: float = 20.0

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        super().__post_init__()
        if self.weights not in WEIGHTS:
            raise ValueError(f"weights must be one of {', '.join(WEIGHTS)}, got {self.weights!r}")
        for name in ("handover", "mix", "average"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must lie between 0 and 1, got {getattr(self, name)}")
        for name in ("copies", "window", "upper"):
            if not getattr(self, name) >= 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not self.noise >= 0:
            raise ValueError(f"noise must not be negative, got {self.noise}")

    def state(self, evidence: Evidence, split: SupportSplit | None, params: Params) -> Params:
        """What the weights know of validation data, and where histogram and averages start."""
        device = evidence.y_val.device
        generator = torch.Generator().manual_seed(evidence.random_state)
        phase = torch.rand(MOVES + 2, generator=generator).to(device)
        found = {PHASE: phase, STEP: torch.zeros((), device=device)}
        if self.average > 0:
            found |= first_averages(params)
        if self.weights == "steady":
            found |= _validation_ranks(evidence, split)
        return found

    def loss(self, net: Net, params: Params, batch: Batch) -> tuple[Tensor, Logs]:
        """The tempered generalized risk of one step."""
        n, m = len(batch.y), len(batch.y_val)
        x = as_input(batch.x)
        copies = self._copies(params, x, as_input(batch.x_val))
        logits = net(params, torch.cat([x, copies.x]))
        train_loss = sample_losses(logits[:n], batch.y)  # (n,)
        own_loss = sample_losses(logits[n:], batch.y_val.repeat(len(copies.x) // m))  # (K m,)
        weight, state = self._weigh(params, batch, logits.shape[1], train_loss, own_loss[:m])

        partner_loss = sample_losses(logits[n:], batch.y[copies.partner])
        trusted = self.handover * (1 - copies.share) * weight[copies.partner]
        val_loss = (copies.share * own_loss + trusted * partner_loss).view(-1, m).mean(0)  # (m,)
        inside = self.handover * self._inside(batch)
        alpha = self.handover * self._alpha(batch)
        risk = generalized_risk(train_loss, weight, val_loss, inside, alpha=alpha)

        step = params[STEP].detach()
        state |= {STEP: step + 1, PHASE: copies.phase}
        if self.average > 0:
            state |= moved_averages(params, step, decay=self.average)
        return risk, {"effective_share": effective_share(weight), **state}

    def _inside(self, batch: Batch) -> Tensor:
        return batch.inside

    def _alpha(self, batch: Batch) -> Tensor:
        return batch.alpha

    @torch.no_grad()
    def _copies(self, params: Params, x: Tensor, x_val: Tensor) -> Copies:
        """Copies of the validation points; the first round is as it is where there are more."""
        n, m = len(x), len(x_val)
        rounds = max(1, min(self.copies, n // m))
        plain = m if rounds > 1 else 0  # a single round is all there is to regularise with
        uniform, phase = even_uniforms(params[PHASE].detach(), rounds * m)  # (K m, 8)
        # batches come in random order, so that any rows are random partners
        partner = torch.arange(rounds * m, device=x.device) % n
        share = 1 - self.mix * uniform[:, MOVES]
        share = torch.where(torch.arange(rounds * m, device=x.device) < plain, 1.0, share)
        copied = x_val.repeat(rounds, *[1] * (x_val.ndim - 1))[plain:]
        if are_images(x_val):
            if self.augment:
                copied = moved_images(copied, uniform[plain:, :MOVES])
        elif self.noise > 0:
            one, other = x[(partner + 1) % n], x[(partner + 2) % n]
            amount = self.noise * uniform[:, MOVES + 1]
            copied = jittered(copied, one[plain:], other[plain:], amount[plain:])
        if self.mix > 0:
            copied = mixed(copied, x[partner[plain:]], share[plain:])
        return Copies(torch.cat([x_val[:plain], copied]), share, partner, phase)

    @torch.no_grad()
    def _weigh(
        self,
        params: Params,
        batch: Batch,
        n_classes: int,
        train_loss: Tensor,  # (n,)
        val_loss: Tensor,  # (m,)
    ) -> tuple[Tensor, Params]:
        """Weights of the training batch, (n,), and what is remembered of it."""
        train_loss = train_loss.detach().float()
        if self.weights == "uniform":
            return torch.ones_like(train_loss), {}
        if self.weights == "batch":
            return self.weigh(train_loss, val_loss.detach().float(), self._inside(batch)), {}
        with torch.autocast(train_loss.device.type, enabled=False):
            nodes, classes = loss_nodes(train_loss), one_hot(batch.y, n_classes)
            seen = moved_histogram(
                params[HISTOGRAM].detach(), loss_histogram(nodes, classes), window=self.window
            )
            table = steady_weights(
                seen, params[CLASSES].detach(), params[DENSITY].detach(), upper=self.upper
            )
            return at_points(table, nodes, classes), {HISTOGRAM: seen}


def steady_weights(
    histogram: Tensor,  # (c, nodes)  training losses of each class over the window
    ratio: Tensor,  # (c,)  of class shares
    density: Tensor,  # of ranks, on its grid
    *,
    upper: float,
) -> Tensor:  # (c, nodes)
    r"""Weights at every loss of every class, :math:`r(y)\, g(q_y(\ell))`, mean one over the window.

    Cut at ``upper``, after which the mean may be below one.
    """
    raw = ratio[:, None] * density_at(density, node_ranks(histogram))
    mean = (histogram * raw).sum()
    return (raw / torch.where(mean > 0, mean, 1.0)).clamp(max=upper)


@torch.no_grad()
def _validation_ranks(evidence: Evidence, split: SupportSplit | None) -> Params:
    """Class ratio, density of ranks and first histogram, on the frozen net."""
    if evidence.logits is None:
        raise ValueError("steady weights need the net's logits: Evidence(logits=...)")
    unseen = ~evidence.seen
    rows = unseen if int(unseen.sum()) >= FEWEST_UNSEEN else torch.ones_like(unseen)
    logits, y = evidence.logits(evidence.x_train[rows]).float(), evidence.y_train[rows]
    n_classes = logits.shape[1]
    classes = one_hot(y, n_classes)
    histogram = loss_histogram(loss_nodes(sample_losses(logits, y)), classes)  # (c, nodes)

    val_loss = sample_losses(evidence.logits(evidence.x_val).float(), evidence.y_val)
    val_classes = one_hot(evidence.y_val, n_classes)
    rank = at_points(node_ranks(histogram), loss_nodes(val_loss), val_classes)  # (m,)
    member = 1.0 if split is None else split.membership
    inside = torch.as_tensor(member, dtype=torch.float32, device=rank.device).expand_as(rank)
    train_share = one_hot(evidence.y_train, n_classes).mean(0)
    return {
        HISTOGRAM: histogram,
        CLASSES: class_ratio(val_classes, inside, train_share),
        DENSITY: rank_density(rank, inside),
    }
