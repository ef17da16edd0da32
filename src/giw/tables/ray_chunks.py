"""Ray Data as chunks: rows that live on a cluster, walked through a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giw.tables.chunks import BLOCK, Chunks


def ray_chunks(dataset: Any, columns: Sequence[str], *, batch_rows: int = BLOCK) -> Chunks:
    """Columns of a Ray dataset as a matrix in chunks, for `giw.ULSIF`, `giw.RULSIF` and the split.

    The dataset is executed once for every walk, in the order of its blocks; call
    ``dataset.materialize()`` first where that is costly. Rows come to this process a batch at a
    time, whatever the size of the cluster.

    Parameters
    ----------
    dataset : ray.data.Dataset
    columns : sequence of str
        Columns of numbers; the features, in this order.
    batch_rows : int
        Rows that travel at a time.

    Examples
    --------
    ``giw.ULSIF().fit(ray_chunks(train, ["age", "income"]), ray_chunks(val, ["age", "income"]))``
    """
    if not hasattr(dataset, "iter_batches"):
        raise ValueError(
            f"need a ray.data.Dataset, got {type(dataset).__name__}; arrays need no adapter"
        )
    names = list(columns)
    known = dataset.schema().names
    lacking = [name for name in names if name not in known]
    if lacking or not names:
        raise ValueError(f"the dataset has no columns {lacking}; it has {known}")

    def pieces() -> Iterator[NDArray[Any]]:
        for batch in in_order(dataset.select_columns(names), batch_rows):
            yield np.stack([batch[name] for name in names], axis=1)

    return Chunks(pieces, "the Ray dataset")


def ray_column(dataset: Any, name: str, *, batch_rows: int = BLOCK) -> NDArray[Any]:
    """One column of a Ray dataset in memory, in the order of :func:`ray_chunks`: labels, say."""
    batches = in_order(dataset.select_columns([name]), batch_rows)
    return np.concatenate([batch[name] for batch in batches])


def in_order(dataset: Any, batch_rows: int) -> Iterator[dict[str, NDArray[Any]]]:
    """Batches in the order of the dataset's blocks: Ray's own order is that of completion."""
    options = dataset.context.execution_options
    before, options.preserve_order = options.preserve_order, True
    try:
        yield from dataset.iter_batches(batch_size=batch_rows, batch_format="numpy")
    finally:
        options.preserve_order = before
