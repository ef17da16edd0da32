"""Weight estimators beside their peers: time, peak memory, error against the truth, sample size.

    python benchmarks/weights.py              # everything: about an hour on 2 cores
    python benchmarks/weights.py --quick      # a small version of everything, minutes
    python benchmarks/weights.py --only solver --only error    # some of the tables below

Tables, each printed as Markdown, ours and theirs from the same run on the same machine:

solver  KMM with the paper's problem (n = 256 losses, m = 20), processor seconds from losses to
        weights and relative gap of the objective, beside cvxopt, dense and sparse constraints.
dynamic the same problems by the chain of operations inside a training step: what more steps buy.
error   N(0, I) → N(0.75 e₁, I): what share of the squared error of equal weights is taken away.
rule    when the classifier ratio takes richer functions, on ratios of three kinds.
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
import torch
from threadpoolctl import threadpool_limits

import giw
from loss_shapes import loss_shapes

TABLES = ("solver", "dynamic", "error", "rule", "scale")
SHIFT = 0.75
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


def by_cvxopt(train, val, *, gamma, ridge, upper, thin):
    """The paper's problem as its authors call cvxopt; ``thin`` for sparse constraints."""
    from cvxopt import matrix, solvers, sparse

    n = len(train)
    slack = (np.sqrt(n) - 1) / np.sqrt(n)
    kernel = np.exp(-gamma * (train[:, None] - train) ** 2) + ridge * np.eye(n)
    kappa = n * np.exp(-gamma * (train[:, None] - val) ** 2).mean(1)
    rows = matrix(np.r_[np.ones((1, n)), -np.ones((1, n)), np.eye(n), -np.eye(n)])
    limits = matrix(np.r_[n * (1 + slack), n * (slack - 1), upper * np.ones(n), np.zeros(n)])
    solved = solvers.qp(
        matrix(kernel),
        matrix(-kappa),
        sparse(rows) if thin else rows,
        limits,
        options={"show_progress": False},
    )
    return np.array(solved["x"])[:, 0], kernel, kappa


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


def solver_table(seeds: int) -> None:
    """KMM with the paper's problem, ours beside cvxopt."""
    print("## solver: the paper's KMM, n = 256, m = 20, one dimension, ridge 1e-5, upper 50\n")
    if not installed("cvxopt"):
        return
    torch.set_num_threads(1)
    from giw.weights.kernels import paper_gamma, scale_free_gamma
    from giw.weights.quadratic import sum_bounds
    from giw.weights.small import pivoted_cholesky, small_interior_point

    rows, worst, ratios = [], 0.0, []
    for rule, rule_gamma in (("paper", paper_gamma), ("median", scale_free_gamma)):
        for name in loss_shapes(0):
            gaps, ours, dense, thin = [], [], [], []
            for seed in range(seeds):
                train, val = loss_shapes(seed)[name]
                gamma = rule_gamma(train)
                problem = {"gamma": gamma, "ridge": 1e-5, "upper": 50.0}
                exact, kernel, kappa = by_cvxopt(train, val, **problem, thin=True)
                features, _ = pivoted_cholesky(train[:, None], gamma=gamma)
                raw = small_interior_point(
                    features, kappa, ridge=1e-5, upper=50.0, bounds=sum_bounds(256), tolerance=1e-4
                )
                least = 0.5 * exact @ kernel @ exact - kappa @ exact
                gaps.append((0.5 * raw @ kernel @ raw - kappa @ raw - least) / abs(least))
                with warnings.catch_warnings(), threadpool_limits(1):
                    warnings.simplefilter("ignore", giw.weights.EffectiveSampleSizeWarning)
                    seconds = cpu_seconds(
                        partial(giw.kmm, train, val, **problem, tolerance=1e-4),
                        partial(by_cvxopt, train, val, **problem, thin=False),
                        partial(by_cvxopt, train, val, **problem, thin=True),
                    )
                for times, value in zip((ours, dense, thin), seconds, strict=True):
                    times.append(value)
            faster = np.divide(dense, ours), np.divide(thin, ours)
            ratios.append([np.median(f) for f in faster])
            worst = max(worst, *gaps)
            rows.append(
                [name, rule, f"{max(gaps):.1e}", f"{1e3 * np.median(ours):.2f}"]
                + [f"{1e3 * np.median(t):.1f} ({np.median(f):.0f} ×)"
                   for t, f in zip((dense, thin), faster, strict=True)]
            )  # fmt: skip
    table(["losses", "γ", "largest gap", "giw, ms", "cvxopt dense, ms", "cvxopt sparse, ms"], rows)
    middle, least = np.median(ratios, 0), np.min(ratios, 0)
    print(
        f"largest relative gap {worst:.1e}; faster than cvxopt with dense constraints "
        f"{middle[0]:.0f} × (median over rows; least {least[0]:.0f} ×), with sparse ones "
        f"{middle[1]:.0f} × (least {least[1]:.1f} ×)\n",
        flush=True,
    )


