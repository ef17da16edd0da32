"""What the estimators for tables share: split, candidates, left-out points, stack."""

from __future__ import annotations

import html
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from giw.checks import as_generator, callers_level, check_count
from giw.estimators.candidates import (
    Candidate,
    FeatureWeighted,
    GeneralizedWeighting,
    Tables,
    default_candidates,
)
from giw.estimators.features import Encoded, encode_and_split
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
    check_splitter,
    checked_rows,
    checked_tables,
    row_weights,
)
from giw.estimators.ratios import ratio_named
from giw.estimators.rows import row_count, row_hashes, rows_of, stacked
from giw.estimators.saving import SavesToFolder
from giw.estimators.stack import (
    LeftOut,
    Mixture,
    default_prior,
    fit_candidate,
    leave_out,
    run_all,
    settled,
)
from giw.support import SupportSplit, SupportSplitter

Vector = NDArray[np.float64]
GONE = ("weigh_on", "val_share")  # parameters of version 0.1.0
GONE_ATTRIBUTES = {  # of version 0.1.0, and what tells something like it
    "trust_": "stack_weight_",
    "val_share_": "stack_weight_",
    "sample_weight_": "weight_",
    "effective_sample_size_": "weight_",
}


class Reweighted(MetaEstimatorMixin, SavesToFolder, BaseEstimator):
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
        check_estimator_instance(base)
        self._check_kind(base)
        self._check_settings(base)
        X, X_val, X_unlabelled = checked_tables(self, base, X, X_val, X_unlabelled)
        if X_val is None and y_val is not None:
            raise ValueError("y_val came without X_val; pass both, or X_val alone")
        y, y_val = self._labels(y, X, y_val, X_val)
        weight = row_weights(sample_weight, X)
        weight_val = row_weights(sample_weight_val, X_val, "sample_weight_val")
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
                self._keep({"training": fit_weighted(base, X, y, weight)}, np.ones(1))
                return self
            generator = as_generator(self.random_state)
            targets = [table for table in (X_val, X_unlabelled) if table is not None]
            data = self._tables(base, X, y, targets, y_val, weight, weight_val, generator)
            self.limits_ = data.limits
            candidates = self._candidates(int(data.is_val.sum()))
            left_out = self._leave_out(candidates, data, groups_val, generator)
            self._stack(candidates, data, left_out)
        return self

    def _base(self) -> Any:
        """The estimator to copy; if none is given, boosted trees.

        Without a seed these would ask numpy's global one.
        """
        if self.estimator is not None:
            return self.estimator
        given = self.random_state
        return self._trees(random_state=int(given) if isinstance(given, int | np.integer) else 0)

    def _tables(
        self,
        base: Any,
        X: Any,
        y: NDArray[Any],
        targets: Sequence[Any],
        y_val: NDArray[Any] | None,
        weight: Vector,
        weight_val: Vector,
        generator: np.random.Generator,
    ) -> Tables:
        """Both tables with features and support split; labelled validation rows come second."""
        weight, weight_val = (w / w[w > 0].mean() if len(w) else w for w in (weight, weight_val))
        target = targets[0] if len(targets) == 1 else stacked(*targets)
        m = 0 if y_val is None else len(y_val)
        labelled = is_classifier(base) and m == row_count(target)
        encoded = encode_and_split(
            X, target, generator, y=y if labelled else None, y_target=y_val if labelled else None,
            splitter=self.splitter, most=3 * self.fold_rows,
        )  # fmt: skip
        self._say_split(encoded)
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
        inside = encoded.inside
        return Tables(
            base=base, rows=rows, label=y if y_val is None else np.concatenate([y, y_val]),
            is_val=~train, weight=np.r_[weight, weight_val[:m]],
            features=np.vstack([encoded.z, encoded.z_target[:m]]),
            inside=np.r_[np.ones(len(y), bool), inside[:m]], encoder=encoded.encoder, plain=plain,
            ratio=self.weights, target=encoded.z_target[m:][inside[m:]],
        )  # fmt: skip

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

    def _leave_out(
        self,
        candidates: Sequence[Candidate],
        data: Tables,
        groups_val: Any,
        generator: np.random.Generator,
    ) -> LeftOut | None:
        """Left-out predictions by fits to all validation and ``fold_rows`` training rows."""
        train = ~data.is_val
        n, m = int(train.sum()), int((~train).sum())
        most = self.n_folds if n <= 5 * self.fold_rows else min(self.n_folds, 3)
        folds = min(most, m if groups_val is None else len(np.unique(groups_val)))
        if folds < 2:
            return None
        strata = data.label if is_classifier(data.base) else np.zeros(n + m)
        fold = np.empty(n + m, dtype=np.int64)
        fold[train] = folds_of(strata[train], folds, generator)
        fold[~train] = folds_of(strata[~train], folds, generator, groups_val)
        sample = np.ones(n + m, dtype=bool)
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
        chosen = list(candidates)
        if left_out is not None:
            chosen = [c for c in candidates if c.name in left_out.names]
            data = replace(data, loss=left_out.judged)
            self._note(*left_out.notes)
        prior, strength = default_prior(chosen, is_classifier(data.base))
        mixture = Mixture(prior, np.ones(len(prior)))
        if left_out is None:
            self._note(f"{int(data.is_val.sum())} labelled validation rows cannot be left out and "
                       "judged: candidates keep the weights that they have without")  # fmt: skip
        else:
            mixture = self._mixture(left_out, data, prior, strength)
        share = mixture.share
        kind = FeatureWeighted if data.loss is None else GeneralizedWeighting
        for candidate in candidates:
            if isinstance(candidate, kind):
                self.weight_ = candidate.weight(data)
                data = replace(data, inside_weight=None if data.loss is None else self.weight_)
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
                fitted[chosen[j].name] = (model, share[j], mixture.power[j])
        if not fitted and data.plain is None:
            raise ValueError("no candidate could be fitted: " + "; ".join(self.notes_))
        fitted = fitted or {"training": (data.plain, 1.0, 1.0)}
        models_, shares, powers = zip(*fitted.values(), strict=True)
        self._keep(dict(zip(fitted, models_, strict=True)), np.array(shares), np.array(powers))
        if left_out is not None:
            self._say_left_out(left_out, data, prior, strength)

    def _mixture(
        self,
        left_out: LeftOut,
        data: Tables,
        prior: Vector,
        strength: float,
        rows: Any = slice(None),
    ) -> Mixture:
        """The stack by some validation rows."""
        y, weight = data.label[data.is_val][rows], data.weight[data.is_val][rows]
        if is_classifier(data.base):
            y = np.searchsorted(self.classes_, y)
        return settled(prior, strength, left_out.prediction[:, rows], y, weight)

    def _keep(self, models: Mapping[str, Any], share: Vector, power: Vector | None = None) -> None:
        """Fitted candidates, the largest weight first."""
        power = np.ones(len(share)) if power is None else power
        order = np.argsort(-share, kind="stable")
        names = list(models)
        self.candidates_ = {names[j]: models[names[j]] for j in order}
        self.stack_weight_ = {names[j]: float(share[j] / share.sum()) for j in order}
        self.power_ = {names[j]: float(power[j]) for j in order}
        self.left_out_loss_: dict[str, float] = {}
        self.left_out_score_: dict[str, float] = {}
        self.left_out_: LeftOut | None = None
        if len(models) == 1:
            self.estimator_ = next(iter(models.values()))

    def _say_left_out(
        self, left_out: LeftOut, data: Tables, prior: Vector, strength: float
    ) -> None:
        """Scores of left-out rows; the stack's own by weights that have not seen the fold."""
        names, y = left_out.names, data.label[data.is_val]
        self.left_out_loss_ = dict(zip(names, left_out.loss.mean(axis=1).tolist(), strict=True))
        mixed = np.zeros_like(left_out.prediction[0])
        for k in np.unique(left_out.fold):
            mine = left_out.fold == k
            mixture = self._mixture(left_out, data, prior, strength, ~mine)
            mixed[mine] = mixture.mix(left_out.prediction[:, mine])
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

    def _check_settings(self, base: Any) -> None:
        weight_keyword(base)  # refuse before any work is done
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

    def __sklearn_tags__(self) -> Any:
        """Missing values as the wrapped estimator takes them; distances need dense rows."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = get_tags(self._base()).input_tags.allow_nan
        tags.input_tags.sparse = False
        return tags

    def __getattr__(self, name: str) -> Any:
        """Attributes of version 0.1.0 say in one line what became of them."""
        fitted = "stack_weight_" in vars(self)
        if fitted and name in GONE_ATTRIBUTES:
            now = GONE_ATTRIBUTES[name]
            warnings.warn(
                f"{name} is gone after 0.2: {now} says what counts", FutureWarning, stacklevel=2
            )
            return getattr(self, now)
        if fitted and name == "estimator_":
            raise AttributeError(
                "a stack has several models, see candidates_; stack=False keeps one, estimator_"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _adopt(self) -> None:
        """Make a model that version 0.1.0 has saved one candidate of its own."""
        if "estimator_" in vars(self) and "candidates_" not in vars(self):
            self.val_rows_, self.limits_ = np.empty(0, dtype=np.uint64), None
            self._keep({"0.1.0": self.estimator_}, np.ones(1))

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
