r"""GIW [1]_, and importance weighting without its split: DIW [2]_, R-DIW [3]_ and unsplit GIW.

.. math:: \alpha \frac1n \sum_i w_i \ell_i + \frac1m \sum_j (1 - s_j) \ell_j , \qquad
          w \approx p(z \mid s = 1) / p_{\rm tr}(z)

*GIW* splits the validation data once, on the pretrained and frozen net, into points inside the
training support (s = 1) and outside it (s = 0). In every step, weights match the training batch to
the inside points by kernel mean matching; outside points join training as they are. :math:`\alpha`
is the mean of s over all validation data.

Without a split all validation points are matched. *DIW* descends the first term alone; *unsplit
GIW*, the paper's GIW under class-prior shift, is half of it and half the mean validation loss.
*R-DIW* is DIW with :math:`w \approx p_{\rm val}(z) / (\eta\, p_{\rm val}(z) + (1 - \eta)\, p_{\rm
tr}(z))` by RuLSIF, which never exceeds :math:`1 / \eta` and exists outside the training support
too; where its constants come from is in docs/methods.md.

References
----------
.. [1] Fang, Lu, Niu and Sugiyama, Generalizing importance weighting to a universal solver for
       distribution shift problems, NeurIPS 2023.
.. [2] Fang, Lu, Niu and Sugiyama, Rethinking importance weighting for deep learning under
       distribution shift, NeurIPS 2020.
.. [3] Yamada, Suzuki, Kanamori, Hachiya and Sugiyama, Relative density-ratio estimation for robust
       distribution comparison, NeurIPS 2011.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from sklearn.base import clone
from torch import Tensor

from giw.checks import check_share
from giw.nets.methods.plain import PlainMethod
from giw.nets.training import (
    Batch,
    Evidence,
    Net,
    Params,
    StepLoss,
    as_input,
    losses_of_both,
)
from giw.objective import (
    DynamicRelativeWeights,
    DynamicWeights,
    Weigh,
    effective_share,
    generalized_risk,
    weighted_risk,
)
from giw.support import SupportSplit, SupportSplitter
from giw.support.splitter import EMBEDDING

FEWEST_HELD_OUT = 100  # rows that the net has not seen; with fewer only the inputs are split
SPLIT_ON = ("auto", "hidden", "input")
REPRESENTATIONS = ("loss", "hidden", "eval_loss")


@dataclass(frozen=True)
class GIW(PlainMethod):
    """Weighted training data inside the training support, validation data outside it.

    Parameters
    ----------
    representation : {"loss", "hidden", "eval_loss"}, default="loss"
        What two points are compared by when weights are estimated. With "eval_loss" it is losses in
        evaluation mode, and both batches are forwarded apart: for nets with batch statistics.
    split_on : {"auto", "hidden", "input"}, default="auto"
        What the split sees. "auto" is the inputs and every layer of the pretrained net, as they are
        and by direction, with one combined p-value; "hidden" the hidden layer alone, as in the
        paper; "input" the inputs alone. Where fewer than 100 training rows were kept from the net,
        "auto" is the inputs.
    splitter : SupportSplitter, optional
        How the validation data are split; calibrated nearest neighbours if not given. The paper's
        is ``SupportSplitter(scorer="osvm", threshold="text")``.
    weigh : DynamicWeights
        How weights are estimated.
    level : float, default=0.05
        Share of inside points that the default splitter may call outside.
    soft : bool, default=False
        Whether membership is the posterior of being inside rather than yes or no, with the default
        splitter.
    """

    name: ClassVar[str] = "giw"
    representation: str = "loss"
    split_on: str = "auto"
    splitter: SupportSplitter | None = None
    weigh: Weigh = field(default_factory=DynamicWeights)
    level: float = 0.05
    soft: bool = False

    def __post_init__(self) -> None:
        """Refuse unknown representations."""
        check_representation(self.representation)
        if self.split_on not in SPLIT_ON:
            raise ValueError(
                f"split_on must be one of {', '.join(SPLIT_ON)}, got {self.split_on!r}"
            )

    def split(self, evidence: Evidence) -> SupportSplit | None:
        """Split the validation points, calibrated on training rows the net was not fitted to.

        The inputs alone were fitted to nothing, and every row is left out in turn.
        """
        splitter = SupportSplitter(level=self.level, random_state=evidence.random_state)
        if self.splitter is not None:
            splitter = clone(self.splitter)
        single = self.splitter is not None and splitter.scorer == "osvm"
        embed, splitter.embed = splitter.embed, None  # images are embedded here, once
        split_on = "hidden" if single and self.split_on == "auto" else self.split_on
        seen = evidence.seen
        if split_on == "auto" and int((~seen).sum()) < FEWEST_HELD_OUT:
            split_on = "input"
        z, z_val = (
            _representations(evidence, x, split_on, embed)
            for x in (evidence.x_train, evidence.x_val)
        )
        if split_on == "input":
            splitter.fit(z, evidence.y_train)
        else:
            splitter.fit(
                {name: part[seen] for name, part in z.items()},
                evidence.y_train[seen],
                held_out={name: part[~seen] for name, part in z.items()},
                y_held_out=evidence.y_train[~seen],
            )
        split = splitter.split(z_val, evidence.y_val)
        return split.soften() if self.soft and self.splitter is None else split

    def loss(self, net: Net, params: Params, state: Any, batch: Batch) -> StepLoss:
        """The generalized risk of one step."""
        losses = losses_of_both(net, params, batch, representation=self.representation)
        weight = self.weigh(losses.train_z, losses.val_z, batch.inside)  # (n,)
        risk = generalized_risk(losses.train, weight, losses.val, batch.inside, alpha=batch.alpha)
        return risk, state, {"effective_share": effective_share(weight)}


def check_representation(representation: str) -> str:
    """One of the two representations of the paper, or its loss as the released code has it."""
    if representation not in REPRESENTATIONS:
        raise ValueError(
            f"representation must be one of {', '.join(REPRESENTATIONS)}, got {representation!r}"
        )
    return representation


def _representations(
    evidence: Evidence, x: Tensor, split_on: str, embed: Callable[[Tensor], Any] | None
) -> dict[str, Tensor]:
    """What the split sees of these inputs, by name."""
    if split_on == "hidden" or evidence.layers is None:
        found = {"hidden": evidence.hidden(x)}
    else:
        found = {"input": as_input(x).flatten(1)}
        if split_on == "auto":
            found |= evidence.layers(x)
    if embed is not None:
        found[EMBEDDING] = torch.as_tensor(embed(x)).to(x.device)
    return found


@dataclass(frozen=True)
class DIW(PlainMethod):
    """Importance weighting; validation points steer the weights only.

    Parameters
    ----------
    representation, weigh
        As in :class:`GIW`.
    alpha : float, default=1.0
        Share of the weighted training loss; the rest is the validation loss.
    """

    name: ClassVar[str] = "diw"
    representation: str = "loss"
    weigh: Weigh = field(default_factory=DynamicWeights)
    alpha: float = 1.0

    def __post_init__(self) -> None:
        """Refuse unknown representations, and shares that are none."""
        check_representation(self.representation)
        check_share(self.alpha, "alpha")

    def loss(self, net: Net, params: Params, state: Any, batch: Batch) -> StepLoss:
        """The two risks, mixed."""
        losses = losses_of_both(net, params, batch, representation=self.representation)
        weight = self.weigh(losses.train_z, losses.val_z)  # (n,)
        risk = self.alpha * weighted_risk(losses.train, weight)
        risk = risk + (1 - self.alpha) * losses.val.mean()
        return risk, state, {"effective_share": effective_share(weight)}


@dataclass(frozen=True)
class RDIW(DIW):
    """Importance weighting with bounded, relative weights; parameters as in :class:`DIW`."""

    name: ClassVar[str] = "r_diw"
    weigh: Weigh = field(default_factory=DynamicRelativeWeights)


@dataclass(frozen=True)
class GIWUnsplit(DIW):
    """Weighted training data and all validation data in equal parts; parameters as :class:`DIW`."""

    name: ClassVar[str] = "giw_unsplit"
    alpha: float = 0.5
