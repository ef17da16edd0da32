"""Is `giw.diagnose` right? How often it alarms without a shift, what it finds, how long it takes.

    python benchmarks/diagnose.py time                        100,000 × 50: seconds of every step
    python benchmarks/diagnose.py alarms --data DIR           random parts of one table: no shift
    python benchmarks/diagnose.py suite --data DIR            small tables with known shifts
    python benchmarks/diagnose.py suite --half choose         tables that settings were chosen by
    python benchmarks/diagnose.py power                       the least shift found in half of draws
    … --processes 14 --out rows.jsonl --large 5               on many cores; can be taken up

Tables are dealt into a half by which settings were chosen and a half that reports. Shifts of the
suite are sized so that a test that knows the kind of shift (and not the column) finds them in 99 %
of draws at 5 %, with 100 validation rows, each of a pair beside the other; sizes are printed. DIR
holds natural tables as parquet files with the columns ``label`` and ``domain``; without it only
made and embedded ones are used. Every draw is a line of the file named with --out, and is not made
again. `pack --out FILE.csv --files A B` puts such files together; with `--out FILE.csv` a question
is answered from them.
"""

# ruff: noqa: E402  (threads are limited before numpy is loaded)
from __future__ import annotations

import argparse
import csv
import json
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
import pandas as pd
from scipy.stats import binomtest, chi2_contingency, ks_2samp, mannwhitneyu, norm
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import cross_val_predict

import giw

CHOOSE = ("covertype", "diabetes130", "office_caltech", "wine_quality", "nyc_flights", "made")
REPORT = (
    "acs_employment_ma", "gas_drift", "gas_concentration", "amazon_reviews", "mnist_usps",
    "flc_mortality", "parking_birmingham", "ames_housing", "abalone", "breast_cancer", "digits",
    "heavy_tails", "copies", "many_levels", "twenty_rows",
)  # fmt: skip
NUMBERS = ("nyc_flights", "gas_concentration", "parking_birmingham", "ames_housing", "abalone")
LARGE = ("made", "acs_employment_ma", "covertype")  # halves of 123,000 to 200,000 rows
MOST_ROWS, MOST_COLUMNS, MOST_CLASSES = 2_000, 60, 10
N_VAL, WANTED, SIZING_DRAWS = 100, 0.99, 25

SIZES = {
    "class prior": (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5),
    "covariate": (0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5, 2.0),
    "concept": (0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0),
    "noise": (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45),
    "new category": (0.04, 0.06, 0.08, 0.1, 0.12),
    "new class": (0.04, 0.06, 0.08, 0.1, 0.12),
    "unit": (10.0, 100.0, 1000.0),
    "none": (0.0,),
}
PAIRS = (
    ("unit", "class prior"), ("new category", "concept"), ("covariate", "noise"),
    ("new class", "covariate"), ("new category", "class prior"), ("unit", "concept"),
)  # fmt: skip
NAMED = {"concept": "label", "noise": "label"}  # what the verdict calls a shift
ALSO = {  # what it may name besides, because the shift brings it about
    "new category": {"covariate", "outside"},
    "new class": {"covariate", "class prior", "outside", "label"},
}
CERTAIN = ("new class", "new category", "unit", "type", "date format")  # kinds of facts that alarm


@dataclass(frozen=True)
class Base:
    """Rows of one distribution with their classes."""

    name: str
    X: pd.DataFrame
    y: np.ndarray
    n_train: int
    n_val: int


