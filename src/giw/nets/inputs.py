"""What a net takes: tables, images and tensors as one tensor of inputs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data
from torch import Tensor

from giw.checks import as_array
from giw.estimators.rows import refuse_dates
from giw.nets.methods import METHODS
from giw.nets.training import Method


def as_net_input(estimator: BaseEstimator, X: Any, name: str, *, reset: bool) -> Tensor:
    """Inputs of a net as float32, or bytes for images; at least one point.

    Tables go through scikit-learn's checks, which also remember the columns' number and names
    (``reset``) or compare them. Tensors and images have no columns to name.
    """
    if isinstance(X, Tensor) or getattr(X, "ndim", 2) > 2:
        images = getattr(X, "dtype", None) in (np.uint8, torch.uint8) and X.ndim == 4
        x = torch.as_tensor(X) if images else _single(as_array(X, name), name)
        if x.ndim < 2 or 0 in x.shape:
            raise ValueError(
                f"{name} must have shape (n, d) or (n, channels, height, width) and hold at least "
                f"one point, got {tuple(x.shape)}"
                + ("; reshape(-1, 1) makes one column" * (x.ndim == 1))
            )
        if reset:
            estimator.n_features_in_ = int(x[0].numel())
        return x.cpu()
    refuse_dates(X, name, estimator)
    table = validate_data(estimator, X, reset=reset, ensure_all_finite=False)
    return _single(as_array(table, name), name)


def _single(values: NDArray[Any], name: str) -> Tensor:
    """What a net computes in; numbers that do not fit are told here, and not as a loss of NaN."""
    # negative strides and arrays that are read-only are legal in numpy and not in torch
    x = torch.from_numpy(np.require(values, requirements=["C", "W"]))
    single = x.to(torch.float32)
    # one pass where all is well; a sum that overflows is looked into
    lost = not math.isfinite(single.sum()) and not bool(torch.isfinite(single).all())
    if lost:
        raise ValueError(
            f"{name} holds numbers up to {float(x.abs().max()):.2g}, too large for float32; "
            "divide its columns by a typical size first"
        )
    return single


def check_same_scale(x: Tensor, other: Tensor, names: tuple[str, str]) -> None:
    """Images as bytes become numbers from 0 to 1; floats beside them have to be such numbers."""
    for bytes_, floats, (name, its) in ((x, other, names), (other, x, names[::-1])):
        if bytes_.dtype == torch.uint8 != floats.dtype and float(floats.max()) > 1:
            raise ValueError(
                f"{name} holds bytes, which are divided by 255, and {its} floats up to "
                f"{float(floats.max()):g}; divide those by 255, or pass bytes in both"
            )


def check_labels_not_needed(method: Method) -> None:
    """Refuse unlabelled validation points where a method learns from their labels."""
    if getattr(method, "needs_val_labels", True):
        others = [name for name, make in METHODS.items() if not make().needs_val_labels]
        raise ValueError(
            f"method {method.name!r} needs labels of the validation points; pass y_val, or take a "
            f"method that needs none ({', '.join(others)}), or giw.ReweightedClassifier, which "
            "then weighs by points alone"
        )
