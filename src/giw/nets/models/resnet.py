"""ResNet-18 for 32 × 32 images."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

from giw.nets.images import unit_pixels

STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))  # width and stride of the first block


class _Block(nn.Module):
    """Two 3 × 3 convolutions and a shortcut, a projection where the shape changes."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, width, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or before != width:
            projection = nn.Conv2d(before, width, 1, stride, bias=False)
            self.shortcut = nn.Sequential(projection, nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Tensor:
        z = self.norm1(self.conv1(x)).relu()
        out: Tensor = (self.norm2(self.conv2(z)) + self.shortcut(x)).relu()
        return out


class ResNet18(nn.Module):
    """ResNet-18 as in the paper's appendix: a 3 × 3 stem, no pooling before the blocks.

    A convolution of width 64, then two blocks each of width 64, 128, 256 and 512, the last three
    halving the side; batch normalisation after every convolution; global average pooling, which is
    the representation; one linear layer.

    Under ``vmap`` or ``functional_call`` in training mode, pass the buffers too: batch
    normalisation updates its running statistics in them.

    Parameters
    ----------
    n_classes : int
    channels : int, default=3

    References
    ----------
    He, Zhang, Ren and Sun, CVPR 2016.
    """

    def __init__(self, n_classes: int, channels: int = 3) -> None:
        super().__init__()
        self.stem = nn.Conv2d(channels, 64, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(64)
        before, stages = 64, []
        for width, stride in STAGES:
            stages.append(nn.Sequential(_Block(before, width, stride), _Block(width, width, 1)))
            before = width
        self.stages = nn.ModuleList(stages)
        self.output = nn.Linear(before, n_classes)

    def layers(self, x: Tensor) -> dict[str, Tensor]:
        """Every stage averaged over the image; the last is ``pool``, (n, 512)."""
        names = ("stage1", "stage2", "stage3", "pool")
        return {name: z.mean((2, 3)) for name, z in zip(names, self._after_stages(x), strict=True)}

    def features(self, x: Tensor) -> Tensor:
        """After global average pooling, (n, 512)."""
        for z in self._after_stages(x):  # one at a time: early stages are large
            last = z
        return last.mean((2, 3))

    def _after_stages(self, x: Tensor) -> Iterator[Tensor]:
        z: Tensor = self.norm(self.stem(unit_pixels(x))).relu()  # (n, 64, 32, 32)
        for stage in self.stages:
            z = stage(z)
            yield z

    def head(self, z: Tensor) -> Tensor:
        """From :meth:`features` to logits, (n, c)."""
        return self.output(z)

    def forward(self, x: Tensor) -> Tensor:
        """Logits, (n, c)."""
        return self.head(self.features(x))
