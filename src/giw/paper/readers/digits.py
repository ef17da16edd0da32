"""Real handwritten digits that come with scikit-learn: no file, no network."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from giw.paper.readers.sample import Sample

ODD_OR_EVEN = ("even", "odd")


def digits() -> Sample:
    """1,797 handwritten digits of 8 × 8 pixels, odd against even.

    Images are float32 in [0, 1] of shape (n, 1, 8, 8), so that they are read as images
    everywhere; nets below 16 × 16 pixels flatten them. ``y`` is 1 for odd digits, ``group`` is
    the digit.

    References
    ----------
    Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI, 1998.
    """
    bunch = load_digits()
    digit = bunch.target.astype(np.int64)  # (n,)
    images = (bunch.images / 16.0).astype(np.float32)[:, None]  # (n, 1, 8, 8); 17 grey levels
    return Sample(images, digit % 2, digit, classes=ODD_OR_EVEN)
