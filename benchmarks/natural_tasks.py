"""Draws of the natural tables: source, validation and test rows, and the bases that are wrapped.

Without giw, so that rivals can be run where giw is not installed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

CHOOSE = ("covertype", "diabetes130", "office_caltech", "wine_quality", "nyc_flights")
REPORT = (
    "acs_employment_ma", "gas_drift", "gas_concentration", "amazon_reviews", "mnist_usps",
    "flc_mortality", "parking_birmingham", "ames_housing", "abalone",
)  # fmt: skip
MOST_SOURCE, MOST_TEST, MOST_COLUMNS, MOST_LEVELS = 3_000, 2_000, 60, 200
SHIFTS = ("natural", "none", "flip 0.2", "flip 0.4", "two to one")
BASES = ("trees", "logistic", "forest", "lightgbm")


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
