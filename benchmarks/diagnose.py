"""How long `giw.diagnose` takes on a large table, and whether it finds what was put there.

    python benchmarks/diagnose.py                 # 100,000 × 50, at most 60 s on 2 cores
    python benchmarks/diagnose.py --rows 10000 --columns 20
    python benchmarks/diagnose.py --level 400     # false alarms of each test, and its power

Training rows are Gaussian with a linear class; of the validation rows a fifth lies outside, moved
by six standard deviations in column 7, and a tenth of the training labels is wrong.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from scipy.stats import binomtest

import giw


def make(rows: int, columns: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Training and validation data, ``rows`` of each."""
    rng = np.random.default_rng(seed)
    X, X_val = rng.normal(size=(2, rows, columns))
    y, y_val = (x[:, 0] + 0.5 * x[:, 1] > 0 for x in (X, X_val))
    outside = rng.random(rows) < 0.2
    X_val[outside, min(7, columns - 1)] += 6
    return X, y ^ (rng.random(rows) < 0.1), X_val, y_val


def small(seed: int, flipped: float) -> tuple[np.ndarray, ...]:
    """300 training and 30 validation rows of one world; every other seed with other features.

    A share of the training labels is flipped.
    """
    rng = np.random.default_rng(seed)
    X, X_val = rng.normal(size=(300, 4)), rng.normal(size=(30, 4))
    X_val[:, 0] += 0.7 * (seed % 2)
    y, y_val = (rng.random(len(x)) < 1 / (1 + np.exp(-2 * (x[:, 0] + x[:, 1]))) for x in (X, X_val))
    return X, y ^ (rng.random(len(y)) < flipped), X_val, y_val


def p_values(seed: int, flipped: float = 0.0) -> dict[str, float]:
    """Of each question that was asked."""
    torch.set_num_threads(1)
    found = giw.diagnose(*small(seed, flipped), random_state=seed)
    return {test.kind: test.p_value for test in found.shifts}


def level(draws: int, jobs: int, first_seed: int = 3000) -> None:
    """How often each test is below 5 % where its question has the answer no, and where yes.

    Half of the draws have other features, and for them the tests of features are left out: labels
    must still be called equal.
    """
    seeds = range(first_seed, first_seed + draws)
    with ProcessPoolExecutor(jobs) as pool:
        quiet = list(pool.map(p_values, seeds))
        for kind in ("covariate", "class prior", "within class"):
            tell(f"{kind}, nothing shifted", [p[kind] for p in quiet[::2]])
        tell("label, nothing shifted", [p["label"] for p in quiet[::2]])
        tell("label, features shifted", [p["label"] for p in quiet[1::2]])
        tell("label, both halves", [p["label"] for p in quiet])
        tell("covariate, features shifted", [p["covariate"] for p in quiet[1::2]])
        for flipped in (0.2, 0.4):
            noisy = list(pool.map(p_values, seeds[: draws // 2], [flipped] * (draws // 2)))
            tell(f"label, {flipped:.0%} flipped", [p["label"] for p in noisy])


def tell(name: str, found: list[float]) -> None:
    """A rate with its exact 95 % interval."""
    alarms, n = sum(p < 0.05 for p in found), len(found)
    exact = binomtest(alarms, n).proportion_ci()
    print(
        f"{name:<28} {alarms / n:6.1%} of {n} draws below 5 % "
        f"({exact.low:.1%} to {exact.high:.1%})",
        flush=True,
    )


def _clocks() -> tuple[float, float]:
    """Seconds on the wall, and of all processors; the second does not mind who else is working."""
    return time.perf_counter(), time.process_time()


def main() -> None:
    """Time every step, print the answer, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--level", type=int, metavar="DRAWS", help="false alarms and power only")
    parser.add_argument("--jobs", type=int, default=1, help="processes for --level")
    options = parser.parse_args()
    if options.level:
        return level(options.level, options.jobs)
    data = make(options.rows, options.columns)
    clocks = [("", _clocks())]  # what begins, and when
    found = giw.diagnose(*data, on_step=lambda name: clocks.append((name, _clocks())))
    clocks.append(("page", _clocks()))
    with tempfile.TemporaryDirectory() as folder:
        found.to_html(Path(folder) / "report.html")
    clocks.append(("", _clocks()))
    print(f"{'step':<14} {'seconds':>8} {'processor seconds':>18}")
    for (name, start), (_, end) in pairwise(clocks[1:]):
        print(f"{name:<14} {end[0] - start[0]:8.1f} {end[1] - start[1]:18.1f}")
    wall, processor = (clocks[-1][1][j] - clocks[0][1][j] for j in (0, 1))
    print(f"{'all':<14} {wall:8.1f} {processor:18.1f}")
    print(f"2 × {options.rows:,} × {options.columns}, {torch.get_num_threads()} threads\n")
    print(found.summary())


if __name__ == "__main__":
    main()
