"""What a training run leaves behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from giw.support import SupportSplit

History = list[list[dict[str, float]]]  # of each epoch, of each trial


@dataclass(frozen=True)
class TrainingRecord:
    """The trained parameters and how they came about.

    Attributes
    ----------
    method : str
        Name of the method.
    module : torch.nn.Module
        The trained net, in evaluation mode, on the device it was trained on.
    history : dict of str to array of shape (epochs,)
        One value per epoch: ``loss``, ``learning_rate``, whatever the method logs and, where
        test data were given, ``test_accuracy`` and ``test_loss``; nan where not tested.
    split : SupportSplit or None
        How the validation data were split, where the method splits.
    seconds : float
        Wall time, pretraining not included where it was shared.
    settings : dict
        The configuration and the seed.
    """

    method: str
    module: nn.Module
    history: dict[str, NDArray[np.float64]]
    split: SupportSplit | None
    seconds: float
    settings: dict[str, Any]

    def final_accuracy(self, last: int = 10) -> float:
        """Mean test accuracy over the last epochs, the paper's figure of merit."""
        if "test_accuracy" not in self.history:
            raise ValueError("no test data were given to this run; score predictions instead")
        return float(np.mean(self.history["test_accuracy"][-last:]))
