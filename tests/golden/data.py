"""Small data for the goldens: the same on every machine, and no door of the package is used."""

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits


def table(n=150, m=30, seed=0):
    """Four columns, a third of the validation rows far outside, one training label in ten wrong."""
    rng = np.random.default_rng(seed)
    x, x_val = rng.normal(size=(n, 4)), rng.normal(size=(m, 4))
    x_val[:, 0] += 0.5
    x_val[: m // 3, 1] += 7.0
    y, y_val = (np.where(part[:, 0] + part[:, 2] > 0, 1, 0) for part in (x, x_val))
    y_val[: m // 3] = 1 - y_val[: m // 3]
    y[::10] = 1 - y[::10]
    return x, y, x_val, y_val


def points(n=80, m=25, seed=1):
    """Two features, moved and narrowed in validation; five new points."""
    rng = np.random.default_rng(seed)
    new = np.linspace(-1.0, 1.5, 5)[:, None] * [1.0, 0.5]
    return rng.normal(size=(n, 2)), 0.8 * rng.normal(size=(m, 2)) + [0.6, 0.0], new


def text_table(n=160, m=40, seed=2):
    """Numbers with holes, two text columns, and a town that training never has."""
    rng = np.random.default_rng(seed)

    def draw(size, towns):
        age = rng.normal(45, 12, size)
        kind = rng.choice(["old", "new"], size)
        y = np.where(age + 8 * (kind == "new") + rng.normal(0, 6, size) > 48, "yes", "no")
        age[rng.random(size) < 0.1] = np.nan
        columns = {"age": age, "town": rng.choice(towns, size), "kind": kind}
        return pd.DataFrame(columns).astype({"town": object, "kind": object}), y

    x, y = draw(n, ["Berne", "Basle", "Chur"])
    x_val, y_val = draw(m, ["Berne", "Basle", "Zug"])
    return x, y, x_val, y_val


def digits(n=160, m=20, k=60):
    """Odd against even; training has the digits 0 to 3, validation and test all: images in [0, 1].

    Returns training, validation and test as pairs (images (n, 1, 8, 8), labels).
    """
    bunch = load_digits()
    images, digit = (bunch.images / 16.0).astype(np.float32)[:, None], bunch.target
    train = np.flatnonzero(digit <= 3)[:n]
    rest = np.setdiff1d(np.arange(len(digit)), train)
    val = np.concatenate([rest[digit[rest] == d][: m // 10] for d in range(10)])
    test = np.setdiff1d(rest, val)[:k]
    return [(images[rows], digit[rows] % 2) for rows in (train, val, test)]


def bars(seed, per_digit):
    """Ten "digits" as 32 × 32 bytes, each a bright bar of its own: images (n, 1, 32, 32), digit."""
    rng = np.random.default_rng(seed)
    digit = np.repeat(np.arange(10), per_digit)
    x = rng.integers(0, 40, size=(len(digit), 1, 32, 32), dtype=np.uint8)
    for row, d in enumerate(digit):
        x[row, 0, 3 * d : 3 * d + 3, :] += 180
    return x, digit
