"""Test accuracy and loss, counted where the data are."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.func import vmap

from giw.nets.kernels.graph import Captured
from giw.nets.training.forward import sample_losses
from giw.nets.training.net import FunctionalNet, as_input
from giw.nets.training.protocol import Params
from giw.nets.training.tensors import Tensors

BLOCK = 2000  # images of each trial at a time


class Evaluation:
    """Share of test points that each trial's net gets right, and their mean loss, without a wait.

    Parameters
    ----------
    net, params
        As in :class:`giw.nets.training.descent.Descent`; parameters are read when asked.
    datas : sequence of Tensors
        All with test data of the same size.
    """

    def __init__(
        self,
        net: FunctionalNet,
        params: Params,
        datas: Sequence[Tensors],
        *,
        stacked: bool,
        captured: bool = True,
    ) -> None:
        self.net, self.params, self.stacked, self.precision = net, params, stacked, net.precision
        self.x, self.y = _points(datas, "x_test", stacked), _points(datas, "y_test", stacked)
        self.device = self.x.device
        self.captured = captured and self.device.type == "cuda"
        self._found = torch.zeros(2, len(datas), device=self.device)  # hits and sums of losses
        self._graph: Captured | None = None

    def __call__(self) -> Tensor:
        """Accuracy and mean loss of each trial, (2, trials), on the device."""
        if self.captured and self._graph is None:
            self._graph = Captured(self._count, self.device)
        if self._graph:
            self._graph.replay()
        else:
            self._count()
        return self._found / self.y.shape[-1]

    @torch.no_grad()
    def _count(self) -> None:
        was_training = self.net.module.training
        self.net.module.eval()
        try:
            self._found.zero_()
            points = 1 if self.stacked else 0
            blocks = zip(self.x.split(BLOCK, points), self.y.split(BLOCK, points), strict=True)
            with self.precision.forward(self.device):
                for x, y in blocks:
                    logits = self._logits(x)  # (n, c) or (trials, n, c)
                    self._found[0] += (logits.argmax(-1) == y).sum(-1)
                    loss = sample_losses(logits.flatten(0, -2), y.flatten()).view(y.shape)
                    self._found[1] += loss.sum(-1)
        finally:
            self.net.module.train(was_training)

    def _logits(self, x: Tensor) -> Tensor:
        params = {name: p.detach() for name, p in self.params.items()}
        if not self.stacked:
            return self.net(params, as_input(x))
        return vmap(lambda p, b: self.net(p, as_input(b)))(params, x)


def _points(datas: Sequence[Tensors], name: str, stacked: bool) -> Tensor:
    parts = [getattr(data, name) for data in datas]
    return torch.stack(parts) if stacked else parts[0]
