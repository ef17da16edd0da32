"""The two LeNet-5 of the paper."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from giw.nets.images import resize_images, unit_pixels

WIDTHS = {1: (6, 16), 3: (20, 50)}  # channels of the input → channels of the two convolutions
SIDE = 32


class LeNet5(nn.Module):
    """LeNet-5 for 32 × 32 images with ReLU and max-pooling, as in the paper's appendix.

    ====== ================================= =================================
    layer  grey, ``channels=1``              colour, ``channels=3``
    ====== ================================= =================================
    conv1  5 × 5, 6, ReLU, max-pool 2 × 2    5 × 5, 20, ReLU, max-pool 2 × 2
    conv2  5 × 5, 16, ReLU, max-pool 2 × 2   5 × 5, 50, ReLU, max-pool 2 × 2
    fc1    120, ReLU (the representation)    120, ReLU (the representation)
    fc2    84, ReLU                          84, ReLU
    output one logit per class               one logit per class
    ====== ================================= =================================

    ``uint8`` pixels are scaled to [0, 1], and other sizes resized to 32 × 32 bilinearly; do both
    once beforehand where speed matters.

    Parameters
    ----------
    n_classes : int
    channels : {1, 3}, default=1
    """

    def __init__(self, n_classes: int, channels: int = 1) -> None:
        super().__init__()
        if channels not in WIDTHS:
            raise ValueError(f"LeNet-5 is for images of 1 or 3 channels, got {channels}")
        first, second = WIDTHS[channels]
        self.conv1 = nn.Conv2d(channels, first, 5)
        self.conv2 = nn.Conv2d(first, second, 5)
        self.fc1 = nn.Linear(second * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.output = nn.Linear(84, n_classes)

    def _trunk(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The first three layers."""
        x = resize_images(unit_pixels(x), SIDE)  # (n, channels, 32, 32)
        # ReLU after pooling is the same function, of a quarter of the numbers
        conv1 = functional.max_pool2d(self.conv1(x), 2).relu()  # (n, 6 or 20, 14, 14)
        conv2 = functional.max_pool2d(self.conv2(conv1), 2).relu()  # (n, 16 or 50, 5, 5)
        return conv1, conv2, self.fc1(conv2.flatten(1)).relu()  # the last is (n, 120)

    def layers(self, x: Tensor) -> dict[str, Tensor]:
        """Every hidden layer; convolutions after pooling, flattened to (n, width)."""
        conv1, conv2, fc1 = self._trunk(x)
        fc2 = self.fc2(fc1).relu()  # (n, 84)
        return {"conv1": conv1.flatten(1), "conv2": conv2.flatten(1), "fc1": fc1, "fc2": fc2}

    def features(self, x: Tensor) -> Tensor:
        """Third layer after ReLU, (n, 120)."""
        return self._trunk(x)[2]

    def head(self, z: Tensor) -> Tensor:
        """From :meth:`features` to logits, (n, c)."""
        return self.output(self.fc2(z).relu())

    def forward(self, x: Tensor) -> Tensor:
        """Logits, (n, c)."""
        return self.head(self.features(x))
