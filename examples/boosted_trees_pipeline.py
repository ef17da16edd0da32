"""Boosted trees in a scikit-learn pipeline, on a table with text, gaps and a shift.

Training rows come from two hospitals and have wrong labels here and there; the world has a third
hospital, where older patients are treated and the rule is another. ``giw.ReweightedClassifier``
goes around the whole pipeline, because validation rows need the same preprocessing. LightGBM and
XGBoost take the place of scikit-learn's trees where they are installed.

    python examples/boosted_trees_pipeline.py
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import giw


def patients(
    size: int, hospitals: list[str], seed: int, noise: float = 0.0
) -> tuple[pd.DataFrame, np.ndarray]:
    """A table with a category, numbers and gaps; "ill" or "well"."""
    rng = np.random.default_rng(seed)
    hospital = rng.choice(hospitals, size)
    old = hospital == "south"
    age = rng.normal(np.where(old, 75, 45), 8)
    marker, second = rng.normal(size=(2, size))
    ill = np.where(old, marker + 0.3 * second < 0, marker + 0.3 * second > 0)
    wrong = rng.random(size) < noise
    marker[rng.random(size) < 0.05] = np.nan
    table = pd.DataFrame({"hospital": hospital, "age": age, "marker": marker, "second": second})
    return table, np.where(ill ^ wrong, "ill", "well")


def trees(name: str, seed: int) -> Any:
    """Boosted trees that take ``sample_weight``."""
    if name == "lightgbm":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_estimators=60, random_state=seed, verbose=-1, n_jobs=1)
    if name == "xgboost":
        from xgboost import XGBClassifier

        # alone it wants classes counted from zero, so main gives it 0 and 1
        return XGBClassifier(n_estimators=60, random_state=seed, n_jobs=1)
    return HistGradientBoostingClassifier(max_iter=60, random_state=seed)


def pipeline(name: str, seed: int) -> Any:
    """Categories become numbers, a new one becomes -1; gaps are left to the trees."""
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    columns = make_column_transformer((encoder, ["hospital"]), remainder="passthrough")
    return make_pipeline(columns, trees(name, seed))


def main(argv: list[str] | None = None) -> dict[str, float]:
    """Fit plainly and reweighted; print accuracy in the world."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--trees", choices=("sklearn", "lightgbm", "xgboost"), default="sklearn")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    seed = options.seed
    X, y = patients(1500, ["north", "east"], seed, noise=0.1)
    X_val, y_val = patients(120, ["north", "east", "south"], seed + 1)
    X_test, y_test = patients(4000, ["north", "east", "south"], seed + 2)
    if options.trees == "xgboost":
        y, y_val, y_test = ((labels == "ill").astype(int) for labels in (y, y_val, y_test))

    model = pipeline(options.trees, seed)
    plain = clone(model).fit(X, y)
    clf = giw.ReweightedClassifier(model, random_state=seed).fit(X, y, X_val=X_val, y_val=y_val)
    found = {"plain": plain.score(X_test, y_test), "GIW": clf.score(X_test, y_test)}
    for name, accuracy in found.items():
        print(f"{name:<6} {accuracy:.3f}")
    print(f"{1 - clf.alpha_:.0%} of the validation rows are outside the training support")
    return found


if __name__ == "__main__":
    main()
