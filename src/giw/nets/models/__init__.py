"""The nets of the paper, and one for tables.

Each is a ``torch.nn.Module`` with ``forward(x)`` for logits, ``features(x)`` for the
representation used for splitting, ``head(z)`` from there to the logits, and ``layers(x)`` for all
intermediate representations by name.
"""

from giw.nets.models.choice import NETS, build, initialised, model_for
from giw.nets.models.lenet import LeNet5
from giw.nets.models.mlp import MLP
from giw.nets.models.resnet import ResNet18

__all__ = ["MLP", "NETS", "LeNet5", "ResNet18", "build", "initialised", "model_for"]
