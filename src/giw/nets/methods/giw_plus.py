r"""GIW+: generalized importance weighting with a tempered validation term, aligned class by class.

.. math:: \alpha \frac1n \sum_i w_i \ell_i
          + \frac1m \sum_j (1 - h_j)\, \frac1K \sum_k \ell(T_{jk} x_j, y_j)
          + \kappa \gamma\, \big(\mathrm{pull} + \mathrm{push}\big) , \qquad
          h_j = \kappa s_j , \quad \alpha = \frac1m \sum_j h_j

This is the generalized risk of :mod:`giw.nets.methods.giw` with a few things changed:

- *Weights* are a ratio of class shares times a ratio of losses, :math:`w = r(y)\, g(\ell)`, of
  validation points counted by :math:`h_j` over training points. The
  former is shrunk towards one as far as it is noise. The latter matches the losses of each batch,
  as GIW does (``"matched"``), or is a ratio of the two modes of losses (``"steady"``): estimated on
  the pretrained net, from validation points inside the support and training rows that the net
  has not seen either, and then followed over a window of steps.
  Matched losses can be shrunk towards one, all of them alike (``trust``).
- *Soft split*: :math:`s_j` is the posterior of being inside, in both terms.
- *Handover* :math:`\kappa`: weighted training data carry only a share of the risk inside, and the
  validation points inside carry the rest themselves. The risk is the same for every
  :math:`\kappa`, and a split in error costs less.
- *Held-out points*: where :math:`s_j` is 0.9 or more, :math:`h_j` is set to one. Such points
  are not trained on at all, and their losses keep telling the truth about the weights. Where there
  are more than fifty of them, matched weights can do without, and training cannot.
- *Copies*: each validation point comes K times, moved about where training moves images about
  too and a batch has room for two rounds, jittered along the data where points are no images. The
  first copy is the point as it is.
- *Alignment*: in the hidden layer, copies of points outside are pulled towards training points of
  their class and pushed away from others, as in :mod:`giw.nets.methods.ccsa`. A pair counts by the
  weight of its training point, so that flipped labels pull nothing, and by :math:`1 - h_j`.
- *Averages* of the parameters predict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from giw.nets.methods.averaging import first_averages, moved_averages
from giw.nets.methods.ccsa import contrast
from giw.nets.methods.giw import GIW
from giw.nets.training import (
    OWN,
    Batch,
    Evidence,
    Logs,
    Net,
    Params,
    as_input,
    sample_losses,
)
from giw.nets.vicinity import MOVES, are_images, even_uniforms, jittered, moved_images
from giw.objective import effective_share, generalized_risk
from giw.support import SupportSplit
from giw.weights.class_ratio import class_ratio
from giw.weights.loss_histogram import (
    at_points,
    loss_histogram,
    loss_nodes,
    moved_histogram,
    one_hot,
)
from giw.weights.loss_modes import (
    high_share,
    mode_counts,
    mode_ratio,
    moved_counts,
    otsu_threshold,
)

WEIGHTS = ("matched", "steady", "batch", "uniform")
HISTOGRAM, CLASSES, ALPHA = f"{OWN}histogram", f"{OWN}class_ratio", f"{OWN}alpha"
FIRST_COUNTS, COUNTS = f"{OWN}first_counts", f"{OWN}counts"
PHASE, STEP = f"{OWN}phase", f"{OWN}step"
HANDOVER, TRUST, HELD = f"{OWN}handover", f"{OWN}trust", f"{OWN}held"
MOVED = f"{OWN}moved"  # there where copies are moved about
MARGIN = 1.0  # unit-norm points after ReLU are at most √2 apart
SURE = 0.9  # membership from which on a point is inside, and not trained on
MOST_HELD = 50  # such points: more of them are worth more in training than as witnesses
FEWEST_UNSEEN = 50  # training rows kept back that can stand for all


class Copies(NamedTuple):
    """Copies of the validation points of a batch, one round after the other."""

    x: Tensor  # (K m, ...)
    phase: Tensor  # state of the numbers they were drawn from


@dataclass(frozen=True)
class GIWPlus(GIW):
    r"""Generalized importance weighting for honest and few validation points.

    Parameters
    ----------
    representation, split_on, splitter, weigh, level, least_posterior
        As in :class:`giw.nets.methods.GIW`; the default splitter is soft. The first and the last
        are used where ``weights="batch"``.
    weights : {"matched", "steady", "batch", "uniform"}, default="matched"
        By classes and by matching the losses of each batch; by classes and modes of losses over a
        window of steps; by matching each batch alone, as GIW does; or none.
    soft : bool, default=True
        Membership is the posterior of being inside rather than yes or no. A splitter of the
        user's own decides for itself.
    handover : float, default=0.8
        Share of the risk inside the training support that weighted training data carry.
    trust : float, default=1.0
        How far matched losses are believed: their ratio :math:`g` becomes
        :math:`1 + \lambda (g - 1)`. With 0 only class shares weigh.
    hold_out : bool, default=True
        Hand points over whole that are inside almost surely, where they are fifty or fewer; steady
        weights follow the modes of losses by them, however many. Without it, modes count as they
        did on the pretrained net.
    copies : int, default=4
        Copies of each validation point a step, as far as they are no more than a training batch.
    augment : bool, default=True
        Move copies about where points are images and training moves images about as well. Where
        training does not, moved copies are another domain, and the net keeps the two apart. Where
        a step has no room for a second round, points are many, and none is moved.
    noise : float, default=0.1
        Largest amount of the difference of two training points that is added to a copy where
        points are no images.
    average : float, default=0.999
        How much of the averaged parameters stays in a step; 0 predicts by the last ones.
    window : float, default=50
        Batches that the histogram of losses remembers.
    upper : float, default=20
        Largest weight.
    doubt : float, default=0.02
        Validation points that a mode of losses must lack before its weight falls to one half. More
        of it leaves flipped labels more weight; less of it drops hard points sooner, which no
        validation point inside happens to be like.
    align : float, default=1.2
        How much the alignment counts, times ``handover``; 0 leaves it out.
    """

    name: ClassVar[str] = "giw_plus"
    weights: str = "matched"
    soft: bool = True
    handover: float = 0.8
    trust: float = 1.0
    hold_out: bool = True
    copies: int = 4
    augment: bool = True
    noise: float = 0.1
    average: float = 0.999
    window: float = 50.0
    upper: float = 20.0
    doubt: float = 0.02
    align: float = 1.2

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        super().__post_init__()
        if self.weights not in WEIGHTS:
            raise ValueError(f"weights must be one of {', '.join(WEIGHTS)}, got {self.weights!r}")
        for name in ("handover", "trust", "average"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must lie between 0 and 1, got {getattr(self, name)}")
        for name in ("copies", "window", "upper"):
            if not getattr(self, name) >= 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("noise", "doubt", "align"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")

    def state(self, evidence: Evidence, split: SupportSplit | None, params: Params) -> Params:
        """What the weights know of validation data, and where histogram and averages start."""
        device = evidence.y_val.device
        generator = torch.Generator().manual_seed(evidence.random_state)
        phase = torch.rand(MOVES + 1, generator=generator).to(device)
        handover, trust = torch.tensor(self._shares(evidence), device=device)
        found = {PHASE: phase, STEP: torch.zeros((), device=device)}
        found |= {HANDOVER: handover.clone(), TRUST: trust.clone()}
        if self.augment and evidence.augmented and are_images(evidence.x_val):
            found[MOVED] = torch.ones((), device=device)
        if self.average > 0:
            found |= first_averages(params)
        member = _membership(split, evidence.y_val)
        found[HELD] = self._holds(member).to(handover)
        handed = self._handed_over(member, found)
        if split is not None:
            found[ALPHA] = handed.mean()
        if self.weights == "steady":
            found |= validation_ratios(evidence, member)
        if self.weights == "matched":
            found[CLASSES] = _class_ratio(evidence, handed)
        return found

    def loss(self, net: Net, params: Params, batch: Batch) -> tuple[Tensor, Logs]:
        """The tempered generalized risk of one step."""
        n, m = len(batch.y), len(batch.y_val)
        x = as_input(batch.x)
        copies = self._copies(params, x, as_input(batch.x_val))
        y_copies = batch.y_val.repeat(len(copies.x) // m)  # (K m,)
        hidden: Tensor | None = None
        if self.align > 0:
            logits, hidden = net.with_hidden(params, torch.cat([x, copies.x]))
        else:
            logits = net(params, torch.cat([x, copies.x]))
        train_loss = sample_losses(logits[:n], batch.y)  # (n,)
        own_loss = sample_losses(logits[n:], y_copies)  # (K m,)
        inside, alpha = self._inside(params, batch), self._alpha(params, batch)
        # weights are matched to what training data carry: with s in place of h it is another risk
        handed = batch._replace(inside=inside)
        weight, state = self._weigh(params, handed, logits.shape[1], train_loss, own_loss[:m])
        val_loss = own_loss.view(-1, m).mean(0)  # (m,)
        risk = generalized_risk(train_loss, weight, val_loss, inside, alpha=alpha)
        if hidden is not None:
            pull, push = contrast(
                hidden[:n].float(),
                hidden[n:].float(),
                batch.y[:, None] == y_copies,
                margin=MARGIN,
                weight=weight[:, None] * (1 - inside).repeat(len(y_copies) // m),
            )
            risk = risk + params[HANDOVER].detach() * self.align * (pull + push)

        step = params[STEP].detach()
        state |= {STEP: step + 1, PHASE: copies.phase}
        if self.average > 0:
            state |= moved_averages(params, step, decay=self.average)
        return risk, {"effective_share": effective_share(weight), **state}

    def _shares(self, evidence: Evidence) -> tuple[float, float]:
        """Handover and trust, in which trials side by side may differ."""
        return self.handover, self.trust

    @property
    def _believes_losses(self) -> bool:
        """Whether losses need to be matched at all."""
        return self.trust > 0

    def _holds(self, membership: Tensor) -> Tensor:
        """Whether points that are surely inside are kept out of training."""
        few = (membership >= SURE).sum() <= MOST_HELD
        return few | (self.weights == "steady") if self.hold_out else torch.zeros_like(few)

    def _handed_over(self, membership: Tensor, params: Params) -> Tensor:
        """How far training data carry the risk of each validation point."""
        handover, held = params[HANDOVER].detach(), params[HELD].detach()
        return torch.where((membership >= SURE) & (held > 0), 1.0, handover * membership)

    def _inside(self, params: Params, batch: Batch) -> Tensor:
        return self._handed_over(batch.inside, params)

    def _alpha(self, params: Params, batch: Batch) -> Tensor:
        """Mean over all validation points; without a split, over the batch."""
        return params[ALPHA].detach() if ALPHA in params else self._inside(params, batch).mean()

    @torch.no_grad()
    def _copies(self, params: Params, x: Tensor, x_val: Tensor) -> Copies:
        """Copies of the validation points; the first round is as it is where there are more."""
        n, m = len(x), len(x_val)
        jittering = self.noise > 0 and not are_images(x_val)
        moving = MOVED in params and n >= 2 * m  # more points need it less than they suffer by it
        rounds = max(1, min(self.copies, n // m)) if jittering or moving else 1
        plain = m if rounds > 1 else 0  # a single round is all there is to regularise with
        uniform, phase = even_uniforms(params[PHASE].detach(), rounds * m)  # (K m, 7)
        uniform = uniform[plain:]
        copied = x_val.repeat(rounds, *[1] * (x_val.ndim - 1))[plain:]
        if moving:
            copied = moved_images(copied, uniform[:, :MOVES])
        if jittering:
            # batches come in random order, so that neighbours are random pairs
            row = torch.arange(plain, rounds * m, device=x.device)
            one, other = x[(row + 1) % n], x[(row + 2) % n]
            copied = jittered(copied, one, other, self.noise * uniform[:, MOVES])
        return Copies(torch.cat([x_val[:plain], copied]), phase)

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
            return self.weigh(train_loss, val_loss.detach().float(), batch.inside), {}
        if self.weights == "matched":
            weight = torch.ones_like(train_loss)
            if self._believes_losses:
                matched = self.weigh(train_loss, val_loss.detach().float(), batch.inside)
                weight = 1 + params[TRUST].detach() * (matched - 1)
            with torch.autocast(train_loss.device.type, enabled=False):
                classes, ratio = one_hot(batch.y, n_classes), params[CLASSES].detach()
                return with_class_shares(weight, classes, ratio, self.upper), {}
        return self._steady(params, batch, n_classes, train_loss, val_loss)

    def _steady(
        self, params: Params, batch: Batch, n_classes: int, train_loss: Tensor, val_loss: Tensor
    ) -> tuple[Tensor, Params]:
        """Weights by the modes of losses, (n,), and what is remembered of the batch."""
        with torch.autocast(train_loss.device.type, enabled=False):
            nodes, classes = loss_nodes(train_loss), one_hot(batch.y, n_classes)
            seen = moved_histogram(
                params[HISTOGRAM].detach(), loss_histogram(nodes, classes), window=self.window
            )
            first = params[FIRST_COUNTS].detach()
            counts = first
            if self.hold_out:  # by points that are not trained on
                now = mode_counts(
                    seen,
                    loss_nodes(val_loss.detach()),
                    one_hot(batch.y_val, n_classes),
                    (batch.inside >= SURE).float(),
                )
                counts = moved_counts(params[COUNTS].detach(), now, window=self.window)
            now, before = (mode_ratio(c, doubt=self.doubt) for c in (counts, first))
            modes = bounded_modes(now, before)
            table = steady_weights(seen, params[CLASSES].detach(), modes, upper=self.upper)
            return at_points(table, nodes, classes), {HISTOGRAM: seen, COUNTS: counts}


def with_class_shares(weight: Tensor, classes: Tensor, ratio: Tensor, upper: float) -> Tensor:
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
        Of :func:`giw.weights.class_ratio.class_ratio`.
    upper : float
        Largest weight; after the cut the mean may be below one.
    """
    count = classes.sum(0)
    of_class = (weight @ classes) / torch.where(count > 0, count, 1.0)  # (c,)
    factor = ratio / torch.where(of_class > 0, of_class, 1.0)
    shared = weight * (classes @ factor)
    mean = shared.mean()
    shared = (shared / torch.where(mean > 0, mean, 1.0)).clamp(max=upper)
    return torch.where((ratio - 1).abs().amax() > 1e-6, shared, weight)


