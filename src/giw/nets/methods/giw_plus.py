r"""GIW+: generalized importance weighting with a tempered validation term, aligned class by class.

.. math:: \alpha \frac1n \sum_i w_i \ell_i
          + \frac1m \sum_j (1 - h_j)\, \frac1K \sum_k \ell(T_{jk} x_j, y_j)
          + \kappa \gamma\, \big(\mathrm{pull} + \mathrm{push}\big) , \qquad
          h_j = \kappa s_j , \quad \alpha = \frac1m \sum_j h_j

This is the generalized risk of :mod:`giw.nets.methods.giw` with four things changed:

- *Weights* are a ratio of class shares times a ratio of losses, :math:`w = r(y)\, g(\ell)`. The
  former is shrunk towards one as far as it is noise; the latter matches the losses of each batch.
- *Training share* :math:`\kappa`: weighted training data carry only a share of the risk inside, and
  the validation points inside carry the rest themselves. The risk is the same for every
  :math:`\kappa`, and an error of the split costs less.
- *Copies*: each validation point comes K times; images are turned, stretched, sheared and shifted,
  other points are jittered along the data. The first copy is the point as it is.
- *Alignment*: in the hidden layer, copies of points outside are pulled towards training points of
  their class and pushed away from others, as in :class:`giw.nets.methods.CCSA`. A pair counts by
  the weight of its training point, so that flipped labels pull nothing, and by :math:`1 - h_j`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from giw.nets.images import (
    MOVES,
    are_images,
    even_uniforms,
    jittered,
    moved_images,
)
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
from giw.objective import effective_share, generalized_risk
from giw.objective.class_ratio import class_ratio, with_class_shares
from giw.objective.risks import contrast
from giw.support import SupportSplit

MARGIN = 1.0  # unit-norm points after ReLU are at most √2 apart


@dataclass(frozen=True)
class PlusState(State):
    """Where the numbers for copies stand, and what classes weigh."""

    phase: Tensor  # (MOVES + 1,)
    class_ratio: Tensor | None  # (c,)


@dataclass(frozen=True)
class GIWPlus(GIW):
    r"""Generalized importance weighting for honest and few validation points.

    Parameters
    ----------
    representation, split_on, splitter, weigh, level
        As in :class:`giw.nets.methods.GIW`.
    soft : bool, default=True
        Membership is the posterior of being inside rather than yes or no. A splitter of the
        user's own decides for itself.
    train_share : float, default=0.8
        Share :math:`\kappa` of the risk inside the training support that weighted training data
        carry. With less of it validation points inside count more themselves, and errors of split
        and weights count less.
    align : float, default=1.2
        How much the alignment counts, times ``train_share``; 0 leaves it out.
    copies : int, default=4
        Copies of each validation point a step, as far as they are no more than a training batch.
        A step costs at most twice that without copies. Square images from 16 pixels on are moved.
    noise : float, default=0.1
        Largest share of the difference of two training points that is added to a copy where
        points are no images; 0 for inputs between which there is nothing, such as word numbers.
    """

    name: ClassVar[str] = "giw_plus"
    soft: bool = True
    train_share: float = 0.8
    align: float = 1.2
    copies: int = 4
    noise: float = 0.1

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        super().__post_init__()
        if not 0 <= self.train_share <= 1:
            raise ValueError(f"train_share must lie between 0 and 1, got {self.train_share}")
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
        """The tempered generalized risk of one step."""
        n, m = len(batch.y), len(batch.y_val)
        x = as_input(batch.x)
        copies, phase = self._copies(state, x, as_input(batch.x_val))
        y_copies = batch.y_val.repeat(len(copies) // m)  # (K m,)
        both, hidden = torch.cat([x, copies]), None
        if self.align > 0:
            logits, hidden = net.with_hidden(params, both)
        else:
            logits = net(params, both)
        train_loss = sample_losses(logits[:n], batch.y)  # (n,)
        copy_loss = sample_losses(logits[n:], y_copies)  # (K m,)
        weight = self._weights(state, batch, train_loss, copy_loss[:m])
        inside, alpha = self._shares(batch)
        val_loss = copy_loss.view(-1, m).mean(0)  # (m,)
        risk = generalized_risk(train_loss, weight, val_loss, inside, alpha=alpha)
        if hidden is not None:
            pull, push = contrast(
                hidden[:n].float(),
                hidden[n:].float(),
                batch.y[:, None] == y_copies,
                margin=MARGIN,
                weight=weight[:, None] * (1 - inside).repeat(len(y_copies) // m),
            )
            risk = risk + self.train_share * self.align * (pull + push)
        return risk, replace(state, phase=phase), {"effective_share": effective_share(weight)}

    def _shares(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """What training data carry of each validation point's risk, (m,), and of all, ()."""
        return self.train_share * batch.inside, self.train_share * batch.alpha

    @torch.no_grad()
    def _copies(self, state: PlusState, x: Tensor, x_val: Tensor) -> tuple[Tensor, Tensor]:
        """Copies of the validation points, (K m, ...), and the phase after them.

        One round after the other, of which the first is as it is where there are more.
        """
        n, m = len(x), len(x_val)
        jittering = self.noise > 0 and not are_images(x_val)
        # where a step has no room for a second round, points are many, and none is moved
        moving = are_images(x_val) and n >= 2 * m
        rounds = max(1, min(self.copies, n // m)) if jittering or moving else 1
        plain = m if rounds > 1 else 0  # a single round is all there is to regularise with
        uniform, phase = even_uniforms(state.phase, rounds * m)  # (K m, 7)
        uniform = uniform[plain:]
        copied = x_val.repeat(rounds, *[1] * (x_val.ndim - 1))[plain:]
        if moving:
            copied = moved_images(copied, uniform[:, :MOVES])
        if jittering:
            # batches come in random order, so that neighbours are random pairs
            row = torch.arange(plain, rounds * m, device=x.device)
            one, other = x[(row + 1) % n], x[(row + 2) % n]
            copied = jittered(copied, one, other, self.noise * uniform[:, MOVES])
        return torch.cat([x_val[:plain], copied]), phase

    @torch.no_grad()
    def _weights(
        self,
        state: PlusState,
        batch: Batch,
        train_loss: Tensor,  # (n,)
        val_loss: Tensor,  # (m,)
    ) -> Tensor:  # (n,)  mean one
        """Losses matched as in GIW, with the class shares that validation labels ask for."""
        # h is proportional to s, and matching does not see a common factor
        weight = self.weigh(train_loss.detach().float(), val_loss.detach().float(), batch.inside)
        if state.class_ratio is None:
            return weight
        with torch.autocast(weight.device.type, enabled=False):
            classes = members(batch.y, len(state.class_ratio))
            return with_class_shares(weight, classes, state.class_ratio)


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
