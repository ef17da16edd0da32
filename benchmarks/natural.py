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
    python benchmarks/natural.py --data DIR --more              further candidates, fitted too
    python benchmarks/natural.py --data DIR --csv FILE          one small csv of all cells
    python benchmarks/natural.py --from-csv FILE                tables from stored cells alone
"""

# ruff: noqa: E402  (threads are limited before numpy is loaded)
from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
import pandas as pd
from sklearn.base import is_classifier
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import giw
from giw.estimators.candidates import GeneralizedWeighting, StepsAside, default_candidates
from giw.estimators.fitting import fit_weighted, predictions
from giw.estimators.rows import rows_of
from giw.estimators.rows import stacked as both_of
from giw.estimators.stack import default_prior, settled

CHOOSE = ("covertype", "diabetes130", "office_caltech", "wine_quality", "nyc_flights")
REPORT = (
    "acs_employment_ma", "gas_drift", "gas_concentration", "amazon_reviews", "mnist_usps",
    "flc_mortality", "parking_birmingham", "ames_housing", "abalone",
)  # fmt: skip
SIMPLE = ("training", "validation", "both tables", "balanced")
N_VAL = (100, 20, 300)
MOST_SOURCE, MOST_TEST, MOST_COLUMNS, MOST_LEVELS = 3_000, 2_000, 60, 200
SHIFTS = ("natural", "none", "flip 0.2", "flip 0.4", "two to one")
BASES = ("trees", "logistic", "forest", "lightgbm")
VERSION = "1"  # of what is cached; another one for other candidates


@dataclass(frozen=True)
class Job:
    """One draw of one cell."""

    task: str
    shift: str
    base: str
    n_val: int
    draw: int

    @property
    def file(self) -> str:
        """Name of the cached predictions."""
        words = (self.task, self.shift.replace(" ", "-"), self.base, self.n_val, self.draw)
        return "_".join(map(str, words)) + ".npz"


@dataclass(frozen=True)
class Drawn:
    """Source, validation and test rows of a draw."""

    X: pd.DataFrame
    y: np.ndarray
    X_val: pd.DataFrame
    y_val: np.ndarray
    X_test: pd.DataFrame
    y_test: np.ndarray
    classifies: bool


@dataclass(frozen=True)
class Aligned:
    """Columns of validation rows are moved to mean and width of the training rows, then stacked."""

    name: str = "aligned"
    prior: float = 1.0
    few: float = 5.0

    def fit(self, data: Any) -> Any:
        train, val = (rows_of(data.rows, side) for side in (~data.is_val, data.is_val))
        if not hasattr(train, "columns"):
            raise StepsAside("frames only")
        names = [c for c in train if pd.api.types.is_numeric_dtype(train[c])]
        m = len(val)
        if not names or m < 2:
            raise StepsAside("no numbers")
        a, b = train[names].astype(float), val[names].astype(float)
        lean = m / (m + self.few)
        move = (a.mean() - b.mean()).fillna(0) * lean
        scale = ((a.std() / b.std()).replace([np.inf, 0], 1).fillna(1)) ** lean
        center = b.mean().fillna(0)
        scale = scale.clip(0.2, 5)
        model = Moved(None, names, center.to_numpy(), move.to_numpy(), scale.to_numpy())
        rows = both_of(train.astype(dict.fromkeys(names, float)), model.moved(val))
        n = len(train) * data.many
        weight = np.where(data.is_val, np.sqrt(n / m), 1.0) * data.weight
        model.model = fit_weighted(data.base, rows, data.label, weight / weight.mean())
        if is_classifier(data.base):
            model.classes_ = model.model.classes_
        return model


class Moved:
    """A model behind columns that are moved first."""

    def __init__(self, model: Any, names: Any, center: Any, move: Any, scale: Any) -> None:
        self.model, self.names = model, names
        self.center, self.move, self.scale = center, move, scale

    def moved(self, X: Any) -> Any:
        X = X.astype(dict.fromkeys(self.names, float))
        z = X[self.names].to_numpy()
        X[self.names] = (z - self.center) * self.scale + self.center + self.move
        return X

    def predict(self, X: Any) -> Any:
        return self.model.predict(self.moved(X))

    def predict_proba(self, X: Any) -> Any:
        return self.model.predict_proba(self.moved(X))


@dataclass(frozen=True)
class Shared:
    """A linear model of both tables; with ``own`` validation rows have coefficients beside it."""

    name: str
    own: float
    power: float
    strength: float
    prior: float = 1.0

    def fit(self, data: Any) -> Any:
        if not is_classifier(data.base):
            raise StepsAside("classes only")
        if len(np.unique(data.label)) < 2:
            raise StepsAside("one class")
        n, m = data.sizes
        weight = np.where(data.is_val, 1.0, data.many * (m / n) ** self.power) * data.weight
        model = SharedModel(data.encoder, self.own)
        z = model.columns(data.features, data.is_val)
        model.linear = LogisticRegression(C=self.strength, max_iter=100).fit(z, data.label, weight)
        model.classes_ = model.linear.classes_
        return model


class SharedModel:
    """Logistic regression on encoded columns, and on those of validation rows once more."""

    def __init__(self, encoder: Any, own: float) -> None:
        self.encoder, self.own = encoder, own

    def columns(self, z: Any, is_val: Any) -> Any:
        if not self.own:
            return z
        mine = np.c_[z, np.ones(len(z))] * (self.own * is_val[:, None])
        return np.hstack([z, mine])

    def predict_proba(self, X: Any) -> Any:
        z = self.encoder.transform(X)
        return self.linear.predict_proba(self.columns(z, np.ones(len(z), bool)))


@dataclass(frozen=True)
class MapOf:
    """``Small`` with a strength of its own for each class in validation."""

    name: str
    on_model: bool
    on_features: bool
    each: float
    prior: float = 1.0

    def fit(self, data: Any) -> Any:
        from giw.estimators.candidates import Small

        m = int(data.is_val.sum())
        classes = len(np.unique(data.label)) if is_classifier(data.base) else 2
        small = Small(self.name, self.on_model, self.on_features, self.each * m / classes / 10)
        return small.fit(data)


MORE = (
    Aligned(),
    Shared("shared", 1.0, 0.5, 0.1),
    Shared("shared, balanced", 1.0, 1.0, 0.1),
    Shared("linear, balanced", 0.0, 1.0, 0.1),
    Shared("linear, balanced, more", 0.0, 1.0, 0.01),
    MapOf("corrected, by class", True, True, 0.1),
    MapOf("validation, linear, by class", False, True, 0.1),
)


def numbers() -> Any:
    """Columns as numbers for bases that need them, here as somebody would write it."""
    number = make_column_selector(dtype_include="number")
    category = make_column_selector(dtype_include="category")
    fill = SimpleImputer(strategy="median", keep_empty_features=True)
    onehot = OneHotEncoder(handle_unknown="ignore", sparse_output=False, min_frequency=5)
    return make_column_transformer(
        (make_pipeline(fill, StandardScaler()), number), (onehot, category)
    )


def base_named(name: str, classifies: bool, seed: int) -> Any:
    """The model that is wrapped."""
    if name == "trees":
        kind = HistGradientBoostingClassifier if classifies else HistGradientBoostingRegressor
        return kind(random_state=seed)
    if name == "logistic":
        return make_pipeline(numbers(), LogisticRegression(max_iter=300) if classifies else Ridge())
    if name == "forest":
        kind = RandomForestClassifier if classifies else RandomForestRegressor
        return make_pipeline(numbers(), kind(100, random_state=seed, min_samples_leaf=2))
    import lightgbm

    kind = lightgbm.LGBMClassifier if classifies else lightgbm.LGBMRegressor
    return make_pipeline(numbers(), kind(random_state=seed, n_jobs=1, verbose=-1))


def table(folder: Path, task: dict[str, Any]) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Features, labels and domains; at most 60 of over 100 numbers, no column of many levels."""
    data = pd.read_parquet(folder / task["file"])
    domain, label = data.pop("domain"), data.pop("label")
    for name in data.columns:
        if not pd.api.types.is_numeric_dtype(data[name]):
            data[name] = data[name].astype("category")
    many = [c for c in data if data[c].dtype == "category" and data[c].nunique() > MOST_LEVELS]
    data = data.drop(columns=many)
    if data.shape[1] > 100 and not (data.dtypes == "category").any():
        some = np.random.default_rng(1).permutation(data.shape[1])[:MOST_COLUMNS]
        data = data[data.columns[np.sort(some)]]
    y = label.astype(str).to_numpy() if task["kind"] == "classification" else label.to_numpy(float)
    return data, y, domain.astype(str).to_numpy()


