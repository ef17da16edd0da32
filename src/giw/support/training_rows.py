"""Training rows as a split needs them: checked, labels as codes, copies dropped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from giw.checks import as_labels, as_pair, as_points
from giw.support.chunks import Chunks, as_chunks
from giw.support.copies import first_occurrences
from giw.support.rows import Rows, blocks_of, only


@dataclass(frozen=True)
class TrainingRows:
    """Training rows, and those that the feature extractor has not seen where there are any."""

    z: Rows  # (n, d)
    label: Tensor | None  # (n,) codes
    held_out: Tensor | None  # (r, d)
    held_out_label: Tensor | None  # (r,) codes
    classes: NDArray[Any] | None  # what the codes stand for

    @property
    def in_chunks(self) -> bool:
        """Whether there are more rows than fit in memory."""
        return isinstance(self.z, Chunks)


def as_training_rows(
    z_train: Any,
    y_train: Any | None = None,
    z_calibration: Any | None = None,
    y_calibration: Any | None = None,
) -> TrainingRows:
    """Check what :meth:`giw.SupportSplitter.fit` was given, and drop copies of rows."""
    chunks = as_chunks(z_train, "z_train")
    z: Rows = as_points(z_train, "z_train") if chunks is None else chunks  # (n, d)
    _check_spread(z)
    held_out = None
    if z_calibration is not None and chunks is None:
        z, held_out = as_pair(z_train, z_calibration, ("z_train", "z_calibration"))
    elif z_calibration is not None:
        held_out = as_pair(next(blocks_of(z)), z_calibration, ("z_train", "z_calibration"))[1]
    if z_calibration is None and y_calibration is not None:
        raise ValueError("y_calibration came without z_calibration; pass both or neither")
    if chunks is not None and isinstance(y_train, list | tuple):
        y_train = np.concatenate([np.asarray(part) for part in y_train])
    labels = None if y_train is None else as_labels(y_train, len(z), "y_train")
    extra = None
    if y_calibration is not None and held_out is not None:
        extra = as_labels(y_calibration, len(held_out), "y_calibration")
    classes = _classes(labels, extra)
    kept = first_occurrences(z)
    if kept is not None:
        mask = torch.zeros(len(z), dtype=torch.bool, device=z.device)
        mask[torch.as_tensor(kept, device=z.device)] = True
        z = only(z, mask)
        labels = None if labels is None else labels[kept]
    label, extra_label = (codes_of(values, classes, z.device) for values in (labels, extra))
    return TrainingRows(z, label, held_out, extra_label, classes)


def codes_of(
    labels: NDArray[Any] | None, classes: NDArray[Any] | None, device: torch.device
) -> Tensor | None:
    """Position of each label among the classes; 0 for one that is not there."""
    if labels is None or classes is None:
        return None
    code = np.searchsorted(classes, labels)
    code[code == len(classes)] = 0
    return torch.as_tensor(np.where(classes[code] == labels, code, 0), device=device)


def _classes(*labels: NDArray[Any] | None) -> NDArray[Any] | None:
    known = [values for values in labels if values is not None]
    return np.unique(np.concatenate(known)) if known else None


def _check_spread(z: Rows) -> None:
    first, spread, size = None, 0.0, 0.0
    for block in blocks_of(z):
        first = block[0] if first is None else first
        spread = max(spread, float((block - first).abs().max()))
        size = max(size, float(block.abs().max()))
    kind = torch.finfo(z.dtype)
    if size > kind.max**0.5 / z.shape[1] or 0 < spread < kind.tiny**0.5:
        raise ValueError(
            f"z_train holds numbers up to {size:.2g} that differ by up to {spread:.2g}, whose "
            f"squares {str(z.dtype).removeprefix('torch.')} cannot hold; divide z_train and z_val "
            "by a typical size first"
        )
    if len(z) > 1 and spread <= 1e-6 * size:
        raise ValueError(
            f"all {len(z)} rows of z_train are the same, so no point can be told from another; "
            "if a net made them it has collapsed: use another layer or the raw input"
        )
