"""Any scikit-learn estimator under distribution shift: a stack of simple uses of both tables."""

from __future__ import annotations

import html
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    RegressorMixin,
    is_classifier,
)
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from giw.checks import as_generator, callers_level, check_count, warn_deprecated
from giw.estimators.candidates import (
    Candidate,
    Tables,
    default_candidates,
    ratio_named,
    weight_by_features,
    weight_by_losses,
)
from giw.estimators.fitting import (
    binned_for,
    fit_weighted,
    predictions,
    refuse_columns,
    takes_any_unit,
    weight_keyword,
)
from giw.estimators.inputs import (
    Encoded,
    check_estimator_instance,
    check_splitter,
    checked_rows,
    checked_tables,
    class_labels,
    encode_and_split,
    has_validation,
    joint_classes,
    regression_targets,
    row_hashes,
    row_weights,
    rows_of,
    said_of_copies,
    stacked,
)
from giw.estimators.limits import KnowsLimits, Reference
from giw.estimators.saving import SavesToFolder
from giw.estimators.stack import (
    LeftOut,
    Mixture,
    fit_candidate,
    leave_out,
    prior_rows,
    run_all,
)
from giw.support import SupportSplit, SupportSplitter
from giw.threads import one_thread

Vector = NDArray[np.float64]
GONE = {  # attributes of version 0.1.0, and what tells something like them
    "trust_": "stack_weight_",
    "val_share_": "stack_weight_",
    "sample_weight_": "weight_",
    "effective_sample_size_": "weight_",
}


