"""Where a trial starts, and what a method may look at from there."""

from __future__ import annotations

import copy
from dataclasses import dataclass

from torch import Tensor, nn

from giw.nets.kernels.precision import Precision
from giw.nets.training.batches import hold_out, seeded_generator
from giw.nets.training.config import TrainingConfig
from giw.nets.training.net import FunctionalNet, layer_outputs, predict_in_blocks
from giw.nets.training.protocol import Evidence, Params
from giw.nets.training.tensors import Tensors


@dataclass(frozen=True)
class Pretrained:
    """Where every method but Val-only starts: parameters, Adam's memory, and the rows seen."""

    params: Params
    buffers: Params
    optimizer: Params
    seen: Tensor  # (n,) bool
    random_state: int


def untrained(
    module: nn.Module,
    data: Tensors,
    config: TrainingConfig,
    *,
    random_state: int,
    precision: Precision,
) -> Pretrained:
    """A net as it was initialised, and the rows that pretraining would see."""
    generator = seeded_generator(random_state, "hold out")
    seen = hold_out(len(data.y_train), config.calibration_share, config.max_calibration, generator)
    net = FunctionalNet(module, precision)
    return Pretrained(net.params(), net.buffers(), {}, seen, random_state)


def evidence_at(
    start: Pretrained, module: nn.Module, data: Tensors, *, augmented: bool, trial: int
) -> Evidence:
    """The data of a trial as the net sees them that it starts from."""
    net = FunctionalNet(copy.deepcopy(module).train())
    net.set_buffers(start.buffers)

    return Evidence(
        data.x_train, data.y_train, data.x_val, data.y_val, start.seen.to(data.x_train.device),
        hidden=lambda x: predict_in_blocks(net, start.params, x, hidden=True),
        random_state=start.random_state,
        logits=lambda x: predict_in_blocks(net, start.params, x),
        augmented=augmented,
        layers=lambda x: layer_outputs(net, start.params, x),
        trial=trial,
        weight=data.weight,
    )  # fmt: skip
