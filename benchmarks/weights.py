"""Weight estimators beside their peers: time, peak memory, error against the truth, sample size.

    python benchmarks/weights.py              # everything: about an hour on 2 cores
    python benchmarks/weights.py --quick      # a small version of everything, minutes
    python benchmarks/weights.py --only exact --only speed    # some of the tables below

Tables, each printed as Markdown, ours and theirs from the same run on the same machine:

exact   KMM with a given ridge: correlation and effective sample size beside cvxopt at 1e-12.
speed   the same with the paper's settings: processor seconds from losses to weights.
error   N(0, I) → N(0.75 e₁, I): what share of the squared error of equal weights is taken away.
scale   one fit in a process of its own: processor seconds, peak memory above the data, error left,
        effective sample size.

Peers come with ``pip install giw[peers]``; one that is missing is skipped with a line that says so.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from scipy.spatial.distance import cdist, pdist
from threadpoolctl import threadpool_limits

import giw
import giw.weights
from loss_shapes import loss_shapes

TABLES = ("exact", "speed", "error", "scale")
SHIFT = 0.75
UPPER = 50.0
HARDLY = 0.01  # standard deviation of mean-one weights under which a correlation says little
OURS = {
    "giw kmm": giw.kmm,
    "giw ulsif": giw.ulsif,
    "giw rulsif": giw.rulsif,
    "giw lsif": giw.lsif,
    "giw kliep": giw.kliep,
    "giw classifier": giw.classifier_ratio,
}
LIMIT_SECONDS, LIMIT_GB = 60, 8  # of one fit of the scale table: processor time, memory
# one thread each: threads that wait for each other on a busy machine measure the neighbours
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def installed(name: str) -> bool:
    """Whether a peer is there; say so where it is not."""
    if importlib.util.find_spec(name) is not None:
        return True
    print(f"(skipping {name}: not installed; pip install giw[peers])")
    return False


def say_why_not_adapt() -> None:
    """ADAPT has the same estimators, behind 1.3 GB of TensorFlow that they do not use."""
    try:
        importlib.import_module("adapt.instance_based")
        print("(no rows for adapt: it imports here, write them)")
    except ImportError as error:
        print(f"(no rows for adapt, which needs TensorFlow: {error})")


def peers() -> dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]]:
    """Other people's estimators, called as their documentation does, with their defaults."""
    found: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {}
    if installed("densratio"):
        from densratio import densratio

        def by_densratio(method):
            def weights(train, val):
                fitted = densratio(val, train, method=method, verbose=False)
                return fitted.compute_density_ratio(train)

            return weights

        for method in ("uLSIF", "RuLSIF", "KLIEP"):
            found[f"densratio {method}"] = by_densratio(method)
    if installed("skada"):
        from skada import _reweight as adapters

        def by_skada(adapter):
            def weights(train, val):
                x = np.r_[train, val]
                domain = np.r_[np.ones(len(train)), -2 * np.ones(len(val))].astype(int)
                model = adapter()
                model.fit(x, sample_domain=domain)
                return model.compute_weights(x, sample_domain=domain)[: len(train)]

            return weights

        found["skada KMM"] = by_skada(adapters.KMMReweightAdapter)
        found["skada Gaussian"] = by_skada(adapters.GaussianReweightAdapter)
        found["skada discriminator"] = by_skada(adapters.DiscriminatorReweightAdapter)
        found["skada density"] = by_skada(adapters.DensityReweightAdapter)
    return found


