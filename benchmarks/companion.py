"""Prediction sets, which rows to label, and the check of new rows: what they are worth.

On the natural tables of benchmarks/natural.py: a source table of at most 1,000 rows, 50 to 200
labelled rows of the target, boosted trees of 20 rounds. Fits are kept in a folder, a file for each
job, so that a run that was stopped goes on where it was.

    python benchmarks/companion.py fit --data DIR --out OUT                  all jobs, an hour
    python benchmarks/companion.py fit --data DIR --out OUT --shard 3/16     every sixteenth job
    python benchmarks/companion.py fit --data DIR --out OUT --half choose    five tables
    python benchmarks/companion.py show --out OUT                            every figure
"""

# ruff: noqa: E402  (threads are limited before numpy is loaded)
from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

import giw
import natural_tasks
from giw.diagnosis.drift import drift
from giw.estimators.fitting import fit_weighted, predictions
from giw.estimators.limits import Reference, class_sets, intervals
from giw.judging.gain import expected_gain
from giw.tables import Encoder

natural_tasks.MOST_SOURCE = 1_000
LABELS = 50  # asked for, in the comparison of ways to choose them
ROUNDS = 20  # of boosted trees
NIGHTS, NIGHT_ROWS = 10, 200  # of each draw, without and with a shift of each size
SIZES = (0.0, 0.25, 0.5, 1.0)  # by which a column moves, in its standard deviations
LEVEL = 0.9  # wanted coverage
HALF = ("covertype", "diabetes", "office", "wine", "flights")  # names of tasks to choose by


@dataclass(frozen=True)
class Job:
    """One draw of a task: a stack for prediction sets, labels chosen in several ways, or nights."""

    what: str  # sets, labels or nights
    task: str
    n_val: int
    draw: int

    @property
    def file(self) -> str:
        """Name of its results."""
        return f"{self.what}_{self.task}_{self.n_val}_{self.draw}.npz"


def jobs_of(tasks: dict[str, Any], half: str, draws: int) -> list[Job]:
    """The first draw of everything comes first."""
    files = natural_tasks.CHOOSE if half == "choose" else natural_tasks.REPORT
    files = natural_tasks.CHOOSE + natural_tasks.REPORT if half == "both" else files
    names = [name for name, task in tasks.items() if task["file"].split(".")[0] in files]
    kinds = (("sets", 50), ("labels", 50), ("sets", 200), ("nights", 100), ("gain", 50))
    return [
        Job(what, name, n_val, draw)
        for draw in range(draws)
        for what, n_val in kinds
        for name in names
        if (what not in ("labels", "gain") or tasks[name]["kind"] == "classification")
        and (what not in ("nights", "gain") or draw < 2)
    ]


def stack(data: natural_tasks.Drawn, X_val: Any, y_val: Any, seed: int) -> Any:
    """A stack of boosted trees."""
    if data.classifies:
        model = giw.ReweightedClassifier(
            HistGradientBoostingClassifier(max_iter=ROUNDS, random_state=0), random_state=seed
        )
    else:
        model = giw.ReweightedRegressor(
            HistGradientBoostingRegressor(max_iter=ROUNDS, random_state=0), random_state=seed
        )
    return model.fit(data.X, data.y, X_val=X_val, y_val=y_val)


def of_sets(data: natural_tasks.Drawn, seed: int) -> dict[str, Any]:
    """Left-out and test predictions of the stack, and of either table alone."""
    model = stack(data, data.X_val, data.y_val, seed)
    classes, left = getattr(model, "classes_", None), model.left_out_
    y_val, y_test = data.y_val, data.y_test
    if classes is not None:
        y_val = np.searchsorted(classes, y_val)
        y_test = np.where(
            np.isin(y_test, classes), np.searchsorted(classes, np.minimum(y_test, classes[-1])), -1
        )
    alone = fit_weighted(model.estimator, data.X, data.y, None)
    return {
        "left": left.mixed, "y_val": y_val, "test": model._predictions(data.X_test),
        "y_test": y_test, "outside": model.outside(data.X_test),
        "judged": left.judged, "weight": model.weight_, "inside": model.split_.inside,
        "test_training": predictions(alone, data.X_test, classes), **stack_alone(data, seed),
    }  # fmt: skip


