"""Does ReweightedClassifier help on real tables, and do the intervals of estimate_risk cover?

Three tables that scikit-learn brings along, nine shifts made by hand, 50 draws each. Every draw
deals the rows anew into training, validation and test data; training data then lose subclasses
(support shift), labels (noise) or most of one class (class-prior shift). Compared on the same draw:
the model fitted to training data, to validation data, to both pooled half and half, and
``giw.ReweightedClassifier`` with its defaults.

Constants of the library were chosen on draws 1000 to 1124, those of the intervals on 5000 to 5099,
and the linear judge of labels on 1200 to 1214. A first version, without the second look at losses,
was measured on draws 0 to 49; this reports draws from 2000 on, by which nothing was chosen.

    python benchmarks/practice.py                      everything, hours on one core
    python benchmarks/practice.py --jobs 8             the same in eight processes of one thread
    python benchmarks/practice.py --quick              two draws a cell, to see that it runs
    python benchmarks/practice.py --csv FILE           rows into a file as they come; called again
                                                       after a kill, it goes on from them
    python benchmarks/practice.py --base hgb --task wine --shift support "noise 0.2"     some cells
    python benchmarks/practice.py --from-csv FILE      tables from stored rows alone
    python benchmarks/practice.py --coverage           intervals alone, against an exact truth
    python benchmarks/practice.py --time               the stack as a multiple of a plain fit
    python benchmarks/practice.py --stopping           nets with and without early stopping
    python benchmarks/practice.py --ceiling            what knowing the flipped labels would bring
"""

from __future__ import annotations

import argparse
import csv
import io
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import cache
from multiprocessing import Process
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import t
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import giw
from giw.estimators.fitting import fit_weighted

SHIFTS = {  # what happens to the training data
    "none": {},
    "support": {"support": True},
    "noise 0.2": {"noise": 0.2},
    "noise 0.4": {"noise": 0.4},
    "prior": {"prior": True},
    "support + noise 0.2": {"support": True, "noise": 0.2},
    "support + noise 0.4": {"support": True, "noise": 0.4},
    "prior + noise 0.2": {"prior": True, "noise": 0.2},
    "support + prior": {"support": True, "prior": True},
}
VALIDATION = {"cancer": 30, "wine": 20, "digits": 40}  # labels from the test distribution
DROPPED = 0.4  # share of each class's subclasses that training lacks under support shift
KEPT = 0.15  # of one class's training rows under class-prior shift
BASES = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
    "forest": RandomForestClassifier(60, random_state=0),
    "hgb": HistGradientBoostingClassifier(random_state=0),  # what is taken if none is given
}
COVERAGE_SEED = 10_000  # first draw of --coverage
BASELINES = ("train", "val", "pooled")
KEY = ("base", "task", "shift", "seed")  # what tells one row from all others


@dataclass(frozen=True)
class Table:
    x: np.ndarray  # (n, d)
    y: np.ndarray  # (n,)
    subclass: np.ndarray  # (n,)


@dataclass(frozen=True)
class Row:
    base: str
    task: str
    shift: str
    seed: int
    train: float
    val: float
    pooled: float
    reweighted: float
    alpha: float
    giw: float  # weight of the candidate in the stack
    recalibrated: float


def tables() -> dict[str, Table]:
    """Breast cancer, wine and digits (odd or even); subclasses are digits, or clusters."""
    found = {}
    for name, load in (("cancer", load_breast_cancer), ("wine", load_wine)):
        x, y = load(return_X_y=True)
        scaled, subclass = StandardScaler().fit_transform(x), np.zeros_like(y)
        for c in np.unique(y):
            rows = np.flatnonzero(y == c)
            subclass[rows] = 2 * c + KMeans(2, n_init=5, random_state=0).fit_predict(scaled[rows])
        found[name] = Table(x, y, subclass)
    x, digit = load_digits(return_X_y=True)
    found["digits"] = Table(x, digit % 2, digit)
    return found