class Reweighted(MetaEstimatorMixin, KnowsLimits, SavesToFolder, BaseEstimator):
    """What classifier and regressor share."""

    def __init__(
        self,
        estimator: Any = None,
        *,
        weights: Any = "classifier",
        candidates: str | Sequence[str | Candidate] = "auto",
        stack: bool = True,
        splitter: SupportSplitter | None = None,
        n_folds: int = 4,
        fold_rows: int = 3_000,
        least_weight: float = 0.03,
        n_jobs: int | None = None,
        verbose: bool = False,
        random_state: Any = None,
        weigh_on: Any = "deprecated",
        val_share: Any = "deprecated",
    ) -> None:
        self.estimator = estimator
        self.weights = weights
        self.candidates = candidates
        self.stack = stack
        self.splitter = splitter
        self.n_folds = n_folds
        self.fold_rows = fold_rows
        self.least_weight = least_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.weigh_on = weigh_on
        self.val_share = val_share

    def fit(
        self,
        X: Any,
        y: Any,
        X_val: Any = None,
        y_val: Any = None,
        *,
        sample_weight: Any = None,
        sample_weight_val: Any = None,
        groups_val: Any = None,
        X_unlabelled: Any = None,
    ) -> Any:
        """Fit to (X, y) and to (X_val, y_val) from the test distribution.

        Parameters
        ----------
        X, y : training data
            Rows and labels.
        X_val, y_val : validation data, optional
            Without them this is the plain fit, and a warning says so. Without ``y_val`` training
            rows are weighted by features alone.
        sample_weight, sample_weight_val : arrays of shape (n,) and (m,), optional
            Survey weights or confidence in labels; each table's own are scaled to mean one.
        groups_val : array of shape (m,), optional
            Validation rows of one group (person, shop, day) are left out together.
        X_unlabelled : more rows of the test distribution, optional
            They take part in the split and in weights by features.
        """
        base = self._base()
        self._check_settings(base)
        X, X_val, X_unlabelled = checked_tables(self, base, X, X_val, X_unlabelled)
        has_validation(X_val, y_val)
        y, y_val = self._labels(y, X, y_val, X_val)
        weight = row_weights(sample_weight, X)
        weight_val = row_weights(sample_weight_val, X_val, "sample_weight_val")
        if groups_val is not None:
            check_consistent_length(X_val, groups_val)
        self.notes_: tuple[str, ...] = ()
        self.split_: SupportSplit | None = None
        self.alpha_: float | None = None
        self.limits_: tuple[float, float] | None = None
        self.reference_: Reference | None = None
        self.weight_, self.val_rows_ = np.ones(len(y)), np.empty(0, dtype=np.uint64)
        targets = [table for table in (X_val, X_unlabelled) if table is not None]
        with one_thread():
            if not targets:
                self._warn(
                    f"no validation data: {type(self).__name__} has nothing to adapt to and fits "
                    "plainly; pass X_val and y_val from the test distribution"
                )
                refuse_columns(base, X)
                return self._keep({"training": (fit_weighted(base, X, y, weight), 1.0, 1.0)})
            generator = as_generator(self.random_state)
            target = targets[0] if len(targets) == 1 else stacked(*targets)
            self.reference_ = Reference.of(X, target)
            m = 0 if y_val is None else len(y_val)
            known = is_classifier(base) and m == len(target)
            encoded = encode_and_split(
                X, target, y=y if known else None, y_target=y_val if known else None,
                splitter=self.splitter,
            )  # fmt: skip
            self._say_split(encoded)
            self._say_units(base, encoded)
            if copies := said_of_copies(encoded.z, encoded.z_target[:m]):
                self._warn(copies)
            data = self._tables(base, X, y, rows_of(target, np.arange(m)), y_val, encoded,
                                _mean_one(weight), _mean_one(weight_val)[:m])  # fmt: skip
            candidates = self._candidates(m, unlabelled=m < len(target))
            left_out = leave_out(
                candidates, data, generator, groups=groups_val, n_folds=self.n_folds,
                fold_rows=self.fold_rows, n_jobs=self.n_jobs, verbose=self.verbose,
            )  # fmt: skip
            return self._stack(candidates, data, left_out)

    def _base(self) -> Any:
        """The estimator to copy; if none is given, boosted trees.

        Without a seed these would ask numpy's global one.
        """
        if self.estimator is not None:
            return self.estimator
        given = self.random_state
        return self._trees(random_state=int(given) if isinstance(given, int | np.integer) else 0)

    def _check_settings(self, base: Any) -> None:
        """Refuse before any work is done."""
        check_estimator_instance(base)
        if is_classifier(base) != is_classifier(self):
            other = "no classifier; use giw.ReweightedRegressor"
            if is_classifier(base):
                other = "a classifier; use giw.ReweightedClassifier"
            raise ValueError(f"{type(base).__name__} is {other}")
        weight_keyword(base)
        check_splitter(self.splitter)
        if self.weights is not None:
            ratio_named(self.weights)
        check_count(self.n_folds, "n_folds", least=2)
        check_count(self.fold_rows, "fold_rows", least=1)
        gone = {"weigh_on": self.weigh_on, "val_share": self.val_share}
        warn_deprecated(gone, "left-out validation points weigh candidates")

    def _say_split(self, encoded: Encoded) -> None:
        self.split_, self.alpha_ = encoded.split, float(encoded.inside.mean())
        if encoded.split is None:
            n = len(encoded.z)
            self._note(f"{n} training rows cannot tell inside from outside: all count inside")
        elif self.alpha_ == 0:
            self._note(
                f"none of the {len(encoded.z_target)} validation points is inside the training "
                "support; if a column such as a date or a running number is to blame, leave it out "
                "(giw.diagnose names such columns)"
            )

    def _say_units(self, base: Any, encoded: Encoded) -> None:
        """Warn where columns come in units in which solvers stop too early."""
        if takes_any_unit(base):
            return
        encoder = encoded.encoder
        of = zip(encoder.feature_names_, encoder.feature_columns_, encoder.center_, encoder.unit_,
                 strict=True)  # fmt: skip
        far = [
            column for feature, column, center, unit in of
            if feature == column and unit != 1  # an indicator, or a constant
            and not (1e-6 < unit < 1e6 and abs(center) < 1e6 * unit)
        ]  # fmt: skip
        if far:
            self._warn(
                f"columns {far[:5]!r} have a mean of a million times their spread, or a spread "
                f"above 1e6 or below 1e-6: {type(base).__name__} may stop too early; put a scaler "
                "in front: make_pipeline(StandardScaler(), ...)"
            )

    def _note(self, *texts: str) -> None:
        self.notes_ = (*self.notes_, *texts)

    def _warn(self, text: str) -> None:
        self._note(text)
        warnings.warn(text, UserWarning, stacklevel=callers_level())

    def _tables(
        self,
        base: Any,
        X: Any,
        y: NDArray[Any],
        X_val: Any,  # labelled rows
        y_val: NDArray[Any] | None,
        encoded: Encoded,
        weight: Vector,
        weight_val: Vector,
    ) -> Tables:
        """Both tables as candidates see them, with the base fitted to training alone."""
        n, m = len(y), len(X_val)
        rows = binned_for(base, stacked(X, X_val))
        self.val_rows_ = row_hashes(X_val)
        refuse_columns(base, rows)
        try:
            plain = fit_weighted(base, rows_of(rows, np.arange(n)), y, weight)
        except Exception as error:  # in any way that a base may fail
            plain = None
            self._note(f"training alone cannot be fitted: {' '.join(str(error).split())[:300]}")
        data = Tables(
            base=base, rows=rows, label=y if y_val is None else np.concatenate([y, y_val]),
            classes=getattr(self, "classes_", None), is_val=np.arange(n + m) >= n,
            weight=np.r_[weight, weight_val], features=np.r_[encoded.z, encoded.z_target[:m]],
            inside=np.r_[np.ones(n, bool), encoded.inside[:m]], encoder=encoded.encoder,
            plain=plain, ratio=self.weights, target=encoded.z_target[m:][encoded.inside[m:]],
        )  # fmt: skip
        self.limits_ = data.limits
        return data

    def _candidates(self, m: int, unlabelled: bool) -> list[Candidate]:
        """Those that were asked for, or the usual ones for m labelled validation rows."""
        if isinstance(self.candidates, str) and self.candidates == "auto":
            return default_candidates(m > 0, unlabelled)
        known = {c.name: c for c in default_candidates(m > 0, unlabelled=True)}
        unknown = [c for c in self.candidates if isinstance(c, str) and c not in known]
        if isinstance(self.candidates, str) or unknown:
            raise ValueError(
                f"candidates must be 'auto' or a list of candidates and of the names "
                f"{', '.join(map(repr, known))}; got {unknown or self.candidates!r}"
            )
        return [known[c] if isinstance(c, str) else c for c in self.candidates]

    def _stack(
        self, candidates: Sequence[Candidate], data: Tables, left_out: LeftOut | None
    ) -> Any:
        """Weights of the candidates, and fits of those that matter to all rows."""
        chosen = [c for c in candidates if left_out is None or c.name in left_out.names]
        if left_out is None:
            rows = int(data.is_val.sum())
            self._note(f"{rows} labelled validation rows cannot be left out and "
                       "judged: candidates keep the weights that they have without")  # fmt: skip
            # one row tells nothing; without any, both of the two candidates stay
            classes = None if data.classes is None else len(data.classes)
            counts = prior_rows(chosen, float(rows == 0), rows, classes)
            mixture = Mixture(counts / counts.sum(), np.ones(len(counts)))
        else:
            self._note(*left_out.notes)
            data, mixture = replace(data, loss=left_out.judged), left_out.mixture
        if data.loss is not None:
            self.weight_ = weight_by_losses(data)
            data = replace(data, inside_weight=self.weight_)
        elif any(c.name == "weighted by features" for c in candidates):
            self.weight_ = weight_by_features(data)
        share = mixture.share
        keep = np.argsort(-share)[:1]
        if self.stack:  # training alone is fitted already, and always stays
            stays = np.array([c.name == "training" for c in chosen])
            keep = np.flatnonzero(stays | (share >= self.least_weight) | (share == share.max()))
        tasks = [(fit_candidate, chosen[j], data) for j in keep]
        models = run_all(tasks, n_jobs=self.n_jobs, verbose=self.verbose, name="candidates")
        fitted: dict[str, Any] = {}
        for j, model in zip(keep, models, strict=True):
            if isinstance(model, str):
                self._note(f"{chosen[j].name} steps aside: {model}")
            else:
                fitted[chosen[j].name] = (model, share[j], mixture.power[j])
        if not fitted and data.plain is None:
            raise ValueError("no candidate could be fitted: " + "; ".join(self.notes_))
        return self._keep(fitted or {"training": (data.plain, 1.0, 1.0)}, left_out)

    def _keep(
        self, fitted: dict[str, tuple[Any, float, float]], left_out: LeftOut | None = None
    ) -> Any:
        """Models with weights and powers, the largest weight first; what left-out rows say."""
        order = sorted(fitted, key=lambda name: -fitted[name][1])
        total = np.sum([fitted[name][1] for name in fitted])
        self.candidates_ = {name: fitted[name][0] for name in order}
        self.stack_weight_ = {name: float(fitted[name][1] / total) for name in order}
        self.power_ = {name: float(fitted[name][2]) for name in order}
        self.left_out_ = left_out
        self.left_out_loss_: dict[str, float] = {}
        self.left_out_score_: dict[str, float] = {}
        if len(fitted) == 1:
            self.estimator_ = fitted[order[0]][0]
        if left_out is not None:
            said = dict(zip(left_out.names, left_out.prediction, strict=True))
            loss = left_out.loss.mean(axis=1).tolist()
            self.left_out_loss_ = dict(zip(said, loss, strict=True))
            shown = {"stack": left_out.mixed} | {k: v for k, v in said.items() if k == "training"}
            self.left_out_score_ = {k: self._score(left_out.y, v) for k, v in shown.items()}
        return self

    def _score(self, y: Any, found: Any) -> float:
        if is_classifier(self):
            return float((self.classes_[found.argmax(axis=1)] == y).mean())
        return 1 - float(np.square(y - found).mean()) / max(float(np.var(y)), 1e-300)

    def _predictions(self, X: Any) -> Vector:
        """Mean of the candidates' predictions, (k, c) or (k,)."""
        check_is_fitted(self, "candidates_")
        X = checked_rows(self, X)
        classes = getattr(self, "classes_", None)
        alone = len(self.candidates_) == 1  # then as its own predict has it
        least, limits = (0.0, None) if alone else (1e-3, self.limits_)
        with one_thread():
            found = [
                predictions(model, X, classes, least=least, limits=limits)
                for model in self.candidates_.values()
            ]
        if alone:
            return found[0]
        share, power = (np.array([*d.values()]) for d in (self.stack_weight_, self.power_))
        return Mixture(share, power).mix(np.stack(found))

    def __sklearn_tags__(self) -> Any:
        """Missing values as the wrapped estimator takes them; distances need dense rows."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = get_tags(self._base()).input_tags.allow_nan
        tags.input_tags.sparse = False
        return tags

    def __getattr__(self, name: str) -> Any:
        """Attributes of version 0.1.0 say in one line what became of them."""
        fitted = "stack_weight_" in vars(self)
        if fitted and name in GONE:
            text = f"{name} is gone after 0.2: {GONE[name]} says what counts"
            warnings.warn(text, FutureWarning, stacklevel=2)
            return getattr(self, GONE[name])
        if fitted and name == "estimator_":
            raise AttributeError(
                "a stack has several models, see candidates_; stack=False keeps one, estimator_"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def summary(self) -> str:
        """Candidates by their weights, and left-out scores, in one line."""
        check_is_fitted(self, "candidates_")
        found = list(self.stack_weight_.items())
        text = ", ".join(f"{name} {part:.2f}" for name, part in found[:3])
        text += ", …" * (len(found) > 3)
        if self.left_out_score_:
            what = "accuracy" if is_classifier(self) else "R²"
            text += f"; left-out {what} {self.left_out_score_['stack']:.2f}"
            if "training" in self.left_out_score_:
                text += f" against {self.left_out_score_['training']:.2f} for plain training"
        return text

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Settings, and once fitted what was found."""
        text = super().__repr__(N_CHAR_MAX)
        return f"{text}: {self.summary()}" if "candidates_" in vars(self) else text

    def _repr_html_(self) -> str:
        """The summary and the candidates as a small table."""
        if "candidates_" not in vars(self):
            return f"<pre>{html.escape(repr(self))}</pre>"
        rows = "".join(
            f"<tr><td>{html.escape(name)}</td><td>{part:.2f}</td>"
            f"<td>{self.left_out_loss_.get(name, float('nan')):.3f}</td></tr>"
            for name, part in self.stack_weight_.items()
        )
        return (
            f"<p>{html.escape(type(self).__name__)}: {html.escape(self.summary())}</p><table>"
            f"<tr><th>candidate</th><th>weight</th><th>left-out loss</th></tr>{rows}</table>"
        )

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


