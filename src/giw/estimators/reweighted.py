"""Any scikit-learn estimator under distribution shift: static generalized importance weighting."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    RegressorMixin,
    clone,
    is_classifier,
)
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from giw.checks import as_generator
from giw.estimators.cross_fit import MANY, CrossFit, cross_fit, refined
from giw.estimators.folds import stratified_folds
from giw.estimators.inputs import (
    check_estimator_instance,
    check_same_columns,
    check_table,
    class_labels,
    joint_classes,
)
from giw.estimators.ratios import FittedRatio, fit_ratio, ratio_named
from giw.estimators.rows import (
    as_rows,
    features_for_split,
    is_frame,
    refuse_dates,
    rows_of,
    stacked,
)
from giw.estimators.saving import SavesToFolder
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
from giw.weights import ClassifierRatio, effective_sample_size

Vector = NDArray[np.float64]
WEIGH_ON = ("loss", "xy", "x")
FEWEST_TRAINING_ROWS = 10
MOST_SPLIT_ROWS = 10_000  # a sample of more rows shows where the training data are as well
FEWEST_OF_A_CLASS = 20  # rows of it in that sample, if there are so many
LEAST_EFFECTIVE = 0.1  # of the training points; fewer carry too much of the risk


class ShrunkWeightsWarning(UserWarning):
    """Weights could not be trusted and were drawn towards uniform."""


class _Reweighted(MetaEstimatorMixin, SavesToFolder, BaseEstimator):
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

    def _fit_base(self, X: Any, y: NDArray[Any], X_val: Any, y_val: Any) -> None:
        """All of the fit but the labels' own checks."""
        base = self._base()
        weight_keyword(base)  # refuse before any work is done
        if self.splitter is not None and not isinstance(self.splitter, SupportSplitter):
            raise ValueError(
                f"splitter must be a giw.SupportSplitter, got {self.splitter!r}; a scorer goes "
                "inside: giw.SupportSplitter(scorer=…)"
            )
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
        z, z_val = features_for_split(X, X_val)
        self.split_ = self._split(z, y, z_val, y_val, generator)
        inside = np.asarray(self.split_.membership, dtype=np.float64)
        self.alpha_ = float(inside.mean())
        if y_val is None:
            self._weigh_by_features(z, z_val, inside, generator)
            weight, points, labels = self.weight_, X, y
        else:
            found = cross_fit(base, X, y, X_val, y_val, (z, z_val), generator)
            self.val_share_ = 0.0 if given is None else given
            if found is not None:
                self._weigh_jointly(found, X, y, X_val, y_val, (z, z_val), inside)
            train, val = sample_weights(self.weight_, inside, self.val_share_)
            weight, labels = np.concatenate([train, val]), np.concatenate([y, y_val])
            points = stacked(X, X_val)
        self.sample_weight_ = weight
        self.effective_sample_size_ = effective_sample_size(self.weight_)
        counts = weight > 0
        self.estimator_ = fit_weighted(
            base, rows_of(points, counts), labels[counts], weight[counts]
        )

    def _split(
        self,
        z: NDArray[np.floating[Any]],
        y: NDArray[Any],
        z_val: NDArray[np.floating[Any]],
        y_val: Any,
        generator: np.random.Generator,
    ) -> SupportSplit:
        n = len(z)
        if n < FEWEST_TRAINING_ROWS:
            raise ValueError(
                f"need at least {FEWEST_TRAINING_ROWS} training rows to tell inside from outside, "
                f"got {n}; fit the estimator to all data instead"
            )
        z, z_val = z.astype(np.float32), z_val.astype(np.float32)  # distances need no more digits
        seed = int(generator.integers(2**31))
        splitter = (
            SupportSplitter(
                level=max(0.05, 1.5 / n),  # a p-value among n rows is at least 1 / n
                most_calibration=3_000 if n < MANY else 1_000,
                hide_parts=n < MANY,
                random_state=seed,
            )
            if self.splitter is None
            else clone(self.splitter)
        )
        if not is_classifier(self._base()):
            return splitter.fit(z[_some_rows(np.zeros(n), generator)]).split(z_val)
        rows = _some_rows(y, generator)
        return splitter.fit(z[rows], y[rows]).split(z_val, y_val)

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
            val_trust = mixture_share(found.val[:, 0], found.val[:, 1])
            self.val_share_ = validation_share(self.weight_, inside, val_trust)
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
        if not isinstance(self.val_share, int | float) or not 0 <= self.val_share <= 1:
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

    def _note(self, text: str, category: type[Warning] | None = None) -> None:
        self.notes_ = (*self.notes_, text)
        if category is not None:
            warnings.warn(text, category, stacklevel=5)

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
        if _rows(X_val) == 0:
            raise ValueError("X_val has no rows; pass X_val=None for a plain fit")
        if is_frame(X) and not is_frame(X_val) and not sparse.issparse(X_val):
            return type(X)(np.asarray(X_val), columns=X.columns)
        return X_val.to_numpy() if is_frame(X_val) and not is_frame(X) else X_val


