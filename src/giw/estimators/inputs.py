"""What the estimators ask of tables and labels, and rows of any table: picked and stacked."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from giw.checks import (
    as_labels,
    callers_level,
    columns_in_order,
    refuse_many_classes,
    to_numpy,
    valid_text,
)
from giw.support import SupportSplit, SupportSplitter
from giw.tables import Encoder

Vector = NDArray[np.float64]
MOST_SPLIT = 10_000  # training rows among which neighbours are searched
FEWEST_TRAINING_ROWS = 10  # fewer cannot tell inside from outside


def is_frame(X: Any) -> bool:
    """Whether X is a pandas data frame."""
    return hasattr(X, "iloc") and hasattr(X, "columns")


def table_of(X: Any, name: str) -> Any:
    """A pandas frame, also of polars and of others that have ``to_pandas``, or else an array."""
    if hasattr(X, "to_pandas") and not is_frame(X):
        X = X.to_pandas()
    return _checked_frame(X, name) if is_frame(X) else to_numpy(X, name)


def _checked_frame(X: Any, name: str) -> Any:
    """A frame with one name for each column, all of one kind, that holds all of its values."""
    import pandas as pd

    for column in map(str, X.columns):
        if column != valid_text(column):
            raise ValueError(f"{name}: the column name {column!r} is no valid text; rename it")
    twice = X.columns[X.columns.duplicated()]
    if len(twice):
        raise ValueError(f"{name} has two columns called {twice[0]!r}; rename one")
    kinds = sorted({type(column).__name__ for column in X.columns})
    if len(kinds) > 1 and "str" in kinds:
        raise ValueError(
            f"the column names of {name} are of the kinds {' and '.join(kinds)}; make them text: "
            f"{name}.columns = {name}.columns.astype(str)"
        )
    thin = {c: kind.subtype for c, kind in X.dtypes.items() if isinstance(kind, pd.SparseDtype)}
    for column, kind in X.dtypes.items():
        if getattr(kind, "kind", None) == "c":
            raise ValueError(f"{name}: column {column!r} holds complex numbers; split them in two")
    return X.astype(thin) if thin else X


def rows_of(X: Any, rows: NDArray[Any]) -> Any:
    """Some rows, in the type that they came in."""
    return X.iloc[rows] if is_frame(X) else X[rows]


def stacked(first: Any, second: Any) -> Any:
    """Rows of both, in the type that they came in; categories are those of both.

    pandas makes plain text of categories that differ, and boosted trees refuse text.
    """
    if not is_frame(first):
        return np.concatenate([first, second])
    import pandas as pd

    for j, name in enumerate(first.columns):
        kind, other = first.dtypes.iloc[j], second.dtypes.iloc[j]
        if isinstance(kind, pd.CategoricalDtype) and kind != other:
            added = pd.Index(second.iloc[:, j].dropna().unique()).difference(kind.categories)
            both = pd.CategoricalDtype([*kind.categories, *added])
            first, second = (side.astype({name: both}) for side in (first, second))
    return pd.concat([first, second], ignore_index=True)


def row_hashes(X: Any) -> NDArray[np.uint64]:
    """A number for each row by which the row is known again, sorted, (n,)."""
    import pandas as pd

    frame = X if is_frame(X) else pd.DataFrame(np.asarray(X))
    try:
        frame = frame.astype(object).astype(str)
    except UnicodeEncodeError:  # a lone surrogate
        frame = frame.map(lambda value: str(value).encode("utf-8", "replace").decode())
    return np.sort(pd.util.hash_pandas_object(frame, index=False).to_numpy())


def repeated_rows(old: Any, new: Any) -> tuple[NDArray[np.bool_], float]:
    """Which rows of the second table are in the first too, and how likely chance finds so many.

    Where few values differ rows repeat by nature, and rows of the first table have copies of each
    other as often; by Fisher's exact test.
    """
    import pandas as pd

    first, second = (
        pd.util.hash_pandas_object(pd.DataFrame(rows), index=False).to_numpy()
        for rows in (old, new)
    )
    also, twins = np.isin(second, first), int(pd.Series(first).duplicated(keep=False).sum())
    k, n, m = int(also.sum()), len(first), len(second)
    return also, float(hypergeom.sf(k - 1, n + m, k + twins, m))


def said_of_copies(z: Vector, z_val: Vector) -> str:
    """What to say of validation rows that are training rows too; nothing where chance made them."""
    also, p_value = repeated_rows(z, z_val)
    if p_value >= 0.01:
        return ""
    return (
        f"{also.sum()} of {len(also)} validation rows are training rows too (all features are "
        "equal): scores on them are too good; take them out of either table"
    )


@dataclass(frozen=True)
class Encoded:
    """Features of both tables and the split of the target rows; none by too few training rows."""

    encoder: Encoder
    z: Vector  # (n, d)
    z_target: Vector  # (k, d)
    split: SupportSplit | None

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Target rows inside the training support, (k,); all of them without a split."""
        if self.split is None:
            return np.ones(len(self.z_target), dtype=bool)
        return np.asarray(self.split.inside, dtype=bool)