def gaussian_pair(seed: int, n: int, m: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Training points, validation points, and the true ratio at the training points."""
    rng = np.random.default_rng(seed)
    train, val = rng.normal(size=(n, d)), rng.normal(size=(m, d))
    val[:, 0] += SHIFT
    return train, val, np.exp(SHIFT * train[:, 0] - SHIFT**2 / 2)


def error_left(weight: np.ndarray, truth: np.ndarray) -> float:
    """Squared error of mean-one weights as a share of that of equal weights."""
    weight = np.asarray(weight, dtype=float)
    weight = weight / weight.mean()
    return float(np.mean((weight - truth) ** 2) / np.mean((1 - truth) ** 2))


def table(head: list[str], rows: list[list[str]]) -> None:
    """Print Markdown."""
    print("| " + " | ".join(head) + " |")
    print("|" + " --- |" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)


# ---- solver


def by_cvxopt(
    kernel: np.ndarray, kappa: np.ndarray, *, ridge: float, thin: bool, accuracy: float | None
) -> np.ndarray:
    """The paper's problem by cvxopt, dense constraints as its authors write them or ``thin``."""
    from cvxopt import matrix, solvers, sparse

    n = len(kappa)
    slack = (np.sqrt(n) - 1) / np.sqrt(n)
    rows = matrix(np.r_[np.ones((1, n)), -np.ones((1, n)), np.eye(n), -np.eye(n)])
    limits = matrix(np.r_[n * (1 + slack), n * (slack - 1), UPPER * np.ones(n), np.zeros(n)])
    options = {} if accuracy is None else dict.fromkeys(("abstol", "reltol", "feastol"), accuracy)
    solved = solvers.qp(
        matrix(kernel + ridge * np.eye(n)),
        matrix(-kappa),
        sparse(rows) if thin else rows,
        limits,
        options={"show_progress": False, **options},
    )
    return np.array(solved["x"])[:, 0]


def kernels(train: np.ndarray, val: np.ndarray, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian kernel of the training points, and κ."""
    near = np.exp(-gamma * cdist(train, val, "sqeuclidean"))
    return np.exp(-gamma * cdist(train, train, "sqeuclidean")), len(train) * near.mean(1)


def cpu_seconds(*calls: Callable[[], object], rounds: int = 7) -> list[float]:
    """Least processor time of each call, by the same rule for all: batches of 0.03 s in turn.

    Processor time on one thread, because on a busy machine wall time grows faster for long calls
    than for short ones, which would flatter us; in turn, because its caches are sometimes ours
    and sometimes the neighbours'.
    """
    repeats = []
    for call in calls:
        start = time.process_time()
        call()
        repeats.append(max(1, int(0.03 / max(time.process_time() - start, 1e-6))))
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            start = time.process_time()
            for _ in range(repeats[i]):
                call()
            best[i] = min(best[i], (time.process_time() - start) / repeats[i])
    return best


def widths(train: np.ndarray) -> dict[str, float]:
    """Inverse squared widths: published, scale free, a tenth and ten times as wide as that."""
    median = float(np.median(pdist(train)))
    free = 0.5 / median**2
    return {"published": median, "median": free, "narrow": 100 * free, "wide": 0.01 * free}


def matching_cases(n: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Losses of several shapes and features, n training and 20 validation points."""
    rng = np.random.default_rng(n)
    draws = [loss_shapes(seed) for seed in range(4)]
    cases = {
        name: (np.concatenate([draw[name][0] for draw in draws])[:n, None], val[:, None])
        for name, (_, val) in draws[0].items()
    }
    for d in (5, 50):
        cases[f"features, d = {d}"] = rng.normal(size=(n, d)), rng.normal(size=(20, d)) + 0.5
    return cases


def exact_table(sizes: tuple[int, ...]) -> None:
    """Weights by the paper's problem beside cvxopt's at 1e-12."""
    print("## exact: `giw.kmm` with a given ridge beside cvxopt at 1e-12, 20 validation points\n")
    print("Per n: least correlation over ridges 1e-5, 1e-2 and 1 (largest difference of a weight);")
    print("effective sample size at ridge 1e-5, ours and cvxopt's.\n")
    rows, found = [], {n: ([], [0.0], []) for n in sizes}
    for kind in matching_cases(sizes[0]):
        for rule in ("published", "median", "narrow", "wide"):
            cells = []
            for n in sizes:
                train, val = matching_cases(n)[kind]
                gamma = widths(train)[rule]
                kernel, kappa = kernels(train, val, gamma)
                alike, differ, sizes_left = [], [], []
                for ridge in (1e-5, 1e-2, 1.0):
                    w = giw.kmm(train, val, gamma=gamma, ridge=ridge, upper=UPPER)
                    exact = by_cvxopt(kernel, kappa, ridge=ridge, thin=True, accuracy=1e-12)
                    exact = exact / exact.mean()
                    differ.append(np.abs(w - exact).max())
                    sizes_left.append([giw.effective_sample_size(z.clip(0)) for z in (w, exact)])
                    if exact.std() > HARDLY:
                        alike.append(np.corrcoef(w, exact)[0, 1])
                    else:
                        found[n][1].append(differ[-1])
                found[n][0].extend(alike)
                found[n][2].extend(abs(ours / theirs - 1) for ours, theirs in sizes_left)
                said = f"{min(alike):.6f}" if alike else "no spread"
                cells.append(f"{said} ({max(differ):.0e}); {sizes_left[0][0]:.1f}, "
                             f"{sizes_left[0][1]:.1f}")  # fmt: skip
            rows.append([kind, rule, *cells])
    table(["", "width", *[f"n = {n:,}" for n in sizes]], rows)
    print(f"Over all of them; hardly vary = standard deviation of the exact ones under {HARDLY}.\n")
    head = ["n", "cases", "least correlation", "largest difference where weights hardly vary"]
    summary = [
        [f"{n:,}", str(len(share)), f"{min(alike):.6f}", f"{max(apart):.1e}", f"{max(share):.1%}"]
        for n, (alike, apart, share) in found.items()
    ]
    table([*head, "effective sample size differs by at most"], summary)


def speed_table(seeds: int) -> None:
    """Losses to weights, ours beside cvxopt: the paper's problem at n = 256."""
    print("## speed: losses to weights, n = 256, ridge 1e-5, upper 50, processor time in ms\n")
    print("cvxopt at 1e-12, and with its defaults, whose weights the last column compares.\n")
    rows, ratios = [], []
    for rule in ("published", "median"):
        for name in loss_shapes(0):
            times, alike = [], []
            for seed in range(seeds):
                train, val = (z[:, None] for z in loss_shapes(seed)[name])
                gamma = widths(train)[rule]

                def theirs(thin, accuracy, train=train, val=val, gamma=gamma):
                    problem = kernels(train, val, gamma)
                    return by_cvxopt(*problem, ridge=1e-5, thin=thin, accuracy=accuracy)

                ours = partial(giw.kmm, train, val, gamma=gamma, ridge=1e-5, upper=UPPER)
                kinds = [
                    partial(theirs, thin, acc) for acc in (1e-12, None) for thin in (False, True)
                ]
                exact = theirs(True, 1e-12)
                alike.append([np.corrcoef(w, exact)[0, 1] for w in (ours(), theirs(True, None))])
                times.append(cpu_seconds(ours, *kinds))
            faster = np.median([[t / of[0] for t in of[1:]] for of in times], 0)
            ratios.append(faster)
            mine, *others = 1e3 * np.median(times, 0)
            cells = [f"{t:.1f} ({f:.0f} ×)" for t, f in zip(others, faster, strict=True)]
            rows.append(
                [name, rule, f"{mine:.2f}", *cells, *(f"{c:.6f}" for c in np.min(alike, 0))]
            )
    head = ["losses", "width", "giw", "dense, 1e-12", "sparse, 1e-12", "dense", "sparse"]
    table([*head, "correlation, giw", "cvxopt's defaults"], rows)
    names = "dense at 1e-12", "sparse at 1e-12", "dense by default", "sparse by default"
    said = zip(names, np.median(ratios, 0), np.min(ratios, 0), strict=True)
    print(
        "faster than cvxopt, median over rows (least): "
        + ", ".join(f"{name} {middle:.0f} × ({least:.1f} ×)" for name, middle, least in said)
        + "\n",
        flush=True,
    )


# ---- error


def error_table(
    seeds: range, sizes: list[int], dimensions: list[int], n: int, names: list[str] | None
) -> None:
    """Share of the squared error of equal weights that is left, median over seeds."""
    print(
        f"## error left, n_train = {n}, median over seeds {seeds[0]} to {seeds[-1]} "
        "(largest in brackets)\n"
    )
    say_why_not_adapt()
    methods = {**OURS, **peers()}
    methods = {name: call for name, call in methods.items() if not names or name in names}
    cells = [(d, m) for d in dimensions for m in sizes]
    left = {name: {} for name in methods}
    for cell in cells:
        for name, weights in methods.items():
            values = []
            for seed in seeds:
                train, val, truth = gaussian_pair(seed, n, cell[1], cell[0])
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    values.append(error_left(weights(train, val), truth))
            left[name][cell] = values
        found = {name: round(float(np.median(left[name][cell])), 3) for name in methods}
        print(f"(d = {cell[0]}, n_val = {cell[1]}: {found})", file=sys.stderr, flush=True)
    rows = [
        [name] + [f"{np.median(left[name][c]):.2f} ({max(left[name][c]):.2f})" for c in cells]
        for name in methods
    ]
    table(["", *[f"d = {d}, n_val = {m}" for d, m in cells]], rows)
    middle = {name: {c: np.median(left[name][c]) for c in cells} for name in methods}
    for name in methods:
        wins = sum(middle[name][c] < 1 for c in cells)
        pairs = np.mean([v < 1 for c in cells for v in left[name][c]])
        print(f"- {name}: beats equal weights in {wins} of {len(cells)} cells, {pairs:.0%} of fits")
    mine = [name for name in methods if name in OURS]
    others = [name for name in methods if name not in OURS]
    if not (mine and others):
        return
    ours = {c: min(middle[name][c] for name in mine) for c in cells}
    theirs = {c: min(middle[name][c] for name in others) for c in cells}
    wins = sum(ours[c] <= theirs[c] for c in cells)
    print(f"- best of ours at least the best peer's in {wins} of {len(cells)} cells")
    taken = [f"{1 - ours[c]:.0%} (d = {c[0]}, n_val = {c[1]})" for c in cells]
    print("- best of ours takes away: " + ", ".join(taken))
    print(flush=True)


# ---- scale


def one_fit(name: str, n: int, m: int, d: int, seed: int) -> None:
    """In a process of its own: fit once and print seconds, GB, error left, sample size."""
    weights = OURS[name] if name in OURS else peers()[name]
    train, val, truth = gaussian_pair(seed, n, m, d)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT_GB << 30, resource.RLIM_INFINITY))
    resource.setrlimit(
        resource.RLIMIT_CPU, (int(start) + LIMIT_SECONDS, resource.RLIM_INFINITY)
    )  # SIGXCPU ends the process
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            weight = np.asarray(weights(train, val), dtype=float)
    except MemoryError:
        print("RESULT memory")
        return
    seconds = time.process_time() - start
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20
    effective = giw.effective_sample_size(weight.clip(min=0)) / n
    print("RESULT", seconds, peak, error_left(weight, truth), effective)


