"""The nets of the paper, and one for tables.

Each is a ``torch.nn.Module`` with ``forward(x)`` for logits, ``features(x)`` for the
representation used for splitting, and ``head(z)`` from there to the logits.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from giw.checks import as_generator
from giw.nets.images import resize_images
from giw.nets.kernels.devices import seeded_stream

RandomState = int | np.random.Generator | None
SMALL_SIDE = 16  # below this, two convolutions of 5 × 5 leave nothing to pool
WIDTHS = {1: (6, 16), 3: (20, 50)}  # LeNet-5: channels of the input → of the two convolutions
SIDE = 32  # of the images that LeNet-5 sees
STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))  # ResNet-18: width and stride of a first block


def as_input(x: Tensor) -> Tensor:
    """Images are kept as bytes and become numbers between 0 and 1 only when they are used."""
    return x.float() / 255 if x.dtype == torch.uint8 else x


class FeatureNet(nn.Module):
    """A net whose logits come from a representation, by one linear layer if not said otherwise."""

    features: Callable[[Tensor], Tensor]
    output: nn.Linear

    def head(self, z: Tensor) -> Tensor:
        """From :meth:`features` to logits, (n, c)."""
        logits: Tensor = self.output(z)
        return logits

    def forward(self, x: Tensor) -> Tensor:
        """Logits, (n, c)."""
        return self.head(self.features(x))


class MLP(FeatureNet):
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
        self.sizes = {"in_features": in_features, "n_classes": n_classes, "hidden": list(hidden)}
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise([in_features, *hidden]))
        self.output = nn.Linear(hidden[-1], n_classes)

    def features(self, x: Tensor) -> Tensor:
        """Last hidden layer after ReLU, (n, width)."""
        z = as_input(x).flatten(1)  # (n, d)
        for layer in self.hidden:
            z = layer(z).relu()
        return z


class LeNet5(FeatureNet):
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
        self.sizes = {"n_classes": n_classes, "channels": channels}
        first, second = WIDTHS[channels]
        self.conv1 = nn.Conv2d(channels, first, 5)
        self.conv2 = nn.Conv2d(first, second, 5)
        self.fc1 = nn.Linear(second * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.output = nn.Linear(84, n_classes)

    def features(self, x: Tensor) -> Tensor:
        """Third layer after ReLU, (n, 120)."""
        x = resize_images(as_input(x), SIDE)  # (n, channels, 32, 32)
        # ReLU after pooling is the same function, of a quarter of the numbers
        x = functional.max_pool2d(self.conv1(x), 2).relu()  # (n, 6 or 20, 14, 14)
        x = functional.max_pool2d(self.conv2(x), 2).relu()  # (n, 16 or 50, 5, 5)
        return self.fc1(x.flatten(1)).relu()

    def head(self, z: Tensor) -> Tensor:
        """From :meth:`features` to logits, (n, c)."""
        return self.output(self.fc2(z).relu())


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


class ResNet18(FeatureNet):
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
        self.sizes = {"n_classes": n_classes, "channels": channels}
        self.stem = nn.Conv2d(channels, 64, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(64)
        before, stages = 64, []
        for width, stride in STAGES:
            stages.append(nn.Sequential(_Block(before, width, stride), _Block(width, width, 1)))
            before = width
        self.stages = nn.ModuleList(stages)
        self.output = nn.Linear(before, n_classes)

    def features(self, x: Tensor) -> Tensor:
        """After global average pooling, (n, 512)."""
        z: Tensor = self.norm(self.stem(as_input(x))).relu()  # (n, 64, 32, 32)
        for stage in self.stages:
            z = stage(z)
        return z.mean((2, 3))


def model_for(
    x_shape: Sequence[int], n_classes: int, *, random_state: RandomState = None
) -> nn.Module:
    """The net that suits the shape of ``X``, (n, d) or (n, channels, height, width).

    Flat points and images below 16 × 16 pixels get an :class:`MLP`, larger grey or colour images
    a :class:`LeNet5`. :class:`ResNet18` is never chosen by itself, because of its cost.
    ``random_state`` seeds the initial parameters; torch's global seed is left alone.
    """
    point = tuple(x_shape[1:])
    image = len(point) == 3 and point[0] in WIDTHS and min(point[1:]) >= SMALL_SIDE
    return build("lenet5" if image else "mlp", x_shape, n_classes, random_state=random_state)


def build(
    name: str, x_shape: Sequence[int], n_classes: int, *, random_state: RandomState = None
) -> nn.Module:
    """A net by name, one of ``giw.nets.models.KINDS``, sized for ``X`` of shape ``x_shape``."""
    if name not in KINDS:
        raise ValueError(f"net must be one of {', '.join(KINDS)}, got {name!r}")
    if n_classes < 2:
        raise ValueError(f"a classifier needs at least two classes, got {n_classes}")
    if len(x_shape) < 2 or (name != "mlp" and len(x_shape) != 4):
        raise ValueError(
            f"{name} takes X of shape (n, channels, height, width)"
            f"{' or (n, d)' * (name == 'mlp')}; got {tuple(x_shape)}"
        )
    first = prod(x_shape[1:]) if name == "mlp" else x_shape[1]  # numbers per point, or channels
    given = {"in_features" if name == "mlp" else "channels": int(first), "n_classes": n_classes}
    return initialised(lambda: KINDS[name](**given), random_state)


def net_for(module: nn.Module | None, x: Tensor, classes: int, seed: int) -> nn.Module:
    """A copy of a module that gives one number per class, or a net that suits the points.

    A module that does not fit the data is told before any training, by what it does to two points.
    Lazy layers get their parameters here, from ``seed`` rather than from torch's global one.
    """
    if module is None:
        return model_for(x.shape, classes, random_state=seed).to(x.device)
    if not isinstance(module, nn.Module):
        raise ValueError(
            f"module must be an instance of torch.nn.Module, got {module!r}; "
            "call the class to make one"
        )
    if any(p.device.type == "meta" for p in module.parameters()):
        raise ValueError("module is on device meta and has no values; build it on 'cpu'")
    # moving a module to a device and the first pass of a lazy layer would change the user's own
    net = copy.deepcopy(module).to(x.device)
    try:
        with torch.no_grad(), seeded_stream(seed, x.device):
            logits = net.eval()(as_input(x[:2]))  # two points are no batch to take statistics of
    except (RuntimeError, IndexError, TypeError, ValueError) as error:
        raise ValueError(
            f"module cannot take points of shape {tuple(x.shape[1:])}, which come as float32: "
            f"{str(error).splitlines()[0]}"
        ) from error
    if not isinstance(logits, Tensor):
        raise ValueError(
            f"module must give the logits alone, a tensor of shape (n, {classes}), got a "
            f"{type(logits).__name__}; wrap it in a module whose forward picks them"
        )
    if tuple(logits.shape) != (len(x[:2]), classes):
        raise ValueError(
            f"module must give {classes} numbers per point, one per class, got shape "
            f"{tuple(logits.shape[1:])}; let its last layer have {classes} outputs"
        )
    if not any(p.requires_grad for p in net.parameters()):
        raise ValueError(
            "module has no parameter to train; let some of them require a gradient, for example "
            "module.requires_grad_(True)"
        )
    return net.train(module.training)


def holds_embedding(module: nn.Module | None) -> bool:
    """Whether a net looks rows up by number: between two of them there is nothing."""
    return isinstance(module, nn.Module) and any(
        isinstance(part, nn.Embedding | nn.EmbeddingBag) for part in module.modules()
    )


def initialised(make: Callable[[], nn.Module], random_state: RandomState = None) -> nn.Module:
    """Call ``make`` under a private seed; torch's global seed is as before afterwards."""
    seed = int(as_generator(random_state).integers(2**63))
    with seeded_stream(seed, torch.device("cpu")), torch.device("cpu"):
        return make()


# by name, as commands and saved models have them; each keeps what it was made with in ``sizes``
KINDS: dict[str, type] = {"mlp": MLP, "lenet5": LeNet5, "resnet18": ResNet18}