def encode_and_split(
    X: Any,
    X_target: Any,
    *,
    y: NDArray[Any] | None = None,
    y_target: NDArray[Any] | None = None,
    splitter: SupportSplitter | None = None,
) -> Encoded:
    """Features of training and target rows, and which of the latter are inside.

    Nothing is random here, so that whoever asks of the same tables has the same rows outside.

    Parameters
    ----------
    y, y_target : arrays of shape (n,) and (k,), optional
        Class labels of both; the split compares points of a class with each other.
    splitter : SupportSplitter, optional
        One with settings of its own, which is copied.
    """
    encoder = Encoder().fit(X, X_target)
    z, z_target = encoder.transform(X), encoder.transform(X_target)
    if len(z) < FEWEST_TRAINING_ROWS:
        return Encoded(encoder, z, z_target, None)

    def seen(X: Any, z: Vector) -> dict[str, NDArray[Any]]:
        return {"numbers": z.astype(np.float32), "levels": encoder.level_counts(X)}

    rows = rows_to_split(len(z), y)
    splitter = usual_splitter(len(rows)) if splitter is None else clone(splitter)
    splitter.fit(seen(rows_of(X, rows), z[rows]), None if y is None else y[rows])
    return Encoded(encoder, z, z_target, splitter.split(seen(X_target, z_target), y_target))


def rows_to_split(
    n: int, y: NDArray[Any] | None = None, most: int = MOST_SPLIT
) -> NDArray[np.int64]:
    """The training rows that a splitter sees: at random, always the same, and some of every class.

    A class so rare that none of it was drawn must not look as if it were not there.
    """
    rows = np.random.default_rng(0).permutation(n)[:most]
    if y is None or len(rows) == n:
        return rows
    value, first = np.unique(y, return_index=True)
    return np.concatenate([rows, first[~np.isin(value, y[rows])]])


def usual_splitter(n: int) -> SupportSplitter:
    """How fits, diagnoses and judgements split; of few training rows at a level they can reach."""
    return SupportSplitter(level=max(0.05, 1.5 / n), random_state=0)


def checked_tables(
    estimator: BaseEstimator, base: BaseEstimator, X: Any, X_val: Any, X_unlabelled: Any
) -> list[Any]:
    """All tables, frames if X is one; columns are counted and named as scikit-learn does."""
    X = _checked_table(X, "X", base)
    validate_data(estimator, X, reset=True, skip_check_array=True)
    tables = [X]
    for name, other in (("X_val", X_val), ("X_unlabelled", X_unlabelled)):
        if other is not None:
            other = _checked_table(other, name, base)
            other = same_columns(X, other, ("X", name))
            if other.shape[1] != X.shape[1]:
                raise ValueError(
                    f"X has {X.shape[1]} columns and {name} {other.shape[1]}; both need "
                    "the same columns in the same order"
                )
            if len(other) == 0:
                raise ValueError(f"{name} has no rows; pass {name}=None")
            if is_frame(X) != is_frame(other):
                values = np.asarray(other)
                other = type(X)(values, columns=X.columns) if is_frame(X) else values
        tables.append(other)
    _refuse_split_validation(X, tables[1])
    return tables