def measured(name: str, n: int, m: int, d: int, seeds: range) -> list[str]:
    """Medians over seeds as table cells, or why there are none."""
    results = []
    for seed in seeds:
        command = [sys.executable, __file__, "--one", name, str(n), str(m), str(d), str(seed)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, **ONE_THREAD}
        )
        if done.returncode == -signal.SIGXCPU:
            return [f"over {LIMIT_SECONDS} s", "", "", ""]
        lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT")]
        if lines == ["RESULT memory"]:
            return [f"over {LIMIT_GB} GB", "", "", ""]
        if not lines:
            return ["failed: " + done.stderr.strip().splitlines()[-1], "", "", ""]
        results.append([float(v) for v in lines[0].split()[1:]])
    seconds, peak, error, effective = np.median(results, 0)
    return [f"{seconds:.2f}", f"{peak:.2f}", f"{error:.2f}", f"{effective:.0%}"]


def scale_table(grid: list[tuple[int, int, int]], seeds: range, names: list[str] | None) -> None:
    """Time, memory, error and sample size as n grows; who was over the limit is not asked again."""
    print(
        f"## scale: one fit on one thread, defaults, median over {len(seeds)} seed(s); at most "
        f"{LIMIT_SECONDS} s of processor time and {LIMIT_GB} GB a fit\n"
    )
    say_why_not_adapt()
    methods = [*OURS, *peers()]
    rows, gave_up = [], {}
    for n, m, d in grid:
        for name in methods:
            if names and name not in names:
                continue
            if n > gave_up.get(name, n):
                cells = [f"over the limit at {gave_up[name]:,}", "", "", ""]
            else:
                cells = measured(name, n, m, d, seeds)
            if cells[0].startswith("over"):
                gave_up[name] = min(n, gave_up.get(name, n))
            rows.append([f"{n:,}", str(m), str(d), name, *cells])
            print(*rows[-1], file=sys.stderr, flush=True)
    head = ["n_train", "n_val", "d", "", "processor s", "GB above data", "error left", "effective"]
    table(head, rows)


