r"""Hidden layers of the two sets made alike: CCSA [1]_ class by class, DANN [2]_ as a whole.

z is the unit-norm hidden layer. *CCSA* descends, over all pairs of a training point i and a
validation point j,

.. math:: (1 - \gamma)\, \Big( \tfrac12 \frac1n \sum_i \ell_i + \tfrac12 \frac1m \sum_j \ell_j
          \Big) + \gamma\, \Big(
          \underset{y_i = y_j}{\rm mean}\ \tfrac12 \lVert z_i - z_j \rVert^2 +
          \underset{y_i \ne y_j}{\rm mean}\ \tfrac12 \max(0, M - \lVert z_i - z_j \rVert)^2 \Big) .

Same class: pulled together. Other class: pushed apart, up to a margin. The authors draw three
unlike pairs for each like pair; here all pairs count and the two means are taken apart, so that
many classes do not drown the pull in pushes.

*DANN* plays

.. math:: \min_\theta\ \frac1n \sum_i \ell_i - \lambda D(\theta, \psi), \quad
          \min_\psi\ D(\theta, \psi) , \qquad
          D = \frac1n \sum_i \log(1 + e^{d_\psi(z_i)}) + \frac1m \sum_j \log(1 + e^{-d_\psi(z_j)})

A domain classifier :math:`d_\psi` learns to tell training from validation points; the net learns to
make it fail. Both move by one gradient: the classifier sees z through a layer that is the identity
forwards and turns the gradient round on the way back. :math:`\lambda = 2 / (1 + e^{-10 p}) - 1` at
share p of training done. Labels of validation points are not used.

References
----------
.. [1] Motiian, Piccirilli, Adjeroh and Doretto, Unified deep supervised domain adaptation and
       generalization, ICCV 2017.
.. [2] Ganin et al., Domain-adversarial training of neural networks, JMLR 17(59):1-35, 2016.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor
from torch.nn.functional import softplus

from giw.checks import check_positive, check_share
from giw.nets.methods.plain import Perceptron, PlainMethod
from giw.nets.training import Batch, Evidence, Losses, Net, Params, StepLoss, hidden_of_both
from giw.objective.terms import contrast
from giw.support import SupportSplit


@dataclass(frozen=True)
class CCSA(PlainMethod):
    """Train on both sets while they are aligned class by class.

    Parameters
    ----------
    gamma : float, default=0.25
        Share of the alignment in the loss, 0 to 1.
    margin : float, default=1.0
        Distance beyond which points of different classes are left alone; unit-norm points
        after ReLU are at most √2 apart.
    val_share : float, default=0.5
        Weight of the validation points in the loss of the classifier; 0 in the paper's formula.
    """

    name: ClassVar[str] = "ccsa"
    gamma: float = 0.25
    margin: float = 1.0
    val_share: float = 0.5

    def __post_init__(self) -> None:
        """Refuse a share that is none and a margin that never pushes."""
        check_share(self.gamma, "gamma")
        check_positive(self.margin, "margin")
        check_share(self.val_share, "val_share")

    def loss(self, net: Net, params: Params, state: Any, batch: Batch) -> StepLoss:
        """Classification plus alignment."""
        both, _ = hidden_of_both(net, params, batch)
        like = batch.y[:, None] == batch.y_val  # (n, m)
        pull, push = contrast(both.train_z, both.val_z, like, margin=self.margin)
        fit = classification(both, self.val_share)
        risk = (1 - self.gamma) * fit + self.gamma * (pull + push)
        return risk, state, {"pull": pull, "push": push}


@dataclass(frozen=True)
class DANN(PlainMethod):
    """Train on the training data with features that hide where a point came from.

    Parameters
    ----------
    strength : float, default=1.0
        Largest weight of the reversed gradient; at zero the domain classifier only looks on.
    learning_rate : float, default=5e-4
        How fast Adam moves the domain classifier.
    val_share : float, default=0.0
        Weight of the validation points in the loss of the classifier.
    """

    name: ClassVar[str] = "dann"
    strength: float = 1.0
    learning_rate: float = 5e-4
    val_share: float = 0.0

    def __post_init__(self) -> None:
        """Refuse settings under which nothing is learnt."""
        if not self.strength >= 0:
            raise ValueError(f"strength must not be negative, got {self.strength}")
        check_share(self.val_share, "val_share")
        check_positive(self.learning_rate, "learning_rate")

    @property
    def needs_val_labels(self) -> bool:
        """Telling domains apart takes none."""
        return self.val_share > 0

    def state(self, evidence: Evidence, split: SupportSplit | None) -> Perceptron:
        """The domain classifier."""
        z = evidence.hidden(evidence.x_train[:1])  # (1, d)
        return Perceptron.drawn(z.shape[1], like=z, random_state=evidence.random_state)

    def loss(self, net: Net, params: Params, state: Perceptron, batch: Batch) -> StepLoss:
        """Classification, and the domain loss behind a layer that reverses gradients."""
        both, _ = hidden_of_both(net, params, batch)
        reversal = self.strength * reversal_weight(batch.progress)
        train_d, val_d = (state(reverse_gradient(z, reversal)) for z in (both.train_z, both.val_z))
        domain = softplus(train_d).mean() + softplus(-val_d).mean()
        fit = classification(both, self.val_share)
        return fit + domain, state, {"domain_loss": domain}


def classification(losses: Losses, val_share: float) -> Tensor:
    """Weighted mean of the mean training and the mean validation loss."""
    train = losses.train.mean()
    return (1 - val_share) * train + val_share * losses.val.mean() if val_share else train


def reversal_weight(progress: Tensor) -> Tensor:
    """From 0 at the start to almost 1 at the end of training."""
    return 2 / (1 + (-10 * progress).exp()) - 1


def reverse_gradient(z: Tensor, weight: Tensor) -> Tensor:
    """Forwards the same values; backwards the gradient times minus ``weight``."""
    return z.detach() + weight * (z.detach() - z)
