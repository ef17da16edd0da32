"""What reweighted classifiers and regressors share: all but the labels' own checks."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from giw.checks import as_generator, callers_level
from giw.estimators.cross_fit import MANY, CrossFit, cross_fit, refined
from giw.estimators.folds import stratified_folds
from giw.estimators.inputs import check_same_columns, check_splitter, check_table
from giw.estimators.ratios import FittedRatio, fit_ratio, ratio_named
from giw.estimators.rows import (
    as_rows,
    is_frame,
    refuse_dates,
    row_count,
    rows_of,
    stacked,
)
from giw.estimators.saving import SavesToFolder
from giw.estimators.static_split import split_once
from giw.estimators.static_weights import (
    effective_trust,
    likelihood_trust,
    mixture_share,
    sample_weights,
    shrunk,
    validation_share,
)
from giw.estimators.weighted_fit import fit_weighted, weight_keyword
from giw.support import SupportSplit, SupportSplitter
from giw.tables import encoded
from giw.weights import ClassifierRatio, effective_sample_size

Vector = NDArray[np.float64]
WEIGH_ON = ("loss", "xy", "x")
LEAST_EFFECTIVE = 0.1  # of the training points; fewer carry too much of the risk


class ShrunkWeightsWarning(UserWarning):
    """Weights could not be trusted and were drawn towards uniform."""


class Reweighted(MetaEstimatorMixin, SavesToFolder, BaseEstimator):
    """What classifier and regressor share: split, weigh, shrink, join, fit once."""

    def __init__(
        self,
        estimator: Any = None,
        *,
        weights: Any = "classifier",
        weigh_on: str = "loss",
        val_share: float | str = "auto",
        splitter: SupportSplitter | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.weights = weights
        self.weigh_on = weigh_on
        self.val_share = val_share
        self.splitter = splitter
        self.random_state = random_state

    def predict(self, X: Any) -> NDArray[Any]:
        """Predictions of the fitted estimator, (n,)."""
        return self._fitted(X).predict(X)

    def _fitted(self, X: Any) -> Any:
        check_is_fitted(self, "estimator_")
        if getattr(X, "ndim", 2) == 1:
            raise ValueError(
                "expected a table, got one dimension. Reshape your data: X.reshape(-1, 1) for one "
                "column, X.reshape(1, -1) for one row"
            )
        validate_data(self, X, reset=False, skip_check_array=True)
        return self.estimator_

    def __sklearn_tags__(self) -> Any:
        """What the wrapped estimator takes, this one takes."""
        tags = super().__sklearn_tags__()
        inner = get_tags(self._base()).input_tags
        tags.input_tags.allow_nan, tags.input_tags.sparse = inner.allow_nan, inner.sparse
        return tags

    def _base(self) -> Any:
        raise NotImplementedError

    def _base_seed(self) -> int:
        """For the estimator that is taken if none is given: without a seed it asks the global one.

        It is made anew at every call and must not draw from a generator each time.
        """
        given = self.random_state
        return int(given) if isinstance(given, int | np.integer) and given >= 0 else 0

    def _fit_base(self, X: Any, y: NDArray[Any], X_val: Any, y_val: Any) -> None:
        """All of the fit but the labels' own checks."""
        base = self._base()
        weight_keyword(base)  # refuse before any work is done
        check_splitter(self.splitter)
        if self.weigh_on not in WEIGH_ON:
            raise ValueError(f"weigh_on must be one of {WEIGH_ON}, got {self.weigh_on!r}")
        given = self._given_share()
        generator = as_generator(self.random_state)
        self.split_: SupportSplit | None = None
        self.alpha_: float | None = None
        self.weight_ = np.ones(len(y))
        self.trust_, self.val_share_ = 0.0, 0.0
        self.notes_: tuple[str, ...] = ()
        if X_val is None:
            self._say_plain()
            self.effective_sample_size_ = float(len(y))
            self.sample_weight_ = np.ones(len(y))
            # one class is for the estimator to accept or refuse
            self.estimator_ = clone(base).fit(X, y)
            return
        X, X_val = as_rows(X, "X"), as_rows(X_val, "X_val")
        z, z_val = encoded(X, X_val)
        classes = (y, y_val) if is_classifier(base) else (None, None)
        self.split_ = split_once(self.splitter, z, classes[0], z_val, classes[1], generator)
        inside = np.asarray(self.split_.membership, dtype=np.float64)
        self.alpha_ = float(inside.mean())
        if y_val is None:
            self._weigh_by_features(z, z_val, inside, generator)
            weight, points, labels = self.weight_, X, y
        else:
            found = cross_fit(base, X, y, X_val, y_val, (z, z_val), generator)
            self.val_share_ = 0.0 if given is None else given
            if inside.sum() == 0:
                self._say_all_outside(len(y_val))
            if found is not None:
                self._weigh_jointly(found, X, y, X_val, y_val, (z, z_val), inside)
            elif inside.sum() > 0:
                self._note(
                    "a single validation point cannot be left out and judged: training points "
                    "count alike"
                    + ("" if self.val_share_ else ", and the point, inside, for nothing")
                )
            train, val = sample_weights(self.weight_, inside, self.val_share_)
            weight, labels = np.concatenate([train, val]), np.concatenate([y, y_val])
            points = stacked(X, X_val)
        self.sample_weight_ = weight
        self.effective_sample_size_ = effective_sample_size(self.weight_)
        counts = weight > 0
        self.estimator_ = fit_weighted(
            base, rows_of(points, counts), labels[counts], weight[counts]
        )

    def _weigh_by_features(
        self, z: Vector, z_val: Vector, inside: Vector, generator: np.random.Generator
    ) -> None:
        outside = int((inside < 0.5).sum())
        self._note(
            "validation data have no labels: weights know the points only, and the "
            f"{outside} of {len(inside)} validation points outside the training support cannot "
            "join training; label those first"
        )
        if self.weights is None or inside.sum() == 0:
            return
        folds = min(5, len(z_val), len(z))
        fold = stratified_folds(np.zeros(len(z)), folds, generator)
        val_fold = stratified_folds(np.zeros(len(z_val)), folds, generator)
        fitted = fit_ratio(ratio_named(self.weights), z, z_val, inside, fold, val_fold)
        self._believe(fitted, inside)
        self._say_shrunk(fitted, inside)

    def _weigh_jointly(
        self,
        found: CrossFit,
        X: Any,
        y: NDArray[Any],
        X_val: Any,
        y_val: NDArray[Any],
        z: tuple[Vector, Vector],
        inside: Vector,
    ) -> None:
        """Weights of (x, y): by losses, looked at twice where that is quick, or by features."""
        if self.weights is not None and inside.sum() > 1:
            ratio, at = ratio_named(self.weights), (found.train, found.val)
            if self.weigh_on == "loss":
                if isinstance(self.weights, str) and self.weights == "classifier":
                    # two features: nothing to choose, and a fit of milliseconds
                    ratio = ClassifierRatio(features="linear", ridge=0.03, balanced=True)
            else:
                at = z
                if self.weigh_on == "xy":
                    label, val_label = self._label_features(y, y_val)
                    at = np.hstack([z[0], label]), np.hstack([z[1], val_label])
            fitted = fit_ratio(ratio, *at, inside, found.fold, found.val_fold)
            self._believe(fitted, inside)
        if self.val_share == "auto":
            self.val_share_ = validation_share(self.weight_, inside, val_trust(found))
        if self.weights is None or inside.sum() <= 1:
            return
        if self.weigh_on == "loss" and self.trust_ > 0 and len(y) < MANY:
            again = refined(
                self._base(), X, y, X_val, y_val, found,
                by_fold=fitted.by_fold, trust=self.trust_, inside=inside, share=self.val_share_,
            )  # fmt: skip
            fitted = fit_ratio(ratio, again.train, again.val, inside, found.fold, found.val_fold)
            self._believe(fitted, inside)
        self._say_shrunk(fitted, inside)

    def _given_share(self) -> float | None:
        """The share that was asked for; None where it is to be found."""
        if isinstance(self.val_share, str) and self.val_share == "auto":
            return None
        if not isinstance(self.val_share, int | float | np.number) or not 0 <= self.val_share <= 1:
            raise ValueError(
                f"val_share must be 'auto' or a number from 0 to 1, got {self.val_share!r}"
            )
        return float(self.val_share)

    def _believe(self, fitted: FittedRatio, inside: Vector) -> None:
        """Take as much of the ratio as left-out points and the effective sample size bear out."""
        self.trust_ = min(_trusts(fitted, inside))
        self.weight_ = shrunk(fitted.weight, self.trust_)

    def _say_shrunk(self, fitted: FittedRatio, inside: Vector) -> None:
        borne_out, allowed = _trusts(fitted, inside)
        n, few = len(fitted.weight), effective_sample_size(fitted.weight)
        if allowed < borne_out:
            self._note(
                f"weights shrunk to {self.trust_:.2f} of their size: as estimated they leave "
                f"{few:.0f} effective of {n} training points",
                ShrunkWeightsWarning,
            )
        elif borne_out < 1:
            # where weights were nearly uniform anyway there is nothing to warn of
            matters = borne_out < 0.5 and few < 0.8 * n
            self._note(
                f"weights shrunk to {self.trust_:.2f} of their size: validation points left out "
                "of the fit do not bear out more",
                ShrunkWeightsWarning if matters else None,
            )

    def _label_features(
        self, y: NDArray[Any], y_val: NDArray[Any]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        raise NotImplementedError

    def _say_plain(self) -> None:
        self._note(
            f"no validation data: {type(self).__name__} has nothing to adapt to and fits plainly; "
            "pass X_val and y_val from the test distribution",
            UserWarning,
        )

    def _say_all_outside(self, m: int) -> None:
        self._note(
            f"none of the {m} validation points is inside the training support: training points "
            "count for nothing, and the estimator is fitted to validation points alone; if a "
            "column such as a date or a running number is to blame, leave it out "
            "(giw.diagnose names such columns)",
            UserWarning,
        )

    def _note(self, text: str, category: type[Warning] | None = None) -> None:
        self.notes_ = (*self.notes_, text)
        if category is not None:
            warnings.warn(text, category, stacklevel=callers_level())

    def _checked_tables(self, X: Any, X_val: Any) -> Any:
        """X_val, a frame if X is one; columns are counted and named as scikit-learn does."""
        check_table(X, "X")
        validate_data(self, X, reset=True, skip_check_array=True)
        refuse_dates(X, "X", self._base())
        if X_val is None:
            return None
        check_table(X_val, "X_val")
        check_same_columns(X, X_val)
        refuse_dates(X_val, "X_val", self._base())
        if np.ndim(X_val) == 2 and np.shape(X_val)[1] != self.n_features_in_:
            raise ValueError(
                f"X has {self.n_features_in_} columns and X_val {np.shape(X_val)[1]}; both need "
                "the same columns in the same order"
            )
        validate_data(self, X_val, reset=False, skip_check_array=True)
        if row_count(X_val) == 0:
            raise ValueError("X_val has no rows; pass X_val=None for a plain fit")
        if is_frame(X) and not is_frame(X_val) and not sparse.issparse(X_val):
            return type(X)(np.asarray(X_val), columns=X.columns)
        return X_val.to_numpy() if is_frame(X_val) and not is_frame(X) else X_val


def val_trust(found: CrossFit) -> float:
    """How little training data help: what validation data alone are worth beside both, 0 to 1.

    A linear model of validation data may beat pooled trees because the truth is linear, and not
    because training data are wrong. So it must also beat the linear model of both.
    """
    pooled, alone = found.val.T
    return min(mixture_share(pooled, alone), mixture_share(found.rival, alone))


def _trusts(fitted: FittedRatio, inside: Vector) -> tuple[float, float]:
    """What left-out points bear out, and what the effective sample size allows."""
    borne_out = 1.0 if fitted.left_out is None else likelihood_trust(fitted.left_out, inside)
    return borne_out, effective_trust(fitted.weight, LEAST_EFFECTIVE * len(fitted.weight))
