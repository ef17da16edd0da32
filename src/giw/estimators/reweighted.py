"""Any scikit-learn estimator under distribution shift: a stack of simple uses of both tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.utils.metaestimators import available_if

from giw.estimators.base import Reweighted, Vector
from giw.estimators.inputs import class_labels, joint_classes, regression_targets
from giw.estimators.rows import row_count


def _inner_has(name: str) -> Any:
    def check(self: Reweighted) -> bool:
        # an AttributeError here is what hasattr() wants to hear
        getattr(self._base(), name)
        return True

    return available_if(check)


class ReweightedClassifier(ClassifierMixin, Reweighted):
    r"""Any classifier that takes ``sample_weight``, as a stack of simple uses of both tables.

    A handful of candidates is fitted: training rows only; validation rows only; both tables with
    training rows weighted 1, :math:`\sqrt{m/n}` and :math:`m/n`; generalized importance weighting
    (validation rows are split into inside and outside the training support, training rows weighted
    to those inside, the others join); training rows weighted by features; class shares of
    validation; the training model recalibrated on validation labels; and small linear models. Each
    is fitted again without each fold of the validation rows. The prediction is
    :math:`\sum_k a_k q_k(y \mid x)` of calibrated probabilities :math:`q_k \propto p_k^{b_k}`, with
    weights that maximise

    .. math:: \sum_j \log \sum_k a_k\, q_k(y_j \mid x_j) + c \sum_k \pi_k \log a_k

    over left-out validation rows: a prior :math:`\pi` counts like :math:`c` further rows. Powers
    :math:`b_k` make labels of left-out rows most likely, with a penalty
    :math:`\frac c2 (\log b_k)^2`.

    Parameters
    ----------
    estimator : classifier with ``sample_weight``, optional
        Also a pipeline that ends in one. It is copied, never changed. If not given:
        ``HistGradientBoostingClassifier()``, seeded. One without ``sample_weight`` is refused.
    weights : str, estimator, function or None, default="classifier"
        The density ratio of the candidate "giw": "kmm", "kliep", "lsif", "ulsif", "rulsif" or
        "classifier"; an estimator with ``fit`` and ``weigh``; a function of (losses of training
        rows, losses of validation rows inside, their weights); None for uniform weights.
    candidates : "auto" or list, default="auto"
        Names of the usual candidates and objects with ``name``, ``prior`` and ``fit(tables)``;
        see :mod:`giw.estimators.candidates`.
    stack : bool, default=True
        False keeps the one candidate of largest weight, as ``estimator_``.
    splitter : SupportSplitter, optional
        How validation data are split, on features that are encoded and scaled.
    n_folds : int, default=4
        Folds of the validation rows, 3 at most with over five times ``fold_rows`` training rows;
        more of them take longer and judge fits to more rows.
    fold_rows : int, default=3000
        Training rows that the fits of a fold may see; more of them take longer and are closer to
        the fits that predict.
    least_weight : float, default=0.03
        Candidates of a smaller weight are dropped, and not fitted to all rows.
    n_jobs : int, optional
        Fits at a time, by joblib; each uses one thread. A Ray or Dask backend spreads them over
        machines.
    verbose : bool, default=False
        Show a progress bar.
    random_state : int, numpy generator or None, default=None
        For split and folds, and for the estimator if none is given; one that is given keeps its
        own.
    weigh_on, val_share : deprecated
        Without effect since 0.2.

    Attributes
    ----------
    candidates_ : dict of str to model
        The fitted ones, the largest weight first.
    stack_weight_ : dict of str to float
        Weight of each in the mean; they sum to one.
    power_ : dict of str to float
        Power to which the probabilities of each are raised, and scaled to sum to one.
    left_out_loss_ : dict of str to float
        Mean log-loss of each candidate at validation rows that it has not seen.
    left_out_score_ : dict of str to float
        Left-out accuracy of the "stack" (by weights that have not seen the row either) and of
        "training" alone.
    estimator_ : classifier
        The only candidate, with ``stack=False`` or without validation data.
    classes_ : array of shape (c,)
        Labels of training and validation data, sorted.
    split_ : SupportSplit or None
        Which validation points are inside the training support.
    alpha_ : float or None
        Share of the validation data inside the training support.
    weight_ : array of shape (n,)
        Weights of the training rows in the candidate "giw", mean one.
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

    _trees = HistGradientBoostingClassifier

    def _check_kind(self, base: Any) -> None:
        if not is_classifier(base):
            raise ValueError(f"{type(base).__name__} is no classifier; use giw.ReweightedRegressor")

    def _labels(
        self, y: Any, X: Any, y_val: Any, X_val: Any
    ) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Labels of both tables, checked; ``classes_`` holds those of either."""
        labels = class_labels(y, row_count(X), "y", self)
        if y_val is not None:
            y_val = class_labels(y_val, row_count(X_val), "y_val", self)
        self.classes_ = joint_classes(labels, labels[:0] if y_val is None else y_val)[0]
        return labels, y_val

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of largest probability, (n,)."""
        found = self._predictions(X)
        return self.classes_[found.argmax(axis=1)]

    @_inner_has("predict_proba")
    def predict_proba(self, X: Any) -> Vector:
        """Class probabilities, (n, c), columns in the order of ``classes_``."""
        return self._predictions(X)

    @_inner_has("decision_function")
    def decision_function(self, X: Any) -> Vector:
        """Log-odds of the second class, (n,), or log-probabilities of several, (n, c)."""
        found = np.log(np.maximum(self._predictions(X), 1e-12))
        return found[:, 1] - found[:, 0] if found.shape[1] == 2 else found


class ReweightedRegressor(RegressorMixin, Reweighted):
    """Any regressor that takes ``sample_weight``, as a stack of simple uses of both tables.

    Parameters, attributes and method as in :class:`giw.ReweightedClassifier`; the stack is a mean
    of predicted numbers, none beyond the labels of both tables; its weights minimise the squared
    error of left-out validation rows, and ``left_out_score_`` holds R². If no estimator is given:
    ``HistGradientBoostingRegressor()``.

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

    _trees = HistGradientBoostingRegressor

    def _check_kind(self, base: Any) -> None:
        if is_classifier(base):
            raise ValueError(f"{type(base).__name__} is a classifier; use giw.ReweightedClassifier")

    def _labels(self, y: Any, X: Any, y_val: Any, X_val: Any) -> tuple[Vector, Vector | None]:
        """Numbers of both tables, checked."""
        if y_val is not None:
            y_val = regression_targets(y_val, X_val, "y_val", self)
        return regression_targets(y, X, "y", self), y_val

    def predict(self, X: Any) -> Vector:
        """Predicted numbers, (n,)."""
        return self._predictions(X)
