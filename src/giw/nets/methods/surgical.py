r"""Surgical fine-tuning: one block of the pretrained net learns from validation data [1]_.

.. math:: \frac1m \sum_j \ell_j \quad \text{over the parameters of one block}

Not in the paper. A shift in the input, such as another colour, asks for other first layers; one
in the labels for another last layer. To tune that part alone forgets less of what many training
points taught than to tune all (:mod:`giw.nets.methods.pretrain_val`). Which block is the user's
knowledge of the shift, as in the source's experiments; its rules that choose by themselves are
not here.

References
----------
.. [1] Lee, Chen, Tajwar, Kumar, Yao, Liang and Finn, Surgical fine-tuning improves adaptation to
       distribution shifts, ICLR 2023.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from giw.nets.methods.blocks import frozen_except, parameter_blocks
from giw.nets.methods.plain import PlainMethod
from giw.nets.training import Batch, Logs, Net, Params, as_input, sample_losses

BLOCKS = ("first", "middle", "last")


@dataclass(frozen=True)
class Surgical(PlainMethod):
    """Tune one block on the validation data, after pretraining on the training data.

    Parameters
    ----------
    block : {"first", "middle", "last"}, default="first"
        Which layer, or numbered part of a stack of layers, learns.
    """

    name: ClassVar[str] = "surgical"
    pretrains: ClassVar[bool] = True
    block: str = "first"

    def __post_init__(self) -> None:
        """Refuse unknown blocks."""
        if self.block not in BLOCKS:
            raise ValueError(f"block must be one of {', '.join(BLOCKS)}, got {self.block!r}")

    def loss(self, net: Net, params: Params, batch: Batch) -> tuple[Tensor, Logs]:
        """Mean validation loss; only the chosen block has a gradient."""
        blocks = parameter_blocks(params)
        place = {"first": 0, "middle": len(blocks) // 2, "last": -1}[self.block]
        params = frozen_except(params, blocks[place])
        return sample_losses(net(params, as_input(batch.x_val)), batch.y_val).mean(), {}
