"""How long `giw.diagnose` takes on a large table, and whether it finds what was put there.

    python benchmarks/diagnose.py                 # 100,000 × 50, at most 60 s on 2 cores
    python benchmarks/diagnose.py --rows 10000 --columns 20

Training rows are Gaussian with a linear class; of the validation rows a fifth lies outside, moved
by six standard deviations in column 7, and a tenth of the training labels is wrong.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import giw
from giw.diagnosis import STEPS


def make(rows: int, columns: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Training and validation data, ``rows`` of each."""
    rng = np.random.default_rng(seed)
    X, X_val = rng.normal(size=(2, rows, columns))
    y, y_val = (x[:, 0] + 0.5 * x[:, 1] > 0 for x in (X, X_val))
    outside = rng.random(rows) < 0.2
    X_val[outside, min(7, columns - 1)] += 6
    return X, y ^ (rng.random(rows) < 0.1), X_val, y_val


def main() -> None:
    """Time every step, print the answer, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=50)
    options = parser.parse_args()
    data = make(options.rows, options.columns)
    began: dict[str, float] = {}
    start = time.perf_counter()
    found = giw.diagnose(*data, on_step=lambda name: began.setdefault(name, time.perf_counter()))
    done = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        found.to_html(Path(folder) / "report.html")
    page = time.perf_counter()
    ends = [*[began[name] for name in STEPS[1:]], done]
    for name, end in zip(STEPS, ends, strict=True):
        print(f"{name:<14} {end - began[name]:6.1f} s")
    print(f"{'page':<14} {page - done:6.1f} s")
    print(f"{'all':<14} {page - start:6.1f} s for 2 × {options.rows:,} × {options.columns}")
    print(found.summary())


if __name__ == "__main__":
    main()
