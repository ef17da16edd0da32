"""The classification part of the methods that align or confuse the two sets."""

from __future__ import annotations

from torch import Tensor

from giw.nets.training import Batch, Hidden, sample_losses


def classification(both: Hidden, batch: Batch, *, with_val: bool) -> Tensor:
    """Mean training loss or, with validation points, the mean of the two mean losses."""
    on_train = sample_losses(both.train_logits, batch.y).mean()
    if not with_val:
        return on_train
    return (on_train + sample_losses(both.val_logits, batch.y_val).mean()) / 2