def _trusts(fitted: FittedRatio, inside: Vector) -> tuple[float, float]:
    """What left-out points bear out, and what the effective sample size allows."""
    borne_out = 1.0 if fitted.left_out is None else likelihood_trust(fitted.left_out, inside)
    return borne_out, effective_trust(fitted.weight, LEAST_EFFECTIVE * len(fitted.weight))


def _inner_has(name: str) -> Any:
    def check(self: _Reweighted) -> bool:
        # an AttributeError here is what hasattr() wants to hear
        getattr(self.estimator_ if hasattr(self, "estimator_") else self._base(), name)
        return True

    return available_if(check)


class ReweightedClassifier(ClassifierMixin, _Reweighted):
    r"""Any classifier that takes ``sample_weight``, fitted by generalized importance weighting.

    .. math:: \alpha \Big[ (1 - \beta) \frac1n \sum_i w_i \ell_i
              + \beta \frac{1}{\sum_j s_j} \sum_j s_j \ell_j \Big]
              + \frac1m \sum_j (1 - s_j) \ell_j

    Validation points are split once into inside (s = 1) and outside the training support.
    Training points are weighted by a static ratio :math:`w \approx p(x, y \mid s = 1) / p_{\rm
    tr}(x, y)`, estimated on their losses under two models that have not seen them: one of all
    data, one of validation data (of the estimator's kind or linear, whichever predicts left-out
    validation points better). A training point whose label both find unlikely, where validation
    points have likely labels, counts little. Outside points join training with their share of the
    risk. The estimator is then fitted once, with weights of mean one.

    Parameters
    ----------
    estimator : classifier with ``sample_weight``, optional
        Also a pipeline that ends in one. It is copied, never changed. If not given:
        ``HistGradientBoostingClassifier()``. One without ``sample_weight`` is refused.
    weights : str, estimator, function or None, default="classifier"
        The density ratio: "kmm", "kliep", "lsif", "ulsif", "rulsif" or "classifier"; an estimator
        with ``fit`` and ``weigh``; a function of (z_train, z_val, val_weight); None for uniform
        weights.
    weigh_on : {"loss", "xy", "x"}, default="loss"
        What the ratio sees: cross-fitted losses, features and labels, or features alone.
    val_share : "auto" or float, default="auto"
        The share β of validation points in the risk inside the training support. 0 is GIW as
        published, and with everything inside plain importance weighting; by default it is larger
        the fewer training points are effective and the less they help.
    splitter : SupportSplitter, optional
        How validation data are split, on features that are encoded and scaled.
    random_state : int, numpy generator or None, default=None
        For split and folds; the estimator keeps its own.

    Attributes
    ----------
    estimator_ : classifier
        The fitted copy.
    classes_ : array of shape (c,)
    split_ : SupportSplit or None
    alpha_ : float or None
        Share of the validation data inside the training support.
    weight_ : array of shape (n,)
        Weights of the training points after shrinking, mean one.
    trust_ : float
        What is left of the estimated weights: 1 all, 0 uniform weights.
    val_share_ : float
        The share β of validation points in the risk inside the training support.
    sample_weight_ : array of shape (n + m,)
        What each training and validation point counted for.
    effective_sample_size_ : float
        Of the training points.
    notes_ : tuple of str
        What was decided, and why.

    Examples
    --------
    >>> import numpy as np, giw
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X, Xv = rng.normal(size=(200, 2)), rng.normal(size=(30, 2)) + [[4, 0]]
    >>> clf = giw.ReweightedClassifier(LogisticRegression(), random_state=0)
    >>> clf = clf.fit(X, X[:, 0] > 0, X_val=Xv, y_val=Xv[:, 1] > 0)
    >>> clf.predict(Xv).shape
    (30,)
    """

    def _base(self) -> Any:
        return HistGradientBoostingClassifier() if self.estimator is None else self.estimator

    def fit(self, X: Any, y: Any, X_val: Any = None, y_val: Any = None) -> ReweightedClassifier:
        """Fit to (X, y), steered and completed by (X_val, y_val) from the test distribution.

        Without validation data this is the plain fit, and a warning says so. Without ``y_val``
        weights are estimated on X alone, and outside points cannot join.
        """
        check_estimator_instance(self._base())
        if not is_classifier(self._base()):
            raise ValueError(
                f"{type(self._base()).__name__} is no classifier; use giw.ReweightedRegressor"
            )
        X_val = self._checked_tables(X, X_val)
        labels = class_labels(y, _rows(X), "y", self)
        val_labels = labels[:0]
        if y_val is not None:
            if X_val is None:
                raise ValueError("y_val came without X_val; pass both, or X_val alone")
            val_labels = class_labels(y_val, _rows(X_val), "y_val", self)
        self.classes_ = joint_classes(labels, val_labels)[0]
        self._fit_base(X, labels, X_val, None if y_val is None else val_labels)
        return self

    @_inner_has("predict_proba")
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class probabilities, (n, c), columns in the order of ``classes_``."""
        inner = self._fitted(X)
        probability = np.zeros((_rows(X), len(self.classes_)))
        probability[:, np.searchsorted(self.classes_, inner.classes_)] = inner.predict_proba(X)
        return probability

    @_inner_has("decision_function")
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The decision function of the fitted estimator."""
        return self._fitted(X).decision_function(X)

    def _label_features(
        self, y: NDArray[Any], y_val: NDArray[Any]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return (
            (y[:, None] == self.classes_).astype(np.float64),
            (y_val[:, None] == self.classes_).astype(np.float64),
        )


class ReweightedRegressor(RegressorMixin, _Reweighted):
    """Any regressor that takes ``sample_weight``, fitted by generalized importance weighting.

    Parameters, attributes and method as in :class:`giw.ReweightedClassifier`; the loss of a point
    is the square of its cross-fitted residual in units of the typical one. If no estimator is
    given: ``HistGradientBoostingRegressor()``.

    Examples
    --------
    >>> import numpy as np, giw
    >>> from sklearn.linear_model import Ridge
    >>> rng = np.random.default_rng(0)
    >>> X, Xv = rng.normal(size=(200, 2)), rng.normal(size=(30, 2)) + [[4, 0]]
    >>> reg = giw.ReweightedRegressor(Ridge(), random_state=0)
    >>> reg.fit(X, X[:, 0], X_val=Xv, y_val=Xv[:, 0]).predict(Xv).shape
    (30,)
    """

    def _base(self) -> Any:
        return HistGradientBoostingRegressor() if self.estimator is None else self.estimator

    def fit(self, X: Any, y: Any, X_val: Any = None, y_val: Any = None) -> ReweightedRegressor:
        """Fit to (X, y), steered and completed by (X_val, y_val) from the test distribution."""
        check_estimator_instance(self._base())
        if is_classifier(self._base()):
            raise ValueError(
                f"{type(self._base()).__name__} is a classifier; use giw.ReweightedClassifier"
            )
        X_val = self._checked_tables(X, X_val)
        target = _targets(y, X, "y", self)
        val_target = None
        if y_val is not None:
            if X_val is None:
                raise ValueError("y_val came without X_val; pass both, or X_val alone")
            val_target = _targets(y_val, X_val, "y_val", self)
        self._fit_base(X, target, X_val, val_target)
        return self

    def _label_features(
        self, y: NDArray[Any], y_val: NDArray[Any]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        center, spread = float(y.mean()), float(y.std()) or 1.0
        return ((y - center) / spread)[:, None], ((y_val - center) / spread)[:, None]


def _some_rows(label: NDArray[Any], generator: np.random.Generator) -> NDArray[np.int64]:
    """Rows that stand for the training support: all, or a sample with some of every class."""
    if len(label) <= MOST_SPLIT_ROWS:
        return np.arange(len(label))
    order = generator.permutation(len(label))
    codes = np.unique(label[order], return_inverse=True)[1].reshape(-1)
    by_class = np.argsort(codes, kind="stable")
    count = np.bincount(codes)
    place = np.arange(len(label)) - np.repeat(np.cumsum(count) - count, count)  # within its class
    few = by_class[place < FEWEST_OF_A_CLASS]
    return np.unique(np.concatenate([order[:MOST_SPLIT_ROWS], order[few]]))


def _rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(np.asarray(X))


def _targets(y: Any, X: Any, name: str, estimator: BaseEstimator) -> NDArray[np.float64]:
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