def of_gain(data: natural_tasks.Drawn, seed: int) -> dict[str, Any]:
    """What fifty more labels are expected to add, to be held against what they did."""
    model = giw.ReweightedClassifier(
        HistGradientBoostingClassifier(max_iter=ROUNDS, random_state=0), random_state=seed
    )
    found = expected_gain(model, data.X, data.y, data.X_val, data.y_val, LABELS, random_state=seed)
    gain, (low, high) = found if found is not None else (np.nan, (np.nan, np.nan))
    return {"gain": gain, "low": low, "high": high}


def of_nights(data: natural_tasks.Drawn, seed: int) -> dict[str, Any]:
    """P-values of nights without shift, and with one column moved by three sizes."""
    reference, rng = Reference.of(data.X, data.X_val), np.random.default_rng([seed, 2])
    numbers = [c for c in data.X if pd.api.types.is_numeric_dtype(data.X[c])
               and data.X_test[c].nunique() > 2]  # fmt: skip
    p_value = np.full((len(SIZES), NIGHTS), np.nan)
    for night in range(NIGHTS):
        # without replacement: copies in a night would be news
        rows = data.X_test.iloc[rng.permutation(len(data.X_test))[:NIGHT_ROWS]]
        rows = rows.reset_index(drop=True)
        for j, size in enumerate(SIZES):
            if size and not numbers:
                continue
            moved = rows
            if size:
                column = numbers[rng.integers(len(numbers))]
                spread = float(data.X_test[column].std())
                moved = rows.assign(**{column: rows[column].astype(float) + size * spread})
            p_value[j, night] = drift(reference, moved, random_state=night).p_value
    return {"p_value": p_value}


