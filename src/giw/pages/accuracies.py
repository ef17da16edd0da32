"""What the tables and the figures ask of the accuracies they are given."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from giw.checks import as_array

SHAPES = {1: "one number per trial", 2: "shape (trials, epochs); one trial has shape (1, epochs)"}


def as_accuracies(value: ArrayLike, name: str, *, ndim: int) -> NDArray[np.float64]:
    """Accuracies as fractions between 0 and 1, one per trial or one per trial and epoch."""
    array = as_array(value, name).astype(np.float64)
    if array.ndim != ndim or array.size == 0:
        raise ValueError(f"{name} must hold {SHAPES[ndim]}; got shape {array.shape}")
    if array.min() < 0 or array.max() > 1:
        raise ValueError(
            f"{name} must lie between 0 and 1, got {array.min():.3g} to {array.max():.3g}; "
            "divide percentages by 100"
        )
    return array


def as_paired(accuracy: Mapping[str, ArrayLike]) -> dict[str, NDArray[np.float64]]:
    """One accuracy per trial for each method, as many for one method as for the other."""
    if not accuracy:
        raise ValueError("accuracy is empty: pass at least one method")
    trials = {
        method: as_accuracies(values, f"accuracy[{method!r}]", ndim=1)
        for method, values in accuracy.items()
    }
    sizes = {method: len(values) for method, values in trials.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(
            f"trials are paired, so every method needs as many: got {sizes}; "
            "drop the trials that some method lacks"
        )
    return trials
