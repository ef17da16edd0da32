"""A multilayer perceptron, for tables and tiny images."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from giw.nets.images import unit_pixels


class MLP(nn.Module):
    """Fully connected layers with ReLU; points of any shape are flattened.

    Parameters
    ----------
    in_features : int
        Numbers per point.
    n_classes : int
    hidden : sequence of int, default=(128, 64)
        Width of each hidden layer. The last one is the representation used for splitting.
    """

    def __init__(self, in_features: int, n_classes: int, hidden: Sequence[int] = (128, 64)) -> None:
        super().__init__()
        if not hidden:
            raise ValueError("hidden needs at least one layer: its output is the representation")
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise([in_features, *hidden]))
        self.output = nn.Linear(hidden[-1], n_classes)

    def layers(self, x: Tensor) -> dict[str, Tensor]:
        """Every hidden layer after ReLU, as ``fc1``, ``fc2``, …, each of shape (n, width)."""
        z = unit_pixels(x).flatten(1)  # (n, d)
        found: dict[str, Tensor] = {}
        for number, layer in enumerate(self.hidden, start=1):
            found[f"fc{number}"] = z = layer(z).relu()
        return found

    def features(self, x: Tensor) -> Tensor:
        """Last hidden layer after ReLU, (n, width)."""
        return self.layers(x)[f"fc{len(self.hidden)}"]

    def head(self, z: Tensor) -> Tensor:
        """From :meth:`features` to logits, (n, c)."""
        return self.output(z)

    def forward(self, x: Tensor) -> Tensor:
        """Logits, (n, c)."""
        return self.head(self.features(x))