def dynamic_table(seeds: int) -> None:
    """The fixed chain of operations inside a training step: what more steps buy."""
    from giw.weights import dynamic_kmm
    from giw.weights.kernels import paper_gamma, scale_free_gamma
    from giw.weights.quadratic import DenseKernel, accelerated_gradient, interior_point, sum_bounds

    print("## dynamic: the same problems inside a training step\n")
    torch.set_num_threads(1)
    losses = [shape for seed in range(seeds) for shape in loss_shapes(seed).values()]
    rules = (paper_gamma, scale_free_gamma)
    gamma = torch.tensor([rule(x) for rule in rules for x, _ in losses])[:, None, None]
    train, val = (  # (p, n), (p, m)
        torch.tensor(np.array(len(rules) * part)) for part in zip(*losses, strict=True)
    )
    kernel = torch.exp(-gamma * (train[..., None] - train[..., None, :]) ** 2)
    kappa = 256 * torch.exp(-gamma * (train[..., None] - val[..., None, :]) ** 2).mean(-1)
    problem = {"upper": 50.0, "bounds": sum_bounds(256)}
    exact = interior_point(DenseKernel(kernel), kappa, ridge=1e-5, **problem)
    kernel = kernel + 1e-5 * torch.eye(256, dtype=kernel.dtype)

    def value(w):
        return 0.5 * (w * (kernel @ w[..., None])[..., 0]).sum(-1) - (kappa * w).sum(-1)

    least, start = value(exact), value(torch.ones_like(kappa))
    one, member = train[0].float(), torch.ones(20)
    rows = []
    for n_steps in (30, 60, 120, 240, 1_000):
        w = accelerated_gradient(kernel, kappa, n_steps=n_steps, **problem)
        above = value(w) - least
        (seconds,) = cpu_seconds(partial(dynamic_kmm, one, val[0].float(), member, n_steps=n_steps))
        gap, fair = above / least.abs(), above / torch.maximum(least.abs(), start - least)
        parts = (part for kind in (gap, fair) for part in (kind.median(), kind.max()))
        rows.append([f"{n_steps:,}", f"{1e3 * seconds:.1f}", *(f"{part:.0e}" for part in parts)])
    head = ["steps", "ms", "gap / objective, median", "largest", "gap / larger, median", "largest"]
    table(head, rows)


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


# ---- rule


def narrower(seed: int, n: int, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """N(0, I) → N(0, 0.36 I) in two dimensions: a ratio that needs squares."""
    rng = np.random.default_rng(seed)
    train, val = rng.normal(size=(n, 2)), 0.6 * rng.normal(size=(m, 2))
    return train, val, np.exp(-0.5 * (train**2).sum(1) * (1 / 0.36 - 1)) / 0.36


def two_bumps(seed: int, n: int, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """N(0, 2.25) → N(±1.2, 0.25): a ratio that needs kernel functions."""
    rng = np.random.default_rng(seed)
    train = 1.5 * rng.normal(size=(n, 1))
    val = np.where(rng.random((m, 1)) < 0.5, -1.2, 1.2) + 0.5 * rng.normal(size=(m, 1))
    x = train[:, 0]
    bumps = np.exp(-2 * (x - 1.2) ** 2) + np.exp(-2 * (x + 1.2) ** 2)
    return train, val, 1.5 * bumps / np.exp(-(x**2) / 4.5)


def rule_table(seeds: range, n: int) -> None:
    """The classifier's rule for richer functions, beside taking the lowest held-out loss."""
    from giw.weights.classifier import HeldOut

    print(
        f"## rule: error left by the classifier ratio, n_train = {n}, seeds {seeds[0]} to "
        f"{seeds[-1]}, median (mean); in brackets how often linear, quadratic, kernel functions\n"
    )
    truths = {
        "shift, d = 1": partial(gaussian_pair, d=1),
        "shift, d = 10": partial(gaussian_pair, d=10),
        "narrower, d = 2": narrower,
        "two bumps, d = 1": two_bumps,
    }
    one_error = HeldOut.clearly_above
    rows = []
    for name, draw in truths.items():
        for m in (20, 200):
            cells = []
            for rule in (one_error, lambda self, other: bool(self.mean() > other.mean())):
                HeldOut.clearly_above = rule
                left, chosen = [], []
                for seed in seeds:
                    train, val, truth = draw(seed, n, m)
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        found = giw.ClassifierRatio().fit(train, val)
                    left.append(error_left(found.weight_, truth))
                    chosen.append(found.features_)
                often = [str(chosen.count(kind)) for kind in ("linear", "quadratic", "kernel")]
                cells.append(f"{np.median(left):.2f} ({np.mean(left):.2f}) [{', '.join(often)}]")
            rows.append([name, str(m), *cells])
    HeldOut.clearly_above = one_error
    table(["", "n_val", "better by one standard error", "lowest loss"], rows)


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
    print(f"giw {giw.__version__}, torch {torch.__version__}, Python {platform.python_version()}, "
          f"{os.cpu_count()} cores; `python {Path(__file__).parent.name}/{Path(__file__).name} "
          f"{' '.join(sys.argv[1:])}`\n")  # fmt: skip
    if "solver" in only:
        solver_table(1 if chosen.quick else 3)
    if "dynamic" in only:
        dynamic_table(1 if chosen.quick else 3)
    first = chosen.first_seed
    seeds = chosen.seeds or (2 if chosen.quick else 10)
    if "error" in only:
        sizes = [20, 200] if chosen.quick else [20, 200, 1_000]
        error_table(range(first, first + seeds), sizes, [1, 10], 1_000, chosen.name)
    if "rule" in only:
        rule_table(range(first, first + seeds), 1_000)
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
