"""Any scikit-learn estimator under distribution shift: a stack of simple uses of both tables."""

from __future__ import annotations

import html
import warnings
from collections.abc import Mapping, Sequence
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
from sklearn.utils.validation import check_is_fitted, validate_data

from giw.checks import as_generator, callers_level, check_count
from giw.estimators.candidates import (
    Candidate,
    FeatureWeighted,
    GeneralizedWeighting,
    Tables,
    default_candidates,
)
from giw.estimators.features import FEWEST_TRAINING_ROWS, split_rows
from giw.estimators.fitting import (
    binned_for,
    fit_weighted,
    one_thread,
    predictions,
    refuse_text,
    weight_keyword,
)
from giw.estimators.folds import folds_of
from giw.estimators.inputs import (
    check_estimator_instance,
    check_same_columns,
    check_splitter,
    check_table,
    class_labels,
    joint_classes,
    refuse_split_validation,
    regression_targets,
    row_weights,
)
from giw.estimators.ratios import ratio_named
from giw.estimators.rows import (
    as_frame,
    as_rows,
    is_frame,
    refuse_dates,
    row_count,
    row_hashes,
    rows_of,
    stacked,
)
from giw.estimators.saving import SavesToFolder
from giw.estimators.stack import (
    LeftOut,
    default_prior,
    fit_candidate,
    leave_out,
    run_all,
    settled,
)
from giw.support import SupportSplit, SupportSplitter
from giw.tables import Encoder

Vector = NDArray[np.float64]
GONE = ("weigh_on", "val_share")  # parameters of version 0.1.0
GONE_ATTRIBUTES = ("trust_", "val_share_", "sample_weight_", "effective_sample_size_")


