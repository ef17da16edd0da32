r"""R-DIW: dynamic importance weighting with relative density ratios.

.. math:: \frac1n \sum_i w_i \ell_i , \qquad
          w \approx \frac{p_{\rm val}(z)}{\eta\, p_{\rm val}(z) + (1 - \eta)\, p_{\rm tr}(z)}

As DIW (Fang et al., NeurIPS 2020), with the ratio of RuLSIF (Yamada, Suzuki, Kanamori, Hachiya
and Sugiyama, NeurIPS 2011) in every step. The relative ratio never exceeds :math:`1 / \eta`,
and where validation data lie outside the training support it still exists.

Hyper-parameters: the GIW paper names none. :math:`\eta` = 0.5 as in Yamada et al.'s transfer
learning; the kernel width is the median distance, as for DIW here; the ridge 0.01 is a choice of
ours, because a training step has no room for the cross-validation that RuLSIF comes with.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from giw.nets.methods.diw import DIW
from giw.objective import DynamicRelativeWeights, Weigh


@dataclass(frozen=True)
class RDIW(DIW):
    """Importance weighting with bounded, relative weights estimated in every step.

    Parameters
    ----------
    representation : {"loss", "hidden"}, default="loss"
        What two points are compared by when weights are estimated.
    weigh : DynamicRelativeWeights
        How weights are estimated; ``DynamicRelativeWeights(eta=0.1)`` for another η.
    """

    name: ClassVar[str] = "r_diw"
    weigh: Weigh = field(default_factory=DynamicRelativeWeights)
