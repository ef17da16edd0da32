"""How many epochs? Asked of validation points that took no part in the answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn

from giw.estimators.folds import stratified_folds
from giw.nets.training import (
    Batch,
    Evidence,
    FunctionalNet,
    Logs,
    Method,
    Net,
    OwnParams,
    Params,
    Pretrained,
    Tensors,
    TrainingConfig,
    net_params,
    predict_in_blocks,
    sample_losses,
    train,
)
from giw.support import SupportSplit


@dataclass
class Watched:
    """A method that behaves as before, and whose net can be looked at between epochs."""

    method: Method
    net: Any = None
    params: Params | None = None

    def __post_init__(self) -> None:
        """Pass for the method itself."""
        self.name, self.pretrains = self.method.name, self.method.pretrains

    def own_params(self, net: Net, params: Params, x: Tensor, random_state: int) -> OwnParams:
        """The method's own."""
        return self.method.own_params(net, params, x, random_state)

    def split(self, evidence: Evidence) -> SupportSplit | None:
        """The method's own."""
        return self.method.split(evidence)

    def state(self, evidence: Evidence, split: SupportSplit | None, params: Params) -> Params:
        """The method's own."""
        return self.method.state(evidence, split, params)

    def loss(self, net: Net, params: Params, batch: Batch) -> tuple[Tensor, Logs]:
        """The method's own; the optimiser changes ``params`` in place, so they stay in view."""
        self.net, self.params = net, params
        return self.method.loss(net, params, batch)

    def losses(self, x: Tensor, y: Tensor) -> Tensor:
        """Loss of each point under the net as it stands, (k,)."""
        if not isinstance(self.net, FunctionalNet) or self.params is None:
            raise RuntimeError("no step was made yet")
        return sample_losses(predict_in_blocks(self.net, net_params(self.params), x), y)


def cross_fitted_losses(
    method: Method,
    module: nn.Module,
    data: Tensors,
    config: TrainingConfig,
    *,
    folds: int,
    random_state: int,
    pretrained: Pretrained | None = None,
    ranks: dist.ProcessGroup | None = None,
) -> NDArray[np.float64]:  # (epochs,)
    r"""Mean loss of validation points after each epoch, under nets that have not seen them.

    Validation points join training or steer the weights, so the loss on them always falls.
    Here every fold of them is left out in turn: it neither joins, nor steers, nor enters the
    split of the net that is judged on it. Pretraining sees no validation point and may be shared.
    """
    m = len(data.y_val)
    if m < 2:
        raise ValueError(
            f"early stopping leaves out validation points in turn and needs at least two, got {m}; "
            "turn it off"
        )
    if not 2 <= folds <= m:
        raise ValueError(
            f"early stopping needs between 2 and {m} folds, one validation point each at least; "
            f"got n_folds={folds}"
        )
    fold = stratified_folds(data.y_val.cpu().numpy(), folds, np.random.default_rng(random_state))
    total = np.zeros(config.epochs)
    for k in range(folds):
        out = torch.as_tensor(fold == k, device=data.y_val.device)
        rest = replace(data, x_val=data.x_val[~out], y_val=data.y_val[~out])
        watched = Watched(method)

        def look(
            phase: str,
            epoch: int,
            _: dict[str, float],
            watched: Watched = watched,
            out: Tensor = out,
        ) -> None:
            if phase == "train":
                total[epoch] += float(watched.losses(data.x_val[out], data.y_val[out]).sum())

        train(
            watched, module, rest, config,
            random_state=random_state, pretrained=pretrained, on_epoch=look, ranks=ranks,
        )  # fmt: skip
    return total / m
