r"""GIW: generalized importance weighting (Fang, Lu, Niu and Sugiyama, NeurIPS 2023).

.. math:: \alpha \frac1n \sum_i w_i \ell_i + \frac1m \sum_j (1 - s_j) \ell_j , \qquad
          w \approx p(z \mid s = 1) / p_{\rm tr}(z)

The validation data are split once, on the pretrained and frozen net, into points inside the
training support (s = 1) and outside it (s = 0). In every step, weights match the training
batch to the inside points (dynamic importance weighting); outside points join training as
they are. :math:`\alpha` is the mean of s over all validation data.

Two ways to split: calibrated (the default, right on validation data that the training set
does not contain) and the paper's one-class SVM, ``splitter=SupportSplitter(scorer="osvm")``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from sklearn.base import clone
from torch import Tensor

from giw.methods.plain import PlainMethod
from giw.objective import DynamicWeights, Weigh, effective_share, generalized_risk
from giw.support import SupportSplit, SupportSplitter
from giw.training import (
    Batch,
    Evidence,
    Logs,
    Net,
    Params,
    as_input,
    check_representation,
    losses_of_both,
)

SPLIT_ON = ("hidden", "input")


@dataclass(frozen=True)
class GIW(PlainMethod):
    """Weighted training data inside the training support, validation data outside it.

    Parameters
    ----------
    representation : {"loss", "hidden"}, default="loss"
        What two points are compared by when weights are estimated.
    split_on : {"hidden", "input"}, default="hidden"
        What the split sees: the pretrained net's hidden layer, as in the paper, or the inputs
        themselves. A net that learnt to merge subclasses may hide what tells them apart.
    splitter : SupportSplitter, optional
        How the validation data are split; calibrated nearest neighbours if not given.
    weigh : DynamicWeights
        How weights are estimated.
    """

    name: ClassVar[str] = "giw"
    pretrains: ClassVar[bool] = True
    representation: str = "loss"
    split_on: str = "hidden"
    splitter: SupportSplitter | None = None
    weigh: Weigh = field(default_factory=DynamicWeights)

    def __post_init__(self) -> None:
        """Refuse unknown representations."""
        check_representation(self.representation)
        if self.split_on not in SPLIT_ON:
            raise ValueError(
                f"split_on must be one of {', '.join(SPLIT_ON)}, got {self.split_on!r}"
            )

    def split(self, evidence: Evidence) -> SupportSplit:
        """Split the validation points, calibrated on training rows the features were not fitted to.

        The net was fitted to the rows it has seen, so the others calibrate its hidden layer; the
        inputs were fitted to nothing, and all rows serve.
        """
        y, seen = evidence.y_train, evidence.seen
        splitter = (
            SupportSplitter(random_state=evidence.random_state)
            if self.splitter is None
            else clone(self.splitter)
        )
        if self.split_on == "input":
            z_val = _flat_input(evidence.x_val)
            return splitter.fit(_flat_input(evidence.x_train), y).split(z_val, evidence.y_val)
        z = evidence.hidden(evidence.x_train)
        splitter.fit(z[seen], y[seen], z_calibration=z[~seen], y_calibration=y[~seen])
        return splitter.split(evidence.hidden(evidence.x_val), evidence.y_val)

    def loss(self, net: Net, params: Params, batch: Batch) -> tuple[Tensor, Logs]:
        """The generalized risk of one step."""
        losses = losses_of_both(net, params, batch, representation=self.representation)
        weight = self.weigh(losses.train_z, losses.val_z, batch.inside)  # (n,)
        risk = generalized_risk(losses.train, weight, losses.val, batch.inside, alpha=batch.alpha)
        return risk, {"effective_share": effective_share(weight)}


def _flat_input(x: Tensor) -> Tensor:
    return as_input(x).flatten(1)