def bounded_modes(modes: Tensor, first: Tensor) -> Tensor:
    """Ratios of the lower and the upper mode, (2,), the upper one kept from rising by itself.

    A net fits the points it is trained on and not the held-out ones, whose losses then look large.
    So the upper mode may gain on the lower one only as far as it did on the pretrained net, where
    the training rows had not been seen either.
    """
    most = modes[0] * (first[1] / first[0]).clamp(min=1)
    return torch.stack([modes[0], torch.minimum(modes[1], most)])


def steady_weights(
    histogram: Tensor,  # (c, nodes)  training losses of each class over the window
    ratio: Tensor,  # (c,)  of class shares, validation over training
    modes: Tensor,  # (2,)  of the lower and the upper mode of losses
    *,
    upper: float,
) -> Tensor:  # (c, nodes)
    r"""Weights at every loss of every class, :math:`r(y)\, g(\ell)`, mean one over the window.

    Cut at ``upper``, after which the mean may be below one.
    """
    high = high_share(otsu_threshold(histogram))  # (nodes,)
    raw = ratio[:, None] * (modes[0] + (modes[1] - modes[0]) * high)
    mean = (histogram * raw).sum()
    return (raw / torch.where(mean > 0, mean, 1.0)).clamp(max=upper)


@torch.no_grad()
def validation_ratios(evidence: Evidence, inside: Tensor) -> Params:
    """First histogram, ratio of classes and counts in the modes, on the frozen net.

    ``inside`` is the membership of the validation points, (m,).
    """
    if evidence.logits is None:
        raise ValueError("steady weights need the net's logits: Evidence(logits=...)")
    unseen = ~evidence.seen
    rows = unseen if int(unseen.sum()) >= FEWEST_UNSEEN else torch.ones_like(unseen)
    logits, y = evidence.logits(evidence.x_train[rows]).float(), evidence.y_train[rows]
    n_classes = logits.shape[1]
    histogram = loss_histogram(loss_nodes(sample_losses(logits, y)), one_hot(y, n_classes))

    val_loss = sample_losses(evidence.logits(evidence.x_val).float(), evidence.y_val)
    val_classes = one_hot(evidence.y_val, n_classes)
    counts = mode_counts(histogram, loss_nodes(val_loss), val_classes, inside)
    return {
        HISTOGRAM: histogram,
        CLASSES: _class_ratio(evidence, inside, n_classes),
        FIRST_COUNTS: counts,
        COUNTS: counts.clone(),
    }


def _class_ratio(evidence: Evidence, inside: Tensor, n_classes: int | None = None) -> Tensor:
    if n_classes is None:
        if evidence.logits is None:
            raise ValueError("matched weights need the net's logits: Evidence(logits=...)")
        n_classes = evidence.logits(evidence.x_val[:1]).shape[1]
    train_share = one_hot(evidence.y_train, n_classes).mean(0)
    return class_ratio(one_hot(evidence.y_val, n_classes), inside, train_share)


def _membership(split: SupportSplit | None, y_val: Tensor) -> Tensor:
    member = torch.ones(len(y_val)) if split is None else split.membership
    return torch.as_tensor(member, dtype=torch.float32, device=y_val.device)