def main() -> None:
    """Read the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few seeds, small sizes")
    parser.add_argument("--only", action="append", choices=TABLES)
    parser.add_argument("--seeds", type=int, help="draws per cell of the error table")
    parser.add_argument("--first-seed", type=int, default=0, help="of the error and scale tables")
    parser.add_argument("--most", type=int, default=1_000_000, help="largest n of the scale table")
    parser.add_argument("--least", type=int, default=0, help="smallest n of the scale table")
    parser.add_argument("--repeats", type=int, help="draws per row of the scale table")
    parser.add_argument(
        "--name", action="append", help="only this row of the error and scale tables"
    )
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        name, *numbers = chosen.one
        one_fit(name, *map(int, numbers))
        return
    only = chosen.only or TABLES
    print(f"giw {giw.__version__}, numpy {np.__version__}, Python {platform.python_version()}, "
          f"{os.cpu_count()} cores; `python {Path(__file__).parent.name}/{Path(__file__).name} "
          f"{' '.join(sys.argv[1:])}`\n")  # fmt: skip
    warnings.simplefilter("ignore", giw.weights.EffectiveSampleSizeWarning)
    if {"exact", "speed"} & set(only) and installed("cvxopt"):
        with threadpool_limits(1):
            if "exact" in only:
                exact_table((64, 256) if chosen.quick else (64, 256, 1_000))
            if "speed" in only:
                speed_table(1 if chosen.quick else 3)
    first = chosen.first_seed
    seeds = chosen.seeds or (2 if chosen.quick else 10)
    if "error" in only:
        sizes = [20, 200] if chosen.quick else [20, 200, 1_000]
        error_table(range(first, first + seeds), sizes, [1, 10], 1_000, chosen.name)
    if "scale" in only:
        grid = [(256, 20, 1), (256, 200, 10), (1_000, 200, 10), (1_000, 1_000, 10)]
        grid += [(1_000, 200, 100), (10_000, 200, 10), (10_000, 1_000, 100)]
        grid += [(100_000, 200, 10), (100_000, 1_000, 100), (1_000_000, 200, 10)]
        most = 1_000 if chosen.quick else chosen.most
        repeats = chosen.repeats or (1 if chosen.quick else 3)
        kept = [cell for cell in grid if chosen.least <= cell[0] <= most]
        scale_table(kept, range(first, first + repeats), chosen.name)


if __name__ == "__main__":
    main()
