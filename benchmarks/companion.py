"""Prediction sets, which rows to label, and the check of new rows: what they are worth.

On the natural tables of benchmarks/natural.py: a source table of at most 1,500 rows, 50 or 200
labelled rows of the target, boosted trees of 30 rounds. Fits are kept in a folder, a file for each
job, so that a run that was stopped goes on where it was.

    python benchmarks/companion.py fit --data DIR --out OUT                  all jobs, an hour
    python benchmarks/companion.py fit --data DIR --out OUT --shard 3/16     every sixteenth job
    python benchmarks/companion.py fit --data DIR --out OUT --half choose  five tables
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
from giw.estimators.fitting import predictions
from giw.tables import Encoder

natural_tasks.MOST_SOURCE = 1_500
LABELS = 50  # asked for, in the comparison of ways to choose them


@dataclass(frozen=True)
class Job:
    """One draw of a task: a stack for prediction sets, or labels chosen in several ways."""

    what: str  # sets or labels
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
    return [
        Job(what, name, n_val, draw)
        for draw in range(draws)
        for name in names
        for what, n_val in (("labels", 50), ("sets", 50), ("sets", 200))
        if what == "sets" or tasks[name]["kind"] == "classification"
    ]


def stack(data: natural_tasks.Drawn, X_val: Any, y_val: Any, seed: int) -> Any:
    """A stack of boosted trees."""
    if data.classifies:
        model = giw.ReweightedClassifier(
            HistGradientBoostingClassifier(max_iter=30, random_state=0), random_state=seed
        )
    else:
        model = giw.ReweightedRegressor(
            HistGradientBoostingRegressor(max_iter=30, random_state=0), random_state=seed
        )
    return model.fit(data.X, data.y, X_val=X_val, y_val=y_val)


def of_sets(data: natural_tasks.Drawn, seed: int) -> dict[str, Any]:
    """Left-out and test predictions of the stack and of its candidates."""
    model = stack(data, data.X_val, data.y_val, seed)
    classes, left = getattr(model, "classes_", None), model.left_out_
    y_val, y_test = data.y_val, data.y_test
    if classes is not None:
        y_val = np.searchsorted(classes, y_val)
        y_test = np.where(
            np.isin(y_test, classes), np.searchsorted(classes, np.minimum(y_test, classes[-1])), -1
        )
    names = [name for name in left.names if name in model.candidates_]
    each = [
        predictions(model.candidates_[name], data.X_test, classes, limits=model.limits_)
        for name in names
    ]
    alone = stack_alone(data, seed)
    return {
        "names": np.array(names), "left": left.mixed, "y_val": y_val, "fold": left.fold,
        "left_each": left.prediction[[left.names.index(name) for name in names]],
        "test": model._predictions(data.X_test), "test_each": np.stack(each), "y_test": y_test,
        "inside": np.asarray(model.split_.inside), **alone,
    }  # fmt: skip


def stack_alone(data: natural_tasks.Drawn, seed: int) -> dict[str, Any]:
    """Left-out predictions of validation rows by a fit to other validation rows alone."""
    kind = HistGradientBoostingClassifier if data.classifies else HistGradientBoostingRegressor
    rng, m = np.random.default_rng(seed), len(data.y_val)
    fold = rng.permutation(np.arange(m) % 5)
    classes = np.unique(np.r_[data.y, data.y_val]) if data.classifies else None

    def fitted(rows: Any, X: Any) -> Any:
        few = kind(max_iter=30, min_samples_leaf=min(20, max(m // 10, 2)), random_state=0)
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
    for name, (rows, _) in choices(before, data, X_pool, rng).items():
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
    centres = np.array([np.argmin(np.square(z - c).sum(axis=1)) for c in groups.cluster_centers_])
    rest = np.setdiff1d(np.argsort(margin), random[: LABELS // 2], assume_unique=True)
    rest = rest[np.argsort(margin[rest])][: LABELS // 2]
    # one at random of each of fifty equal parts of the pool, in the order of what is predicted
    order = np.lexsort((margin, groups.labels_, probability.argmax(axis=1)))
    spread = np.array([rng.choice(part) for part in np.array_split(order, LABELS)])
    return {
        "random": (random, None),
        "unsure": (np.argsort(margin)[:LABELS], None),
        "first": (giw.label_first(model, data.X, X_pool, LABELS, random_state=0), None),
        "centres": (np.unique(centres), None),
        "half unsure": (np.r_[random[: LABELS // 2], rest], None),
        "spread": (spread, None),
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
            found = (of_sets if job.what == "sets" else of_labels)(data, job.draw)
        part = out / f".{os.getpid()}.npz"
        np.savez_compressed(part, **found)
        part.replace(out / job.file)
        print(f"{time.time() - started:.0f} s: {job}", file=sys.stderr, flush=True)


def show_labels(out: Path) -> None:
    """Means over draws and tasks."""
    rows = []
    for path in sorted(out.glob("labels_*.npz")):
        with np.load(path) as file:
            task = path.stem.removeprefix("labels_").rsplit("_", 2)[0]
            rows.append({"task": task} | {name: float(file[name]) for name in file.files})
    table = pd.DataFrame(rows)
    mean = table.groupby("task").mean()
    print((100 * mean).round(1).to_string())
    gain = mean.drop(columns=["before", "left_out"]).sub(mean["random"], axis=0)
    said = pd.DataFrame({"above random": gain.mean(), "error": gain.sem(), "worst": gain.min()})
    print((100 * said).round(2).to_string())


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
        show_labels(options.out)
        return
    start, step = map(int, options.shard.split("/"))
    jobs = jobs_of(natural_tasks.tasks_of(options.data), options.half, options.draws)
    fit(jobs[start::step], options.data, options.out, options.limit)


if __name__ == "__main__":
    main()