def base(name: str, data: Path | None, seed: int, most: int = MOST_ROWS) -> Base | None:
    """At most 2,000 rows and 60 columns of one table; None where it is not there."""
    rng = np.random.default_rng(seed)
    if name in MADE:
        X, y = made(rng, most) if most > MOST_ROWS else MADE[name](rng)
    elif data is None or not (data / f"{name}.parquet").exists():
        return None
    else:
        frame = pd.read_parquet(data / f"{name}.parquet")
        if most == MOST_ROWS:  # one domain, so that rows are of one distribution
            frame = frame[frame["domain"] == frame["domain"].value_counts().index[0]]
        y, X = frame["label"].to_numpy(), frame.drop(columns=["label", "domain"])
    rows = rng.permutation(len(X))[:most]
    X, y = X.iloc[rows].reset_index(drop=True), np.asarray(y)[rows]
    columns = rng.permutation(X.shape[1])[:MOST_COLUMNS]
    X = X.iloc[:, np.sort(columns)]
    for column in X.columns:
        if not pd.api.types.is_numeric_dtype(X[column]):
            X[column] = X[column].astype(object).where(X[column].notna(), None)
    if name in NUMBERS:
        y = np.asarray(pd.qcut(y, 3, labels=["low", "middle", "high"]).astype(str))
    common = pd.Series(y).value_counts().index[:MOST_CLASSES]
    kept = np.isin(y, common)
    X, y = X[kept].reset_index(drop=True), y[kept].astype(str)
    few = name == "twenty_rows"
    return Base(name, X, y, 40 if few else int(0.6 * len(X)), 20 if few else N_VAL)


def made(rng: np.random.Generator, n: int = MOST_ROWS) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, a town and missing values; the class depends on two numbers and the town."""
    X = pd.DataFrame(rng.lognormal(size=(n, 6)), columns=[f"x{j}" for j in range(6)])
    X["town"] = rng.choice(["Rome", "Oslo", "Bern", "Lima"], n, p=[0.4, 0.3, 0.2, 0.1])
    score = np.log(X["x0"]) + np.log(X["x1"]) + (X["town"] == "Rome") - 0.4
    X.loc[rng.random(n) < 0.1, "x2"] = np.nan
    return X, (rng.random(n) < 1 / (1 + np.exp(-2 * score))).astype(int).to_numpy()


def heavy_tails(rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Cauchy numbers."""
    X = rng.standard_cauchy(size=(1_000, 5))
    return pd.DataFrame(X, columns=list("abcde")), (X[:, 0] + X[:, 1] > 0).astype(int)


