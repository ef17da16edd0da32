"""Pictures of a split: scores, p-values, and the points that were called outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from giw.support.split import SupportSplit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INSIDE, OUTSIDE, TRAINING = "#2a6f97", "#d1495b", "#8d99ae"


def draw_scores(
    split: SupportSplit, *, truth: Any | None = None, ax: Axes | None = None, bins: int = 40
) -> Axes:
    """Histogram of the scores of both groups over that of held-out training rows.

    Parameters
    ----------
    split : SupportSplit
    truth : bool array of shape (m,), optional
        True membership where it is known, as in the paper's figure; else the split's own.
    ax : matplotlib axes, optional
    bins : int, default=40
    """
    ax = _axes(ax)
    score, held_out = _numpy(split.score), _numpy(split.calibration_score)
    group = _numpy(split.inside) if truth is None else np.asarray(_numpy(truth), dtype=bool)
    if group.shape != score.shape:
        raise ValueError(f"need one truth per point: shape {score.shape}, got {group.shape}")
    edges = np.histogram_bin_edges(np.concatenate([score, held_out]), bins=bins).tolist()
    weight = np.full(len(held_out), len(score) / max(len(held_out), 1))
    ax.hist(
        held_out, edges, weights=weight, histtype="step", color=TRAINING, label="held-out training"
    )
    known = "true" if truth is not None else "called"
    for name, color, rows in (("inside", INSIDE, group), ("outside", OUTSIDE, ~group)):
        ax.hist(score[rows], edges, color=color, alpha=0.6, label=f"{known} {name}")
    ax.set(xlabel="score (larger is stranger)", ylabel="validation points")
    ax.legend(frameon=False)
    return ax


def draw_p_values(split: SupportSplit, *, ax: Axes | None = None, bins: int = 20) -> Axes:
    """Histogram of p-values; inside points alone would be flat at the dashed line."""
    ax = _axes(ax)
    p_value = _numpy(split.p_value)
    ax.hist(p_value, np.linspace(0, 1, bins + 1).tolist(), color=INSIDE, alpha=0.6)
    flat = split.support_share * len(p_value) / bins
    ax.axhline(flat, color=TRAINING, linestyle="--", label=f"inside {split.support_share:.2f}")
    ax.axvline(split.level, color=OUTSIDE, label=f"level {split.level:g}")
    ax.set(xlabel="p-value", ylabel="validation points", xlim=(0, 1))
    ax.legend(frameon=False)
    return ax


def draw_outside(split: SupportSplit, images: Any, *, most: int = 24, columns: int = 8) -> Figure:
    """The strangest points that were called outside, as images.

    Parameters
    ----------
    split : SupportSplit
    images : array of shape (m, h, w), (m, h, w, c) or (m, c, h, w)
        One image per validation point.
    most : int, default=24
        Number of images at most.
    columns : int, default=8
    """
    from matplotlib.figure import Figure

    pictures = _as_images(_numpy(images), len(split))
    p_value, score = _numpy(split.p_value), _numpy(split.score)
    order = np.lexsort((-score, p_value))
    chosen = [j for j in order if not _numpy(split.inside)[j]][:most]
    rows = max(1, -(-len(chosen) // columns))
    figure = Figure(figsize=(1.1 * columns, 1.35 * rows), layout="constrained")
    for place in range(rows * columns):
        ax = figure.add_subplot(rows, columns, place + 1)
        ax.axis("off")
        if place < len(chosen):
            j = chosen[place]
            ax.imshow(pictures[j], cmap="gray_r", interpolation="nearest")
            ax.set_title(f"p = {p_value[j]:.3f}", fontsize=8)
    if not chosen:
        figure.suptitle("no point was called outside")
    return figure


def _as_images(images: NDArray[Any], m: int) -> NDArray[Any]:
    """Images with channels last, or none; floats outside [0, 1] are scaled."""
    if images.ndim not in (3, 4) or len(images) != m:
        raise ValueError(
            f"need one image per point: shape ({m}, h, w) or ({m}, h, w, c), got {images.shape}"
        )
    if images.ndim == 4 and images.shape[1] in (1, 3) and images.shape[-1] not in (1, 3):
        images = np.moveaxis(images, 1, -1)
    if images.ndim == 4 and images.shape[-1] == 1:
        images = images[..., 0]
    if images.dtype != np.uint8 and images.ndim == 4:
        low, high = float(images.min()), float(images.max())
        images = (images - low) / (high - low) if high > low else np.zeros_like(images)
    return images


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(figsize=(5, 3.2), layout="constrained").add_subplot()


def _numpy(values: Any) -> NDArray[Any]:
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
