"""What the estimators ask of points and labels: scikit-learn's contract and our own."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from giw.checks import as_labels, check_columns
from giw.estimators.rows import as_frame, as_rows, is_frame, refuse_dates, row_count
from giw.support import SupportSplitter

TEXT = (str, bytes)


def class_labels(y: Any, n: int, name: str, estimator: BaseEstimator) -> NDArray[Any]:
    """One class label per point, of any type; numbers that are no classes are refused."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )
    if n == 0:
        raise ValueError(f"found 0 sample(s) for {name}; pass at least one point of each class")
    values = y.detach().cpu().numpy() if hasattr(y, "detach") else np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = column_or_1d(values, warn=True)
    labels = as_labels(values, n, name)
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        raise ValueError(f"Input {name} contains infinity; drop those rows or name their class")
    check_classification_targets(labels)
    return labels


def regression_targets(y: Any, X: Any, name: str, estimator: BaseEstimator) -> NDArray[np.float64]:
    """One finite number per row of X; text and dates are refused."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )
    came = np.asarray(y)
    kind = came.dtype.kind
    if kind in "USMm" or any(isinstance(value, str) for value in came.ravel()[:1]):
        raise ValueError(
            f"{name} must hold numbers, got {'dates or times' if kind in ('M', 'm') else 'text'}; "
            "for classes take giw.ReweightedClassifier"
        )
    values = column_or_1d(y, warn=True, dtype=np.float64)
    check_consistent_length(X, values)
    if not np.isfinite(values).all():
        raise ValueError(f"Input {name} contains NaN or infinity; drop those rows")
    return values


def joint_classes(
    y: NDArray[Any], y_val: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
    """Classes of both sets and the codes of their labels; validation may bring new classes."""
    # a column of pandas holds text as objects, so the values are asked and not the dtype
    if len(y) and len(y_val) and isinstance(y[0], TEXT) != isinstance(y_val[0], TEXT):
        raise ValueError(
            f"y holds labels such as {_plain(y[0])!r} and y_val {_plain(y_val[0])!r}; give both "
            "the same kind of labels, for example y_val.astype(str)"
        )
    both = np.concatenate([y, y_val]) if len(y_val) else y
    classes, codes = np.unique(both, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            "need at least two classes over training and validation data, got 1 class: "
            f"{_plain(classes[0])!r}"
        )
    codes = codes.reshape(-1).astype(np.int64)
    return classes, codes[: len(y)], codes[len(y) :]


def _plain(label: Any) -> Any:
    """A label as its owner writes it: 1 and not np.int64(1)."""
    return label.item() if isinstance(label, np.generic) else label


def check_table(X: Any, name: str) -> None:
    """Rows and columns, and at least one row."""
    shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
    if len(shape) != 2:
        raise ValueError(
            f"{name} must be a table of shape (n, d), got shape {shape}. Reshape your data: "
            + (
                f"{name}.reshape(-1, 1) for one column, {name}.reshape(1, -1) for one row"
                if len(shape) == 1
                else f"{name}.reshape(len({name}), -1) makes each point a row"
            )
        )


def checked_tables(
    estimator: BaseEstimator, base: BaseEstimator, X: Any, X_val: Any, X_unlabelled: Any
) -> list[Any]:
    """All tables, frames if X is one; columns are counted and named as scikit-learn does."""
    X = as_frame(X)
    check_table(X, "X")
    validate_data(estimator, X, reset=True, skip_check_array=True)
    refuse_dates(X, "X", base)
    tables = [as_rows(X, "X")]
    for name, other in (("X_val", X_val), ("X_unlabelled", X_unlabelled)):
        if other is not None:
            other = as_frame(other)
            check_table(other, name)
            check_same_columns(X, other)
            refuse_dates(other, name, base)
            if np.shape(other)[1] != np.shape(X)[1]:
                raise ValueError(
                    f"X has {np.shape(X)[1]} columns and {name} {np.shape(other)[1]}; both need "
                    "the same columns in the same order"
                )
            validate_data(estimator, other, reset=False, skip_check_array=True)
            if row_count(other) == 0:
                raise ValueError(f"{name} has no rows; pass {name}=None")
            if is_frame(X) != is_frame(other):
                values = np.asarray(other)
                other = type(X)(values, columns=X.columns) if is_frame(X) else values
            other = as_rows(other, name)
        tables.append(other)
    refuse_split_validation(X, tables[1])
    return tables


def checked_rows(estimator: BaseEstimator, X: Any) -> Any:
    """Rows to predict, with the columns of the fit."""
    X = as_frame(X)
    if getattr(X, "ndim", 2) == 1:
        raise ValueError(
            "expected a table, got one dimension. Reshape your data: X.reshape(-1, 1) for one "
            "column, X.reshape(1, -1) for one row"
        )
    validate_data(estimator, X, reset=False, skip_check_array=True)
    return X if hasattr(X, "shape") else np.asarray(X)


def check_same_columns(X: Any, X_val: Any) -> None:
    """Two frames need the same columns in the same order; the way out depends on what differs."""
    if hasattr(X, "columns") and hasattr(X_val, "columns"):
        check_columns(X.columns, X_val.columns)


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


def has_validation(X_val: Any, y_val: Any) -> bool:
    """Whether there are validation points; labels alone are a mistake."""
    if X_val is None and y_val is not None:
        raise ValueError("y_val came without X_val; pass both, or X_val alone")
    return X_val is not None


def row_weights(weight: Any, X: Any, name: str = "sample_weight") -> NDArray[np.float64]:
    """Sample weights of a table; ones where there are none."""
    if X is None:
        return np.empty(0)
    if weight is None:
        return np.ones(row_count(X))
    values = np.asarray(weight, dtype=np.float64)
    if values.ndim == 0:
        values = np.full(row_count(X), float(values))
    if values.shape != (row_count(X),):
        raise ValueError(f"{name} needs one number per row, {row_count(X)}, got {values.shape}")
    if not np.isfinite(values).all() or values.min() < 0 or values.sum() == 0:
        raise ValueError(f"{name} must be finite, not negative, and not zero everywhere")
    return values


def refuse_split_validation(X: Any, X_val: Any) -> None:
    """Refuse X_val that a search has cut like X, because it had as many rows."""
    if X_val is None or row_count(X) != row_count(X_val):
        return
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_name == "_fit_and_score":  # scikit-learn's searches and cross-validation
            raise ValueError(
                "X_val has as many rows as X, and scikit-learn's search splits everything of that "
                "length: validation rows would be lost; leave one row of X_val out"
            )