class Reweighted(MetaEstimatorMixin, SavesToFolder, BaseEstimator):
    """What classifier and regressor share: split, candidates, left-out points, stack."""

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

    def _base(self) -> Any:
        raise NotImplementedError

    def _base_seed(self) -> int:
        """For the estimator that is taken if none is given: without a seed it asks the global one.

        It is made anew at every call and must not draw from a generator each time.
        """
        given = self.random_state
        return int(given) if isinstance(given, int | np.integer) and given >= 0 else 0

    def _fit(
        self,
        tables: tuple[Any, NDArray[Any], Any, NDArray[Any] | None, Any],
        weight: Vector,
        weight_val: Vector,
        groups_val: Any,
    ) -> None:
        """Split, leave out, stack, refit; labels are checked."""
        X, y, X_val, _, X_unlabelled = tables
        base, generator = self._base(), as_generator(self.random_state)
        self.split_: SupportSplit | None = None
        self.alpha_: float | None = None
        self.weight_ = np.ones(len(y))
        self.notes_: tuple[str, ...] = ()
        self.val_rows_ = np.empty(0, dtype=np.uint64)
        self.limits_: tuple[float, float] | None = None
        with one_thread():
            if X_val is None and X_unlabelled is None:
                self._say_plain()
                refuse_text(base, X)
                return self._keep({"training": fit_weighted(base, X, y, weight)}, np.ones(1))
            data = self._tables(tables, weight, weight_val, generator)
            m = int(data.is_val.sum())
            candidates = self._candidates(m)
            left_out = None
            if m > 1:
                most = self.n_folds if len(y) <= 5 * self.fold_rows else min(self.n_folds, 3)
                folds = min(most, m if groups_val is None else len(np.unique(groups_val)))
                strata = data.label if is_classifier(base) else np.zeros(len(data.label))
                fold = np.empty(len(data.label), dtype=np.int64)
                fold[~data.is_val] = folds_of(strata[~data.is_val], folds, generator)
                fold[data.is_val] = folds_of(strata[data.is_val], folds, generator, groups_val)
                if folds > 1:
                    left_out = self._leave_out(candidates, data, fold, generator)
                    data = replace(data, loss=left_out.judged)
            self.limits_ = data.limits
            self._stack(candidates, data, left_out)

    def _tables(
        self,
        tables: tuple[Any, NDArray[Any], Any, NDArray[Any] | None, Any],
        weight: Vector,
        weight_val: Vector,
        generator: np.random.Generator,
    ) -> Tables:
        """Both tables with features and support split; labelled validation rows come second."""
        X, y, X_val, y_val, X_unlabelled = tables
        base = self._base()
        weight, weight_val = (w / w[w > 0].mean() if len(w) else w for w in (weight, weight_val))
        X, targets = as_rows(X, "X"), [as_rows(t, "X_val") for t in (X_val, X_unlabelled)
                                       if t is not None]  # fmt: skip
        target = targets[0] if len(targets) == 1 else stacked(*targets)
        m = row_count(X_val) if y_val is not None else 0
        encoder = Encoder().fit(X, target)
        z, z_target = encoder.transform(X), encoder.transform(target)
        labels = (y, y_val) if is_classifier(base) and m == len(z_target) else (None, None)
        inside = self._split(z, labels[0], z_target, labels[1], generator)
        val = rows_of(target, np.arange(m))
        rows = binned_for(base, stacked(X, val))
        self.val_rows_ = row_hashes(val)
        train = np.arange(row_count(rows)) < len(y)
        refuse_text(base, rows)
        try:
            plain = fit_weighted(base, rows_of(rows, train), y, weight)
        except Exception as error:  # in any way that a base may fail
            plain = None
            self._note(f"training alone cannot be fitted: {' '.join(str(error).split())[:300]}")
        return Tables(
            base=base, rows=rows, label=y if y_val is None else np.concatenate([y, y_val]),
            is_val=~train, weight=np.r_[weight, weight_val[:m]],
            features=np.vstack([z, z_target[:m]]), inside=np.r_[np.ones(len(y), bool), inside[:m]],
            encoder=encoder, plain=plain, ratio=self.weights, target=z_target[m:][inside[m:]],
        )  # fmt: skip

    def _split(
        self,
        z: Vector,
        y: NDArray[Any] | None,
        z_target: Vector,
        y_target: NDArray[Any] | None,
        generator: np.random.Generator,
    ) -> NDArray[np.bool_]:
        """Target rows inside the training support, (k,), by ``3 fold_rows`` rows at most."""
        if len(z) < FEWEST_TRAINING_ROWS:
            self._note(f"{len(z)} training rows cannot tell inside from outside: all count inside")
            self.alpha_ = 1.0
            return np.ones(len(z_target), dtype=bool)
        some = generator.permutation(len(z))[: 3 * self.fold_rows]
        self.split_ = split_rows(
            self.splitter, z, y, z_target, y_target, some, int(generator.integers(2**31))
        )
        inside = np.asarray(self.split_.inside, dtype=bool)
        self.alpha_ = float(inside.mean())
        if not inside.any():
            self._note(
                f"none of the {len(inside)} validation points is inside the training support; if "
                "a column such as a date or a running number is to blame, leave it out "
                "(giw.diagnose names such columns)"
            )
        return inside

    def _leave_out(
        self,
        candidates: Sequence[Candidate],
        data: Tables,
        fold: NDArray[np.int64],
        generator: np.random.Generator,
    ) -> LeftOut:
        """Left-out predictions by fits to all validation and ``fold_rows`` training rows."""
        n = int((~data.is_val).sum())
        sample = np.ones(len(fold), dtype=bool)
        if n > self.fold_rows:
            sample[:n] = False
            sample[generator.permutation(n)[: self.fold_rows]] = True
            some = data.only(np.flatnonzero(sample))
            plain = some.fit((~some.is_val).astype(np.float64))
            data = replace(data, plain=plain, many=n / self.fold_rows)
        classes = getattr(self, "classes_", None)
        return leave_out(
            candidates, data, fold, sample, classes, n_jobs=self.n_jobs, verbose=self.verbose
        )

    def _stack(
        self, candidates: Sequence[Candidate], data: Tables, left_out: LeftOut | None
    ) -> None:
        """Weights of the candidates, and fits of those that matter to all rows."""
        m = int(data.is_val.sum())
        chosen = list(candidates)
        if left_out is not None:
            chosen = [c for c in candidates if c.name in left_out.names]
            self._note(*left_out.notes)
        prior, strength = default_prior(chosen, is_classifier(self._base()))
        share = prior
        if left_out is None:
            self._note(f"{m} labelled validation rows cannot be left out and judged: candidates "
                       "keep the weights that they have without")  # fmt: skip
        else:
            share = self._shares(left_out, data, prior, strength)
        keep = np.argsort(-share)[:1]
        if self.stack:  # training alone is fitted already, and always stays
            stays = np.array([c.name == "training" for c in chosen])
            keep = np.flatnonzero(stays | (share >= self.least_weight) | (share == share.max()))
        tasks = [(fit_candidate, chosen[j], data) for j in keep]
        models = run_all(tasks, n_jobs=self.n_jobs, verbose=self.verbose, name="candidates")
        fitted = {}
        for j, model in zip(keep, models, strict=True):
            if isinstance(model, str):
                self._note(f"{chosen[j].name} steps aside: {model}")
            else:
                fitted[chosen[j].name] = (model, share[j])
        if not fitted and data.plain is None:
            raise ValueError("no candidate could be fitted: " + "; ".join(self.notes_))
        fitted = fitted or {"training": (data.plain, 1.0)}
        parts = np.array([part for _, part in fitted.values()])
        self._keep({name: model for name, (model, _) in fitted.items()}, parts / parts.sum())
        self._say_left_out(left_out, data, (prior, strength))
        kinds = (GeneralizedWeighting if data.loss is not None else FeatureWeighted,)
        weighted = [c for c in candidates if isinstance(c, kinds)]
        if weighted:
            self.weight_ = weighted[0].weight(data)

    def _shares(
        self,
        left_out: LeftOut,
        data: Tables,
        prior: Vector,
        strength: float,
        rows: Any = slice(None),
    ) -> Vector:
        """Weights of the stack by some validation rows."""
        y, weight = data.label[data.is_val][rows], data.weight[data.is_val][rows]
        numbers = None if is_classifier(self._base()) else left_out.prediction[:, rows]
        return settled(prior, strength, left_out.loss[:, rows], numbers, y, weight)

    def _keep(self, models: Mapping[str, Any], share: Vector) -> None:
        order = sorted(zip(share.tolist(), models, strict=True), key=lambda pair: -pair[0])
        self.candidates_ = {name: models[name] for _, name in order}
        self.stack_weight_ = {name: part for part, name in order}
        self.left_out_loss_: dict[str, float] = {}
        self.left_out_score_: dict[str, float] = {}
        self.left_out_: LeftOut | None = None
        if len(models) == 1:
            self.estimator_ = next(iter(models.values()))

    def _say_left_out(
        self, left_out: LeftOut | None, data: Tables, prior: tuple[Vector, float]
    ) -> None:
        """Scores of left-out rows; the stack's own by weights that have not seen the fold."""
        if left_out is None:
            return
        names, y = left_out.names, data.label[data.is_val]
        self.left_out_loss_ = dict(zip(names, left_out.loss.mean(axis=1).tolist(), strict=True))
        mixed = np.zeros_like(left_out.prediction[0])
        for k in np.unique(left_out.fold):
            mine = left_out.fold == k
            share = self._shares(left_out, data, *prior, ~mine)
            mixed[mine] = np.tensordot(share, left_out.prediction[:, mine], 1)
        self.left_out_ = replace(left_out, y=y, mixed=mixed)
        shown = {"stack": mixed}
        if "training" in names:
            shown["training"] = left_out.prediction[names.index("training")]
        self.left_out_score_ = {name: self._score(y, found) for name, found in shown.items()}

    def _score(self, y: NDArray[Any], found: Vector) -> float:
        if found.ndim == 2:
            return float((self.classes_[found.argmax(axis=1)] == y).mean())
        return 1 - float(np.square(y - found).mean()) / max(float(np.var(y)), 1e-300)

    def _predictions(self, X: Any) -> Vector:
        """Mean of the candidates' predictions, (k, c) or (k,)."""
        check_is_fitted(self, "candidates_")
        X = as_frame(X)
        if getattr(X, "ndim", 2) == 1:
            raise ValueError(
                "expected a table, got one dimension. Reshape your data: X.reshape(-1, 1) for one "
                "column, X.reshape(1, -1) for one row"
            )
        validate_data(self, X, reset=False, skip_check_array=True)
        classes = getattr(self, "classes_", None)
        alone = len(self.candidates_) == 1  # then as its own predict has it
        least, limits = (0.0, None) if alone else (1e-3, self.limits_)
        X = X if is_frame(X) or hasattr(X, "shape") else np.asarray(X)
        with one_thread():
            found = [
                predictions(model, X, classes, least=least, limits=limits)
                for model in self.candidates_.values()
            ]
        return np.tensordot(np.array([*self.stack_weight_.values()]), np.stack(found), axes=1)

    def _candidates(self, m: int) -> list[Candidate]:
        """Those that were asked for, or the usual ones for m labelled validation rows."""
        usual = default_candidates(is_classifier(self._base()), labelled=m > 0)
        if isinstance(self.candidates, str) and self.candidates == "auto":
            return usual
        known = {c.name: c for c in usual}
        unknown = [c for c in self.candidates if isinstance(c, str) and c not in known]
        if isinstance(self.candidates, str) or unknown:
            raise ValueError(
                f"candidates must be 'auto' or a list of candidates and of the names "
                f"{', '.join(map(repr, known))}; got {unknown or self.candidates!r}"
            )
        return [known[c] if isinstance(c, str) else c for c in self.candidates]

    def _check_settings(self) -> None:
        weight_keyword(self._base())  # refuse before any work is done
        check_splitter(self.splitter)
        if self.weights is not None:
            ratio_named(self.weights)
        check_count(self.n_folds, "n_folds", least=2)
        check_count(self.fold_rows, "fold_rows", least=1)
        for name in GONE:
            value = getattr(self, name)
            if not (isinstance(value, str) and value == "deprecated"):
                warnings.warn(
                    f"{name} has no effect since 0.2: left-out validation points weigh candidates",
                    FutureWarning,
                    stacklevel=callers_level(),
                )

    def _say_plain(self) -> None:
        text = (
            f"no validation data: {type(self).__name__} has nothing to adapt to and fits plainly; "
            "pass X_val and y_val from the test distribution"
        )
        self._note(text)
        warnings.warn(text, UserWarning, stacklevel=callers_level())

    def _note(self, *texts: str) -> None:
        self.notes_ = (*self.notes_, *texts)

    def _checked_tables(self, X: Any, *others: Any) -> list[Any]:
        """All tables, frames if X is one; columns are counted and named as scikit-learn does."""
        self._check_settings()
        X = as_frame(X)
        check_table(X, "X")
        validate_data(self, X, reset=True, skip_check_array=True)
        refuse_dates(X, "X", self._base())
        tables = [X]
        for name, other in zip(("X_val", "X_unlabelled"), others, strict=False):
            other = as_frame(other)
            if other is not None:
                check_table(other, name)
                check_same_columns(X, other)
                refuse_dates(other, name, self._base())
                if np.shape(other)[1] != self.n_features_in_:
                    raise ValueError(
                        f"X has {self.n_features_in_} columns and {name} {np.shape(other)[1]}; "
                        "both need the same columns in the same order"
                    )
                validate_data(self, other, reset=False, skip_check_array=True)
                if row_count(other) == 0:
                    raise ValueError(f"{name} has no rows; pass {name}=None")
                if is_frame(X) != is_frame(other):
                    values = np.asarray(other)
                    other = type(X)(values, columns=X.columns) if is_frame(X) else values
            tables.append(other)
        refuse_split_validation(X, tables[1])
        return tables

    def __sklearn_tags__(self) -> Any:
        """What the wrapped estimator takes, this one takes."""
        tags = super().__sklearn_tags__()
        inner = get_tags(self._base()).input_tags
        tags.input_tags.allow_nan, tags.input_tags.sparse = inner.allow_nan, inner.sparse
        return tags

    def __getattr__(self, name: str) -> Any:
        """Attributes of version 0.1.0 say in one line what became of them."""
        if name in GONE_ATTRIBUTES and "stack_weight_" in vars(self):
            warnings.warn(
                f"{name} is gone after 0.2: stack_weight_ and weight_ say what counts",
                FutureWarning,
                stacklevel=2,
            )
            return self._former(name)
        if name == "estimator_" and "stack_weight_" in vars(self):
            raise AttributeError(
                "a stack has several models, see candidates_; stack=False keeps one, estimator_"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _adopt(self) -> None:
        """Make a model that version 0.1.0 has saved one candidate of its own."""
        if "estimator_" in vars(self) and "candidates_" not in vars(self):
            self.val_rows_, self.limits_ = np.empty(0, dtype=np.uint64), None
            self._keep({"0.1.0": self.estimator_}, np.ones(1))

    def _former(self, name: str) -> Any:
        """What comes closest to an attribute of version 0.1.0."""
        if name == "effective_sample_size_":
            return float(self.weight_.sum() ** 2 / np.square(self.weight_).sum())
        if name == "sample_weight_":
            return np.r_[self.weight_, np.ones(len(self.val_rows_))]
        return self.stack_weight_.get({"trust_": "giw"}.get(name, "validation"), 0.0)

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
    is fitted again without each fold of the
    validation rows. The prediction is :math:`\sum_k a_k p_k(y \mid x)`, with weights that maximise

    .. math:: \sum_j \log \sum_k a_k\, p_k(y_j \mid x_j) + c \sum_k \pi_k \log a_k

    over left-out validation rows: a prior :math:`\pi` counts like :math:`c` further rows.

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

    def _base(self) -> Any:
        if self.estimator is None:
            return HistGradientBoostingClassifier(random_state=self._base_seed())
        return self.estimator

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
    ) -> ReweightedClassifier:
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
        check_estimator_instance(self._base())
        if not is_classifier(self._base()):
            raise ValueError(
                f"{type(self._base()).__name__} is no classifier; use giw.ReweightedRegressor"
            )
        X, X_val, X_unlabelled = self._checked_tables(X, X_val, X_unlabelled)
        labels = class_labels(y, row_count(X), "y", self)
        val_labels = None
        if y_val is not None:
            if X_val is None:
                raise ValueError("y_val came without X_val; pass both, or X_val alone")
            val_labels = class_labels(y_val, row_count(X_val), "y_val", self)
        known = labels[:0] if val_labels is None else val_labels
        self.classes_ = joint_classes(labels, known)[0]
        self._fit(
            (X, labels, X_val, val_labels, X_unlabelled), row_weights(sample_weight, X),
            row_weights(sample_weight_val, X_val, "sample_weight_val"), groups_val,
        )  # fmt: skip
        return self

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

    def _base(self) -> Any:
        if self.estimator is None:
            return HistGradientBoostingRegressor(random_state=self._base_seed())
        return self.estimator

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
    ) -> ReweightedRegressor:
        """Fit to (X, y) and to (X_val, y_val), as :meth:`ReweightedClassifier.fit` does."""
        check_estimator_instance(self._base())
        if is_classifier(self._base()):
            raise ValueError(
                f"{type(self._base()).__name__} is a classifier; use giw.ReweightedClassifier"
            )
        X, X_val, X_unlabelled = self._checked_tables(X, X_val, X_unlabelled)
        target = regression_targets(y, X, "y", self)
        val_target = None
        if y_val is not None:
            if X_val is None:
                raise ValueError("y_val came without X_val; pass both, or X_val alone")
            val_target = regression_targets(y_val, X_val, "y_val", self)
        self._fit(
            (X, target, X_val, val_target, X_unlabelled), row_weights(sample_weight, X),
            row_weights(sample_weight_val, X_val, "sample_weight_val"), groups_val,
        )  # fmt: skip
        return self

    def predict(self, X: Any) -> Vector:
        """Predicted numbers, (n,)."""
        return self._predictions(X)