def deal(table: Table, task: str, shift: str, seed: int) -> tuple[np.ndarray, ...]:
    """Training, validation and test data of one draw; half of all rows are test data."""
    rng = np.random.default_rng([seed, list(VALIDATION).index(task), list(SHIFTS).index(shift)])
    how, n, classes = SHIFTS[shift], len(table.y), len(np.unique(table.y))
    order = rng.permutation(n)
    test, val, train = np.split(order, [n // 2, n // 2 + VALIDATION[task]])
    if "support" in how:
        dropped: list[int] = []
        for c in range(classes):
            kinds = np.unique(table.subclass[table.y == c])
            dropped += list(rng.choice(kinds, max(1, int(DROPPED * len(kinds))), replace=False))
        train = train[~np.isin(table.subclass[train], dropped)]
    if "prior" in how:
        rare = rng.integers(classes)
        train = train[(table.y[train] != rare) | (rng.random(len(train)) < KEPT)]
    label = table.y[train].copy()
    flipped = rng.random(len(train)) < how.get("noise", 0.0)
    label[flipped] = (label[flipped] + rng.integers(1, classes, flipped.sum())) % classes
    if len(np.unique(label)) < classes:
        return deal(table, task, shift, seed + 10**6)  # no row of a class was left
    x, y = table.x, table.y
    return x[train], label, x[val], y[val], x[test], y[test]


def measure(base: str, task: str, shift: str, seed: int) -> Row:
    """All methods on one draw."""
    x, y, xv, yv, xt, yt = deal(_tables()[task], task, shift, seed)
    model, n, m = BASES[base], len(y), len(yv)
    half = np.r_[np.full(n, (n + m) / (2 * n)), np.full(m, (n + m) / (2 * m))]
    accuracy = {
        "train": clone(model).fit(x, y).score(xt, yt),
        "val": clone(model).fit(xv, yv).score(xt, yt),
        "pooled": fit_weighted(model, np.r_[x, xv], np.r_[y, yv], half).score(xt, yt),
    }
    clf = giw.ReweightedClassifier(model, random_state=seed).fit(x, y, X_val=xv, y_val=yv)
    return Row(
        base, task, shift, seed, **accuracy, reweighted=clf.score(xt, yt),
        alpha=float(clf.alpha_ or 0), giw=clf.stack_weight_.get("giw", 0.0),
        recalibrated=clf.stack_weight_.get("recalibrated", 0.0),
    )  # fmt: skip


@dataclass(frozen=True)
class CoverageRow:
    base: str
    task: str
    shift: str
    seed: int
    truth: float  # accuracy of the model fitted to training data, on the rows drawn from
    risk_low: float
    risk_high: float
    alpha: float


def measure_coverage(base: str, task: str, shift: str, seed: int) -> CoverageRow:
    """One interval where the truth is known exactly.

    The test distribution is the test rows themselves, each as likely as the other, and validation
    points are drawn from them with replacement. Accuracy on a few dozen test rows that stand for a
    larger table would itself be an estimate, and miss or hit by its own error.
    """
    x, y, xv, _, xt, yt = deal(_tables()[task], task, shift, seed)
    model = clone(BASES[base]).fit(x, y)
    rows = np.random.default_rng([seed, 1]).integers(len(yt), size=len(xv))
    risk = giw.estimate_risk(model, x, y, xt[rows], yt[rows], random_state=seed)
    return CoverageRow(
        base, task, shift, seed, truth=model.score(xt, yt),
        risk_low=risk.interval[0], risk_high=risk.interval[1],
        alpha=risk.alpha,
    )  # fmt: skip


@cache
def _tables() -> dict[str, Table]:
    """Once in every process."""
    return tables()


def one_thread() -> None:
    """Processes share the cores; each is alone on its own."""
    torch.set_num_threads(1)
    threadpool_limits(1)
    warnings.simplefilter("ignore", UserWarning)  # shrunk weights are in the rows


def each(function: Callable[..., Any], work: list[tuple], jobs: int, path: Path | None) -> list:
    """Rows of all pieces of work; a csv file keeps each as it is done, and is gone on with."""
    one_thread()
    rows = [] if path is None else stored(path)
    done = {tuple(str(row[key]) for key in KEY) for row in rows}
    wanted = {tuple(map(str, item)): item for item in work}
    rows = [row for row in rows if tuple(str(row[key]) for key in KEY) in wanted]
    left = [item for name, item in wanted.items() if name not in done]
    if len(left) < len(work):
        print(f"{len(work) - len(left)} of {len(work)} rows are in {path}", flush=True)
    with ProcessPoolExecutor(jobs, initializer=one_thread) if jobs > 1 else nullcontext() as pool:
        if pool is None:
            found: Iterator = (function(*item) for item in left)
        else:
            futures = [pool.submit(function, *item) for item in left]
            found = (item.result() for item in as_completed(futures))
        for row in found:
            rows.append(asdict(row))
            if path is not None:
                append(path, rows[-1])
    order = {name: place for place, name in enumerate(wanted)}
    return sorted(rows, key=lambda row: order[tuple(str(row[key]) for key in KEY)])


def stored(path: Path) -> list[dict]:
    """Whole rows of a csv file; a last line that was cut off is taken away from it."""
    if not path.exists():
        return []
    text = path.read_text()
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        beside = path.with_name(f"{path.name}.part")
        beside.write_text(whole)
        beside.replace(path)
    return list(csv.DictReader(whole.splitlines()))


def append(path: Path, row: dict) -> None:
    """One line more in one write, with the heading if it is the first."""
    new = not path.exists() or path.stat().st_size == 0
    if not new:
        with path.open() as file:
            heading = file.readline().strip().split(",")
        if heading != list(row):
            raise SystemExit(f"{path} has other columns ({', '.join(heading)}); take a new file")
    lines = io.StringIO()
    writer = csv.DictWriter(lines, list(row), lineterminator="\n")
    if new:
        writer.writeheader()
    writer.writerow({k: round(v, 5) if isinstance(v, float) else v for k, v in row.items()})
    with path.open("a") as file:
        file.write(lines.getvalue())


def interval(difference: np.ndarray) -> tuple[float, float, float]:
    """Mean and 95 % interval of paired differences."""
    k = len(difference)
    half = t.ppf(0.975, k - 1) * difference.std(ddof=1) / np.sqrt(k)
    return difference.mean(), difference.mean() - half, difference.mean() + half


def span(numbers: set[int]) -> str:
    """One number, or from the least to the most."""
    return " to ".join(str(number) for number in sorted({min(numbers), max(numbers)}))


def report(rows: list[dict]) -> None:
    """Tables in Markdown, and the claims with their counts."""
    bases = list(dict.fromkeys(row["base"] for row in rows))
    for base in bases:
        mine = [row for row in rows if row["base"] == base]
        worse, better, hard = [], 0, 0
        print(f"\n### {base}, accuracy in percent\n")
        print("| task | shift | train | validation | pooled | reweighted | minus best (95 %) "
              "| above all |")  # fmt: skip
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
        cells, draws = 0, set()
        for task in VALIDATION:
            for shift in SHIFTS:
                cell = [row for row in mine if row["task"] == task and row["shift"] == shift]
                if len(cell) < 2:
                    continue
                draws.add(len(cell))
                cells += 1
                value = {
                    key: 100 * np.array([float(row[key]) for row in cell])
                    for key in (*BASELINES, "reweighted")
                }
                best = max(BASELINES, key=lambda key: value[key].mean())
                mean, low, high = interval(value["reweighted"] - value[best])
                above = all(interval(value["reweighted"] - value[key])[1] > 0 for key in BASELINES)
                if high < -1:
                    worse.append(f"{task}, {shift}")
                if shift.startswith("support + noise"):
                    hard, better = hard + 1, better + above
                means = " | ".join(f"{value[key].mean():.1f}" for key in value)
                print(
                    f"| {task} | {shift} | {means} | {mean:+.1f} ({low:+.1f} to {high:+.1f}) "
                    f"| {'yes' if above else ''} |"
                )
        if cells:
            print(
                f"\n{span(draws)} draws a cell. Significantly more than 1 point under the best "
                f"baseline: {len(worse)} of {cells} cells{': ' * bool(worse)}{'; '.join(worse)}. "
                f"Support shift plus label noise: significantly above all three in {better} "
                f"of {hard}."
            )


def report_coverage(rows: list[dict]) -> None:
    """How often the intervals hold the truth, and how wide they are."""
    for base in dict.fromkeys(row["base"] for row in rows):
        print(f"\n### {base}, 95 % intervals for the model fitted to training data\n")
        print("| task | shift | inside | covered | width |")
        print("| --- | --- | --- | --- | --- |")
        found, draws = [], 0
        for task in VALIDATION:
            for shift in SHIFTS:
                here = (base, task, shift)
                cell = [row for row in rows if (row["base"], row["task"], row["shift"]) == here]
                if not cell:
                    continue
                draws = len(cell)
                truth, low, high, alpha = (
                    np.array([float(row[key]) for row in cell])
                    for key in ("truth", "risk_low", "risk_high", "alpha")
                )
                covered = float(np.mean((low <= truth) & (truth <= high)))
                found.append(covered)
                print(
                    f"| {task} | {shift} | {alpha.mean():.0%} | {covered:.1%} "
                    f"| {(high - low).mean():.3f} |"
                )
        print(
            f"\n{draws} draws a cell. Covered in {np.mean(found):.1%} of draws, in "
            f"{np.min(found):.1%} in the worst of {len(found)} cells."
        )


def stopping(repeats: int = 10, first_seed: int = 1000) -> None:
    """Accuracy of nets with a fixed number of epochs and with cross-fitted early stopping.

    Draws from 1000 on: this is what the default was decided by.
    """
    print("| task | shift | 50 epochs | early stopping | difference (95 %) | mean epochs |")
    print("| --- | --- | --- | --- | --- | --- |")
    known = tables()
    for task in ("wine", "cancer"):
        for shift in ("none", "support", "support + noise 0.4"):
            score, epochs = [], []
            for seed in range(first_seed, first_seed + repeats):
                x, y, xv, yv, xt, yt = deal(known[task], task, shift, seed)
                pair = [
                    giw.GIWClassifier(early_stopping=stop, random_state=seed).fit(
                        x, y, X_val=xv, y_val=yv
                    )
                    for stop in (False, True)
                ]
                score.append([100 * clf.score(xt, yt) for clf in pair])
                epochs.append(pair[1].n_epochs_)
            fixed, stopped = np.array(score).T
            mean, low, high = interval(stopped - fixed)
            print(
                f"| {task} | {shift} | {fixed.mean():.1f} | {stopped.mean():.1f} | "
                f"{mean:+.1f} ({low:+.1f} to {high:+.1f}) | {np.mean(epochs):.0f} |",
                flush=True,
            )


def ceiling(repeats: int = 25, first_seed: int = 1000) -> None:
    """Support shift plus label noise: how well weights tell flipped labels, and what is lost.

    "Told" has the weights of somebody who knows which training labels are flipped. Draws from 1000
    on: the library was made on them.
    """
    model = BASES["logistic"]
    print("| task | shift | validation | reweighted | told | weight of right labels | of flipped |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for task, table in _tables().items():
        truth = {row.tobytes(): label for row, label in zip(table.x, table.y, strict=True)}
        for shift in ("support + noise 0.2", "support + noise 0.4"):
            found = []
            for seed in range(first_seed, first_seed + repeats):
                x, y, xv, yv, xt, yt = deal(table, task, shift, seed)
                right = np.array([truth[a.tobytes()] == b for a, b in zip(x, y, strict=True)])
                clf, told = (
                    giw.ReweightedClassifier(model, weights=weights, random_state=seed).fit(
                        x, y, X_val=xv, y_val=yv
                    )
                    for weights in ("classifier", lambda *_, right=right: right.astype(float))
                )
                alone = clone(model).fit(xv, yv)
                scores = [100 * fitted.score(xt, yt) for fitted in (alone, clf, told)]
                found.append([*scores, clf.weight_[right].mean(), clf.weight_[~right].mean()])
            values = np.array(found)
            gap, low, high = interval(values[:, 2] - values[:, 0])
            mean = values.mean(axis=0)
            print(
                f"| {task} | {shift} | {mean[0]:.1f} | {mean[1]:.1f} | {mean[2]:.1f}: {gap:+.1f} "
                f"({low:+.1f} to {high:+.1f}) | {mean[3]:.2f} | {mean[4]:.2f} |",
                flush=True,
            )


def timing(sizes: tuple[int, ...] = (5_000, 50_000), m: int = 100) -> None:
    """Processor seconds of a plain fit to both tables, and of the stack as a multiple of it."""
    print("| estimator | training rows | plain fit | stack | multiple |")
    print("| --- | --- | --- | --- | --- |")
    for n in sizes:
        x, y = make_classification(n + m, 20, n_informative=10, random_state=0)
        x[n:] += 0.3
        for base in (HistGradientBoostingClassifier(random_state=0), LogisticRegression()):
            clf = giw.ReweightedClassifier(base, random_state=0)
            plain = min(_seconds(lambda base=base, x=x, y=y: base.fit(x, y)) for _ in range(3))
            full = _seconds(
                lambda clf=clf, x=x, y=y, n=n: clf.fit(x[:n], y[:n], X_val=x[n:], y_val=y[n:])
            )
            print(
                f"| {type(base).__name__} | {n:,} | {plain:.3f} s | {full:.2f} s "
                f"| {full / plain:.1f} |",
                flush=True,
            )


def side_by_side(n: int = 5_000, m: int = 100) -> None:
    """Wall time of boosted trees with two processes, and beside two busy ones, as ratios."""
    x, y = make_classification(n + m, 20, n_informative=10, random_state=0)

    def wall(**settings: Any) -> float:
        clf = giw.ReweightedClassifier(random_state=0, **settings)
        start = time.perf_counter()
        clf.fit(x[:n], y[:n], X_val=x[n:], y_val=y[n:])
        return time.perf_counter() - start

    wall(n_jobs=2)  # processes start once
    alone, two = wall(), wall(n_jobs=2)
    busy = [Process(target=_spin, daemon=True) for _ in range(2)]
    for process in busy:
        process.start()
    beside = wall()
    for process in busy:
        process.terminate()
    print(
        f"\nBoosted trees, {n:,} rows, wall time: {alone:.1f} s; n_jobs=2 is {alone / two:.2f} "
        f"times faster; beside two busy processes it takes {beside / alone:.2f} times as long."
    )


def _spin() -> None:
    while True:
        pass


def _seconds(fit: Callable[[], Any]) -> float:
    start = time.process_time()
    fit()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two draws a cell, logistic only")
    parser.add_argument("--repeats", type=int, help="draws a cell: 50, and 200 for --coverage")
    parser.add_argument("--first-seed", type=int)
    parser.add_argument("--base", nargs="*", default=list(BASES), choices=list(BASES))
    parser.add_argument("--task", nargs="*", default=list(VALIDATION), choices=list(VALIDATION))
    parser.add_argument("--shift", nargs="*", default=list(SHIFTS), choices=list(SHIFTS))
    parser.add_argument("--jobs", type=int, default=1, help="processes of one thread each")
    parser.add_argument("--csv", type=Path, help="append rows here, go on from them")
    parser.add_argument("--from-csv", nargs="*", type=Path, help="report stored rows")
    parser.add_argument("--coverage", action="store_true", help="intervals only, exact truth")
    parser.add_argument("--time", action="store_true", help="time only")
    parser.add_argument("--stopping", action="store_true", help="early stopping of nets only")
    parser.add_argument("--ceiling", action="store_true", help="weights that know the flips")
    options = parser.parse_args()
    one_thread()
    if options.ceiling:
        return ceiling(2) if options.quick else ceiling()
    if options.time:
        timing((2_000,), 50) if options.quick else timing()
        return None if options.quick else side_by_side()
    if options.stopping:
        return stopping(2) if options.quick else stopping()
    tell = report_coverage if options.coverage else report
    if options.from_csv:
        return tell([row for path in options.from_csv for row in csv.DictReader(path.open())])
    function: Callable[..., Any] = measure_coverage if options.coverage else measure
    first = options.first_seed or (COVERAGE_SEED if options.coverage else 2000)
    repeats = options.repeats or (200 if options.coverage else 50)
    repeats, bases = (2, ["logistic"]) if options.quick else (repeats, options.base)
    work = [
        (base, task, shift, seed)
        for base in bases
        for seed in range(first, first + repeats)
        for task in options.task
        for shift in options.shift
    ]
    return tell(each(function, work, options.jobs, options.csv))


if __name__ == "__main__":
    main()