def _checked_table(X: Any, name: str, base: Any) -> Any:
    """Rows and columns, without dates that the base cannot take."""
    X = table_of(X, name)
    check_rows_and_columns(X, name)
    refuse_dates(X, name, base)
    return X


def check_rows_and_columns(X: Any, name: str) -> None:
    """Two dimensions."""
    if X.ndim == 2:
        return
    way = f"{name}.reshape(len({name}), -1) makes each point a row"
    if X.ndim == 1:
        way = f"{name}.reshape(-1, 1) for one column, {name}.reshape(1, -1) for one row"
    raise ValueError(
        f"{name} must be a table of shape (n, d), got shape {X.shape}. Reshape your data: {way}"
    )


def refuse_dates(X: Any, name: str, estimator: Any) -> None:
    """Dates are no numbers to an estimator that does not make some of them itself."""
    if not is_frame(X) or isinstance(estimator, Pipeline) or hasattr(estimator, "estimator"):
        return
    for column, kind in X.dtypes.items():
        if getattr(kind, "kind", None) in ("m", "M"):
            raise ValueError(
                f"{name}: column {column!r} holds dates or times ({kind}), which "
                f"{type(estimator).__name__} cannot take; make numbers of them, for example "
                f"{name}[{column!r}].astype('int64')"
            )


def checked_rows(estimator: BaseEstimator, X: Any) -> Any:
    """Rows to predict, with the columns of the fit."""
    X = in_order_of_fit(estimator, _checked_table(X, "X", estimator))
    validate_data(estimator, X, reset=False, skip_check_array=True)
    return X


def in_order_of_fit(estimator: BaseEstimator, X: Any) -> Any:
    """Columns to predict in the order of the fit; what else differs is for scikit-learn to say."""
    names = list(getattr(estimator, "feature_names_in_", ()))
    return X[names] if is_frame(X) and set(names) == set(X.columns) else X


def same_columns(X: Any, X_val: Any, called: tuple[str, str] = ("X", "X_val")) -> Any:
    """The second of two frames, its columns in the order of the first."""
    if not (is_frame(X) and is_frame(X_val)):
        return X_val
    order = columns_in_order(X.columns, X_val.columns, called)
    return X_val if order is None else X_val.iloc[:, order]


def _refuse_split_validation(X: Any, X_val: Any) -> None:
    """Refuse X_val that a search has cut like X, because it had as many rows."""
    frame = sys._getframe()
    while X_val is not None and len(X) == len(X_val) and frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_name == "_fit_and_score":  # scikit-learn's searches and cross-validation
            raise ValueError(
                "X_val has as many rows as X, and scikit-learn's search splits everything of that "
                "length: validation rows would be lost; leave one row of X_val out"
            )


def has_validation(X_val: Any, y_val: Any) -> bool:
    """Whether there are validation points; labels alone are a mistake."""
    if X_val is None and y_val is not None:
        raise ValueError("y_val came without X_val; pass both, or X_val alone")
    return X_val is not None


def class_labels(y: Any, n: int, name: str, estimator: BaseEstimator) -> NDArray[Any]:
    """One class label per point, of any type; numbers that are no classes are refused."""
    _refuse_none(y, estimator)
    if n == 0:
        raise ValueError(f"found 0 sample(s) for {name}; pass at least one point of each class")
    values = to_numpy(y, name)
    if values.ndim == 2 and values.shape[1] == 1:
        values = column_or_1d(values, warn=True)
    labels = as_labels(values, n, name)
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        raise ValueError(f"Input {name} contains infinity; drop those rows or name their class")
    check_classification_targets(labels)
    return labels


