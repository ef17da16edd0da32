r"""GIW: generalized importance weighting (Fang, Lu, Niu and Sugiyama, NeurIPS 2023).

.. math:: \alpha \frac1n \sum_i w_i \ell_i + \frac1m \sum_j (1 - s_j) \ell_j , \qquad
          w \approx p(z \mid s = 1) / p_{\rm tr}(z)

The validation data are split once, on the pretrained and frozen net, into points inside the
training support (s = 1) and outside it (s = 0). In every step, weights match the training
batch to the inside points (dynamic importance weighting); outside points join training as
they are. :math:`\alpha` is the mean of s over all validation data.

Two ways to split: calibrated (the default, right on validation data that the training set
does not contain) and the paper's one-class SVM with either of its published thresholds,
``splitter=SupportSplitter(scorer="osvm", threshold="text")``, on the hidden layer.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from sklearn.base import clone
from torch import Tensor

from giw.checks import callers_level
from giw.nets.methods.plain import PlainMethod
from giw.nets.training import (
    Batch,
    Evidence,
    Logs,
    Net,
    Params,
    as_input,
    check_representation,
    losses_of_both,
)
from giw.objective import DynamicWeights, Weigh, effective_share, generalized_risk
from giw.support import SupportSplit, SupportSplitter, choose_representation

FEWEST_JUDGES = 100  # with fewer, no choice means anything: the inputs, which are fitted to nothing
MOST_JUDGES = 1_000  # training rows that judge representations; the tie rule absorbs their noise
Layer = Callable[[Tensor], Tensor]
SPLIT_ON = ("auto", "hidden", "input")


@dataclass(frozen=True)
class GIW(PlainMethod):
    """Weighted training data inside the training support, validation data outside it.

    Parameters
    ----------
    representation : {"loss", "hidden"}, default="loss"
        What two points are compared by when weights are estimated.
    split_on : {"auto", "hidden", "input"}, default="auto"
        What the split sees: the pretrained net's hidden layer, as in the paper, the inputs
        themselves, or whichever of the inputs and the net's layers best finds a class, or a part
        of one, that was hidden from the rest of the *training* data. A net that learnt to merge
        subclasses may hide in its last layers what tells them apart. With fewer than 100 training
        rows kept back to judge by, "auto" is the inputs.
    splitter : SupportSplitter, optional
        How the validation data are split; calibrated nearest neighbours if not given.
    weigh : DynamicWeights
        How weights are estimated.
    level : float, default=0.05
        Share of inside points that the default splitter may call outside where all are inside.
    least_posterior : float, default=0.5
        Where inside and outside overlap, the default splitter puts points that are more likely
        outside there: an inside point among them costs variance, an outside point among the
        inside ones bias.
    soft : bool, default=False
        Whether membership is the posterior of being inside rather than yes or no, with the default
        splitter; a splitter of the user's own decides both for itself.
    """

    name: ClassVar[str] = "giw"
    pretrains: ClassVar[bool] = True
    representation: str = "loss"
    split_on: str = "auto"
    splitter: SupportSplitter | None = None
    weigh: Weigh = field(default_factory=DynamicWeights)
    level: float = 0.05
    least_posterior: float = 0.5
    soft: bool = False

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
        splitter = (
            self._default_splitter(evidence) if self.splitter is None else clone(self.splitter)
        )
        represent, fitted = self._representation(evidence, splitter)
        z, z_val = represent(evidence.x_train), represent(evidence.x_val)
        y, seen = evidence.y_train, evidence.seen
        if self.splitter is None:
            rows = int((~seen).sum()) if fitted else len(y) - 1  # a row does not score itself
            splitter.set_params(level=level_within_reach(self.level, rows))
        if fitted:
            splitter.fit(z[seen], y[seen], z_calibration=z[~seen], y_calibration=y[~seen])
        else:
            splitter.fit(z, y)
        return splitter.split(z_val, evidence.y_val)

    def _default_splitter(self, evidence: Evidence) -> SupportSplitter:
        membership = "soft" if self.soft else "hard"
        return SupportSplitter(
            level=self.level,
            least_posterior=self.least_posterior,
            membership=membership,
            random_state=evidence.random_state,
        )

    def _representation(self, evidence: Evidence, splitter: SupportSplitter) -> tuple[Layer, bool]:
        """What the split sees, and whether that was fitted to training rows.

        A splitter of the user's own keeps its scorer; the default one takes the scorer, unit norm
        or not, that the chosen representation was best with.
        """
        if self.split_on == "input":
            return _flat_input, False
        if self.split_on == "hidden" or evidence.layer is None:
            return evidence.hidden, True
        layer, rows = evidence.layer, evidence.x_train[~evidence.seen][:MOST_JUDGES]
        if len(rows) < FEWEST_JUDGES:
            return _flat_input, False
        candidates = {"input": _flat_input(rows)}
        candidates |= {name: layer(name, rows) for name in evidence.layers}
        labels = evidence.y_train[~evidence.seen][:MOST_JUDGES]
        choice = choose_representation(candidates, labels, random_state=evidence.random_state)
        if self.splitter is None:
            splitter.set_params(scorer=choice.scorer)
        if choice.name == "input":
            return _flat_input, False
        return lambda x: layer(choice.name, x), True

    def loss(self, net: Net, params: Params, batch: Batch) -> tuple[Tensor, Logs]:
        """The generalized risk of one step."""
        losses = losses_of_both(net, params, batch, representation=self.representation)
        weight = self.weigh(losses.train_z, losses.val_z, batch.inside)  # (n,)
        risk = generalized_risk(losses.train, weight, losses.val, batch.inside, alpha=batch.alpha)
        return risk, {"effective_share": effective_share(weight)}


def level_within_reach(level: float, rows: int) -> float:
    """The level, or the smallest p-value that so few calibration rows can give, with a warning.

    With k rows that is 1 / (k + 1), a point stranger than all of them.
    """
    least = (1 + 1e-9) / (rows + 1)  # for the ceiling of its inverse is asked
    if level >= least or rows < 1:
        return level
    warnings.warn(
        f"{rows} training rows to compare with cannot give a p-value of {level:g}; validation "
        f"points are called outside at level {least:.3g} instead",
        UserWarning,
        stacklevel=callers_level(),
    )
    return least


def _flat_input(x: Tensor) -> Tensor:
    return as_input(x).flatten(1)
