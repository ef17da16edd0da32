"""Is ReweightedClassifier ever worse than the best simple choice in hindsight? On natural shifts.

Real tables whose domains differ by time, place or group: a large labelled source table, a few
labelled rows of the target, the rest of the target to be judged on. Every cell is a task, a number
of validation rows and a base; its value is the mean over draws. The best simple one of {training
only, validation only, both tables concatenated, balanced} is picked per cell by that mean, in
hindsight; regret is what a method has above it (below: negative), in points of accuracy or R2.

Files are dealt into a half by which the library's settings were chosen and a half that reports.
Left-out and test predictions of every candidate are kept in a cache outside the repository, so that
a new rule for the stack is judged in seconds.

    python benchmarks/natural.py --data DIR                     both halves, the tables printed
    python benchmarks/natural.py --data DIR --half choose       one half: choose or report
    python benchmarks/natural.py --data DIR --quick             one draw, trees, the choosing half
    python benchmarks/natural.py --data DIR --shift "flip 0.2"  other shifts: see SHIFTS
    python benchmarks/natural.py --data DIR --draws 5 --n-val 20 --base logistic    some cells
    python benchmarks/natural.py --data DIR --run               predictions only, nothing printed
    python benchmarks/natural.py --data DIR --run --shard 0/14  a share of them; see the cache
    python benchmarks/natural.py --data DIR --half choose --pairs    every pair of domains
    python benchmarks/natural.py --data DIR --csv FILE          one small csv of all cells
    python benchmarks/natural.py --from-csv FILE                tables from stored cells alone
"""

# ruff: noqa: E402  (threads are limited before numpy is loaded)
from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
import pandas as pd
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

import giw
from giw.estimators.candidates import default_candidates
from giw.estimators.fitting import predictions
from giw.estimators.stack import prior_rows, settled
from natural_tasks import BASES, CHOOSE, REPORT, SHIFTS, Drawn, Job, base_named, draw, tasks_of

SIMPLE = ("training", "validation", "both tables", "balanced")
N_VAL = (100, 20, 300)


def predict_all(data: Drawn, job: Job) -> dict[str, Any]:
    """Left-out and test predictions of every candidate, and what the fits took."""
    base = base_named(job.base, data.classifies, job.draw)
    kind = giw.ReweightedClassifier if data.classifies else giw.ReweightedRegressor
    both, label = pd.concat([data.X, data.X_val], ignore_index=True), np.r_[data.y, data.y_val]
    start = time.process_time()
    base.fit(both, label)
    middle = time.process_time()
    model = kind(base, least_weight=0.0, random_state=job.draw)
    model.fit(data.X, data.y, X_val=data.X_val, y_val=data.y_val)
    seconds = time.process_time() - middle
    classes = getattr(model, "classes_", None)
    names = [name for name in model.left_out_.names if name in model.candidates_]
    rows = [model.left_out_.names.index(name) for name in names]
    limits = model.limits_
    test = [
        predictions(model.candidates_[name], data.X_test, classes, limits=limits) for name in names
    ]
    code, code_val = data.y_test, data.y_val
    if classes is not None:  # a class that neither table has can only be missed
        code = np.where(np.isin(code, classes), np.searchsorted(classes, code), -1)
        code_val = np.searchsorted(classes, code_val)
    return {
        "names": np.array(names), "left_out": model.left_out_.prediction[rows].astype("f4"),
        # probabilities keep three digits in two bytes
        "test": np.stack(test).astype("f4" if classes is None else "f2"), "y_val": code_val,
        "y_test": code, "fold": model.left_out_.fold,
        "inside": np.asarray(model.split_.inside),
        "unlike": model.left_out_.unlike, "plain": middle - start, "ours": seconds,
        "n": len(data.y),
    }  # fmt: skip


def run(jobs: list[Job], folder: Path, cache: Path, limit: float, pairs: bool) -> None:
    """Fit what is not in the cache yet; called again after a kill, it goes on."""
    tasks, begin = tasks_of(folder, pairs), time.time()
    for at, job in enumerate(jobs):
        if (cache / job.file).exists() or time.time() - begin > limit:
            continue
        data = draw(folder, tasks[job.task], job)
        if data is None:
            continue
        started = time.time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = predict_all(data, job)
        part = cache / f".{os.getpid()}.npz"
        np.savez_compressed(part, **found)
        part.replace(cache / job.file)
        done = f"{at + 1} of {len(jobs)}, {time.time() - started:.0f} s"
        print(f"{done}: {job}", file=sys.stderr, flush=True)