def draw(folder: Path, task: dict[str, Any], job: Job) -> Drawn | None:
    """The rows of a draw; None where the target is too small for so many validation rows."""
    X, y, domain = table(folder, task)
    rng = np.random.default_rng([job.draw, 7000])
    source = rng.permutation(np.flatnonzero(np.isin(domain, task["source"])))
    target = rng.permutation(np.flatnonzero(np.isin(domain, task["target"])))
    if job.shift == "none":
        half = min(len(source) // 2, MOST_SOURCE)
        source, target = source[:half], source[half:]
    if job.n_val > 0.4 * len(target):
        return None
    val, test = target[: job.n_val], target[job.n_val :]
    if job.shift == "two to one":
        val, test = two_to_one(X, target, job.n_val, rng)
    source, test = source[:MOST_SOURCE], test[:MOST_TEST]
    label = y[source].copy()
    if job.shift.startswith("flip"):
        flip = rng.random(len(label)) < float(job.shift.split()[1])
        label[flip] = other_labels(label[flip], np.unique(y[source]), rng)
    classifies = task["kind"] == "classification"
    part = [X.iloc[rows].reset_index(drop=True) for rows in (source, val, test)]
    return Drawn(part[0], label, part[1], y[val], part[2], y[test], classifies)


def other_labels(label: np.ndarray, classes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Another class for each, any of them as likely."""
    code = np.searchsorted(classes, label)
    return classes[(code + rng.integers(1, len(classes), len(code))) % len(classes)]


def two_to_one(
    X: pd.DataFrame, target: np.ndarray, n_val: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Validation rows with the upper half of the target, by its main direction, twice as often.

    The paper's own stated limit: validation not quite from the test distribution.
    """
    z = numbers().fit_transform(X.iloc[target])
    direction = np.linalg.svd(z[:2000] - z[:2000].mean(0), full_matrices=False)[2][0]
    score = z @ direction
    odds = np.where(score > np.median(score), 2.0, 1.0)
    chosen = rng.choice(len(target), n_val, replace=False, p=odds / odds.sum())
    return target[chosen], np.delete(target, chosen)


def predict_all(data: Drawn, job: Job, more: bool = False) -> dict[str, Any]:
    """Left-out and test predictions of every candidate, and what the fits took."""
    base = base_named(job.base, data.classifies, job.draw)
    kind = giw.ReweightedClassifier if data.classifies else giw.ReweightedRegressor
    both, label = pd.concat([data.X, data.X_val], ignore_index=True), np.r_[data.y, data.y_val]
    start = time.process_time()
    base.fit(both, label)
    middle = time.process_time()
    listed = [*default_candidates(data.classifies), *MORE] if more else "auto"
    model = kind(base, candidates=listed, least_weight=0.0, random_state=job.draw)
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
        "inside": np.asarray(model.split_.inside), "plain": middle - start, "ours": seconds,
        "n": len(data.y),
    }  # fmt: skip


def run(jobs: list[Job], folder: Path, cache: Path, limit: float, pairs: bool, more: bool) -> None:
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
            found = predict_all(data, job, more)
        part = cache / f".{os.getpid()}.npz"
        np.savez_compressed(part, **found)
        part.replace(cache / job.file)
        done = f"{at + 1} of {len(jobs)}, {time.time() - started:.0f} s"
        print(f"{done}: {job}", file=sys.stderr, flush=True)


def scores(test: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """What is reported of predictions: (t, c) probabilities or (t,) numbers."""
    if test.ndim == 1:
        error = np.square(y - test).mean()
        return {"score": 1 - error / np.var(y), "loss": error / np.var(y)}
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
    listed = [c for c in default_candidates(classifies) if c.name in names]
    weighted = [c for c in listed if not isinstance(c, GeneralizedWeighting)]
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
    mixture = settled(*default_prior(listed, left.ndim == 3), left, y)
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


def tasks_of(folder: Path, pairs: bool = False) -> dict[str, Any]:
    """Tasks by name; with ``pairs`` from every domain of a file of classes to every other one."""
    listed = json.loads((folder / "tasks.json").read_text())
    if not pairs:
        return {task["name"]: task for task in listed}
    found = {}
    for file in sorted({t["file"] for t in listed if t["kind"] == "classification"}):
        domains = sorted(pd.read_parquet(folder / file, columns=["domain"]).domain.unique())
        for a in domains:
            for b in domains:
                name = f"{file.split('.')[0]}:{a}:{b}"
                if a != b:
                    found[name] = {
                        "name": name, "file": file, "kind": "classification",
                        "source": [a], "target": [b],
                    }  # fmt: skip
    return found


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
    parser.add_argument("--more", action="store_true", help="further candidates, fitted too")
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
    run(mine, options.data, options.cache, options.limit, options.pairs, options.more)
    if options.run:
        return None
    found = regrets(cells(jobs, options.data, options.cache, options.pairs))
    if options.csv:
        kept = found[~found.way.isin(["intermediate", "class shares", "corrected"])]
        kept.drop(columns=["best", "both_loss"]).round(3).to_csv(options.csv, index=False)
    return report(found)


if __name__ == "__main__":
    main()
