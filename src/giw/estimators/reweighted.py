"""Any scikit-learn estimator under distribution shift: static generalized importance weighting."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.utils.metaestimators import available_if

from giw.estimators.inputs import (
    check_estimator_instance,
    class_labels,
    joint_classes,
    regression_targets,
)
from giw.estimators.reweighted_base import Reweighted
from giw.estimators.rows import row_count


def _inner_has(name: str) -> Any:
    def check(self: Reweighted) -> bool:
        # an AttributeError here is what hasattr() wants to hear
        getattr(self.estimator_ if hasattr(self, "estimator_") else self._base(), name)
        return True

    return available_if(check)


class ReweightedClassifier(ClassifierMixin, Reweighted):
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
        ``HistGradientBoostingClassifier()``, seeded. One without ``sample_weight`` is refused.
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
        For split and folds, and for the estimator if none is given; one that is given keeps its
        own.

    Attributes
    ----------
    estimator_ : classifier
        The fitted copy.
    classes_ : array of shape (c,)
        Labels of training and validation data, sorted.
    split_ : SupportSplit or None
        Which validation points are inside the training support.
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
    >>> X, Xv = rng.normal(size=(200, 2)), rng.normal(size=(30, 2)) + [[1, 0]]
    >>> clf = giw.ReweightedClassifier(LogisticRegression(), random_state=0)
    >>> clf = clf.fit(X, X[:, 0] > 0, X_val=Xv, y_val=Xv[:, 1] > 0)
    >>> clf.predict(Xv).shape
    (30,)
    """

    def _base(self) -> Any:
        if self.estimator is None:
            return HistGradientBoostingClassifier(random_state=self._base_seed())
        return self.estimator

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
        labels = class_labels(y, row_count(X), "y", self)
        val_labels = labels[:0]
        if y_val is not None:
            if X_val is None:
                raise ValueError("y_val came without X_val; pass both, or X_val alone")
            val_labels = class_labels(y_val, row_count(X_val), "y_val", self)
        self.classes_ = joint_classes(labels, val_labels)[0]
        self._fit_base(X, labels, X_val, None if y_val is None else val_labels)
        return self

    @_inner_has("predict_proba")
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class probabilities, (n, c), columns in the order of ``classes_``."""
        inner = self._fitted(X)
        probability = np.zeros((row_count(X), len(self.classes_)))
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


class ReweightedRegressor(RegressorMixin, Reweighted):
    """Any regressor that takes ``sample_weight``, fitted by generalized importance weighting.

    Parameters, attributes and method as in :class:`giw.ReweightedClassifier`; the loss of a point
    is the square of its cross-fitted residual in units of the typical one. If no estimator is
    given: ``HistGradientBoostingRegressor()``.

    Examples
    --------
    >>> import numpy as np, giw
    >>> from sklearn.linear_model import Ridge
    >>> rng = np.random.default_rng(0)
    >>> X, Xv = rng.normal(size=(200, 2)), rng.normal(size=(30, 2)) + [[1, 0]]
    >>> reg = giw.ReweightedRegressor(Ridge(), random_state=0)
    >>> reg.fit(X, X[:, 0], X_val=Xv, y_val=Xv[:, 0]).predict(Xv).shape
    (30,)
    """

    def _base(self) -> Any:
        if self.estimator is None:
            return HistGradientBoostingRegressor(random_state=self._base_seed())
        return self.estimator

    def fit(self, X: Any, y: Any, X_val: Any = None, y_val: Any = None) -> ReweightedRegressor:
        """Fit to (X, y), steered and completed by (X_val, y_val) from the test distribution."""
        check_estimator_instance(self._base())
        if is_classifier(self._base()):
            raise ValueError(
                f"{type(self._base()).__name__} is a classifier; use giw.ReweightedClassifier"
            )
        X_val = self._checked_tables(X, X_val)
        target = regression_targets(y, X, "y", self)
        val_target = None
        if y_val is not None:
            if X_val is None:
                raise ValueError("y_val came without X_val; pass both, or X_val alone")
            val_target = regression_targets(y_val, X_val, "y_val", self)
        self._fit_base(X, target, X_val, val_target)
        return self

    def _label_features(
        self, y: NDArray[Any], y_val: NDArray[Any]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        center, spread = float(y.mean()), float(y.std()) or 1.0
        return ((y - center) / spread)[:, None], ((y_val - center) / spread)[:, None]