def stack_alone(data: natural_tasks.Drawn, seed: int) -> dict[str, Any]:
    """Left-out predictions of validation rows by a fit to other validation rows alone."""
    kind = HistGradientBoostingClassifier if data.classifies else HistGradientBoostingRegressor
    rng, m = np.random.default_rng(seed), len(data.y_val)
    fold = rng.permutation(np.arange(m) % 5)
    classes = np.unique(np.r_[data.y, data.y_val]) if data.classifies else None

    def fitted(rows: Any, X: Any) -> Any:
        few = kind(max_iter=ROUNDS, min_samples_leaf=min(20, max(m // 10, 2)), random_state=0)
        y = data.y_val[rows]
        if classes is not None and len(np.unique(y)) == 1:
            return np.repeat((classes == y[0])[None].astype(float), len(X), axis=0)
        return predictions(few.fit(data.X_val.iloc[rows], y), X, classes)

    first = fitted(np.arange(m), data.X_test)
    left = np.zeros((m, *first.shape[1:]))
    for k in range(5):
        left[fold == k] = fitted(np.flatnonzero(fold != k), data.X_val.iloc[fold == k])
    return {"left_alone": left, "test_alone": first}


def of_labels(data: natural_tasks.Drawn, seed: int) -> dict[str, Any]:
    """Test accuracy after fifty more labels, chosen in several ways from a pool of a thousand."""
    pool, test = np.arange(len(data.y_test)) % 2 == 0, np.arange(len(data.y_test)) % 2 == 1
    X_pool, y_pool = data.X_test[pool].reset_index(drop=True), data.y_test[pool]
    X_test, y_test = data.X_test[test], data.y_test[test]
    before = stack(data, data.X_val, data.y_val, seed)
    rng = np.random.default_rng([seed, 1])
    found = {"before": float((before.predict(X_test) == y_test).mean())}
    found["left_out"] = before.left_out_score_["stack"]
    for name, rows in choices(before, data, X_pool, rng).items():
        X_val = pd.concat([data.X_val, X_pool.iloc[rows]], ignore_index=True)
        y_val = np.r_[data.y_val, y_pool[rows]]
        after = stack(data, X_val, y_val, seed)
        found[name] = float((after.predict(X_test) == y_test).mean())
    return found


def choices(model: Any, data: natural_tasks.Drawn, X_pool: Any, rng: np.random.Generator) -> Any:
    """Rows of the pool by each way."""
    probability = model.predict_proba(X_pool)
    ordered = np.sort(probability, axis=1)
    margin = ordered[:, -1] - ordered[:, -2]
    random = rng.permutation(len(margin))[:LABELS]
    z = Encoder().fit(data.X, data.X_val).transform(X_pool)
    groups = KMeans(LABELS, n_init=1, random_state=0).fit(z)
    rest = np.setdiff1d(np.argsort(margin), random[: LABELS // 2], assume_unique=True)
    rest = rest[np.argsort(margin[rest])][: LABELS // 2]
    # one at random of each of fifty equal parts of the pool, in the order of what is predicted
    order = np.lexsort((margin, groups.labels_, probability.argmax(axis=1)))
    spread = np.array([rng.choice(part) for part in np.array_split(order, LABELS)])
    return {
        "random": random,
        "unsure": np.argsort(margin)[:LABELS],
        "first": giw.label_first(model, data.X, X_pool, LABELS, random_state=0),
        "half unsure": np.r_[random[: LABELS // 2], rest],
        "spread": spread,
    }


def fit(jobs: list[Job], folder: Path, out: Path, limit: float) -> None:
    """Fit what is not in the folder yet."""
    tasks, begin = natural_tasks.tasks_of(folder), time.time()
    out.mkdir(parents=True, exist_ok=True)
    for job in jobs:
        if (out / job.file).exists() or time.time() - begin > limit:
            continue
        drawn = natural_tasks.Job(job.task, "natural", "trees", job.n_val, job.draw)
        data = natural_tasks.draw(folder, tasks[job.task], drawn)
        if data is None:
            continue
        started = time.time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = globals()[f"of_{job.what}"](data, job.draw)
        part = out / f".{os.getpid()}.npz"
        np.savez_compressed(part, **found)
        part.replace(out / job.file)
        print(f"{time.time() - started:.0f} s: {job}", file=sys.stderr, flush=True)


def stored(out: Path, what: str) -> Any:
    """Half, task, number of validation rows and contents of each file."""
    for path in sorted(out.glob(f"{what}_*.npz")):
        task, n_val, _ = path.stem.removeprefix(f"{what}_").rsplit("_", 2)
        half = "choose" if task.startswith(HALF) else "report"
        with np.load(path) as file:
            yield {"half": half, "task": task, "n_val": int(n_val)}, dict(file)


def show_labels(out: Path) -> None:
    """Accuracy after fifty more labels: means over draws, then over tasks."""
    rows = [key | {name: float(v) for name, v in found.items()}
            for key, found in stored(out, "labels")]  # fmt: skip
    for half, part in pd.DataFrame(rows).groupby("half"):
        mean = part.drop(columns=["half", "n_val"]).groupby("task").mean()
        gain = mean.drop(columns=["before", "left_out"]).sub(mean["random"], axis=0)
        said = pd.DataFrame({"above random": gain.mean(), "error": gain.sem(), "worst": gain.min()})
        draws = part.groupby("task").size()
        print(f"\n### labels, {half}: {len(mean)} tasks, {draws.min()} to {draws.max()} draws\n")
        print((100 * mean).round(1).to_string())
        print((100 * said).round(2).to_string())
        alone = 100 * (mean["random"] - mean["before"]).mean()
        print(f"fifty random labels on top of fifty: {alone:+.2f} points")


def sets_by(found: dict[str, Any]) -> dict[str, Any]:
    """Sets of test rows in each way; of numbers intervals."""
    y, left, test = found["y_val"], found["left"], found["test"]
    make = class_sets if test.ndim == 2 else intervals
    ways = {
        "stack": make(test, left, y, LEVEL),
        "validation alone": make(found["test_alone"], found["left_alone"], y, LEVEL),
    }
    if test.ndim == 1:
        return ways
    m = len(y)
    loss, own = found["judged"][:-m], found["judged"][-m:]
    for share in (0.0, 0.5, 1.0):
        # training rows count like share * m more rows, spread by their weights
        score = -np.expm1(-np.r_[own, loss])
        weight = np.r_[np.ones(m), share * m * found["weight"] / found["weight"].sum()]
        order = np.argsort(score)
        at = np.searchsorted(np.cumsum(weight[order]), LEVEL * (weight.sum() + 1))
        limit = score[order][at] if at < len(order) else np.inf
        said = found["test_training"]
        top = said.argmax(axis=1)[:, None] == np.arange(said.shape[1])
        name = f"training alone, its rows as {share:g} m"
        ways[name] = top | (1 - said <= limit)
    return ways


def show_sets(out: Path) -> None:
    """Coverage and size of sets: means over draws, then over tasks."""
    rows = []
    for key, found in stored(out, "sets"):
        y, gone = found["y_test"], found["outside"]
        for way, made in sets_by(found).items():
            if made.dtype == bool:
                right = (y >= 0) & made[np.arange(len(y)), np.maximum(y, 0)]
                size, kind = made.sum(axis=1), "classes"
            else:
                right = (y >= made[:, 0]) & (y <= made[:, 1])
                size, kind = (made[:, 1] - made[:, 0]) / y.std(), "numbers"
            rows.append(key | {
                "kind": kind, "way": way, "coverage": 100 * right.mean(), "size": size.mean(),
                "outside": 100 * gone.mean(),
                "inside rows": 100 * right[~gone].mean() if not gone.all() else np.nan,
                "outside rows": 100 * right[gone].mean() if gone.any() else np.nan,
            })  # fmt: skip
    table = pd.DataFrame(rows)
    cell = table.groupby(["half", "kind", "n_val", "way", "task"]).mean(numeric_only=True)
    each = cell.groupby(["half", "kind", "n_val", "way"])
    said = each.mean().join(each["coverage"].agg(["min", "max"]))
    print("\n### sets at 90 %: means over tasks; least and greatest coverage of a task\n")
    print(said.round(2).to_string())
    high = cell[(cell.coverage > 94) & (cell.index.get_level_values("way") == "stack")]
    print("\nabove 94 %:\n" + high[["coverage", "size"]].round(2).to_string())


def show_gain(out: Path) -> None:
    """Expected beside actual gains of fifty random labels, draw by draw."""
    rows = []
    for key, found in stored(out, "labels"):
        rows.append(key | {"actual": float(found["random"] - found["before"])})
    actual = pd.DataFrame(rows).groupby(["half", "task"])["actual"].mean()
    expected = pd.DataFrame([key | {k: float(v) for k, v in found.items()}
                             for key, found in stored(out, "gain")])  # fmt: skip
    both = expected.join(actual, on=["half", "task"]).dropna()
    both["held"] = (both.low <= both.actual) & (both.actual <= both.high)
    print("\n### gain of fifty labels: expected, and what they added in the mean of a task\n")
    print((100 * both.groupby(["half", "task"])[["gain", "low", "high", "actual", "held"]].mean())
          .round(1).to_string())  # fmt: skip
    print((100 * both.groupby("half")[["gain", "actual", "held"]].mean()).round(1).to_string())


def show_nights(out: Path) -> None:
    """Alarms of nights without shift, and nights until the first alarm of a shift."""
    rows = []
    for key, found in stored(out, "nights"):
        for size, p_value in zip(SIZES, found["p_value"], strict=True):
            if np.isnan(p_value).any():
                continue
            for level in (0.01, 0.05):
                alarm = p_value <= level
                first = np.argmax(alarm) + 1 if alarm.any() else np.inf
                rows.append(key | {"size": size, "level": level, "nights": len(alarm),
                                   "alarms": alarm.mean(), "first": first})  # fmt: skip
    table = pd.DataFrame(rows)
    for (half, level, size), part in table.groupby(["half", "level", "size"]):
        share, first = 100 * part.alarms.mean(), part["first"]
        print(
            f"{half}, level {level:g}, column moved by {size:g}: {share:.1f} % of "
            f"{part.nights.sum()} nights alarm; first alarm in the median after "
            f"{first.median():g} nights, within ten in {100 * (first <= NIGHTS).mean():.0f} % of "
            f"{len(part)} draws; most alarms of a draw {100 * part.alarms.max():.0f} %"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("step", choices=("fit", "show"))
    parser.add_argument("--data", type=Path, default=Path("data/natural"))
    parser.add_argument("--out", type=Path, default=Path.home() / ".cache" / "giw" / "companion")
    parser.add_argument("--half", choices=("choose", "report", "both"), default="both")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--shard", default="0/1", help="every so many jobs, from 0")
    parser.add_argument("--limit", type=float, default=np.inf, help="seconds of fitting")
    options = parser.parse_args()
    if options.step == "show":
        for show in (show_sets, show_labels, show_gain, show_nights):
            show(options.out)
        return
    start, step = map(int, options.shard.split("/"))
    jobs = jobs_of(natural_tasks.tasks_of(options.data), options.half, options.draws)
    fit(jobs[start::step], options.data, options.out, options.limit)


if __name__ == "__main__":
    main()