def regression_targets(y: Any, X: Any, name: str, estimator: BaseEstimator) -> Vector:
    """One finite number per row of X; text and dates are refused."""
    _refuse_none(y, estimator)
    y = to_numpy(y, name)
    dates = y.dtype.kind in "Mm"
    if dates or y.dtype.kind in "US" or isinstance(next(y.flat, None), str):
        raise ValueError(
            f"{name} must hold numbers, got {'dates or times' if dates else 'text'}; "
            "for classes take giw.ReweightedClassifier"
        )
    values = column_or_1d(y, warn=True, dtype=np.float64)
    check_consistent_length(X, values)
    if not np.isfinite(values).all():
        raise ValueError(f"Input {name} contains NaN or infinity; drop those rows")
    return values


def _refuse_none(y: Any, estimator: BaseEstimator) -> None:
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )


def joint_classes(
    y: NDArray[Any], y_val: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
    """Classes of both sets and the codes of their labels; validation may bring new classes."""
    first, first_val, text = _first(y), _first(y_val), (str, bytes)
    # a column of pandas holds text as objects, so the values are asked and not the dtype
    if len(y) and len(y_val) and isinstance(first, text) != isinstance(first_val, text):
        raise ValueError(
            f"y holds labels such as {first!r} and y_val {first_val!r}; give both "
            "the same kind of labels, for example y_val.astype(str)"
        )
    both = np.concatenate([y, y_val]) if len(y_val) else y
    classes, codes = np.unique(both, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            "need at least two classes over training and validation data, got 1 class: "
            f"{_first(classes)!r}"
        )
    refuse_many_classes(both, len(classes))
    if isinstance(first, text):
        alike = {str(label).strip().casefold(): label for label in np.unique(y).tolist()}
        for label in sorted(set(np.unique(y_val).tolist()) - set(alike.values())):
            if (other := alike.get(str(label).strip().casefold())) is not None:
                told = f"y_val has the label {label!r} and y {other!r}: write them alike"
                warnings.warn(f"{told} if they mean the same", stacklevel=callers_level())
    codes = codes.reshape(-1).astype(np.int64)
    return classes, codes[: len(y)], codes[len(y) :]


def _first(labels: NDArray[Any]) -> Any:
    """A label as its owner writes it: 1 and not np.int64(1)."""
    return next(iter(labels[:1].tolist()), None)


def row_weights(weight: Any, X: Any, name: str = "sample_weight") -> Vector:
    """Sample weights of a table; ones where there are none."""
    n = 0 if X is None else len(X)
    if n == 0 or weight is None:
        return np.ones(n)
    values = np.asarray(weight, dtype=np.float64)
    if values.ndim == 0:
        values = np.full(n, float(values))
    if values.shape != (n,):
        raise ValueError(f"{name} needs one number per row, {n}, got {values.shape}")
    if not np.isfinite(values).all() or values.min() < 0 or values.sum() == 0:
        raise ValueError(f"{name} must be finite, not negative, and not zero everywhere")
    return values


def check_splitter(splitter: Any) -> None:
    """A splitter, or none for the default one."""
    if splitter is not None and not isinstance(splitter, SupportSplitter):
        raise ValueError(
            f"splitter must be a giw.SupportSplitter, got {splitter!r}; a scorer goes "
            "inside: giw.SupportSplitter(scorer=…)"
        )


def check_estimator_instance(estimator: Any, name: str = "estimator") -> None:
    """Something to clone and fit, and not its class."""
    if isinstance(estimator, type):
        raise ValueError(
            f"{name} must be an instance, got the class {estimator.__name__}; call it: "
            f"{estimator.__name__}()"
        )
    if not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
        raise ValueError(
            f"{name} must be a scikit-learn estimator with fit and predict, got {estimator!r}"
        )