def _mean_one(weight: Vector) -> Vector:
    return weight / weight[weight > 0].mean() if len(weight) else weight


def _if_base_has(name: str) -> Any:
    return available_if(lambda self: hasattr(self._base(), name))


class ReweightedClassifier(ClassifierMixin, Reweighted):
    r"""Any classifier that takes ``sample_weight``, as a stack of simple uses of both tables.

    A handful of candidates is fitted: training rows only; validation rows only; both tables with
    training rows weighted 1, :math:`\sqrt{m/n}` and :math:`m/n`; generalized importance weighting
    (validation rows are split into inside and outside the training support, training rows weighted
    to those inside, the others join); the training model recalibrated on validation labels; and
    small linear models; with unlabelled rows also training rows weighted by features. Each is
    fitted again without each fold of the validation rows. The prediction is
    :math:`\sum_k a_k q_k(y \mid x)` of calibrated probabilities :math:`q_k \propto p_k^{b_k}`, with
    weights that maximise

    .. math:: \sum_j \log \sum_k a_k\, q_k(y_j \mid x_j) + c \sum_k \pi_k \log a_k

    over left-out validation rows. The prior :math:`\pi` counts like :math:`c` further rows; where
    validation rows are few and training fits them as well as left-out rows of its own, it favours
    training alone and to both tables. Powers
    :math:`b_k` make labels of left-out rows most likely, with a penalty
    :math:`\frac q2 (\log b_k)^2` for q candidates.

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
    reference_ : Reference or None
        A sample of both tables, for ``outside``.
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

    def _labels(
        self, y: Any, X: Any, y_val: Any, X_val: Any
    ) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Labels of both tables, checked; ``classes_`` holds those of either."""
        labels = class_labels(y, len(X), "y", self)
        if y_val is not None:
            y_val = class_labels(y_val, len(X_val), "y_val", self)
        self.classes_ = joint_classes(labels, labels[:0] if y_val is None else y_val)[0]
        return labels, y_val

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of largest probability, (n,)."""
        found = self._predictions(X)
        return self.classes_[found.argmax(axis=1)]

    @_if_base_has("predict_proba")
    def predict_proba(self, X: Any) -> Vector:
        """Class probabilities, (n, c), columns in the order of ``classes_``."""
        return self._predictions(X)

    @_if_base_has("decision_function")
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

    def _labels(self, y: Any, X: Any, y_val: Any, X_val: Any) -> tuple[Vector, Vector | None]:
        """Numbers of both tables, checked."""
        if y_val is not None:
            y_val = regression_targets(y_val, X_val, "y_val", self)
        return regression_targets(y, X, "y", self), y_val

    def predict(self, X: Any) -> Vector:
        """Predicted numbers, (n,)."""
        return self._predictions(X)
