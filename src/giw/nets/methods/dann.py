r"""DANN: domain-adversarial training (Ganin et al., JMLR 2016).

.. math:: \min_\theta\ \frac1n \sum_i \ell_i - \lambda D(\theta, \psi), \quad
          \min_\psi\ D(\theta, \psi) , \qquad
          D = \frac1n \sum_i \log(1 + e^{d_\psi(z_i)}) + \frac1m \sum_j \log(1 + e^{-d_\psi(z_j)})

A domain classifier :math:`d_\psi` learns to tell training from validation points by their
hidden layer z; the net learns to make it fail. Both move by one gradient: the classifier sees
z through a layer that is the identity forwards and turns the gradient round on the way back.

Hyper-parameters, from Ganin et al.: :math:`\lambda = 2 / (1 + e^{-10 p}) - 1` at share p of
training done, one hidden layer of 100 in the domain classifier (their MNIST net), the learning
rate of the main net (5e-4 in the GIW paper). Labels of validation points are not used:
domain adaptation without labels in the target domain is what the method is for.
``classify_val=True`` uses them, half and half.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn.functional import softplus

from giw.checks import check_positive
from giw.nets.methods.perceptron import perceptron, perceptron_params
from giw.nets.methods.plain import PlainMethod, classification
from giw.nets.training import Batch, Logs, Net, OwnParams, Params, hidden_of_both


@dataclass(frozen=True)
class DANN(PlainMethod):
    """Train on the training data with features that hide where a point came from.

    Parameters
    ----------
    strength : float, default=1.0
        Largest weight of the reversed gradient; at zero the domain classifier only looks on.
    width : int, default=100
        Hidden units of the domain classifier.
    learning_rate : float, default=5e-4
        How fast Adam moves the domain classifier.
    classify_val : bool, default=False
        Fit the classifier to the validation points too, half and half.
    """

    name: ClassVar[str] = "dann"
    strength: float = 1.0
    width: int = 100
    learning_rate: float = 5e-4
    classify_val: bool = False

    def __post_init__(self) -> None:
        """Refuse settings under which nothing is learnt."""
        if not self.strength >= 0:
            raise ValueError(f"strength must not be negative, got {self.strength}")
        check_positive(self.width, "width")
        check_positive(self.learning_rate, "learning_rate")

    @property
    def needs_val_labels(self) -> bool:
        """Telling domains apart takes none."""
        return self.classify_val

    def own_params(self, net: Net, params: Params, x: Tensor, random_state: int) -> OwnParams:
        """The domain classifier."""
        z = net.with_hidden({**params, **net.buffers()}, x)[1].detach()  # (2, d)
        domain = perceptron_params(z.shape[1], self.width, like=z, random_state=random_state)
        return OwnParams(domain, self.learning_rate)

    def loss(self, net: Net, params: Params, batch: Batch) -> tuple[Tensor, Logs]:
        """Classification, and the domain loss behind a layer that reverses gradients."""
        both = hidden_of_both(net, params, batch)
        reversal = self.strength * reversal_weight(batch.progress)
        train_d = perceptron(params, reverse_gradient(both.train_z, reversal))  # (n,)
        val_d = perceptron(params, reverse_gradient(both.val_z, reversal))  # (m,)
        domain = softplus(train_d).mean() + softplus(-val_d).mean()
        fit = classification(both, batch, with_val=self.classify_val)
        return fit + domain, {"domain_loss": domain}


def reversal_weight(progress: Tensor) -> Tensor:
    """From 0 at the start to almost 1 at the end of training."""
    return 2 / (1 + (-10 * progress).exp()) - 1


def reverse_gradient(z: Tensor, weight: Tensor) -> Tensor:
    """Forwards the same values; backwards the gradient times minus ``weight``."""
    return z.detach() + weight * (z.detach() - z)