def copies(rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """400 rows drawn 1,000 times."""
    X = rng.normal(size=(400, 5))[rng.integers(0, 400, 1_000)]
    return pd.DataFrame(X, columns=list("abcde")), (X[:, 0] > 0).astype(int)


def many_levels(rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Three columns of text with many rare levels, and two numbers."""
    n = 1_000
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    for j, exponent in enumerate((1.3, 1.6, 2.0)):
        X[f"code{j}"] = [f"c{k}" for k in np.minimum(rng.zipf(exponent, n), 10**6)]
    return X, (X["a"] > 0).astype(int).to_numpy()


def twenty_rows(rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Enough for 40 training and 20 validation rows."""
    X = rng.normal(size=(400, 4))
    return pd.DataFrame(X, columns=list("abcd")), (X[:, 0] + rng.normal(size=400) > 0).astype(int)


def embedded(load: Callable[..., Any]) -> Callable[[np.random.Generator], Any]:
    """A table that comes with scikit-learn."""
    return lambda rng: load(return_X_y=True, as_frame=True)


MADE: dict[str, Callable[[np.random.Generator], tuple[Any, Any]]] = {
    "made": made, "heavy_tails": heavy_tails, "copies": copies, "many_levels": many_levels,
    "twenty_rows": twenty_rows, "breast_cancer": embedded(load_breast_cancer),
    "digits": embedded(load_digits), "wine": embedded(load_wine),
}  # fmt: skip
Key = tuple[Any, ...]
Row = dict[str, Any]
Four = tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]


# Shifts -------------------------------------------------------------------------------------------


def drawn(source: Base, sizes: dict[str, float], seed: int) -> tuple[Four, str]:
    """Training and validation rows with the shifts put there, and the column that they are of."""
    rng = np.random.default_rng([seed, 7])
    rows = rng.permutation(len(source.X))
    train, pool = rows[: source.n_train], rows[source.n_train :]
    X, y = source.X.iloc[train].copy(), source.y[train].copy()
    classes = pd.Series(source.y).value_counts().index.tolist()
    common = [c for c in classes if np.mean(y == c) >= 0.05]  # labels that others are taken for
    weight, column = np.ones(len(pool)), ""
    if "covariate" in sizes:
        column = numeric_column(source.X)
        rank = source.X[column].rank(pct=True, na_option="bottom").to_numpy()
        weight *= np.exp(sizes["covariate"] * norm.ppf(0.01 + 0.98 * rank[pool]))
    if "new class" in sizes:
        keep = y != classes[-1]
        X, y = X[keep], y[keep]
        share = np.sum(weight[source.y[pool] == classes[-1]]) / np.sum(weight)
        more = sizes["new class"] / max(share, 1e-9) * (1 - share) / (1 - sizes["new class"])
        weight *= np.where(source.y[pool] == classes[-1], more, 1.0)
    if "class prior" in sizes:
        first = np.mean(source.y == classes[0])
        target = first - sizes["class prior"] if first > 0.5 else first + sizes["class prior"]
        odds = target / (1 - target) * (1 - first) / first
        weight *= np.where(source.y[pool] == classes[0], odds, 1.0)
    val = rng.choice(pool, source.n_val, replace=False, p=weight / weight.sum())
    X_val, y_val = source.X.iloc[val].copy(), source.y[val].copy()
    if "noise" in sizes:
        y = flipped(y, rng.random(len(y)) < sizes["noise"], common, rng)
    if "concept" in sizes:
        name = numeric_column(source.X)
        high = (X_val[name] > source.X[name].median()).to_numpy()
        y_val = flipped(y_val, high & (rng.random(len(val)) < sizes["concept"]), common, rng)
    if "unit" in sizes:
        column = unit_column(source.X, sizes["unit"])
        X_val[column] = X_val[column] * sizes["unit"]
    if "new category" in sizes:
        column = text_columns(source.X)[0]
        X_val.loc[rng.random(len(val)) < sizes["new category"], column] = "a new level"
    return (X.reset_index(drop=True), y, X_val.reset_index(drop=True), y_val), column


def flipped(
    y: np.ndarray, rows: np.ndarray, classes: list[str], rng: np.random.Generator
) -> np.ndarray:
    """Labels of some rows replaced by another class."""
    other = np.array([rng.choice([c for c in classes if c != label]) for label in y])
    return np.where(rows, other, y)


def numeric_column(X: pd.DataFrame) -> str:
    """The column of numbers with the most different values."""
    return str(X.select_dtypes("number").nunique().idxmax())


def text_columns(X: pd.DataFrame) -> list[str]:
    """Columns of text with at most 50 levels."""
    return [c for c in X.columns if X[c].dtype == object and X[c].nunique() <= 50]


def unit_column(X: pd.DataFrame, factor: float) -> str:
    """The column that differs most from itself in another unit, or nothing."""
    numbers = X.select_dtypes("number").dropna(axis=1)
    numbers = numbers.loc[:, numbers.nunique() >= 20]
    gap = {c: ks_2samp(numbers[c], factor * numbers[c]).statistic for c in numbers}
    best = max(gap, key=lambda c: gap[c], default="")
    return best if best and gap[best] > 0.7 else ""


def fits(source: Base, kind: str) -> bool:
    """Whether this table can have this shift."""
    if source.name == "twenty_rows":
        return kind == "none"
    return {
        "new category": bool(text_columns(source.X)),
        "new class": len(set(source.y)) > 2,
        "unit": bool(unit_column(source.X, 10.0)),
        "covariate": source.X.select_dtypes("number").shape[1] > 0,
        "concept": source.X.select_dtypes("number").shape[1] > 0,
    }.get(kind, True)


# Tests that know the kind of shift ----------------------------------------------------------------


def knows(kind: str, four: Four) -> float:
    """The p-value of a test that knows the kind of shift."""
    X, y, X_val, y_val = four
    if kind == "class prior":
        return float(chi2_contingency(pd.crosstab(*sides(y, y_val))).pvalue)
    if kind == "covariate":
        p = [column_p(X[c], X_val[c]) for c in X.columns]
        return min(p) * len(p)
    if kind in ("concept", "noise"):
        surprise, surprise_val = surprises(X, y, X_val, y_val)
        return float(mannwhitneyu(surprise, surprise_val).pvalue)
    if kind == "new category":
        p = [all_in_one(~X_val[c].isin(X[c]) & X_val[c].notna(), len(X)) for c in text_columns(X)]
        return min(p) * len(p)
    if kind == "new class":
        return all_in_one(~np.isin(y_val, y), len(X))
    if kind == "unit":
        p = [ks_2samp(X[c].dropna(), X_val[c].dropna()).pvalue for c in X.select_dtypes("number")]
        return min(p) * len(p)
    return 0.0


def sides(y: np.ndarray, y_val: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels and sides of all rows."""
    return np.concatenate([y, y_val]), np.repeat([0, 1], [len(y), len(y_val)])


def column_p(train: pd.Series, val: pd.Series) -> float:
    """Mann and Whitney for numbers, chi square for text."""
    if pd.api.types.is_numeric_dtype(train):
        return float(mannwhitneyu(train.dropna(), val.dropna()).pvalue) if val.notna().any() else 1
    table = pd.crosstab(*sides(train.astype(str).to_numpy(), val.astype(str).to_numpy()))
    return float(chi2_contingency(table).pvalue) if len(table) > 1 else 1.0


def all_in_one(new: Any, n: int) -> float:
    """Chance that k rows all fall among the m validation rows."""
    k, m = int(np.sum(new)), len(new)
    return float(np.prod([(m - i) / (n + m - i) for i in range(k)]))


def surprises(
    X: pd.DataFrame, y: np.ndarray, X_val: pd.DataFrame, y_val: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """One minus the probability of the label, from a forest of other training rows."""
    both = pd.get_dummies(pd.concat([X, X_val]), dummy_na=True).fillna(-1e3).to_numpy(float)
    forest = ExtraTreesClassifier(20, min_samples_leaf=3, random_state=0)
    classes, code = np.unique(y, return_inverse=True)
    z, z_val = both[: len(X)], both[len(X) :]
    own = cross_val_predict(forest, z, code, cv=3, method="predict_proba")
    new = forest.fit(z, code).predict_proba(z_val)
    return 1 - own[np.arange(len(y)), code], 1 - (new * (y_val[:, None] == classes)).sum(axis=1)


def beside(kind: str, four: Four, kinds: Iterable[str], column: str) -> Four:
    """The tables as one sees them who knows of all other shifts: without what is certain."""
    X, y, X_val, y_val = four
    kept = np.ones(len(y_val), dtype=bool)
    if "unit" in kinds and kind != "unit":
        X_val = X_val.assign(**{column: X_val[column] / 10.0})
    if "new category" in kinds and kind != "new category":
        kept &= (X_val[column] != "a new level").to_numpy()
    if "new class" in kinds and kind != "new class":
        kept &= np.isin(y_val, y)
    return X, y, X_val[kept], y_val[kept]


def sized(source: Base, kind: str, others: dict[str, float], least: float = 0.0) -> float | None:
    """The least size that the test finds in 99 % of draws, or None where none is large enough.

    The score of the p-value is taken as normal over draws, with the mean and spread of a few. Of a
    pair, ``others`` has the size of the other shift.
    """
    for size in (size for size in SIZES[kind] if size >= least):
        score: list[float] = []
        for seed in range(SIZING_DRAWS):
            try:
                four, column = drawn(source, {**others, kind: size}, 10_000 + seed)
                p = knows(kind, beside(kind, four, others, column))
            except ValueError:  # the pool has too few rows to draw so large a shift from
                return None
            score.append(float(norm.isf(np.clip(p, 1e-12, 1) / 2)))
            if sum(s < norm.isf(0.025) for s in score) > 1:
                break
        else:
            if np.mean(score) - norm.ppf(WANTED) * np.std(score) > norm.isf(0.025):
                return size
    return None


def sized_pair(source: Base, sizes: dict[str, float]) -> dict[str, float] | None:
    """Sizes at which either shift is found beside the other, from those of each alone."""
    for _ in range(2):  # the second may have grown, and hide the first
        for kind in sizes:
            others = {other: size for other, size in sizes.items() if other != kind}
            size = sized(source, kind, others, sizes[kind])
            if size is None:
                return None
            sizes = {**sizes, kind: size}
    return sizes


# What is told -------------------------------------------------------------------------------------


def told(four: Four, seed: int) -> dict[str, Any]:
    """What a diagnosis says."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = giw.diagnose(*four, random_state=seed)
    low, high = found.outside_interval
    return {
        "kinds": list(found.recommendation.kinds),
        "remedy": found.recommendation.remedy,
        "answer": found.recommendation.answer.replace("\u00a0", " "),
        "facts": [[fact.kind, fact.column] for fact in found.facts],
        "listed": found.n_outside_rows,
        "interval": [low, high],
        "p": {test.kind: test.p_value for test in found.shifts},
        "found": [test.kind for test in found.shifts if test.found],
        "seconds": time.process_time() - start,
    }


def alarms(bases: list[str], options: argparse.Namespace) -> None:
    """Random parts of one table: nothing has shifted."""
    keys = [("alarms", name, draw) for draw in range(options.draws) for name in bases]
    keys = [("large", name, draw) for draw in range(options.large) for name in LARGE] + keys
    done = Store(options.out).fill(keys, alarm, options)
    rows = [{"table": f"{kind} {name}", **row} for (kind, name, _), row in done.items()]
    for name in sorted({row["table"] for row in rows}):
        here = [row for row in rows if row["table"] == name]
        bad = [row["answer"] for row in here if alarmed(row)]
        print(f"{name:<28} {len(bad)} of {len(here)}  {'; '.join(bad)[:200]}")
    rate("verdict or advice alarms", [alarmed(row) for row in rows])
    rate("rows listed as outside", [row["listed"] > 0 for row in rows])
    rate("interval of the share outside leaves 0", [row["interval"][0] > 0 for row in rows])
    for kind in sorted({kind for row in rows for kind in row["p"]}):
        rate(f"{kind}: p < 5 %", [row["p"][kind] < 0.05 for row in rows if kind in row["p"]])


def alarm(key: Key, data: Path | None) -> Row | None:
    """What is told of two random parts of one table."""
    kind, name, draw = key
    source = base(name, data, seed=draw, most=400_000 if kind == "large" else MOST_ROWS)
    if source is None:
        return None
    if kind == "large" or (draw % 2 and name != "twenty_rows"):  # halves; else 100 validation rows
        half = len(source.X) // 2
        source = replace(source, n_train=half, n_val=len(source.X) - half)
    return told(drawn(source, {}, draw)[0], draw)


def alarmed(row: dict[str, Any]) -> bool:
    """Whether something other than plain training is advised, or a shift named."""
    return row["remedy"] != "plain" or bool(row["kinds"])


def suite(bases: list[str], options: argparse.Namespace) -> None:
    """Small tables with known shifts."""
    store = Store(options.out)
    names = [name for name in bases if name not in ("copies", "twenty_rows")]
    singles = [(kind,) for kind in SIZES]
    found = store.fill(
        [("size", name, kind) for kind in SIZES for name in names],
        partial(least, alone={}),
        options,
    )
    sizes_told = {
        name: {
            k: row["size"]
            for (_, n, k), row in found.items()
            if n == name and row["size"] is not None
        }
        for name in names
    }
    keys = [
        ("size", name, "+".join(pair))
        for pair in PAIRS
        for name in names
        if all(kind in sizes_told[name] for kind in pair)
    ]
    for (_, name, pair), row in store.fill(keys, partial(least, alone=sizes_told), options).items():
        if row["size"] is not None:
            sizes_told[name][pair] = row["size"]
    keys = [
        ("suite", name, "+".join(kinds), draw)
        for draw in range(options.draws)
        for kinds in (*singles, *PAIRS)
        for name in names
        if "+".join(kinds) in sizes_told[name]
    ]
    done = store.fill(keys, partial(shifted_row, sizes=sizes_told), options)
    rows = [
        {"table": name, "shift": tuple(kinds.split("+")), **row}
        for (_, name, kinds, _), row in done.items()
    ]
    print("sizes:", *(f"{name}: {size}" for name, size in sizes_told.items()), sep="\n  ")
    print(f"{len({(r['table'], r['shift']) for r in rows})} shifted tables, {len(rows)} draws")
    for kinds in (*singles, *PAIRS):
        here = [row for row in rows if row["shift"] == kinds]
        if here:
            rate(" + ".join(kinds), [right(row) for row in here])
            for row in here:
                if not right(row) and options.verbose:
                    print(f"    {row['table']}: {row['found']} {row['facts'][:2]} {row['answer']}")
    shifted = [row for row in rows if row["shift"] != ("none",)]
    rate("verdict right", [verdict_right(row) for row in rows])
    rate("first fact right", [fact_right(row) for row in rows])
    rate("both right, shifted", [right(row) for row in shifted])
    rate("both right, all", [right(row) for row in rows])


def least(key: Key, data: Path | None, alone: dict[str, dict[str, float]]) -> Row | None:
    """The size of one shift of one table, or those of a pair whose sizes are known ``alone``."""
    _, name, kinds = key
    source = base(name, data, seed=0)
    if source is None:
        return None
    if "+" in kinds:
        return {"size": sized_pair(source, {kind: alone[name][kind] for kind in kinds.split("+")})}
    return {"size": sized(source, kinds, {}) if fits(source, kinds) else None}


def shifted_row(key: Key, data: Path | None, sizes: dict[str, dict[str, Any]]) -> Row | None:
    """What is told of a table with these shifts; None where it cannot be drawn."""
    _, name, kinds, draw = key
    source, size = base(name, data, seed=0), sizes[name][kinds]
    shifts = size if "+" in kinds else {kinds: size} if kinds != "none" else {}
    try:
        four, column = drawn(source, shifts, draw)
    except ValueError:  # the pool has too few rows to draw from
        return None
    return {**told(four, draw), "column": column}


def verdict_right(row: dict[str, Any]) -> bool:
    """Every shift that was put there is named, and no other."""
    must = {NAMED.get(kind, kind) for kind in row["shift"]} - {"none"}
    may = must.union(*(ALSO.get(kind, set()) for kind in row["shift"]))
    return must <= set(row["kinds"]) <= may


def fact_right(row: dict[str, Any]) -> bool:
    """The certain thing comes first, or nothing certain alarms."""
    certain = [kind for kind in CERTAIN if kind in row["shift"]]
    first = row["facts"][0] if row["facts"] else [None, None]
    if not certain:
        return first[0] not in CERTAIN or first[0] not in row["kinds"]
    return first[0] == certain[0]


def right(row: dict[str, Any]) -> bool:
    """Verdict and first fact."""
    return verdict_right(row) and fact_right(row)


# Power --------------------------------------------------------------------------------------------

POWER = {  # sizes that are tried, by halving
    "class prior": (0.02, 0.04, 0.06, 0.09, 0.12, 0.16, 0.2, 0.25, 0.3, 0.4, 0.5),
    "covariate": (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0),
    "concept": (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0),
    "noise": (0.02, 0.04, 0.07, 0.1, 0.13, 0.16, 0.2, 0.25, 0.3, 0.37, 0.45),
    "new category": (0.001, 0.002, 0.004, 0.007, 0.01, 0.02, 0.03, 0.04, 0.06, 0.09, 0.12),
}
WAYS = ("this kind is named", "any shift is named", "columns, Bonferroni", "half of the columns")


def power(bases: list[str], options: argparse.Namespace) -> None:
    """The least size of a shift that is found in half of the draws, by four ways to ask.

    The last two are what alibi-detect's and evidently's tests of tables do if nothing is set: one
    test a column, and an alarm where one is below 5 % after Bonferroni, or half are below 5 %.
    """
    store = Store(options.out)
    asked = [(kind, m, way) for kind in POWER for m in (50, 200, 1_000) for way in range(len(WAYS))]
    low, high = dict.fromkeys(asked, 0), dict.fromkeys(asked, len(POWER["concept"]))
    while open_ := [key for key in asked if low[key] < high[key]]:
        middle = {key: (low[key] + high[key]) // 2 for key in open_}
        sizes = {(kind, m, POWER[kind][middle[kind, m, way]]) for kind, m, way in open_}
        keys = [("power", *key, draw) for key in sorted(sizes) for draw in range(options.draws)]
        rows = store.fill(keys, powered, options)
        for kind, m, way in open_:
            size = POWER[kind][middle[kind, m, way]]
            hits = [rows["power", kind, m, size, d]["hits"][way] for d in range(options.draws)]
            if np.mean(hits) >= 0.5:
                high[kind, m, way] = middle[kind, m, way]
            else:
                low[kind, m, way] = middle[kind, m, way] + 1
    print(f"{'':<14}{'n_val':>6}", *(f"{way:>22}" for way in WAYS))
    for kind in POWER:
        for m in (50, 200, 1_000):
            found = [(*POWER[kind], "–")[high[kind, m, way]] for way in range(len(WAYS))]
            print(f"{kind:<14}{m:>6}", *(f"{size:>22}" for size in found))


def powered(key: Key, data: Path | None) -> Row:
    """Which ways find a shift of this kind and size in the made table."""
    _, kind, m, size, draw = key
    X, y = made(np.random.default_rng([draw, 11]), 12_000)
    four, _ = drawn(Base("made", X, y.astype(str), 1_200, m), {kind: size}, draw)
    row = told(four, draw)
    p = np.array([column_p(four[0][c], four[2][c]) for c in four[0].columns])
    named = NAMED.get(kind, kind) in row["kinds"]
    hits = [named, alarmed(row), bool(p.min() * len(p) < 0.05), bool(np.mean(p < 0.05) >= 0.5)]
    return {"hits": [bool(hit) for hit in hits], "seconds": row["seconds"]}


def rate(name: str, hits: list[bool]) -> None:
    """A rate with its exact 95 % interval."""
    if hits:
        exact = binomtest(sum(hits), len(hits)).proportion_ci()
        print(
            f"{name:<42} {np.mean(hits):6.1%} of {len(hits)} ({exact.low:.1%} to {exact.high:.1%})"
        )


class Store:
    """Rows by key, one line of JSON each, kept where a run ended."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path and path.exists() else []
        if path and path.suffix == ".csv":
            lines = [f"[{key}, {row}]" for key, row in csv.reader(lines[1:])]
        self.rows: dict[Key, Row | None] = {tuple(key): row for key, row in map(json.loads, lines)}

    def fill(
        self, keys: list[Key], work: Callable[..., Row | None], options: argparse.Namespace
    ) -> dict[Key, Row]:
        """The rows of these keys; those that are missing are made by several processes."""
        if self.path and self.path.suffix == ".csv":
            return {key: row for key in keys if (row := self.rows.get(key)) is not None}
        todo = [key for key in keys if key not in self.rows]
        with ProcessPoolExecutor(options.processes) as pool:
            made = {pool.submit(work, key, options.data): key for key in todo}
            for future in as_completed(made):
                row = self.rows[made[future]] = future.result()
                if self.path:
                    with self.path.open("a") as file:
                        file.write(json.dumps([made[future], row]) + "\n")
        return {key: row for key in keys if (row := self.rows[key]) is not None}


def pack(files: list[Path], out: Path) -> None:
    """Rows of several files as one table; of answers what is asked of them."""
    with out.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["key", "row"])
        rows = {key: row for path in files for key, row in Store(path).rows.items() if row}
        for key, row in sorted(rows.items(), key=lambda pair: list(map(str, pair[0]))):
            told = {name: value for name, value in row.items() if name != "seconds"}
            if "facts" in told:
                told["facts"] = told["facts"][:1]
                told["p"] = {kind: round(p, 4) for kind, p in told["p"].items()}
                told["interval"] = [round(bound, 4) for bound in told["interval"]]
                told["answer"] = told["answer"] if alarmed(row) else ""
            table.writerow([json.dumps(key), json.dumps(told)])


# Time ---------------------------------------------------------------------------------------------


def large(rows: int, columns: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Training and validation data, ``rows`` of each; a fifth of validation lies outside."""
    rng = np.random.default_rng(seed)
    X, X_val = rng.normal(size=(2, rows, columns))
    y, y_val = (x[:, 0] + 0.5 * x[:, 1] > 0 for x in (X, X_val))
    X_val[rng.random(rows) < 0.2, min(7, columns - 1)] += 6
    return X, y ^ (rng.random(rows) < 0.1), X_val, y_val


def seconds(rows: int, columns: int) -> None:
    """Time every step, print the answer, write the page."""

    def clocks() -> tuple[float, float]:
        return time.perf_counter(), time.process_time()

    data = large(rows, columns)
    steps = [("", clocks())]  # what begins, and when
    found = giw.diagnose(*data, on_step=lambda name: steps.append((name, clocks())))
    steps.append(("page", clocks()))
    with tempfile.TemporaryDirectory() as folder:
        found.to_html(Path(folder) / "report.html")
    steps.append(("", clocks()))
    print(f"{'step':<14} {'seconds':>8} {'processor seconds':>18}")
    for (name, start), (_, end) in pairwise(steps[1:]):
        print(f"{name:<14} {end[0] - start[0]:8.1f} {end[1] - start[1]:18.1f}")
    wall, processor = (steps[-1][1][j] - steps[0][1][j] for j in (0, 1))
    print(f"{'all':<14} {wall:8.1f} {processor:18.1f}\n2 × {rows:,} × {columns}\n")
    print(found.summary())


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "what", choices=("time", "alarms", "suite", "power", "pack"), nargs="?", default="time"
    )
    parser.add_argument("--files", type=Path, nargs="+", help="to pack")
    parser.add_argument("--data", type=Path, help="folder of natural tables")
    parser.add_argument("--half", choices=("choose", "report", "both"), default="both")
    parser.add_argument("--draws", type=int, default=8, help="of every table, or shifted table")
    parser.add_argument("--large", type=int, default=0, help="draws of each large table, alarms")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--table", help="this one only")
    parser.add_argument("--out", type=Path, help="file of rows that are kept")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--verbose", action="store_true", help="print the answers that are wrong")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # few rows of a class, in folds
    bases = {"choose": CHOOSE, "report": REPORT, "both": (*CHOOSE, *REPORT)}[options.half]
    bases = [name for name in bases if options.table in (None, name)]
    if options.what == "time":
        seconds(options.rows, options.columns)
    elif options.what == "pack":
        pack(options.files, options.out)
    else:
        {"alarms": alarms, "suite": suite, "power": power}[options.what](bases, options)


if __name__ == "__main__":
    main()
