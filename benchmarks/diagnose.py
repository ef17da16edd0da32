"""How long `giw.diagnose` takes on a large table, and whether it finds what was put there.

    python benchmarks/diagnose.py                 # 100,000 × 50, at most 60 s on 2 cores
    python benchmarks/diagnose.py --rows 10000 --columns 20
    python benchmarks/diagnose.py --level 100     # false alarms of each test where nothing shifted

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


def level(draws: int, first_seed: int = 3000) -> None:
    """How often each test is below 5 % where its question has the answer no.

    Half of the draws have other features, and for them the covariate tests are left out: labels
    must still be called equal.
    """
    alarms: dict[str, list[bool]] = {}
    for seed in range(first_seed, first_seed + draws):
        rng = np.random.default_rng(seed)
        X, X_val = rng.normal(size=(300, 4)), rng.normal(size=(30, 4))
        moved = bool(seed % 2)
        X_val[:, 0] += 0.7 * moved
        y, y_val = (
            rng.random(len(x)) < 1 / (1 + np.exp(-2 * (x[:, 0] + x[:, 1]))) for x in (X, X_val)
        )
        for test in giw.diagnose(X, y, X_val, y_val, random_state=seed).shifts:
            if test.kind == "label" or not moved:
                alarms.setdefault(test.kind, []).append(test.p_value < 0.05)
    for kind, found in alarms.items():
        print(f"{kind:<14} {np.mean(found):6.1%} of {len(found)} draws below 5 %")


def main() -> None:
    """Time every step, print the answer, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--level", type=int, metavar="DRAWS", help="false alarms of the tests only")
    options = parser.parse_args()
    if options.level:
        return level(options.level)
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