def scores(test: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """What is reported of predictions: (t, c) probabilities or (t,) numbers."""
    if test.ndim == 1:
        error = np.square(y - test).mean()
        share = error / np.var(y)
        return {"score": 1 - share, "loss": share, "balanced": np.nan, "auc": np.nan}
    known = y >= 0
    likely = np.where(known, test[np.arange(len(y)), np.maximum(y, 0)], 1e-3)
    found = test.argmax(axis=1)
    return {
        "score": 100 * float((found == y).mean()),
        "loss": -float(np.log(np.maximum(likely, 1e-6)).mean()),
        "balanced": 100 * balanced_accuracy_score(y, found),
        "auc": 100 * macro_auc(test, y),
    }


def macro_auc(test: np.ndarray, y: np.ndarray) -> float:
    """Mean over classes of one against the rest, of those that test rows have."""
    each = [roc_auc_score(y == c, test[:, c]) for c in range(test.shape[1])
            if 0 < (y == c).sum() < len(y)]  # fmt: skip
    return float(np.mean(each)) if each else np.nan


def ways(found: Any, classifies: bool) -> dict[str, np.ndarray]:
    """Test predictions of everything that is compared."""
    names = [str(name) for name in found["names"]]
    test = dict(zip(names, found["test"].astype(float), strict=True))
    listed = [c for c in default_candidates() if c.name in names]
    weighted = [c for c in listed if not c.uses_losses]
    loss = left_out_losses(found)
    best = min((c.name for c in listed), key=lambda name: loss[names.index(name)].mean())
    return test | {
        "stack": stacked(found, listed),
        "stack without giw": stacked(found, weighted),
        "plain average": np.mean([test[c.name] for c in listed], axis=0),
        "chosen by left-out loss": test[best],
    }


def left_out_losses(found: Any) -> np.ndarray:
    """Log-losses or squared errors of left-out validation rows, (q, m)."""
    left, y = found["left_out"].astype(float), found["y_val"]
    if left.ndim == 2:
        return np.square(left - y)
    return -np.log(left[:, np.arange(len(y)), y])


def stacked(found: Any, listed: list[Any]) -> np.ndarray:
    """Test predictions of the stack of some candidates, by the library's own rule."""
    names = [str(name) for name in found["names"]]
    place = [names.index(c.name) for c in listed]
    left, y = found["left_out"][place].astype(float), found["y_val"]
    classes = left.shape[2] if left.ndim == 3 else None
    mixture = settled(prior_rows(listed, float(found["unlike"]), len(y), classes), left, y)
    return mixture.mix(found["test"][place].astype(float))


def cells(jobs: list[Job], folder: Path, cache: Path, pairs: bool = False) -> pd.DataFrame:
    """One row for each way of each job."""
    tasks, rows = tasks_of(folder, pairs), []
    for job in jobs:
        if not (cache / job.file).exists():
            continue
        with np.load(cache / job.file) as loaded:
            found = dict(loaded)
        classifies = tasks[job.task]["kind"] == "classification"
        file = tasks[job.task]["file"].split(".")[0]
        least = np.inf
        if classifies:
            count = np.unique(found["y_val"], return_counts=True)[1]
            least = float(count.min()) if len(count) == found["test"].shape[2] else 0.0
        compared = ways(found, classifies)
        if (cache / f"peers_{job.file}").exists():  # of benchmarks/natural_rivals.py
            with np.load(cache / f"peers_{job.file}") as peers:
                compared |= dict(zip(peers["names"].tolist(), peers["test"], strict=True))
        for way, test in compared.items():
            rows.append(
                asdict(job) | {"file": file, "classifies": classifies, "way": way, "least": least,
                 "cost": float(found["ours"] / max(found["plain"], 1e-9))}
                | scores(test, found["y_test"])
            )  # fmt: skip
    return pd.DataFrame(rows)


def regrets(table: pd.DataFrame) -> pd.DataFrame:
    """Means over draws, and what each way has above the best simple one of its cell."""
    key = ["shift", "base", "classifies", "file", "task", "n_val"]
    cell = table.groupby([*key, "way"])[["score", "loss", "balanced", "auc", "least", "cost"]]
    mean = cell.mean().reset_index()
    draws = table.groupby(key)["draw"].nunique().rename("draws").reset_index()
    simple = mean[mean.way.isin(SIMPLE)].groupby(key)["score"].max().rename("best").reset_index()
    both = mean[mean.way == "both tables"][[*key, "loss"]].rename(columns={"loss": "both_loss"})
    mean = mean.merge(simple, on=key).merge(both, on=key).merge(draws, on=key)
    return mean.assign(regret=mean.score - mean.best, loss_gain=mean.both_loss - mean.loss)


def report(cell: pd.DataFrame, few: float = 10.0) -> None:
    """One Markdown table for each shift, kind of base and half."""
    cell = cell.assign(half=np.where(cell.file.isin(CHOOSE), "choose", "report"))
    for (half, shift, base, classifies), part in cell.groupby(
        ["half", "shift", "base", "classifies"]
    ):
        near = 1.0 if classifies else 0.01
        number = part.groupby(["task", "n_val"]).ngroups
        what = "accuracy, points" if classifies else "R2"
        draws = sorted(part.draws.unique())
        counts = ", ".join(map(str, draws))
        print(f"\n### {half}: {shift}, {base}, {what}; {number} cells, {counts} draws\n")
        print("| way | mean | regret | worst | within 1 | worst, ten a class | log-loss better "
              "than both | balanced | AUC |")  # fmt: skip
        print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
        order = part.groupby("way")["regret"].mean().sort_values(ascending=False).index
        for way in order:
            mine = part[part.way == way]
            enough = mine[mine.least >= few]
            worst = f"{enough.regret.min():+.2f}" if len(enough) else "none"
            print(
                f"| {way} | {mine.score.mean():.3f} | {mine.regret.mean():+.3f} "
                f"| {mine.regret.min():+.2f} | {np.mean(mine.regret >= -near):.0%} "
                f"| {worst} | {np.mean(mine.loss_gain > 0):.0%} ({mine.loss_gain.mean():+.3f}) "
                f"| {mine.balanced.mean():.1f} | {mine.auc.mean():.1f} |"
            )
        cost = part[part.way == "stack"].cost
        print(f"\nTime of a fit, all candidates refitted: median {cost.median():.0f} plain fits.")


def share_of(jobs: list[Job], shard: str) -> list[Job]:
    """A share "i/n" of the jobs, then the other shares from their ends, to help those behind."""
    at, number = map(int, shard.split("/"))
    others = [jobs[(at + k) % number :: number][::-1] for k in range(1, number)]
    return jobs[at::number] + [job for share in others for job in share]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--data", type=Path, default=Path("data/natural"), help="tables and tasks.json"
    )
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "giw" / "natural")
    parser.add_argument("--half", choices=("choose", "report"), nargs="*")
    parser.add_argument("--quick", action="store_true", help="trees, one draw, the choosing half")
    parser.add_argument("--shift", choices=SHIFTS, nargs="*", default=["natural"])
    parser.add_argument("--base", choices=BASES, nargs="*", default=["trees", "logistic"])
    parser.add_argument("--n-val", type=int, nargs="*", default=list(N_VAL))
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--task", nargs="*", help="some tasks")
    parser.add_argument("--limit", type=float, default=np.inf, help="seconds of fitting")
    parser.add_argument("--run", action="store_true", help="only fill the cache")
    parser.add_argument("--shard", default="0/1", help="i/n: of n processes that share a cache")
    parser.add_argument("--pairs", action="store_true", help="from each domain to each other one")
    parser.add_argument("--csv", type=Path, help="write one row for each cell and way")
    parser.add_argument("--from-csv", type=Path, help="report stored cells")
    options = parser.parse_args()
    if options.from_csv:
        return report(pd.read_csv(options.from_csv))
    halves = ["choose"] if options.quick else (options.half or ["choose", "report"])
    files = [file for half in halves for file in (CHOOSE if half == "choose" else REPORT)]
    tasks = tasks_of(options.data, options.pairs)
    some = options.task or list(tasks)
    names = [name for name, task in tasks.items()
             if task["file"].split(".")[0] in files and name in some]  # fmt: skip
    few = ["trees"] if options.quick else options.base
    jobs = [
        Job(task, shift, base, n_val, draw)
        for draw in range(1 if options.quick else options.draws)
        for shift in options.shift
        for base in few
        for n_val in ([100, 20] if options.quick else options.n_val)
        for task in names
    ]
    options.cache.mkdir(parents=True, exist_ok=True)
    mine = share_of(jobs, options.shard)
    run(mine, options.data, options.cache, options.limit, options.pairs)
    if options.run:
        return None
    found = regrets(cells(jobs, options.data, options.cache, options.pairs))
    if options.csv:
        kept = found[~found.way.isin(["intermediate", "corrected"])]
        kept.drop(columns=["best", "both_loss"]).round(3).to_csv(options.csv, index=False)
    return report(found)


if __name__ == "__main__":
    main()
